"""Statistics of results: small, exact, no dependency."""

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054  # the 97.5 % point of the standard normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A share with its 95 % interval; None without trials."""

    successes: int
    trials: int

    @property
    def share(self) -> float | None:
        """Successes over trials, in [0, 1]."""
        return self.successes / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval (Wilson 1927), in [0, 1]: honest near 0 and 1, unlike ±1.96 s.e."""
        if not self.trials:
            return None
        n, p, z2 = self.trials, self.successes / self.trials, Z_95**2
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        # Exactly 0 and 1 at the ends, where rounding would miss them by a hair.
        low = 0.0 if self.successes == 0 else centre - half
        return low, 1.0 if self.successes == n else centre + half


def quantile(sorted_values: list[float], q: float) -> float | None:
    """Return the q-quantile (0 ≤ q ≤ 1) of ascending values, linear between neighbours; None of none."""
    if not sorted_values:
        return None
    place = q * (len(sorted_values) - 1)
    below = int(place)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (sorted_values[above] - sorted_values[below]) * (place - below)
