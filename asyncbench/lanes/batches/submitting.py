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
from contextlib import suppress
from typing import Final

from asyncbench.errors import WORTH_ANOTHER_TRY, ErrorKind, ProviderError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import (
    NO_PAGE,
    NOT_FOUND,
    PATIENCE_S,
    SAYS_FULL,
    BatchContext,
)
from asyncbench.lanes.batches.ledger import BatchPart, Step
from asyncbench.lanes.batches.packing import trial_of
from asyncbench.providers.batch_calls import RemoteBatch, Submission, certainly_not_created
from asyncbench.records import REALTIME

MOST_REFUSALS: Final = 3
POLLS_S: Final = 60.0  # until it is looked again whether there is room
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
FOREIGN_LINES: Final = 300  # of results, none of which is ours, to tell that a batch is another's
PATIENCE: Final = 8  # reads of results that leave a doubt, before a batch is as good as not there


class Submitting:
    """Takes the parts of one model to their batches, and searches for those of parts in doubt."""

    def __init__(self, context: BatchContext, *, paused: Callable[[], bool]) -> None:
        self._context, self._paused = context, paused
        self._failures = Counter[str]()  # in a row, by part
        self._absence_notified = False
        self._schedule_s = SEARCHES_S[context.api.uploads]
        self._untraced: set[str] = set()  # parts for which nothing more can be done
        self._failing_since: dict[str, float] = {}  # by part: UTC since which every search failed
        self._searches: dict[str, int] = {}  # at lists, by part
        self._undecided = Counter[str]()  # reads of results that told nothing, by batch

    async def advance(self, batch_part: BatchPart) -> float:
        """Take the next step of a part without a batch; return the seconds until the one after it."""
        context, in_doubt = self._context, batch_part.in_doubt
        if context.shared.absent and not in_doubt:
            return await self._give_up_batches(batch_part, context.shared.absent)
        try:
            if not in_doubt:
                wait_s = await self._send(batch_part)
            elif context.api.uploads:
                wait_s = await self._search_named(batch_part)
            else:
                wait_s = await self._search_unnamed(batch_part)
        except ProviderError as error:
            if error.http_status in NO_PAGE and not in_doubt:
                return await self._give_up_batches(batch_part, error.message)
            self._failures[batch_part.key] += 1
            failures = self._failures[batch_part.key]
            if failures >= MOST_REFUSALS and error.kind not in WORTH_ANOTHER_TRY and not in_doubt:
                context.suspend(f"{error.kind.value}: no file of requests could be uploaded: {error.message}")
            wait_s = context.failed(error, again=failures - 1, reading=batch_part.in_doubt)
            return math.inf if batch_part.in_doubt and self._stays_unseen(batch_part, error) else wait_s
        self._failures[batch_part.key] = 0
        self._failing_since.pop(batch_part.key, None)
        return wait_s

    async def _send(self, batch_part: BatchPart) -> float:
        """Upload a part, and create its batch if there is room; return the seconds until its next step."""
        context, pool = self._context, self._context.pool
        if context.api.uploads and batch_part.step in (Step.PREPARED, Step.UPLOADING):
            await self._upload(batch_part)
        if self._paused():
            return POLLS_S

        # A part that never fits into the pool is given up: smaller parts follow.
        size = pool.size(batch_part.tokens, batch_part.requests)
        if batch_part.requests > 1 and not pool.fits(size, in_use=0):
            if batch_part.file_id is not None:
                await context.api.delete_input(batch_part.file_id)
            await context.note(batch_part, Step.NEVER_CREATED)
            return 0.0
        sent = self._sent_beside(batch_part)
        if sent and not pool.fits(size, in_use=pool.size_of(sent)):
            # Parts that are put off for good are polled no more: waiting for them would be in vain.
            in_vain = all(context.due.get(sent_part.key) == math.inf for sent_part in sent)
            return math.inf if in_vain else POLLS_S

        # Only so many are created, or may have been, within an hour.
        intended = (sent_part.intended_at for sent_part in context.ledger.parts.values())
        hour_s = HOUR_S * context.clock.real_s
        if sum(context.vendor_now - intended_at < hour_s for intended_at in intended) >= MOST_AN_HOUR:
            return POLLS_S

        # A list tells the vendor's time, and who we are to it: our clock may have been set.
        if not context.api.account or abs(context.vendor_now - context.api.told_at) > STALE_S:
            try:
                await context.api.recent(None)
            except ProviderError as error:
                if error.http_status not in NO_PAGE:
                    raise
                context.shared.unlisted = True  # so that a 404 of a create is not about its model

        creating = asyncio.create_task(self._create(batch_part))
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:  # a run that is left waits for the reply
            await asyncio.wait([creating])
            raise

    async def _upload(self, batch_part: BatchPart) -> None:
        context, name = self._context, batch_part.file_name
        file_id = None
        if batch_part.step is Step.UPLOADING:  # perhaps it is there already
            file_id = await context.api.uploaded(name, batch_part.size)
        else:
            await context.note(batch_part, Step.UPLOADING)
        if file_id is None:
            file_id = await context.api.upload(
                context.ledger.path(batch_part, "jsonl"), name, batch_part.size
            )
        await context.note(batch_part, Step.UPLOADED, file_id=file_id)

    async def _create(self, batch_part: BatchPart) -> float:
        """Create a part's batch, once; return the seconds until its next step."""
        context = self._context
        server_at = context.api.told_at or context.clock.now()
        await context.note(batch_part, Step.SUBMITTING, server_at=server_at, account=context.api.account)
        submission = Submission(
            path=context.ledger.path(batch_part, "jsonl"),
            size=batch_part.size,
            key=batch_part.key,
            requests=batch_part.requests,
            sha256=batch_part.sha256,
            file_id=batch_part.file_id,
        )
        try:
            batch = await context.api.create(submission)
        except ProviderError as error:
            if error.http_status == NOT_ALLOWED or (
                error.http_status == NOT_FOUND and context.shared.unlisted
            ):
                return await self._give_up_batches(batch_part, error.message)
            if certainly_not_created(error):
                return await self.refused(batch_part, error)
            context.notify(
                f"asyncbench does not know whether a batch of {batch_part.requests:,} requests was "
                f"created ({error.message}). It looks for it before it sends them again."
            )
            return self._schedule_s[0]  # then the first search is due
        await self._note_submitted(batch_part, batch)
        return 0.0

    async def _note_submitted(self, batch_part: BatchPart, batch: RemoteBatch) -> None:
        """Note which batch is the part's, whether it was just created or was searched for."""
        self._untraced.discard(batch_part.key)
        details: dict[str, object] = {"batch_id": batch.id, "created_at": batch.created_at}
        if self._context.api.kept_s is not None:
            details["kept_s"] = self._context.api.kept_s
        await self._context.note(batch_part, Step.SUBMITTED, **details)

    async def _give_up_batches(self, batch_part: BatchPart, why: str) -> float:
        """Give up a part that was never sent: the provider has no batches, and is asked for none again."""
        context = self._context
        context.shared.absent = why
        if not self._absence_notified:
            self._absence_notified = True
            fallback = context.batching.fallback
            rest = "are asked in real time, at the full price" if fallback == REALTIME else "stay open"
            context.notify(
                f"no batch API answers at the address of this provider ({why}). This run does "
                f"not try again. Its trials {rest}, as `fallback: {fallback}` in `batch` says."
            )
        await context.note(batch_part, Step.NEVER_CREATED)
        return 0.0

    def _sent_beside(self, batch_part: BatchPart) -> list[BatchPart]:
        """Return the parts that hold some of the pool already, but for this one."""
        sent = self._context.pool.sent(self._context.ledger)
        return [sent_part for sent_part in sent if sent_part is not batch_part]

    async def refused(self, batch_part: BatchPart, error: ProviderError) -> float:
        """Note that a part became no batch; return the seconds until it may be tried again."""
        context = self._context
        await context.note(batch_part, Step.REFUSED, why=_ORGANIZATION.sub("org-…", error.message))
        if SAYS_FULL.search(error.message):
            pool = context.pool
            size = pool.size(batch_part.tokens, batch_part.requests)
            in_use = pool.size_of(self._sent_beside(batch_part))
            pool.refused(error.message, size, in_use=in_use)
            if batch_part.refusals == 1:
                what = "pool of enqueued tokens" if context.api.uploads else "queue of requests in batches"
                context.notify(
                    f"the provider's {what} is full. asyncbench waits and tries again; batches "
                    "of other people in your organization count, too."
                )
        elif error.kind is not ErrorKind.RATE_LIMITED and batch_part.refusals >= MOST_REFUSALS:
            context.suspend(f"{error.kind.value}: no batch could be created: {error.message}")
        return context.failed(error, again=batch_part.refusals + 1)

    # ── Search for the batch of a part in doubt ───────────────────────────────────────────────────

    async def _search_named(self, batch_part: BatchPart) -> float:
        """Search for a batch of the part's file; then delete the file, search again, and be certain."""
        context = self._context
        if batch_part.step is Step.SUBMITTING and (wait_s := self._next_search_s(batch_part)) > 0:
            return wait_s
        if (
            batch_part.step is Step.FENCED
            and (wait_s := AFTER_FENCE_S - context.clock.since(batch_part.at)) > 0
        ):
            return wait_s
        listed = await context.api.recent(batch_part.intended_at - SLOW_CLOCK_S)
        batches = sorted(batches_made_of(batch_part, listed), key=lambda batch: batch.created_at)
        if batches:
            await self._note_submitted(batch_part, batches[0])
            context.notify(f"found batch {batches[0].id}, which asyncbench was not sure of.")
        elif self._sees_others(batch_part):
            return await self._leave_to_its_key(batch_part)
        elif batch_part.step is Step.FENCED:
            await context.note(batch_part, Step.NEVER_CREATED)
        elif self._searches_again(batch_part):
            return self._next_search_s(batch_part)
        else:
            await context.note(batch_part, Step.FENCING)
            if file_id := batch_part.file_id or await context.api.uploaded(
                batch_part.file_name, batch_part.size
            ):
                await context.api.delete_input(file_id)
            await context.note(batch_part, Step.FENCED)
            return AFTER_FENCE_S
        return 0.0

    async def _search_unnamed(self, batch_part: BatchPart) -> float:
        """Search for a batch that may be the part's: where none is found, nobody can ever be certain."""
        context, struck = self._context, batch_part.struck
        if batch_part.key not in self._untraced and (wait_s := self._next_search_s(batch_part)) > 0:
            return wait_s

        # Those that are nobody's, of as many requests, from the time of the create.
        listed = await context.api.recent(batch_part.intended_at - BEFORE_S)
        latest_at = batch_part.intended_at + batch_part.size / SLOWEST_BYTES + LATEST_S
        until = math.inf if batch_part.unread else latest_at
        candidates: list[RemoteBatch] = []
        for batch in listed:
            as_large = batch.requests in (None, batch_part.requests)
            if (
                not as_large
                or batch.created_at > until
                or batch.id in struck
                or context.ledger.knows(batch.id)
            ):
                continue
            candidate = batch
            if not batch.ended:  # a list that has it as open may be behind what it says itself
                with suppress(ProviderError):
                    candidate = await context.api.retrieve(batch.id)
            candidates.append(candidate)

        # The results of those that have ended tell whose they are, or not yet.
        for batch in candidates:
            if not batch.ended:
                continue
            is_ours = await is_made_of(context, batch_part, batch)
            if is_ours:
                await self._note_submitted(batch_part, batch)
                return 0.0
            if is_ours is None:
                self._undecided[batch.id] += 1
            else:
                await context.note(batch_part, Step.STRUCK, batch_id=batch.id)
        if any(not batch.ended or 0 < self._undecided[batch.id] < PATIENCE for batch in candidates):
            return context.poll_again_s(context.clock.since(batch_part.at))

        if self._sees_others(batch_part):
            return await self._leave_to_its_key(batch_part)
        if self._searches_again(batch_part):
            return self._next_search_s(batch_part)
        return await self._settle_untraced(batch_part)

    async def _settle_untraced(self, batch_part: BatchPart) -> float:
        """Send a part without any trace of a batch again, if a person wants that; else wait for a word."""
        context, key = self._context, batch_part.key
        wanted = key in context.resubmit
        if wanted or context.batching.on_doubt == "resubmit":
            return await self._send_again(batch_part, "you want" if wanted else "`on_doubt: resubmit` says")
        if key not in self._untraced:
            self._untraced.add(key)
            if not batch_part.untraced:
                await context.note(batch_part, Step.UNTRACED)
            old = context.clock.since(batch_part.at) > WOULD_HAVE_ENDED_S
            ended = "It would have ended by now. " if old else ""
            context.notify(
                f"part {key} waits for your word. To send its {batch_part.requests:,} requests "
                f"again: run with --resubmit {key}, or set `batch: {{on_doubt: resubmit}}`. To leave "
                f"them: `asyncbench cancel {quoted(context.ledger.folder.parent)} --abandon {key}`. "
                f"There is no trace of a batch of it, which may exist all the same. {ended}Look into your "
                "provider's console first: nothing is paid twice unless you say so."
            )
        return math.inf

    def _stays_unseen(self, batch_part: BatchPart, error: ProviderError) -> bool:
        """Whether searches for a part have failed for so long that this run makes no more of them."""
        context = self._context
        since_at = self._failing_since.setdefault(batch_part.key, context.clock.now())
        if context.clock.since(since_at) < PATIENCE_S or self._age_s(batch_part) < self._schedule_s[-1]:
            return False
        if batch_part.key not in self._untraced:
            self._untraced.add(batch_part.key)
            context.notify(
                f"nobody knows whether there is a batch of part {batch_part.key}, and the provider "
                f"shows none ({error}). Its {batch_part.requests:,} requests are not sent again. "
                "The next run looks again."
            )
        return True

    def _next_search_s(self, batch_part: BatchPart) -> float:
        """Return the seconds until the next search of a list; 0: now."""
        searches = self._searches.get(batch_part.key, 0)
        if searches >= len(self._schedule_s):
            return 0.0
        return max(0.0, self._schedule_s[searches] - self._age_s(batch_part))

    def _age_s(self, batch_part: BatchPart) -> float:
        """Return how long ago a part in doubt was submitted, by the vendor's clock: ours may be set."""
        return (self._context.vendor_now - batch_part.intended_at) / self._context.clock.real_s

    def _searches_again(self, batch_part: BatchPart) -> bool:
        """Count a search that found nothing; return whether another one is to come."""
        age_s = self._age_s(batch_part)
        self._searches[batch_part.key] = sum(due_s <= age_s for due_s in self._schedule_s)
        return self._searches[batch_part.key] < len(self._schedule_s)

    def _sees_others(self, batch_part: BatchPart) -> bool:
        """Whether the key may see the batches of another project than the one that the part went to."""
        return self._context.api.account != batch_part.account

    async def _leave_to_its_key(self, batch_part: BatchPart) -> float:
        """Send a part again whose batch this key cannot see, if a person wants that; else leave it."""
        if batch_part.key in self._context.resubmit:
            return await self._send_again(batch_part, "you want")
        if batch_part.key not in self._untraced:
            self._untraced.add(batch_part.key)
            self._context.notify(
                f"part {batch_part.key} was sent with another key, perhaps of another project or "
                "workspace, so its batch cannot be seen. Run again with that key. If you no longer have it, "
                "look into your provider's console. If there is no batch, run with --resubmit "
                f"{batch_part.key}."
            )
        return math.inf

    async def _send_again(self, batch_part: BatchPart, who: str) -> float:
        self._context.notify(
            f"no trace of a batch of {batch_part.requests:,} requests (part {batch_part.key}). As "
            f"{who}, they are sent again: if it exists, it is paid twice."
        )
        await self._context.note(batch_part, Step.GIVEN_UP)
        return 0.0


def batches_made_of(batch_part: BatchPart, listed: list[RemoteBatch]) -> list[RemoteBatch]:
    """Return the batches that were made of a part, as far as they name what they were made of."""
    return [
        batch
        for batch in listed
        if batch.id not in batch_part.struck
        and (
            batch.batch_key == batch_part.key
            or (batch_part.file_id and batch.input_file_id == batch_part.file_id)
        )
    ]


async def is_made_of(context: BatchContext, batch_part: BatchPart, batch: RemoteBatch) -> bool | None:
    """Whether a batch was made of a part, as its results tell, or None if they do not tell.

    One line of ours proves it, wherever it stands. That it is another's is proved by foreign lines, as
    many as there are requests.
    """
    try:
        custom_ids = await context.api.custom_ids(batch, FOREIGN_LINES)
    except ProviderError as error:
        if error.http_status == NOT_FOUND and context.is_gone(batch_part):
            return None  # what was deleted cannot be read any more
        raise
    if any(trial_of(custom_id, batch_part.key) is not None for custom_id in custom_ids):
        return True
    return False if len(set(custom_ids)) >= min(batch_part.requests, FOREIGN_LINES) else None
