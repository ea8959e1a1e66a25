"""Drive a run: start simulators, connections and lanes, until done, stopped or out of time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from asyncbench.cluster.ray_actors import open_ray_cluster
from asyncbench.config.run_entries import workers_here
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.scheduler import Scheduler
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import StoreError
from asyncbench.files import discard, input_path
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.lanes.batches.status import (
    PartState,
    PartStatus,
    left_in_batches,
    near_deletion,
    part_statuses,
)
from asyncbench.providers.garbage import rare_garbage_collection
from asyncbench.records import BATCH
from asyncbench.run.clustering import ClusterRun
from asyncbench.run.control import controlled
from asyncbench.run.copying import tend_copy
from asyncbench.run.interrupts import catching_hangup, catching_interrupts
from asyncbench.run.lanes import OWN_SPEED, lanes_of
from asyncbench.run.progress import WatchedScreen
from asyncbench.run.state import Run
from asyncbench.run.steering import Steering
from asyncbench.tables.numbers import number_of

if TYPE_CHECKING:  # most runs start no simulator
    from asyncbench.simulator.process import Simulator

# ── Messages about batches

EVERY_S: Final = 5.0
LONG_S: Final = 3700.0  # in doubt: the last poll for a batch comes before
ENDED_EARLY: Final = frozenset({"failed", "expired", "cancelled", "gone"})  # words of providers, and ours


class BatchMessages:
    """Messages about the batches of a run: it polls their ledger, and reports what is new, each once."""

    def __init__(self, run: Run, counters: Mapping[str, Counters]) -> None:
        self._run, self._counters = run, counters
        self._reported = set[str]()
        parts = self._parts(self._now())
        self._sent_before = {batch_part.part for batch_part in parts if batch_part.batch_id}
        self._ended_before = {batch_part.part for batch_part in parts if batch_part.status in ENDED_EARLY}

    async def watch(self) -> None:
        """Poll every `EVERY_S` until cancelled."""
        while True:
            self.poll()
            await asyncio.sleep(EVERY_S)

    def poll(self, *, last: bool = False) -> None:
        """Tell the news; `last`: the run ends, so what is in doubt is told at once."""
        now = self._now()
        parts = self._parts(now)

        # Everything that is to be asked in batches is in one.
        has_sent = any(
            batch_part.open and batch_part.batch_id and batch_part.part not in self._sent_before
            for batch_part in parts
        )
        waits = any(
            batch_part.state in (PartState.PREPARED, PartState.POOL, PartState.SUBMITTING)
            for batch_part in parts
        )
        in_batches = all(
            counters.over or counters.open <= counters.in_batches
            for counters in (self._counters[model.alias] for model in self._run.models if model.mode == BATCH)
        )
        if has_sent and not waits and in_batches:
            self._tell("sent", ["all batches are sent", *left_in_batches(parts, now=now)], parts)

        for batch_part in parts:
            alias, trials = batch_part.model, batch_part.trials
            if batch_part.status in ENDED_EARLY and batch_part.part not in self._ended_before:
                count = (
                    "" if batch_part.answered is None else f" with {batch_part.answered:,} of {trials:,} done"
                )
                ending = f"{alias}: batch {batch_part.batch_id} {batch_part.status}{count}"
                self._tell("ended", [ending], [batch_part])
            if batch_part.state is PartState.IN_DOUBT and (last or now - batch_part.prepared_at > LONG_S):
                doubt = f"nobody knows whether a batch of {trials:,} requests was created"
                self._tell("doubt", [f"{alias}: {doubt} (part {batch_part.part})"], [batch_part])
        if lines := near_deletion(parts, now=now):
            self._tell("deleted_soon", lines, parts)

    def _tell(self, what: str, lines: Sequence[str], parts: Sequence[PartStatus]) -> None:
        """Send a message about parts, unless it was sent before."""
        message = f"{what} {parts[0].part}" if len(parts) == 1 else what
        if message not in self._reported:
            self._reported.add(message)
            shown = [batch_part for batch_part in parts if batch_part.open or len(parts) == 1]
            self._run.notifier.batches(what, lines, shown)

    def _parts(self, now: float) -> list[PartStatus]:
        return part_statuses(self._run.batches.ledger, running=True, now=now)

    def _now(self) -> float:
        return (self._run.options.clock or BatchClock()).now()


# ── Driving a run

WALL_CLOCK_EVERY_S: Final = 1.0  # a deadline passes though this process, or the machine, stood still
DRAIN_S = 30.0  # after Ctrl-C, for what is in flight
SIMULATED: Final = "simulated"  # beside the batches of a run: those of the simulators that it starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """Scheduler of a run, and the simulators that the run started."""

    scheduler: Scheduler
    clustered: ClusterRun | None  # the workers of a cluster; None: it has none
    simulators: "Sequence[Simulator]"

    @property
    def clients(self) -> list[ModelClient]:
        """One for each model."""
        return [client for lane in self.scheduler.lanes for client in lane.clients]

    @property
    def counters(self) -> dict[str, Counters]:
        """Counters of each model's trials, by alias."""
        return {client.model.alias: client.counters for client in self.clients}


@contextlib.asynccontextmanager
async def drivable(run: Run) -> AsyncIterator[Driven]:
    """Start simulators, and open connections, for as long as the body lasts."""
    lag = LoopLag()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(run.batches.ledger.close)
        simulators = await asyncio.to_thread(_start_simulators, run, stack)
        if run.workers.processes is not None:
            lag.others = run.workers.processes.lateness
        urls = {m.alias: simulators[m.replay].url for m in run.models if m.replay in simulators}

        # The workers of a cluster, if they ask anything.
        clustered: ClusterRun | None = None
        dealt = [model for model in run.models if run.is_dealt(model)]
        if dealt and not run.is_complete:
            if run.workers.cluster is None:
                each = 1 if workers_here(run.sweep.workers) else None  # which has processes of its own
                run.workers.cluster = await open_ray_cluster(run.options.ray or "", each=each)
                stack.push_async_callback(run.workers.cluster.aclose)
            dealt_urls = {model.alias: urls[model.alias] for model in dealt if model.alias in urls}
            clustered = ClusterRun(run, run.workers.cluster, dealt, dealt_urls)

        coordinator = None if clustered is None else clustered.coordinator
        lanes = lanes_of(run, urls, lag, stack, coordinator)
        scheduler = Scheduler(lanes=lanes, lag=lag, notify=run.screen.say)
        if coordinator is not None:
            scheduler.on_stop = coordinator.stop
        yield Driven(scheduler=scheduler, clustered=clustered, simulators=list(simulators.values()))


async def drive(run: Run, driven: Driven) -> None:
    """Ask until all is done, or the run is stopped: by Ctrl-C, its deadline, its budget or the disk."""
    scheduler, screen, stops = driven.scheduler, run.screen, _RunStops(run, driven)
    run.salvage.stop = stops.stop_for_the_disk
    if run.workers.processes is not None:
        run.workers.processes.give_up = stops.stop_for_workers
        run.workers.counts = run.workers.processes.counts
        await run.workers.processes.ready()
    if driven.clustered is not None:
        driven.clustered.give_up = stops.stop_for_workers
        run.workers.counts = driven.clustered.counts
    if isinstance(screen, WatchedScreen):
        screen.count_workers = run.workers.counts

    # Whoever started the run controls it; one that cancels batches asks nothing that could be paused.
    control: AbstractAsyncContextManager[None] = contextlib.nullcontext()
    if not run.options.ends:
        control = controlled(run.store.folder, Steering(run, scheduler).answer, screen.say)
    asked_by_workers = driven.clustered.running() if driven.clustered else contextlib.nullcontext()

    messages = BatchMessages(run, driven.counters)
    calls = sum(model.limits.most_in_flight for model in run.models)
    async with asyncio.TaskGroup() as background:
        tasks = [
            background.create_task(run.salvage.tend(), name="store"),
            background.create_task(screen.show(driven.counters, run.money.caps), name="screen"),
            background.create_task(messages.watch(), name="messages about batches"),
            background.create_task(tend_copy(run), name="bucket"),
        ]
        with (
            _deadline(run, scheduler),
            catching_interrupts(stops.interrupt),
            catching_hangup(stops.hang_up),
            rare_garbage_collection(calls),
        ):
            async with control, asked_by_workers:
                await scheduler.run()
        for task in tasks:
            task.cancel()
        messages.poll(last=True)


@dataclass(frozen=True, slots=True)
class _RunStops:
    """Stops a run for a cause from outside, and says so: Ctrl-C, a lost terminal, the disk, dying workers."""

    run: Run
    driven: Driven

    def stop_for_the_disk(self, error: StoreError) -> None:
        self.driven.scheduler.stop(drain_s=DRAIN_S)
        self.run.screen.say(f"{error} Stopping: waiting up to {DRAIN_S:.0f} s for calls in flight.")

    def stop_for_workers(self, why: str) -> None:
        if self.driven.scheduler.stopped:
            self.run.screen.say(f"{why}.")
            return
        self.run.workers.failed = True
        self.driven.scheduler.stop(drain_s=DRAIN_S)
        self.run.screen.say(f"{why}. Stopping: waiting up to {DRAIN_S:.0f} s for calls in flight.")

    def interrupt(self) -> None:
        if self.driven.scheduler.stopped:
            self.driven.scheduler.stop(drain_s=0)
            self.run.screen.say("Leaving now. The next run asks again what was in flight.")
            return
        self.driven.scheduler.stop(drain_s=DRAIN_S)
        calls = sum(counters.in_flight for counters in self.driven.counters.values())
        trials = sum(counters.in_batches for counters in self.driven.counters.values())
        wait = f": waiting up to {DRAIN_S:.0f} s for {number_of(calls, 'call')} in flight" if calls else ""
        batches = f"Batches go on without this program, with {trials:,} trials. " if trials else ""
        self.run.screen.say(f"Stopping{wait}. {batches}Press Ctrl-C again to leave now.")

    def hang_up(self) -> None:
        if not self.driven.scheduler.stopped:
            self.interrupt()


@contextlib.contextmanager
def _deadline(run: Run, scheduler: Scheduler) -> Iterator[None]:
    """Stop the run when its time is over, unless it is being stopped anyway."""
    if run.within_s is None:
        yield
        return

    ends_at = time.time() + run.within_s

    async def ring() -> None:
        while (left_s := ends_at - time.time()) > 0:  # noqa: ASYNC110  a clock tells no event
            await asyncio.sleep(min(left_s, WALL_CLOCK_EVERY_S))
        if not scheduler.stopped:
            run.screen.say(f"The deadline has passed: waiting up to {DRAIN_S:.0f} s for calls in flight.")
            scheduler.pass_deadline(drain_s=DRAIN_S)

    alarm = asyncio.create_task(ring(), name="deadline")
    if run.money.ledger is not None:
        run.money.ledger.ends_s = asyncio.get_running_loop().time() + run.within_s
    try:
        yield
    finally:
        alarm.cancel()


def _start_simulators(run: Run, stack: contextlib.AsyncExitStack) -> "Mapping[str | None, Simulator]":
    """Start a simulator for the models that need one, and one for each folder that is replayed."""
    problems: dict[str | None, set[Path]] = {}
    for model in run.models:
        if model.simulated and model.base_url is None:
            sets = run.questions.sets[model.alias]
            problems.setdefault(model.replay, set()).update(problem_set.problems.path for problem_set in sets)
    folder = run.batches.ledger.folder / SIMULATED  # a run that is killed finds its batches there again

    def forget() -> None:
        if not any(batch_part.open for batch_part in run.batches.ledger.parts.values()):
            discard(folder)

    stack.callback(forget)
    if not problems:
        return {}
    from asyncbench.simulator.batches.settings import BatchSettings
    from asyncbench.simulator.process import running
    from asyncbench.simulator.settings import Settings

    started = {}
    for replay, paths in problems.items():
        settings = Settings(
            problems=tuple(sorted(paths)),
            replay=() if replay is None else (input_path(replay, run.sweep.file),),
            batch=BatchSettings(speedup=OWN_SPEED),
            folder=folder / sha256((replay or "").encode()).hexdigest()[:8],
        )
        started[replay] = stack.enter_context(running(settings))
    return started
