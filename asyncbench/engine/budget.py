"""The ledger of a sweep: what may be spent, what was, and what calls in flight may still cost.

It reads no file and asks nobody: `budgeting` opens it with what was spent before, askers reserve and settle.
An `Account` learns from dearer bills than could be, and wakes who waits for money; who of several models
goes on while it is short is decided in `fairness`.

Money is counted in whole picodollars (`pricing.picodollars`). Prices have at most six places for a million
tokens, so a price times tokens is whole, and sums are exact in any order: no rounding can pass a cap. What is
finer is rounded up where it is spent, and down where it is a limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf
from typing import Final, NamedTuple

from asyncbench.engine.fairness import ABSENT, ModelProgress, Runner, Shared
from asyncbench.engine.telemetry import Counters
from asyncbench.pricing import dollars_of, picodollars
from asyncbench.records import Request

AS_BOUND: Final = Fraction(1)

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
    shared: Shared = field(default_factory=Shared)  # how they get on beside each other

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


class Hold(NamedTuple):
    """What is set aside for one call, picodollars."""

    most: int  # it may cost by its bounds
    amount: int  # the same, raised where bounds like it were passed before


NOTHING: Final = Hold(0, 0)


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
        most: CostBound,
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
                "unknown_calls": cap.unknown_calls,
                "also": list(cap.also),
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
    most: CostBound
    spent: int = 0  # picodollars, by earlier runs too
    reserved: int = 0
    overruns: int = 0  # calls that cost more than was set aside for them
    ratio: Fraction = AS_BOUND  # by which bounds are raised: the largest by which one was passed
    least: int = 0  # what is set aside where the bound is 0: the dearest call that should have been free
    terms: int = 0  # how often that or the ratio was raised: a hold of other terms is out of date
    bound_by: Sequence[Cap] = ()  # those for which it was left before its work was done
    lacked: int = 0  # what was to be set aside for a call then
    latest: int | None = None  # what was last to be set aside for a call
    _told: bool = False
    _runner: Runner | None = None  # None: it is not asked in this run

    def hold(self, request: Request, at: float) -> Hold:
        """Return what has to be set aside for a call that is sent at `at`, UTC."""
        most = self.most(request, at)
        hold = Hold(most, (most if self.ratio == AS_BOUND else ceil(most * self.ratio)) or self.least)
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
            if actual_usd is None:
                cap.doubted += hold.amount
                cap.doubted_calls += 1
        if actual > hold.amount:
            self._learn(hold, actual)
        self.ledger.changed()

    def _learn(self, hold: Hold, actual: int) -> None:
        """Take in that a call cost more than was set aside for it."""
        self.overruns += 1
        self.terms += 1
        if hold.most:
            self.ratio = max(self.ratio, Fraction(actual, hold.most))
        else:
            self.least = max(self.least, actual)

    # ── beside other models ──────────────────────────────────────────────────────────────────

    def stop(self, hold: Hold) -> None:
        """Note who left no room for a call, ever; others may have what was set aside for this model."""
        self.bound_by = [cap for cap in self.caps if not cap.ever_fits(hold.amount)]
        self.lacked = hold.amount
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
        self._runner = Runner(counters, self, asks=asks, now_s=now_s)

    def ahead(self) -> bool:
        """Whether a trial of this model would cost what is set aside for others who share a cap."""
        shared = [cap for cap in self.caps if cap.shared_by > 1]
        return self._runner is not None and any(map(self._ahead_under, shared))

    def _ahead_under(self, cap: Cap) -> bool:
        own = self.standing(asks=True)
        if cap.shared.near(own):
            return False
        others = [one for one in self.ledger.accounts if one is not self and cap in one.caps]
        in_flight = sum(one._in_flight_cost() for one in (self, *others))
        # The last call needs room for all that it may cost: so much will be left over.
        over = max(one.latest or 0 for one in (self, *others))
        left = cap.limit - cap.spent - in_flight - over
        return cap.shared.ahead(own, [one.standing() for one in others], left)

    def standing(self, *, asks: bool | None = None) -> ModelProgress:
        """Return how far the model is; `asks`: whether it goes on, where that is known."""
        return ABSENT if self._runner is None else self._runner.standing(self.ledger.ends_s, asks=asks)

    def _in_flight_cost(self) -> float:
        return 0.0 if self._runner is None else self._runner.in_flight_cost()

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
