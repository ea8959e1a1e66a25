"""A worker of a cluster: it runs lanes, with real calls for trials of the coordinator, and reports."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Final

from asyncbench.cluster.dealt_lane import CHUNK
from asyncbench.cluster.messages import (
    DealtTrial,
    LaneOrders,
    LaneReport,
    LaneStart,
    Lease,
    LeaseUse,
    Orders,
    WorkerReport,
)
from asyncbench.engine.budget import Account, Cap, CostBound, Hold, Ledger
from asyncbench.engine.lane import Lane
from asyncbench.engine.model_client import ModelClient, TrialFeed, TrialRecords
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import AsyncbenchError, ProviderError, UnsentError
from asyncbench.records import Ended, Event, History, Model, Outcome, Result, Sent, Skipped, StopWhen, Trial

# ── Dollars of a worker


@dataclass(slots=True, kw_only=True, eq=False)
class LeasedAccount(Account):
    """The dollars leased to a worker for one model. The coordinator decides whether more will come."""

    never: int | None = None  # so much for one call, and more, will never be there; None: it may
    returned: int = 0
    short: int = 0  # what a call needed that was not there; 0: nothing was missing
    wake: Callable[[], None] = lambda: None  # is called when a call needs what is not there

    @classmethod
    def opened(cls, alias: str, bound: CostBound, wake: Callable[[], None]) -> "LeasedAccount":
        """Return an account without money."""
        cap = Cap(kind="lease", of=alias, limit=0)
        return cls(model=alias, ledger=Ledger([cap]), caps=[cap], most=bound, wake=wake)

    def fits(self, hold: Hold) -> bool:
        """Return whether money for a call is there now; if not, the next report asks for it."""
        fits = Account.fits(self, hold)
        if not fits:
            self.short = hold.amount
            self.wake()
        return fits

    def ever_fits(self, hold: Hold) -> bool:
        """Return whether money for a call may come, as far as the coordinator knows."""
        return not hold.amount or self.never is None or hold.amount < self.never

    def take(self, lease: Lease) -> None:
        """Take in a new lease: what was granted so far, and its terms."""
        self.caps[0].limit, self.never = lease.granted - self.returned, lease.never
        self.learn(lease.ratio, lease.least)
        self.ledger.changed()

    def use(self, calls: int) -> LeaseUse:
        """Return the use of the lease; `calls` are expected before the next report."""
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


# ── A lane inside a worker


RETRY_S: Final = 0.25  # while nobody has heard of the coordinator
FEWEST: Final = 2  # calls for which there is to be money
FEW: Final = CHUNK // 4  # trials that were not begun: more are asked for at once


@dataclass(slots=True, kw_only=True)
class TrialBuffer(TrialFeed):
    """The trials of one model of a lane."""

    waiting: deque[DealtTrial] = field(default_factory=deque)  # not read yet
    dealt: dict[str, DealtTrial] = field(default_factory=dict)  # those that are not closed, by trial
    begun: dict[str, History] = field(default_factory=dict)  # what is known of trials that are not closed
    calls: int = 0  # begun at the report before
    dry: bool = False  # no more come
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def unbegun(self) -> int:
        """Trials that were not begun."""
        return len(self.dealt) - len(self.begun)

    def begin(self, sent: Sent) -> None:
        """Note that a call is made."""
        before = self.begun.get(sent.trial_id, History())
        self.begun[sent.trial_id] = replace(before, attempts=sent.attempt)

    def end(self, ended: Ended) -> None:
        """Note how a call ended."""
        trial_id, cost = ended.attempt.trial_id, ended.attempt.cost_usd
        before = self.begun[trial_id]
        self.begun[trial_id] = replace(
            before,
            cost_usd=None if cost is None or before.cost_usd is None else before.cost_usd + cost,
            ended=ended if ended.reply is not None else None,
        )

    async def read(self) -> Sequence[Trial]:
        """Return the next trials, as soon as there are any; none when no more come."""
        while not self.waiting and not self.dry:
            self.changed.clear()
            await self.changed.wait()
        trials = [dealt.trial for dealt in self.waiting]
        self.waiting.clear()
        return trials

    def history_of(self, trial: Trial) -> History:
        """Return the history of a trial, as the coordinator knows it."""
        return self.dealt[trial.trial_id].history


class WorkerLane:
    """Runs a lane and tells what becomes of it.

    Args:
        start: the lane.
        clients: of its models; this lane gives them their trials, histories, accounts and rules.
        accounts: of those that a budget holds, by alias.
        silent: whether the coordinator was not heard for too long.
        wake: has a report sent soon.
    """

    def __init__(
        self,
        name: str,
        start: LaneStart,
        clients: Sequence[ModelClient],
        *,
        accounts: Mapping[str, LeasedAccount],
        notify: Callable[[str], None],
        on_failure: Callable[[str, ProviderError], None],
        silent: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        self._silent, self._wake = silent, wake
        self._buffers = {client.model.alias: TrialBuffer() for client in clients}
        self._clients = {client.model.alias: client for client in clients}
        self._closed: dict[int, Outcome] = {}
        self._skipped: list[int] = []
        self.over = False  # it has ended
        for alias, client in self._clients.items():
            self._prepare_client(client, start, accounts.get(alias), on_failure)
        self.lane = Lane(
            name=name,
            clients=[*clients],
            limits=start.limits,
            notify=notify,
            taken_until_s=[asyncio.get_running_loop().time() + left_s for left_s in start.taken_s],
            held_s=lambda: RETRY_S if silent() else 0.0,
        )

    def _prepare_client(
        self,
        client: ModelClient,
        start: LaneStart,
        account: LeasedAccount | None,
        on_failure: Callable[[str, ProviderError], None],
    ) -> None:
        """Give a client the trials, the account, the records and the rule of this lane."""
        alias = client.model.alias
        client.counters = Counters(done_before=int(alias in start.answered_before))
        client.feed = self._buffers[alias]
        client.account = account if alias in start.budgeted else None
        client.records = LaneRecords(
            client.records,
            note=partial(self._note, alias),
            on_failure=partial(on_failure, alias),
            silent=self._silent,
            wake=self._wake,
        )
        client.stopping = None
        if alias in start.stoppable:
            client.stopping = Stopping(
                when=StopWhen(),
                keep=client.records.keep,
                counters=client.counters,
                now=lambda: client.epoch_s + client.now_s(),
            )

    def _note(self, alias: str, event: Event) -> None:
        """Take in an event that was written down."""
        buffer = self._buffers[alias]
        if isinstance(event, Sent):
            buffer.begin(event)
            if buffer.unbegun <= FEW and not buffer.dry:
                self._wake()
        elif isinstance(event, Ended):
            buffer.end(event)
        elif isinstance(event, Result):
            self._closed[self._take_out(buffer, event.trial.trial_id)] = event.grades[0].outcome
            if self._clients[event.trial.model.alias].stopping is not None:
                self._wake()  # it may be the answer that stops its cell
        elif isinstance(event, Skipped):
            self._skipped.append(self._take_out(buffer, event.trial.trial_id))

    def _take_out(self, buffer: TrialBuffer, trial_id: str) -> int:
        """Take a closed trial out; return its number."""
        buffer.begun.pop(trial_id, None)
        return buffer.dealt.pop(trial_id).number

    def end(self) -> None:
        """Note that the lane has ended."""
        self.over = True
        self._wake()

    @property
    def counters(self) -> list[Counters]:
        """The figures of its models."""
        return [client.counters for client in self._clients.values()]

    def calls_soon(self, alias: str) -> int:
        """Return about how many calls of a model will be begun before the next report; 0: it has none."""
        if alias not in self._buffers or self.over or self._clients[alias].counters.over:
            return 0
        buffer, counters = self._buffers[alias], self._clients[alias].counters
        begun = counters.attempts + counters.in_flight
        lately, buffer.calls = begun - buffer.calls, begun
        return min(len(buffer.dealt), max(FEWEST, 2 * lately))

    # ── Exchange with the coordinator ────────────────────────────────────────────────────────────

    def obey(self, orders: LaneOrders) -> None:
        """Obey new orders."""
        for dealt in orders.trials:
            trial, buffer = dealt.trial, self._buffers[dealt.trial.model.alias]
            buffer.dealt[trial.trial_id] = dealt
            buffer.waiting.append(dealt)
            stopping = self._clients[trial.model.alias].stopping
            if dealt.anyway and stopping is not None:
                stopping.anyway.add(trial.trial_id)

        # Cells that a rule stops, and models of which nothing more is asked.
        for alias, client in self._clients.items():
            if client.stopping is not None:
                for cell, stop in orders.stops.get(alias, {}).items():
                    client.stopping.stop_cell(cell, stop)
        for alias in orders.dry & self._buffers.keys():
            self._buffers[alias].dry = True
        for alias in orders.suspended.keys() & self._clients.keys():
            counters, buffer = self._clients[alias].counters, self._buffers[alias]
            counters.suspended = counters.suspended or orders.suspended[alias]
            buffer.dry = True
            buffer.waiting.clear()
        for buffer in self._buffers.values():
            buffer.changed.set()

        # The lane as a whole.
        if orders.limits is not None:
            self.lane.set_limits(orders.limits)
        if orders.paused is not None:
            for client in self._clients.values():
                client.counters.paused = orders.paused
            self.lane.apply_pause()
        if orders.stop:
            self.lane.stop()

    def report(self) -> LaneReport:
        """Return the news since the report before, and the state of the lane."""
        closed, self._closed = self._closed, {}
        skipped, self._skipped = self._skipped, []
        begun = None
        if self.over:  # it left these begun
            begun = {
                buffer.dealt[trial_id].number: history
                for buffer in self._buffers.values()
                for trial_id, history in buffer.begun.items()
            }
        return LaneReport(
            room={
                alias: CHUNK - buffer.unbegun
                for alias, buffer in self._buffers.items()
                if not buffer.dry and buffer.unbegun < CHUNK and not self._clients[alias].counters.over
            },
            closed=closed,
            skipped=skipped,
            counters={
                alias: replace(client.counters, outcomes=client.counters.outcomes.copy())
                for alias, client in self._clients.items()
            },
            in_force=self.lane.limits_in_force(),
            begun=begun,
        )


class LaneRecords:
    """Records of a model in a lane of a worker, which tells the lane what becomes of each trial."""

    def __init__(
        self,
        records: TrialRecords,
        *,
        note: Callable[[Event], None],
        on_failure: Callable[[ProviderError], None],
        silent: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        self._records, self._note, self._silent, self._wake = records, note, silent, wake
        self.grade, self.is_slow, self.note_fault = records.grade, records.is_slow, records.note_fault
        self.note_failure = on_failure

    def keep(self, event: Event) -> None:
        """Write an event down; raises UnsentError: nobody has heard of the coordinator for too long."""
        if isinstance(event, Sent) and self._silent():
            raise UnsentError("the coordinator was not heard for too long")
        self._records.keep(event)
        self._note(event)

    def note_suspension(self, _: str) -> None:
        """Have the coordinator hear soon that the model is asked no more."""
        self._wake()


# ── The worker


LAG_WINDOW_S: Final = 10.0  # of the lag that is reported


class StaleOrdersError(AsyncbenchError):
    """Orders of a coordinator that rules no more, or orders that were obeyed already."""


class ClusterWorker:
    """Does what a coordinator orders.

    Args:
        name: is never used again, by whatever run.
        client_for: returns a complete client of a model but for its trials, histories, account and rule.
        bound_for: returns what a call of a model may cost at most.
        now_s: a clock that goes on while the machine sleeps, where there is one.
        lag: of the event loop; somebody measures it.
    """

    def __init__(
        self,
        name: str,
        *,
        client_for: Callable[[Model], ModelClient],
        bound_for: Callable[[Model], CostBound],
        now_s: Callable[[], float],
        lag: LoopLag,
    ) -> None:
        self.name = name
        self._client_for, self._bound_for, self._now_s, self._lag = client_for, bound_for, now_s, lag
        self._lanes: dict[str, WorkerLane] = {}
        self._accounts: dict[str, LeasedAccount] = {}
        self._ended_calls = 0  # of lanes that have ended
        self._running = set[asyncio.Task[None]]()
        self._failed: list[tuple[str, ProviderError]] = []
        self._messages: list[str] = []
        self._epoch = 0
        self._number = -1  # of the latest orders
        self._made_s = -inf  # when the latest report was made
        self._reported_s = -inf  # likewise, on the event loop's clock
        self._heard_until_s = -inf
        self._report: WorkerReport | None = None  # the latest
        self._changed, self._over = asyncio.Event(), asyncio.Event()
        self._leaving = False
        self._tasks: asyncio.TaskGroup | None = None
        self._ready = asyncio.Event()
        self._drain: asyncio.TimerHandle | None = None
        self._answering = asyncio.Lock()

    async def run(self) -> None:
        """Do what is ordered until nothing more is to be done, and what is in flight has ended.

        Raises:
            ExceptionGroup: what a lane raised; all others were cancelled first.
        """
        async with asyncio.TaskGroup() as self._tasks:
            self._ready.set()
            await self._over.wait()
            self._stop_lanes()
        self._changed.set()

    def leave(self, drain_s: float) -> None:
        """Begin nothing more, and end what is in flight within a time."""
        self._leaving = True
        self._stop_lanes()
        self._drain_within(drain_s)
        self._changed.set()

    def end(self, drain_s: float) -> None:
        """Leave, and be over as soon as nothing is in flight."""
        self.leave(drain_s)
        self._over.set()

    def notify(self, text: str) -> None:
        """Have the coordinator tell a person something."""
        self._messages.append(text)
        self._changed.set()

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Obey orders; return the next report, as soon as there is news or it is time.

        Orders that come again get the report that they got before.

        Raises:
            StaleOrdersError: a later coordinator rules, or later orders were obeyed.
        """
        async with self._answering:
            if orders.epoch < self._epoch or (orders.epoch == self._epoch and orders.number < self._number):
                raise StaleOrdersError(
                    f"{self.name}: orders {orders.number} of epoch {orders.epoch} are stale"
                )
            if (self._epoch, self._number) != (orders.epoch, orders.number):
                await self._ready.wait()
                self._obey(orders)
            if self._report is None or (self._report.epoch, self._report.number) != (
                orders.epoch,
                orders.number,
            ):
                self._report = await self._next_report(orders)
            return self._report

    # ── Orders ───────────────────────────────────────────────────────────────────────────────────

    def _obey(self, orders: Orders) -> None:
        """Take in new leases and orders for lanes, then begin, stop or end."""
        self._epoch, self._number = orders.epoch, orders.number
        made_s = self._made_s if self._report is not None else self._now_s()
        self._heard_until_s = made_s + orders.lane_lives_s
        for alias, lease in orders.leases.items():
            if (account := self._accounts.get(alias)) is not None:
                account.take(lease)
        for name, lane_orders in orders.lanes.items():
            if lane_orders.start is not None:
                self._begin_lane(name, lane_orders.start)
            self._lanes[name].obey(lane_orders)
        if self._leaving:
            self._stop_lanes()
        if orders.drain_s is not None:
            self._stop_lanes()
            self._drain_within(orders.drain_s)
        if orders.ends:
            self._drain_within(0.0)
            self._over.set()

    def _begin_lane(self, name: str, start: LaneStart) -> None:
        """Start a lane with clients of its own; its dollars come with leases."""
        clients = [self._client_for(model) for model in start.models]
        for client in clients:
            client.worker = self.name
        for model in start.models:
            if model.alias in start.budgeted and model.alias not in self._accounts:
                bound = self._bound_for(model)
                self._accounts[model.alias] = LeasedAccount.opened(model.alias, bound, self._changed.set)
        lane = self._lanes[name] = WorkerLane(
            name,
            start,
            clients,
            accounts=self._accounts,
            notify=self._messages.append,
            on_failure=lambda alias, error: self._failed.append((alias, error)),
            silent=lambda: self._now_s() >= self._heard_until_s,
            wake=self._changed.set,
        )
        assert self._tasks is not None  # noqa: S101  it is ready
        task = self._tasks.create_task(lane.lane.run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: lane.end())

    def _stop_lanes(self) -> None:
        for lane in self._lanes.values():
            if not lane.over:
                lane.lane.stop()

    def _drain_within(self, seconds: float) -> None:
        """Give up what is in flight after a time; the earliest such time counts."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + seconds
        if self._drain is not None:
            if self._drain.when() <= due_s:
                return
            self._drain.cancel()
        self._drain = loop.call_at(due_s, self._give_up)

    def _give_up(self) -> None:
        for task in self._running:
            task.cancel()

    # ── Reports ──────────────────────────────────────────────────────────────────────────────────

    async def _next_report(self, orders: Orders) -> WorkerReport:
        """Return the report on orders, once there is news; ended lanes are reported for the last time."""
        # No longer than the coordinator wants, and some time since the report before.
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._reported_s + orders.soonest_s - loop.time())
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._reported_s + orders.every_s):
                await self._changed.wait()
        self._changed.clear()

        self._made_s = self._now_s()
        failed, self._failed = self._failed, []
        messages, self._messages[:] = [*self._messages], []
        loop_s = self._reported_s = loop.time()
        lanes = self._lanes.values()
        counters = [model_counters for lane in lanes for model_counters in lane.counters]
        calls_soon = {
            alias: max((lane.calls_soon(alias) for lane in lanes), default=0) for alias in self._accounts
        }
        report = WorkerReport(
            worker=self.name,
            epoch=self._epoch,
            number=orders.number,
            lanes={name: lane.report() for name, lane in self._lanes.items()},
            leases={alias: account.use(calls_soon[alias]) for alias, account in self._accounts.items()},
            failed=failed,
            messages=messages,
            attempts=sum(model_counters.attempts for model_counters in counters) + self._ended_calls,
            in_flight=sum(model_counters.in_flight for model_counters in counters),
            lag_s=self._lag.worst_since(loop_s - LAG_WINDOW_S),
            leaving=self._leaving,
        )
        for name in [name for name, lane in self._lanes.items() if lane.over]:
            ended = self._lanes.pop(name)
            self._ended_calls += sum(model_counters.attempts for model_counters in ended.counters)
        return report
