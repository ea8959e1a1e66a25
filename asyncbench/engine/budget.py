"""The budget of a sweep: caps, the account of each model, and fairness while money is short.

A run opens it with what was spent before; calls reserve and settle. An `Account` learns from dearer bills
than could be, and wakes who waits for money. While money is short, `fairness` decides which model goes on.

Money is counted in whole picodollars (`pricing.picodollars`). Prices have at most six places for a million
tokens, so a price times tokens is whole, and sums are exact in any order: no rounding can pass a cap. What is
finer is rounded up where it is spent, and down where it is a limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf, sqrt
from typing import Final, NamedTuple

from asyncbench.engine.telemetry import Counters
from asyncbench.pricing import dollars_of, picodollars
from asyncbench.records import Request

# ── Fairness: while money is short, models that share a cap get equally far
# This is the rule, of figures alone; an `Account` knows those of its model. It spends nothing.


AHEAD: Final = 0.02  # of its trials that a model may be ahead of another, while money is short
AHEAD_TRIALS: Final = 4  # that it may be ahead in any case
SURE: Final = 0.5  # of what is left that is shared out at once: trials may turn out dearer than so far
REUSES: Final = 8  # of a level by one model, before it is worked out anew


class ModelProgress(NamedTuple):
    """The progress of a model, and the trials that it can still begin."""

    begun: int  # trials
    planned: int
    cost: float  # picodollars that a trial will probably cost; inf: nobody knows
    room: float  # trials that it can still begin: none that stopped, fewer before a deadline

    @property
    def share(self) -> float:
        """The share of its trials that were begun."""
        return self.begun / self.planned

    @property
    def slack(self) -> float:
        """The share by which it may be ahead of others in any case."""
        return max(AHEAD, AHEAD_TRIALS / self.planned)


ABSENT: Final = ModelProgress(begun=1, planned=1, cost=0.0, room=0.0)


def level(models: Sequence[ModelProgress], money: float) -> float:
    """Return how far all get with the money, as a share of their trials; inf: it does for all.

    Each gets there, or as far as it has room; who is farther already gets nothing. Where somebody's cost is
    not known nobody gets farther than that one is.
    """
    # Where each begins to use money while the level rises, and where it ends: (share, change of slope).
    changes = []
    for model in models:
        if model.room > 0 and model.cost > 0:
            slope = model.cost * model.planned
            changes.append((model.share, slope))
            if slope < inf:
                end = model.share + min(model.room, model.planned - model.begun) / model.planned
                changes.append((end, -slope))
    reached, slope = 0.0, 0.0
    for share, change in sorted(changes):
        if slope > 0 and money < slope * (share - reached):
            return reached + max(0.0, money) / slope
        money -= slope * (share - reached)
        reached, slope = share, slope + change
        if slope == inf:
            return reached
    return inf


def ahead(model: ModelProgress, others: Sequence[ModelProgress], fair_share: float) -> bool:
    """Whether a model should wait for others: another trial is beyond its fair part, and one is behind."""
    behind = min((rival.share for rival in others if rival.room > 0 and rival.cost > 0), default=inf)
    return model.share + 1 / model.planned > fair_share and model.share > behind + model.slack


@dataclass(slots=True)
class FairLevel:
    """The level that models who share a cap can all reach; it is reused for a few trials."""

    level: float = inf  # as a share of their trials; inf: there was enough for all
    reuses: int = 0  # for which that is good enough

    def near(self, model: ModelProgress) -> bool:
        """Whether another trial is within what was last seen, seen not long ago."""
        if self.reuses and model.share + 1 / model.planned <= self.level:
            self.reuses -= 1
            return True
        return False

    def ahead(self, model: ModelProgress, others: Sequence[ModelProgress], remaining: float) -> bool:
        """Whether a model should wait for the others with `remaining` picodollars for all of them."""
        enough = level((model, *others), remaining) == inf
        self.level = inf if enough else level((model, *others), SURE * remaining)
        self.reuses = REUSES + len(others)
        return ahead(model, others, self.level)


# ── Caps and accounts


AS_BOUND: Final = Fraction(1)
KNOWN_TRIALS: Final = 8  # of a model that tell what its others will cost

CostBound = Callable[[Request, float], int]  # picodollars that a call may cost, sent then (UTC)


@dataclass(slots=True, kw_only=True, eq=False)
class Cap:
    """The most that some models together may cost, picodollars."""

    kind: str  # sweep, provider or model
    of: str  # its name
    limit: int
    spent: int = 0  # by earlier runs, too; calls of unknown cost count with all that was set aside for them
    reserved: int = 0  # for calls in flight
    unknown: int = 0  # of it: the most that calls may have cost for which no budget set anything aside
    unknown_calls: int = 0  # those calls
    doubted: int = 0  # of `spent`: the most that all calls of unknown cost may have cost, those with them
    doubted_calls: int = 0  # those calls
    also: Sequence[str] = ()  # of a model's cap: aliases that left the sweep and named the same model
    shared_by: int = 0  # models
    fair_level: FairLevel = field(default_factory=FairLevel)  # how far they all get
    typed: str = "budget_usd"  # the option or key by which the sweep's own was set

    @property
    def name(self) -> str:
        """Its kind and name."""
        return f"{self.kind} {self.of}"

    @property
    def label(self) -> str:
        """The option or key that a person typed to set it."""
        return self.typed if self.kind == "sweep" else f"budget_usd of {self.name}"

    def fits(self, amount: int) -> bool:
        """Whether so much more may be set aside now."""
        return self.spent + self.reserved + amount <= self.limit

    def ever_fits(self, amount: int) -> bool:
        """Whether so much more might be set aside, were all calls in flight to cost nothing."""
        return self.spent + amount <= self.limit


class Hold(NamedTuple):
    """The money set aside for one call, picodollars."""

    most: int  # it may cost by its bounds
    amount: int  # the same, raised where bounds like it were passed before


NOTHING: Final = Hold(0, 0)


class Ledger:
    """All caps of a sweep, and who waits for what they give back."""

    def __init__(self, caps: Iterable[Cap]) -> None:
        self.caps = tuple(caps)
        self.accounts: list[Account] = []
        self.ends_s = inf  # on the clock of whoever asks: nothing is begun after it
        self._waiting: dict[Callable[[], None], None] = {}  # in order

    def open(
        self,
        model: str,
        caps: Sequence[Cap],
        most: CostBound,
        *,
        spent: int = 0,
        ratio: Fraction = AS_BOUND,
        least: int = 0,
    ) -> "Account":
        """Return the account of a model under caps, which know what was spent under them; see `Account`."""
        account = Account(
            model=model, ledger=self, caps=caps, most=most, spent=spent, ratio=ratio, least=least
        )
        for cap in caps:
            cap.shared_by += 1
        self.accounts.append(account)
        return account

    def account_of(self, model: str) -> "Account | None":
        """Return the account of a model by its alias, or None if no cap holds it."""
        return next((account for account in self.accounts if account.model == model), None)

    def described(self) -> list[dict[str, object]]:
        """Return each cap with the models under it, as the manifest of a folder holds them."""
        return [
            {
                "kind": cap.kind,
                "of": cap.of,
                "limit_usd": dollars_of(cap.limit),
                "unknown_usd": dollars_of(cap.unknown),
                "unknown_calls": cap.unknown_calls,
                "also": list(cap.also),
                "models": [account.model for account in self.accounts if cap in account.caps],
            }
            for cap in self.caps
        ]

    def wake_on_change(self, wake: Callable[[], None]) -> None:
        """Call this once, as soon as anything is settled or a model gives up."""
        self._waiting[wake] = None

    @property
    def lacked_for(self) -> str:
        """The thing that had no room in it, in words: a call or a batch."""
        return max(
            (account.lacked_for for account in self.accounts if account.bound_by), key=len, default="call"
        )

    def changed(self) -> None:
        """Wake who waits."""
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()


class _Runner(NamedTuple):
    """The model of an account while it takes part in a run."""

    counters: Counters
    asks: Callable[[], bool]
    now_s: Callable[[], float]
    began_s: float
    before: int  # what it had spent then, picodollars


@dataclass(slots=True, kw_only=True, eq=False)
class Account:
    """The money of one model: it may spend as much as every cap it is under allows."""

    model: str  # its alias
    ledger: Ledger
    caps: Sequence[Cap]
    most: CostBound
    spent: int = 0  # picodollars, by earlier runs too
    reserved: int = 0
    overruns: int = 0  # calls that cost more than was set aside for them
    ratio: Fraction = AS_BOUND  # by which bounds are raised: the largest by which one was passed
    least: int = 0  # what is set aside where the bound is 0: the dearest call that should have been free
    terms: int = 0  # how often that or the ratio was raised: a hold of other terms is out of date
    bound_by: Sequence[Cap] = ()  # those for which it was left before its work was done
    lacked_for: str = "call"  # that had no room
    lacked: int = 0  # what was to be set aside for a call then
    latest: int | None = None  # what was last to be set aside for a call
    _notified: bool = False
    _runner: _Runner | None = None  # None: it is not asked in this run

    def hold(self, request: Request, sent_at: float) -> Hold:
        """Return the hold for a call that is sent at `sent_at`, UTC."""
        bound = self.most(request, sent_at)
        hold = Hold(bound, (bound if self.ratio == AS_BOUND else ceil(bound * self.ratio)) or self.least)
        self.latest = hold.amount
        return hold

    def fits(self, hold: Hold) -> bool:
        """Whether it may be set aside now. What costs nothing always may, even where a cap was passed."""
        return not hold.amount or all(cap.fits(hold.amount) for cap in self.caps)

    def ever_fits(self, hold: Hold) -> bool:
        """Whether it may be set aside once calls in flight have ended, if they cost little."""
        return not hold.amount or all(cap.ever_fits(hold.amount) for cap in self.caps)

    def reserve(self, hold: Hold) -> bool:
        """Set it aside under every cap, or under none."""
        fits = self.fits(hold)
        if fits:
            self.hold_again(hold)
        return fits

    def hold_again(self, hold: Hold) -> None:
        """Set aside what an earlier run did for a request that is still out, whether or not there is room."""
        self.reserved += hold.amount
        for cap in self.caps:
            cap.reserved += hold.amount

    def settle(self, hold: Hold, actual_usd: float | None) -> None:
        """Charge what a call cost in place of what was set aside; None, unknown: all of it."""
        if actual_usd is None:
            actual = hold.amount
            self.adjust(reserved=-actual, spent=actual, doubted=actual, doubted_calls=1)
        else:
            actual = picodollars(actual_usd)
            self.adjust(reserved=-hold.amount, spent=actual)
        if actual > hold.amount:
            self.overruns += 1
            self.terms += 1
            if hold.most:
                self.ratio = max(self.ratio, Fraction(actual, hold.most))
            else:
                self.least = max(self.least, actual)

    def adjust(self, *, reserved: int, spent: int, doubted: int = 0, doubted_calls: int = 0) -> None:
        """Add by how much each has changed, here or by what other processes did; wake who waits for it."""
        self.reserved += reserved
        self.spent += spent
        for cap in self.caps:
            cap.reserved += reserved
            cap.spent += spent
            cap.doubted += doubted
            cap.doubted_calls += doubted_calls
        self.ledger.changed()

    def learn(self, ratio: Fraction, least: int) -> None:
        """Take in by how much bills elsewhere passed their bounds."""
        if ratio > self.ratio or least > self.least:
            self.ratio, self.least = max(ratio, self.ratio), max(least, self.least)
            self.terms += 1

    def stop(self, amount: int, *, now: bool = False, what: str = "call") -> None:
        """Note who left no room for so much, ever or `now`; others may have what this model held."""
        self.bound_by = [cap for cap in self.caps if not (cap.fits if now else cap.ever_fits)(amount)]
        self.lacked, self.lacked_for = amount, what
        self.ledger.changed()

    def message(self) -> str | None:
        """Return, once, what a person should hear of calls that cost more than they could."""
        if self._notified or not self.overruns:
            return None
        self._notified = True
        if self.least:
            return (
                f"a call cost ${dollars_of(self.least):,.4f}, but its price says that it is free: the "
                "provider bills by other rules. asyncbench charges it in full and reserves as much for each "
                "later call of this model"
            )
        return (
            f"a call cost {float(self.ratio):,.2f} times the most that its max_tokens and price allow: the "
            "provider bills by other rules. asyncbench charges it in full and reserves that much more for "
            "each later call of this model. Calls in flight may still pass the budget"
        )

    # ── Fairness between accounts ────────────────────────────────────────────────────────────────

    def join(
        self, counters: Counters, *, asks: Callable[[], bool], now_s: Callable[[], float] = float
    ) -> None:
        """Take part in a run.

        Args:
            counters: of the model.
            asks: whether it would begin another trial soon.
            now_s: the clock of `Ledger.ends_s`.
        """
        self._runner = _Runner(counters, asks, now_s, now_s(), self.spent)

    def ahead(self) -> bool:
        """Whether a trial of this model would cost what is set aside for others who share a cap."""
        if self._runner is None:
            return False
        for cap in self.caps:
            if cap.shared_by <= 1:
                continue
            progress = self.progress(asks=True)
            if cap.fair_level.near(progress):
                continue
            others = [
                account for account in self.ledger.accounts if account is not self and cap in account.caps
            ]
            in_flight = sum(account._cost_in_flight() for account in (self, *others))
            # The last call needs room for all that it may cost: so much will be left over.
            over = max(account.latest or 0 for account in (self, *others))
            remaining = cap.limit - cap.spent - in_flight - over
            if cap.fair_level.ahead(progress, [account.progress() for account in others], remaining):
                return True
        return False

    def progress(self, *, asks: bool | None = None) -> ModelProgress:
        """Return how far the model is; `asks`: whether it goes on, where that is known."""
        if self._runner is None or self._runner.counters.planned == 0:
            return ABSENT
        counters = self._runner.counters
        begun = min(counters.planned, counters.done + counters.skipped + out_of(counters))
        cost = 0.0 if self.latest == 0 else self._trial_cost(counters)  # 0: it waits for nobody's money
        goes_on = self._runner.asks() if asks is None else asks

        # Before a deadline it begins as many more as its pace so far allows.
        room, closed = inf if goes_on else 0.0, counters.outcomes.total()
        if goes_on and self.ledger.ends_s < inf and closed:
            at_s = self._runner.now_s()
            room = max(0.0, self.ledger.ends_s - at_s) * closed / max(at_s - self._runner.began_s, 1.0)
        return ModelProgress(begun, counters.planned, cost, room=room)

    def _cost_in_flight(self) -> float:
        """Return the probable cost of calls in flight, picodollars."""
        if self._runner is None or not out_of(self._runner.counters):
            return 0.0
        counters = self._runner.counters
        return min(float(self.reserved), out_of(counters) * self._trial_cost(counters))

    def _trial_cost(self, counters: Counters) -> float:
        """Return the cost of a trial, picodollars: as in this run, and before its first ones ended, at most.

        The fewer there were, the more is added for what their mean may be wrong by.
        """
        closed = counters.outcomes.total()
        if self._runner is not None and closed >= KNOWN_TRIALS:
            return (self.spent - self._runner.before) / closed * (1 + 1 / sqrt(closed))
        if self.latest is None:
            return inf
        return max(float(self.latest), self.reserved / max(1, out_of(counters)))


def out_of(counters: Counters) -> int:
    """Return how many trials of a model are begun and not answered, in calls and in batches."""
    return counters.in_flight + counters.in_batches
