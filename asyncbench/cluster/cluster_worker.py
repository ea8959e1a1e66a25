"""A worker of a cluster: it runs lanes, and reports."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from math import inf
from typing import Final

from asyncbench.cluster.leases import LeasedAccount
from asyncbench.cluster.messages import LaneStart, Orders, WorkerReport
from asyncbench.cluster.worker_lane import WorkerLane
from asyncbench.engine.budget import CostBound
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.engine.trial_queue import ModelClient
from asyncbench.errors import AsyncbenchError, ProviderError
from asyncbench.records import Model

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
                await self._wait_for_change(orders)
                self._report = self._make_report(orders)
            return self._report

    # ── Orders ───────────────────────────────────────────────────────────────────────────────────

    def _obey(self, orders: Orders) -> None:
        self._epoch, self._number = orders.epoch, orders.number
        made_s = self._made_s if self._report is not None else self._now_s()
        self._heard_until_s = made_s + orders.lane_lives_s
        for alias, lease in orders.leases.items():
            if (account := self._accounts.get(alias)) is not None:
                account.take(lease)
        for name, lane_orders in orders.lanes.items():
            if lane_orders.start is not None:
                self._begin(name, lane_orders.start)
            self._lanes[name].obey(lane_orders)
        if self._leaving:
            self._stop_lanes()
        if orders.drain_s is not None:
            self._stop_lanes()
            self._drain_within(orders.drain_s)
        if orders.ends:
            self._drain_within(0.0)
            self._over.set()

    def _begin(self, name: str, start: LaneStart) -> None:
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
            silent=self._is_silent,
            wake=self._changed.set,
        )
        self._start(lane.lane.run()).add_done_callback(lambda _: lane.end())

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._tasks is not None  # noqa: S101  it is ready
        self._running.add(task := self._tasks.create_task(work))
        task.add_done_callback(self._running.discard)
        return task

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

    def _is_silent(self) -> bool:
        return self._now_s() >= self._heard_until_s

    async def _wait_for_change(self, orders: Orders) -> None:
        """Wait for news, no longer than the coordinator wants, and some time since the report before."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._reported_s + orders.soonest_s - loop.time())
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._reported_s + orders.every_s):
                await self._changed.wait()

    def _make_report(self, orders: Orders) -> WorkerReport:
        self._changed.clear()
        self._made_s = self._now_s()
        failed, self._failed = self._failed, []
        messages, self._messages[:] = [*self._messages], []
        loop_s = self._reported_s = asyncio.get_running_loop().time()
        counters = [*self._counters()]
        report = WorkerReport(
            worker=self.name,
            epoch=self._epoch,
            number=orders.number,
            lanes={name: lane.report() for name, lane in self._lanes.items()},
            leases={alias: account.use(self._calls_soon(alias)) for alias, account in self._accounts.items()},
            failed=failed,
            messages=messages,
            attempts=sum(one.attempts for one in counters) + self._ended_calls,
            in_flight=sum(one.in_flight for one in counters),
            lag_s=self._lag.worst_since(loop_s - LAG_WINDOW_S),
            leaving=self._leaving,
        )
        for name in [name for name, lane in self._lanes.items() if lane.over]:
            self._ended_calls += sum(one.attempts for one in self._lanes.pop(name).counters)
        return report

    def _counters(self) -> Iterator[Counters]:
        for lane in self._lanes.values():
            yield from lane.counters

    def _calls_soon(self, alias: str) -> int:
        return max((lane.calls_soon(alias) for lane in self._lanes.values()), default=0)
