"""The coordinator of a cluster: it gives lanes, trials and dollars to workers, and keeps the account of all.

It reads and writes nothing, and its clock is handed in. The links that carry its messages call `join`,
`answer` and `lose`.
"""

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from asyncbench.cluster.dealt_lane import DealtLane
from asyncbench.cluster.messages import JournalSummary, Lease, LeaseUse, Orders, WorkerReport
from asyncbench.engine.budget import Account, Hold, Ledger
from asyncbench.engine.model_client import ModelClient
from asyncbench.errors import AsyncbenchError
from asyncbench.records import Limits

# ── Dollars: leased to workers, settled by what they report, never given back by a timeout
# What a worker may still spend is reserved in the ledger of the run. When a worker dies, that amount counts
# as spent, and as doubtful, until its journal is read.


Note = Callable[[str, str, int], None]  # worker, alias, and the highest possible cost, picodollars


@dataclass(slots=True, kw_only=True)
class LeaseAccount:
    """The money of one model at one worker, as far as the coordinator knows; picodollars."""

    granted: int = 0  # since the worker joined
    use: LeaseUse = field(default_factory=LeaseUse)
    last_lease: Lease = field(default_factory=Lease)  # as the worker was told
    noted: int = 0  # the highest possible cost that was written down

    @property
    def leased(self) -> int:
        """The money that the worker may still spend."""
        return self.granted - self.use.returned - self.use.spent if self.granted else 0

    @property
    def most(self) -> int:
        """The highest possible cost in all."""
        return self.use.spent + self.leased


class Leases:
    """The leases of all workers.

    Args:
        ledger: of the run; None: there is no budget.
        note: writes down the highest possible cost of a worker, before the worker hears of its lease.
    """

    def __init__(self, ledger: Ledger | None, note: Note) -> None:
        self._ledger, self._note = ledger, note
        self._holdings: defaultdict[str, dict[str, LeaseAccount]] = defaultdict(dict)  # by worker and alias

    def holding(self, worker: str, alias: str) -> LeaseAccount:
        """Return the account of a worker for a model."""
        return self._holdings[worker].setdefault(alias, LeaseAccount())

    def holds(self, worker: str) -> bool:
        """Return whether a worker may still spend anything."""
        return any(holding.leased for holding in self._holdings[worker].values())

    # ── Living workers ───────────────────────────────────────────────────────────────────────────

    def take(self, worker: str, uses: Mapping[str, LeaseUse]) -> None:
        """Settle the money that a worker has spent or given back."""
        for alias, use in uses.items():
            if (account := self._account(alias)) is None:
                continue
            holding = self.holding(worker, alias)
            account.overruns += use.overruns - holding.use.overruns
            account.learn(use.ratio, use.least)
            granted = max(holding.granted, use.spent + use.returned)  # a bill may exceed its bound
            _settle(account, holding, use, granted=granted)

    def grant(self, worker: str, uses: Mapping[str, LeaseUse], *, workers: int) -> dict[str, Lease]:
        """Lease the money that a worker needs, as far as there is some. Return the leases that changed."""
        leases = {}
        for alias, use in uses.items():
            if (account := self._account(alias)) is None:
                continue
            holding = self.holding(worker, alias)
            never = self._lease_more(account, holding, use, workers) if use.wanted else None
            lease = Lease(granted=holding.granted, ratio=account.ratio, least=account.least, never=never)
            if lease != holding.last_lease:
                leases[alias] = holding.last_lease = lease
        return leases

    def _lease_more(self, account: Account, holding: LeaseAccount, use: LeaseUse, workers: int) -> int | None:
        """Lease more money. Return the need of a call that no cap can ever meet, or None if it may be met."""
        if use.short:
            account.latest = use.short
        if account.ahead():  # the rest is for other models
            return None

        # Try an equal share of half of the rest first, then just what the next call needs.
        remaining = min(cap.limit - cap.spent - cap.reserved for cap in account.caps)
        share = max(use.short, min(use.wanted, remaining // (2 * workers)))
        for amount in dict.fromkeys((share, use.short)):
            if amount and account.reserve(Hold(amount, amount)):
                holding.granted += amount
                return None

        impossible = use.short and not account.ever_fits(Hold(use.short, use.short))
        return use.short if impossible else None

    # ── Dead workers ─────────────────────────────────────────────────────────────────────────────

    def remember(self, worker: str, amounts: Mapping[str, int]) -> None:
        """Count as spent what a worker of an earlier coordinator may have cost, by alias; picodollars."""
        for alias, amount in amounts.items():
            if (account := self._account(alias)) is not None:
                holding = self.holding(worker, alias)
                holding.noted = amount
                _settle(account, holding, LeaseUse(spent=amount, doubted=amount, doubted_calls=1))

    def lose(self, worker: str) -> None:
        """Count all that a dead worker still held as spent: nobody knows what it did with the money."""
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
        """Replace the possible cost of a dead worker by the cost that its journal tells."""
        for alias, holding in self._holdings[worker].items():
            if (account := self._account(alias)) is not None:
                _settle(account, holding, costs.get(alias, LeaseUse()))

    def _account(self, alias: str) -> Account | None:
        return None if self._ledger is None else self._ledger.account_of(alias)

    def write_down(self, worker: str) -> None:
        """Write down the highest possible cost of a worker, for each model where it has risen."""
        for alias, holding in self._holdings[worker].items():
            if holding.most > holding.noted:
                holding.noted = holding.most
                self._note(worker, alias, holding.most)


def _settle(account: Account, holding: LeaseAccount, use: LeaseUse, *, granted: int = 0) -> None:
    """Take in a worker's use of its money, and change the account by the difference.

    `granted` is what it was granted so far; 0 ends the lease, so nothing stays reserved.
    """
    before, leased_before = holding.use, holding.leased
    holding.use, holding.granted = use, granted
    account.adjust(
        reserved=holding.leased - leased_before,
        spent=use.spent - before.spent,
        doubted=use.doubted - before.doubted,
        doubted_calls=use.doubted_calls - before.doubted_calls,
    )


# ── The coordinator


LANE_LIVES_S: Final = 10.0  # how long a lane goes on when its worker hears nothing from the coordinator
SOONEST_S: Final = 0.05  # the shortest time between two reports of a worker
MESSAGES_PER_S: Final = 500.0  # of all workers together, at most
IDLE_S: Final = 0.5  # the time between reports of a worker with nothing to tell
PATIENCE_S: Final = 30.0  # how long lanes wait for missing workers; then those that are there get them
USUAL_TOKENS: Final = 500  # of a call, where an estimate is needed
USUAL_PER_S: Final = 100.0  # calls a second of a lane without a known limit
WINDOW_S: Final = 10.0  # the time over which the calls a second of a worker are counted


class RivalError(AsyncbenchError):
    """A later coordinator has taken over, so this one must send nothing more."""


@dataclass(slots=True, kw_only=True)
class _Member:
    """A worker that has joined."""

    orders: Orders  # the latest
    heard_s: float
    report: WorkerReport  # the latest
    leaving: bool = False
    samples: deque[tuple[float, int]] = field(default_factory=deque)  # time, and calls ended by then

    def sample(self, at_s: float, report: WorkerReport) -> None:
        """Keep a report, and once a second a sample of the calls that have ended."""
        self.heard_s, self.report, self.leaving = at_s, report, report.leaving
        if not self.samples or at_s - self.samples[-1][0] >= 1.0:
            self.samples.append((at_s, report.attempts))
        while at_s - self.samples[0][0] > WINDOW_S:
            self.samples.popleft()

    def calls_per_s(self, at_s: float) -> float:
        """Return how many calls a second it ended in the latest window."""
        if not self.samples:
            return 0.0
        since_s, before = self.samples[0]
        return (self.report.attempts - before) / max(at_s - since_s, 1.0)


class Coordinator:
    """Gives work to workers.

    Args:
        epoch: higher than that of any coordinator before it.
        workers: the number of workers that are expected.
        now_s: a clock that goes on while the machine sleeps, where there is one.
        notify: shows a message to the user, once.
        ledger: of the run; None: there is no budget.
        note: writes down the highest possible cost of a worker, before the worker hears of its lease.
        lane_lives_s: how long a lane goes on when its worker hears nothing.
    """

    def __init__(
        self,
        *,
        epoch: int,
        workers: int,
        now_s: Callable[[], float],
        notify: Callable[[str], None],
        ledger: Ledger | None = None,
        note: Note = lambda _worker, _alias, _amount: None,
        lane_lives_s: float = LANE_LIVES_S,
    ) -> None:
        self.epoch, self._expected = epoch, workers
        self._now_s, self._notify, self._lane_lives_s = now_s, notify, lane_lives_s
        self._began_s = now_s()
        self.leases = Leases(ledger, note)
        self._numbers = itertools.count(1)
        self._members: dict[str, _Member] = {}
        self._lanes: list[DealtLane] = []
        # Lanes of lost workers: taken back at, lane, journal of the worker, whether its process has ended.
        self._lapsing: list[tuple[float, DealtLane, JournalSummary | None, bool]] = []
        self._gathered = False  # lanes may be given out: all workers have come, or were waited for
        self._drains_until_s = inf
        self.ended = False  # there is nothing more to do

    # ── Lanes ────────────────────────────────────────────────────────────────────────────────────

    def lane(self, name: str, clients: list[ModelClient]) -> DealtLane:
        """Return a new lane, which waits for a worker to run it."""
        lane = DealtLane(
            name=name,
            clients=clients,
            limits=clients[0].model.limits,
            serial_group=clients[0].model.turn,
            number_of=self._numbers.__next__,
        )
        self._lanes.append(lane)
        return lane

    # ── Workers ──────────────────────────────────────────────────────────────────────────────────

    def join(self, worker: str) -> Orders:
        """Take a new worker in; return its first orders. A name is never used twice."""
        orders = self._make_orders(worker, 0)
        nothing = WorkerReport(worker=worker, epoch=self.epoch, number=0)
        self._members[worker] = _Member(orders=orders, heard_s=self._now_s(), report=nothing)
        return orders

    def answer(self, report: WorkerReport) -> Orders:
        """Take in the report of a worker; return its next orders.

        A report that comes again gets the same orders as before. A worker that was given up is told to end.
        So is one that leaves, once it has no lanes, calls or money left.

        Raises:
            RivalError: the worker obeys a later coordinator.
        """
        if report.epoch > self.epoch:
            raise RivalError("another run of this sweep has taken over: this one ends")
        member = self._members.get(report.worker)
        if member is None or report.epoch < self.epoch:
            return replace(self._make_orders(report.worker, report.number + 1), ends=True)
        if report.number != member.orders.number:  # it comes again
            return member.orders
        dismissed = member.orders.ends and not self.ended  # this is the last report of a worker that left

        # Take in the report: dollars, trials, failures and messages.
        member.sample(self._now_s(), report)
        self.leases.take(report.worker, report.leases)
        for lane in self._lanes:
            if lane.worker == report.worker and lane.name in report.lanes:
                lane.take(report.lanes[lane.name], leaving=report.leaving)
        for alias, error in report.failed:
            clients = (client for lane in self._lanes for client in lane.clients)
            next(client for client in clients if client.model.alias == alias).records.note_failure(error)
        for message in report.messages:
            self._notify(message)

        member.orders = self._next_orders(report)
        if dismissed:
            del self._members[report.worker]
        return member.orders

    def lose(self, worker: str, journal: JournalSummary | None = None, *, dead: bool = True) -> None:
        """Give a worker up.

        Args:
            worker: its name.
            journal: the content of its journal. None: it was not read, so all that it held counts as spent.
            dead: its process is known to have ended, and its connections with it. If not, its lanes are
                given out again only when it must have stopped, and the slots of its calls only when no
                provider can still work on them.
        """
        if (member := self._members.pop(worker, None)) is None:
            return
        at_s = self._now_s()
        self.leases.lose(worker)
        if journal is not None:
            self.leases.correct(worker, journal.costs)
        until_s = at_s if dead else member.heard_s + self._lane_lives_s
        self._lapsing += [(until_s, lane, journal, dead) for lane in self._lanes if lane.worker == worker]
        self._take_lanes_back()

    def expect_fewer(self) -> None:
        """Wait for one worker less before lanes are given out, because one could not be started."""
        self._expected -= 1

    def stop(self, drain_s: float) -> None:
        """Have all workers begin no more calls, and end the open ones within `drain_s`."""
        self._drains_until_s = self._now_s() + drain_s

    def end(self) -> None:
        """Have all workers end, because there is nothing more to do."""
        self.ended = True

    @property
    def stopping(self) -> bool:
        """Whether no more calls are to be begun."""
        return self.ended or self._drains_until_s < inf

    def reports(self) -> dict[str, tuple[WorkerReport, float]]:
        """Return the latest report of each worker, and how many calls a second it ended lately."""
        at_s = self._now_s()
        return {name: (member.report, member.calls_per_s(at_s)) for name, member in self._members.items()}

    # ── Orders ───────────────────────────────────────────────────────────────────────────────────

    def _next_orders(self, report: WorkerReport) -> Orders:
        """Return the orders that answer a report."""
        self._take_lanes_back()

        # Give each waiting lane to the worker with the fewest calls a second, the heaviest lane first.
        at_s = self._now_s()
        present = [name for name, member in self._members.items() if not member.leaving]
        self._gathered |= len(present) >= self._expected or at_s >= self._began_s + PATIENCE_S
        if self._gathered and present:
            for lane in sorted(self._lanes, key=lambda lane: -calls_per_s(lane.limits)):
                if lane.waits:
                    loads = dict.fromkeys(present, 0.0)  # calls a second, about
                    for dealt in self._lanes:
                        if dealt.worker in loads:
                            loads[dealt.worker] += calls_per_s(dealt.limits)
                    lane.begin(min(present, key=lambda name: loads[name]), at_s)

        # Lease more money to the worker, and send its lanes what is new.
        worker = report.worker
        leases = self.leases.grant(worker, report.leases, workers=len(self._members))
        self.leases.write_down(worker)
        lanes = [lane for lane in self._lanes if lane.worker == worker]
        lane_orders = {}
        for lane in lanes:
            reported = report.lanes.get(lane.name)
            orders = lane.orders({} if reported is None else reported.room)
            if orders is not None:
                lane_orders[lane.name] = orders

        # A worker that leaves is told to end once it has no lanes, calls or money left.
        busy = report.lanes or report.in_flight or lanes or self.leases.holds(worker)
        return replace(
            self._make_orders(worker, report.number + 1),
            lanes=lane_orders,
            leases=leases,
            ends=self.ended or (report.leaving and not busy),
        )

    def _make_orders(self, worker: str, number: int) -> Orders:
        """Make orders that hold only the terms of the exchange, without work."""
        drain_s = self._drains_until_s - self._now_s()
        return Orders(
            worker=worker,
            epoch=self.epoch,
            number=number,
            soonest_s=max(SOONEST_S, len(self._members) / MESSAGES_PER_S),
            every_s=IDLE_S,
            lane_lives_s=self._lane_lives_s,
            drain_s=None if drain_s == inf else max(0.0, drain_s),
        )

    def _take_lanes_back(self) -> None:
        """Take back the lanes of lost workers whose time is over, so that other workers can have them."""
        at_s = self._now_s()
        due = [entry for entry in self._lapsing if entry[0] <= at_s]
        self._lapsing = [entry for entry in self._lapsing if entry[0] > at_s]
        for _, lane, journal, dead in due:
            lane.lose(journal, at_s, dead=dead)


def calls_per_s(limits: Limits) -> float:
    """Estimate how many calls a second the limits of a lane allow."""
    allowed = [
        limits.rpm and limits.rpm * limits.fraction / 60,
        limits.tpm and limits.tpm * limits.fraction / 60 / USUAL_TOKENS,
        limits.concurrency,  # calls that take a second each
    ]
    return min(filter(None, allowed), default=USUAL_PER_S)
