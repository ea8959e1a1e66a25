"""Poll the batches of a model, in one list and now and then singly, and cancel those that must end."""

import math
import random
from collections import Counter
from typing import Final

from asyncbench.errors import WORTH_ANOTHER_TRY, ProviderError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import NOT_FOUND, SAYS_FULL, BatchContext
from asyncbench.lanes.batches.ledger import GONE_FOR_GOOD, BatchPart, Step
from asyncbench.lanes.batches.submitting import Submitting, batches_made_of
from asyncbench.providers.batch_calls import RemoteBatch, fault_error

ALREADY_ENDED: Final = frozenset({400, 409})  # by a batch that has ended, though nobody may have seen it yet
JITTER: Final = 0.1
NOTIFY_AFTER: Final = 3  # polls in a row that failed
SINGLY_EVERY_S: Final = 600.0  # a list may be behind for as long as it likes
OVERDUE_S: Final = 25 * 3600.0  # from the creation of a batch that should end within a day
WORTH_WRITING: Final = 0.05  # of a part's requests, that more of them are done


def how_it_ended(batch: RemoteBatch) -> dict[str, object]:
    """Return the fields of the ledger for a batch that has ended."""
    return {
        "status": batch.status,
        "ended_at": batch.ended_at,
        "files": batch.files,
        "used": batch.tokens,
        "faults": batch.faults,
    }


class Polling:
    """The polls of one model."""

    def __init__(self, context: BatchContext, submitting: Submitting) -> None:
        self.changed = False  # the latest poll changed something
        self.wait_s = 0.0  # until the next poll is due; inf: there is nothing to poll
        self.latest: dict[str, RemoteBatch] = {}  # by batch that is running: as it was seen last
        self._context, self._submitting = context, submitting
        self._due_at = 0.0  # UTC of the next poll
        self._failures = 0  # polls in a row that failed
        self._read_failures = Counter[str]()  # by batch: failed reads of it alone, in a row
        self._read_again_at: dict[str, float] = {}  # by such a batch: UTC
        self._singly_at: dict[str, float] = {}  # by batch: UTC at which it is next read alone
        self._messages = set[tuple[str, str]]()  # that were given, with their batch
        self._cancelled = set[str]()  # batches of which the vendor has heard that they are
        self._cancel_failures = Counter[str]()  # by batch, in a row

    async def poll(self) -> None:
        """Look at the batches if it is time to; `changed` and `wait_s` tell what came of it."""
        context, self.changed = self._context, False
        parts = [
            batch_part
            for batch_part in context.ledger.parts_of(context.alias)
            if (batch_part.submitted and context.due.get(batch_part.key) != math.inf) or batch_part.open_twins
        ]
        if not parts or context.blind:
            self.wait_s = math.inf
            return
        self.wait_s = -context.clock.since(self._due_at)
        if self.wait_s > 0:
            return

        try:
            listed = await context.latest()
            by_id = {batch.id: batch for batch in listed}
            for batch_part in parts:
                if context.api.uploads:
                    await self._note_twins(batch_part, listed)
                await self._read_batches(batch_part, by_id)
            self._failures, context.unreached_at = 0, None
            youngest = max(batch_part.cancelled_at or batch_part.created_at or 0.0 for batch_part in parts)
            self.wait_s = context.poll_again_s(context.clock.since(youngest))
            self.wait_s *= 1 + JITTER * random.random()  # noqa: S311  spreads polls in time; guards nothing
        except ProviderError as error:
            self._failures += 1
            self.wait_s = context.failed(error, again=self._failures - 1, reading=True)
        self._due_at = context.clock.now() + self.wait_s * context.clock.real_s

    def soon(self) -> None:
        """Let the next poll be the one of a young batch: something was asked of an old one."""
        self._due_at = 0.0

    # ── One part's batches ───────────────────────────────────────────────────────────────────────

    async def _note_twins(self, batch_part: BatchPart, listed: list[RemoteBatch]) -> None:
        """Note second batches of a part, which are cancelled: something repeated our call on its way."""
        for batch in batches_made_of(batch_part, listed):
            if batch.id in (batch_part.batch_id, *batch_part.twins):
                continue
            await self._context.note(batch_part, Step.TWIN, batch_id=batch.id)
            self._context.notify(
                f"there are two batches of the same part, {batch_part.batch_id} and {batch.id}. "
                "asyncbench cancels the second one; what it has done already may be billed. Something "
                "between you and the provider repeats calls."
            )

    async def _read_batches(self, batch_part: BatchPart, listed: dict[str, RemoteBatch]) -> None:
        """Read the batch of a part, and its twins that have not ended; `listed` are the latest, by id."""
        context = self._context
        open_twins = [batch_id for batch_id, ended in batch_part.twins.items() if not ended]
        for batch_id in [batch_part.batch_id or "", *open_twins]:
            now = context.clock.now()
            if batch_id not in listed and now < self._read_again_at.get(batch_id, 0.0):
                continue
            try:
                batch = await self._read_batch(batch_id, listed.get(batch_id))
            except ProviderError as error:  # this one has to wait; others need not
                self._read_failures[batch_id] += 1
                failures = self._read_failures[batch_id]
                wait_s = context.failed(error, again=failures - 1, reading=True, one_batch=True)
                self._read_again_at[batch_id] = context.clock.now() + wait_s * context.clock.real_s
                if failures == NOTIFY_AFTER:
                    context.notify(
                        f"batch {batch_id} cannot be looked at: {error}. Trying again; others go on."
                    )
                if error.kind not in WORTH_ANOTHER_TRY:
                    context.lost_sight(batch_part)
                continue

            del self._read_failures[batch_id]
            account = context.api.account
            if batch is not None:
                context.unseen.pop(batch_part.key, None)
                await self._take_in(batch_part, batch)
            elif batch_part.account and account and batch_part.account != account:
                context.put_off(batch_part, math.inf)
                self._notify_once(
                    batch_part.batch_id or "",
                    f"batch {batch_part.batch_id} was created with the key of another project or workspace, "
                    "so this key cannot see it. Run again with that key; its trials are not asked in "
                    "another way",
                )
            elif not context.lost_sight(batch_part) and context.is_gone(batch_part) and batch_part.submitted:
                await context.note(batch_part, Step.ENDED, **GONE_FOR_GOOD)
                self.changed = True

    async def _read_batch(self, batch_id: str, listed: RemoteBatch | None) -> RemoteBatch | None:
        """Return a batch, None: it is not found; what it answers itself wins over what a list says of it.

        An open one is read alone from time to time, and one that has ended before that is believed.
        """
        clock, alone = self._context.clock, None
        again_at = clock.now() + SINGLY_EVERY_S * clock.real_s
        if listed and not listed.ended and clock.now() < self._singly_at.setdefault(batch_id, again_at):
            return listed
        self._singly_at[batch_id] = again_at
        try:
            alone = await self._context.api.retrieve(batch_id)
        except ProviderError as error:
            if listed is None and error.http_status != NOT_FOUND:
                raise
        if alone and listed and alone.ended and not listed.ended:
            self._notify_once(
                batch_id,
                f"the provider's list has batch {batch_id} as {listed.status}, but it is {alone.status}. "
                "asyncbench takes what the batch says itself",
            )
        return alone or listed

    async def _take_in(self, batch_part: BatchPart, batch: RemoteBatch) -> None:
        """Take in how a batch of a part stands."""
        context = self._context
        if batch.id in batch_part.twins:
            if batch.ended:
                self.changed = True
                await context.note(batch_part, Step.TWIN_ENDED, batch_id=batch.id, used=batch.tokens)
            else:
                await self.cancel(batch.id)
            return
        if not batch_part.submitted:
            return

        self.latest[batch.id] = batch
        if batch.requests is not None:  # it was validated
            pool = context.pool
            pool.accepted(batch.id, in_use=pool.size_of(pool.sent(context.ledger)))
        if not batch.ended:
            # How it goes on is written down: who looks at the folder asks nobody, and sees since when.
            clock, counted, done = context.clock, batch.requests is not None, batch.done
            changed = (batch_part.status, batch_part.counted) != (batch.status, counted)
            more_done = (done or 0) - (batch_part.done or 0) >= WORTH_WRITING * batch_part.requests
            long_ago = clock.since(max(batch_part.at, batch_part.seen_at)) > SINGLY_EVERY_S
            if changed or more_done or long_ago:
                seen = {"status": batch.status, "counted": counted, "done": done}
                context.ledger.write(batch_part, Step.SEEN, at=clock.now(), **seen)
            if context.clock.since(batch.created_at) > OVERDUE_S:
                self._notify_once(
                    batch.id,
                    f"batch {batch.id} should have ended within a day, and the provider still has it as "
                    f"{batch.status}. asyncbench goes on looking. To give it up, press Ctrl-C and type: "
                    f"asyncbench cancel {quoted(context.ledger.folder.parent)}",
                )
            return

        self.changed = True
        del self.latest[batch.id]
        if full := next((fault for fault in batch.faults if SAYS_FULL.search(str(fault))), None):
            # Nothing was run, and the upload can be submitted again.
            await context.note(batch_part, Step.STRUCK, batch_id=batch.id)
            context.put_off(batch_part, await self._submitting.refused(batch_part, fault_error(full)))
            return
        await context.note(batch_part, Step.ENDED, **how_it_ended(batch))

    def _notify_once(self, batch_id: str, message: str) -> None:
        """Tell a person something of a batch, once."""
        if (batch_id, message) not in self._messages:
            self._messages.add((batch_id, message))
            self._context.notify(f"{message}.")

    # ── Cancelling: a batch is asked to end until the vendor has heard it ──────────────────────────
    # What a batch has done by then is billed, and collected like that of any other. It may even end as if
    # nobody had cancelled it: what became of it is seen by polling alone.

    def is_to_cancel(self, batch_part: BatchPart) -> bool:
        """Whether the vendor has yet to hear that a part is cancelled, by this run or an earlier one."""
        return (
            batch_part.submitted
            and batch_part.cancelled_at is not None
            and batch_part.batch_id not in self._cancelled
        )

    async def cancel(self, batch_id: str) -> float:
        """Ask for the end of a batch; return the seconds until it is asked again, 0: that was heard."""
        if batch_id in self._cancelled:
            return 0.0
        try:
            await self._context.api.cancel(batch_id)
        except ProviderError as error:
            if error.http_status not in ALREADY_ENDED:
                self._cancel_failures[batch_id] += 1
                return self._context.failed(error, again=self._cancel_failures[batch_id] - 1, reading=True)
        self._cancelled.add(batch_id)
        return 0.0
