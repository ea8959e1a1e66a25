"""The charts of accuracy: rankings, curves over length, maps of tasks.

Each is a specification of Vega-Lite. A name after `datum.` is a column of its rows, which `ACCURACY_CHARTS`
explains at the end of this module, or was calculated by a transform.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from asyncbench.analysis.cells import METRICS, Metric
from asyncbench.page.charts.chart import (
    COLOUR,
    HEIGHT,
    HIGH,
    IN_CELL,
    KIND,
    LOW,
    SHARE_TIPS,
    WHO,
    Chart,
    Spec,
    accuracy_axis,
    calculated,
    field,
    grouped,
    heat_map,
    mark,
    model_name,
    names,
    panels,
    reference_line,
    running,
    tooltips,
    view,
)

DOT_ROW: Final = {"step": 24}  # pixels of height for each model in a ranking
HALF_ROW: Final = {"step": 19}  # the same in a panel of a task
CELL_ROW, CELL_WIDTH = {"step": 26}, {"step": 40}  # pixels of a heatmap's cell
MOST_INTERVALS: Final = 3  # intervals are drawn in panels with at most so many models
LABEL_GAP: Final = 13 / HEIGHT  # the height of a label as a share of the axis of accuracy

_MAP: Final = {"value": "the metric, its unit", "trials": "what it was divided by: trials, answers or digits"}
_NO_LENGTH: Final = "Your selection has too few problems with a known length."

# ── rankings ─────────────────────────────────────────────────────────────────────────────────────

_INTERVAL: Final = {"strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"}
_DOT: Final = {"filled": True, "size": 110, "opacity": 1, "shape": "circle"}
_FIGURE: Final = {"align": "left", "dx": 8}  # text at the right end of a row
_RANKED: Final = calculated(ranked="datum.place + '\u2002' + datum.model")
_RANK: Final = names("ranked")
_ZOOMED: Final[Spec] = {"zero": False, "nice": True}  # a scale that need not begin at 0
_LEAD: Final = "lead of the best model in accuracy, percentage points (same problems)"
_POINTS: Final = "datum.value ? format(100 * datum.value, '+.3~r') : '0'"

_DOTS: Final = view(
    mark(
        "rect",
        {"style": "stripe"},
        *_RANKED,
        y=_RANK,
        x={"value": 0},
        x2={"value": "width"},
        opacity={"condition": {"test": "datum.place % 2", "value": 0.45}, "value": 0},
    ),
    mark(
        "rule",
        _INTERVAL,
        *_RANKED,
        y=_RANK,
        x=accuracy_axis("low", **_ZOOMED),
        x2=field("high"),
        color=COLOUR,
    ),
    mark(
        "point",
        {**_DOT, "cursor": "pointer"},
        *_RANKED,
        y=_RANK,
        x=accuracy_axis(**_ZOOMED),
        color=COLOUR,
        tooltip=tooltips("model:N", "place:Q||rank", *SHARE_TIPS),
    ),
    mark("text", _FIGURE, *_RANKED, y=_RANK, x={"value": "width"}, text=field("value:Q", format=".1%")),
    height=DOT_ROW,
)

_PAIRS: Final = view(
    reference_line(x={"datum": 0}),
    mark("rule", _INTERVAL, y=names("other"), x=field("low:Q", title=_LEAD), x2=field("high"), color=COLOUR),
    mark(
        "point",
        _DOT,
        y=names("other"),
        x=field(
            "difference:Q",
            title=_LEAD,
            axis={"labelExpr": _POINTS, "tickCount": 5},
            scale={"zero": True, "nice": True},
        ),
        color=COLOUR,
        tooltip=tooltips(
            *("pair:N", "difference:Q|+.2%", "low:Q|+.2%", "high:Q|+.2%"),
            *("p:Q|.2~g", "tied:N", "problems:Q|,"),
        ),
    ),
    mark(
        "text",
        _FIGURE,
        *calculated(text="format(100 * datum.difference, '+.1f') + (datum.tied ? ' tied' : '')"),
        y=names("other"),
        x={"value": "width"},
        text=field("text:N"),
    ),
    height=DOT_ROW,
)


# ── accuracy over length ─────────────────────────────────────────────────────────────────────────

_LENGTH_TICKS: Final = {"format": ",~r", "tickMinStep": 1, "tickCount": 6}
_LENGTH: Final = field(
    "length:Q",
    title="length",
    axis={**_LENGTH_TICKS, "grid": False},
    scale={"zero": False, "nice": False, "padding": 6},
)
_ENTRANT: Final = field("asked:N")
_IS_LINE: Final = {"filter": "datum.sort == 'line'"}
_IS_LIT: Final = {"filter": "datum.lit"}
_IS_POINT: Final = {"filter": "datum.sort == 'point' && datum.lit"}

# Names of models stand at the right ends of their lines, pushed apart so that none covers another. `place`
# counts a panel's names from the top, `ends` is their number, and heights are shares of the axis.
# Each name is at least a gap below the one above it. So its height is the lowest of: the end of its own line,
# and the end of each line above, less a gap for each name from there down. `pushed` adds a gap for each name
# from the top, so that a running minimum, `least`, finds the lowest. `placed` takes these gaps off again, and
# leaves room for the names below.
_TOP_DOWN: Final = {
    "sort": [*({"field": column, "order": "descending"} for column in ("value", "mean")), {"field": "asked"}]
}
_LABELS: Final = (
    _IS_LINE,
    _IS_LIT,
    grouped(("task", "asked"), last="max(length)", mean="mean(value)"),
    {"filter": "datum.length == datum.last"},
    grouped(("task",), ends="count()"),
    running(("task",), _TOP_DOWN, place="row_number()"),
    *calculated(pushed=f"datum.value + {LABEL_GAP} * datum.place"),
    running(("task",), {**_TOP_DOWN, "frame": [None, 0]}, least="min(pushed)"),
    *calculated(
        placed=f"max(datum.least - {LABEL_GAP} * datum.place, {LABEL_GAP} * (datum.ends - datum.place))"
    ),
)

# Lines on each other are drawn in the order `over`: the first solid, each other one with wider gaps.
_DASHES: Final = "datum.over > 1 ? [5, 5 * (datum.over - 1)] : [1, 0]"

_CURVES: Final = panels(
    reference_line(y={"datum": 0.5}),
    mark(
        "line",
        {"style": "faint", "interpolate": "monotone", "strokeWidth": 1},
        _IS_LINE,
        {"filter": "!datum.lit"},
        x=_LENGTH,
        y=accuracy_axis(),
        detail=_ENTRANT,
    ),
    mark(
        "line",
        {"strokeWidth": 2, "interpolate": "monotone", "strokeDash": {"expr": _DASHES}},
        _IS_LINE,
        _IS_LIT,
        running(("path",), {"sort": [{"field": "asked"}]}, over="dense_rank()"),
        x=_LENGTH,
        y=accuracy_axis(),
        detail=_ENTRANT,
        color=COLOUR,
    ),
    mark(
        "rule",
        {"strokeWidth": 1, "opacity": 0.5},
        _IS_POINT,
        grouped(("task",), series="distinct(asked)"),
        {"filter": f"datum.series <= {MOST_INTERVALS}"},
        x=_LENGTH,
        y=accuracy_axis("low"),
        y2=field("high"),
        color=COLOUR,
    ),
    mark(
        "point",
        {"filled": True, "opacity": 0.85, "shape": "circle", "cursor": "pointer"},
        _IS_POINT,
        x=_LENGTH,
        y=accuracy_axis(),
        color=COLOUR,
        size=field("trials:Q", legend=None, scale={"type": "sqrt", "range": [14, 90]}),
        tooltip=tooltips("model:N", "task:N", "length:Q|,.4~r", *SHARE_TIPS),
    ),
    mark(  # from the end of a line to its name
        "rule",
        {"strokeWidth": 1, "opacity": 0.6, "x2Offset": 9},
        *_LABELS,
        x=_LENGTH,
        x2={"value": "width"},
        y=accuracy_axis(),
        y2=field("placed"),
        color=COLOUR,
    ),
    mark(
        "text",
        {"align": "left", "dx": 12, "fontSize": 11, "cursor": "pointer", **model_name("child_width < 240")},
        *_LABELS,
        x={"value": "width"},
        y=accuracy_axis("placed"),
        color=COLOUR,
    ),
    height=HEIGHT,
    by="task",
    apart=("x",),  # one task has 8 lengths, another 600
)

_SHAPES: Final = {
    "within": "circle",
    "between": "circle",
    "above": "triangle-right",
    "below": "triangle-left",
}
_ROW: Final = field("place:O", axis=None)
_HAS_LENGTH: Final = {"filter": "isValid(datum.at)"}


def _length_axis(column: str) -> Spec:
    """Return the axis of lengths at which half of the answers are right."""
    title = "length up to which half of the answers are right"
    return field(
        f"{column}:Q", title=title, axis=_LENGTH_TICKS, scale={"zero": True, "nice": False, "padding": 8}
    )


# Each panel has its own order, the best model first. Names are texts, as panels would share an axis of them.
_HALVES: Final = panels(
    mark(
        "rule",
        {"strokeWidth": 2, "opacity": 0.45},
        _HAS_LENGTH,
        y=_ROW,
        x=_length_axis("start"),
        x2=field("end"),
        color=COLOUR,
    ),
    mark(
        "point",
        {"filled": True, "opacity": 1, "size": 80, "cursor": "pointer"},
        _HAS_LENGTH,
        y=_ROW,
        x=_length_axis("at"),
        color=COLOUR,
        shape=field("bound:N", scale={"domain": [*_SHAPES], "range": [*_SHAPES.values()]}, legend=None),
        tooltip=tooltips(
            *("model:N", "task:N", "label:N||length at 50 %", "low:Q|.1f", "high:Q|.1f", "trials:Q|,")
        ),
    ),
    mark(
        "text",
        {"align": "right", "dx": -8, "fontSize": 12, **model_name("child_width < 170")},
        y=_ROW,
        x={"value": 0},
    ),
    mark("text", _FIGURE, y=_ROW, x={"value": "width"}, text=field("label:N")),
    height=HALF_ROW,
    by="task",
    transform=[
        running(("task",), place="row_number()"),
        *calculated(
            start="isValid(datum.low) ? datum.low : datum.shortest",
            end="isValid(datum.high) ? datum.high : datum.longest",
        ),
    ],
    apart=("x",),
)


# ── maps of tasks ────────────────────────────────────────────────────────────────────────────────

# Share → strength of a cell's colour, linear between these. Half of the strength is for shares above 80 %.
_STRENGTHS: Final = ((0, 0), (0.5, 0.25), (0.8, 0.5), (0.9, 0.64), (0.95, 0.76), (0.99, 0.88), (1, 1))
_SHARE_TEXT: Final = (
    "datum.value == 1 ? '100' : datum.value >= 0.995 ? '>99' : format(100 * datum.value, '.0f')"
)
_NUMBER_TEXT: Final = (
    "format(datum.value, datum.value >= 1000 ? '.2~s' : datum.value && datum.value < 0.001 ? '.1~e' : '.2~r')"
)


def _strength(metric: Metric) -> str:
    """Return the expression for the strength of a cell's colour, from 0 to 1."""
    if metric.log:
        return "log(datum.value + 1) / max(log(datum.most + 1), 1e-12)"
    if not metric.share:
        return "datum.value / max(datum.most, 1e-12)"
    return " + ".join(
        f"{high - low:.2f} * clamp((datum.value - {start}) / {end - start:.2f}, 0, 1)"
        for (start, low), (end, high) in pairwise(_STRENGTHS)
    )


def _cells(metric: Metric, x: Spec, *tips: str) -> list[Spec]:
    """Return the cells of a map of tasks, with their figures; a dash stands where there is none."""
    y = field("task:N", sort=None, title=None, axis={"grid": False, "minExtent": 30})
    across = {"impute": "value", "key": x["field"], "groupby": ["task"], "value": None}
    unknown = {"filter": "!isValid(datum.value)"}
    dashes = mark("text", {"style": "note"}, across, unknown, x=x, y=y, text={"value": "–"})
    cells = heat_map(
        grouped(("model",), mean="mean(value)"),
        grouped((), most="max(value)"),
        {"filter": "isValid(datum.value)"},
        *calculated(strength=_strength(metric), text=_SHARE_TEXT if metric.share else _NUMBER_TEXT),
        x=x,
        y=y,
        tips=tooltips("model:N", "task:N", *tips, "trials:Q|,"),
        room=IN_CELL,
    )
    return [*cells, dashes]


def _task_map(metric: Metric) -> Spec:
    axis = {"orient": "top", "labelAngle": -50, "labelAlign": "left", "labelLimit": 150, "grid": False}
    best_first = {"field": "mean", "op": "max", "order": "descending"}
    x = field("model:N", sort=best_first, title=None, axis=axis)
    title = f"{metric.title}, {metric.unit}" if metric.unit == "seconds" else metric.title
    cells = _cells(metric, x, f"value:Q|{metric.format}|{title}")
    return view(*cells, width=CELL_WIDTH, height=CELL_ROW)


_LENGTH_MAP: Final = panels(
    *_cells(
        METRICS["accuracy"],
        field("length:O", title="length", axis={"labelAngle": 0, "labelOverlap": True, "grid": False}),
        *("from:Q", "to:Q", "value:Q|.1%|accuracy"),
    ),
    height=CELL_ROW,
    by="model",
)


ACCURACY_CHARTS: Final[Mapping[str, Chart]] = {
    "dots": Chart(
        title="How the models compare",
        purpose="Which model is better on the problems that all were asked, and how certain that is. Models "
        "with the same rank are statistically tied with its best.",
        nothing="No models of your selection were ranked together.",
        columns={
            **WHO,
            "place": "rank; shared by models that are tied with its best",
            "value": "accuracy on the problems of the ranking, [0, 1]",
            "low": LOW,
            "high": HIGH,
            "trials": "on these problems",
        },
        spec=_DOTS,
    ),
    "pairs": Chart(
        title="Lead of the best model",
        purpose="Whether the best model is really better, on the problems that both models were asked.",
        nothing="No two models of your selection were ranked on the same problems.",
        columns={
            **WHO,
            "pair": "first − second",
            "model": "the first: the best",
            "other": "the second, whose place and colour these are",
            "difference": "accuracy of the first less that of the second, [-1, 1]",
            "low": LOW,
            "high": HIGH,
            "p": "of the paired test, adjusted for all pairs",
            "tied": "whether it leaves open which is better",
            "problems": "that both were asked",
        },
        spec=_PAIRS,
        on_page=False,
    ),
    "curves": Chart(
        title="Where each model breaks",
        purpose="Accuracy against length, of the trials with a reply. The grey dashes are at 50 %. A dashed "
        "curve lies on another.",
        nothing=_NO_LENGTH,
        columns={
            **WHO,
            **KIND,
            "lit": "whether it has its colour; else its line is grey and has no name",
            "sort": "point (counted), line (fitted) or half (where the line crosses 50 %)",
            "length": "digits, depth or characters; of a point the mean",
            "value": "accuracy, [0, 1]",
            "low": LOW,
            "high": HIGH,
            "trials": "of a point, 8 or more; else 0",
            "label": "of a half: its length as text",
            "from": "of a point: its shortest length",
            "to": "of a point: its longest length",
            "path": "a number that curves share which lie on each other",
        },
        spec=_CURVES,
        room=500,
    ),
    "halves": Chart(
        title="How far each model gets",
        purpose="The length up to which half of the answers are right, with 95 % CI. A triangle points "
        "beyond the lengths that were asked.",
        nothing=_NO_LENGTH,
        columns={
            **WHO,
            **KIND,
            "at": "the length; a bound at the end of what was asked, a step in its middle",
            "low": "lower end of its 95 % interval; unknown: below what was asked",
            "high": "upper end; unknown: beyond what was asked",
            "bound": "within, between two lengths, above or below all that were asked; unknown: see label",
            "shortest": "length that was asked",
            "longest": "length that was asked",
            "label": "the length as text",
            "trials": "with a reply",
        },
        spec=_HALVES,
    ),
    "task_map": Chart(
        title="Task by model",
        purpose="What each model can do. Colours differ most above 80 %.",
        columns={**WHO, **KIND, **_MAP},
        spec=_task_map,
        on_page=False,
    ),
    "length_map": Chart(
        title="Task by length",
        purpose="Accuracy of each task by length, in percent.",
        nothing=_NO_LENGTH,
        columns={
            **WHO,
            **KIND,
            "length": "digits, depth or characters: the longest of its bin",
            "from": "the shortest of its bin",
            "to": "the longest of its bin",
            **_MAP,
        },
        spec=_LENGTH_MAP,
        on_page=False,
    ),
}
