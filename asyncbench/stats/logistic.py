"""Logistic regression of shares on one quantity: the fit, and likelihoods of curves through a point.

Points are (x, successes, trials). The share at x is 1 / (1 + exp(-(intercept + slope · x))).
"""

from collections.abc import Sequence
from math import exp, log, log1p
from typing import NamedTuple, TypeAlias

Point: TypeAlias = tuple[float, int, int]

_STEPS = 50  # of Newton's method, which needs about eight
_CLOSE = 1e-10  # of a step, relative
_STEEPEST = 60.0  # logits from one length to the next: nothing is told from a step there


class Fit(NamedTuple):
    """The curve of greatest likelihood, with the inverse of the observed information."""

    intercept: float
    slope: float
    variance_of_intercept: float
    covariance: float
    variance_of_slope: float

    def logit(self, length: float) -> float:
        """Return the logit of the share at a length."""
        return self.intercept + self.slope * length

    def variance(self, length: float) -> float:
        """Return the variance of that logit."""
        across = 2 * length * self.covariance
        return max(0.0, self.variance_of_intercept + across + length * length * self.variance_of_slope)


def fitted(points: Sequence[Point]) -> Fit:
    """Return the fit, by Newton's method; points are such that there is one: shares overlap both ways."""
    trials = sum(n for _, _, n in points)
    centre = sum(x * n for x, _, n in points) / trials
    centred = [(x - centre, r, n) for x, r, n in points]
    successes = sum(r for _, r, _ in points)
    level, slope = log(successes / (trials - successes)), 0.0
    best = log_likelihood(centred, level, slope)
    for _ in range(_STEPS):
        along_level, along_slope, information = _derivatives(centred, level, slope)
        of_level, across, of_slope = _inverse(information)
        rise = of_level * along_level + across * along_slope
        turn = across * along_level + of_slope * along_slope
        while (likelihood := log_likelihood(centred, level + rise, slope + turn)) < best - 1e-9:
            rise, turn = rise / 2, turn / 2  # too far: Newton's step overshoots on steep curves
        level, slope, best = level + rise, slope + turn, likelihood
        if abs(rise) < _CLOSE * (1 + abs(level)) and abs(turn) < _CLOSE * (1 + abs(slope)):
            break
    of_level, across, of_slope = _inverse(_derivatives(centred, level, slope)[2])
    return Fit(
        intercept=level - slope * centre,
        slope=slope,
        variance_of_intercept=of_level - 2 * centre * across + centre * centre * of_slope,
        covariance=across - centre * of_slope,
        variance_of_slope=of_slope,
    )


def log_likelihood(points: Sequence[Point], intercept: float, slope: float) -> float:
    """Return the log-likelihood, without the binomial coefficients."""
    total = 0.0
    for x, successes, trials in points:
        logit = intercept + slope * x
        total += successes * logit - trials * (max(logit, 0.0) + log1p(exp(-abs(logit))))
    return total


def saturated(points: Sequence[Point]) -> float:
    """Return the log-likelihood of the observed shares themselves: more is not possible."""
    return sum(
        count * log(count / trials)
        for _, right, trials in points
        for count in (right, trials - right)
        if count
    )


def best_through(points: Sequence[Point], length: float, logit: float) -> float:
    """Return the greatest log-likelihood of a curve that never rises and has this logit at this length."""
    shifted = [(x - length, r, n) for x, r, n in points]
    if _along_slope(shifted, logit, 0.0)[0] >= 0:
        return log_likelihood(shifted, logit, 0.0)
    gaps = [abs(x) for x, _, _ in shifted if abs(x) > _CLOSE]
    low, high = -_STEEPEST / min(gaps), 0.0
    slope = -1 / max(gaps)
    for _ in range(_STEPS):
        along, information = _along_slope(shifted, logit, slope)
        low, high = (low, slope) if along < 0 else (slope, high)
        step = along / information if information > 0 else 0.0
        to = slope + step
        if not low < to < high:
            to = (low + high) / 2
        if abs(to - slope) < 1e-6 * abs(slope) or high - low < 1e-6 * -low:
            break
        slope = to
    return log_likelihood(shifted, logit, slope)


def share_of(logit: float) -> float:
    """Return the share whose logit this is."""
    return 1 / (1 + exp(min(-logit, 700.0)))


def _derivatives(
    points: Sequence[Point], level: float, slope: float
) -> tuple[float, float, tuple[float, float, float]]:
    """Return the two first derivatives and the information: of the level, across, of the slope."""
    along_level = along_slope = of_level = across = of_slope = 0.0
    for x, successes, trials in points:
        share = share_of(level + slope * x)
        residual, weight = successes - trials * share, trials * share * (1 - share)
        along_level += residual
        along_slope += residual * x
        of_level += weight
        across += weight * x
        of_slope += weight * x * x
    return along_level, along_slope, (of_level, across, of_slope)


def _along_slope(points: Sequence[Point], level: float, slope: float) -> tuple[float, float]:
    along = information = 0.0
    for x, successes, trials in points:
        share = 1 / (1 + exp(min(-level - slope * x, 700.0)))  # `share_of`, without a call: most of a fit
        along += (successes - trials * share) * x
        information += trials * share * (1 - share) * x * x
    return along, information


def _inverse(information: tuple[float, float, float]) -> tuple[float, float, float]:
    of_level, across, of_slope = information
    determinant = of_level * of_slope - across * across
    return of_slope / determinant, -across / determinant, of_level / determinant
