"""Figures that are only partly known: sums, ranges, and a straight line through the calls seen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Generic, NamedTuple, Self, TypeVar

Number = TypeVar("Number", float, "Range")


def total(parts: Iterable[float | None]) -> float | None:
    """Return the sum; None where a part of it is unknown."""
    values = list(parts)
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Range:
    """The 5th, 50th and 95th percentile of a figure: nine of ten forecasts lie between the outer two."""

    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, draws: Iterable[float]) -> Self:
        """Return the range of draws, of which there is at least one; each percentile is one of them."""
        ordered = sorted(draws)
        last = len(ordered) - 1
        return cls(*(ordered[round(last * share)] for share in (0.05, 0.5, 0.95)))

    @classmethod
    def of_known(cls, draws: Iterable[float | None]) -> Self | None:
        """Return the range of draws; None where one of them is unknown."""
        values = list(draws)
        known = [value for value in values if value is not None]
        return cls.of(known) if len(known) == len(values) else None

    def holds(self, value: float) -> bool:
        """Return whether a value is within the 90 % range."""
        return self.p5 <= value <= self.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensAndCost(Generic[Number]):
    """The tokens and the cost of trials: used, or as a range of the forecast."""

    input_tokens: Number
    output_tokens: Number
    cost_usd: Number | None  # None: unknown


class Needs(NamedTuple):
    """The tokens and dollars of some trials: used, guessed, or drawn once."""

    trials: int = 0
    input_tokens: float = 0
    output_tokens: float = 0
    latency_s: float | None = 0  # of all calls, one after the other; None: no trial tells
    cost_usd: float | None = 0  # None: no price is known
    batch_usd: float | None = 0  # the same calls in a batch; None: no such price is known

    @classmethod
    def of_all(cls, several: Iterable[Self]) -> Self:
        """Return what several take together."""
        return cls._make(map(total, zip(cls(), *several, strict=True)))


class StraightLine(NamedTuple):
    """What a piece of either of two kinds takes, never less than nothing: a call and a token, in seconds."""

    first: float
    second: float
    error: float  # of the mean of all points, as a share of it: one standard deviation

    @classmethod
    def through(cls, points: Iterable[tuple[float, float, float]]) -> Self | None:
        """Return the least squares fit, which keeps the sum of all points; None where nothing tells.

        Args:
            points: so many pieces of a kind, of the other, and what they took.
        """
        known = list(points)
        xs, ys, zs = zip(*known, strict=True) if known else ((), (), ())
        first, second = _slopes(xs, ys, zs)
        fitted = sum([first * x + second * y for x, y in zip(xs, ys, strict=True)])
        whole = sum(zs)
        if not known or (whole > 0 and fitted <= 0):
            return None
        scale = whole / fitted if fitted > 0 else 0.0
        first, second = first * scale, second * scale
        squares = sum([(z - first * x - second * y) ** 2 for x, y, z in known])
        error = math.sqrt(squares / max(len(known) - 2, 1) * len(known)) / whole if whole > 0 else 0.0
        return cls(first, second, error)


def _slopes(xs: Sequence[float], ys: Sequence[float], zs: Sequence[float]) -> tuple[float, float]:
    """Return the two slopes; where one would be below zero, the other explains it all."""
    xx, yy, xy = sum(map(mul, xs, xs)), sum(map(mul, ys, ys)), sum(map(mul, xs, ys))
    xz, yz = sum(map(mul, xs, zs)), sum(map(mul, ys, zs))
    determinant = xx * yy - xy * xy
    if determinant > 1e-9 * xx * yy:
        first, second = (xz * yy - yz * xy) / determinant, (yz * xx - xz * xy) / determinant
        if first >= 0 and second >= 0:
            return first, second
        if first < 0 and yy:
            return 0.0, yz / yy
    return (xz / xx, 0.0) if xx else (0.0, yz / yy if yy else 0.0)
