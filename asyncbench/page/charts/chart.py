"""A chart: its words, the columns of its rows and its specification, and the parts that specifications share.

A specification is Vega-Lite over data named `rows`. It holds no title, no data and no theme, so that the page
and pictures can share it. Each row brings the colour of its entrant, so a filter changes no colour.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from asyncbench.analysis.cells import Metric
from asyncbench.page.charts.styling import STRONG

Spec = dict[str, Any]  # Any: a specification of Vega-Lite, or a part of one

WIDTH: Final = 640  # pixels of a chart that is one view
PANEL_WIDTH: Final = 300  # of one of several
ROW: Final = 20  # pixels of height a bar
HEIGHT: Final = 260  # of a panel with two quantities
PERCENT: Final = ".0%"
QUARTERS: Final = [0, 0.25, 0.5, 0.75, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The words and the drawing of a chart, without its rows."""

    title: str
    purpose: str
    nothing: str = "Your selection has no data for this chart."  # where it has no rows
    columns: Mapping[str, str]  # of its rows → what they hold, with the unit; unknown is None
    paired: bool = False  # each panel and the next stand side by side
    room: int = 400  # pixels of a page that a panel takes with its names: as many stand side by side
    spec: Spec | Callable[[Metric], Spec]  # of Vega-Lite; a function: it shows whichever of METRICS is chosen
    on_page: bool = True  # False: the page has a table instead

    def words(self) -> dict[str, object]:
        """Return all that a page is told of it beside its specification."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "spec"}


# ── words of several charts ──────────────────────────────────────────────────────────────────────

WHO: Final = {"asked": "place of the entrant", "model": "its short name", "colour": "its colour"}
KIND: Final = {"kind": "place of the kind of question", "task": "what it is called"}
LOW, HIGH = "lower end of the 95 % interval, unit of value", "its upper end"
SHARE: Final = {"value": "accuracy over all trials, [0, 1]", "low": LOW, "high": HIGH, "trials": "count"}

# Names of columns in tooltips, where these are not the column's own.
_TIPS: Final[Mapping[str, str]] = {
    "series": "model or limit",
    "low": "95 % CI from",
    "high": "to",
    "p": "p (Holm)",
    "at": "time (UTC)",
    "p50_s": "median latency, s",
    "p95_s": "p95 latency, s",
    "errors": "wrong here",
    "answers": "wrong answers",
    "used": "used of the limit",
    "tied": "statistically tied",
}
SHARE_TIPS: Final = ("value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,")

# ── parts of specifications ──────────────────────────────────────────────────────────────────────

_KINDS: Final = {"Q": "quantitative", "N": "nominal", "O": "ordinal", "T": "temporal"}


def field(column: str, **options: Any) -> Spec:  # Any: of Vega-Lite
    """Return a channel that shows a column: `length:Q`; the end of a range, such as x2, has no type."""
    name, _, kind = column.partition(":")
    return {"field": name, **({"type": _KINDS[kind]} if kind else {}), **options}


def mark(kind: str, options: Spec, *transform: Spec, **encoding: Any) -> Spec:  # Any: channels
    """Return a layer: what it draws of each row, after which transforms, and what its channels show."""
    layer = {"mark": {"type": kind, **options}, "encoding": encoding}
    return {**layer, "transform": [*transform]} if transform else layer


def view(*layers: Spec, height: float | Spec, width: float | Spec = WIDTH) -> Spec:
    """Return layers one over the other."""
    return {"layer": [*layers], "width": width, "height": height}


def panels(
    *layers: Spec,
    height: float | Spec,
    by: str = "panel",
    transform: Sequence[Spec] = (),
    apart: Sequence[str] = (),
    width: float | Spec = PANEL_WIDTH,
) -> Spec:
    """Return small multiples, one for each value of a column, in the order of the rows.

    Args:
        layers: of each.
        height, width: of each.
        by: the column.
        transform: of the rows of all.
        apart: channels that have a scale in each.
    """
    header = {"title": None, "header": {"title": None}, "sort": {"field": "row", "op": "min"}}
    return {
        "facet": field(f"{by}:N", **header),
        "spec": view(*layers, height=height, width=width),
        "columns": 2,
        "spacing": {"row": 28, "column": 36},
        "transform": [running((), row="row_number()"), *transform],
        **({"resolve": {"scale": dict.fromkeys(apart, "independent")}} if apart else {}),
    }


def calculated(**expressions: str) -> list[Spec]:
    """Return transforms that add columns, one after the other."""
    return [{"calculate": expression, "as": name} for name, expression in expressions.items()]


def grouped(by: Sequence[str], **figures: str) -> Spec:
    """Return a transform that adds figures of its group to each row: `most="max(value)"`."""
    return {"joinaggregate": _figures(figures), "groupby": [*by]}


def running(by: Sequence[str], options: Spec | None = None, **figures: str) -> Spec:
    """Return a transform that adds figures of the rows before each in its group: `place="row_number()"`."""
    return {"window": _figures(figures), **({"groupby": [*by]} if by else {}), **(options or {})}


def _figures(figures: Mapping[str, str]) -> list[Spec]:
    parts = ((name, *figure.rstrip(")").split("(")) for name, figure in figures.items())
    return [{"op": op, **({"field": column} if column else {}), "as": name} for name, op, column in parts]


def reference_line(**place: Spec) -> Spec:
    """Return a line of reference, drawn once however many rows there are."""
    return mark("rule", {"style": "reference"}, {"aggregate": [{"op": "count", "as": "rows"}]}, **place)


def accuracy_axis(column: str = "value", title: str = "accuracy", **scale: Any) -> Spec:  # Any: of a scale
    """Return an axis of shares, from nothing to all unless its scale has another span."""
    axis = {"format": PERCENT, "tickCount": 5}
    return field(f"{column}:Q", title=title, axis=axis, scale=scale or {"domain": [0, 1]})


def names(column: str = "model") -> Spec:
    """Return an axis of names, in the order of the rows."""
    return field(f"{column}:N", sort=None, title=None, axis={"grid": False, "minExtent": 40})


def heat_map(*transform: Spec, tips: list[Spec], room: Spec | None = None, **place: Spec) -> list[Spec]:
    """Return cells shaded by their `strength`, which hold their `text`; `room`: options of the latter."""
    shade = field("strength:Q", scale={"domain": [0, 1]}, legend=None)
    cell = {"cornerRadius": 2, "cursor": "pointer"}
    cells = mark("rect", cell, *transform, color=shade, tooltip=tips, **place)
    return [cells, *legible(*transform, text=field("text:N"), room=room or {}, **place)]


def legible(*transform: Spec, room: Spec, **encoding: Spec) -> list[Spec]:
    """Return the texts of cells, in a colour that can be read on their `strength`."""
    return [
        mark("text", {"style": style, **room}, *transform, {"filter": f"datum.strength {at}"}, **encoding)
        for style, at in (("weak", f"< {STRONG}"), ("strong", f">= {STRONG}"))
    ]


def tooltips(*columns: str) -> list[Spec]:
    """Return tooltips of a mark: each argument is `column`, `column|format` or `column|format|name`."""
    tips = []
    for definition in columns:
        column, form, name = (*definition.split("|"), "", "")[:3]
        plain = column.partition(":")[0]
        title = name or _TIPS.get(plain, plain.replace("_", " "))
        tips.append(field(column, title=title, **({"format": form} if form else {})))
    return tips


COLOUR: Final = field("colour:N", scale=None, legend=None)  # of the entrant
SERIES: Final = field("series:N", sort=None)
UNDERSCORED: Final = "replace(datum.label, regexp('_', 'g'), ' ')"  # labels without their underscores
