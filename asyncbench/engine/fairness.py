"""Who may begin another trial while money is short: models that share a cap get equally far. Spends nothing.

`level` and `ahead` are the rule, of figures alone; a `Runner` takes the figures of one model from its
counters, its account and a clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final, NamedTuple, Protocol

from asyncbench.engine.telemetry import Counters

AHEAD: Final = 0.02  # of its trials that a model may be ahead of another, while money is short
AHEAD_TRIALS: Final = 4  # that it may be ahead in any case
SURE: Final = 0.5  # of what is left that is shared out at once: trials may turn out dearer than so far
KNOWN_TRIALS: Final = 8  # of a model that tell what its others will cost
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


# ── the rule ─────────────────────────────────────────────────────────────────────────────────


def level(standings: Sequence[ModelProgress], money: float) -> float:
    """Return how far all get with the money, as a share of their trials; inf: it does for all.

    Each gets there, or as far as it has room; who is farther already gets nothing. Where somebody's cost is
    not known nobody gets farther than that one is.
    """
    turns = sorted(turn for one in standings if one.room > 0 and one.cost > 0 for turn in _turns(one))
    at, slope = 0.0, 0.0
    for share, change in turns:
        if slope > 0 and money < slope * (share - at):
            return at + max(0.0, money) / slope
        money -= slope * (share - at)
        at, slope = share, slope + change
        if slope == inf:
            return at
    return inf


def _turns(one: ModelProgress) -> tuple[tuple[float, float], ...]:
    """Return where a model begins to use money while the level rises, and where it ends."""
    slope = one.cost * one.planned
    end = one.share + min(one.room, one.planned - one.begun) / one.planned
    return ((one.share, slope),) if slope == inf else ((one.share, slope), (end, -slope))


def ahead(own: ModelProgress, others: Sequence[ModelProgress], at: float) -> bool:
    """Whether a model should wait for others: another trial is beyond its fair part, and one is behind."""
    behind = min((one.share for one in others if one.room > 0 and one.cost > 0), default=inf)
    return own.share + 1 / own.planned > at and own.share > behind + own.slack


# ── the figures it is applied to ─────────────────────────────────────────────────────────────


class Purse(Protocol):
    """What of a model's account its standing is told from."""

    @property
    def spent(self) -> int:
        """Picodollars, by earlier runs too."""

    @property
    def reserved(self) -> int:
        """Picodollars, for calls in flight."""

    @property
    def latest(self) -> int | None:
        """What was last to be set aside for a call; None: there was none."""


class Runner:
    """One model of a run, as those see it who share money with it."""

    def __init__(
        self, counters: Counters, purse: Purse, *, asks: Callable[[], bool], now_s: Callable[[], float]
    ) -> None:
        """Begin now.

        Args:
            counters: of the model.
            purse: its account.
            asks: whether it would begin another trial soon.
            now_s: the clock by which runs end.
        """
        self._counters, self._purse, self._asks, self._now_s = counters, purse, asks, now_s
        self._before, self._began_s = purse.spent, now_s()

    def standing(self, ends_s: float, *, asks: bool | None = None) -> ModelProgress:
        """Return how far the model is; `asks`: whether it would go on, where that is known.

        Args:
            ends_s: when nothing more is begun; inf: never.
            asks: as told, instead of what the model says.
        """
        counters = self._counters
        if counters.planned == 0:
            return ABSENT
        begun = min(counters.planned, counters.done + counters.skipped + counters.in_flight)
        cost = 0.0 if self._purse.latest == 0 else self._cost()  # 0: it waits for nobody's money
        goes_on = self._asks() if asks is None else asks
        return ModelProgress(begun, counters.planned, cost, room=self._room(ends_s) if goes_on else 0.0)

    def in_flight_cost(self) -> float:
        """Return what calls in flight will probably cost, picodollars."""
        if not self._counters.in_flight:
            return 0.0
        return min(float(self._purse.reserved), self._counters.in_flight * self._cost())

    def _room(self, ends_s: float) -> float:
        """Return how many trials it will begin before the end of the run, at its pace so far."""
        closed = self._counters.outcomes.total()
        if ends_s == inf or not closed:
            return inf
        at_s = self._now_s()
        a_second = closed / max(at_s - self._began_s, 1.0)
        return max(0.0, ends_s - at_s) * a_second

    def _cost(self) -> float:
        """Return what a trial costs, picodollars: as those of this run did, and before some did, at most.

        The fewer there were, the more is added for what their mean may be wrong by.
        """
        counters, purse = self._counters, self._purse
        closed = counters.outcomes.total()
        if closed >= KNOWN_TRIALS:
            return (purse.spent - self._before) / closed * (1 + 1 / sqrt(closed))
        if purse.latest is None:
            return inf
        return max(float(purse.latest), purse.reserved / max(1, counters.in_flight))


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
