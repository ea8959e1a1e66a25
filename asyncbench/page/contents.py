"""Everything that the page to mail holds, as plain values: what its script reads, block by block."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.charts.themes import THEMES
from asyncbench.page.sample import Sample, sample_of

Values = dict[str, Any]  # Any: whatever JSON can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The blocks of a page, and what people are told of them."""

    title: str
    blocks: Mapping[str, object]  # by the id of their element
    sample: Sample
    load_calls: int  # that were due to a load


def contents_of(folder: Folders) -> Contents:
    """Return what a page of a results folder holds.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    return counted(chosen(folder), _contents)


def _contents(views: FolderViews) -> Contents:
    blocks = {name: make(views) for name, make in BLOCKS.items()}
    head, sample = blocks["head"], sample_of(views)
    return Contents(
        title=head["title"],
        blocks={
            **blocks,
            "specs": specs_block(),
            "sample": {"rule": sample.rule, "of": sample.of, "trials": sample.trials},
        },
        sample=sample,
        load_calls=head["load_calls"],
    )


def specs_block() -> Values:
    """Return the charts, and how they look."""
    return {"specs": orjson.loads(ready_made("specs.json")), "themes": THEMES}


@cache
def ready_made(name: str) -> bytes:
    """Return what `data/page.py` made: drawing the charts and bundling their libraries takes seconds."""
    return gzip.decompress(files("asyncbench.page").joinpath(f"{name}.gz").read_bytes())
