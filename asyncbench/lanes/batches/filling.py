"""Fill parts with the trials of a model: as many as the pool, the budget and the sizes of files allow."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from asyncbench.engine.attempts import BatchOfCall
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ProviderError
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.ledger import Step
from asyncbench.lanes.batches.packing import PartWriter, hold_of, tokens_of
from asyncbench.lanes.batches.realtime import RealtimeFallback
from asyncbench.lanes.batches.spending import SmallParts
from asyncbench.lanes.batches.switching import Switching

READ_AHEAD: Final = 512  # trials that wait to be packed
KEPT_TRIALS: Final = 8  # of those packed last, should the part have to be smaller
RECENT_S: Final = 90_000.0  # no two unnamed parts of the same size within this time


class PartFiller:
    """The part of one model that is being filled, and the trials that may go into it."""

    def __init__(
        self,
        context: BatchContext,
        model: LaneModel,
        switching: Switching,
        fallback: RealtimeFallback,
        rounds: Counter[str],
        *,
        stopped: Callable[[], bool],
        on_money: Callable[[], None],
    ) -> None:
        """Begin.

        Args:
            context: of the model's batches.
            model: its queue, money and attempts.
            switching: whether batches are begun at all.
            fallback: takes the trials that are in no further batch.
            rounds: by trial, the parts that it was in by earlier runs.
            stopped: whether the lane packs no more.
            on_money: is called when money comes back for which the next trial waits.
        """
        self.lacks_room = False  # for the next trial, in the pool that open parts hold
        self._context, self._model = context, model
        self._switching, self._fallback, self._rounds = switching, fallback, rounds
        self._stopped, self._on_money = stopped, on_money
        self._small_parts = SmallParts(context, model)
        self._writer: PartWriter | None = None
        self._latest = deque[PendingTrial](maxlen=KEPT_TRIALS)  # of the writer
        self._size_in_use = 0  # of the pool, by open parts

    @property
    def filling(self) -> bool:
        """Whether a part was begun that is not prepared yet."""
        return self._writer is not None

    async def fill(self) -> bool:
        """Pack what waits; return whether a part was prepared. The last part may be small."""
        context, model, queue = self._context, self._model, self._model.queue
        self._size_in_use = context.pool.size_in_use(context.ledger)
        while queue.pending and not self._stopped():
            pending = queue.take(READ_AHEAD)
            answered = pending.history.ended  # by a run that did not live to grade it
            if answered and answered.reply:
                await model.closing.close(pending, answered.attempt, answered.reply)
            elif queue.gives_up(pending):
                queue.skip(pending)
            elif self._leaves_batches(pending):
                self._fallback.add(pending)
            elif not self._add(pending):
                queue.put_back(pending)
                requests = 0 if self._writer is None else self._writer.requests
                return not self._small_parts.wait(pending, requests) and await self._finish()
            elif self._writer is not None and self._writer.full:
                return await self._finish()

        no_more = self._switching.begins_none or model.counters.over or (queue.dry and not queue.pending)
        return no_more and await self._finish()

    def ask_again(self, pending: PendingTrial) -> None:
        """Take back a trial that a batch did not answer: for another part, or for real time."""
        if self._leaves_batches(pending):
            self._fallback.add(pending)
        else:
            self._model.queue.put_back(pending)

    def abandon(self) -> None:
        """Give up the part that is being filled: nothing of it was sent."""
        if self._writer is None:
            return
        account = self._model.client.account
        if account is not None:
            for row in self._writer.rows():
                account.settle(hold_of(row), 0.0)
        self._model.counters.in_batches -= self._writer.requests
        self._writer.abandon()
        self._writer = None

    def _leaves_batches(self, pending: PendingTrial) -> bool:
        """Whether a trial is in no further batch: it had its rounds, or no batches are begun."""
        pending.rounds = max(pending.rounds, self._rounds.pop(pending.request.trial.trial_id, 0))
        had_its_rounds = pending.rounds >= self._context.batching.rounds
        return had_its_rounds or self._context.shared.absent is not None or self._switching.begins_none

    def _add(self, pending: PendingTrial) -> bool:
        """Put a trial into the part that is being filled; return whether there is room and money.

        A request that no file can hold fails alone: it costs nothing, and no other trial.
        """
        context, model = self._context, self._model
        if self._writer is None:
            self._writer = PartWriter(
                context.ledger.folder,
                context.api,
                max_requests=context.batching.max_requests,
                max_bytes=context.batching.max_bytes,
            )
            self._latest.clear()
        writer = self._writer

        # Room in the vendor's pool, and money.
        size = context.pool.size(writer.tokens + tokens_of(pending), writer.requests + 1)
        full = not context.pool.fits(size, in_use=self._size_in_use)
        self.lacks_room = full and bool(self._size_in_use)
        if full and (writer.requests or self._size_in_use):
            return False
        if not model.money.affords(pending):
            if pending.hold.amount and model.client.account is not None:
                model.client.account.ledger.wake_on_change(self._on_money)
            return False

        # Its line in the file of requests.
        try:
            line = writer.line(pending)
        except ProviderError as error:
            model.attempts.pack(pending)
            no_batch = BatchOfCall(id=None, created_at=context.clock.now(), ended_at=None)
            model.attempts.collect(pending, error, no_batch)
            if model.closing.failed(pending, error, paused=False) is not None:
                self._fallback.add(pending)
            return True
        if writer.full or not writer.fits(line) or not model.money.reserve(pending):
            return False
        model.attempts.pack(pending)
        writer.add(pending, line)
        self._latest.append(pending)
        model.counters.in_batches += 1
        return True

    async def _finish(self) -> bool:
        """Make a part of what was packed; return whether anything was."""
        context, model = self._context, self._model
        if model.counters.over:  # it would not be sent, and hold money all the same
            self.abandon()
        writer = self._writer
        if writer is None or not writer.requests:
            self._writer = None
            return False

        async with context.ledger.packing:
            if not context.api.uploads:
                # A batch without an upload has no name, and is told by its number of requests: the part
                # gives up trials until no other one, of those that may be in doubt with it, has as many.
                taken = {
                    batch_part.requests
                    for batch_part in context.ledger.parts.values()
                    if context.clock.since(batch_part.at) < RECENT_S or batch_part.open
                }
                fewest = max(1, writer.requests - len(self._latest) + 1)
                sizes = range(writer.requests, fewest - 1, -1)
                size = next((size for size in sizes if size not in taken), writer.requests)
                for _ in range(writer.requests - size):
                    pending = self._latest.pop()
                    writer.drop()
                    model.attempts.unpack(pending)
                    model.counters.in_batches -= 1
                    model.queue.put_back(pending)
            batch_part = await asyncio.to_thread(writer.finish, context.alias)
            await context.note(batch_part, Step.PREPARED)
        self._writer = None
        return True
