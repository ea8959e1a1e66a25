"""The block `standings`: who is better, by how much, and is that real."""

from collections.abc import Mapping
from typing import Any, Final

from asyncbench.reports import ALONE, SKIPPED, Ranking, Standing, Standings, over, standings_of, unranked
from asyncbench.results import Entrant, asked_in
from asyncbench.results.curves import Hardest
from asyncbench.shown import safe
from asyncbench.views import FolderViews

Values = dict[str, Any]  # Any: whatever JSON can hold

ONE_MODEL: Final = "one model"


def standings_in(views: FolderViews) -> Standings:
    """Return the standings of a folder, which several blocks read."""
    return views.once("standings", lambda: standings_of(views))


def standings_block(views: FolderViews) -> Values:
    """Return the rankings, over all suites first; those who share too few problems with others come last."""
    standings, places = standings_in(views), asked_in(views).entrant_places
    ranked = [_ranking(ranking, places) for ranking in standings.rankings if not ranking.alone]
    why = ALONE if standings.asked > 1 else ONE_MODEL
    others = [
        {
            "suite": suite and safe(suite),
            "kind": None,
            "problems": None,
            "paired": True,
            "alone": True,
            "title": safe(f"{suite or 'All suites'}: {why}"),
            "lines": [_line(line, places) for line in lines],
            "pairs": [],
        }
        for suite, lines in unranked(standings.rankings).items()
    ]
    skipped = [f"{standings.skipped:,} {SKIPPED}"] * bool(standings.skipped)
    return {"rankings": ranked + others, "rules": [*skipped, *standings.rules]}


def _ranking(ranking: Ranking, places: Mapping[Entrant, int]) -> Values:
    return {
        "suite": ranking.suite and safe(ranking.suite),
        "kind": None,
        "problems": ranking.problems,
        "paired": ranking.paired,
        "alone": False,
        "title": safe(over(ranking)),
        "lines": [_line(line, places) for line in ranking.lines],
        "pairs": list(_to_the_leader(ranking, places)),
    }


def _line(line: Standing, places: Mapping[Entrant, int]) -> Values:
    accuracy = line.accuracy
    return {
        "asked": places[line.run, line.model, line.condition],
        "place": line.place,
        "value": line.share,
        "low": line.interval[0],
        "high": line.interval[1],
        "trials": accuracy.trials,
        "answered": accuracy.over_answered.share,
        "lost": accuracy.lost,
        "best_case": accuracy.highest,
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


def _in_two(found: Hardest) -> tuple[str, str]:
    """Return a length, and its limits with the task that it is of: two lines of a narrow column."""
    whole = str(found.length)
    figure, bracket, limits = whole.partition(" (")
    return figure, safe(f"{bracket.strip()}{limits}{str(found).removeprefix(whole)}".strip())


def _to_the_leader(ranking: Ranking, places: Mapping[Entrant, int]) -> list[Values]:
    """Return how far ahead the leader of a ranking is of each other, on the problems in common."""
    place_of = {line.name: places[line.run, line.model, line.condition] for line in ranking.lines}
    return [
        {
            "a": place_of[pair.a],
            "b": place_of[pair.b],
            "difference": pair.found.difference,
            "low": pair.interval[0],
            "high": pair.interval[1],
            "p": pair.p_holm,
            "tied": pair.b in ranking.ties[0],
            "problems": pair.found.problems,
        }
        for pair in ranking.pairs
        if pair.a == ranking.lines[0].name
    ]
