"""The charts of outcomes, errors and costs."""

from collections.abc import Mapping
from itertools import product
from typing import Final

from asyncbench.page.charts.chart import (
    COLOUR,
    HIGH,
    KIND,
    LOW,
    PANEL_WIDTH,
    PERCENT,
    QUARTERS,
    ROW,
    SHARE,
    SHARE_TIPS,
    UNDERSCORED,
    WHO,
    Chart,
    Spec,
    accuracy_axis,
    calculated,
    field,
    grouped,
    heat_map,
    mark,
    names,
    panels,
    tooltips,
    view,
)
from asyncbench.page.charts.errors import MOST_PLACES
from asyncbench.page.charts.frontier import ASIDE, BELOW, HEIGHT, MARGIN, NARROW, PADDING
from asyncbench.page.charts.themes import OUTCOME_COLOURS

# ── frontiers ────────────────────────────────────────────────────────────────────────────────────

_NAMES_AT: Final = {
    "name_at": "side of the point that has room for its name, right or left; empty: neither",
    "name_at_narrow": "the same in a narrow drawing",
}
_SIDE: Final = calculated(side=f"width < {NARROW} ? datum.name_at_narrow : datum.name_at")
_FRONT: Final = {"filter": "datum.front"}
_SPAN: Final[Spec] = {"zero": False, "nice": False, "padding": MARGIN}
_SIDES: Final[Mapping[str, Spec]] = {
    "right": {"align": "left", "dx": ASIDE, "dy": BELOW},
    "left": {"align": "right", "dx": -ASIDE, "dy": -BELOW},
}


def _frontier(x: Spec, *tips: str) -> Spec:
    """Return points that have room for it with their names, on the side that `name_at` tells.

    Each name twice: first a border in the colour of the ground, so that no interval runs through it.
    """
    y = accuracy_axis(**_SPAN)
    size = {"condition": {"test": "datum.front", "value": 95}, "value": 55}
    point = {"filled": True, "opacity": 1, "cursor": "pointer"}
    return view(
        mark("line", {"style": "reference", "interpolate": "step-after"}, *_SIDE, _FRONT, x=x, y=y),
        mark(
            "rule",
            {"opacity": 0.45},
            *_SIDE,
            x=x,
            y=accuracy_axis("low", **_SPAN),
            y2=field("high"),
            color=COLOUR,
        ),
        mark("point", point, *_SIDE, x=x, y=y, color=COLOUR, tooltip=tooltips(*tips), size=size),
        *(
            mark(
                "text",
                {**_SIDES[side], **style},
                *_SIDE,
                {"filter": f"datum.side == '{side}'"},
                x=x,
                y=y,
                text=field("model:N"),
                **colour,
            )
            for (style, colour), side in product((({"style": "halo"}, {}), ({}, {"color": COLOUR})), _SIDES)
        ),
        height=HEIGHT,
    )


_FRONTIER_COST: Final = _frontier(
    field(
        "x:Q",
        title="cost per 1,000 trials, USD (log scale)",
        axis={"format": "$,~g", "tickCount": 6, "grid": False},
        scale={"type": "log", "nice": False, "padding": PADDING["log"]},
    ),
    *("model:N", "cost:Q|$,.4~g|cost per 1,000 trials", *SHARE_TIPS),
)
_FRONTIER_REASONING: Final = _frontier(
    field(
        "x:Q",
        title="reasoning tokens per trial (square-root scale)",
        axis={"format": ",~r", "tickCount": 6, "grid": False},
        scale={"type": "sqrt", "zero": True},
    ),
    *("model:N", "x:Q|,.0f|reasoning tokens per trial", *SHARE_TIPS),
)


# ── outcomes, kinds of errors, and wrong digits ──────────────────────────────────────────────────

CELL: Final = {"step": 22}  # pixels of a row of a heatmap
CELL_WIDTH: Final = {"step": 34}

_OUTCOMES: Final = view(
    mark(
        "bar",
        {"height": {"band": 0.78}},
        x=field(
            "share:Q",
            stack="zero",
            title="share of trials",
            axis={"format": PERCENT, "values": QUARTERS},
            scale={"domain": [0, 1]},
        ),
        y=names(),
        order=field("place:Q"),
        color=field(
            "outcome:N",
            scale={"domain": [*OUTCOME_COLOURS], "range": [*OUTCOME_COLOURS.values()]},
            legend={"columns": 3, "labelExpr": UNDERSCORED, "symbolType": "square"},
        ),
        tooltip=tooltips("model:N", "outcome:N", "share:Q|.2%", "trials:Q|,"),
    ),
    height={"step": ROW},
)


def _shares(x: Spec, y: Spec, *tips: str) -> list[Spec]:
    """Return the cells of a map of models, which hold their percentage."""
    text = "datum.value > 0 && datum.value < 0.005 ? '<1' : format(100 * datum.value, '.0f')"
    shade = calculated(strength="pow(datum.value, 0.7)", text=text)
    return heat_map(*shade, x=x, y=y, tips=tooltips(*tips))


_TURNED: Final = {
    "orient": "top",
    "labelAngle": -50,
    "labelAlign": "left",
    "labelLimit": 150,
    "grid": False,
    "labelExpr": UNDERSCORED,
}
_KINDS: Final = {
    **view(
        *_shares(
            field("error:N", sort={"field": "nth", "op": "min"}, title=None, axis=_TURNED),
            names("counted"),
            *("model:N", "error:N", "value:Q|.1%|share of its errors", "wrong:Q|,|wrong answers"),
        ),
        width=CELL_WIDTH,
        height=CELL,
    ),
    "transform": [
        grouped(("model",), all="sum(wrong)"),
        *calculated(counted="datum.model + ' (' + format(datum.all, ',') + ')'"),
    ],
}

_MINUS: Final = "replace(datum.label, '-', '−')"

# For each kind of question the first digits, then those from the last, below zero.
_DIGIT_ERRORS: Final = panels(
    *_shares(
        field(
            "digit:O",
            sort=[*range(1, MOST_PLACES + 1), *range(-MOST_PLACES, 0)],
            title="digit: 1 is the first, −1 the last",
            axis={"labelAngle": 0, "labelOverlap": False, "grid": False, "labelExpr": _MINUS},
        ),
        names(),
        *("model:N", "task:N", "end:N||digits from the", "position:Q", "value:Q|.1%|share wrong here"),
        *("low:Q|.1%", "high:Q|.1%", "errors:Q|,", "answers:Q|,"),
    ),
    height=CELL,
    width=PANEL_WIDTH,
    by="task",
    transform=calculated(digit="datum.end == 'last' ? -datum.position : datum.position"),
    apart=("y",),
)


ERROR_CHARTS: Final[Mapping[str, Chart]] = {
    "frontier_cost": Chart(
        title="Accuracy against cost",
        purpose="What accuracy costs on the same kinds of questions, if not on the same problems. The line "
        "joins the models that no other model beats at their price.",
        nothing="Your selection has no known price. Set `price` in the sweep, or select other models.",
        columns={
            **WHO,
            "x": "USD per 1,000 trials; what is free stands at a third of the least",
            "cost": "USD per 1,000 trials",
            **SHARE,
            "front": "whether nobody is as good for less, or better for as little",
            **_NAMES_AT,
        },
        spec=_FRONTIER_COST,
    ),
    "frontier_reasoning": Chart(
        title="Accuracy against reasoning",
        purpose="Accuracy by reasoning tokens on the same kinds of questions, if not on the same problems. "
        "The line joins the models that no other model beats.",
        nothing="No model of your selection reported reasoning tokens.",
        columns={
            **WHO,
            "x": "mean reasoning tokens a trial",
            **SHARE,
            "front": "whether nobody is as good with less, or better with as little",
            **_NAMES_AT,
        },
        spec=_FRONTIER_REASONING,
    ),
    "outcomes": Chart(
        title="Outcomes of the trials",
        purpose="How many trials are right, how many are wrong, and how many were lost.",
        columns={
            **WHO,
            "outcome": "correct, wrong, no_answer, truncated, refused or failed",
            "place": "its place in the stack, from 0",
            "trials": "count",
            "share": "of the model's trials, [0, 1]",
        },
        spec=_OUTCOMES,
    ),
    "digit_errors": Chart(
        title="Errors by digit position",
        purpose="Of the wrong answers, how many percent have a wrong digit at each place, from either end.",
        nothing="Your selection has too few wrong answers that can be compared digit by digit.",
        columns={
            **WHO,
            **KIND,
            "end": "first or last",
            "position": "place of the digit, 1 is the outermost",
            "errors": "wrong answers whose digit here is wrong",
            "answers": "wrong answers that have a digit here",
            "value": "errors over answers, [0, 1]",
            "low": LOW,
            "high": HIGH,
        },
        spec=_DIGIT_ERRORS,
        room=620,
    ),
    "kinds": Chart(
        title="Kinds of errors",
        purpose="What goes wrong, in percent of each model's wrong answers. Their number stands in brackets.",
        nothing="Your selection has no wrong answer that was examined.",
        columns={
            **WHO,
            "error": "kind of error; of many the rarer ones together, as others",
            "nth": "place of the kind of error, the commonest first",
            "wrong": "examined wrong answers of this kind",
            "value": "share of the model's examined wrong answers, [0, 1]",
        },
        spec=_KINDS,
        on_page=False,
    ),
}
