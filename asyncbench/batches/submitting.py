"""A part becomes a batch, once: where nobody knows whether it did, it is searched for before all else.

A create that may have been handled is never made again blindly. OpenAI's batches name the file that they were
made of, so the batch is found; if it is not, the file is deleted, and a create that comes late must fail.
Anthropic's have no name: any unknown batch with as many requests may be it, until its results tell.
"""

import asyncio
import math
import re
from collections import Counter
from typing import Final

from asyncbench.batches.desk import NO_PAGE, NOT_FOUND, PATIENCE_S, BatchDesk
from asyncbench.batches.enqueued import SAYS_FULL, EnqueuedPool
from asyncbench.batches.ledger import BatchPart, Step
from asyncbench.batches.packing import trial_of
from asyncbench.errors import WORTH_ANOTHER_TRY, ErrorKind, ProviderError
from asyncbench.providers import RemoteBatch, Submission, certainly_not_created
from asyncbench.records import REALTIME

LOOKS_S: Final = {True: (10.0, 60.0, 300.0, 900.0), False: (10.0, 60.0, 300.0, 900.0, 3600.0)}  # by `uploads`
AFTER_FENCE_S: Final = 300.0
SLOW_CLOCK_S: Final = 600.0  # a list is read from so long before a create
BEFORE_S, LATEST_S = 120.0, 900.0 + 60.0  # around a create, in which an unnamed batch may be its
SLOWEST_BYTES: Final = 100_000.0  # a second, of a create
MOST_REFUSALS: Final = 3
WOULD_HAVE_ENDED_S: Final = 90_000.0
POLLS_S: Final = 60.0
HOUR_S: Final = 3600.0
MOST_AN_HOUR: Final = 2000  # batches that are created
STALE_S: Final = 60.0  # so old may the vendor's time be, before a create
NOT_ALLOWED: Final = 405
ENOUGH_LINES: Final = 300  # of results, none of which is ours, to tell that a batch is another's
PATIENCE: Final = 8  # reads of results that leave a doubt, before a batch is as good as not there
_ORGANIZATION: Final = re.compile(r"\borg-[\w-]+")  # no id of it gets to the disk


class Submitting:
    """Takes the parts of one model to their batches."""

    def __init__(self, desk: BatchDesk, pool: EnqueuedPool) -> None:
        self.untraced: set[str] = set()  # parts in doubt for which nothing more can be done
        self._desk, self._pool = desk, pool
        self._looks_s = LOOKS_S[desk.api.uploads]
        self._failures = Counter[str]()  # in a row, by part
        self._absence_told = False
        self._failing: dict[str, float] = {}  # by part in doubt: UTC since which nothing could be looked at
        self._looked: dict[str, int] = {}  # at lists, by part in doubt
        self._undecided = Counter[str]()  # reads of results that told nothing, by batch

    async def advance(self, part: BatchPart) -> float:
        """Take the next step of a part without a batch; return the seconds until the one after it."""
        in_doubt = part.in_doubt
        if self._desk.shared.absent and not in_doubt:
            return await self._without_batches(part, self._desk.shared.absent)
        try:
            wait_s = await self._step(part)
        except ProviderError as error:
            if error.http_status in NO_PAGE and not in_doubt:
                return await self._without_batches(part, error.message)
            self._failures[part.key] += 1
            again = self._failures[part.key] - 1
            if again + 1 >= MOST_REFUSALS and error.kind not in WORTH_ANOTHER_TRY and not in_doubt:
                self._desk.suspend(
                    f"{error.kind.value}: no file of requests could be uploaded: {error.message}"
                )
            wait_s = self._desk.failed(error, again=again, looking=part.in_doubt)
            return math.inf if part.in_doubt and self._stays_unseen(part, error) else wait_s
        self._failures[part.key] = 0
        self._failing.pop(part.key, None)
        return wait_s

    async def _step(self, part: BatchPart) -> float:
        if part.in_doubt:
            return await (self._look_for_named(part) if self._desk.api.uploads else self._look_around(part))
        if self._desk.api.uploads and part.step in (Step.PREPARED, Step.UPLOADING):
            await self._upload(part)
        return await self._submit(part)

    async def _upload(self, part: BatchPart) -> None:
        desk, name = self._desk, name_of(part)
        file_id = None
        if part.step is Step.UPLOADING:  # perhaps it is there already
            file_id = await desk.api.uploaded(name, part.size)
        else:
            await desk.note(part, Step.UPLOADING)
        if file_id is None:
            file_id = await desk.api.upload(desk.ledger.path(part, "jsonl"), name, part.size)
        await desk.note(part, Step.UPLOADED, file_id=file_id)

    async def _submit(self, part: BatchPart) -> float:
        """Create a batch, if the pool has room; a run that is left meanwhile waits for the reply."""
        desk, pool, size = self._desk, self._pool, self._pool.size(part.tokens, part.requests)
        if part.requests > 1 and not pool.fits(size, held=0):
            return await self._take_apart(part)
        others = [other for other in pool.sent(desk.ledger) if other is not part]
        if others and not pool.fits(size, held=pool.size_of(others)):
            lost = all(
                desk.due.get(other.key) == math.inf for other in others
            )  # nobody looks at them any more
            return math.inf if lost else POLLS_S
        if _created_lately(desk) >= MOST_AN_HOUR:
            return POLLS_S
        if not desk.api.account or abs(self._vendor_now - desk.api.told_at) > STALE_S:
            await self._ask_the_time()
        creating = asyncio.create_task(self._create(part))
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:
            await asyncio.wait([creating])
            raise

    @property
    def _vendor_now(self) -> float:
        return self._desk.clock.now() + self._desk.api.skew_s

    async def _ask_the_time(self) -> None:
        """List batches, which tells the vendor's time, and who we are to it: our clock may have been set."""
        try:
            await self._desk.api.recent(None)
        except ProviderError as error:
            if error.http_status not in NO_PAGE:
                raise

    async def _take_apart(self, part: BatchPart) -> float:
        """Give up a part that never fits into the pool; there is no batch of it, and smaller parts follow."""
        if part.file_id is not None:
            await self._desk.api.delete_input(part.file_id)
        await self._desk.note(part, Step.NEVER_CREATED)
        return 0.0

    async def _create(self, part: BatchPart) -> float:
        desk = self._desk
        server_at = desk.api.told_at or desk.clock.now()
        await desk.note(part, Step.SUBMITTING, server_at=server_at, account=desk.api.account)
        submission = Submission(
            path=desk.ledger.path(part, "jsonl"),
            size=part.size,
            key=part.key,
            requests=part.requests,
            sha256=part.sha256,
            file_id=part.file_id,
        )
        try:
            batch = await desk.api.create(submission)
        except ProviderError as error:
            if error.http_status == NOT_ALLOWED or (error.http_status == NOT_FOUND and desk.shared.unlisted):
                return await self._without_batches(part, error.message)
            if certainly_not_created(error):
                return await self.refused(part, error)
            desk.say(
                f"{desk.alias}: asyncbench does not know whether a batch of {part.requests:,} requests was "
                f"created ({error.message}). It looks for it before it sends them again."
            )
            return self._looks_s[0]
        await self._adopt(part, batch)
        return 0.0

    async def _without_batches(self, part: BatchPart, why: str) -> float:
        """Give up a part that was never sent: the provider has no batches, and is asked for none again."""
        desk = self._desk
        desk.shared.absent = why
        if not self._absence_told:
            self._absence_told = True
            way = desk.batching.fallback
            rest = "are asked in real time, at the full price" if way == REALTIME else "stay open"
            desk.say(
                f"{desk.alias}: no batch API answers at the address of this provider ({why}). This run does "
                f"not try again. Its trials {rest}, as `fallback: {way}` in `batch` says."
            )
        await desk.note(part, Step.NEVER_CREATED)
        return 0.0

    async def refused(self, part: BatchPart, error: ProviderError) -> float:
        """Note that a part became no batch; return the seconds until it may be tried again."""
        desk = self._desk
        await desk.note(part, Step.REFUSED, why=_ORGANIZATION.sub("org-…", error.message))
        if SAYS_FULL.search(error.message):
            size = self._pool.size(part.tokens, part.requests)
            held = self._pool.size_of(other for other in self._pool.sent(desk.ledger) if other is not part)
            self._pool.refused(error.message, size, held=held)
            if part.refusals == 1:
                what = "pool of enqueued tokens" if desk.api.uploads else "queue of requests in batches"
                desk.say(
                    f"{desk.alias}: the provider's {what} is full. asyncbench waits and tries again; batches "
                    "of other people in your organization count, too."
                )
        elif error.kind is not ErrorKind.RATE_LIMITED and part.refusals >= MOST_REFUSALS:
            desk.suspend(f"{error.kind.value}: no batch could be created: {error.message}")
        return desk.failed(error, again=part.refusals + 1)

    async def _adopt(self, part: BatchPart, batch: RemoteBatch) -> None:
        self.untraced.discard(part.key)
        await self._desk.note(part, Step.SUBMITTED, batch_id=batch.id, created_at=batch.created_at)

    # ── in doubt ─────────────────────────────────────────────────────────────────────────────

    async def _look_for_named(self, part: BatchPart) -> float:
        """Look for a batch of the part's file; then delete the file, look again, and be certain."""
        desk = self._desk
        if part.step is Step.SUBMITTING and (wait_s := self._next_look_s(part)) > 0:
            return wait_s
        if part.step is Step.FENCED and (wait_s := AFTER_FENCE_S - desk.clock.since(part.at)) > 0:
            return wait_s
        listed = await desk.api.recent(part.intended_at - SLOW_CLOCK_S)
        found = sorted(ours(part, listed), key=lambda batch: batch.created_at)
        if found:
            await self._adopt(part, found[0])
            desk.say(f"{desk.alias}: found batch {found[0].id}, which asyncbench was not sure of.")
        elif self._sees_others(part):
            return math.inf
        elif part.step is Step.FENCED:
            await desk.note(part, Step.NEVER_CREATED)
        elif self._looks_again(part):
            return self._next_look_s(part)
        else:
            await desk.note(part, Step.FENCING)
            if file_id := part.file_id or await desk.api.uploaded(name_of(part), part.size):
                await desk.api.delete_input(file_id)
            await desk.note(part, Step.FENCED)
            return AFTER_FENCE_S
        return 0.0

    async def _look_around(self, part: BatchPart) -> float:
        """Look for a batch that may be the part's: where none was seen, nobody can ever be certain."""
        desk = self._desk
        if part.key not in self.untraced and (wait_s := self._next_look_s(part)) > 0:
            return wait_s
        listed = await desk.api.recent(part.intended_at - BEFORE_S)
        until = math.inf if part.unread else part.intended_at + part.size / SLOWEST_BYTES + LATEST_S
        maybe = [
            batch
            for batch in listed
            if batch.requests in (None, part.requests)
            and batch.created_at <= until
            and batch.id not in part.struck
            and not desk.ledger.knows(batch.id)
        ]
        for batch in maybe:
            if not batch.ended:
                continue
            is_ours = await is_made_of(desk, part, batch)
            if is_ours:
                await self._adopt(part, batch)
                return 0.0
            if is_ours is not None:
                await desk.note(part, Step.STRUCK, batch_id=batch.id)
                continue
            self._undecided[batch.id] += 1
        going = (not batch.ended or 0 < self._undecided[batch.id] < PATIENCE for batch in maybe)
        if any(going):
            return desk.look_again_s(desk.clock.since(part.at))
        if self._sees_others(part):
            return math.inf
        if self._looks_again(part):
            return self._next_look_s(part)
        return await self._without_trace(part)

    async def _without_trace(self, part: BatchPart) -> float:
        desk = self._desk
        wanted = part.key in desk.resubmit
        if wanted or desk.batching.on_doubt == "resubmit":
            who = "you want" if wanted else "`on_doubt: resubmit` says"
            desk.say(
                f"{desk.alias}: no trace of a batch of {part.requests:,} requests (part {part.key}). As "
                f"{who}, they are sent again: if it exists, it is paid twice."
            )
            await desk.note(part, Step.GIVEN_UP)
            return 0.0
        if part.key not in self.untraced:
            self.untraced.add(part.key)
            old = desk.clock.since(part.at) > WOULD_HAVE_ENDED_S
            ended = "It would have ended by now. " if old else ""
            desk.say(
                f"{desk.alias}: no trace of a batch of {part.requests:,} requests (part {part.key}), which "
                f"may exist all the same. {ended}They are not sent again, so that nothing is paid twice. "
                f"Look into your provider's console. To send them again: run with --resubmit {part.key}, or "
                "set `batch: {on_doubt: resubmit}`. To leave them: `asyncbench cancel FOLDER --abandon "
                f"{part.key}`."
            )
        return math.inf

    def _stays_unseen(self, part: BatchPart, error: ProviderError) -> bool:
        """Whether looks at a part in doubt have failed for so long that this run makes no more of them."""
        desk = self._desk
        since_at = self._failing.setdefault(part.key, desk.clock.now())
        if desk.clock.since(since_at) < PATIENCE_S or self._age_s(part) < self._looks_s[-1]:
            return False
        if part.key not in self.untraced:
            self.untraced.add(part.key)
            desk.say(
                f"{desk.alias}: nobody knows whether there is a batch of part {part.key}, and the provider "
                f"shows none ({error}). Its {part.requests:,} requests are not sent again. The next run "
                "looks again."
            )
        return True

    def _next_look_s(self, part: BatchPart) -> float:
        """Return the seconds until the next look at a list; 0: now."""
        looked = self._looked.get(part.key, 0)
        if looked >= len(self._looks_s):
            return 0.0
        return max(0.0, self._looks_s[looked] - self._age_s(part))

    def _age_s(self, part: BatchPart) -> float:
        """Return how long ago a part in doubt was submitted, by the vendor's clock: ours may be set."""
        return (self._vendor_now - part.intended_at) / self._desk.clock.real_s

    def _looks_again(self, part: BatchPart) -> bool:
        """Count a look that found nothing; return whether there is another one to come."""
        age_s = self._age_s(part)
        self._looked[part.key] = sum(due_s <= age_s for due_s in self._looks_s)
        return self._looked[part.key] < len(self._looks_s)

    def _sees_others(self, part: BatchPart) -> bool:
        """Whether the key may see the batches of another project than the one that the part went to.

        Where the provider never names a project, all keys see the same.
        """
        if self._desk.api.account == part.account:
            return False
        if part.key not in self.untraced:
            self.untraced.add(part.key)
            self._desk.say(
                f"{self._desk.alias}: part {part.key} was sent with a key of another project or workspace, "
                "or of one that is not known, so its batch cannot be seen. Run again with that key."
            )
        return True


def name_of(part: BatchPart) -> str:
    """Return the name of a part's upload."""
    return f"asyncbench-{part.key}.jsonl"


def ours(part: BatchPart, listed: list[RemoteBatch]) -> list[RemoteBatch]:
    """Return the batches that were made of a part, as far as they name what they were made of."""
    return [
        batch
        for batch in listed
        if batch.id not in part.struck
        and (batch.batch_key == part.key or (part.file_id and batch.input_file_id == part.file_id))
    ]


async def is_made_of(desk: BatchDesk, part: BatchPart, batch: RemoteBatch) -> bool | None:
    """Whether a batch was made of a part, as its results tell; None: they do not.

    One line of ours proves it, wherever it stands. That it is another's is proved by foreign lines, as
    many as there are requests.
    """
    try:
        told = await desk.api.custom_ids(batch, ENOUGH_LINES)
    except ProviderError as error:
        if error.http_status == NOT_FOUND and desk.is_gone(part):
            return None  # what was deleted cannot be read any more
        raise
    if any(trial_of(custom_id, part.key) is not None for custom_id in told):
        return True
    return False if len(set(told)) >= min(part.requests, ENOUGH_LINES) else None


def _created_lately(desk: BatchDesk) -> int:
    """Return how many batches were created, or may have been, within an hour."""
    now = desk.clock.now() + desk.api.skew_s
    ages_s = ((now - part.intended_at) / desk.clock.real_s for part in desk.ledger.parts.values())
    return sum(age_s < HOUR_S for age_s in ages_s)
