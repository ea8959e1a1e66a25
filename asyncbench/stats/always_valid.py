"""An interval for a share that may be looked at after every answer: all looks together hold at 95 %.

An interval for a fixed number of trials is meant for one look. Who looks at it after every answer, and
stops when it pleases, is wrong far more often than one time in twenty. This one is a confidence sequence:
the chance that it ever leaves out the true share, over all numbers of trials, is at most 5 %. So any rule
may look at it at any time, and stop.

It holds every share p that the answers do not speak against by 20 to 1. The evidence against p is what
the answers are worth under a mixture of shares, over what they are worth under p; the mixture is half a
Beta(1/2, 1/2), and a quarter each for all wrong and all right, as cells of a benchmark often are. If p is
true the evidence is a martingale that starts at 1, and by Ville's inequality it reaches 20 with a chance
of 5 % at most (Robbins 1970, Ann. Math. Statist. 41(5), 1397-1409). That takes answers that are alike,
each drawn afresh: problems of one cell, each counted once, in an order that does not depend on the
answers.
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, lgamma, log, log1p
from typing import Final, NamedTuple

LEVEL: Final = 0.95
_AT_MOST: Final = log(1 / (1 - LEVEL))  # of evidence against what the interval holds
_JEFFREYS: Final = 2 * lgamma(0.5)  # the logarithm of B(1/2, 1/2)
_HALVINGS: Final = 48


class Interval(NamedTuple):
    """Shares between 0 and 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def always_valid_interval(correct: int, answers: int) -> Interval:
    """Return the interval after so many answers, of which `correct` are right; none: 0 to 1."""
    if not answers:
        return Interval(0.0, 1.0)
    least = _mixed(correct, answers) - _AT_MOST
    low, high = (_bound(correct, answers, least, outer=outer) for outer in (0.0, 1.0))
    return Interval(low, high)


def evidence(against: float, correct: int, answers: int) -> float:
    """Return the logarithm of the evidence against a share; the interval holds it up to log 20."""
    return _mixed(correct, answers) - _likelihood(against, correct, answers)


def _mixed(correct: int, answers: int) -> float:
    """Return the logarithm of what answers are worth under the mixture."""
    wrong = answers - correct
    spread = lgamma(correct + 0.5) + lgamma(wrong + 0.5) - lgamma(answers + 1.0) - _JEFFREYS
    ends = 0.25 * ((not correct) + (not wrong))
    return log(0.5 * exp(spread) + ends) if ends else log(0.5) + spread


def _likelihood(share: float, correct: int, answers: int) -> float:
    wrong = answers - correct
    if (correct and share <= 0.0) or (wrong and share >= 1.0):
        return -inf
    return (correct * log(share) if correct else 0.0) + (wrong * log1p(-share) if wrong else 0.0)


def _bound(correct: int, answers: int, least: float, *, outer: float) -> float:
    """Return where the likelihood falls to `least` between the share seen and `outer`, rounded outward."""
    inner = correct / answers
    if inner == outer:
        return outer
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        if _likelihood(middle, correct, answers) < least:
            outer = middle
        else:
            inner = middle
    return outer


@lru_cache(maxsize=256)
def alike_needed(width: float) -> int:
    """Return how many answers, all right or all wrong, it takes until the interval is no wider than this."""
    return fewest_answers(lambda answers: always_valid_interval(0, answers).width <= width)


def fewest_answers(enough: Callable[[int], bool]) -> int:
    """Return the least number from 1 on that is enough; every greater one has to be enough, too."""
    few, many = 0, 1
    while not enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
