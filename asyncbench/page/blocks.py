"""The blocks of a page by name: plain values, each made from the views of a folder and nothing else.

The file to mail holds all of them. The server of `asyncbench view` makes each when it is asked for.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.anatomy.error import KINDS
from asyncbench.analysis.batch_use import batch_notes, batch_uses
from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.entrants import asked_in
from asyncbench.analysis.folder_report import NothingToShowError
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.page.charts.breaks import placed_cells
from asyncbench.page.charts.catalogue import CHARTS, spec_of
from asyncbench.page.charts.chart import THEMES, columnar
from asyncbench.page.charts.errors import error_kind_rows, examined_note, outcome_rows, place_rows, word_rows
from asyncbench.page.charts.frontier import (
    UNLIKE,
    frontier_cost,
    frontier_note,
    frontier_reasoning,
    spent_rows,
)
from asyncbench.page.charts.loads import loads_in, uncounted_note
from asyncbench.page.charts.times import failure_rows, limit_rows, minute_rows, times_rows
from asyncbench.page.first_screen import BATCHES_NOTE, BESIDE, FIRST_SCREEN, PAPER
from asyncbench.published.nupa.report import paper_figures_of
from asyncbench.reports.cost.counts import spending_by_entrant
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.load.report import load_report_of
from asyncbench.reports.variants import variants_of
from asyncbench.tables.data import Values
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe, safe_note

# ── loads and providers ──────────────────────────────────────────────────────────────────────────


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
    steps, rows = loads_in(views)
    simulated = note_of_simulated(views)
    notes = [note for note in (simulated, uncounted_note(steps)) if note]
    tables: list[Values] = []
    if not views.chosen.partly:
        for title, report_of in (("Models as providers", providers_of), ("Rates", load_report_of)):
            with suppress(NothingToShowError):
                tables.append({"title": title, **_report_values(report_of(views), simulated)})
    return {
        "load_rows": {name: chart_rows for name, chart_rows in rows.items() if chart_rows},
        "load_notes": list(map(safe_note, notes)),
        "simulated_load": simulated,
        "load_calls": sum(step.offered for step in steps),
        "load_tables": tables,
    }


def _report_values(report: Report, shown_note: str) -> Values:
    """Return a report as notes and tables, without the note that the page shows already.

    `notes` are those above the first table, `below` all others.
    """
    notes: list[str] = []
    below: list[str] = []
    sheets: list[Values] = []
    for item in report.content():
        if isinstance(item, Sheet):
            sheets.append(
                {
                    "title": safe(item.title),
                    "head": list(map(safe, item.head)),
                    "labels": item.labels,
                    "rows": [[safe(str(cell)) for cell in row] for row in item.rows],
                }
            )
        elif item != shown_note:
            (below if sheets else notes).append(safe_note(item))
    return {"notes": notes, "sheets": sheets, "below": below}


# ── times, costs and errors ──────────────────────────────────────────────────────────────────────


NO_KIND: Final = "none of these"
OVER_VARIANTS: Final = "Which model, over all its variants"


def time_block(views: FolderViews) -> Values:
    """Return how fast calls were answered, in all and over time; lists without enough points are empty."""
    roster = asked_in(views)
    times, minutes = times_rows(views, roster), minute_rows(views, roster)
    notes = list[str]()
    if not times:
        notes.append("No times of calls are known. Runs record them; imported files do not.")
    elif not minutes:
        notes.append("The calls were made in too short a time for a chart.")

    # Calls that were not streamed have no first token.
    streamed = {row["asked"]: row["calls"] for row in times if row["quantity"] == "TTFT"}
    answered = {row["asked"]: row["answered"] for row in times}
    lacking = {entrant: calls - streamed.get(entrant, 0) for entrant, calls in answered.items()}
    calls, whole = sum(lacking.values()), sum(answered.values())
    if calls == whole and calls:
        notes.append("No reply was streamed, so TTFT is unknown.")
    elif calls:
        models = sum(1 for missing in lacking.values() if missing)
        notes.append(
            f"TTFT is of streamed replies: {calls:,} of {whole:,} answered calls were not streamed "
            f"({models:,} of {len(roster.entrants):,} models)."
        )

    notes += batch_notes(batch_uses(views), BATCHES_NOTE)
    return {
        "times": times,
        "minutes": columnar(minutes),
        "failures": columnar(failure_rows(views, roster)),
        "quota": columnar(limit_rows(views, roster)),
        "notes": [safe(note, most=None) for note in notes],
    }


def cost_block(views: FolderViews) -> Values:
    """Return the cost of each entrant, and accuracy against cost and against reasoning tokens."""
    spent, cells, roster = spending_by_entrant(views), placed_cells(views), asked_in(views)
    rows = {"cost": frontier_cost(cells, roster), "reasoning_tokens": frontier_reasoning(cells, roster)}
    noted = {name: frontier_note(cells, roster, name) for name in rows}

    # how many costs are unknown, and why
    calls, unknown, failed, untold = (
        sum(row[name] for row in spent) for name in ("calls", "unknown", "unknown_failed", "unknown_tokens")
    )
    why = {
        "no price is known": unknown - failed - untold,
        "the provider told no tokens": untold,
        "the call failed and may have been billed": failed,
    }
    causes = "; ".join(f"{count:,}: {cause}" for cause, count in why.items() if count)
    cost_note = f"The cost of {unknown:,} of {calls:,} calls is unknown, and no sum includes it ({causes})."
    return {
        "frontier_cost": rows["cost"],
        "frontier_reasoning": rows["reasoning_tokens"],
        "compared": {
            name: safe(note, most=None) if note and (rows[name] or note == UNLIKE) else None
            for name, note in noted.items()
        },
        "spent": spent_rows(spent, roster),
        "notes": [cost_note] if unknown else [],
    }


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
        "words": word_rows(groups, roster),
        "compared": sum(group.compared for group in groups),
        "outcomes": outcome_rows(views),
    }


# ── tables of other reports ──────────────────────────────────────────────────────────────────────


def published_block(views: FolderViews) -> Values:
    """Return the tables of benchmarks beside what their documents print; empty where there is none."""
    if not any(kind.suite == PAPER for kind in asked_in(views).kinds):
        return {"tables": []}
    with suppress(ConfigError):  # a user's own set of this suite may have tasks of any name
        return {"tables": [{"title": BESIDE, **_report_values(paper_figures_of(views), "")}]}
    return {"tables": []}


def variants_block(views: FolderViews) -> Values:
    """Return the models over all their variants, and what each setting adds; empty without a trial."""
    with suppress(NothingToShowError):
        values = _report_values(variants_of(views), note_of_simulated(views))
        return {"tables": [{"title": OVER_VARIANTS, **values}]}
    return {"tables": []}


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


BLOCKS: Final[Mapping[str, Callable[[FolderViews], Values]]] = {
    **FIRST_SCREEN,
    "time": time_block,
    "cost": cost_block,
    "errors": errors_block,
    "loads": loads_block,
    "published": published_block,
    "variants": variants_block,
}


def specs_block() -> Values:
    """Return the specifications of the charts of a page, and their themes; the same for all folders."""
    specs = {name: spec_of(name) for name, chart in CHARTS.items() if chart.on_page}
    return {"specs": specs, "themes": THEMES}
