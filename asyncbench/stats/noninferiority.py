"""Is B worse than A by more than a margin? The interval of the loss decides, or says that it cannot.

A test of non-inferiority, as medicines are tested: B passes only where a loss as large as the margin is
ruled out. That a loss was not shown is not enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, inf, isfinite
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

RESAMPLES: Final = 2_000
# Half a 95 % interval, times this, is the distance from a limit that 80 % of such samples clear.
CLEARANCE: Final = 1 + NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.975)

Floats = npt.NDArray[np.float64]


class Verdict(StrEnum):
    """The answer to the question whether B is worse than A."""

    WORSE = "worse"
    NOT_WORSE = "not_worse"  # a loss as large as the margin is ruled out
    UNDECIDED = "undecided"


def judge(interval: tuple[float, float], margin: float) -> Verdict:
    """Judge a loss by its 95 % interval.

    B is worse where the interval lies above 0 and reaches the margin. So some 2.5 % of equal models are
    called worse at most, and some 2.5 % of those pass that are worse by the margin.

    Args:
        interval: the ends of the interval of the loss: above 0 where B is worse.
        margin: the loss that is accepted, above 0 and in the same unit.
    """
    low, high = interval
    if high < margin:
        return Verdict.NOT_WORSE
    return Verdict.WORSE if low > 0 else Verdict.UNDECIDED


def problems_to_judge(loss: float, interval: tuple[float, float], margin: float, problems: int) -> int | None:
    """Return how many problems would decide a loss in four of five cases, or None if no number would.

    The loss that was seen is taken for the true one. An interval shrinks with the root of the problems.

    Args:
        loss: the loss that was seen.
        interval: its 95 % interval with so many problems.
        margin: the loss that is accepted.
        problems: the number of problems behind the interval.
    """
    half = (interval[1] - interval[0]) / 2
    distance = max(margin - loss, loss)  # from the nearest verdict: not worse by the margin, or worse
    return ceil(problems * (CLEARANCE * half / distance) ** 2) if isfinite(half) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedValues:
    """A value of A and of B for each trial that both were asked; inf: the trial failed."""

    a: Sequence[float]
    b: Sequence[float]
    problems: Sequence[int]  # the number of each trial's problem, from 0

    @property
    def clusters(self) -> int:
        """The number of problems."""
        return 1 + max(self.problems, default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a figure changed from A to B: 0.1 is 10 % more."""

    a: float  # the figure of A
    b: float
    change: float
    interval: tuple[float, float]  # 95 %


def relative_change(values: PairedValues, share: float | None, *, seed: int) -> Change | None:
    """Return the change of a mean or a percentile, with a bootstrap that draws problems for both sides.

    The interval is the percentile interval (Efron 1979). A problem is drawn with all its repeats.

    Args:
        values: of the trials that both were asked.
        share: of the percentile; None: the mean.
        seed: of the draws.

    Returns:
        The change. None: there are no trials, or the figure of A is 0.
    """
    a, b, problems = np.array(values.a, float), np.array(values.b, float), np.array(values.problems, np.int64)
    of_a, of_b = _Figure(a, problems, share), _Figure(b, problems, share)
    whole = np.ones(values.clusters)
    if not len(a) or not (before := of_a.weighed(whole)) or not isfinite(before):
        return None
    after = of_b.weighed(whole)

    # A resample says how often each problem was drawn: the weight of its trials.
    random, chances = np.random.default_rng(seed), np.full(values.clusters, 1 / values.clusters)
    changes = np.empty(RESAMPLES)
    for n in range(RESAMPLES):
        weights = random.multinomial(values.clusters, chances)
        drawn = of_a.weighed(weights)
        changes[n] = of_b.weighed(weights) / drawn - 1 if drawn else inf
    changes.sort()
    # Ends are values that were drawn: between two of them, one may be infinite.
    low, high = (changes[round(q * (RESAMPLES - 1))] for q in (0.025, 0.975))
    return Change(a=before, b=after, change=after / before - 1, interval=(float(low), float(high)))


class _Figure:
    """A mean or a percentile of values whose problems are drawn again and again."""

    def __init__(self, values: Floats, problems: npt.NDArray[np.int64], share: float | None) -> None:
        order = np.argsort(values, kind="stable")
        self._values, self._problems, self._share = values[order], problems[order], share

    def weighed(self, weights: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> float:
        """Return the figure where each problem counts so often."""
        trials = weights[self._problems]
        if self._share is None:
            return float(np.dot(trials, self._values) / trials.sum())
        upto = np.cumsum(trials)
        return float(self._values[np.searchsorted(upto, self._share * upto[-1] - 1e-9)])
