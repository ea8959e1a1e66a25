"""A figure that is not known yet: its median, and what nine of ten forecasts lie between."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Range:
    """The 5th, 50th and 95th percentile of a figure."""

    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, draws: Iterable[float]) -> Self:
        """Return the range of draws, of which there is at least one; each percentile is one of them."""
        ordered = sorted(draws)
        last = len(ordered) - 1
        return cls(*(ordered[round(last * share)] for share in (0.05, 0.5, 0.95)))

    def holds(self, value: float) -> bool:
        """Whether a value is within nine of ten."""
        return self.p5 <= value <= self.p95
