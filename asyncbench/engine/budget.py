"""The ledger of a sweep: what may be spent, what was, and what calls in flight may still cost. Pure.

Money is counted in whole picodollars (`pricing.picodollars`). Prices have at most six places for a million
tokens, so a price times tokens is whole, and sums are exact in any order: no rounding can pass a cap. What is
finer is rounded up where it is spent, and down where it is a limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, sqrt
from typing import Final, NamedTuple

from asyncbench.engine.telemetry import Counters
from asyncbench.pricing import dollars_of, picodollars
from asyncbench.records import Request

AS_BOUND: Final = Fraction(1)
AHEAD: Final = 0.02  # of its trials that a model may be ahead of another, while money is short
AHEAD_TRIALS: Final = 4  # that it may be ahead in any case
SURE: Final = 0.5  # of what is left that is shared out at once: trials may turn out dearer than so far
KNOWN_TRIALS: Final = 8  # of a model that tell what its others will cost
LOOKS: Final = 8  # of one model at how far others are, before they are counted anew

Most = Callable[[Request, float], int]  # picodollars that a call may cost, sent then (UTC)


@dataclass(slots=True, kw_only=True, eq=False)
class Cap:
    """The most that some models together may cost, picodollars."""

    kind: str  # sweep, provider or model
    of: str  # its name
    limit: int
    spent: int = 0  # by earlier runs, too; calls of unknown cost count with all that was set aside for them
    reserved: int = 0  # for calls in flight
    unknown: int = 0  # of it: the most that calls may have cost for which no budget set anything aside
    shared_by: int = 0  # models
    level: float = inf  # how far all get with the money, as last seen; inf: there was enough for all
    looks: int = 0  # for which that is good enough: who shares a cap need not look at each other every time

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"{self.kind} {self.of}"

    def fits(self, amount: int) -> bool:
        """Whether so much more may be set aside now."""
        return self.spent + self.reserved + amount <= self.limit

    def ever_fits(self, amount: int) -> bool:
        """Whether so much more might be set aside, were all calls in flight to cost nothing."""
        return self.spent + amount <= self.limit


class Standing(NamedTuple):
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


def level(standings: Sequence[Standing], money: float) -> float:
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


def _turns(one: Standing) -> tuple[tuple[float, float], ...]:
    """Return where a model begins to use money while the level rises, and where it ends."""
    slope = one.cost * one.planned
    end = one.share + min(one.room, one.planned - one.begun) / one.planned
    return ((one.share, slope),) if slope == inf else ((one.share, slope), (end, -slope))


def ahead(own: Standing, others: Sequence[Standing], at: float) -> bool:
    """Whether a model should wait for others: another trial is beyond its fair part, and one is behind."""
    behind = min((one.share for one in others if one.room > 0 and one.cost > 0), default=inf)
    return own.share + 1 / own.planned > at and own.share > behind + own.slack


class Hold(NamedTuple):
    """What is set aside for one call, picodollars."""

    most: int  # it may cost by its bounds
    amount: int  # the same, raised where bounds like it were passed before


NOTHING: Final = Hold(0, 0)
ABSENT: Final = Standing(begun=1, planned=1, cost=0.0, room=0.0)


class Ledger:
    """All caps of a sweep, and who waits for what they give back."""

    def __init__(self, caps: Iterable[Cap]) -> None:
        self.caps = tuple(caps)
        self.accounts: list[Account] = []
        self.ends_s = inf  # on the clock of whoever asks: nothing is begun after it
        self._waiting: set[Callable[[], None]] = set()

    def open(
        self,
        model: str,
        caps: Sequence[Cap],
        most: Most,
        *,
        spent: int = 0,
        ratio: Fraction = AS_BOUND,
        least: int = 0,
    ) -> "Account":
        """Return the account of a model.

        Args:
            model: its alias.
            caps: those that hold it; what was spent under them before is theirs to know.
            most: what a call of it may cost.
            spent: by its calls before.
            ratio: by which bounds are raised.
            least: what is set aside where the bound is 0.
        """
        account = Account(
            model=model, ledger=self, caps=caps, most=most, spent=spent, ratio=ratio, least=least
        )
        for cap in caps:
            cap.shared_by += 1
        self.accounts.append(account)
        return account

    def account_of(self, model: str) -> "Account | None":
        """Return the account of a model by its alias; None: no cap holds it."""
        return next((one for one in self.accounts if one.model == model), None)

    def described(self) -> list[dict[str, object]]:
        """Return each cap with the models under it, as the manifest of a folder holds them."""
        return [
            {
                "kind": cap.kind,
                "of": cap.of,
                "limit_usd": dollars_of(cap.limit),
                "unknown_usd": dollars_of(cap.unknown),
                "models": [one.model for one in self.accounts if cap in one.caps],
            }
            for cap in self.caps
        ]

    def wake_on_change(self, wake: Callable[[], None]) -> None:
        """Call this once, as soon as anything is settled or a model gives up."""
        self._waiting.add(wake)

    def changed(self) -> None:
        """Wake who waits."""
        while self._waiting:
            self._waiting.pop()()


@dataclass(slots=True, kw_only=True, eq=False)
class Account:
    """What one model may spend: as much as every cap it is under allows."""

    model: str  # its alias
    ledger: Ledger
    caps: Sequence[Cap]
    most: Most
    spent: int = 0  # picodollars, by earlier runs too
    reserved: int = 0
    overruns: int = 0  # calls that cost more than was set aside for them
    ratio: Fraction = AS_BOUND  # by which bounds are raised: the largest by which one was passed
    least: int = 0  # what is set aside where the bound is 0: the dearest call that should have been free
    bound_by: Sequence[Cap] = ()  # those for which it was left before its work was done
    _told: bool = False
    _latest: int | None = None  # what was last to be set aside for a call
    _before: int = 0  # spent by earlier runs
    _counters: Counters | None = None  # None: it is not asked in this run
    _asks: Callable[[], bool] = bool
    _now_s: Callable[[], float] = float
    _joined_s: float = 0.0

    def hold(self, request: Request, at: float) -> Hold:
        """Return what has to be set aside for a call that is sent at `at`, UTC."""
        most = self.most(request, at)
        hold = Hold(most, (most if self.ratio == AS_BOUND else ceil(most * self.ratio)) or self.least)
        self._latest = hold.amount
        return hold

    def fits(self, hold: Hold) -> bool:
        """Whether it may be set aside now. What costs nothing always may, even where a cap was passed."""
        return not hold.amount or all(cap.fits(hold.amount) for cap in self.caps)

    def ever_fits(self, hold: Hold) -> bool:
        """Whether it may be set aside once calls in flight have ended, if they cost little."""
        return not hold.amount or all(cap.ever_fits(hold.amount) for cap in self.caps)

    def reserve(self, hold: Hold) -> bool:
        """Set it aside under every cap, or under none."""
        if not self.fits(hold):
            return False
        self.reserved += hold.amount
        for cap in self.caps:
            cap.reserved += hold.amount
        return True

    def settle(self, hold: Hold, actual_usd: float | None) -> None:
        """Charge what a call cost in place of what was set aside; None, unknown: all of it."""
        actual = hold.amount if actual_usd is None else picodollars(actual_usd)
        self.reserved -= hold.amount
        self.spent += actual
        for cap in self.caps:
            cap.reserved -= hold.amount
            cap.spent += actual
        if actual > hold.amount:
            self.overruns += 1
            if hold.most:
                self.ratio = max(self.ratio, Fraction(actual, hold.most))
            else:
                self.least = max(self.least, actual)
        self.ledger.changed()

    # ── beside other models ──────────────────────────────────────────────────────────────────

    def stop(self, hold: Hold) -> None:
        """Note who left no room for a call, ever; others may have what was set aside for this model."""
        self.bound_by = [cap for cap in self.caps if not cap.ever_fits(hold.amount)]
        self.ledger.changed()

    def join(
        self, counters: Counters, *, asks: Callable[[], bool], now_s: Callable[[], float] = float
    ) -> None:
        """Take part in a run.

        Args:
            counters: of the model.
            asks: whether it would begin another trial soon.
            now_s: the clock of `Ledger.ends_s`.
        """
        self._counters, self._asks, self._before = counters, asks, self.spent
        self._now_s, self._joined_s = now_s, now_s()

    def ahead(self) -> bool:
        """Whether a trial of this model would cost what is set aside for others who share a cap."""
        return self._counters is not None and any(map(self._ahead_under, self.caps))

    def _ahead_under(self, cap: Cap) -> bool:
        if cap.shared_by == 1:
            return False
        own = self._standing(asks=True)
        if cap.looks and own.share + 1 / own.planned <= cap.level:
            cap.looks -= 1
            return False
        sharing = [one for one in self.ledger.accounts if one is not self and cap in one.caps]
        others = [one.standing() for one in sharing]
        in_flight = self._in_flight_cost() + sum(one._in_flight_cost() for one in sharing)
        # The last call needs room for all that it may cost: so much will be left over.
        over = max(one._latest or 0 for one in (self, *sharing))
        left = cap.limit - cap.spent - in_flight - over
        enough = level((own, *others), left) == inf
        cap.level = inf if enough else level((own, *others), SURE * left)
        cap.looks = LOOKS + len(others)
        return ahead(own, others, cap.level)

    def standing(self) -> Standing:
        """Return how far the model is."""
        return self._standing(asks=self._asks())

    def _standing(self, *, asks: bool) -> Standing:
        counters = self._counters
        if counters is None or counters.planned == 0:
            return ABSENT
        begun = min(counters.planned, counters.done + counters.skipped + counters.in_flight)
        cost = 0.0 if self._latest == 0 else self._cost(counters)  # 0: it waits for nobody's money
        return Standing(begun, counters.planned, cost, room=self._room(counters) if asks else 0.0)

    def _room(self, counters: Counters) -> float:
        """Return how many trials it will begin before the end of the run, at its pace so far."""
        closed = counters.outcomes.total()
        if self.ledger.ends_s == inf or not closed:
            return inf
        at_s = self._now_s()
        a_second = closed / max(at_s - self._joined_s, 1.0)
        return max(0.0, self.ledger.ends_s - at_s) * a_second

    def _cost(self, counters: Counters) -> float:
        """Return what a trial costs, picodollars: as those of this run did, and before some did, at most.

        The fewer there were, the more is added for what their mean may be wrong by.
        """
        closed = counters.outcomes.total()
        if closed >= KNOWN_TRIALS:
            return (self.spent - self._before) / closed * (1 + 1 / sqrt(closed))
        if self._latest is None:
            return inf
        return max(float(self._latest), self.reserved / max(1, counters.in_flight))

    def _in_flight_cost(self) -> float:
        """Return what calls in flight will probably cost, picodollars."""
        counters = self._counters
        if counters is None or not counters.in_flight:
            return 0.0
        return min(float(self.reserved), counters.in_flight * self._cost(counters))

    def news(self) -> str | None:
        """Return, once, what a person should hear of calls that cost more than they could."""
        if self._told or not self.overruns:
            return None
        self._told = True
        if self.least:
            return (
                f"a call cost ${dollars_of(self.least):,.4f} and should have been free by its price: its "
                "provider bills by other rules. It is charged in full, and from now on as much is set aside "
                "for each call of this model"
            )
        return (
            f"a call cost {float(self.ratio):,.2f} times the most that its max_tokens and price allow: "
            "its provider bills by other rules. It is charged in full, and from now on that much more is set "
            "aside for each call of this model; calls in flight may still pass the budget"
        )
