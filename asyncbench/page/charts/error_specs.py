"""The charts of outcomes, errors and costs as Vega-Lite specifications."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Final

import altair as alt

from asyncbench.page.charts.errors import MOST_PLACES
from asyncbench.page.charts.frontier import ASIDE, BELOW, HEIGHT as HIGH, MARGIN, NARROW, PADDING
from asyncbench.page.charts.specs import (
    PANEL_WIDTH,
    PERCENT,
    QUARTERS,
    ROW,
    SHARE_TIPS,
    WIDTH,
    Drawn,
    Options,
    accuracy_axis,
    chart,
    panels,
    tooltips,
)
from asyncbench.page.charts.themes import OUTCOME_COLOURS, STRONG

# ── outcomes ─────────────────────────────────────────────────────────────────────


CELL: Final = 22  # pixels of a row of a heatmap
CELL_WIDTH: Final = 34


_COLOUR: Final = alt.Color("colour:N", scale=None, legend=None)
_WORDS: Final = "replace(datum.label, regexp('_', 'g'), ' ')"


def _models(field: str = "model") -> alt.Y:
    return alt.Y(f"{field}:N", sort=None, title=None, axis=alt.Axis(grid=False, minExtent=40))


def _outcomes() -> Drawn:
    colours = alt.Scale(domain=list(OUTCOME_COLOURS), range=list(OUTCOME_COLOURS.values()))
    legend = alt.Legend(columns=3, labelExpr=_WORDS, symbolType="square")
    share = alt.X(
        "share:Q",
        stack="zero",
        title="share of trials",
        axis=alt.Axis(format=PERCENT, values=QUARTERS),
        scale={"domain": [0, 1]},
    )
    bars = (
        chart()
        .mark_bar(height={"band": 0.78})
        .encode(
            x=share,
            y=_models(),
            order=alt.Order("place:Q"),
            color=alt.Color("outcome:N", scale=colours, legend=legend),
            tooltip=tooltips("model:N", "outcome:N", "share:Q|.2%", "trials:Q|,"),
        )
    )
    return alt.layer(bars).properties(width=WIDTH, height=alt.Step(ROW))


# ── specifications: kinds of errors, and wrong digits ────────────────────────────────────────────


def _shares(x: alt.X, tips: list[alt.Tooltip], y: alt.Y) -> Drawn:
    """Return a heatmap of models whose cells hold their percentage."""
    text = "datum.value > 0 && datum.value < 0.005 ? '<1' : format(100 * datum.value, '.0f')"
    base = chart().transform_calculate(strength="pow(datum.value, 0.7)", text=text).encode(x=x, y=y)
    scale = alt.Scale(domain=[0, 1])
    cells = base.mark_rect(cornerRadius=2, cursor="pointer").encode(
        color=alt.Color("strength:Q", scale=scale, legend=None), tooltip=tips
    )
    weak = base.transform_filter(f"datum.strength < {STRONG}").mark_text(style="weak")
    strong = base.transform_filter(f"datum.strength >= {STRONG}").mark_text(style="strong")
    texts = alt.Text("text:N")
    return alt.layer(cells, weak.encode(text=texts), strong.encode(text=texts))


def _kinds() -> Drawn:
    axis = alt.Axis(
        orient="top", labelAngle=-50, labelAlign="left", labelLimit=150, grid=False, labelExpr=_WORDS
    )
    by_count = alt.EncodingSortField(field="nth", op="min")
    x = alt.X("error:N", sort=by_count, title=None, axis=axis)
    tips = tooltips("model:N", "error:N", "value:Q|.1%|share of its errors", "wrong:Q|,|wrong answers")
    drawn = _shares(x, tips, _models("counted")).transform_joinaggregate(all="sum(wrong)", groupby=["model"])
    drawn = drawn.transform_calculate(counted="datum.model + ' (' + format(datum.all, ',') + ')'")
    return drawn.properties(width=alt.Step(CELL_WIDTH), height=alt.Step(CELL))


def _digit_errors() -> Drawn:
    """Return a map for each kind of question: the first digits, then those from the last, below zero."""
    ends = [*range(1, MOST_PLACES + 1), *range(-MOST_PLACES, 0)]
    axis = alt.Axis(labelAngle=0, labelOverlap=False, grid=False, labelExpr=_MINUS)
    x = alt.X("digit:O", sort=ends, title="digit: 1 is the first, −1 the last", axis=axis)
    tips = tooltips(
        *("model:N", "task:N", "end:N||digits from the", "position:Q", "value:Q|.1%|share wrong here"),
        *("low:Q|.1%", "high:Q|.1%", "errors:Q|,", "answers:Q|,"),
    )
    layers = _shares(x, tips, _models()).properties(width=PANEL_WIDTH, height=alt.Step(CELL))
    small = panels(layers, columns=2, field="task").transform_calculate(
        digit="datum.end == 'last' ? -datum.position : datum.position"
    )
    apart: Drawn = small.resolve_scale(y="independent")
    return apart


_MINUS: Final = "replace(datum.label, '-', '−')"


# ── specifications: frontiers ────────────────────────────────────────────────────────────────────


def _frontier(x: alt.X, tips: list[alt.Tooltip]) -> Drawn:
    base = (
        chart()
        .transform_calculate(side=f"width < {NARROW} ? datum.name_at_narrow : datum.name_at")
        .encode(x=x)
    )
    span: Options = {"zero": False, "nice": False, "padding": MARGIN}
    y = accuracy_axis(**span)
    front = base.transform_filter("datum.front")
    line = front.mark_line(style="reference", interpolate="step-after").encode(y=y)
    intervals = base.mark_rule(opacity=0.45).encode(
        y=accuracy_axis("low", **span), y2="high:Q", color=_COLOUR
    )
    points = base.mark_point(filled=True, opacity=1, cursor="pointer").encode(
        y=y, color=_COLOUR, tooltip=tips, size=alt.condition("datum.front", alt.value(95), alt.value(55))
    )
    return alt.layer(line, intervals, points, *_names(base, y)).properties(width=WIDTH, height=HIGH)


def _names(base: alt.Chart, y: alt.Y) -> Iterator[alt.Chart]:
    """Yield the names of the points that have room for it, on its side: `named_at`.

    Each twice: first a border in the colour of the ground, so that intervals of others do not run through it.
    """
    sides: Mapping[str, Options] = {
        "right": {"align": "left", "dx": ASIDE, "dy": BELOW},
        "left": {"align": "right", "dx": -ASIDE, "dy": -BELOW},
    }
    for halo, (side, place) in product((True, False), sides.items()):
        halo_style: Options = {"style": "halo"} if halo else {}
        text = alt.MarkDef(type="text", **place, **halo_style)
        coloured: Options = {} if halo else {"color": _COLOUR}
        there = base.transform_filter(f"datum.side == '{side}'").properties(mark=text)
        yield there.encode(y=y, text="model:N", **coloured)


def _frontier_cost() -> Drawn:
    axis = alt.Axis(format="$,~g", tickCount=6, grid=False)
    scale = alt.Scale(type="log", nice=False, padding=PADDING["log"])
    x = alt.X("x:Q", title="cost per 1,000 trials, USD (log scale)", axis=axis, scale=scale)
    return _frontier(x, tooltips("model:N", "cost:Q|$,.4~g|cost per 1,000 trials", *SHARE_TIPS))


def _frontier_reasoning() -> Drawn:
    axis = alt.Axis(format=",~r", tickCount=6, grid=False)
    scale = alt.Scale(type="sqrt", zero=True)
    x = alt.X("x:Q", title="reasoning tokens per trial (square-root scale)", axis=axis, scale=scale)
    return _frontier(x, tooltips("model:N", "x:Q|,.0f|reasoning tokens per trial", *SHARE_TIPS))


ERROR_CHARTS: Final[Mapping[str, Callable[[], Drawn]]] = {
    "outcomes": _outcomes,
    "kinds": _kinds,
    "digit_errors": _digit_errors,
    "frontier_cost": _frontier_cost,
    "frontier_reasoning": _frontier_reasoning,
}
