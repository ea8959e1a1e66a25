"""What a page holds of loads and of providers: tables as reports have them, and the rows of charts."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews, open_views
from asyncbench.analysis.notes import NothingToShowError, note_of_simulated
from asyncbench.page.charts.load_rows import rows_of_loads, uncounted_note
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.load.accuracy import answers_by_step
from asyncbench.reports.load.report import load_report_of
from asyncbench.reports.load.steps import steps_in
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe, safe_note

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
    tables = [] if views.chosen.partly else list(_tables(views, said=charts["simulated_load"]))
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


def _tables(views: FolderViews, *, said: str) -> Iterator[Values]:
    for title, report_of in (("Models as providers", providers_of), ("Rates", load_report_of)):
        with suppress(NothingToShowError):
            yield {"title": title, **_as_values(report_of(views), said)}


def _as_values(report: Report, said: str) -> Values:
    """Return a report as its notes (without the one `said` already) and tables; `below`: after the first."""
    parts = [part for part in report._parts() if isinstance(part, Sheet) or part != said]
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
