"""The coordinator of a cluster: it gives lanes, trials and dollars to workers, and counts for all.

It is pure: whoever carries its messages calls `join`, `answer` and `lose`, on the clock that it was given.
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
# What a worker holds is set aside in the ledger of the run. Of a worker that died it counts as possibly spent
# until somebody has read its journal.


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

    def holding(self, worker: str, alias: str) -> LeaseAccount:
        """Return the account of a worker for a model."""
        return self._holdings[worker].setdefault(alias, LeaseAccount())

    def holds(self, worker: str) -> bool:
        """Return whether a worker may still spend anything."""
        return any(holding.leased for holding in self._holdings[worker].values())

    # ── Living workers ───────────────────────────────────────────────────────────────────────────

    def take(self, worker: str, uses: Mapping[str, LeaseUse]) -> None:
        """Settle what a worker spent and gives back."""
        for alias, use in uses.items():
            if (account := self._account(alias)) is None:
                continue
            holding = self.holding(worker, alias)
            account.overruns += use.overruns - holding.use.overruns
            account.learn(use.ratio, use.least)
            granted = max(holding.granted, use.spent + use.returned)  # bills may pass their bounds
            _settle(account, holding, use, granted=granted)

    def grant(self, worker: str, uses: Mapping[str, LeaseUse], *, workers: int) -> dict[str, Lease]:
        """Lease what a worker needs, as far as it is there; return what is new to it."""
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

    def remember(self, worker: str, amounts: Mapping[str, int]) -> None:
        """Count what a worker of an earlier coordinator may have cost as spent, by alias; picodollars."""
        for alias, amount in amounts.items():
            if (account := self._account(alias)) is not None:
                holding = self.holding(worker, alias)
                holding.noted = amount
                _settle(account, holding, LeaseUse(spent=amount, doubted=amount, doubted_calls=1))

    def lose(self, worker: str) -> None:
        """Count all that a dead worker still held as spent, because nobody knows what it did with it."""
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
        """Correct what a dead worker cost: its journal was read."""
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


# ── The coordinator


LANE_LIVES_S: Final = 10.0  # a lane whose worker does not hear from its coordinator
SOONEST_S: Final = 0.05  # between two reports of a worker
MESSAGES_PER_S: Final = 500.0  # of all workers
IDLE_S: Final = 0.5  # between reports of a worker with nothing to tell
PATIENCE_S: Final = 30.0  # for workers that were announced, before lanes are given to those that are there
USUAL_TOKENS: Final = 500  # of a call
USUAL_PER_S: Final = 100.0  # calls of a lane of which no limit is known
WINDOW_S: Final = 10.0  # of calls a second


class RivalError(AsyncbenchError):
    """Another coordinator rules: this one must send nothing more."""


@dataclass(slots=True, kw_only=True)
class _Member:
    """A worker that has joined."""

    orders: Orders  # the latest
    heard_s: float
    report: WorkerReport  # the latest
    leaving: bool = False
    samples: deque[tuple[float, int]] = field(default_factory=deque)  # when, and calls that it had ended

    def sample(self, at_s: float, report: WorkerReport) -> None:
        """Take in a report."""
        self.heard_s, self.report, self.leaving = at_s, report, report.leaving
        if not self.samples or at_s - self.samples[-1][0] >= 1.0:
            self.samples.append((at_s, report.attempts))
        while at_s - self.samples[0][0] > WINDOW_S:
            self.samples.popleft()

    def calls_per_s(self, at_s: float) -> float:
        """Return how many calls it ended a second, lately."""
        if not self.samples:
            return 0.0
        since_s, before = self.samples[0]
        return (self.report.attempts - before) / max(at_s - since_s, 1.0)


class Coordinator:
    """Gives work to workers.

    Args:
        epoch: higher than that of any coordinator before it.
        workers: that are to come.
        now_s: a clock that goes on while the machine sleeps, where there is one.
        notify: tells a person something, once.
        ledger: of the run; None: there is no budget.
        note: writes down what a worker may have cost at most, before the worker hears of it.
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
        self._lapsing: list[tuple[float, DealtLane, JournalSummary | None, bool]] = []  # of silent workers
        self._gathered = False  # all workers were there
        self._drains_until_s = inf
        self.ended = False  # there is nothing more to do

    # ── Lanes ────────────────────────────────────────────────────────────────────────────────────

    def lane(self, name: str, clients: list[ModelClient]) -> DealtLane:
        """Return a lane that one of the workers runs."""
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
        """Take in what a worker did; return what it is to do next.

        A report that comes again gets the orders that it got before. A worker that was given up is told to
        end, and so is one that leaves when it holds nothing any more.

        Raises:
            RivalError: the worker obeys a later coordinator.
        """
        if report.epoch > self.epoch:
            raise RivalError("another run of this sweep has taken over: this one ends")
        member = self._members.get(report.worker)
        if member is None or report.epoch < self.epoch:
            return replace(self._make_orders(report.worker, report.number + 1), ends=True)
        if report.number != member.orders.number:
            return member.orders
        dismissed = member.orders.ends and not self.ended

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
            journal: what it tells; None: it was not read, so its dollars count as spent (`Leases.correct`).
            dead: its process is known to have ended, and its connections with it. If not, its lanes wait
                until it must have stopped, and the slots of its calls until no provider works on them.
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
        """Wait for one worker less before lanes are given out: it does not start."""
        self._expected -= 1

    def stop(self, drain_s: float) -> None:
        """Have all workers end what they do within a time; nothing more is begun."""
        self._drains_until_s = self._now_s() + drain_s

    def end(self) -> None:
        """Have all workers end: there is nothing more to do."""
        self.ended = True

    @property
    def stopping(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.ended or self._drains_until_s < inf

    def reports(self) -> dict[str, tuple[WorkerReport, float]]:
        """Return the latest report of each worker, and how many calls it ended a second, lately."""
        at_s = self._now_s()
        return {name: (member.report, member.calls_per_s(at_s)) for name, member in self._members.items()}

    # ── Orders ───────────────────────────────────────────────────────────────────────────────────

    def _next_orders(self, report: WorkerReport) -> Orders:
        """Return the orders that answer a report."""
        self._take_lanes_back()

        # Lanes that wait go to workers: the heaviest first, to the one with the least to do.
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

        # More dollars for the worker, and what its lanes do not know yet.
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

        # A worker that leaves is told to end when it holds nothing any more.
        holds = report.lanes or report.in_flight or lanes or self.leases.holds(worker)
        return replace(
            self._make_orders(worker, report.number + 1),
            lanes=lane_orders,
            leases=leases,
            ends=self.ended or (report.leaving and not holds),
        )

    def _make_orders(self, worker: str, number: int) -> Orders:
        """Make orders in which there is nothing to do."""
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
        """Take back lanes of workers that were given up, as soon as they must have stopped."""
        at_s = self._now_s()
        due = [entry for entry in self._lapsing if entry[0] <= at_s]
        self._lapsing = [entry for entry in self._lapsing if entry[0] > at_s]
        for _, lane, journal, dead in due:
            lane.lose(journal, at_s, dead=dead)


def calls_per_s(limits: Limits) -> float:
    """Return about how many calls a second the limits of a lane allow."""
    allowed = [
        limits.rpm and limits.rpm * limits.fraction / 60,
        limits.tpm and limits.tpm * limits.fraction / 60 / USUAL_TOKENS,
        limits.concurrency,  # calls that take a second each
    ]
    return min(filter(None, allowed), default=USUAL_PER_S)
