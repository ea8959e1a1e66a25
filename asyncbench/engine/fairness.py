"""Who may begin another trial while money is short: models that share a cap get equally far.

This is the rule, of figures alone; an `Account` knows those of its model. It spends nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

AHEAD: Final = 0.02  # of its trials that a model may be ahead of another, while money is short
AHEAD_TRIALS: Final = 4  # that it may be ahead in any case
SURE: Final = 0.5  # of what is left that is shared out at once: trials may turn out dearer than so far
LOOKS: Final = 8  # of one model at how far others are, before they are counted anew


class ModelProgress(NamedTuple):
    """How far a model is, and what it can do with money."""

    begun: int  # trials
    planned: int
    cost: float  # picodollars that a trial will probably cost; inf: nobody knows
    room: float  # trials that it can still begin: none that stopped, fewer before a deadline

    @property
    def share(self) -> float:
        """Of its trials that were begun."""
        return self.begun / self.planned

    @property
    def slack(self) -> float:
        """How far it may be ahead of others in any case."""
        return max(AHEAD, AHEAD_TRIALS / self.planned)


ABSENT: Final = ModelProgress(begun=1, planned=1, cost=0.0, room=0.0)


def level(models: Sequence[ModelProgress], money: float) -> float:
    """Return how far all get with the money, as a share of their trials; inf: it does for all.

    Each gets there, or as far as it has room; who is farther already gets nothing. Where somebody's cost is
    not known nobody gets farther than that one is.
    """
    # Where each begins to use money while the level rises, and where it ends: (share, change of slope).
    turns = []
    for model in models:
        if model.room > 0 and model.cost > 0:
            slope = model.cost * model.planned
            turns.append((model.share, slope))
            if slope < inf:
                end = model.share + min(model.room, model.planned - model.begun) / model.planned
                turns.append((end, -slope))
    at, slope = 0.0, 0.0
    for share, change in sorted(turns):
        if slope > 0 and money < slope * (share - at):
            return at + max(0.0, money) / slope
        money -= slope * (share - at)
        at, slope = share, slope + change
        if slope == inf:
            return at
    return inf


def ahead(own: ModelProgress, others: Sequence[ModelProgress], at: float) -> bool:
    """Whether a model should wait for others: another trial is beyond its fair part, and one is behind."""
    behind = min((model.share for model in others if model.room > 0 and model.cost > 0), default=inf)
    return own.share + 1 / own.planned > at and own.share > behind + own.slack


@dataclass(slots=True)
class Shared:
    """How far those get who share a cap, as last seen: they need not look at each other every time."""

    level: float = inf  # as a share of their trials; inf: there was enough for all
    looks: int = 0  # for which that is good enough

    def near(self, own: ModelProgress) -> bool:
        """Whether another trial is within what was last seen, seen not long ago."""
        if self.looks and own.share + 1 / own.planned <= self.level:
            self.looks -= 1
            return True
        return False

    def ahead(self, own: ModelProgress, others: Sequence[ModelProgress], left: float) -> bool:
        """Look anew: whether a model should wait for the others with `left` picodollars for all of them."""
        enough = level((own, *others), left) == inf
        self.level = inf if enough else level((own, *others), SURE * left)
        self.looks = LOOKS + len(others)
        return ahead(own, others, self.level)
