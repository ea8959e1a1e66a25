"""Submit a part as a batch, once: a create that may have been handled is never repeated blindly."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from asyncbench.errors import WORTH_ANOTHER_TRY, ErrorKind, ProviderError
from asyncbench.lanes.batches.context import NO_PAGE, NOT_FOUND, SAYS_FULL, BatchContext, EnqueuedPool
from asyncbench.lanes.batches.ledger import BatchPart, Step
from asyncbench.lanes.batches.searching import Searching
from asyncbench.providers.batch_calls import Submission, certainly_not_created
from asyncbench.records import REALTIME

MOST_REFUSALS: Final = 3
POLLS_S: Final = 60.0
HOUR_S: Final = 3600.0
MOST_AN_HOUR: Final = 2000  # batches that are created
STALE_S: Final = 60.0  # so old may the vendor's time be, before a create
NOT_ALLOWED: Final = 405
_ORGANIZATION: Final = re.compile(r"\borg-[\w-]+")  # no id of it gets to the disk


class Submitting:
    """Takes the parts of one model to their batches."""

    def __init__(self, context: BatchContext, pool: EnqueuedPool, *, paused: Callable[[], bool]) -> None:
        self._context, self._pool, self._paused = context, pool, paused
        self._failures = Counter[str]()  # in a row, by part
        self._absence_notified = False
        self._searching = Searching(context)

    async def advance(self, part: BatchPart) -> float:
        """Take the next step of a part without a batch; return the seconds until the one after it."""
        in_doubt = part.in_doubt
        if self._context.shared.absent and not in_doubt:
            return await self._without_batches(part, self._context.shared.absent)
        try:
            wait_s = await self._step(part)
        except ProviderError as error:
            if error.http_status in NO_PAGE and not in_doubt:
                return await self._without_batches(part, error.message)
            self._failures[part.key] += 1
            again = self._failures[part.key] - 1
            if again + 1 >= MOST_REFUSALS and error.kind not in WORTH_ANOTHER_TRY and not in_doubt:
                self._context.suspend(
                    f"{error.kind.value}: no file of requests could be uploaded: {error.message}"
                )
            wait_s = self._context.failed(error, again=again, reading=part.in_doubt)
            return math.inf if part.in_doubt and self._searching.stays_unseen(part, error) else wait_s
        self._failures[part.key] = 0
        return wait_s

    async def _step(self, part: BatchPart) -> float:
        if part.in_doubt:
            return await self._searching.search(part)
        if self._context.api.uploads and part.step in (Step.PREPARED, Step.UPLOADING):
            await self._upload(part)
        return POLLS_S if self._paused() else await self._submit(part)

    async def _upload(self, part: BatchPart) -> None:
        context, name = self._context, part.file_name
        file_id = None
        if part.step is Step.UPLOADING:  # perhaps it is there already
            file_id = await context.api.uploaded(name, part.size)
        else:
            await context.note(part, Step.UPLOADING)
        if file_id is None:
            file_id = await context.api.upload(context.ledger.path(part, "jsonl"), name, part.size)
        await context.note(part, Step.UPLOADED, file_id=file_id)

    async def _submit(self, part: BatchPart) -> float:
        """Create a batch, if the pool has room; a run that is left meanwhile waits for the reply."""
        context, pool, size = self._context, self._pool, self._pool.size(part.tokens, part.requests)
        if part.requests > 1 and not pool.fits(size, in_use=0):
            return await self._take_apart(part)
        others = [other for other in pool.sent(context.ledger) if other is not part]
        if others and not pool.fits(size, in_use=pool.size_of(others)):
            # Parts that are put off for good are polled no more: waiting for them would be in vain.
            in_vain = all(context.due.get(other.key) == math.inf for other in others)
            return math.inf if in_vain else POLLS_S
        if _created_lately(context) >= MOST_AN_HOUR:
            return POLLS_S
        if not context.api.account or abs(context.vendor_now - context.api.told_at) > STALE_S:
            await self._ask_the_time()
        creating = asyncio.create_task(self._create(part))
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:
            await asyncio.wait([creating])
            raise

    async def _ask_the_time(self) -> None:
        """List batches, which tells the vendor's time, and who we are to it: our clock may have been set."""
        try:
            await self._context.api.recent(None)
        except ProviderError as error:
            if error.http_status not in NO_PAGE:
                raise
            self._context.shared.unlisted = True  # so that a 404 of a create is not about its model

    async def _take_apart(self, part: BatchPart) -> float:
        """Give up a part that never fits into the pool; there is no batch of it, and smaller parts follow."""
        if part.file_id is not None:
            await self._context.api.delete_input(part.file_id)
        await self._context.note(part, Step.NEVER_CREATED)
        return 0.0

    async def _create(self, part: BatchPart) -> float:
        context = self._context
        server_at = context.api.told_at or context.clock.now()
        await context.note(part, Step.SUBMITTING, server_at=server_at, account=context.api.account)
        submission = Submission(
            path=context.ledger.path(part, "jsonl"),
            size=part.size,
            key=part.key,
            requests=part.requests,
            sha256=part.sha256,
            file_id=part.file_id,
        )
        try:
            batch = await context.api.create(submission)
        except ProviderError as error:
            if error.http_status == NOT_ALLOWED or (
                error.http_status == NOT_FOUND and context.shared.unlisted
            ):
                return await self._without_batches(part, error.message)
            if certainly_not_created(error):
                return await self.refused(part, error)
            context.notify(
                f"asyncbench does not know whether a batch of {part.requests:,} requests was "
                f"created ({error.message}). It looks for it before it sends them again."
            )
            return self._searching.first_s
        await context.note(part, Step.SUBMITTED, batch_id=batch.id, created_at=batch.created_at)
        return 0.0

    async def _without_batches(self, part: BatchPart, why: str) -> float:
        """Give up a part that was never sent: the provider has no batches, and is asked for none again."""
        context = self._context
        context.shared.absent = why
        if not self._absence_notified:
            self._absence_notified = True
            way = context.batching.fallback
            rest = "are asked in real time, at the full price" if way == REALTIME else "stay open"
            context.notify(
                f"no batch API answers at the address of this provider ({why}). This run does "
                f"not try again. Its trials {rest}, as `fallback: {way}` in `batch` says."
            )
        await context.note(part, Step.NEVER_CREATED)
        return 0.0

    async def refused(self, part: BatchPart, error: ProviderError) -> float:
        """Note that a part became no batch; return the seconds until it may be tried again."""
        context = self._context
        await context.note(part, Step.REFUSED, why=_ORGANIZATION.sub("org-…", error.message))
        if SAYS_FULL.search(error.message):
            size = self._pool.size(part.tokens, part.requests)
            in_use = self._pool.size_of(
                other for other in self._pool.sent(context.ledger) if other is not part
            )
            self._pool.refused(error.message, size, in_use=in_use)
            if part.refusals == 1:
                what = "pool of enqueued tokens" if context.api.uploads else "queue of requests in batches"
                context.notify(
                    f"the provider's {what} is full. asyncbench waits and tries again; batches "
                    "of other people in your organization count, too."
                )
        elif error.kind is not ErrorKind.RATE_LIMITED and part.refusals >= MOST_REFUSALS:
            context.suspend(f"{error.kind.value}: no batch could be created: {error.message}")
        return context.failed(error, again=part.refusals + 1)


def _created_lately(context: BatchContext) -> int:
    """Return how many batches were created, or may have been, within an hour."""
    ages_s = (
        (context.vendor_now - part.intended_at) / context.clock.real_s
        for part in context.ledger.parts.values()
    )
    return sum(age_s < HOUR_S for age_s in ages_s)
