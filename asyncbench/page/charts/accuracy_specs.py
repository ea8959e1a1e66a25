"""The charts of accuracy as Vega-Lite specifications: rankings, curves over length, maps of tasks.

Each row brings the colour of its entrant, so that no chart has a legend, and a filter changes no colour.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import altair as alt

from asyncbench.analysis.cells import Metric
from asyncbench.page.charts.specs import (
    HEIGHT,
    PANEL_WIDTH,
    PERCENT,
    TITLE,
    WIDTH,
    Drawn,
    Options,
    accuracy_axis,
    chart,
    panels,
    reference_line,
    tooltips,
)
from asyncbench.page.charts.themes import STRONG

DOT_ROW: Final = 24  # pixels of height of a model's dot
HALF_ROW: Final = 19  # of one of a panel
CELL_ROW, CELL_WIDTH = 26, 40  # of a heatmap
MOST_INTERVALS: Final = 3  # models of a panel that have room for intervals
LABEL_GAP: Final = 13 / HEIGHT  # of the axis of accuracy: the height of a label
ROOM_FOR_NAME: Final = "child_width < 170 ? 110 : 190"  # pixels beside a panel
ROOM_AT_END: Final = "child_width < 240 ? 84 : 190"  # likewise, at the ends of lines
LEAST_WIDE: Final = 12  # pixels of a cell that has room for a figure, however small

_COLOUR: Final = alt.Color("colour:N", scale=None, legend=None)
_SHARE_TIPS: Final = ("value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,")


# ── rankings ─────────────────────────────────────────────────────────────────────────────────────


def _dots(_: Metric) -> Drawn:
    axis = alt.Axis(grid=False, minExtent=40)
    base = (
        chart()
        .transform_calculate(ranked="datum.place + '\u2002' + datum.model")
        .encode(y=alt.Y("ranked:N", sort=None, title=None, axis=axis))
    )
    span: Options = {"zero": False, "nice": True}

    def share(field: str) -> alt.X:
        ticks = alt.Axis(format=PERCENT, tickCount=5)
        return alt.X(f"{field}:Q", title="accuracy", axis=ticks, scale=alt.Scale(**span))

    odd = alt.condition("datum.place % 2", alt.value(0.45), alt.value(0))
    bands = base.mark_rect(style="stripe").encode(x=alt.value(0), x2=alt.value("width"), opacity=odd)
    intervals = base.mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round").encode(
        x=share("low"), x2="high:Q", color=_COLOUR
    )
    tips = tooltips("model:N", "place:Q||rank", *_SHARE_TIPS)
    dots = base.mark_point(filled=True, size=110, opacity=1, shape="circle", cursor="pointer").encode(
        x=share("value"), color=_COLOUR, tooltip=tips
    )
    figures = base.mark_text(align="left", dx=8).encode(
        x=alt.value("width"), text=alt.Text("value:Q", format=".1%")
    )
    return alt.layer(bands, intervals, dots, figures).properties(width=WIDTH, height=alt.Step(DOT_ROW))


def _pairs(_: Metric) -> Drawn:
    points = "datum.value ? format(100 * datum.value, '+.3~r') : '0'"
    title = "lead of the best model in accuracy, percentage points (same problems)"
    axis = alt.Axis(labelExpr=points, tickCount=5)
    x = alt.X("difference:Q", title=title, axis=axis, scale=alt.Scale(zero=True, nice=True))
    base = chart().encode(y=alt.Y("other:N", sort=None, title=None, axis=alt.Axis(grid=False, minExtent=40)))
    tips = tooltips(
        *("pair:N", "difference:Q|+.2%", "low:Q|+.2%", "high:Q|+.2%"), "p:Q|.2~g", "tied:N", "problems:Q|,"
    )
    zero = reference_line().encode(x=alt.datum(0))
    intervals = base.mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round").encode(
        x=alt.X("low:Q", title=title), x2="high:Q", color=_COLOUR
    )
    dots = base.mark_point(filled=True, size=110, opacity=1, shape="circle").encode(
        x=x, color=_COLOUR, tooltip=tips
    )
    text = "format(100 * datum.difference, '+.1f') + (datum.tied ? ' tied' : '')"
    figures = (
        base.transform_calculate(text=text)
        .mark_text(align="left", dx=8)
        .encode(x=alt.value("width"), text="text:N")
    )
    return alt.layer(zero, intervals, dots, figures).properties(width=WIDTH, height=alt.Step(DOT_ROW))


# ── accuracy over length ─────────────────────────────────────────────────────────────────────────


def _curves(_: Metric) -> Drawn:
    axis = alt.Axis(format=",~r", tickMinStep=1, tickCount=6, grid=False)
    scale = alt.Scale(zero=False, nice=False, padding=6)
    base = chart().encode(x=alt.X("length:Q", title="length", axis=axis, scale=scale))
    lines = base.transform_filter("datum.sort == 'line'")
    lit = lines.transform_filter("datum.lit")
    shade: Options = {"detail": "asked:N", "color": _COLOUR}
    faint = lines.transform_filter("!datum.lit").mark_line(
        style="faint", interpolate="monotone", strokeWidth=1
    )
    strong = lit.mark_line(strokeWidth=2, interpolate="monotone")
    half = reference_line().encode(y=alt.datum(0.5))
    layers = (
        half,
        faint.encode(y=accuracy_axis(), detail="asked:N"),
        strong.encode(y=accuracy_axis(), **shade),
        *_points(base),
        *_end_labels(lit),
    )
    small = panels(alt.layer(*layers).properties(width=PANEL_WIDTH, height=HEIGHT), columns=2, field="task")
    apart: Drawn = small.resolve_scale(x="independent")  # one task has 8 lengths, another 600
    return apart


def _points(base: alt.Chart) -> Iterator[alt.Chart]:
    """Yield what was counted, larger where it was more; with intervals where few lines are told apart."""
    points = base.transform_filter("datum.sort == 'point' && datum.lit").encode(color=_COLOUR)
    few = points.transform_joinaggregate(series="distinct(asked)", groupby=["task"]).transform_filter(
        f"datum.series <= {MOST_INTERVALS}"
    )
    yield few.mark_rule(strokeWidth=1, opacity=0.5).encode(y=accuracy_axis("low"), y2="high:Q")
    sizes = alt.Size("trials:Q", legend=None, scale=alt.Scale(type="sqrt", range=[14, 90]))
    tips = tooltips("model:N", "task:N", "length:Q|,.4~r", *_SHARE_TIPS)
    marks = points.mark_point(filled=True, opacity=0.85, shape="circle", cursor="pointer")
    yield marks.encode(y=accuracy_axis(), size=sizes, tooltip=tips)


def _end_labels(lit: alt.Chart) -> Iterator[alt.Chart]:
    """Yield the names of lines at their ends, and lines that lead to them, pushed apart.

    From the top down, none is closer than a gap to the one above it: the least, so far, of height plus gaps.
    Then from the bottom up, none is lower than the gaps below it.
    """
    order: list[alt.SortField | dict[str, str]] = [
        alt.SortField("value", order="descending"),
        alt.SortField("mean", order="descending"),
        alt.SortField("asked"),
    ]
    ends = (
        lit.transform_joinaggregate(last="max(length)", mean="mean(value)", groupby=["task", "asked"])
        .transform_filter("datum.length == datum.last")
        .transform_joinaggregate(ends="count()", groupby=["task"])
        .transform_window(sort=order, place="row_number()", groupby=["task"])
        .transform_calculate(pushed=f"datum.value + {LABEL_GAP} * datum.place")
        .transform_window(sort=order, frame=[None, 0], least="min(pushed)", groupby=["task"])
        .transform_calculate(
            placed=f"max(datum.least - {LABEL_GAP} * datum.place, {LABEL_GAP} * (datum.ends - datum.place))"
        )
    )
    beside: Options = {"color": _COLOUR, "y": accuracy_axis("placed")}
    leads = ends.mark_rule(strokeWidth=1, opacity=0.6, x2Offset=9).encode(
        **{**beside, "y": accuracy_axis("value")},
        y2="placed:Q",
        x2=alt.value("width"),
    )
    names = ends.mark_text(
        align="left",
        dx=12,
        fontSize=11,
        limit=alt.ExprRef(expr=ROOM_AT_END),
        cursor="pointer",
    )
    yield leads
    yield names.encode(x=alt.value("width"), text="model:N", **beside)


_SHAPES: Final = {
    "within": "circle",
    "between": "circle",
    "above": "triangle-right",
    "below": "triangle-left",
}


def _halves(_: Metric) -> Drawn:
    """Return the lengths at which half is right, with arrows where these lie beyond what was asked.

    In each panel the best stands first: its names are text of the drawing, as an axis would be of all panels.
    """
    title = "length up to which half of the answers are right"
    base = chart().encode(y=alt.Y("place:O", axis=None))

    def along(field: str) -> alt.X:
        axis = alt.Axis(format=",~r", tickMinStep=1, tickCount=6)
        return alt.X(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(zero=True, nice=False, padding=8))

    known = base.transform_filter("isValid(datum.at)").encode(color=_COLOUR)
    tips = tooltips("model:N", "task:N", "label:N||length at 50 %", "low:Q|.1f", "high:Q|.1f", "trials:Q|,")
    shapes = alt.Scale(domain=[*_SHAPES], range=[*_SHAPES.values()])
    marks = known.mark_point(filled=True, opacity=1, size=80, cursor="pointer").encode(
        x=along("at"), shape=alt.Shape("bound:N", scale=shapes, legend=None), tooltip=tips
    )
    names = base.mark_text(align="right", dx=-8, fontSize=12, limit=alt.ExprRef(expr=ROOM_FOR_NAME))
    layers = (
        known.mark_rule(strokeWidth=2, opacity=0.45).encode(x=along("start"), x2="end:Q"),
        marks,
        names.encode(x=alt.value(0), text="model:N"),
        base.mark_text(align="left", dx=8).encode(x=alt.value("width"), text="label:N"),
    )
    drawn = alt.layer(*layers).properties(width=PANEL_WIDTH, height=alt.Step(HALF_ROW))
    small = (
        panels(drawn, columns=2, field="task")
        .transform_window(place="row_number()", groupby=["task"])
        .transform_calculate(
            start="isValid(datum.low) ? datum.low : datum.shortest",
            end="isValid(datum.high) ? datum.high : datum.longest",
        )
    )
    apart: Drawn = small.resolve_scale(x="independent")
    return apart


# ── maps of tasks ────────────────────────────────────────────────────────────────────────────────

# Shares → how strong the colour of a cell is: half of it is kept for what is above 80 %.
_KNOTS: Final = ((0, 0), (0.5, 0.25), (0.8, 0.5), (0.9, 0.64), (0.95, 0.76), (0.99, 0.88), (1, 1))


def _strength(metric: Metric) -> str:
    if not metric.share:
        return "datum.value / max(datum.most, 1e-12)"
    steps = pairwise(_KNOTS)
    return " + ".join(
        f"{high - low:.2f} * clamp((datum.value - {start}) / {end - start:.2f}, 0, 1)"
        for (start, low), (end, high) in steps
    )


def _map(metric: Metric, *, x: alt.X, across: str, tips: list[alt.Tooltip]) -> Drawn:
    """Return a heatmap of tasks whose cells hold their figure, where there is room for it."""
    form = (
        "datum.value == 1 ? '100' : datum.value >= 0.995 ? '>99' : format(100 * datum.value, '.0f')"
        if metric.share
        else "format(datum.value, '.2~s')"
    )
    base = (
        chart()
        .transform_joinaggregate(mean="mean(value)", groupby=["model"])
        .transform_joinaggregate(most="max(value)", columns=f"distinct({across})", groupby=[])
        .transform_filter("isValid(datum.value)")
        .transform_calculate(strength=_strength(metric), text=form)
        .encode(x=x, y=alt.Y("task:N", sort=None, title=None, axis=alt.Axis(grid=False, minExtent=30)))
    )
    scale = alt.Scale(domain=[0, 1])
    cells = base.mark_rect(cornerRadius=2, cursor="pointer").encode(
        color=alt.Color("strength:Q", scale=scale, legend=None), tooltip=tips
    )
    room: Options = {}
    if across == "length":
        room["opacity"] = alt.ExprRef(expr=f"child_width < {LEAST_WIDE} * datum.columns ? 0 : 1")
        room["fontSize"] = alt.ExprRef(expr="min(11, child_width / datum.columns / 2)")
    weak = base.transform_filter(f"datum.strength < {STRONG}").mark_text(style="weak", **room)
    strong = base.transform_filter(f"datum.strength >= {STRONG}").mark_text(style="strong", **room)
    texts = alt.Text("text:N")
    return alt.layer(cells, weak.encode(text=texts), strong.encode(text=texts))


def _task_map(metric: Metric) -> Drawn:
    axis = alt.Axis(orient="top", labelAngle=-50, labelAlign="left", labelLimit=150, grid=False)
    best_first = alt.EncodingSortField(field="mean", op="max", order="descending")
    x = alt.X("model:N", sort=best_first, title=None, axis=axis)
    tips = tooltips("model:N", "task:N", f"value:Q|{metric.format}|{TITLE}", "trials:Q|,")
    drawn: Drawn = _map(metric, x=x, across="model", tips=tips).properties(
        width=alt.Step(CELL_WIDTH), height=alt.Step(CELL_ROW)
    )
    return drawn


def _length_map(metric: Metric) -> Drawn:
    axis = alt.Axis(labelAngle=0, labelOverlap=True, grid=False)
    x = alt.X("length:O", title="length", axis=axis)
    tips = tooltips("model:N", "task:N", "from:Q", "to:Q", "value:Q|.1%|accuracy", "trials:Q|,")
    layers = _map(metric, x=x, across="length", tips=tips)
    return panels(layers.properties(width=PANEL_WIDTH, height=alt.Step(CELL_ROW)), columns=2, field="model")


ACCURACY_CHARTS: Final[Mapping[str, Callable[[Metric], Any]]] = {  # Any: a chart of altair
    "dots": _dots,
    "pairs": _pairs,
    "curves": _curves,
    "halves": _halves,
    "task_map": _task_map,
    "length_map": _length_map,
}
