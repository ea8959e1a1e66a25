"""The lane of a model that is asked in batches: packs its trials, submits parts, polls, and collects.

Nothing of it is in a hurry, so one loop does it all, step by step; what is open when a run ends goes on
without it, and the next run takes it up.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from asyncbench.engine.attempts import BatchOfCall
from asyncbench.engine.lane import Lane
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.trial_queue import ModelClient, PendingTrial
from asyncbench.errors import NoRoomError, ProviderError, StoreError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import DAY_S, NOT_FOUND, BatchContext, EnqueuedPool
from asyncbench.lanes.batches.harvest import Harvest, hold_of
from asyncbench.lanes.batches.ledger import GONE_FOR_GOOD, NOTHING, BatchPart, Step
from asyncbench.lanes.batches.packing import PartWriter, tokens_of
from asyncbench.lanes.batches.polling import WAIT_S, Polling, Switch, Switching
from asyncbench.lanes.batches.spending import Reserves, SmallParts
from asyncbench.lanes.batches.status import counts_of
from asyncbench.lanes.batches.submitting import Submitting
from asyncbench.records import REALTIME, History, Trial

READ_AHEAD: Final = 512  # trials that wait to be packed
KEPT_TRIALS: Final = 8  # of those packed last, should the part have to be smaller
RECENT_S: Final = 90_000.0  # no two unnamed parts of the same size within this time
RETRY_S: Final = 60.0
MOST_QUIET_S: Final = 900.0  # while batches are only sent: nothing has moved for so long


@dataclass(slots=True, kw_only=True)
class BatchLane:
    """The batches of one model."""

    name: str
    clients: list[ModelClient]  # one
    context: BatchContext
    harvest: Harvest
    realtime: Callable[[ModelClient], Lane]  # asks what batches did not answer
    fail: Callable[[StoreError], None]  # the run: the disk takes nothing more
    rounds: Counter[str] = field(default_factory=Counter)  # parts that trials were in, by earlier runs
    pool: EnqueuedPool  # perhaps of other models, too
    serial_group: str | None = None
    leaves: bool = False  # waits for no batch: it ends as soon as all are sent that can be
    ends: bool = False  # cancels what is open, and asks nothing
    switch: Switch | None = None  # before a deadline, to real time; None: batches have their time
    steered: Lane | None = None  # asks what batches did not answer: they themselves have no such limits
    _stopped: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _for_realtime: list[PendingTrial] = field(default_factory=list)  # asked call by call
    _writer: PartWriter | None = None
    _in_use: int = 0  # of the pool, by open parts
    _no_room: bool = False  # for the next trial, in the pool that open parts hold
    _latest: deque[PendingTrial] = field(default_factory=lambda: deque(maxlen=KEPT_TRIALS))  # of the writer
    _failed: Counter[str] = field(default_factory=Counter)  # collections in a row, by part
    _failing: dict[str, float] = field(default_factory=dict)  # by part: UTC since which they failed
    _model: LaneModel = field(init=False)
    _submitting: Submitting = field(init=False)
    _polling: Polling = field(init=False)
    _switching: Switching = field(init=False)
    _reserves: Reserves = field(init=False)
    _small_parts: SmallParts = field(init=False)
    _ends_at: float = math.inf  # UTC: for how long it is waited for what was cancelled

    async def run(self) -> None:
        """Return when nothing is open that waiting could end, or when stopped; batches go on without it."""
        context = self.context
        self._model = LaneModel(self.clients[0])
        self.pool.remember(context.ledger, context.alias)
        self._submitting = Submitting(context, self.pool, paused=lambda: self._model.counters.paused)
        self._reserves = Reserves(context.ledger, context.alias, self.clients[0].account)
        self._small_parts = SmallParts(context, self._model)
        self._polling = Polling(context, self.pool, self._submitting)
        self._switching = Switching(
            context, self.switch, self._polling, self.clients[0], ends=self.ends, leaves=self.leaves
        )
        self.harvest.model, self.harvest.ask_again = self._model, self._ask_again
        for part in context.ledger.open_of(context.alias):
            if part.restored and part.unsent and await self.harvest.is_outdated(part):
                await self._give_back(part)
        if self.ends:
            self._ends_at = context.clock.now() + WAIT_S * context.clock.real_s
        async with asyncio.TaskGroup() as beside:
            await self._run_rounds(beside)
        if not self._stopped:
            self._model.closing.accept()
            await self._ask_the_rest()

    async def _run_rounds(self, beside: asyncio.TaskGroup) -> None:
        """Go on round by round; what must not wait for batches any more is asked beside them."""
        feeding = asyncio.create_task(self._model.queue.feed(lambda: READ_AHEAD, self._changed.set))
        asking: asyncio.Task[None] | None = None
        try:
            while not self._stopped and (wait_s := await self._round(feeding)) is not None:
                asks = self._for_realtime and self._switching.begins_none and self._model.exhausted
                if asks and (asking is None or asking.done()):
                    asking = beside.create_task(self._ask_the_rest())
                await self._wait(wait_s)
        except StoreError as error:
            self._stopped = True
            self.fail(error)  # stops all lanes; calls of others that are in flight may end
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
            self._empty_writer()

    def stop(self) -> None:
        """Begin nothing more; batches that were created go on."""
        self._stopped = True
        self._changed.set()
        if self.steered is not None:
            self.steered.stop()

    def apply_pause(self) -> None:
        """Apply `Counters.paused`: nothing new is sent, or it is again; batches that were created go on."""
        self._changed.set()
        if self.steered is not None:
            self.steered.apply_pause()

    # ── One round ────────────────────────────────────────────────────────────────────────────────

    async def _round(self, feeding: "asyncio.Task[None]") -> float | None:
        """Take every step that is due; return the seconds until the next one is, None: there is none."""
        if feeding.done():
            feeding.result()  # raises what the reader did
        context = self.context
        if context.clock.now() > self._ends_at:
            return None
        for part in self._switching.late():
            # so that whoever comes next cancels it, too
            await context.note(part, Step.CANCELLING, batch_id=part.batch_id)
        for part in context.ledger.of(context.alias):
            if not self._stopped and self._goes_on(part) and context.is_due(part):
                await self._advance(part)
        polled_s = await self._polling.poll() if not self._stopped else math.inf
        self._reserves.follow_twins()
        paused = self._model.counters.paused
        packed = not paused and await self._pack()
        parts = context.ledger.open_of(context.alias)
        self._reserves.doubt(
            (part for part in parts if context.due.get(part.key) == math.inf), self.harvest.done
        )
        going = [part for part in context.ledger.of(context.alias) if self._goes_on(part)]
        if packed or self._polling.changed or any(map(context.is_due, going)):
            return 0.0
        if self.leaves and not (paused or self._switching.begins_none or self._may_send_more()):
            self._stopped = True  # what is out is for the next run, and so is its money
            self._reserves.doubt(parts, self.harvest.done)
            return None
        going = [part for part in going if part.open and context.due[part.key] < math.inf]
        waits = not (self._model.exhausted or self._no_room) or self._writer is not None
        waits |= paused and any(part.open and not part.batch_id for part in context.ledger.of(context.alias))
        if not going and polled_s == math.inf and not waits:
            return None
        return min([polled_s, RETRY_S, *(-context.clock.since(context.due[part.key]) for part in going)])

    def _may_send_more(self) -> bool:
        """Whether more is sent soon: it is being read, tried again, or a young batch makes room for it."""
        queue, context = self._model.queue, self.context
        if not (queue.dry or queue.pending or self._model.counters.over):
            return True
        parts = context.ledger.open_of(context.alias)
        if all(context.clock.since(part.at) > MOST_QUIET_S for part in parts):
            return False
        sending = any(part.unsent and not part.refusals for part in parts) and not self._model.counters.over
        learning = self.pool.learns and any(part.submitted and not part.counted for part in parts)
        return sending or bool(queue.pending and learning)

    def _goes_on(self, part: BatchPart) -> bool:
        """Whether a part has a step before it that is not waiting for its batch to end."""
        if part.step in (Step.COLLECTED, Step.CLEANING) or (part.unsent and self._switching.begins_none):
            return True
        if not part.open or self.context.blind:
            return False
        if part.submitted:
            return self._polling.is_to_cancel(part)
        counters = self._model.counters
        return bool(part.batch_id) or (not counters.paused and (part.in_doubt or not counters.over))

    async def _advance(self, part: BatchPart) -> None:
        if part.step in (Step.COLLECTED, Step.CLEANING):
            wait_s = await _clean(self.context, part)
        elif part.step in (Step.ENDED, Step.DOWNLOADING):
            wait_s = await self._collect(part)
        elif part.submitted:
            wait_s = await self._polling.cancel(part.batch_id or "")
            self._polling.soon()
        elif part.unsent and self._switching.begins_none:
            wait_s = await self._give_back(part)
        else:
            wait_s = await self._submitting.advance(part)
            if part.step in NOTHING:
                await self.harvest.reopen(part)
        self.context.put_off(part, wait_s)

    async def _give_back(self, part: BatchPart) -> float:
        """Send a part no more; its trials are packed anew, but for those that have left the sweep."""
        await self.context.note(part, Step.NEVER_CREATED)
        await self.harvest.reopen(part)
        return await _clean(self.context, part)

    async def _collect(self, part: BatchPart) -> float:
        context = self.context
        try:
            if not await self.harvest.collect(part):
                self._stopped = True  # the disk has failed: the next run collects it
        except NoRoomError as error:
            context.notify(f"{error}")
            return math.inf
        except ProviderError as error:
            if error.http_status == NOT_FOUND:
                if context.lost_sight(part):
                    return math.inf
                if context.is_gone(part):
                    await context.note(part, Step.ENDED, **GONE_FOR_GOOD)
                    return 0.0
            self._failed[part.key] += 1
            if context.clock.since(self._failing.setdefault(part.key, context.clock.now())) > DAY_S:
                context.notify(
                    f"the results of batch {part.batch_id} could not be downloaded for a day: "
                    f"{error}. The next run tries again. Or download them from your provider's console, and "
                    "take them in: `asyncbench import batch FILE --out "
                    f"{quoted(context.ledger.folder.parent)}`."
                )
                return math.inf
            if self._failed[part.key] == 1:
                context.notify(f"results of batch {part.batch_id}: {error}. Trying again.")
            return context.failed(error, again=self._failed[part.key] - 1, reading=True, one_batch=True)
        return 0.0

    async def _wait(self, seconds: float) -> None:
        self._model.counters.batches = counts_of(self.context, wait_s=seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._changed.clear()
        if self._stopped:
            return
        queue = self._model.queue
        reading = not (queue.dry or queue.pending or self._model.counters.over)
        waiting = {
            asyncio.create_task(asyncio.sleep(1.0) if reading else self.context.clock.sleep(seconds)),
            asyncio.create_task(self._changed.wait()),
        }
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    # ── Packing ──────────────────────────────────────────────────────────────────────────────────

    async def _pack(self) -> bool:
        """Pack what waits; return whether a part was prepared. The last part may be small."""
        queue, self._in_use = self._model.queue, self.pool.in_use(self.context.ledger)
        while queue.pending and not self._stopped:
            pending = queue.take(READ_AHEAD)
            answered = pending.history.ended  # by a run that did not live to grade it
            if answered and answered.reply:
                await self._model.closing.close(pending, answered.attempt, answered.reply)
            elif queue.gives_up(pending):
                queue.skip(pending)
            elif self._leaves_batches(pending):
                self._for_realtime.append(pending)
            elif not self._put_in(pending):
                queue.put_back(pending)
                requests = 0 if self._writer is None else self._writer.requests
                return not self._small_parts.wait(pending, requests) and await self._finish()
            elif self._writer is not None and self._writer.full:
                return await self._finish()
        begins_none = self._switching.begins_none or self._model.counters.over
        return await self._finish() if begins_none or (queue.dry and not queue.pending) else False

    def _leaves_batches(self, pending: PendingTrial) -> bool:
        """Whether a trial is in no further batch: it had its rounds, or no batches are begun."""
        pending.rounds = max(pending.rounds, self.rounds.pop(pending.request.trial.trial_id, 0))
        had_its_rounds = pending.rounds >= self.context.batching.rounds
        return had_its_rounds or self.context.shared.absent is not None or self._switching.begins_none

    def _put_in(self, pending: PendingTrial) -> bool:
        """Put a trial into the part that is being filled; return whether there is room and money."""
        context, model = self.context, self._model
        if self._writer is None:
            self._writer = PartWriter(
                context.ledger.folder,
                context.api,
                max_requests=context.batching.max_requests,
                max_bytes=context.batching.max_bytes,
            )
            self._latest.clear()
        writer = self._writer
        size = self.pool.size(writer.tokens + tokens_of(pending), writer.requests + 1)
        full = not self.pool.fits(size, in_use=self._in_use)
        self._no_room = full and bool(self._in_use)
        if full and (writer.requests or self._in_use):
            return False
        if not model.money.affords(pending):
            if pending.hold.amount and model.client.account is not None:
                model.client.account.ledger.wake_on_change(self._changed.set)
            return False
        try:
            line = writer.line(pending)
        except ProviderError as error:
            self._refuse(pending, error)
            return True
        if writer.full or not writer.fits(line) or not model.money.reserve(pending):
            return False
        model.attempts.pack(pending)
        writer.add(pending, line)
        self._latest.append(pending)
        model.counters.in_batches += 1
        return True

    def _refuse(self, pending: PendingTrial, error: ProviderError) -> None:
        """Fail a trial alone whose request no file can hold: it costs nothing, and no other."""
        model = self._model
        model.attempts.pack(pending)
        nowhere = BatchOfCall(id=None, created_at=self.context.clock.now(), ended_at=None)
        model.attempts.collect(pending, error, nowhere)
        if model.closing.failed(pending, error, paused=False) is not None:
            self._for_realtime.append(pending)

    async def _finish(self) -> bool:
        """Make a part of what was packed, if anything was."""
        if self._model.counters.over:  # it would not be sent, and hold money all the same
            self._empty_writer()
        context, writer = self.context, self._writer
        if writer is None or not writer.requests:
            self._writer = None
            return False
        async with context.ledger.packing:
            if not context.api.uploads:
                self._take_out(_surplus(writer.requests, _recent_sizes(context), most=len(self._latest) - 1))
            part = await asyncio.to_thread(writer.finish, context.alias)
            await context.note(part, Step.PREPARED)
        self._writer = None
        return True

    def _take_out(self, count: int) -> None:
        """Take the trials that were packed last out of the part, as far as they are known."""
        for _ in range(min(count, len(self._latest))):
            pending = self._latest.pop()
            if self._writer is not None:
                self._writer.drop()
            self._model.attempts.unpack(pending)
            self._model.counters.in_batches -= 1
            self._model.queue.put_back(pending)

    def _empty_writer(self) -> None:
        """Give up the part that is being filled: nothing of it was sent."""
        if self._writer is not None:
            for row in self._writer.rows():
                if self._model.client.account is not None:
                    self._model.client.account.settle(hold_of(row), 0.0)
            self._model.counters.in_batches -= self._writer.requests
            self._writer.abandon()
            self._writer = None

    def _ask_again(self, pending: PendingTrial) -> None:
        """Ask a trial again that a batch did not answer: in another one, or in real time."""
        if self._leaves_batches(pending):
            self._for_realtime.append(pending)
        else:
            self._model.queue.put_back(pending)

    # ── Real time for the rest ───────────────────────────────────────────────────────────────────

    async def _ask_the_rest(self) -> None:
        """Ask the rest in real time, if the sweep wants that: all their parts have ended."""
        late = self._switching.begins_none
        if not self._for_realtime or self.ends or self._stopped or self._model.counters.over:
            return
        if not late and self.context.batching.fallback != REALTIME:
            return
        count = f"{len(self._for_realtime):,} trials"
        why = f"{count} were not answered in {self.context.batching.rounds} batches each"
        if self._switching.collects:
            why = f"{count} were left by batches"
        elif late:
            why = f"there is no time for batches of {count}"
        if self.context.shared.absent is None:
            self.context.notify(f"{why}. Asking them in real time, at the full price.")
        known = {
            pending.request.trial.trial_id: History(attempts=pending.attempts, cost_usd=pending.cost_usd)
            for pending in self._for_realtime
        }
        client = replace(
            self.clients[0],
            trials=iter(_in_real_time([pending.request.trial for pending in self._for_realtime])),
            history_of=lambda trial: known[trial.trial_id],
        )
        self._for_realtime.clear()
        self.steered = self.realtime(client)
        await self.steered.run()
        self.steered = None


async def _clean(context: BatchContext, part: BatchPart) -> float:
    """Delete what is no longer needed: the upload, and our copies of what was sent and came."""
    if part.step is not Step.CLEANING:
        await context.note(part, Step.CLEANING)
    if part.file_id is not None:
        try:
            await context.api.delete_input(part.file_id)
        except ProviderError:
            return math.inf  # the next run tries again; the vendor deletes it in 30 days
    for suffix in ("jsonl", "results", "part", "most", "handed"):
        context.ledger.path(part, suffix).unlink(missing_ok=True)
    await context.note(part, Step.CLEANED)
    return math.inf


def _in_real_time(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials as they are asked call by call: a budget sets aside the full price for them.

    Those that shared a model share one again: what a run knows of a model, it knows of that object.
    """
    models = {id(trial.model): trial.model for trial in trials}
    by_model = {key: replace(model, mode=REALTIME) for key, model in models.items()}
    return [replace(trial, model=by_model[id(trial.model)]) for trial in trials]


def _recent_sizes(context: BatchContext) -> set[int]:
    """Return how many requests those parts have for which another one could be taken."""
    parts = context.ledger.parts.values()
    return {part.requests for part in parts if context.clock.since(part.at) < RECENT_S or part.open}


def _surplus(requests: int, taken: Iterable[int], *, most: int) -> int:
    """Return how many requests fewer give a part a number of them that no other has."""
    sizes: Sequence[int] = range(requests, max(0, requests - most - 1), -1)
    return next((requests - size for size in sizes if size not in set(taken)), 0)
