"""Accuracy against cost and reasoning tokens: rows of both charts, spending, names that have room, specs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from asyncbench.page.charts.naming import FAR, HAS_NAME, LEADER, NAMED, Offset, name_offsets
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

_SCALES: Final[Mapping[str, Callable[[float], float]]] = {"log": log, "sqrt": sqrt}
Cells = Sequence[Sums]  # with the places of their entrant and kind
KindsByEntrant = Mapping[int, set[int]]  # places of kinds by the place of who was asked them


def frontier_cost(cells: Cells, roster: Asked) -> list[Row]:
    """Return accuracy against USD per 1,000 trials, of the entrants whose cost is known.

    All are compared over the kinds of questions that all of them were asked; without any there are no rows.
    Who was asked less than half of what others were asked is left out, where that leaves most.
    `frontier_note` says both.
    """
    rows = _frontier(cells, "cost")
    return _with_names([{**row, "cost": row["x"], "x": row["x"] or None} for row in rows], roster, "log")


def frontier_reasoning(cells: Cells, roster: Asked) -> list[Row]:
    """Return accuracy against mean reasoning tokens a trial, of the entrants that tell them; likewise.

    None where nobody reasoned.
    """
    rows = _frontier(cells, "reasoning_tokens")
    return _with_names(rows, roster, "sqrt") if any(row["x"] for row in rows) else []


def _with_names(rows: Sequence[Row], roster: Asked, scale: str) -> list[Row]:
    names = [roster.entrants[row["asked"]].short for row in rows]
    offsets = {column: _offsets(rows, names, scale, width) for column, width in WIDTHS.items()}
    return [
        {**row, **{column: by_row[n] for column, by_row in offsets.items()}} for n, row in enumerate(rows)
    ]


def frontier_note(cells: Cells, roster: Asked, against: str) -> str | None:
    """Return over what the entrants of a frontier are compared; None: over all that any was asked.

    Args:
        cells, roster: as for the frontier.
        against: its metric, `cost` or `reasoning_tokens`.
    """
    every = _kinds_of_known(cells, against)
    placed = _with_enough(every)
    common, kinds = _asked_of_all(placed), set[int]().union(*every.values())
    if not common:
        return UNLIKE if placed else None
    left_out = [roster.entrants[place].short for place in every if place not in placed]
    if len(common) == len(kinds) and not left_out:
        return None
    return _compared(roster, common, kinds) + _without(left_out)


def _compared(roster: Asked, common: Collection[int], kinds: Collection[int]) -> str:
    if len(common) == len(kinds):
        return f"On all {len(kinds):,} kinds of questions"
    suites = ", ".join(sorted({roster.kinds[kind].suite for kind in common}))
    called = sorted(roster.kinds[kind].called for kind in common)
    few = f": {', '.join(called)}" if len(called) <= MOST_KINDS else ""
    return f"On the {len(common):,} of {len(kinds):,} kinds of questions that all were asked ({suites}{few})"


def _without(left_out: Sequence[str]) -> str:
    if not left_out:
        return ""
    more = f" and {len(left_out) - MOST_LEFT_OUT:,} more" if len(left_out) > MOST_LEFT_OUT else ""
    return f"; without {', '.join(left_out[:MOST_LEFT_OUT])}{more}, asked less than half of them"


def _frontier(cells: Cells, against: str) -> list[Row]:
    placed = _with_enough(_kinds_of_known(cells, against))
    common = _asked_of_all(placed)
    compared = (cell for cell in cells if cell["asked"] in placed and cell["kind"] in common)
    rows: list[Row] = [
        {"asked": place, "x": x, **{name: getattr(seen, name) for name in ("value", "low", "high", "trials")}}
        for (place,), sums in sorted(summed(compared, ("asked",)).items(), key=itemgetter(0))
        if (x := METRICS[against].of(sums).value) is not None
        for seen in (METRICS["accuracy"].of(sums),)
    ]
    ahead = undominated([(row["x"], row["value"]) for row in rows])
    return [{**row, "front": front} for row, front in zip(rows, ahead, strict=True)]


def _kinds_of_known(cells: Cells, against: str) -> KindsByEntrant:
    """Return the kinds of those that have a place on a frontier: they replied, at a known price."""
    kinds = defaultdict[int, set[int]](set)
    for cell in cells:
        kinds[cell["asked"]].add(cell["kind"])
    return {
        place: kinds[place]
        for (place,), sums in sorted(summed(cells, ("asked",)).items(), key=itemgetter(0))
        if sums["trials"] > sums["failed"] and METRICS[against].of(sums).value is not None
    }


def _with_enough(kinds: KindsByEntrant) -> KindsByEntrant:
    """Return the kinds of those that were asked half of all or more, where most were."""
    every = set[int]().union(*kinds.values())
    kept = {place: own for place, own in kinds.items() if 2 * len(own) >= len(every)}
    return kept if 2 * len(kept) > len(kinds) else kinds


def _asked_of_all(kinds: KindsByEntrant) -> set[int]:
    return set.intersection(*kinds.values()) if kinds else set()


# ── spending ─────────────────────────────────────────────────────────────────────────────────────

_SPENT: Final = (
    *("calls", "unknown", "cost_usd", "input_tokens", "cached_input_tokens", "output_tokens"),
    *("reasoning_tokens", "trials", "correct", "per_1000", "per_correct", "cached_share"),
)


def spent_rows(spent: Iterable[Mapping[str, Any]], roster: Asked) -> list[Row]:
    """Return what was spent on each entrant, as planned."""
    places = roster.entrant_places
    rows = [
        {"asked": places[who], **{name: row[name] for name in _SPENT}}
        for row in spent
        if (who := (row["run"], row["model"], row["condition"])) in places
    ]
    return sorted(rows, key=lambda row: row["asked"])


# ── names beside points ──────────────────────────────────────────────────────────────────────────


def _offsets(rows: Sequence[Row], names: Sequence[str], scale: str, width: float) -> list[Offset | None]:
    """Return where names stand: first of whom nobody beats, who all have one, then of the most accurate."""
    order = sorted(range(len(rows)), key=lambda n: (not rows[n]["front"], -rows[n]["value"], n))
    ahead = {n for n, row in enumerate(rows) if row["front"]}
    return name_offsets(_spots(rows, scale, width), names, order, always=ahead, width=width, height=HEIGHT)


def _spots(rows: Sequence[Row], scale: str, width: float) -> list[tuple[float, float]]:
    """Return where the points are, in pixels from the left and from the top."""
    along = [None if row["x"] is None else _SCALES[scale](row["x"]) for row in rows]
    known = [at for at in along if at is not None]
    least, most = min(known, default=0.0) if scale == "log" else 0.0, max(known, default=0.0)
    low, high = (
        min((row["low"] for row in rows), default=0.0),
        max((row["high"] for row in rows), default=1.0),
    )
    padding, start = PADDING[scale], FREE_ROOM if len(known) < len(rows) else 0.0
    room = width - start - 2 * padding

    def across(at: float | None) -> float:
        if at is None:
            return FREE_AT
        return start + padding + room * ((at - least) / (most - least) if most > least else 0.5)

    return [
        (
            across(at),
            MARGIN + (HEIGHT - 2 * MARGIN) * ((high - row["value"]) / (high - low) if high > low else 0.5),
        )
        for at, row in zip(along, rows, strict=True)
    ]


# ── charts ────────────────────────────────────────────────────────────────────────────────────

_NAMES_AT: Final = {
    "name_at": "an end of its name, and the pixels to it, right and down; unknown: it has no room",
    "name_at_narrow": "the same in a narrow drawing",
}
_OFFSET: Final = calculated(offset=f"width < {NARROW} ? datum.name_at_narrow : datum.name_at")
_SPAN: Final[Spec] = {"zero": False, "nice": False, "padding": MARGIN}
_PRICED: Final[Spec] = {"filter": "isValid(datum.x)"}
_FREE: Final[Spec] = {"filter": "!isValid(datum.x)"}


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
    return view(joined, *(_nothing() if free else ()), *named, height=HEIGHT)


def _nothing() -> list[Spec]:
    """Return a piece of an axis for what costs nothing, with its tick."""
    once = (_FREE, {"aggregate": [{"op": "count", "as": "rows"}]}, {"filter": "datum.rows"})
    foot, ends = {"value": "height"}, {"x": {"value": 0.0}, "x2": {"value": 2 * FREE_AT}}
    tick = {"style": "tick", "dy": 13, "fontSize": 12}
    return [
        mark("rule", {"style": "plain"}, *once, y=foot, **ends),
        mark("text", tick, *once, x={"value": FREE_AT}, y=foot, text={"value": "$0"}),
    ]


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
