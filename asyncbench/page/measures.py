"""The blocks `time`, `cost`, `errors` and `loads`: measures beside accuracy."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.anatomy.error import KINDS
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import Asked, asked_in
from asyncbench.analysis.notes import (
    OTHER_LATENCY,
    NothingToShowError,
    batch_notes,
    batch_uses,
    note_of_simulated,
)
from asyncbench.page.charts.breaks import placed_cells
from asyncbench.page.charts.errors import error_kind_rows, examined_note, outcome_rows, place_rows
from asyncbench.page.charts.frontier import (
    UNLIKE,
    frontier_cost,
    frontier_note,
    frontier_reasoning,
    spent_rows,
)
from asyncbench.page.charts.loads import rows_of_loads, uncounted_note
from asyncbench.page.charts.styling import columnar
from asyncbench.page.charts.times import failure_rows, limit_rows, minute_rows, times_rows
from asyncbench.reports.cost.counts import EntrantSpending, spending_by_entrant
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.load.accuracy import answers_by_step
from asyncbench.reports.load.report import load_report_of
from asyncbench.reports.load.steps import steps_in
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe, safe_note

# ── loads and providers ──────────────────────────────────────────────────────────────────────────


Values = dict[str, Any]  # Any: whatever JSON can hold

_LOADED: Final = "SELECT 1 FROM attempts WHERE load IS NOT NULL LIMIT 1"


def loads_block(views: FolderViews) -> Values:
    """Return the tables of providers and the charts of loads; each empty where there is nothing to show.

    Answers to a load, which other blocks leave out, are in views of their own, of the same moment.
    """
    if views.chosen.loaded or not views.rows(_LOADED):
        return _loads(views)
    with open_views(replace(views.chosen, loaded=True), *views.snapshots) as loaded:
        return _loads(loaded)


def _loads(views: FolderViews) -> Values:
    charts = _charts(views)
    tables = [] if views.chosen.partly else list(_tables(views, shown_note=charts["simulated_load"]))
    return charts | {"load_tables": tables}


def _charts(views: FolderViews) -> Values:
    steps = () if views.chosen.partly else steps_in(views)  # of some calls alone no rate is known
    rows = rows_of_loads(steps, answers_by_step(views)) if steps else {}
    simulated = note_of_simulated(views)
    notes = [note for note in (simulated, uncounted_note(steps)) if note]
    return {
        "load_rows": {name: those for name, those in rows.items() if those},
        "load_notes": list(map(safe_note, notes)),
        "simulated_load": simulated,
        "load_calls": sum(step.offered for step in steps),
    }


def _tables(views: FolderViews, *, shown_note: str) -> Iterator[Values]:
    for title, report_of in (("Models as providers", providers_of), ("Rates", load_report_of)):
        with suppress(NothingToShowError):
            yield {"title": title, **_as_values(report_of(views), shown_note)}


def _as_values(report: Report, shown_note: str) -> Values:
    """Return a report as notes and tables, without the note that the page shows already.

    `notes` are those above the first table, `below` all others.
    """
    parts = [part for part in report._parts() if isinstance(part, Sheet) or part != shown_note]
    sheets = [part for part in parts if isinstance(part, Sheet)]
    first = parts.index(sheets[0]) if sheets else len(parts)
    above, below = (
        [safe_note(part) for part in some if isinstance(part, str)] for some in (parts[:first], parts[first:])
    )
    return {"notes": above, "sheets": list(map(_sheet, sheets)), "below": below}


def _sheet(sheet: Sheet) -> Values:
    rows = [[safe(str(cell)) for cell in row] for row in sheet.rows]
    return {
        "title": safe(sheet.title),
        "head": list(map(safe, sheet.head)),
        "labels": sheet.labels,
        "rows": rows,
    }


# ── times, costs and errors ──────────────────────────────────────────────────────────────────────


Rows = Sequence[Values]

LEFT_OUT: Final = "Throughput and the use of limits leave batches out, too."
NO_KIND: Final = "none of these"


def time_block(views: FolderViews) -> Values:
    """Return how fast calls were answered, in all and over time; lists without enough points are empty."""
    roster = asked_in(views)
    times, minutes = times_rows(views, roster), minute_rows(views, roster)
    return {
        "times": times,
        "minutes": columnar(minutes),
        "failures": columnar(failure_rows(views, roster)),
        "quota": columnar(limit_rows(views, roster)),
        "notes": [safe(note, most=len(note)) for note in _notes_on_times(times, minutes, roster, views)],
    }


def _notes_on_times(times: Rows, minutes: Rows, roster: Asked, views: FolderViews) -> Iterator[str]:
    if not times:
        yield "No times of calls are known. Runs record them; imported files do not."
    elif not minutes:
        yield "The calls were made in too short a time for a chart."
    yield from _not_streamed(times, roster)
    yield from batch_notes(batch_uses(views), f"{OTHER_LATENCY} {LEFT_OUT}")


def _not_streamed(times: Rows, roster: Asked) -> Iterator[str]:
    """Yield how many calls have no known first token."""
    streamed = {row["asked"]: row["calls"] for row in times if row["quantity"] == "TTFT"}
    answered = {row["asked"]: row["answered"] for row in times}
    lacking = {place: calls - streamed.get(place, 0) for place, calls in answered.items()}
    calls, whole = sum(lacking.values()), sum(answered.values())
    if calls == whole and calls:
        yield "No reply was streamed, so TTFT is unknown."
    elif calls:
        models = sum(1 for missing in lacking.values() if missing)
        yield (
            f"TTFT is of streamed replies: {calls:,} of {whole:,} answered calls were not streamed "
            f"({models:,} of {len(roster.entrants):,} models)."
        )


def cost_block(views: FolderViews) -> Values:
    """Return what each entrant cost, and accuracy against cost and against reasoning tokens."""
    spent, cells, roster = spending_by_entrant(views), placed_cells(views), asked_in(views)
    rows = {"cost": frontier_cost(cells, roster), "reasoning_tokens": frontier_reasoning(cells, roster)}
    noted = {name: frontier_note(cells, roster, name) for name in rows}
    return {
        "frontier_cost": rows["cost"],
        "frontier_reasoning": rows["reasoning_tokens"],
        "compared": {
            name: safe(note, most=len(note)) if note and (rows[name] or note == UNLIKE) else None
            for name, note in noted.items()
        },
        "spent": spent_rows(spent, roster),
        "notes": list(_notes_on_costs(spent)),
    }


def _notes_on_costs(spent: Iterable[EntrantSpending]) -> Iterator[str]:
    """Yield how many costs are unknown, and why."""
    spending = list(spent)
    calls, unknown, failed, untold = (
        sum(getattr(each, name) for each in spending)
        for name in ("calls", "unknown", "unknown_failed", "unknown_tokens")
    )
    if not unknown:
        return
    why = {
        "no price is known": unknown - failed - untold,
        "the provider told no tokens": untold,
        "the call failed and may have been billed": failed,
    }
    causes = "; ".join(f"{count:,}: {cause}" for cause, count in why.items() if count)
    yield f"The cost of {unknown:,} of {calls:,} calls is unknown, and no sum includes it ({causes})."


def errors_block(views: FolderViews) -> Values:
    """Return outcomes, kinds of errors and places of wrong digits."""
    roster, groups = asked_in(views), [*examined_in(views).values()]
    by_entrant, by_kind = error_kind_rows(groups, roster)
    return {
        "examined": examined_note(groups),
        "kind_words": {**KINDS, "unclassified": NO_KIND, "others": "the rarer kinds together"},
        "kinds": by_entrant,
        "kinds_by_kind": columnar(by_kind),
        "places": columnar(place_rows(groups, roster)),
        "outcomes": outcome_rows(views),
    }
