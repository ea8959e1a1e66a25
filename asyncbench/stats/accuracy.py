"""Accuracy never without its denominator."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncbench.records import Outcome
from asyncbench.stats.proportions import Proportion

LOUD = 0.01  # above this share of lost trials a figure is not shown without a warning


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
