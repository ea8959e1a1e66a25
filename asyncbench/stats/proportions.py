"""Shares of trials, never without their denominator, with intervals and differences."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean

from asyncbench.records import Outcome
from asyncbench.stats.paired import sign_flip
from asyncbench.tables.data import HIDDEN, in_data

Z_95 = 1.959963984540054  # the 97.5 % point of the standard normal
LOUD = 0.01  # above this share of lost trials a figure is not shown without a warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A share with its 95 % interval; None without trials."""

    successes: int
    trials: int
    repeats: float = field(default=1.0, metadata=HIDDEN)  # of each problem: in the interval it counts once

    @property
    @in_data("share")
    def share(self) -> float | None:
        """Successes over trials, in [0, 1]."""
        return self.successes / self.trials if self.trials else None

    @property
    @in_data("interval")
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval, in [0, 1]."""
        return wilson(self.successes / self.trials, self.trials / self.repeats) if self.trials else None


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson 1927), in [0, 1]: honest near 0 and 1, unlike ±1.96 s.e.

    `trials`: how many independent ones the share is worth, above 0; need not be whole.
    """
    z2 = Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 * sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    # Exactly 0 and 1 at the ends, where rounding would miss them by a hair.
    return 0.0 if share == 0 else centre - half, 1.0 if share == 1 else centre + half


def mean_interval(mean: float, squares: float, values: int, *, repeats: float = 1) -> tuple[float, float]:
    """Return the 95 % interval of a mean of values between 0 and 1.

    It is Wilson's, of as many trials as would vary by as much if each were right or wrong. One value of the
    greatest variance is added, so that few values that are all the same have an interval, too. For values
    that are 0 or 1 it is exactly `wilson`.

    Args:
        mean: of the values.
        squares: the sum of their squares.
        values: how many they are, above 0.
        repeats: how often each independent one is among them.
    """
    largest = mean * (1 - mean)  # the variance of values that are 0 or 1
    variance = (max(0.0, squares - values * mean * mean) + largest) / (values + 1)
    worth = values if not 0 < variance < largest else values * largest / variance
    return wilson(min(1.0, mean), worth / repeats)


def newcombe(
    a: float, interval_a: tuple[float, float], b: float, interval_b: tuple[float, float]
) -> tuple[float, float]:
    """Return the 95 % interval of a - b, two shares on different problems (Newcombe 1998, method 10).

    Args:
        a, b: the shares.
        interval_a, interval_b: their own intervals, by `wilson`.
    """
    (low_a, high_a), (low_b, high_b) = interval_a, interval_b
    return (
        a - b - sqrt((a - low_a) ** 2 + (high_b - b) ** 2),
        a - b + sqrt((high_a - a) ** 2 + (b - low_b) ** 2),
    )


def averaged_interval(
    figures: Sequence[float], intervals: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of figures, each of problems of its own (MOVER, Zou 2008).

    It is what `newcombe` is for a difference: squares of the distances to the ends are added.

    Args:
        figures: such as the accuracies of several tasks, above 0 of them.
        intervals: their own.
    """
    mean, count = fmean(figures), len(figures)
    below = sqrt(sum((figure - low) ** 2 for figure, (low, _) in zip(figures, intervals, strict=True)))
    above = sqrt(sum((high - figure) ** 2 for figure, (_, high) in zip(figures, intervals, strict=True)))
    return mean - below / count, mean + above / count


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The accuracy of a model over a group of trials, and how far lost trials could change it.

    Lost are trials that tell nothing of the model: failed (no reply) and truncated (a reply cut short).
    """

    correct: int
    wrong: int
    lost: int
    trials: int

    @classmethod
    def of(cls, outcomes: Mapping[str, int]) -> "Accuracy":
        """Return it for the trials of each outcome."""
        return cls(
            correct=outcomes.get(Outcome.CORRECT, 0),
            wrong=outcomes.get(Outcome.WRONG, 0),
            lost=outcomes.get(Outcome.FAILED, 0) + outcomes.get(Outcome.TRUNCATED, 0),
            trials=sum(outcomes.values()),
        )

    @property
    def over_all(self) -> Proportion:
        """Correct of all trials: whatever is no right answer counts against the model."""
        return Proportion(successes=self.correct, trials=self.trials)

    @property
    def over_answered(self) -> Proportion:
        """Correct of the trials in whose reply an answer was read."""
        return Proportion(successes=self.correct, trials=self.correct + self.wrong)

    @property
    def lowest(self) -> float | None:
        """The accuracy over all if each lost trial had been wrong, in [0, 1]; None without trials."""
        return self.over_all.share

    @property
    def highest(self) -> float | None:
        """The accuracy over all if each lost trial had been right, in [0, 1]; None without trials."""
        return Proportion(successes=self.correct + self.lost, trials=self.trials).share

    @property
    def lost_share(self) -> float | None:
        """Lost of all trials, in [0, 1]; None without trials."""
        return Proportion(successes=self.lost, trials=self.trials).share

    @property
    def loud(self) -> bool:
        """Whether so many were lost (more than 1 %) that the figure must not stand without saying so."""
        return self.lost > LOUD * self.trials


# ── Two sets of answers, problem by problem
# A problem counts once in each set, as its share right: its answers are not independent. Sets need not
# share their problems; each is compared with those of its own kind alone, so easy and hard kinds do not
# mix.


Shares = tuple[float | None, float | None]  # right, of the answers of a and of b; None: it was not asked
LEVELS = 60  # to which moves are rounded for the test


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The move of each problem in the difference, a less b: their mean is the difference."""

    moves: tuple[float, ...] = field(metadata=HIDDEN)
    chance: tuple[float, ...] = field(metadata=HIDDEN)  # as large as chance makes them if both are alike

    @property
    @in_data("problems")
    def problems(self) -> int:
        return len(self.moves)

    @property
    @in_data("difference")
    def difference(self) -> float:
        """The difference of the accuracies, in [-1, 1]."""
        return fmean(self.moves)

    @property
    def p(self) -> float:
        """Two-sided, of both being alike: were they, each move could as well have the other sign.

        Where both were asked the same problems once, it is exact: McNemar's.
        """
        largest = max(map(abs, self.chance), default=0.0)
        if not largest:
            return 1.0
        signs = Counter(round(LEVELS * move / largest) for move in self.chance)
        if self.chance == self.moves:
            return sign_flip(signs)
        return sign_flip(signs, seen=round(LEVELS * sum(self.moves) / largest))

    @property
    @in_data("interval")
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
        of_a, of_b = ([share for shares in kind.values() if (share := shares[n]) is not None] for n in (0, 1))
        if not (of_a and of_b):
            continue
        mean, total = fmean([*of_a, *of_b]), len(of_a) + len(of_b)
        wider = 1.0 if total == 2 * len(kind) else sqrt(len(kind) / (len(kind) - 1))
        for problem, (a, b) in kind.items():
            move = (len(of_b) * _beyond(a, mean) - len(of_a) * _beyond(b, mean)) / total
            moves[problem] += move
            chance[problem] += wider * move
        weight += len(of_a) * len(of_b) / total
    scale = len(moves) / weight if weight else 0.0
    return Moves(
        moves=tuple(scale * move for move in moves.values()),
        chance=tuple(scale * move for move in chance.values()),
    )


def _beyond(share: float | None, mean: float) -> float:
    return 0.0 if share is None else share - mean
