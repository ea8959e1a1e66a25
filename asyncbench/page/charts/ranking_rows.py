"""The rows of a ranking: rank and accuracy of each entrant, and the lead of the best over each other."""

from collections.abc import Mapping

from asyncbench.analysis.entrants import Entrant
from asyncbench.page.charts.styling import Row
from asyncbench.reports.standings.rankings import Ranking


def dot_rows(ranking: Ranking, places: Mapping[Entrant, int]) -> list[Row]:
    """Return a row for each line of a ranking, the best first; `places` are those of `Asked`."""
    return [
        {
            "asked": places[line.run, line.model, line.condition],
            "place": line.place,
            "value": line.share,
            "low": line.interval[0],
            "high": line.interval[1],
            "trials": line.accuracy.trials,
        }
        for line in ranking.lines
    ]


def pair_rows(ranking: Ranking, places: Mapping[Entrant, int]) -> list[Row]:
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
