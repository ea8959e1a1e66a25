"""Requests to be packed, and parts of them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from asyncbench.batches import OPENAI, BatchPart, BatchRequest, PartLimits, pack

CHAT = "/v1/chat/completions"


def requests(
    count: int, *, first=0, model="m", path=CHAT, text="What is 1 + 1?", **fields
) -> list[BatchRequest]:
    """Requests whose trials are numbered from `first`."""
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": text}]})
    return [
        BatchRequest(trial_id=f"{number:032x}", attempt=1, model_id=model, path=path, body=body, **fields)
        for number in range(first, first + count)
    ]


@pytest.fixture
def packed(tmp_path) -> Callable[..., list[BatchPart]]:
    """Pack requests into `tmp_path`; what is refused goes to the list `packed.refused`."""
    keys = (f"{number:016x}" for number in itertools.count(0xA))
    told: list[tuple[str, str]] = []

    def pack_all(asked: Any, vendor=OPENAI, **limits: Any) -> list[BatchPart]:
        taken = limits.pop("counts_taken", ())
        return [
            *pack(
                asked,
                vendor,
                tmp_path,
                limits=PartLimits(**limits),
                new_key=lambda: next(keys),
                counts_taken=taken,
                refuse=lambda request, why: told.append((request.trial_id, why)),
            )
        ]

    pack_all.refused = told  # type: ignore[attr-defined]  # for tests of refusals
    return pack_all


def trials_of(parts: list[BatchPart], folder: Path) -> list[str]:
    """The trials of parts in their order, by the lines themselves."""
    return [line["custom_id"][:32] for part in parts for line in lines_of(part, folder)]


def lines_of(part: BatchPart, folder: Path) -> Iterator[Any]:
    yield from map(orjson.loads, part.file(folder).read_bytes().splitlines())
