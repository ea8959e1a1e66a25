"""The block `head`: the folder's title, its entrants and kinds of questions, its notes and the finding."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from asyncbench.analysis.cells import COUNTS, METRICS, cells_in
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, NamedEntrant, asked_in
from asyncbench.analysis.notes import OTHER_LATENCY, batch_notes, graded_by, headline_graders, lost_notes
from asyncbench.page.charts.breaks import kind_curves
from asyncbench.page.charts.catalogue import CHARTS
from asyncbench.page.charts.themes import OUTCOME_COLOURS, colours_of
from asyncbench.page.finding import finding_of
from asyncbench.page.measures import LEFT_OUT
from asyncbench.page.ranked import standings_in
from asyncbench.reports.standings.report import REPEATED, outcomes_of
from asyncbench.tables.headings import (
    ACCURACY,
    ANSWERED,
    FORMAT,
    HEADINGS,
    LOST,
    MAJORITY_AT_K,
    MEDIAN_LATENCY,
    PASS_AT_K,
    PASS_HAT_K,
    PER_CORRECT,
    RIGHT_50,
    RIGHT_90,
)
from asyncbench.tables.screen import safe

Values = dict[str, Any]  # Any: whatever JSON can hold

_VARIED: Final = ("condition", "effort", "style", "folder", "run")
_HEADINGS: Final = {
    "accuracy": ACCURACY,
    "answered": ANSWERED,
    "lost": LOST,
    "right_90": RIGHT_90,
    "right_50": RIGHT_50,
    "per_correct": PER_CORRECT,
    "format": FORMAT,
    "median_latency": MEDIAN_LATENCY,
    "pass_at_k": PASS_AT_K,
    "majority_at_k": MAJORITY_AT_K,
    "pass_hat_k": PASS_HAT_K,
}
_OFFERED: Final = "SELECT coalesce(sum(offered), 0)::BIGINT AS calls FROM steps"


def head_block(views: FolderViews) -> Values:
    """Return what a page shows first; its other blocks name entrants and kinds by their places here."""
    standings, roster = standings_in(views), asked_in(views)  # in this order trials are read once
    lengths = [cell["length"] for cell in cells_in(views) if cell["length"] is not None]
    return {
        "title": safe(", ".join(views.chosen.labels)),
        "made_at": datetime.now(UTC).timestamp(),
        "version": version("asyncbench"),
        "live": False,
        "mark": _mark(standings.simulated_note),
        "mark_words": standings.simulated_note,
        "notes": list(_notes(views)),
        "trials_in_all": sum(entrant.trials for entrant in roster.entrants),
        "load_calls": views.rows(_OFFERED)[0]["calls"],
        "finding": finding_of(standings, roster, kind_curves(views)),
        "entrants": [_entrant(entrant, place) for place, entrant in enumerate(roster.entrants)],
        "kinds": [
            {name: safe(text) for name, text in asdict(kind).items() if name != "called"}
            | {"called": kind.called}
            for kind in roster.kinds
        ],
        "lengths": {"least": min(lengths), "most": max(lengths)} if lengths else None,
        "varied": _varied(roster),
        "metrics": _metrics(views),
        "outcomes": list(OUTCOME_COLOURS),
        "headings": dict(_HEADINGS),
        "meanings": dict(HEADINGS),
        "repeated": REPEATED,
        "charts": {name: chart.words() for name, chart in CHARTS.items()},
    }


def _mark(simulated: str) -> str:
    """Return the word for answers that no model was asked for now; empty: there are none.

    Of folders that differ the note begins with their names.
    """
    return next((word for word in ("SIMULATED", "RECORDED") if word in simulated), "")


def _notes(views: FolderViews) -> Iterator[Values]:
    """Yield what a reader has to know beside the finding; a grave note changes what figures mean."""
    standings, graders = standings_in(views), headline_graders(views)
    batches = batch_notes(standings.batches, f"{OTHER_LATENCY} {LEFT_OUT}")
    for words in lost_notes(outcomes_of(standings.rankings)):
        yield {"words": safe(words, most=len(words)), "grave": True}
    for words in [*views.chosen.notes(), *([graded_by(graders)] if graders else []), *batches]:
        yield {"words": safe(words, most=len(words)), "grave": False}


def _entrant(entrant: NamedEntrant, place: int) -> Values:
    texts = ("name", "run", "model", "condition", "folder", "effort", "style")
    light, dark = colours_of(place)
    return {
        **{name: safe(text) if (text := getattr(entrant, name)) else text for name in texts},
        "short": entrant.short,
        "light": light,
        "dark": dark,
        "trials": entrant.trials,
    }


def _varied(roster: Asked) -> list[str]:
    """Return the attributes in which entrants of one model differ."""

    def varies(name: str) -> bool:
        values = {(entrant.model, getattr(entrant, name)) for entrant in roster.entrants}
        return len(values) > len({model for model, _ in values})

    return list(filter(varies, _VARIED))


def _metrics(views: FolderViews) -> Values:
    """Return the metrics of which anything is known."""
    counts = {name: sum(cell[name] for cell in cells_in(views)) for name in COUNTS}
    return {
        name: {
            "title": metric.title,
            "unit": metric.unit,
            "share": metric.share,
            "higher_is_better": metric.higher_is_better,
        }
        for name, metric in METRICS.items()
        if name == "accuracy" or any(counts[column] for column in metric.under)
    }
