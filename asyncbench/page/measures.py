"""The blocks `time`, `cost` and `errors`: what was measured beside accuracy."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.anatomy.kinds import KINDS
from asyncbench.analysis.asked import Asked, asked_in
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import OTHER_LATENCY, batch_notes, batch_uses
from asyncbench.page.charts.error_rows import error_kind_rows, examined_note, outcome_rows, place_rows
from asyncbench.page.charts.frontier import (
    UNLIKE,
    frontier_cost,
    frontier_note,
    frontier_reasoning,
    spent_rows,
)
from asyncbench.page.charts.heat import placed_cells
from asyncbench.page.charts.styling import columnar
from asyncbench.page.charts.time_rows import failure_rows, limit_rows, minute_rows, times_rows
from asyncbench.reports.cost.spent import EntrantSpending, spending_by_entrant
from asyncbench.tables.screen import safe

Values = dict[str, Any]  # Any: whatever JSON can hold
Rows = Sequence[Values]

LEFT_OUT: Final = "Throughput and the use of limits leave batches out, too."
NO_KIND: Final = "none of these"


def time_block(views: FolderViews) -> Values:
    """Return how fast calls were answered, in all and over time; lists without enough points are empty."""
    asked = asked_in(views)
    times, minutes = times_rows(views, asked), minute_rows(views, asked)
    return {
        "times": times,
        "minutes": columnar(minutes),
        "failures": columnar(failure_rows(views, asked)),
        "quota": columnar(limit_rows(views, asked)),
        "notes": [safe(note, most=len(note)) for note in _notes_on_times(times, minutes, asked, views)],
    }


def _notes_on_times(times: Rows, minutes: Rows, asked: Asked, views: FolderViews) -> Iterator[str]:
    if not times:
        yield "No times of calls are known. Runs record them; imported files do not."
    elif not minutes:
        yield "The calls were made in too short a time for a chart."
    yield from _not_streamed(times, asked)
    yield from batch_notes(batch_uses(views), f"{OTHER_LATENCY} {LEFT_OUT}")


def _not_streamed(times: Rows, asked: Asked) -> Iterator[str]:
    """Yield of how many calls no first token is known."""
    streamed = {row["asked"]: row["calls"] for row in times if row["quantity"] == "TTFT"}
    answered = {row["asked"]: row["answered"] for row in times}
    lacking = {place: calls - streamed.get(place, 0) for place, calls in answered.items()}
    calls, whole = sum(lacking.values()), sum(answered.values())
    if calls == whole and calls:
        yield "No reply was streamed, so TTFT is unknown."
    elif calls:
        models = sum(1 for of_it in lacking.values() if of_it)
        yield (
            f"TTFT is of streamed replies: {calls:,} of {whole:,} answered calls were not streamed "
            f"({models:,} of {len(asked.entrants):,} models)."
        )


def cost_block(views: FolderViews) -> Values:
    """Return what was spent, and who is as good for less."""
    spent, cells, asked = spending_by_entrant(views), placed_cells(views), asked_in(views)
    rows = {"cost": frontier_cost(cells, asked), "reasoning_tokens": frontier_reasoning(cells, asked)}
    noted = {name: frontier_note(cells, asked, name) for name in rows}
    return {
        "frontier_cost": rows["cost"],
        "frontier_reasoning": rows["reasoning_tokens"],
        "compared": {
            name: safe(note, most=len(note)) if note and (rows[name] or note == UNLIKE) else None
            for name, note in noted.items()
        },
        "spent": spent_rows(spent, asked),
        "notes": list(_notes_on_costs(spent)),
    }


def _notes_on_costs(spent: Iterable[EntrantSpending]) -> Iterator[str]:
    """Yield how many costs are unknown, and why."""
    found = list(spent)
    calls, unknown, failed, untold = (
        sum(getattr(of_it, name) for of_it in found)
        for name in ("calls", "unknown", "unknown_failed", "unknown_tokens")
    )
    if not unknown:
        return
    why = {
        "no price is known": unknown - failed - untold,
        "the provider told no tokens": untold,
        "the call failed and may have been billed": failed,
    }
    said = "; ".join(f"{count:,}: {cause}" for cause, count in why.items() if count)
    yield f"The cost of {unknown:,} of {calls:,} calls is unknown, and no sum includes it ({said})."


def errors_block(views: FolderViews) -> Values:
    """Return outcomes, kinds of errors and places of wrong digits."""
    asked, found = asked_in(views), [*examined_in(views).values()]
    by_entrant, by_kind = error_kind_rows(found, asked)
    return {
        "examined": examined_note(found),
        "kind_words": {**KINDS, "unclassified": NO_KIND, "others": "the rarer kinds together"},
        "kinds": by_entrant,
        "kinds_by_kind": columnar(by_kind),
        "places": columnar(place_rows(found, asked)),
        "outcomes": outcome_rows(views),
    }
