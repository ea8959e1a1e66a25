"""Take each part of a model from step to step: submitted, cancelled, collected, cleaned up, or given back."""

import math
from collections import Counter
from collections.abc import Callable

from asyncbench.engine.lane_model import LaneModel
from asyncbench.errors import NoRoomError, ProviderError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import DAY_S, NOT_FOUND, BatchContext
from asyncbench.lanes.batches.harvest import Harvest
from asyncbench.lanes.batches.ledger import GONE_FOR_GOOD, NOTHING, BatchPart, Step
from asyncbench.lanes.batches.polling import Polling
from asyncbench.lanes.batches.submitting import Submitting
from asyncbench.lanes.batches.switching import Switching


class PartSteps:
    """The steps of one model's parts that are not a wait for a batch to end."""

    def __init__(
        self,
        context: BatchContext,
        model: LaneModel,
        harvest: Harvest,
        submitting: Submitting,
        polling: Polling,
        switching: Switching,
        *,
        on_disk_failure: Callable[[], None],
    ) -> None:
        self._context, self._counters, self._harvest = context, model.counters, harvest
        self._submitting, self._polling, self._switching = submitting, polling, switching
        self._on_disk_failure = on_disk_failure
        self._failures = Counter[str]()  # collections that failed in a row, by part
        self._failing_since: dict[str, float] = {}  # by part: UTC

    def has_next(self, batch_part: BatchPart) -> bool:
        """Whether a part has a step before it that is not waiting for its batch to end."""
        if batch_part.step in (Step.COLLECTED, Step.CLEANING):
            return True
        if batch_part.unsent and self._switching.begins_none:
            return True
        if not batch_part.open or self._context.blind:
            return False
        if batch_part.submitted:
            return self._polling.is_to_cancel(batch_part)
        # A batch that exists is collected even when the run is paused or over.
        counters = self._counters
        return bool(batch_part.batch_id) or (
            not counters.paused and (batch_part.in_doubt or not counters.over)
        )

    async def advance(self, batch_part: BatchPart) -> None:
        """Take the next step of a part, and note when the one after it is due."""
        if batch_part.step in (Step.COLLECTED, Step.CLEANING):
            wait_s = await self._clean(batch_part)
        elif batch_part.step in (Step.ENDED, Step.DOWNLOADING):
            wait_s = await self._collect(batch_part)
        elif batch_part.submitted:
            wait_s = await self._polling.cancel(batch_part.batch_id or "")
            self._polling.soon()
        elif batch_part.unsent and self._switching.begins_none:
            wait_s = await self.give_back(batch_part)
        else:
            wait_s = await self._submitting.advance(batch_part)
            if batch_part.step in NOTHING:  # no batch came of it
                await self._harvest.reopen(batch_part)
        self._context.put_off(batch_part, wait_s)

    async def give_back(self, batch_part: BatchPart) -> float:
        """Send a part no more; its trials are packed anew, but for those that have left the sweep."""
        await self._context.note(batch_part, Step.NEVER_CREATED)
        await self._harvest.reopen(batch_part)
        return await self._clean(batch_part)

    async def _collect(self, batch_part: BatchPart) -> float:
        """Collect the results of a part; return the seconds until that is tried again; 0: it need not be."""
        context = self._context
        try:
            if not await self._harvest.collect(batch_part):
                self._on_disk_failure()  # the next run collects it
            return 0.0
        except NoRoomError as error:
            context.notify(f"{error}")
            return math.inf
        except ProviderError as error:
            if error.http_status == NOT_FOUND:
                if context.lost_sight(batch_part):  # noted; it has lasted too long
                    return math.inf
                if context.is_gone(batch_part):
                    await context.note(batch_part, Step.ENDED, **GONE_FOR_GOOD)
                    return 0.0

            # Try again for a day, and leave the results to the next run then.
            self._failures[batch_part.key] += 1
            failures = self._failures[batch_part.key]
            since = self._failing_since.setdefault(batch_part.key, context.clock.now())
            if context.clock.since(since) > DAY_S:
                context.notify(
                    f"the results of batch {batch_part.batch_id} could not be downloaded for a day: "
                    f"{error}. The next run tries again. Or download them from your provider's console, and "
                    "take them in: `asyncbench import batch FILE --out "
                    f"{quoted(context.ledger.folder.parent)}`."
                )
                return math.inf
            if failures == 1:
                context.notify(f"results of batch {batch_part.batch_id}: {error}. Trying again.")
            return context.failed(error, again=failures - 1, reading=True, one_batch=True)

    async def _clean(self, batch_part: BatchPart) -> float:
        """Delete what is no longer needed: the upload, and our copies of what was sent and came."""
        context = self._context
        if batch_part.step is not Step.CLEANING:
            await context.note(batch_part, Step.CLEANING)
        if batch_part.file_id is not None:
            try:
                await context.api.delete_input(batch_part.file_id)
            except ProviderError:
                return math.inf  # the next run tries again; the vendor deletes it in its time
        for suffix in ("jsonl", "results", "part", "most", "handed"):
            context.ledger.path(batch_part, suffix).unlink(missing_ok=True)
        await context.note(batch_part, Step.CLEANED)
        return math.inf
