"""The first blocks of a page: questions and finding, rankings, and accuracy by task and length.

The other blocks name entrants and kinds by their indexes in the head.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from asyncbench.analysis.batch_use import OTHER_LATENCY, batch_notes
from asyncbench.analysis.cells import COUNTS, METRICS, cells_in
from asyncbench.analysis.counting import FolderViews, once
from asyncbench.analysis.curves import Hardest
from asyncbench.analysis.entrants import Entrant, NamedEntrant, asked_in, count_models
from asyncbench.analysis.graders import graded_by, headline_graders
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.pairing import ANSWERS, marks_in
from asyncbench.page.charts.breaks import break_rows, half_rows, heat_rows, kind_curves, length_rows
from asyncbench.page.charts.catalogue import CHARTS
from asyncbench.page.charts.chart import OUTCOME_COLOURS, colours_of, columnar
from asyncbench.page.charts.pictures import dot_rows, pair_rows
from asyncbench.page.finding import finding_of
from asyncbench.reports.outgraded import outgraded_in
from asyncbench.reports.standings.rankings import Ranking
from asyncbench.reports.standings.report import (
    ALONE,
    REPEATED,
    Standings,
    outcomes_of,
    ranking_title,
    rankings_by_kind,
    standings_of,
    unranked,
)
from asyncbench.reports.variants import crossed_in
from asyncbench.tables import headings
from asyncbench.tables.data import Values
from asyncbench.tables.numbers import number_of
from asyncbench.tables.screen import safe

_VARIED: Final = ("condition", "effort", "style", "folder", "run")  # what may differ among a model's entrants
_HEADINGS: Final = {
    "accuracy": headings.ACCURACY,
    "answered": headings.ANSWERED,
    "lost": headings.LOST,
    "right_90": headings.RIGHT_90,
    "right_50": headings.RIGHT_50,
    "per_correct": headings.PER_CORRECT,
    "score": headings.MEAN_SCORE,
    "format": headings.FORMAT,
    "median_latency": headings.MEDIAN_LATENCY,
    "pass_at_k": headings.PASS_AT_K,
    "majority_at_k": headings.MAJORITY_AT_K,
    "pass_hat_k": headings.PASS_HAT_K,
}
PAPER: Final = "nupa"  # the suite whose paper prints figures of models
BESIDE: Final = "NUPA's metrics beside the paper's"
BATCHES_NOTE: Final = f"{OTHER_LATENCY} Throughput and the use of limits leave batches out, too."
_OFFERED: Final = "SELECT coalesce(sum(offered), 0)::BIGINT AS calls FROM steps"


def head_block(views: FolderViews) -> Values:
    """Return the first block of a page; the other blocks name entrants and kinds by their index in it."""
    standings, roster = standings_in(views), asked_in(views)  # in this order trials are read once
    lengths = [cell["length"] for cell in cells_in(views) if cell["length"] is not None]
    return {
        "title": safe(", ".join(views.chosen.labels)),
        "made_at": datetime.now(UTC).timestamp(),
        "version": version("asyncbench"),
        "live": False,
        # empty: a model was asked now; of folders that differ the note begins with their names
        "mark": next((word for word in ("SIMULATED", "RECORDED") if word in standings.simulated_note), ""),
        "mark_words": standings.simulated_note,
        "notes": list(_notes(views)),
        "trials_in_all": sum(entrant.trials for entrant in roster.entrants),
        "load_calls": views.rows(_OFFERED)[0]["calls"],
        "finding": finding_of(standings, roster, kind_curves(views)),
        "entrants": [_entrant(entrant, index) for index, entrant in enumerate(roster.entrants)],
        "kinds": [
            {name: safe(text) for name, text in asdict(kind).items() if name != "called"}
            | {"called": kind.called}
            for kind in roster.kinds
        ],
        "lengths": {"least": min(lengths), "most": max(lengths)} if lengths else None,
        "varied": [
            attribute
            for attribute in _VARIED
            if len({(entrant.model, getattr(entrant, attribute)) for entrant in roster.entrants})
            > len({entrant.model for entrant in roster.entrants})
        ],
        "models": count_models([entrant.key for entrant in roster.entrants]),
        "crossed": crossed_in(views),
        "printed": BESIDE if any(kind.suite == PAPER for kind in roster.kinds) else "",
        "metrics": _metrics(views),
        "outcomes": list(OUTCOME_COLOURS),
        "headings": dict(_HEADINGS),
        "meanings": dict(headings.HEADINGS),
        "repeated": REPEATED,
        "charts": {name: chart.words() for name, chart in CHARTS.items()},
    }


def _notes(views: FolderViews) -> Iterator[Values]:
    """Yield notes to read beside the finding; a grave note changes the meaning of figures."""
    standings, graders = standings_in(views), headline_graders(views)
    batches = batch_notes(standings.batches, BATCHES_NOTE)
    for words in [*outgraded_in(views), *lost_notes(outcomes_of(standings.rankings))]:
        yield {"words": safe(words, most=None), "grave": True}
    graded = [graded_by(graders)] if graders else []
    for words in [*views.chosen.notes(), *graded, *batches, *filter(None, [asked_in(views).names_note])]:
        yield {"words": safe(words, most=None), "grave": False}


def _entrant(entrant: NamedEntrant, index: int) -> Values:
    texts = ("name", "run", "model", "condition", "folder", "effort", "style")
    light, dark = colours_of(index)
    return {
        **{name: safe(text) if (text := getattr(entrant, name)) else text for name in texts},
        "short": entrant.short,
        "light": light,
        "dark": dark,
        "trials": entrant.trials,
    }


def _metrics(views: FolderViews) -> Values:
    """Return the metrics for which there is at least one figure; accuracy always."""
    counts = {name: sum(cell[name] for cell in cells_in(views)) for name in COUNTS}
    return {
        name: {
            "title": metric.title,
            "caption": metric.caption,
            "unit": metric.unit,
            "share": metric.share,
            "higher_is_better": metric.higher_is_better,
            "log": metric.log,
        }
        for name, metric in METRICS.items()
        if name == "accuracy" or any(counts[column] for column in metric.under)
    }


# ── rankings: over all suites, by suite and by kind ──────────────────────────────────────────────


ONE_MODEL: Final = "one model"


@once
def standings_in(views: FolderViews) -> Standings:
    """Return the standings of a folder, which several blocks read."""
    marks_in(views)  # reads the trials: of these rows all are counted that the first screen shows
    asked_in(views, answers=ANSWERS)
    cells_in(views, answers=ANSWERS)
    return standings_of(views, by_kind=True)


def standings_block(views: FolderViews) -> Values:
    """Return the rankings, over all suites first; those who share too few problems with others come last."""
    standings, places = standings_in(views), asked_in(views).entrant_places
    ranked = [_ranking(ranking, places) for ranking in standings.rankings if not ranking.alone]
    kinds = sorted(_kind_rankings(views, standings), key=lambda ranking: ranking["kind"])

    # Those who stand alone make one ranking for each suite.
    why = ALONE if standings.asked > 1 else ONE_MODEL
    others = []
    for suite, lines in unranked(standings.rankings).items():
        first = next(ranking for ranking in standings.rankings if ranking.alone and ranking.suite == suite)
        title = safe(f"{first.suite or 'All suites'}: {why}")
        together = _ranking(replace(first, lines=tuple(lines)), places)
        others.append(together | {"alone": True, "problems": None, "title": title})
    return {"rankings": [*ranked, *kinds, *others], "rules": list(standings.rules)}


def _kind_rankings(views: FolderViews, standings: Standings) -> Iterator[Values]:
    """Yield the rankings of each kind, of the entrants of its suite's ranking."""
    roster = asked_in(views)
    places, kinds = roster.entrant_places, roster.kind_places
    curves = {(each.kind, each.entrant): each for each in kind_curves(views)}
    for ranking in rankings_by_kind(views, standings.rankings):
        kind = kinds[ranking.kind]
        models, problems = f"{len(ranking.lines):,} models", number_of(ranking.problems, "problem")
        where = f" on the same {problems}" if ranking.paired else f", each on {problems} of its own"
        lines: list[Values] = []
        for line in ranking.lines:
            entrant_index = places[line.entrant]
            curve = curves.get((kind, entrant_index))
            lines.append(
                {
                    "asked": entrant_index,
                    "place": line.place,
                    "value": line.share,
                    "low": line.interval[0],
                    "high": line.interval[1],
                    "trials": line.accuracy.trials,
                    "answered": line.accuracy.over_answered.share,
                    "lost": line.accuracy.lost,
                    "at_90": curve and _split_length(str(curve.length_at(0.9))),
                    "at_50": curve and _split_length(str(curve.half)),
                    **dict.fromkeys(("cost_usd", "per_correct", "format", "p50_s")),
                    "at_k": [],
                }
            )
        yield {
            "suite": safe(ranking.kind[0]),
            "kind": kind,
            "problems": ranking.problems,
            "paired": ranking.paired,
            "alone": False,
            "title": f"{roster.kinds[kind].called}: {models}{where}",
            "lines": lines,
            "pairs": [],  # each would take a bootstrap, and they are too many
        }


def _ranking(ranking: Ranking, places: Mapping[Entrant, int]) -> Values:
    lines = list[Values]()
    for row, line in zip(dot_rows(ranking, places), ranking.lines, strict=True):
        accuracy = line.accuracy
        figures: Values = {
            "answered": accuracy.over_answered.share,
            "lost": accuracy.lost,
            "at_90": line.at_90 and _hardest_lines(line.at_90),
            "at_50": line.at_50 and _hardest_lines(line.at_50),
            "cost_usd": line.cost_usd,
            "partly_priced": line.priced < line.trials,
            "per_correct": line.cost_per_correct,
            "score": line.score and (line.score.value, line.score.low, line.score.high),
            "format": line.format_ok / line.format_known if line.format_known else None,
            "p50_s": line.latency_p50_s,
            "at_k": [
                {
                    "k": repeats.k,
                    "problems": repeats.pass_at_k.clusters,
                    "figures": [
                        [figure.share, *(figure.interval or (None, None))] for figure in repeats.figures
                    ],
                }
                for repeats in line.at_k
            ],
        }
        lines.append(row | figures)
    return {
        "suite": ranking.suite and safe(ranking.suite),
        "kind": None,
        "problems": ranking.problems,
        "paired": ranking.paired,
        "alone": False,
        "title": safe(ranking_title(ranking)),
        "lines": lines,
        "pairs": pair_rows(ranking, places),
    }


def _hardest_lines(hardest: Hardest) -> tuple[str, str]:
    """Return a length, and its limits with the task that it is of: two lines of a narrow column."""
    figure, limits = _split_length(str(hardest.length))
    return figure, safe(f"{limits}{str(hardest).removeprefix(str(hardest.length))}".strip())


def _split_length(length: str) -> tuple[str, str]:
    """Return a length, and its limits: two lines of a narrow column."""
    figure, bracket, limits = length.partition(" (")
    return figure, f"{bracket.strip()}{limits}"


# ── what each can do ─────────────────────────────────────────────────────────────────────────────


def breaks_block(views: FolderViews) -> Values:
    """Return where each breaks: points and lines of accuracy against length, and where half is right."""
    curves = kind_curves(views)
    return {"rows": columnar(break_rows(curves)), "halves": half_rows(curves)}


def heat_block(views: FolderViews) -> Values:
    """Return every metric by entrant and kind, and accuracy by length."""
    return {"rows": heat_rows(views), "lengths": columnar(length_rows(views))}


FIRST_SCREEN: Final[Mapping[str, Callable[[FolderViews], Values]]] = {
    "head": head_block,
    "standings": standings_block,
    "breaks": breaks_block,
    "heat": heat_block,
}
