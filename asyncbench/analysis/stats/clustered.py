"""A share over problems that were asked several times: repeats of a problem are not independent."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from asyncbench.analysis.stats.proportions import wilson

Counts = Sequence[tuple[int, int]]  # (successes, trials) of each problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustered:
    """A share of trials whose uncertainty is that of its problems; None where there are too few."""

    share: float | None  # successes over trials, in [0, 1]
    standard_error: float | None  # of the share; None below two problems
    interval: tuple[float, float] | None  # 95 %
    clusters: int  # problems with at least one trial
    trials: int


def clustered(counts: Counts) -> Clustered:
    """Return the share of all trials, with the standard error and interval clustered by problem.

    `counts`: (successes, trials) of each problem. The standard error is the sandwich of Liang & Zeger (1986)
    with the factor g / (g - 1) for g problems. The interval is Wilson's for as many independent trials as
    these are worth: n / design effect. It is Wilson's own where each problem was asked once.
    """
    asked = [(successes, trials) for successes, trials in counts if trials]
    trials = sum(of_problem for _, of_problem in asked)
    if not trials:
        return Clustered(share=None, standard_error=None, interval=None, clusters=0, trials=0)
    share = sum(successes for successes, _ in asked) / trials
    return Clustered(
        share=share,
        standard_error=sqrt(_variance(asked)) if len(asked) > 1 else None,
        interval=wilson(share, trials / _design_effect(asked)),
        clusters=len(asked),
        trials=trials,
    )


def _variance(counts: Sequence[tuple[float, float]]) -> float:
    """Return the variance of the share over at least two problems."""
    trials = sum(of_problem for _, of_problem in counts)
    share = sum(successes for successes, _ in counts) / trials
    squares = sum((successes - share * of_problem) ** 2 for successes, of_problem in counts)
    return len(counts) / (len(counts) - 1) * squares / trials**2


def _design_effect(asked: Counts) -> float:
    """Return how many times the variance exceeds that of as many independent trials (Kish 1965).

    Estimated with two problems more, one always right and one never: a handful of successes, or none, would
    not show that repeats agree. Held between independent repeats and repeats that all agree.
    """
    trials = sum(of_problem for _, of_problem in asked)
    usual = trials / len(asked)
    with_two_more = [*asked, (usual, usual), (0, usual)]
    of_all = trials + 2 * usual
    share = (sum(successes for successes, _ in asked) + usual) / of_all
    independent = share * (1 - share) / (of_all - 1)
    agreeing = sum(of_problem**2 for _, of_problem in asked) / trials
    return min(max(_variance(with_two_more) / independent, 1.0), agreeing)
