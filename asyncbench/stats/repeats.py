"""Problems that were asked several times: clustered intervals, pass@k, pass^k and majority votes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from math import comb, sqrt
from typing import NamedTuple

from asyncbench.errors import ConfigError
from asyncbench.stats.proportions import Z_95, wilson

Counted = tuple[float, float]  # (successes, trials) of a problem
Counts = Iterable[Counted] | Mapping[Counted, int]  # of each problem, or how many problems have them
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

    `counts`: (successes, trials) of each problem, or how many problems have them; successes may be parts of a
    whole. The standard error is the sandwich of Liang & Zeger (1986) with the factor g / (g - 1) for g
    problems. The interval is Wilson's for as many independent trials as these are worth: n / design effect,
    and fewer where some problems were asked far more often than others.
    It is Wilson's own where each problem was asked once.
    """
    tally = {counted: problems for counted, problems in Counter(counts).items() if counted[1]}
    clusters, trials = sum(tally.values()), _total(tally)
    if not trials:
        return Clustered(share=None, standard_error=None, interval=None, clusters=0, trials=0)
    share = _successes(tally) / trials
    return Clustered(
        share=share,
        standard_error=sqrt(_variance(tally)) if clusters > 1 else None,
        interval=wilson(share, trials / (_design_effect(tally) * _uncertainty(tally))),
        clusters=clusters,
        trials=round(trials),
    )


def _total(tally: Mapping[Counted, int], *, power: int = 1) -> float:
    """Return the trials of all problems, each to a power."""
    return sum(of_problem**power * problems for (_, of_problem), problems in tally.items())


def _successes(tally: Mapping[Counted, int]) -> float:
    return sum(successes * problems for (successes, _), problems in tally.items())


def _variance(tally: Mapping[Counted, int]) -> float:
    """Return the variance of the share over at least two problems."""
    clusters, trials = sum(tally.values()), _total(tally)
    share = _successes(tally) / trials
    squares = sum(
        (successes - share * of_problem) ** 2 * problems
        for (successes, of_problem), problems in tally.items()
    )
    return clusters / (clusters - 1) * squares / trials**2


def _design_effect(tally: Mapping[Counted, int]) -> float:
    """Return how many times the variance exceeds that of as many independent trials (Kish 1965).

    Estimated with two problems more, one always right and one never: a handful of successes, or none, would
    not show that repeats agree. Both are asked as often as the problem of a trial picked at random: it is the
    often asked ones that decide. Held between independent repeats and repeats that all agree.
    """
    agreeing = _total(tally, power=2) / _total(tally)
    with_two_more = Counter[tuple[float, float]](tally)
    with_two_more.update([(agreeing, agreeing), (0, agreeing)])
    of_all = _total(tally) + 2 * agreeing
    share = (_successes(tally) + agreeing) / of_all
    independent = share * (1 - share) / (of_all - 1)
    return min(max(_variance(with_two_more) / independent, 1.0), agreeing)


def _uncertainty(tally: Mapping[Counted, int]) -> float:
    """Return by what a variance grows because a few often asked problems tell it; 1 where all tell as much.

    The squared ratio of Student's quantiles for as many degrees of freedom as the sum of squares has
    (Satterthwaite 1946), a problem weighing as the square of its trials, and for one less than the problems.
    """
    telling = _total(tally, power=2) ** 2 / _total(tally, power=4)
    return (_student(telling - 1) / _student(sum(tally.values()) - 1)) ** 2


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
    _check(k, n)
    return comb(c, k) / comb(n, k)


def _check(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise ConfigError(f"k = {k}: a problem with {n} answers tells of k from 1 to {n}; ask more repeats.")


class Votes(NamedTuple):
    """The answers to the repeats of a problem: how many are right, and how often each wrong one was given.

    The other `trials` are without an answer.
    """

    trials: int
    right: int
    wrong: tuple[int, ...]  # the most frequent first


@cache
def majority_at_k(votes: Votes, k: int) -> float:
    """Return the chance that the most frequent of `k` answers is right, over all choices of k trials.

    Trials without an answer have no vote. Of t answers that are given equally often each is drawn with the
    chance 1 / t: so a tie with one wrong answer counts half. Right answers are one, however they are written.

    Raises:
        ConfigError: k is below 1 or above the number of trials.
    """
    _check(k, votes.trials)
    won = 0.0
    for drawn in range(1, min(votes.right, k) + 1):
        rivals = tuple(times for times in votes.wrong if times >= drawn)
        rest = votes.trials - votes.right - sum(rivals)  # too few of each to tie
        won += comb(votes.right, drawn) * sum(
            choices * comb(rest, k - drawn - wrong) / (1 + tied)
            for (wrong, tied), choices in _draws(rivals, drawn).items()
            if wrong <= k - drawn
        )
    return won / comb(votes.trials, k)


@cache
def _draws(rivals: tuple[int, ...], limit: int) -> Mapping[tuple[int, int], int]:
    """Return in how many ways wrong answers can be drawn, each `limit` times at most.

    Args:
        rivals: how often each of them was given.
        limit: above 0.

    Returns:
        (how many are drawn, how many of them so often) → choices.
    """
    draws = Counter({(0, 0): 1})
    for times in rivals:
        longer = Counter[tuple[int, int]]()
        for (wrong, tied), choices in draws.items():
            for drawn in range(min(times, limit) + 1):
                longer[wrong + drawn, tied + (drawn == limit)] += choices * comb(times, drawn)
        draws = longer
    return draws


@dataclass(frozen=True, slots=True, kw_only=True)
class AtK:
    """The worth of `k` answers to each problem, over the problems with at least so many."""

    k: int
    pass_at_k: Clustered
    majority_at_k: Clustered
    pass_hat_k: Clustered

    @property
    def figures(self) -> tuple[Clustered, Clustered, Clustered]:
        """All three, in that order: the first is never below the last."""
        return self.pass_at_k, self.majority_at_k, self.pass_hat_k


def ks_up_to(highest: int) -> list[int]:
    """Return each k up to 10, then 20, 50, 100 and so on, and `highest`: a thousand rows tell no more."""
    tens = (step * 10**power for power in range(1, len(str(highest)) + 1) for step in (2, 5, 10))
    return [
        *range(1, min(highest, 10) + 1),
        *takewhile(lambda k: k < highest, tens),
        *[highest] * (highest > 10),
    ]


def worth_by_k(problems: Mapping[Votes, int]) -> Iterator[AtK]:
    """Yield pass@k, pass^k and majority@k up to the most repeats (`ks_up_to`), with intervals over problems.

    Each is a mean over the problems with at least k trials. Its interval is that of `clustered`, each of them
    taken as equally many trials: at k = 1 it is the accuracy's own, at k of k trials Wilson's over problems.

    Args:
        problems: how many problems there are with such votes.
    """
    for k in ks_up_to(max((votes.trials for votes in problems), default=0)):
        enough = [votes for votes in problems if votes.trials >= k]
        trials = min(votes.trials for votes in enough)
        shares = [
            (pass_at_k(n, c, k), pass_hat_k(n, c, k), majority_at_k(votes, k))
            for votes in enough
            for n, c, _ in [votes]
        ]

        # The mean of each over the problems, each of them worth equally many trials.
        figures = []
        for column in zip(*shares, strict=True):
            counts = Counter[Counted]()
            for share, votes in zip(column, enough, strict=True):
                counts[share * trials, trials] += problems[votes]
            figures.append(clustered(counts))
        pass_at, pass_hat, majority = figures
        yield AtK(k=k, pass_at_k=pass_at, pass_hat_k=pass_hat, majority_at_k=majority)
