"""Poll the batches of a model, in one list and now and then singly, and cancel those that must end.

They must where a deadline is near: then a model is asked in real time. No trial is asked in both ways at
once: what a batch has not answered is asked when that batch has ended.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncbench.engine.trial_queue import ModelClient
from asyncbench.errors import WORTH_ANOTHER_TRY, ProviderError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import NOT_FOUND, SAYS_FULL, BatchContext, EnqueuedPool
from asyncbench.lanes.batches.ledger import GONE_FOR_GOOD, BatchPart, Step
from asyncbench.lanes.batches.submitting import Submitting, ours
from asyncbench.pricing import dollars_of
from asyncbench.providers.batch_calls import RemoteBatch, fault_error
from asyncbench.records import BATCH
from asyncbench.tables.numbers import dollars

# ── Polling


WAIT_S: Final = 1800.0  # until cancelled batches have ended; 25 minutes were seen
ALREADY_ENDED: Final = frozenset({400, 409})  # by a batch that has ended, though nobody may have seen it yet


JITTER: Final = 0.1
NOTIFY_AFTER: Final = 3  # polls in a row that failed
SINGLY_EVERY_S: Final = 600.0  # a list may be behind for as long as it likes
OVERDUE_S: Final = 25 * 3600.0  # from the creation of a batch that should end within a day
WORTH_WRITING: Final = 0.05  # of a part's requests, that more of them are done


def how_it_ended(batch: RemoteBatch) -> dict[str, object]:
    """Return what the ledger notes of a batch that has ended."""
    return {
        "status": batch.status,
        "ended_at": batch.ended_at,
        "files": batch.files,
        "used": batch.tokens,
        "faults": batch.faults,
    }


class Polling:
    """The polls of one model."""

    def __init__(self, context: BatchContext, pool: EnqueuedPool, submitting: Submitting) -> None:
        self.changed = False  # the latest poll changed something
        self.latest: dict[str, RemoteBatch] = {}  # by batch that is running: as it was seen last
        self._context, self._pool = context, pool
        self._submitting = submitting
        self._due_at = 0.0
        self._failures = 0
        self._failed = Counter[str]()  # failed polls in a row of a single batch
        self._later: dict[str, float] = {}  # by such a batch: UTC of the next poll
        self._singly_at: dict[str, float] = {}  # by batch: UTC at which it is next read alone
        self._messages = set[tuple[str, str]]()  # that were given, with their batch
        self._cancelled = set[str]()  # batches of which the vendor has heard that they are
        self._refusals = Counter[str]()  # to hear that, in a row, by batch

    async def poll(self) -> float:
        """Look at the batches if it is time to; return the seconds until it is again, inf: there are none."""
        context, self.changed = self._context, False
        parts = [
            part
            for part in context.ledger.of(context.alias)
            if (part.submitted and context.due.get(part.key) != math.inf) or not all(part.twins.values())
        ]
        if not parts or context.blind:
            return math.inf
        if (wait_s := -context.clock.since(self._due_at)) > 0:
            return wait_s
        try:
            await self._read_batches(parts)
            self._failures, context.unreached_at = 0, None
            youngest = max(part.cancelled_at or part.created_at or 0.0 for part in parts)
            wait_s = context.poll_again_s(context.clock.since(youngest))
            wait_s *= 1 + JITTER * random.random()  # noqa: S311  spreads polls in time; guards nothing
        except ProviderError as error:
            self._failures += 1
            wait_s = context.failed(error, again=self._failures - 1, reading=True)
        self._due_at = context.clock.now() + wait_s * context.clock.real_s
        return wait_s

    def soon(self) -> None:
        """Let the next poll be the one of a young batch: something was asked of an old one."""
        self._due_at = 0.0

    async def _read_batches(self, parts: list[BatchPart]) -> None:
        context = self._context
        listed = await context.latest()
        by_id = {batch.id: batch for batch in listed}
        for part in parts:
            if context.api.uploads:
                await self._cancel_twins(part, listed)
            for batch_id in [part.batch_id or "", *(twin for twin, ended in part.twins.items() if not ended)]:
                if batch_id not in by_id and context.clock.now() < self._later.get(batch_id, 0.0):
                    continue
                try:
                    batch = await self._read_batch(batch_id, by_id.get(batch_id))
                except ProviderError as error:
                    self._put_off(part, batch_id, error)
                    continue
                del self._failed[batch_id]
                if batch is not None:
                    context.unseen.pop(part.key, None)
                    await self._take_in(part, batch)
                elif self._is_of_another_key(part):
                    self._leave_to_its_key(part)
                elif not context.lost_sight(part) and context.is_gone(part) and part.submitted:
                    await context.note(part, Step.ENDED, **GONE_FOR_GOOD)
                    self.changed = True

    def _is_of_another_key(self, part: BatchPart) -> bool:
        """Whether a batch that is not found was created for another account than this key's."""
        ours = self._context.api.account
        return bool(part.account and ours) and part.account != ours

    def _leave_to_its_key(self, part: BatchPart) -> None:
        self._context.put_off(part, math.inf)
        self._notify_once(
            part.batch_id or "",
            f"batch {part.batch_id} was created with the key of another project or workspace, so this key "
            "cannot see it. Run again with that key; its trials are not asked in another way",
        )

    def _put_off(self, part: BatchPart, batch_id: str, error: ProviderError) -> None:
        """Let a batch wait that cannot be read; others need not."""
        context = self._context
        self._failed[batch_id] += 1
        wait_s = context.failed(error, again=self._failed[batch_id] - 1, reading=True, one_batch=True)
        self._later[batch_id] = context.clock.now() + wait_s * context.clock.real_s
        if self._failed[batch_id] == NOTIFY_AFTER:
            context.notify(f"batch {batch_id} cannot be looked at: {error}. Trying again; others go on.")
        if error.kind not in WORTH_ANOTHER_TRY:
            context.lost_sight(part)

    async def _read_batch(self, batch_id: str, listed: RemoteBatch | None) -> RemoteBatch | None:
        """Return a batch; what it answers itself wins over what a list says of it.

        An open one is read alone from time to time, and one that has ended before that is believed.
        """
        clock = self._context.clock
        again_at = clock.now() + SINGLY_EVERY_S * clock.real_s
        if listed and not listed.ended and clock.now() < self._singly_at.setdefault(batch_id, again_at):
            return listed
        self._singly_at[batch_id] = again_at
        try:
            alone = await self._retrieve(batch_id)
        except ProviderError:
            if listed is None:
                raise
            return listed
        if alone and listed and alone.ended and not listed.ended:
            self._notify_once(
                batch_id,
                f"the provider's list has batch {batch_id} as {listed.status}, but it is {alone.status}. "
                "asyncbench takes what the batch says itself",
            )
        return alone or listed

    def _notify_once(self, batch_id: str, what: str) -> None:
        """Tell a person something of a batch, once."""
        if (batch_id, what) not in self._messages:
            self._messages.add((batch_id, what))
            self._context.notify(f"{what}.")

    async def _retrieve(self, batch_id: str) -> RemoteBatch | None:
        try:
            return await self._context.api.retrieve(batch_id)
        except ProviderError as error:
            if error.http_status != NOT_FOUND:
                raise
            return None

    async def _take_in(self, part: BatchPart, batch: RemoteBatch) -> None:
        context = self._context
        if batch.id in part.twins:
            if batch.ended:
                self.changed = True
                await context.note(part, Step.TWIN_ENDED, batch_id=batch.id, used=batch.tokens)
            else:
                await self.cancel(batch.id)
            return
        if not part.submitted:
            return
        self.latest[batch.id] = batch
        if batch.requests is not None:  # it was validated
            self._pool.accepted(batch.id, in_use=self._pool.size_of(self._pool.sent(context.ledger)))
        if not batch.ended:
            self._write_down(part, batch)
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
            await context.note(part, Step.STRUCK, batch_id=batch.id)
            context.put_off(part, await self._submitting.refused(part, fault_error(full)))
            return
        await context.note(part, Step.ENDED, **how_it_ended(batch))

    def _write_down(self, part: BatchPart, batch: RemoteBatch) -> None:
        """Write down how a batch goes on: who looks at the folder asks nobody, and sees since when."""
        counted, done = batch.requests is not None, batch.done
        more = (done or 0) - (part.done or 0) >= WORTH_WRITING * part.requests
        at, clock = self._context.clock.now(), self._context.clock
        long_ago = clock.since(max(part.at, part.seen_at)) > SINGLY_EVERY_S
        if (part.status, part.counted) != (batch.status, counted) or more or long_ago:
            self._context.ledger.write(
                part, Step.SEEN, at=at, status=batch.status, counted=counted, done=done
            )

    async def _cancel_twins(self, part: BatchPart, listed: list[RemoteBatch]) -> None:
        """Cancel a second batch of a part: somebody between us and the vendor repeated the call."""
        for batch in ours(part, listed):
            if batch.id in (part.batch_id, *part.twins):
                continue
            await self._context.note(part, Step.TWIN, batch_id=batch.id)
            self._context.notify(
                f"there are two batches of the same part, {part.batch_id} and {batch.id}. "
                "asyncbench cancels the second one; what it has done already may be billed. Something "
                "between you and the provider repeats calls."
            )

    # ── Cancelling: a batch is asked to end until the vendor has heard it ──────────────────────────
    # What a batch has done by then is billed, and collected like that of any other. It may even end as if
    # nobody had cancelled it: what became of it is seen by polling alone.

    def is_to_cancel(self, part: BatchPart) -> bool:
        """Whether the vendor has yet to hear that a part is cancelled, by this run or an earlier one."""
        return part.submitted and part.cancelled_at is not None and part.batch_id not in self._cancelled

    async def cancel(self, batch_id: str) -> float:
        """Ask for the end of a batch; return the seconds until it is asked again, 0: that was heard."""
        if batch_id in self._cancelled:
            return 0.0
        try:
            await self._context.api.cancel(batch_id)
        except ProviderError as error:
            if error.http_status not in ALREADY_ENDED:
                self._refusals[batch_id] += 1
                return self._context.failed(error, again=self._refusals[batch_id] - 1, reading=True)
        self._cancelled.add(batch_id)
        return 0.0


# ── Switching from batches to real time before a deadline that batches would miss


LEAST_S: Final = 7200.0  # before a deadline, in which no batch is begun
SPARE: Final = 1.3  # times what real time takes by its forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A deadline, and what real time takes until then."""

    ends_at: float  # UTC, seconds since 1970
    trials: int  # that are left, those in batches too
    trial_s: float  # that one of them takes in real time, beside others
    trial_usd: float | None  # that it costs there; None: no price is known


def switch_s(realtime_s: float, *, real_s: float = 1.0) -> float:
    """Return how long before its deadline a run leaves batches for what takes so long in real time."""
    return SPARE * realtime_s + WAIT_S * real_s


class Switching:
    """Whether the batches of one model still come in time."""

    def __init__(
        self,
        context: BatchContext,
        switch: Switch | None,
        polling: Polling,
        client: ModelClient,
        *,
        ends: bool = False,
        leaves: bool = False,
    ) -> None:
        """`ends`: somebody cancels all of them. `leaves`: none is waited for."""
        self._context, self._switch, self._polling, self._client = context, switch, polling, client
        self._ends = ends
        self.collects = client.model.mode != BATCH and not leaves  # what earlier runs left, and begins none
        self._switched_at: float | None = None
        self._notified = False

    @property
    def begins_none(self) -> bool:
        """Whether no batch is begun, as it is too late for one or the sweep does not want any more."""
        over = self._ends or self.collects or self._switched_at is not None
        return over or self._left_s < LEAST_S * self._context.clock.real_s

    def late(self) -> Iterator[BatchPart]:
        """Yield the parts that are to be cancelled now, those that are furthest from done first."""
        if not self._ends and (self._switch is None or not self._is_time(self._switch)):
            return
        running = [part for part in self._context.ledger.of(self._context.alias) if part.submitted]
        for part in sorted(running, key=lambda part: self._done(part) / part.requests):
            if part.cancelled_at is None and not self._ends_soon(part):
                yield part

    @property
    def _left_s(self) -> float:
        return float("inf") if self._switch is None else self._switch.ends_at - self._context.clock.now()

    def _is_time(self, switch: Switch) -> bool:
        """Whether the batches are left now; what the budget cannot pay in real time stays in them."""
        if self._switched_at is not None:
            return True
        counters, context = self._client.counters, self._context
        open_trials = switch.trials - counters.outcomes.total() - counters.skipped
        unfinished = open_trials - sum(batch.done or 0 for batch in self._polling.latest.values())
        if self._left_s > switch_s(unfinished * switch.trial_s, real_s=context.clock.real_s):
            return False
        if not self._affords(open_trials, switch.trial_usd):
            return False
        self._switched_at = context.clock.now()
        if any(part.submitted for part in context.ledger.of(context.alias)):
            context.notify(
                f"the deadline is near. asyncbench cancels batches that may not end in time, "
                f"and asks what they leave in real time, about {unfinished:,} trials. What a batch has done "
                "is billed, and collected."
            )
        return True

    def _affords(self, trials: int, trial_usd: float | None) -> bool:
        account = self._client.account
        if account is None or trial_usd is None:
            return True
        room = min(cap.limit - cap.spent - cap.reserved for cap in account.caps) + account.reserved
        if trials * trial_usd <= dollars_of(max(0, room)):
            return True
        if not self._notified:
            self._notified = True
            self._context.notify(
                f"it would be time to leave batches for real time, but "
                f"{trials:,} trials would cost about {dollars(trials * trial_usd)} there, and the budget has "
                f"{dollars(dollars_of(max(0, room)))} left. The batches go on: what does not end by the "
                f"deadline will be missing, up to {trials:,} trials. A later run collects it."
            )
        return False

    def _done(self, part: BatchPart) -> int:
        batch = self._polling.latest.get(part.batch_id or "")
        return (batch and batch.done) or 0

    def _ends_soon(self, part: BatchPart) -> bool:
        """Whether a part, at its pace so far, ends while others are being cancelled."""
        now, done = self._context.clock.now(), self._done(part)
        if self._ends or not done or part.created_at is None or self._switched_at is None:
            return False
        ends_at = part.created_at + (now - part.created_at) * part.requests / done
        return max(now, ends_at) < self._switched_at + WAIT_S * self._context.clock.real_s
