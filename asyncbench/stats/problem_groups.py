"""Two sets of answers, problem by problem: all answers count, however often and wherever a problem was asked.

A problem counts once in each set, as its share right: its answers are not independent. Sets need not share
their problems; each is compared with those of its own kind alone, so easy and hard kinds do not mix.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from asyncbench.stats.paired import sign_flip
from asyncbench.stats.proportions import Z_95

Shares = tuple[float | None, float | None]  # right, of the answers of a and of b; None: it was not asked
LEVELS = 60  # to which moves are rounded for the test


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """By how much each problem moves the difference, a less b: their mean is the difference."""

    moves: tuple[float, ...]
    chance: tuple[float, ...]  # the same, as large as chance makes them where a and b are alike

    @property
    def problems(self) -> int:
        return len(self.moves)

    @property
    def difference(self) -> float:
        """Of the accuracies, in [-1, 1]."""
        return fmean(self.moves)

    @property
    def p(self) -> float:
        """Two-sided, of both being alike: were they, each move could as well have the other sign.

        Where both were asked the same problems once, it is exact: McNemar's.
        """
        most = max(map(abs, self.chance), default=0.0)
        if not most:
            return 1.0
        signs = Counter(round(LEVELS * move / most) for move in self.chance)
        if self.chance == self.moves:
            return sign_flip(signs)
        return sign_flip(signs, seen=round(LEVELS * sum(self.moves) / most))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference: two more problems speak for a and for b alone."""
        n = self.problems + 2
        mean = sum(self.moves) / n
        half = Z_95 * sqrt(max(0.0, sum(move**2 for move in self.chance) + 2 - n * mean**2)) / n
        return max(-1.0, mean - half), min(1.0, mean + half)

    @property
    def square(self) -> float:
        """The mean square of a move; asked once: the share of problems that one alone got."""
        return fmean(move**2 for move in self.chance)


def moves_of(kinds: Iterable[Mapping[str, Shares]]) -> Moves:
    """Return by how much each problem moves the difference.

    `kinds`: the shares of each problem, by its id, for each kind. Kinds weigh as Mantel and Haenszel (1959)
    have it. A share counts less the mean of its kind; where a and b were asked others, chance is wider by the
    degree of freedom that this mean takes.
    """
    moves, chance, weight = defaultdict[str, float](float), defaultdict[str, float](float), 0.0
    for kind in kinds:
        of_a, of_b = ([own for shares in kind.values() if (own := shares[n]) is not None] for n in (0, 1))
        if not (of_a and of_b):
            continue
        mean, asked = fmean([*of_a, *of_b]), len(of_a) + len(of_b)
        wider = 1.0 if asked == 2 * len(kind) else sqrt(len(kind) / (len(kind) - 1))
        for problem, (a, b) in kind.items():
            move = (len(of_b) * _beyond(a, mean) - len(of_a) * _beyond(b, mean)) / asked
            moves[problem] += move
            chance[problem] += wider * move
        weight += len(of_a) * len(of_b) / asked
    scale = len(moves) / weight if weight else 0.0
    return Moves(
        moves=tuple(scale * move for move in moves.values()),
        chance=tuple(scale * move for move in chance.values()),
    )


def _beyond(share: float | None, mean: float) -> float:
    return 0.0 if share is None else share - mean
