"""The lane of a model under load: it sends each call when it is due, whatever is in flight.

No limit paces it and no call is tried again. A budget, a deadline, Ctrl-C and a provider that refuses for
good end it as they end any lane; the step under way is then incomplete.
"""

import asyncio
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Final

from asyncbench.config.loading import Load
from asyncbench.engine.attempts import INTERRUPTED, LOST
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.limits import respected_wait_s
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.telemetry import StepCounts
from asyncbench.errors import ErrorKind, LostCallError, ProviderError, UnwrittenError
from asyncbench.lanes.load.measuring import UNFINISHED, CallOfStep, Measuring
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, LoadStep, Steps, step_text
from asyncbench.records import Reply, StepResult, Trial

AHEAD_S: Final = 4.0  # trials are read so long before they are due, ...
LEAST_AHEAD: Final = 512  # ... and no fewer than this
AT_ONCE: Final = 16  # calls that are due, begun in one turn of the event loop
SPIN_S: Final = 0.001  # before a call is due, the clock is looked at again and again; it takes CPU, ...
SPINS_UP_TO: Final = 250.0  # ... so only up to this rate
BEHIND_S: Final = 30.0  # a call that is so late is dropped: this computer cannot send so many
LONGEST_WAIT_S: Final = 30.0  # of a caller that fails again and again; first it is a second
NOT_WAITED: Final = "no answer came while the step waited for it (`drain`)"


@dataclass(slots=True, kw_only=True)
class LoadLane:
    """The steps of one model."""

    name: str
    clients: list[ModelClient]  # one
    load: Load
    steps: Steps
    planned_steps: Sequence[LoadStep] | None  # all of them; None: a search finds out which follow
    trials: Callable[[str], Iterator[Trial]]  # of a step, by its name: without end
    notify: Callable[[str], None]  # to a person, once
    serial_group: str | None = None
    search_text: Callable[[], str] | None = None  # what a search came to; None: steps are listed
    results: list[StepResult] = field(default_factory=list)  # of this run
    steered: None = None  # no limit paces it
    interrupted: bool = False  # the latest step, by a pause: it is measured again
    _all_measured: bool = False
    _stopped: bool = False
    _giving_up: bool = False  # the time to wait for answers is over
    begun: int = 0  # trials that steps began
    _depth: int = LEAST_AHEAD  # trials that are read ahead
    _calls: set["asyncio.Task[ProviderError | None]"] = field(default_factory=set)  # in flight
    _sending: "asyncio.Task[None] | None" = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _model: LaneModel = field(init=False)
    _step: StepCounts = field(init=False)  # the latest
    _now_s: Callable[[], float] = field(init=False)

    def __post_init__(self) -> None:
        """Show how many trials are planned before the lane runs."""
        self.clients[0].counters.loaded = True
        self.clients[0].counters.planned += sum(step.calls for step in self.planned_steps or ())

    async def run(self) -> None:
        """Measure step after step, until there is none, the model is given up, or the run is stopped."""
        self._model, self._now_s = LaneModel(self.clients[0]), asyncio.get_running_loop().time
        step = next(self.steps, None)
        while step is not None and not self._is_over:
            before = len(self.results)
            await self._measure(step)
            for result in self.results[before:]:  # none, if it never began
                self.notify(step_text(result, planned_s=step.seconds))
            if self._is_over:
                break
            try:
                step = self.steps.send(self.results[-1])
            except StopIteration:
                step = None
            else:
                await self._rest()
        self._model.counters.step = None
        self._all_measured = step is None
        if not self._stopped:
            self._model.closing.accept()

    def stop(self) -> None:
        """Send nothing more; what is in flight goes on to its end."""
        self._stopped = True
        self._changed.set()
        self._end_sending()

    def apply_pause(self) -> None:
        """End the step under way: half a step is no measurement. Or go on, with the same step as a whole."""
        if self.clients[0].counters.paused and self._sending is not None:
            self.interrupted = True
            self._end_sending()
        self._changed.set()

    def _end_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    @property
    def complete(self) -> bool:
        """Whether every step was measured, and none has to be measured again."""
        verdicts = [result.verdict for result in self.results]
        if self.load.find is not None:  # a search has measured such a step again
            verdicts = [*{result.rate: result.verdict for result in self.results}.values()]
        return self._all_measured and CLIENT_BOUND not in verdicts

    @property
    def _is_over(self) -> bool:
        # What is refused alike from the first call on is refused for a reason that all calls have.
        return self._stopped or self._model.counters.over or self._model.closing.same.certain

    async def _rest(self) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.load.rest):
                while not self._is_over:
                    await self._changed.wait()
                    self._changed.clear()

    # ── One step ─────────────────────────────────────────────────────────────────────────────────

    async def _measure(self, step: LoadStep) -> None:
        """Hold a rate for its time, wait for the answers, and write down what came of it."""
        model = self._model
        due = None if self.load.closed else await asyncio.to_thread(step.due)
        counted = 0 if due is None else len(due) - bisect_left(due, self.load.warmup)
        measuring = Measuring(step, model.alias, epoch_s=self.clients[0].epoch_s, counted=counted)
        try:
            async with asyncio.TaskGroup() as tasks:
                model.queue.dry = False  # before anybody looks: the step before has read all of its own
                beside = [tasks.create_task(self._read(step, due))]
                await self._first_read()
                if self._is_over:  # while nothing was sent
                    beside[0].cancel()
                    return
                self.interrupted = False
                measuring.begin(self._now_s())
                self._step = model.counters.step = self._counts(step, measuring)
                beside.append(
                    tasks.create_task(measuring.watch(model.counters, model.client.lag, self._end_sending))
                )
                sending = self._call_in_turn if due is None else self._send
                self._sending = tasks.create_task(sending(due or (), measuring, tasks))
                await asyncio.wait({self._sending})
                measuring.end(self._now_s(), stopped=self._is_over or self.interrupted)
                self._sending = None
                if self.interrupted and due is not None:  # what is measured instead has calls of its own
                    model.counters.planned -= (
                        len(due) - self._step.due - (0 if self.planned_steps is None else step.calls)
                    )
                await self._drain()
                if (why := measuring.unreached) is not None:  # no step would measure anything
                    model.queue.suspend(
                        f"{ErrorKind.UNREACHABLE.value}: no call of {step.name} reached the server: {why}"
                    )
                    measuring.end(self._now_s(), stopped=True)
                for task in beside:
                    task.cancel()
        finally:
            if measuring.began:
                self.results.append(result := measuring.result())
                if result.offered or result.verdict != INCOMPLETE:  # else it ended before any call counted
                    with suppress(UnwrittenError):  # whoever keeps the events has stopped the lanes
                        model.client.records.keep(result)
            model.queue.pending.clear()

    def _counts(self, step: LoadStep, measuring: Measuring) -> StepCounts:
        load = self.load
        number = sum(result.verdict != INCOMPLETE for result in self.results) + 1
        count = None if self.planned_steps is None else len(self.planned_steps)
        return StepCounts(
            name=step.name,
            number=number,
            total=count,
            counts_from_s=measuring.began_s + load.warmup,
            ends_s=measuring.until_s,
            later_s=sum(
                load.rest + load.warmup + later.seconds for later in (self.planned_steps or ())[number:]
            ),
        )

    async def _read(self, step: LoadStep, due: Sequence[float] | None) -> None:
        """Read the trials of a step some time before they are due.

        Calls that count ask the first problems at any rate, so that steps can be compared; those of the
        warm-up ask the problems after them. Of callers in turn nobody knows how many calls there will be.
        """
        client, trials = self.clients[0], partial(self.trials, step.name)
        first = 0 if self.load.same_problems else self.begun
        if due is None:
            client.feed.trials = islice(trials(), first, None)
        elif step.trace is not None:  # each call has a question of its own
            client.feed.trials = islice(trials(), len(due))
        else:
            end = first + len(due) - bisect_left(due, self.load.warmup)  # of those that count
            client.feed.trials = chain(islice(trials(), end, first + len(due)), islice(trials(), first, end))
        client.counters.planned += len(due or ()) - (0 if self.planned_steps is None else step.calls)
        self._depth = max(LEAST_AHEAD, math.ceil(AHEAD_S * (step.calls_per_s or step.rate)))
        await self._model.queue.feed(lambda: self._depth, self._changed.set)

    async def _first_read(self) -> None:
        """Wait until the first calls of a step could be sent, and no person wants nothing sent."""
        queue, counters = self._model.queue, self._model.counters
        few = min(LEAST_AHEAD, self._depth)
        while not self._is_over and (counters.paused or not (queue.dry or len(queue.pending) >= few)):
            self._changed.clear()
            await self._changed.wait()

    async def _drain(self) -> None:
        """Wait for the answers of a step no longer than it says."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=self.load.drain)
        self._giving_up = True
        for task in self._calls:
            task.cancel()
        if self._calls:
            await asyncio.wait(self._calls)
        self._giving_up = False

    # ── Calls ────────────────────────────────────────────────────────────────────────────────────

    async def _send(self, due: Sequence[float], measuring: Measuring, tasks: asyncio.TaskGroup) -> None:
        """Send each call when it is due; what is late is sent at once, and is late in its own row."""
        counters, most_in_flight = self._model.counters, self.clients[0].model.limits.most_in_flight
        step = measuring.step
        for n, due_s in enumerate(due):
            at_s = measuring.began_s + due_s
            if (wait_s := at_s - self._now_s()) > 0:
                await _wait_until(at_s, step.calls_per_s or step.rate, self._now_s)
            elif n % AT_ONCE == 0:
                await asyncio.sleep(0)  # what was begun is to be sent
            self._step.due = n + 1
            if counters.in_flight >= most_in_flight or wait_s < -BEHIND_S:
                measuring.drop(at_s)
                counters.planned -= 1
                its_own = due_s < self.load.warmup or step.trace is not None
                if its_own and await self._take_next() is not None:
                    self.begun += 1  # calls that count are to ask their own problems
            elif (pending := await self._next_paid()) is None:
                return
            else:
                self._begin(pending, at_s, measuring, tasks)
        await asyncio.sleep(measuring.until_s - self._now_s())

    async def _call_in_turn(self, _: Sequence[float], measuring: Measuring, tasks: asyncio.TaskGroup) -> None:
        """Let a number of callers call, each as soon as it has its answer and has thought."""

        async def call() -> None:
            failures = 0  # in a row
            while pending := await self._next_paid():
                self.clients[0].counters.planned += 1
                self._step.due += 1
                made = self._begin(pending, self._now_s(), measuring, tasks)
                await asyncio.wait({made})
                error = None if made.cancelled() or made.exception() else made.result()

                # Who failed waits longer each time: it would only be refused again.
                wait_s, spread = self.load.think, 1 + self.clients[0].jitter.random() / 10
                failures = 0 if error is None else failures + 1
                if error is not None:
                    growing_s = min(LONGEST_WAIT_S, 2.0 ** min(failures - 1, 30))
                    respected_s = respected_wait_s(error.retry_after_s, growing_s, times=failures)
                    wait_s = max(wait_s, respected_s * spread)  # or all callers return at once
                await asyncio.sleep(wait_s)

        with suppress(TimeoutError):
            async with asyncio.timeout_at(measuring.until_s), asyncio.TaskGroup() as callers:
                for _caller in range(round(measuring.step.rate)):
                    callers.create_task(call())

    async def _next_paid(self) -> PendingTrial | None:
        """Return the next trial, with money set aside for it, or None if nothing more is to be sent."""
        pending = await self._take_next()
        return pending if pending is not None and self._model.money.reserve_or_stop(pending) else None

    async def _take_next(self) -> PendingTrial | None:
        queue = self._model.queue
        while not (queue.pending or queue.dry or self._is_over):
            self._changed.clear()
            await self._changed.wait()
        if self._is_over or not queue.pending:
            return None
        return queue.take(self._depth)

    def _begin(
        self, pending: PendingTrial, due_s: float, measuring: Measuring, tasks: asyncio.TaskGroup
    ) -> "asyncio.Task[ProviderError | None]":
        counters = self._model.counters
        counters.in_flight += 1
        pending.in_flight = counters.in_flight
        pending.taken_s = due_s  # until then it waited for nothing
        self.begun += 1
        self._model.warm_up.started(self._now_s())
        call = measuring.due(due_s, counters.in_flight)
        pending.extra_columns = call.columns
        task = tasks.create_task(self._call(pending, call, measuring))
        self._calls.add(task)
        return task

    async def _call(
        self, pending: PendingTrial, call: CallOfStep, measuring: Measuring
    ) -> ProviderError | None:
        """Make one call, once: whatever comes of it closes its trial. Return how it failed."""
        model, attempts = self._model, self._model.attempts
        ended: Reply | ProviderError
        try:
            attempts.begin(pending)
            try:
                async with asyncio.timeout(attempts.within_s):
                    ended = await model.client.calls.ask(pending.request)
            except asyncio.CancelledError:
                status, why = (UNFINISHED, NOT_WAITED) if self._giving_up else (LOST, INTERRUPTED)
                measuring.ended(call, attempts.end(pending, None, status=status, why=why), self._now_s())
                raise
            except LostCallError as lost:
                measuring.ended(call, attempts.lose(pending, lost), self._now_s())
                return None
            except Exception as error:  # it concerns this reply alone: the other calls go on
                ended = attempts.failure(pending, error)
            attempt = attempts.end(pending, ended)
            self._step.answered += isinstance(ended, Reply)
            measuring.ended(call, attempt, self._now_s())
        except UnwrittenError:
            return None
        finally:
            model.counters.in_flight -= 1
            if (task := asyncio.current_task()) is not None:
                self._calls.discard(task)
        model.warm_up.ended(ended, self._now_s())
        if isinstance(ended, Reply):
            await model.closing.close(pending, attempt, ended)
        else:
            if not model.warm_up.passed:
                model.client.records.note_failure(ended)
            model.closing.failed(pending, ended, paused=False)
        for message in model.messages():
            self.notify(f"{model.alias}: {message}")
        if self._is_over:
            self._changed.set()
            self._end_sending()  # which may wait for long until a call is due
        return ended if isinstance(ended, ProviderError) else None


async def _wait_until(at_s: float, rate: float, now_s: Callable[[], float]) -> None:
    """Wait until a time, and no longer: an event loop may wake up to two milliseconds after it was to."""
    spins = rate <= SPINS_UP_TO and abs(now_s() - time.monotonic()) < 1  # of this machine's own time
    if (sleep_s := at_s - now_s() - (SPIN_S if spins else 0.0)) > 0:
        await asyncio.sleep(sleep_s)
    while now_s() < at_s:  # noqa: ASYNC110  no event comes with a moment
        await asyncio.sleep(0)
