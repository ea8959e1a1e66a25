"""A share of trials and how far it can be trusted."""

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054  # the 97.5 % point of the standard normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A share with its 95 % interval; None without trials."""

    successes: int
    trials: int
    repeats: float = 1.0  # times that each problem was asked: in the interval it counts once

    @property
    def share(self) -> float | None:
        """Successes over trials, in [0, 1]."""
        return self.successes / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval, in [0, 1]."""
        return wilson(self.successes / self.trials, self.trials / self.repeats) if self.trials else None


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson 1927), in [0, 1]: honest near 0 and 1, unlike ±1.96 s.e.

    `trials`: how many independent ones the share is worth, above 0; need not be whole.
    """
    z2 = Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 * sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    # Exactly 0 and 1 at the ends, where rounding would miss them by a hair.
    return 0.0 if share == 0 else centre - half, 1.0 if share == 1 else centre + half
