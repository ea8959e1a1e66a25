"""What calls took or cost, as two kinds of pieces: seconds of calls and tokens, USD of input and output."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

Point = tuple[float, float, float]  # so many pieces of a kind, of the other, and the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StraightLine:
    """What a piece of either kind takes, never less than nothing."""

    first: float
    second: float
    error: float  # of the mean of all points, as a share of it: one standard deviation

    @classmethod
    def through(cls, points: Iterable[Point]) -> Self | None:
        """Return the least squares fit, which keeps the sum of all points; None where nothing tells."""
        known = list(points)
        first, second = _solved(known)
        fitted = sum(first * x + second * y for x, y, _ in known)
        whole = sum(z for _, _, z in known)
        if not known or (whole > 0 and fitted <= 0):
            return None
        scale = whole / fitted if fitted > 0 else 0.0
        first, second = first * scale, second * scale
        squares = sum((z - first * x - second * y) ** 2 for x, y, z in known)
        error = math.sqrt(squares / max(len(known) - 2, 1) * len(known)) / whole if whole > 0 else 0.0
        return cls(first=first, second=second, error=error)


def _solved(points: list[Point]) -> tuple[float, float]:
    """Return the two slopes; where one would be below zero, the other explains it all."""
    xx, yy, xy = (sum(p[i] * p[j] for p in points) for i, j in ((0, 0), (1, 1), (0, 1)))
    xz, yz = (sum(p[i] * p[2] for p in points) for i in (0, 1))
    determinant = xx * yy - xy * xy
    if determinant > 1e-9 * xx * yy:
        first, second = (xz * yy - yz * xy) / determinant, (yz * xx - xz * xy) / determinant
        if first >= 0 and second >= 0:
            return first, second
        if first < 0 and yy:
            return 0.0, yz / yy
    return (xz / xx, 0.0) if xx else (0.0, yz / yy if yy else 0.0)
