"""A coordinator and workers on one virtual clock, with a transport that carries their messages at once."""

import asyncio
import pickle
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from asyncbench.cluster.cluster_worker import ClusterWorker
from asyncbench.cluster.coordinator import Coordinator
from asyncbench.cluster.messages import JournalSummary
from asyncbench.engine.budget import Cap, Ledger
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.scheduler import Scheduler
from asyncbench.engine.telemetry import LoopLag
from asyncbench.pricing import picodollars
from asyncbench.records import Event, History, Message, Model, Request, Trial
from tests.world.night import Answer, Night

_NEW = History()
Beside = Callable[["SmallFleet"], Coroutine[Any, Any, None]]


def now_s() -> float:
    return asyncio.get_running_loop().time()


def most(_request: Request, _at: float) -> int:
    """What a call may cost: more than it does."""
    return picodollars(0.001)


def request_of(trial: Trial) -> Request:
    return Request(trial=trial, system=None, messages=(Message(role="user", content=trial.problem.question),))


@dataclass(slots=True, kw_only=True)
class SmallFleet:
    """Some workers that answer by `ask`; every message is pickled, as between processes."""

    ask: Answer
    workers: int = 2
    absent: int = 0  # of the workers: they do not start
    journals: dict[str, list[Event]] = field(default_factory=dict)
    own: Night = field(default_factory=Night)  # of the coordinator's own process
    lanes: list[Any] = field(default_factory=list)
    notes: list[tuple[str, str, int]] = field(default_factory=list)
    budget_usd: float | None = None
    coordinator: Coordinator = field(init=False)
    scheduler: Scheduler = field(init=False)
    ledger: Ledger | None = None
    _works: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    def open(self) -> None:
        """Begin to rule."""
        if self.budget_usd is not None:
            cap = Cap(kind="sweep", of="s", limit=picodollars(self.budget_usd))
            self.ledger = Ledger([cap])
        self.coordinator = Coordinator(
            epoch=1,
            workers=self.workers,
            now_s=now_s,
            notify=self.own.said.append,
            ledger=self.ledger,
            note=lambda *noted: self.notes.append(noted),
        )

    def lane(self, requests: list[Request], model: Model, known: Mapping[str, History] | None = None) -> None:
        """Add the lane of a model, of whose trials something may be known."""
        known = known or {}
        trials = [(one, known.get(one.trial.trial_id, _NEW)) for one in requests]
        client = self.own.client(self.ask, trials, model)
        if self.ledger is not None:
            client.account = self.ledger.open(model.alias, self.ledger.caps, most)
        self.lanes.append(self.coordinator.lane(model.alias, [client]))

    async def go(self, beside: Beside | None = None) -> "SmallFleet":
        """Run to the end, and do something beside it."""
        self.scheduler = scheduler = Scheduler(lanes=self.lanes, lag=LoopLag(interval_s=60.0))
        async with self._tasks as tasks:
            for _ in range(self.workers - self.absent):
                self._start()
            for _ in range(self.absent):
                self.coordinator.expect_fewer()
            other = tasks.create_task(beside(self)) if beside is not None else None
            await scheduler.run()
            self.coordinator.end()
            if other is not None:
                other.cancel()
        return self

    def kill(self, name: str, news: JournalSummary | None) -> None:
        """End a worker at once, and let another one come."""
        self._works[name].cancel()
        self.coordinator.lose(name, news)
        self._start()

    def _start(self) -> None:
        name = f"w{len(self._works)}-e1"
        self._works[name] = self._tasks.create_task(self._work(name))

    async def _work(self, name: str) -> None:
        worker = self.worker(name)
        orders = self.coordinator.join(name)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            while True:
                report = await worker.exchange(_sent(orders))
                ends, orders = orders.ends, self.coordinator.answer(_sent(report))
                if ends:
                    return

    def worker(self, name: str) -> ClusterWorker:
        night = Night(kept=self.journals.setdefault(name, []))

        def client_for(model: Model) -> ModelClient:
            client = night.client(self.ask, [], model)
            client.calls.request_for = request_of
            return client

        return ClusterWorker(
            name,
            client_for=client_for,
            bound_for=lambda _: most,
            now_s=now_s,
            lag=night.lag,
        )

    def of(self, kind: type) -> list[Any]:
        return [
            event
            for kept in (*self.journals.values(), self.own.kept)
            for event in kept
            if isinstance(event, kind)
        ]


def _sent(message: Any) -> Any:
    return pickle.loads(pickle.dumps(message))  # noqa: S301  our own
