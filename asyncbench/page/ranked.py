"""The block `standings`: rankings over all suites, by suite and by kind, with leads and ties."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from asyncbench.analysis.cells import cells_in
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import Hardest
from asyncbench.analysis.entrants import Entrant, asked_in
from asyncbench.analysis.pairing import ANSWERS, marks_in
from asyncbench.page.charts.breaks import KindCurve, kind_curves
from asyncbench.page.charts.pictures import dot_rows, pair_rows
from asyncbench.reports.standings.rankings import Ranking, RankingRow
from asyncbench.reports.standings.report import (
    ALONE,
    KindRankingRow,
    Standings,
    over,
    rankings_by_kind,
    standings_of,
    unranked,
)
from asyncbench.tables.numbers import number_of
from asyncbench.tables.screen import safe

Values = dict[str, Any]  # Any: whatever JSON can hold

ONE_MODEL: Final = "one model"


def standings_in(views: FolderViews) -> Standings:
    """Return the standings of a folder, which several blocks read."""

    def counted() -> Standings:
        marks_in(views)  # reads the trials: of these rows all are counted that the first screen shows
        asked_in(views, answers=ANSWERS)
        cells_in(views, answers=ANSWERS)
        return standings_of(views, by_kind=True)

    return views.once("standings", counted)


def standings_block(views: FolderViews) -> Values:
    """Return the rankings, over all suites first; those who share too few problems with others come last."""
    standings, places = standings_in(views), asked_in(views).entrant_places
    ranked = [_ranking(ranking, places) for ranking in standings.rankings if not ranking.alone]
    why = ALONE if standings.asked > 1 else ONE_MODEL
    others = [
        _ranking(ranking, places) | {"alone": True, "problems": None, "title": safe(f"{over_what}: {why}")}
        for ranking in _alone(standings)
        for over_what in (ranking.suite or "All suites",)
    ]
    by_kind = sorted(_by_kind(views, standings), key=lambda ranking: ranking["kind"])
    return {"rankings": [*ranked, *by_kind, *others], "rules": list(standings.rules)}


def _by_kind(views: FolderViews, standings: Standings) -> Iterator[Values]:
    """Yield the rankings of each kind, of the entrants of its suite's ranking."""
    roster = asked_in(views)
    places, kinds = roster.entrant_places, roster.kind_places
    curves = {(each.kind, each.entrant): each for each in kind_curves(views)}
    for ranking in rankings_by_kind(views, standings.rankings):
        kind = kinds[ranking.kind]
        models, problems = f"{len(ranking.lines):,} models", number_of(ranking.problems, "problem")
        where = f" on the same {problems}" if ranking.paired else f", each on {problems} of its own"
        yield {
            "suite": safe(ranking.kind[0]),
            "kind": kind,
            "problems": ranking.problems,
            "paired": ranking.paired,
            "alone": False,
            "title": f"{roster.kinds[kind].called}: {models}{where}",
            "lines": [
                _kind_line(line, place := places[line.entrant], curves.get((kind, place)))
                for line in ranking.lines
            ],
            "pairs": [],  # each has a bootstrap: too many
        }


def _kind_line(line: KindRankingRow, place: int, curve: KindCurve | None) -> Values:
    return {
        "asked": place,
        "place": line.place,
        "value": line.share,
        "low": line.interval[0],
        "high": line.interval[1],
        "trials": line.accuracy.trials,
        "answered": line.accuracy.over_answered.share,
        "lost": line.accuracy.lost,
        "at_90": curve and _on_two_lines(str(curve.length_at(0.9))),
        "at_50": curve and _on_two_lines(str(curve.half)),
        **dict.fromkeys(("cost_usd", "per_correct", "format", "p50_s")),
        "at_k": [],
    }


def _alone(standings: Standings) -> Iterator[Ranking]:
    """Yield those who stand alone as one ranking for each suite."""
    for suite, lines in unranked(standings.rankings).items():
        first = next(ranking for ranking in standings.rankings if ranking.alone and ranking.suite == suite)
        yield replace(first, lines=tuple(lines))


def _ranking(ranking: Ranking, places: Mapping[Entrant, int]) -> Values:
    return {
        "suite": ranking.suite and safe(ranking.suite),
        "kind": None,
        "problems": ranking.problems,
        "paired": ranking.paired,
        "alone": False,
        "title": safe(over(ranking)),
        "lines": [
            row | _figures(line) for row, line in zip(dot_rows(ranking, places), ranking.lines, strict=True)
        ],
        "pairs": pair_rows(ranking, places),
    }


def _figures(line: RankingRow) -> Values:
    accuracy = line.accuracy
    return {
        "answered": accuracy.over_answered.share,
        "lost": accuracy.lost,
        "at_90": line.at_90 and _in_two(line.at_90),
        "at_50": line.at_50 and _in_two(line.at_50),
        "cost_usd": line.cost_usd,
        "per_correct": line.cost_per_correct,
        "format": line.format_ok / line.format_known if line.format_known else None,
        "p50_s": line.latency_p50_s,
        "at_k": [
            {
                "k": at.k,
                "problems": at.pass_at_k.clusters,
                "figures": [[figure.share, *(figure.interval or (None, None))] for figure in at.figures],
            }
            for at in line.at_k
        ],
    }


def _in_two(hardest: Hardest) -> tuple[str, str]:
    """Return a length, and its limits with the task that it is of: two lines of a narrow column."""
    figure, limits = _on_two_lines(str(hardest.length))
    return figure, safe(f"{limits}{str(hardest).removeprefix(str(hardest.length))}".strip())


def _on_two_lines(length: str) -> tuple[str, str]:
    figure, bracket, limits = length.partition(" (")
    return figure, f"{bracket.strip()}{limits}"
