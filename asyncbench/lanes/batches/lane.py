"""The lane of a model that is asked in batches.

Nothing of it is in a hurry, so one loop does all in rounds, step by step:

    cancel       parts that must not go on           switching.py
    advance      parts, each by its next step        steps.py, with submitting.py and harvest.py
    poll         batches that have not ended         polling.py
    fill         parts with trials that wait         filling.py, with packing.py
    count        money of parts nobody settles       spending.py

What is open when a run ends goes on without it, and the next run takes it up: each step is in the ledger
(ledger.py) before it is taken. Trials that no batch answers may be asked in real time (realtime.py).
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.lane import Lane
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.model_client import ModelClient
from asyncbench.errors import StoreError
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.filling import READ_AHEAD, PartFiller
from asyncbench.lanes.batches.harvest import Harvest
from asyncbench.lanes.batches.ledger import Step
from asyncbench.lanes.batches.polling import Polling
from asyncbench.lanes.batches.realtime import RealtimeFallback
from asyncbench.lanes.batches.spending import Reserves
from asyncbench.lanes.batches.status import counts_of
from asyncbench.lanes.batches.steps import PartSteps
from asyncbench.lanes.batches.submitting import Submitting
from asyncbench.lanes.batches.switching import BatchEnding, Switching

RETRY_S: Final = 60.0
MOST_QUIET_S: Final = 900.0  # while batches are only sent: nothing has moved for so long


@dataclass(slots=True, kw_only=True)
class BatchLane:
    """The batches of one model."""

    name: str
    clients: list[ModelClient]  # one
    context: BatchContext
    harvest: Harvest
    realtime: Callable[[ModelClient], Lane]  # opens the lane of what batches did not answer
    fail: Callable[[StoreError], None]  # tells the run that the disk takes nothing more
    rounds: Counter[str] = field(default_factory=Counter)  # by trial: parts that it was in, by earlier runs
    serial_group: str | None = None
    ending: BatchEnding = field(default_factory=BatchEnding)
    _stopped: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _fallback: RealtimeFallback = field(init=False)
    # While it runs:
    _model: LaneModel = field(init=False)
    _polling: Polling = field(init=False)
    _switching: Switching = field(init=False)
    _steps: PartSteps = field(init=False)
    _filler: PartFiller = field(init=False)
    _reserves: Reserves = field(init=False)

    def __post_init__(self) -> None:
        self._fallback = RealtimeFallback(self.context, self.clients[0], self.realtime)

    @property
    def steered(self) -> Lane | None:
        """The lane that asks in real time: batches themselves have no such limits."""
        return self._fallback.lane

    async def run(self) -> None:
        """Return when nothing is open that waiting could end, or when stopped; batches go on without it."""
        context, client = self.context, self.clients[0]
        self._model = LaneModel(client)
        context.pool.remember(context.ledger, context.alias)
        self._reserves = Reserves(context.ledger, context.alias, client.account)
        submitting = Submitting(context, paused=lambda: self._model.counters.paused)
        self._polling = Polling(context, submitting)
        self._switching = Switching(context, self.ending, self._polling, client)
        self._filler = PartFiller(
            context,
            self._model,
            self._switching,
            self._fallback,
            self.rounds,
            stopped=lambda: self._stopped,
            on_money=self._changed.set,
        )
        self.harvest.model, self.harvest.ask_again = self._model, self._filler.ask_again
        self._steps = PartSteps(
            context,
            self._model,
            self.harvest,
            submitting,
            self._polling,
            self._switching,
            on_disk_failure=self.stop,
        )

        for batch_part in context.ledger.open_parts_of(context.alias):
            if batch_part.restored and batch_part.unsent and await self.harvest.is_outdated(batch_part):
                await self._steps.give_back(batch_part)
        async with asyncio.TaskGroup() as asking:
            await self._run_rounds(asking)
        if not self._stopped:
            self._model.closing.accept()
            await self._fallback.ask(self._switching)

    def stop(self) -> None:
        """Begin nothing more; batches that were created go on."""
        self._stopped = True
        self._changed.set()
        self._fallback.stop()

    def apply_pause(self) -> None:
        """Apply `Counters.paused`: nothing new is sent, or it is again; batches that were created go on."""
        self._changed.set()
        if self.steered is not None:
            self.steered.apply_pause()

    # ── Rounds ───────────────────────────────────────────────────────────────────────────────────

    async def _run_rounds(self, asking: asyncio.TaskGroup) -> None:
        """Go on round by round until nothing is open that waiting could end.

        `asking` holds the calls in real time that are made meanwhile, beside the batches.
        """
        feeding = asyncio.create_task(self._model.queue.feed(lambda: READ_AHEAD, self._changed.set))
        fallback: asyncio.Task[None] | None = None
        try:
            while not self._stopped:
                if feeding.done():
                    feeding.result()  # raises what the reader did
                if self._switching.gives_up:
                    break
                progressed = await self._take_steps()
                if not progressed and self._sends_no_more():
                    # What is out is for the next run, and so is its money.
                    self.stop()
                    self._reserves.doubt(
                        self.context.ledger.open_parts_of(self.context.alias), self.harvest.done
                    )
                    break
                wait_s = 0.0 if progressed else self._next_step_s()
                if wait_s == math.inf:
                    break

                # Where no batch is begun any more, what is left need not wait for those that are out.
                due = self._fallback.waiting and self._switching.begins_none and self._model.exhausted
                if due and (fallback is None or fallback.done()):
                    fallback = asking.create_task(self._fallback.ask(self._switching))
                await self._wait(wait_s)
        except StoreError as error:
            self.stop()
            self.fail(error)  # stops all lanes; calls of others that are in flight may end
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
            self._filler.abandon()

    async def _take_steps(self) -> bool:
        """Take every step that is due; return whether another one is due at once."""
        context, ledger, polling = self.context, self.context.ledger, self._polling
        for batch_part in self._switching.late_parts():
            # It is written down so that whoever comes next cancels it, too.
            await context.note(batch_part, Step.CANCELLING, batch_id=batch_part.batch_id)
        for batch_part in ledger.parts_of(context.alias):
            if not self._stopped and self._steps.has_next(batch_part) and context.is_due(batch_part):
                await self._steps.advance(batch_part)
        if not self._stopped:
            await polling.poll()
        self._reserves.follow_twins()
        filled = not self._model.counters.paused and await self._filler.fill()

        open_parts = ledger.open_parts_of(context.alias)
        put_off = (batch_part for batch_part in open_parts if context.due.get(batch_part.key) == math.inf)
        self._reserves.doubt(put_off, self.harvest.done)
        steps = filter(self._steps.has_next, ledger.parts_of(context.alias))
        return filled or polling.changed or any(map(context.is_due, steps))

    def _sends_no_more(self) -> bool:
        """Whether a run that waits for no batch has sent all that it can send soon."""
        queue, context, counters = self._model.queue, self.context, self._model.counters
        if not self.ending.detaches or counters.paused or self._switching.begins_none:
            return False
        if not (queue.dry or queue.pending or counters.over):  # trials are being read
            return False
        parts = context.ledger.open_parts_of(context.alias)
        if all(context.clock.since(batch_part.at) > MOST_QUIET_S for batch_part in parts):
            return True

        # A part is sent again, or a young batch makes room in the pool for what waits.
        unsent = any(batch_part.unsent and not batch_part.refusals for batch_part in parts)
        young = any(batch_part.submitted and not batch_part.counted for batch_part in parts)
        makes_room = context.pool.learns and young
        return not (unsent and not counters.over) and not (queue.pending and makes_room)

    def _next_step_s(self) -> float:
        """Return the seconds until a step may be due; inf: nothing is open that waiting could end."""
        context, model = self.context, self._model
        parts = context.ledger.parts_of(context.alias)
        waits_s = [self._polling.wait_s]
        for batch_part in parts:
            if (
                batch_part.open
                and self._steps.has_next(batch_part)
                and context.due[batch_part.key] < math.inf
            ):
                waits_s.append(-context.clock.since(context.due[batch_part.key]))

        packs = self._filler.filling or not (model.exhausted or self._filler.lacks_room)
        unsent = any(batch_part.open and not batch_part.batch_id for batch_part in parts)
        if packs or (model.counters.paused and unsent) or min(waits_s) < math.inf:
            return min(RETRY_S, *waits_s)
        return math.inf

    async def _wait(self, seconds: float) -> None:
        """Wait until something changes, at most so long; while trials are read, at most a second."""
        self._model.counters.batches = counts_of(self.context, wait_s=seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._changed.clear()
        if self._stopped:
            return
        queue = self._model.queue
        reading = not (queue.dry or queue.pending or self._model.counters.over)
        tasks = {
            asyncio.create_task(asyncio.sleep(1.0) if reading else self.context.clock.sleep(seconds)),
            asyncio.create_task(self._changed.wait()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
