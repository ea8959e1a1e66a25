"""Charts with altair, which is an extra: specifications for the page, and whole ones for pictures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from asyncbench.analysis.cells import METRICS
from asyncbench.errors import ConfigError
from asyncbench.page.charts.catalogue import CHARTS
from asyncbench.page.charts.themes import THEMES
from asyncbench.published.reports import PublishedPicture

Spec = dict[str, Any]  # Any: a specification of Vega-Lite

COLUMNS = ((4, 2), (12, 3), (inf, 4))  # at most so many panels → how many stand side by side
ALONE = 640  # pixels of a panel that is the only one
INSTALL = "the report extra: in the checkout of asyncbench, pip install '.[report]'"


def spec_of(name: str, metric: str = "accuracy") -> Spec:
    """Return the Vega-Lite specification of a chart over data named `rows`, without title or theme.

    Args:
        name: of `CHARTS`.
        metric: of `METRICS`, for charts that show one of several.

    Raises:
        ConfigError: altair is not installed; there is no such chart or metric.
    """
    for kind, choice, known in (("chart", name, CHARTS), ("metric", metric, METRICS)):
        if choice not in known:
            raise ConfigError(f"no {kind} {choice!r}. Choose one of: {', '.join(known)}")
    with _altair():
        from asyncbench.page.charts.load_specs import load_spec
        from asyncbench.page.charts.spec_table import spec
    with _without_validation():
        return load_spec(name) if CHARTS[name].load else spec(name, metric)


@contextmanager
def _without_validation() -> Iterator[None]:
    """Let altair not hold each part against the schema of all, as the tests do once."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


@contextmanager
def _altair() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(f"charts need {INSTALL}") from error


def drawn(
    name: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    metric: str = "accuracy",
    theme: str = "light",
    notes: Sequence[str] = (),
) -> Spec:
    """Return a chart that stands alone: rows, title and theme within it.

    Args:
        name: of `CHARTS`.
        rows: with the columns that `CHARTS` tells.
        metric: of `METRICS`.
        theme: of `THEMES`.
        notes: lines under the title.

    Raises:
        ConfigError: as `spec_of` does.
    """
    spec = titled(spec_of(name, metric), CHARTS[name].title, notes)
    return self_contained(spec, list(rows), theme=theme, paired=CHARTS[name].paired)


def published_drawn(picture: PublishedPicture, *, theme: str = "light", notes: Sequence[str] = ()) -> Spec:
    """Return a picture of a published benchmark that stands alone, as `drawn` does a chart."""
    with _altair():
        from asyncbench.page.charts.published_specs import published_spec
    with _without_validation():
        spec = titled(published_spec(picture), picture.title, notes)
    return self_contained(spec, picture.drawn_rows(), theme=theme)


def self_contained(
    spec: Spec, rows: Sequence[Mapping[str, Any]], *, theme: str, paired: bool = False
) -> Spec:
    """Return a specification with its rows, its theme, and its panels side by side where it has any."""
    if "facet" in spec:
        by = spec["facet"]["field"]
        panels = len({row[by] for row in rows})
        columns = next(columns for most, columns in COLUMNS if panels <= most)
        spec["columns"] = columns = columns - columns % 2 * paired
        if panels % columns:  # a shared axis would stand at the foot of empty places too
            spec["resolve"] = spec.get("resolve", {}) | {"axis": {"x": "independent"}}
        if panels == 1 and isinstance(spec["spec"]["width"], int):  # else it is as wide as its columns
            spec["spec"]["width"] = ALONE
    for parameter in spec.get("params", ()):
        parameter["value"] = sorted({row["rate"] for row in rows if "rate" in row})
    return {**spec, "data": {"values": rows}, "config": THEMES[theme], "padding": 12}


def titled(spec: Spec, title: str, notes: Sequence[str]) -> Spec:
    """Return a specification with a title, and lines under it."""
    return {**spec, "title": {"text": title, "subtitle": list(notes)}}
