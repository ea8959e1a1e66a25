"""Shares of trials, never without their denominator, and how far they can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from asyncbench.records import Outcome

Z_95 = 1.959963984540054  # the 97.5 % point of the standard normal
LOUD = 0.01  # above this share of lost trials a figure is not shown without a warning


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What a group of trials says about a model: over which trials, and what the lost ones could change.

    Lost are trials that tell nothing of the model: failed (no reply) and truncated (a reply cut short).
    """

    correct: int
    wrong: int
    lost: int
    trials: int

    @classmethod
    def of(cls, outcomes: Mapping[str, int]) -> "Accuracy":
        """Return it for the trials of each outcome."""
        return cls(
            correct=outcomes.get(Outcome.CORRECT, 0),
            wrong=outcomes.get(Outcome.WRONG, 0),
            lost=outcomes.get(Outcome.FAILED, 0) + outcomes.get(Outcome.TRUNCATED, 0),
            trials=sum(outcomes.values()),
        )

    @property
    def over_all(self) -> Proportion:
        """Correct of all trials: whatever is no right answer counts against the model."""
        return Proportion(successes=self.correct, trials=self.trials)

    @property
    def over_answered(self) -> Proportion:
        """Correct of the trials in whose reply an answer was read."""
        return Proportion(successes=self.correct, trials=self.correct + self.wrong)

    @property
    def lowest(self) -> float | None:
        """The accuracy over all if each lost trial had been wrong, in [0, 1]; None without trials."""
        return self.over_all.share

    @property
    def highest(self) -> float | None:
        """The accuracy over all if each lost trial had been right, in [0, 1]; None without trials."""
        return Proportion(successes=self.correct + self.lost, trials=self.trials).share

    @property
    def lost_share(self) -> float | None:
        """Lost of all trials, in [0, 1]; None without trials."""
        return Proportion(successes=self.lost, trials=self.trials).share

    @property
    def loud(self) -> bool:
        """Whether so many were lost (more than 1 %) that the figure must not stand without saying so."""
        return self.lost > LOUD * self.trials
