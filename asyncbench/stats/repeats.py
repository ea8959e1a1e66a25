"""Problems that were asked several times: their repeats are not independent, and tell more than a share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

from asyncbench.errors import ConfigError
from asyncbench.stats.proportions import Z_95, wilson

Counts = Sequence[tuple[int, int]]  # (successes, trials) of each problem
FEWEST_DEGREES = 2.0  # of freedom: with fewer the variance of what is estimated is infinite anyway


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
    these are worth: n / design effect, and fewer where some problems were asked far more often than others.
    It is Wilson's own where each problem was asked once.
    """
    asked = [(successes, trials) for successes, trials in counts if trials]
    trials = sum(of_problem for _, of_problem in asked)
    if not trials:
        return Clustered(share=None, standard_error=None, interval=None, clusters=0, trials=0)
    share = sum(successes for successes, _ in asked) / trials
    return Clustered(
        share=share,
        standard_error=sqrt(_variance(asked)) if len(asked) > 1 else None,
        interval=wilson(share, trials / (_design_effect(asked) * _uncertainty(asked))),
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
    not show that repeats agree. Both are asked as often as the problem of a trial picked at random: it is the
    often asked ones that decide. Held between independent repeats and repeats that all agree.
    """
    trials = sum(of_problem for _, of_problem in asked)
    agreeing = sum(of_problem**2 for _, of_problem in asked) / trials
    with_two_more = [*asked, (agreeing, agreeing), (0, agreeing)]
    of_all = trials + 2 * agreeing
    share = (sum(successes for successes, _ in asked) + agreeing) / of_all
    independent = share * (1 - share) / (of_all - 1)
    return min(max(_variance(with_two_more) / independent, 1.0), agreeing)


def _uncertainty(asked: Counts) -> float:
    """Return by what a variance grows because a few often asked problems tell it; 1 where all tell as much.

    The squared ratio of Student's quantiles for as many degrees of freedom as the sum of squares has
    (Satterthwaite 1946), a problem weighing as the square of its trials, and for one less than the problems.
    """
    squares = sum(of_problem**2 for _, of_problem in asked)
    telling = squares**2 / sum(of_problem**4 for _, of_problem in asked)
    return (_student(telling - 1) / _student(len(asked) - 1)) ** 2


def _student(degrees: float) -> float:
    """Return the 97.5 % point of Student's distribution, taking fewer than two degrees of freedom for two.

    By the expansion 26.7.5 of Abramowitz & Stegun (1964): 3 % too small at two degrees, 1 % at three.
    """
    z, v = Z_95, max(degrees, FEWEST_DEGREES)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of `k` answers is right, given `c` right of `n` (k ≤ n).

    The unbiased estimator of Chen et al. (2021, arXiv 2107.03374): 1 - C(n - c, k) / C(n, k).

    Raises:
        ConfigError: k is below 1 or above n.
    """
    return 1 - pass_hat_k(n, n - c, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the chance that all of `k` answers are right, given `c` right of `n` (k ≤ n).

    The unbiased estimator of Yao et al. (2024, arXiv 2406.12045): C(c, k) / C(n, k).

    Raises:
        ConfigError: k is below 1 or above n.
    """
    if not 1 <= k <= n:
        raise ConfigError(f"k = {k}: a problem with {n} answers tells of k from 1 to {n}; ask more repeats.")
    return comb(c, k) / comb(n, k)
