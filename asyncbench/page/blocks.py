"""The blocks of a page by name: plain values, each made from the views of a folder and nothing else.

The file to mail holds all of them. The server of `asyncbench view` makes each when it is asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.anatomy.error import KINDS
from asyncbench.analysis.batch_use import OTHER_LATENCY, batch_notes, batch_uses
from asyncbench.analysis.cells import COUNTS, METRICS, cells_in
from asyncbench.analysis.counting import FolderViews, once, open_views
from asyncbench.analysis.curves import Hardest
from asyncbench.analysis.entrants import Entrant, NamedEntrant, asked_in, count_models
from asyncbench.analysis.folder_report import NothingToShowError
from asyncbench.analysis.graders import graded_by, headline_graders
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.pairing import ANSWERS, marks_in
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.page.charts.breaks import (
    break_rows,
    half_rows,
    heat_rows,
    kind_curves,
    length_rows,
    placed_cells,
)
from asyncbench.page.charts.catalogue import CHARTS, spec_of
from asyncbench.page.charts.chart import OUTCOME_COLOURS, THEMES, colours_of, columnar
from asyncbench.page.charts.errors import error_kind_rows, examined_note, outcome_rows, place_rows, word_rows
from asyncbench.page.charts.frontier import (
    UNLIKE,
    frontier_cost,
    frontier_note,
    frontier_reasoning,
    spent_rows,
)
from asyncbench.page.charts.loads import loads_in, uncounted_note
from asyncbench.page.charts.pictures import dot_rows, pair_rows
from asyncbench.page.charts.times import failure_rows, limit_rows, minute_rows, times_rows
from asyncbench.page.finding import finding_of
from asyncbench.published.nupa.report import paper_figures_of
from asyncbench.reports.cost.counts import spending_by_entrant
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.load.report import load_report_of
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
from asyncbench.reports.variants import crossed_in, variants_of
from asyncbench.tables import headings
from asyncbench.tables.numbers import number_of
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe, safe_note

Values = dict[str, Any]  # Any: whatever JSON can hold

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
    batches = batch_notes(standings.batches, f"{OTHER_LATENCY} {LEFT_OUT}")
    for words in [*outgraded_in(views), *lost_notes(outcomes_of(standings.rankings))]:
        yield {"words": safe(words, most=len(words)), "grave": True}
    graded = [graded_by(graders)] if graders else []
    for words in [*views.chosen.notes(), *graded, *batches, *filter(None, [asked_in(views).names_note])]:
        yield {"words": safe(words, most=len(words)), "grave": False}


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


Rows = Sequence[Values]

LEFT_OUT: Final = "Throughput and the use of limits leave batches out, too."
NO_KIND: Final = "none of these"
PAPER: Final = "nupa"  # the suite whose paper prints figures of models
OVER_VARIANTS: Final = "Which model, over all its variants"
BESIDE: Final = "NUPA's metrics beside the paper's"


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

    notes += batch_notes(batch_uses(views), f"{OTHER_LATENCY} {LEFT_OUT}")
    return {
        "times": times,
        "minutes": columnar(minutes),
        "failures": columnar(failure_rows(views, roster)),
        "quota": columnar(limit_rows(views, roster)),
        "notes": [safe(note, most=len(note)) for note in notes],
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
            name: safe(note, most=len(note)) if note and (rows[name] or note == UNLIKE) else None
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


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


def breaks_block(views: FolderViews) -> Values:
    """Return where each breaks: points and lines of accuracy against length, and where half is right."""
    curves = kind_curves(views)
    return {"rows": columnar(break_rows(curves)), "halves": half_rows(curves)}


def heat_block(views: FolderViews) -> Values:
    """Return every metric by entrant and kind, and accuracy by length."""
    return {"rows": heat_rows(views), "lengths": columnar(length_rows(views))}


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


BLOCKS: Final[Mapping[str, Callable[[FolderViews], Values]]] = {
    "head": head_block,
    "standings": standings_block,
    "breaks": breaks_block,
    "heat": heat_block,
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
