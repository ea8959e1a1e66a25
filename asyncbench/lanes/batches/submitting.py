"""Submit a part as a batch, once; search for the batch of a part in doubt, before all else is done with it.

A create that may have been handled is never repeated blindly. OpenAI's batches name the file that they were
made of, so the batch is found; if it is not, the file is deleted, and a create that comes late must fail.
Anthropic's have no name: any unknown batch with as many requests may be it, until its results tell.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from asyncbench.errors import WORTH_ANOTHER_TRY, ErrorKind, ProviderError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import (
    NO_PAGE,
    NOT_FOUND,
    PATIENCE_S,
    SAYS_FULL,
    BatchContext,
    EnqueuedPool,
)
from asyncbench.lanes.batches.ledger import BatchPart, Step
from asyncbench.lanes.batches.packing import trial_of
from asyncbench.providers.batch_calls import RemoteBatch, Submission, certainly_not_created
from asyncbench.records import REALTIME

MOST_REFUSALS: Final = 3
POLLS_S: Final = 60.0
HOUR_S: Final = 3600.0
MOST_AN_HOUR: Final = 2000  # batches that are created
STALE_S: Final = 60.0  # so old may the vendor's time be, before a create
NOT_ALLOWED: Final = 405
_ORGANIZATION: Final = re.compile(r"\borg-[\w-]+")  # no id of it gets to the disk

SEARCHES_S: Final = {
    True: (10.0, 60.0, 300.0, 900.0),
    False: (10.0, 60.0, 300.0, 900.0, 3600.0),
}  # by `uploads`
AFTER_FENCE_S: Final = 300.0
SLOW_CLOCK_S: Final = 600.0  # a list is read from so long before a create
BEFORE_S, LATEST_S = 120.0, 900.0 + 60.0  # around a create, in which an unnamed batch may be its
SLOWEST_BYTES: Final = 100_000.0  # a second, of a create
WOULD_HAVE_ENDED_S: Final = 90_000.0
ENOUGH_LINES: Final = 300  # of results, none of which is ours, to tell that a batch is another's
PATIENCE: Final = 8  # reads of results that leave a doubt, before a batch is as good as not there


class Submitting:
    """Takes the parts of one model to their batches, and searches for those of parts in doubt."""

    def __init__(self, context: BatchContext, pool: EnqueuedPool, *, paused: Callable[[], bool]) -> None:
        self._context, self._pool, self._paused = context, pool, paused
        self._failures = Counter[str]()  # in a row, by part
        self._absence_notified = False
        self._schedule_s = SEARCHES_S[context.api.uploads]
        self._untraced: set[str] = set()  # parts for which nothing more can be done
        self._failing: dict[str, float] = {}  # by part: UTC since which every search failed
        self._searches: dict[str, int] = {}  # at lists, by part
        self._undecided = Counter[str]()  # reads of results that told nothing, by batch

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
            return math.inf if part.in_doubt and self._stays_unseen(part, error) else wait_s
        self._failures[part.key] = 0
        self._failing.pop(part.key, None)
        return wait_s

    async def _step(self, part: BatchPart) -> float:
        uploads = self._context.api.uploads
        if part.in_doubt:
            return await (self._search_named(part) if uploads else self._search_unnamed(part))
        if uploads and part.step in (Step.PREPARED, Step.UPLOADING):
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
            return self._schedule_s[0]  # then the first search is due
        await self._submitted(part, batch)
        return 0.0

    async def _submitted(self, part: BatchPart, batch: RemoteBatch) -> None:
        kept_s = self._context.api.kept_s
        kept = {} if kept_s is None else {"kept_s": kept_s}
        await self._context.note(part, Step.SUBMITTED, batch_id=batch.id, created_at=batch.created_at, **kept)

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

    # ── Search for the batch of a part in doubt ───────────────────────────────────────────────────

    async def _adopt(self, part: BatchPart, batch: RemoteBatch) -> None:
        self._untraced.discard(part.key)
        await self._submitted(part, batch)

    async def _search_named(self, part: BatchPart) -> float:
        """Search for a batch of the part's file; then delete the file, search again, and be certain."""
        context = self._context
        if part.step is Step.SUBMITTING and (wait_s := self._next_search_s(part)) > 0:
            return wait_s
        if part.step is Step.FENCED and (wait_s := AFTER_FENCE_S - context.clock.since(part.at)) > 0:
            return wait_s
        listed = await context.api.recent(part.intended_at - SLOW_CLOCK_S)
        batches = sorted(ours(part, listed), key=lambda batch: batch.created_at)
        if batches:
            await self._adopt(part, batches[0])
            context.notify(f"found batch {batches[0].id}, which asyncbench was not sure of.")
        elif self._sees_others(part):
            return await self._out_of_sight(part)
        elif part.step is Step.FENCED:
            await context.note(part, Step.NEVER_CREATED)
        elif self._searches_again(part):
            return self._next_search_s(part)
        else:
            await context.note(part, Step.FENCING)
            if file_id := part.file_id or await context.api.uploaded(part.file_name, part.size):
                await context.api.delete_input(file_id)
            await context.note(part, Step.FENCED)
            return AFTER_FENCE_S
        return 0.0

    async def _search_unnamed(self, part: BatchPart) -> float:
        """Search for a batch that may be the part's: where none is found, nobody can ever be certain."""
        context = self._context
        if part.key not in self._untraced and (wait_s := self._next_search_s(part)) > 0:
            return wait_s
        listed = await context.api.recent(part.intended_at - BEFORE_S)
        until = math.inf if part.unread else part.intended_at + part.size / SLOWEST_BYTES + LATEST_S
        maybe = [
            await self._retrieve(batch)
            for batch in listed
            if batch.requests in (None, part.requests)
            and batch.created_at <= until
            and batch.id not in part.struck
            and not context.ledger.knows(batch.id)
        ]
        for batch in maybe:
            if not batch.ended:
                continue
            is_ours = await is_made_of(context, part, batch)
            if is_ours:
                await self._adopt(part, batch)
                return 0.0
            if is_ours is not None:
                await context.note(part, Step.STRUCK, batch_id=batch.id)
                continue
            self._undecided[batch.id] += 1
        going = (not batch.ended or 0 < self._undecided[batch.id] < PATIENCE for batch in maybe)
        if any(going):
            return context.poll_again_s(context.clock.since(part.at))
        if self._sees_others(part):
            return await self._out_of_sight(part)
        if self._searches_again(part):
            return self._next_search_s(part)
        return await self._without_trace(part)

    async def _retrieve(self, batch: RemoteBatch) -> RemoteBatch:
        """Return a batch as it answers itself, if it does: a list that has it as open may be behind."""
        if batch.ended:
            return batch
        try:
            return await self._context.api.retrieve(batch.id)
        except ProviderError:
            return batch

    async def _without_trace(self, part: BatchPart) -> float:
        context = self._context
        wanted = part.key in context.resubmit
        if wanted or context.batching.on_doubt == "resubmit":
            return await self._send_again(part, "you want" if wanted else "`on_doubt: resubmit` says")
        if part.key not in self._untraced:
            self._untraced.add(part.key)
            if not part.untraced:
                await context.note(part, Step.UNTRACED)
            old = context.clock.since(part.at) > WOULD_HAVE_ENDED_S
            ended = "It would have ended by now. " if old else ""
            context.notify(
                f"part {part.key} waits for your word. To send its {part.requests:,} requests "
                f"again: run with --resubmit {part.key}, or set `batch: {{on_doubt: resubmit}}`. To leave "
                f"them: `asyncbench cancel {quoted(context.ledger.folder.parent)} --abandon {part.key}`. "
                f"There is no trace of a batch of it, which may exist all the same. {ended}Look into your "
                "provider's console first: nothing is paid twice unless you say so."
            )
        return math.inf

    def _stays_unseen(self, part: BatchPart, error: ProviderError) -> bool:
        """Whether searches for a part have failed for so long that this run makes no more of them."""
        context = self._context
        since_at = self._failing.setdefault(part.key, context.clock.now())
        if context.clock.since(since_at) < PATIENCE_S or self._age_s(part) < self._schedule_s[-1]:
            return False
        if part.key not in self._untraced:
            self._untraced.add(part.key)
            context.notify(
                f"nobody knows whether there is a batch of part {part.key}, and the provider "
                f"shows none ({error}). Its {part.requests:,} requests are not sent again. The next run "
                "looks again."
            )
        return True

    def _next_search_s(self, part: BatchPart) -> float:
        """Return the seconds until the next search of a list; 0: now."""
        searches = self._searches.get(part.key, 0)
        if searches >= len(self._schedule_s):
            return 0.0
        return max(0.0, self._schedule_s[searches] - self._age_s(part))

    def _age_s(self, part: BatchPart) -> float:
        """Return how long ago a part in doubt was submitted, by the vendor's clock: ours may be set."""
        return (self._context.vendor_now - part.intended_at) / self._context.clock.real_s

    def _searches_again(self, part: BatchPart) -> bool:
        """Count a search that found nothing; return whether another one is to come."""
        age_s = self._age_s(part)
        self._searches[part.key] = sum(due_s <= age_s for due_s in self._schedule_s)
        return self._searches[part.key] < len(self._schedule_s)

    def _sees_others(self, part: BatchPart) -> bool:
        """Whether the key may see the batches of another project than the one that the part went to."""
        return self._context.api.account != part.account

    async def _out_of_sight(self, part: BatchPart) -> float:
        """Send a part again whose batch this key cannot see, if a person wants that; else leave it."""
        if part.key in self._context.resubmit:
            return await self._send_again(part, "you want")
        if part.key not in self._untraced:
            self._untraced.add(part.key)
            self._context.notify(
                f"part {part.key} was sent with another key, perhaps of another project or "
                "workspace, so its batch cannot be seen. Run again with that key. If you no longer have it, "
                "look into your provider's console. If there is no batch, run with --resubmit "
                f"{part.key}."
            )
        return math.inf

    async def _send_again(self, part: BatchPart, who: str) -> float:
        self._context.notify(
            f"no trace of a batch of {part.requests:,} requests (part {part.key}). As "
            f"{who}, they are sent again: if it exists, it is paid twice."
        )
        await self._context.note(part, Step.GIVEN_UP)
        return 0.0


def ours(part: BatchPart, listed: list[RemoteBatch]) -> list[RemoteBatch]:
    """Return the batches that were made of a part, as far as they name what they were made of."""
    return [
        batch
        for batch in listed
        if batch.id not in part.struck
        and (batch.batch_key == part.key or (part.file_id and batch.input_file_id == part.file_id))
    ]


async def is_made_of(context: BatchContext, part: BatchPart, batch: RemoteBatch) -> bool | None:
    """Whether a batch was made of a part, as its results tell; None: they do not.

    One line of ours proves it, wherever it stands. That it is another's is proved by foreign lines, as
    many as there are requests.
    """
    try:
        custom_ids = await context.api.custom_ids(batch, ENOUGH_LINES)
    except ProviderError as error:
        if error.http_status == NOT_FOUND and context.is_gone(part):
            return None  # what was deleted cannot be read any more
        raise
    if any(trial_of(custom_id, part.key) is not None for custom_id in custom_ids):
        return True
    return False if len(set(custom_ids)) >= min(part.requests, ENOUGH_LINES) else None


def _created_lately(context: BatchContext) -> int:
    """Return how many batches were created, or may have been, within an hour."""
    ages_s = (
        (context.vendor_now - part.intended_at) / context.clock.real_s
        for part in context.ledger.parts.values()
    )
    return sum(age_s < HOUR_S for age_s in ages_s)
