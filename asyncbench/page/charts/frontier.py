"""Accuracy against cost and reasoning tokens: rows of both charts, spending, names that have room, specs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log, sqrt
from operator import itemgetter
from typing import Any, Final

from asyncbench.analysis.cells import METRICS, Sums, summed
from asyncbench.analysis.entrants import Asked
from asyncbench.page.charts.chart import (
    COLOUR,
    SHARE,
    SHARE_TIPS,
    WHO,
    Chart,
    Row,
    Spec,
    accuracy_axis,
    calculated,
    field,
    mark,
    tooltips,
    view,
)
from asyncbench.page.charts.naming import (
    FAR,
    HAS_NAME,
    LEADER,
    NAMED,
    labels_beside,
    name_offsets,
    with_key,
)
from asyncbench.stats.paired import undominated

UNLIKE: Final = "No kind of question was asked of all models, so they are not compared"
MOST_KINDS: Final = 3  # that a note names
MOST_LEFT_OUT: Final = 4  # models that a note names
FREE_ROOM: Final = 56.0  # pixels left of a scale of logs, for what costs nothing
FREE_AT: Final = 16.0  # of these

# pixels of the drawing for which names are placed: a page or two columns of a paper, a phone or one column
WIDTHS: Final = {"name_at": 620.0, "name_at_narrow": 300.0}
NARROW: Final = 480.0  # pixels: a narrower drawing names as the narrower of these does
HEIGHT: Final = 340.0
PADDING: Final = {"log": 60.0, "sqrt": 0.0}  # at both ends of the axis below, by its scale
MARGIN: Final = 14.0  # above and below

SCALES: Final = {"frontier_cost": "log", "frontier_reasoning": "sqrt"}  # of the axis below
_SCALES: Final[Mapping[str, Callable[[float], float]]] = {"log": log, "sqrt": sqrt}
Cells = Sequence[Sums]  # with the places of their entrant and kind
KindsByEntrant = Mapping[int, set[int]]  # places of kinds by the place of who was asked them


def frontier_cost(cells: Cells, roster: Asked) -> list[Row]:
    """Return accuracy against USD per 1,000 trials, of the entrants whose cost is known.

    All are compared over the kinds of questions that all of them were asked; without any there are no rows.
    An entrant that was asked less than half of those kinds is left out, where most entrants remain.
    `frontier_note` says both.
    """
    rows = [{**row, "cost": row["x"], "x": row["x"] or None} for row in _frontier(cells, "cost")]
    return _place_names(rows, roster, SCALES["frontier_cost"])


def frontier_reasoning(cells: Cells, roster: Asked) -> list[Row]:
    """Return accuracy against mean reasoning tokens a trial, of the entrants that report them.

    Entrants are compared as in `frontier_cost`. There are no rows where nobody reasoned.
    """
    rows = _frontier(cells, "reasoning_tokens")
    return _place_names(rows, roster, SCALES["frontier_reasoning"]) if any(row["x"] for row in rows) else []


def _place_names(rows: Sequence[Row], roster: Asked, scale: str) -> list[Row]:
    """Return rows with the place of each name, at each width of a drawing.

    First come the names of those whom nobody beats, who all have one, then those of the most accurate.
    """
    names = [roster.entrants[row["asked"]].short for row in rows]
    order = sorted(range(len(rows)), key=lambda n: (not rows[n]["front"], -rows[n]["value"], n))
    ahead = {n for n, row in enumerate(rows) if row["front"]}
    offsets = {
        column: name_offsets(
            _spots(rows, scale, width), names, order, always=ahead, width=width, height=HEIGHT
        )
        for column, width in WIDTHS.items()
    }
    return [
        {**row, **{column: by_row[n] for column, by_row in offsets.items()}} for n, row in enumerate(rows)
    ]


def label_points(
    rows: Sequence[Mapping[str, Any]],  # Any: of the chart
    chart: str,
    width: float,
) -> list[Row]:
    """Return rows of a printed frontier, whose `model` is a name or a number, with the lines of its key.

    Args:
        rows: of a picture, with names and colours.
        chart: `frontier_cost` or `frontier_reasoning`.
        width: pixels between the axes.
    """
    order = sorted(range(len(rows)), key=lambda n: (not rows[n]["front"], -rows[n]["value"], n))
    names = [str(row["model"]) for row in rows]
    spots = _spots(rows, SCALES[chart], width)
    labels = labels_beside(spots, names, order, width=width, height=HEIGHT)
    labelled = [
        {**row, "text": label, "name": row["model"], "model": label, **dict.fromkeys(WIDTHS, offset)}
        for row, (label, offset) in zip(rows, labels, strict=True)
    ]
    return with_key(labelled, width=width, height=HEIGHT)


def frontier_note(cells: Cells, roster: Asked, against: str) -> str | None:
    """Return the kinds of questions that entrants of a frontier are compared on, or None for all.

    Args:
        cells, roster: as for the frontier.
        against: its metric, `cost` or `reasoning_tokens`.
    """
    measured = _kinds_of_measured(cells, against)
    compared, common = _comparable(measured)
    kinds = set[int]().union(*measured.values())
    if not common:
        return UNLIKE if compared else None
    left_out = [roster.entrants[entrant].short for entrant in measured if entrant not in compared]
    if len(common) == len(kinds) and not left_out:
        return None

    note = f"On all {len(kinds):,} kinds of questions"
    if len(common) < len(kinds):
        suites = ", ".join(sorted({roster.kinds[kind].suite for kind in common}))
        called = sorted(roster.kinds[kind].called for kind in common)
        names = f": {', '.join(called)}" if len(called) <= MOST_KINDS else ""
        shares = f"On the {len(common):,} of {len(kinds):,} kinds of questions"
        note = f"{shares} that all were asked ({suites}{names})"
    if left_out:
        more = f" and {len(left_out) - MOST_LEFT_OUT:,} more" if len(left_out) > MOST_LEFT_OUT else ""
        note += f"; without {', '.join(left_out[:MOST_LEFT_OUT])}{more}, asked less than half of them"
    return note


def _frontier(cells: Cells, against: str) -> list[Row]:
    entrants, common = _comparable(_kinds_of_measured(cells, against))
    compared = (cell for cell in cells if cell["asked"] in entrants and cell["kind"] in common)
    rows = list[Row]()
    for (entrant,), sums in sorted(summed(compared, ("asked",)).items(), key=itemgetter(0)):
        if (x := METRICS[against].measure(sums).value) is not None:
            accuracy = METRICS["accuracy"].measure(sums)
            shares = {name: getattr(accuracy, name) for name in ("value", "low", "high", "trials")}
            rows.append({"asked": entrant, "x": x, **shares})
    ahead = undominated([(row["x"], row["value"]) for row in rows])
    return [{**row, "front": front} for row, front in zip(rows, ahead, strict=True)]


def _kinds_of_measured(cells: Cells, against: str) -> KindsByEntrant:
    """Return the kinds of questions of the entrants that replied and whose metric is known."""
    kinds = defaultdict[int, set[int]](set)
    for cell in cells:
        kinds[cell["asked"]].add(cell["kind"])
    return {
        entrant: kinds[entrant]
        for (entrant,), sums in sorted(summed(cells, ("asked",)).items(), key=itemgetter(0))
        if sums["trials"] > sums["failed"] and METRICS[against].measure(sums).value is not None
    }


def _comparable(kinds: KindsByEntrant) -> tuple[KindsByEntrant, set[int]]:
    """Return the entrants to compare, with their kinds, and the kinds that all of these were asked.

    Those who were asked less than half of all kinds are left out, as long as most entrants remain.
    """
    every = set[int]().union(*kinds.values())
    widely_asked = {
        entrant: entrant_kinds
        for entrant, entrant_kinds in kinds.items()
        if 2 * len(entrant_kinds) >= len(every)
    }
    compared = widely_asked if 2 * len(widely_asked) > len(kinds) else kinds
    return compared, set.intersection(*compared.values()) if compared else set()


# ── spending ─────────────────────────────────────────────────────────────────────────────────────

_SPENT: Final = (
    *("calls", "unknown", "cost_usd", "input_tokens", "cached_input_tokens", "output_tokens"),
    *("reasoning_tokens", "trials", "correct", "per_1000", "per_correct", "cached_share"),
)


def spent_rows(spent: Iterable[Mapping[str, Any]], roster: Asked) -> list[Row]:
    """Return the spending on each entrant, in the order of the plan."""
    places = roster.entrant_places
    rows = [
        {"asked": places[who], **{name: row[name] for name in _SPENT}}
        for row in spent
        if (who := (row["run"], row["model"], row["condition"])) in places
    ]
    return sorted(rows, key=lambda row: row["asked"])


# ── names beside points ──────────────────────────────────────────────────────────────────────────


def _spots(rows: Sequence[Mapping[str, Any]], scale: str, width: float) -> list[tuple[float, float]]:
    """Return where the points are, in pixels from the left and from the top."""
    scaled = [None if row["x"] is None else _SCALES[scale](row["x"]) for row in rows]
    priced = [x for x in scaled if x is not None]
    first, last = min(priced, default=0.0) if scale == "log" else 0.0, max(priced, default=0.0)
    low, high = (
        min((row["low"] for row in rows), default=0.0),
        max((row["high"] for row in rows), default=1.0),
    )
    padding, start = PADDING[scale], FREE_ROOM if len(priced) < len(rows) else 0.0
    room = width - start - 2 * padding
    spots = list[tuple[float, float]]()
    for x, row in zip(scaled, rows, strict=True):
        across = FREE_AT
        if x is not None:
            across = start + padding + room * ((x - first) / (last - first) if last > first else 0.5)
        down = (high - row["value"]) / (high - low) if high > low else 0.5
        spots.append((across, MARGIN + (HEIGHT - 2 * MARGIN) * down))
    return spots


# ── charts ────────────────────────────────────────────────────────────────────────────────────

_NAMES_AT: Final = {
    "name_at": "an end of its name, and the pixels to it, right and down; unknown: it has no room",
    "name_at_narrow": "the same in a narrow drawing",
}
_OFFSET: Final = calculated(offset=f"width < {NARROW} ? datum.name_at_narrow : datum.name_at")
_SPAN: Final[Spec] = {"zero": False, "nice": False, "padding": MARGIN}
_PRICED: Final[Spec] = {"filter": "isValid(datum.x)"}
_FREE: Final[Spec] = {"filter": "!isValid(datum.x)"}

# A piece of an axis for what costs nothing, with its tick; drawn once however many rows there are.
_ANY_FREE: Final[Sequence[Spec]] = (
    _FREE,
    {"aggregate": [{"op": "count", "as": "rows"}]},
    {"filter": "datum.rows"},
)
_FREE_AXIS: Final = (
    mark(
        "rule",
        {"style": "plain"},
        *_ANY_FREE,
        y={"value": "height"},
        x={"value": 0.0},
        x2={"value": 2 * FREE_AT},
    ),
    mark(
        "text",
        {"style": "tick", "dy": 13, "fontSize": 12},
        *_ANY_FREE,
        x={"value": FREE_AT},
        y={"value": "height"},
        text={"value": "$0"},
    ),
)


def _points(x: Spec, tips: Sequence[str], *transform: Spec) -> list[Spec]:
    """Return points with their intervals, and those that have room for it with their names.

    Each name twice: first a border in the colour of the ground, so that no interval runs through it.
    """
    y = accuracy_axis(**_SPAN)
    size = {"condition": {"test": "datum.front", "value": 95}, "value": 55}
    point = {"filled": True, "opacity": 1, "cursor": "pointer"}
    interval = {"y": accuracy_axis("low", **_SPAN), "y2": field("high"), "color": COLOUR}
    across = {"x2": field("x") if "field" in x else x, "y2": field("value")}
    text = {"x": x, "y": y, "text": field("model:N")}
    return [
        mark("rule", {"opacity": 0.45}, *transform, x=x, **interval),
        mark("rule", {"opacity": 0.45, **LEADER}, *transform, FAR, x=x, y=y, color=COLOUR, **across),
        mark("point", point, *transform, x=x, y=y, color=COLOUR, tooltip=tooltips(*tips), size=size),
        mark("text", {**NAMED, "style": "halo"}, *transform, HAS_NAME, **text),
        mark("text", NAMED, *transform, HAS_NAME, **text, color=COLOUR),
    ]


def _frontier_spec(x: Spec, *tips: str, free: bool = False) -> Spec:
    """Return points against `x`; `free`: those that have none stand left of it, on a mark of their own."""
    line = {"style": "reference", "interpolate": "step-after"}
    front = ({"filter": "datum.front"}, _PRICED)
    places = [_points(x, tips, *_OFFSET, _PRICED)]
    if free:
        places.append(_points({"value": FREE_AT}, tips, *_OFFSET, _FREE))
    named = (layer for layers in zip(*places, strict=True) for layer in layers)  # all lines, then all names
    joined = mark("line", line, *front, x=x, y=accuracy_axis(**_SPAN))
    return view(joined, *(_FREE_AXIS if free else ()), *named, height=HEIGHT)


_START: Final = {"expr": f"indexof(pluck(data('rows'), 'cost'), 0) < 0 ? 0 : {FREE_ROOM}"}
_FRONTIER_COST: Final = _frontier_spec(
    field(
        "x:Q",
        title="cost per 1,000 trials, USD (log scale)",
        axis={"format": "$,~g", "tickCount": 6, "grid": False},
        scale={"type": "log", "nice": False, "padding": PADDING["log"], "range": [_START, {"expr": "width"}]},
    ),
    *("model:N", "cost:Q|$,.4~g|cost per 1,000 trials", *SHARE_TIPS),
    free=True,
)
_FRONTIER_REASONING: Final = _frontier_spec(
    field(
        "x:Q",
        title="reasoning tokens per trial (square-root scale)",
        axis={"format": ",~r", "tickCount": 6, "grid": False},
        scale={"type": "sqrt", "zero": True},
    ),
    *("model:N", "x:Q|,.0f|reasoning tokens per trial", *SHARE_TIPS),
)


FRONTIER_CHARTS: Final[Mapping[str, Chart]] = {
    "frontier_cost": Chart(
        title="Accuracy against cost",
        purpose="What accuracy costs on the same kinds of questions, if not on the same problems. The line "
        "joins the models that no other model beats at their price; what is free stands left of it.",
        nothing="Your selection has no known price. Set `price` in the sweep, or select other models.",
        columns={
            **WHO,
            "x": "USD per 1,000 trials; unknown: it is free, and stands left of the axis",
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
}
