"""The catalogue of charts, and their specifications: for the page, and whole ones for pictures."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

from asyncbench.analysis.cells import METRICS
from asyncbench.errors import ConfigError
from asyncbench.page.charts.accuracy_charts import ACCURACY_CHARTS
from asyncbench.page.charts.call_charts import CALL_CHARTS
from asyncbench.page.charts.chart import Chart, Spec
from asyncbench.page.charts.error_charts import ERROR_CHARTS
from asyncbench.page.charts.load_charts import LOAD_CHARTS
from asyncbench.page.charts.published_specs import published_spec
from asyncbench.page.charts.themes import THEMES
from asyncbench.published.reports import PublishedPicture

COLUMNS: Final = ((4, 2), (12, 3), (inf, 4))  # at most so many panels → how many stand side by side
ALONE: Final = 640  # pixels of a panel that is the only one
_OVER_ROWS: Final[Spec] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json",
    "data": {"name": "rows"},
}

CHARTS: Final[Mapping[str, Chart]] = {**ACCURACY_CHARTS, **ERROR_CHARTS, **CALL_CHARTS, **LOAD_CHARTS}


def spec_of(name: str, metric: str = "accuracy") -> Spec:
    """Return the Vega-Lite specification of a chart over data named `rows`, without title or theme.

    Args:
        name: of `CHARTS`.
        metric: of `METRICS`, for charts that show one of several.

    Raises:
        ConfigError: there is no such chart or metric.
    """
    for kind, choice, known in (("chart", name, CHARTS), ("metric", metric, METRICS)):
        if choice not in known:
            raise ConfigError(f"no {kind} {choice!r}. Choose one of: {', '.join(known)}")
    spec = CHARTS[name].spec
    return _over_rows(spec(METRICS[metric]) if callable(spec) else spec)


def _over_rows(spec: Spec) -> Spec:
    """Return a specification over `rows` as a copy that may be changed: no two parts of it are one object."""
    copy: Spec = json.loads(json.dumps(_OVER_ROWS | spec))
    return copy


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
    chart = CHARTS[name]
    return _self_contained(
        spec_of(name, metric), list(rows), chart.title, notes, theme=theme, paired=chart.paired
    )


def published_drawn(picture: PublishedPicture, *, theme: str = "light", notes: Sequence[str] = ()) -> Spec:
    """Return a picture of a published benchmark that stands alone, as `drawn` does a chart."""
    spec = _over_rows(published_spec(picture))
    return _self_contained(spec, picture.drawn_rows(), picture.title, notes, theme=theme)


def _self_contained(
    spec: Spec,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    notes: Sequence[str],
    *,
    theme: str,
    paired: bool = False,
) -> Spec:
    """Return a specification with rows, title and theme, and its panels side by side where it has any."""
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
    alone = {"data": {"values": rows}, "config": THEMES[theme], "padding": 12}
    return {**spec, "title": {"text": title, "subtitle": list(notes)}, **alone}
