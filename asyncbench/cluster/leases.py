"""Dollars of workers: leased to them, settled by what they report, never given back by a timeout.

What a worker holds is set aside in the coordinator's ledger. Of a worker that died it counts as possibly
spent until somebody has read its journal.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from asyncbench.cluster.messages import Lease, LeaseUse
from asyncbench.engine.budget import Account, Cap, CostBound, Hold, Ledger

Note = Callable[[str, str, int], None]  # worker, alias, picodollars: the most that it may have cost


@dataclass(slots=True, kw_only=True)
class LeaseAccount:
    """The dollars of one model at one worker, as far as the coordinator knows; picodollars."""

    granted: int = 0  # for its lanes
    use: LeaseUse = field(default_factory=LeaseUse)
    last_lease: Lease = field(default_factory=Lease)  # what the worker knows
    noted: int = 0  # what is written down as the most that it may have cost

    @property
    def leased(self) -> int:
        """The most that its lanes may still cost."""
        return self.granted - self.use.returned - self.use.spent if self.granted else 0

    @property
    def most(self) -> int:
        """The most that it may have cost in all."""
        return self.use.spent + self.leased


class Leases:
    """The leases of all workers.

    Args:
        ledger: of the run; None: there is no budget.
        note: writes down what a worker may cost, before the worker hears of it.
    """

    def __init__(self, ledger: Ledger | None, note: Note) -> None:
        self._ledger, self._note = ledger, note
        self._holdings: defaultdict[str, dict[str, LeaseAccount]] = defaultdict(dict)  # by worker and alias

    def of(self, worker: str, alias: str) -> LeaseAccount:
        """Return the account of a worker for a model."""
        return self._holdings[worker].setdefault(alias, LeaseAccount())

    def holds(self, worker: str) -> bool:
        """Whether a worker may still spend anything."""
        return any(holding.leased for holding in self._holdings[worker].values())

    # ── Living workers ───────────────────────────────────────────────────────────────────────────

    def take(self, worker: str, uses: Mapping[str, LeaseUse]) -> None:
        """Settle what a worker spent and gives back."""
        for alias, use in uses.items():
            if (account := self._account(alias)) is None:
                continue
            holding = self.of(worker, alias)
            account.overruns += use.overruns - holding.use.overruns
            account.learn(use.ratio, use.least)
            most = max(holding.granted, use.spent + use.returned)  # bills may pass their bounds
            _settle(account, holding, use, granted=most)

    def grant(self, worker: str, uses: Mapping[str, LeaseUse], *, workers: int) -> dict[str, Lease]:
        """Lease what a worker needs, as far as it is there; return what is new to it."""
        leases = {}
        for alias, use in uses.items():
            if (account := self._account(alias)) is None:
                continue
            holding = self.of(worker, alias)
            never = self._raise(account, holding, use, workers) if use.wanted else None
            lease = Lease(granted=holding.granted, ratio=account.ratio, least=account.least, never=never)
            if lease != holding.last_lease:
                leases[alias] = holding.last_lease = lease
        return leases

    def _raise(self, account: Account, holding: LeaseAccount, use: LeaseUse, workers: int) -> int | None:
        """Lease some more; return the need of one call that no cap will ever meet, None: it may be met."""
        if use.short:
            account.latest = use.short
        if account.ahead():
            return None
        remaining = min(cap.limit - cap.spent - cap.reserved for cap in account.caps)
        share = max(use.short, min(use.wanted, remaining // (2 * workers)))
        for amount in dict.fromkeys((share, use.short)):
            if amount and account.reserve(Hold(amount, amount)):
                holding.granted += amount
                return None
        never = use.short and not account.ever_fits(Hold(use.short, use.short))
        return use.short if never else None

    # ── Dead workers ─────────────────────────────────────────────────────────────────────────────

    def remember(self, worker: str, most: Mapping[str, int]) -> None:
        """Count what a worker of an earlier coordinator may have cost as spent, by alias; picodollars."""
        for alias, amount in most.items():
            if (account := self._account(alias)) is not None:
                holding = self.of(worker, alias)
                holding.noted = amount
                _settle(account, holding, LeaseUse(spent=amount, doubted=amount, doubted_calls=1))

    def lose(self, worker: str) -> None:
        """Count what the lanes of a dead worker may have cost as spent: nobody knows."""
        for alias, holding in self._holdings[worker].items():
            account, use, leased = self._account(alias), holding.use, holding.leased
            if account is None or not leased:
                continue
            unknown = replace(
                use,
                spent=use.spent + leased,
                doubted=use.doubted + leased,
                doubted_calls=use.doubted_calls + 1,
            )
            _settle(account, holding, unknown, granted=holding.granted)

    def correct(self, worker: str, costs: Mapping[str, LeaseUse]) -> None:
        """Put right what a dead worker cost, for its journal was read."""
        for alias, holding in self._holdings[worker].items():
            if (account := self._account(alias)) is not None:
                _settle(account, holding, costs.get(alias, LeaseUse()))

    def _account(self, alias: str) -> Account | None:
        return None if self._ledger is None else self._ledger.account_of(alias)

    def write_down(self, worker: str) -> None:
        """Write down what a worker may have cost at most, where that is more than was written down."""
        for alias, holding in self._holdings[worker].items():
            if holding.most > holding.noted:
                holding.noted = holding.most
                self._note(worker, alias, holding.most)


def _settle(account: Account, holding: LeaseAccount, use: LeaseUse, *, granted: int = 0) -> None:
    """Take in what a worker made of its dollars, and how many it was granted; 0: it has none any more."""
    before, leased = holding.use, holding.leased
    holding.use, holding.granted = use, granted
    account.adjust(
        reserved=holding.leased - leased,
        spent=use.spent - before.spent,
        doubted=use.doubted - before.doubted,
        doubted_calls=use.doubted_calls - before.doubted_calls,
    )


# ── Inside a worker ──────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True, eq=False)
class LeasedAccount(Account):
    """The dollars leased to a worker for one model. The coordinator decides whether more will come."""

    never: int | None = None  # so much for one call, and more, will never be there; None: it may
    returned: int = 0
    short: int = 0  # what a call needed that was not there; 0: nothing was missing
    wake: Callable[[], None] = lambda: None  # is called when a call needs what is not there

    @classmethod
    def opened(cls, alias: str, most: CostBound, wake: Callable[[], None]) -> "LeasedAccount":
        """Return an account without money."""
        cap = Cap(kind="lease", of=alias, limit=0)
        return cls(model=alias, ledger=Ledger([cap]), caps=[cap], most=most, wake=wake)

    def fits(self, hold: Hold) -> bool:
        """Whether it is there now; if not, it is asked for."""
        fits = Account.fits(self, hold)
        if not fits:
            self.short = hold.amount
            self.wake()
        return fits

    def ever_fits(self, hold: Hold) -> bool:
        """Whether it may come, as far as the coordinator knows."""
        return not hold.amount or self.never is None or hold.amount < self.never

    def take(self, lease: Lease) -> None:
        """Take in what was leased so far, and on which terms."""
        self.caps[0].limit, self.never = lease.granted - self.returned, lease.never
        self.learn(lease.ratio, lease.least)
        self.ledger.changed()

    def use(self, calls: int) -> LeaseUse:
        """Return what came of it; so many calls more are to come before the next report."""
        cap, need = self.caps[0], calls * (self.latest or 0)
        free = cap.limit - cap.spent - cap.reserved
        short = self.short if free < self.short and calls else 0
        need = max(need, short)
        if short or free > 2 * need:  # in one pot it may do for somebody's call
            back = max(0, free if short else free - need)
            self.returned += back
            cap.limit, free = cap.limit - back, free - back
        self.short = 0
        return LeaseUse(
            spent=cap.spent,
            doubted=cap.doubted,
            doubted_calls=cap.doubted_calls,
            returned=self.returned,
            overruns=self.overruns,
            ratio=self.ratio,
            least=self.least,
            short=short,
            wanted=max(0, need - free),
        )
