"""Collect the results of a part: each line becomes an attempt, and ends its trial or puts it back."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Container, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import orjson

from asyncbench.engine.attempts import BatchOfCall
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.files import storing, sync_to_disk
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.ledger import GONE, BatchPart, Step
from asyncbench.lanes.batches.packing import ManifestRow, hold_of, manifest_rows, packed_rows, trial_of
from asyncbench.providers.batch_calls import NotRun, RemoteBatch, fault_error, id_in, was_run
from asyncbench.records import BATCH, LEFT_SWEEP, Attempt, Ended, History, Reply, Trial

LINES_AT_ONCE: Final = 50  # then others have their turn in the event loop
PATIENCE: Final = 8  # downloads that lack lines, before these are taken for lost
QUARANTINE: Final = "strange"  # the suffix of a part's file of those lines of results that are not ours
_NOT_RUN: Final = {
    NotRun.EXPIRED: "the batch expired before it ran",
    NotRun.CANCELLED: "the batch was cancelled, or refused, before it ran",
}


@dataclass(slots=True, kw_only=True)
class Harvest:
    """Collects the parts of one model."""

    context: BatchContext
    model: LaneModel = field(init=False)  # as soon as its lane runs
    trials: Callable[[Collection[str]], Collection[Trial]]  # of the sweep, those with these ids
    finished: Container[str]  # ids of trials that earlier runs closed
    saved: Callable[[], Awaitable[bool]]  # waits until all that was kept is on the disk
    ask_again: Callable[[PendingTrial], None] = field(init=False)  # takes what is to be asked again
    done: dict[str, frozenset[str]] = field(default_factory=dict)  # by part: trials that an earlier run ended
    _short: Counter[str] = field(default_factory=Counter)  # downloads with too few lines, by part
    # Of the part that is being read: rows of its manifest, by trial (dicts would be thrice the size), ...
    _rows: dict[str, bytes] = field(default_factory=dict)
    _answered: set[str] = field(default_factory=set)  # ... trials with a reply, ...
    _used: list[int] = field(default_factory=list)  # ... input and output tokens, ...
    _trials: dict[str, Trial] = field(default_factory=dict)  # ... and trials that are still in the sweep

    async def collect(self, batch_part: BatchPart) -> bool:
        """Take in all that came back of a part; return whether it is safe on the disk.

        Raises:
            ProviderError: the results could not be downloaded.
        """
        context = self.context
        results = context.ledger.path(batch_part, "results")
        if has_results(batch_part, context) and not await asyncio.to_thread(results.exists):
            await self._download(batch_part, results)
        waiting, strange = await self._read(batch_part, results)
        await self._close_missing(batch_part, waiting.keys() - self._done(batch_part))
        if not await self.saved():
            return False
        unanswered = len(self._rows.keys() - self._answered)
        self._rows, self._trials = {}, {}
        await context.note(batch_part, Step.COLLECTED, unanswered=unanswered, strange=strange)
        for note in self.model.new_notes():
            context.notify(f"{note}.")
        if strange:
            context.notify(
                f"{strange:,} lines of batch {batch_part.batch_id} are broken, twice there, or "
                f"nobody's. They are kept in {results.with_suffix(f'.{QUARANTINE}')}."
            )
        return True

    async def is_outdated(self, batch_part: BatchPart) -> bool:
        """Whether a trial of a part has left the sweep since it was packed."""
        rows = manifest_rows(self.context.ledger.path(batch_part, "manifest"))
        ids = {row["trial_id"] for row in rows}
        return len(await self._trials_of(ids)) < len(ids)

    async def reopen(self, batch_part: BatchPart) -> None:
        """Bring back the trials of a part that was never sent, or of which nobody knows whether it was."""
        account = self.model.client.account
        rows = list(manifest_rows(self.context.ledger.path(batch_part, "manifest")))
        trials = await self._trials_of(row["trial_id"] for row in rows)
        for row in reversed(rows):  # each is put before those that wait
            self.model.counters.in_batches -= 1
            if batch_part.step is Step.GIVEN_UP and account is not None:
                account.hold_again(hold_of(row))
                account.settle(hold_of(row), None)  # it may be spent
            if (trial := trials.get(row["trial_id"])) is not None:
                pending = self._pending_trial(row, trial, sent_at=batch_part.at)
                self.model.attempts.unpack(pending)
                self.ask_again(pending)
            elif account is not None:  # it has left the sweep
                account.settle(hold_of(row), 0.0)
        self.context.ledger.path(batch_part, "jsonl").unlink(missing_ok=True)

    # ── The results file ─────────────────────────────────────────────────────────────────────────

    async def _download(self, batch_part: BatchPart, results: Path) -> None:
        context, draft = self.context, results.with_suffix(".part")
        await context.note(batch_part, Step.DOWNLOADING)
        batch = await context.api.retrieve(batch_part.batch_id or "")
        await context.api.download(batch, draft)
        with storing(results):
            if lacks := await asyncio.to_thread(_lacking, draft, batch_part, batch):
                # Of downloads that lack results, the longest so far is kept.
                fullest = results.with_suffix(".most")
                if not fullest.exists() or draft.stat().st_size >= fullest.stat().st_size:
                    draft.replace(fullest)
                draft = fullest
                if self._short[batch_part.key] < PATIENCE:
                    self._short[batch_part.key] += 1
                    raise ProviderError(ErrorKind.BAD_REPLY, f"{lacks:,} of the results did not come")
            await asyncio.to_thread(sync_to_disk, draft)
            draft.replace(results)
            await asyncio.to_thread(sync_to_disk, results.parent)

    async def _read(self, batch_part: BatchPart, results: Path) -> tuple[dict[str, bytes], int]:
        """Take in every line; return the rows of those that are missing, and how many are none of ours."""
        manifest = self.context.ledger.path(batch_part, "manifest")
        self._rows = await asyncio.to_thread(packed_rows, manifest)
        self._answered, self._used = set(self._done(batch_part)), [0, 0]
        self._trials = await self._trials_of(self._rows)
        waiting, strange = self._rows.copy(), 0
        out = len(waiting.keys() - self._done(batch_part))
        self.model.counters.in_batches -= out
        self.model.counters.in_flight += out  # refusals look whether others may still be answered
        if not has_results(batch_part, self.context):
            return waiting, 0
        with results.open("rb") as lines:
            for number, line in enumerate(lines):
                if not number % LINES_AT_ONCE:
                    await asyncio.sleep(0)
                try:
                    answer = self.context.api.read(line)
                    packed = waiting.pop(trial_of(answer.custom_id, batch_part.key) or "")
                except (ValueError, KeyError):  # it belongs to no request of the part
                    quarantine = results.with_suffix(f".{QUARANTINE}")
                    with storing(results), quarantine.open("ab" if strange else "wb") as file:
                        file.write(line.rstrip(b"\n") + b"\n")
                    strange += 1
                    continue
                row: ManifestRow = orjson.loads(packed)
                if isinstance(answer.ended, Reply):
                    usage = answer.ended.usage
                    self._used[0] += (usage and usage.input_tokens) or 0
                    self._used[1] += (usage and usage.output_tokens) or 0
                if row["trial_id"] not in self._done(batch_part):
                    await self._end(batch_part, row, answer.ended)
        return waiting, strange

    async def _close_missing(self, batch_part: BatchPart, missing: Collection[str]) -> None:
        """Close what has no line: not run where the batch says why, and bills its lines alone; else lost."""
        faults = {fault.get("line"): fault_error(fault) for fault in batch_part.faults}  # None: of all lines
        numbered = enumerate(self._rows.items(), start=1)
        bills_more = batch_part.used not in (None, tuple(self._used))
        # Those with a fault first, while others may be answered yet.
        for number, (trial_id, packed) in sorted(numbered, key=lambda row: row[0] not in faults):
            if trial_id not in missing:
                continue
            row: ManifestRow = orjson.loads(packed)
            error = faults.get(number) or faults.get(None)
            if error is not None:
                error.may_have_been_billed = False
                await self._end(batch_part, row, error)
            elif batch_part.status in (GONE, "completed", "ended") or bills_more:
                await self._end(batch_part, row, None)
            else:
                expired = batch_part.status == "expired"
                await self._end(batch_part, row, NotRun.EXPIRED if expired else NotRun.CANCELLED)

    # ── One request ──────────────────────────────────────────────────────────────────────────────

    async def _end(
        self, batch_part: BatchPart, row: ManifestRow, ended: Reply | ProviderError | NotRun | None
    ) -> None:
        """Write down what came of a request. None: it is not known."""
        model, created_at = self.model, batch_part.created_at or batch_part.at
        batch = BatchOfCall(id=batch_part.batch_id or "", created_at=created_at, ended_at=batch_part.ended_at)
        model.counters.in_flight -= 1
        if isinstance(ended, Reply):
            ended = replace(ended, service_tier=BATCH)  # whatever the body says
            self._answered.add(row["trial_id"])
        if (trial := self._trials.get(row["trial_id"])) is None:
            self._keep_orphan(row, ended, batch)
            return
        pending, attempts = self._pending_trial(row, trial, sent_at=created_at), model.attempts
        closed = trial.trial_id in self.finished  # by an answer that stays where this is none
        if isinstance(ended, Reply):
            await model.closing.close(pending, attempts.collect(pending, ended, batch), ended)
        elif isinstance(ended, ProviderError):
            attempts.collect(pending, ended, batch)
            if not closed and model.closing.failed(pending, ended, paused=False) is not None:
                self.ask_again(pending)
        else:
            if ended is None:
                cost = 0.0 if batch_part.used == tuple(self._used) else None
                attempts.collect(pending, None, batch, why="the batch did not return it", cost_usd=cost)
            else:
                pending.tries -= 1  # the provider never tried
                # The batch was refused for other lines, or ended at our word.
                pending.rounds -= bool(batch_part.faults) or batch_part.cancelled_at is not None
                attempts.collect(pending, None, batch, status=ended.value, why=_NOT_RUN[ended], cost_usd=0.0)
            if not closed:
                self.ask_again(pending)

    def _pending_trial(self, row: ManifestRow, trial: Trial, *, sent_at: float) -> PendingTrial:
        """Return a trial as it was when it went into its part."""
        client = self.model.client
        request = client.calls.request_for(trial)
        return PendingTrial(
            request=request,
            history=History(attempts=row["attempt"], cost_usd=row["cost_usd"]),
            characters=client.calls.characters(request),
            longest=row["max_tokens"],
            taken_s=client.now_s(),
            tries=row["tries"],
            attempts=row["attempt"],
            rounds=row["rounds"],
            cost_usd=row["cost_usd"],
            since_s=client.now_s(),
            sent_s=sent_at - client.epoch_s,
            hold=hold_of(row),
            reserved_usd=row["reserved_usd"],
            most_usd=row["most_usd"],
        )

    def _keep_orphan(
        self, row: ManifestRow, ended: Reply | ProviderError | NotRun | None, batch: BatchOfCall
    ) -> None:
        """Keep what came of a trial that has left the sweep: it was paid for, and nobody can grade it."""
        client, reply = self.model.client, ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        cost = None if ended is None else 0.0
        if reply is not None:
            cost = self.model.money.charge_for(reply, batch.created_at).usd
        attempt = Attempt(
            trial_id=row["trial_id"],
            attempt=row["attempt"],
            model=client.model.alias,
            provider=client.model.provider,
            started_at=batch.created_at,
            status="ok" if reply else error.kind.value if error else ended.value if ended else "lost",  # type: ignore[union-attr]  # a NotRun
            cost_usd=cost,
            max_tokens=row["max_tokens"],
            reserved_usd=row["reserved_usd"],
            most_usd=row["most_usd"],
            usage=reply.usage if reply else None,
            raw_usage=reply.raw_usage if reply else None,
            error=error.message if error else None,
            note=LEFT_SWEEP,
            mode=BATCH,
            batch_id=batch.id,
            batch_ended_at=batch.ended_at,
        )
        client.records.keep(Ended(attempt=attempt, reply=reply))
        client.counters.count(attempt)
        if client.account is not None:
            client.account.settle(hold_of(row), cost)

    async def _trials_of(self, ids: Iterable[str]) -> dict[str, Trial]:
        trials = await asyncio.to_thread(self.trials, frozenset(ids))
        return {trial.trial_id: trial for trial in trials}

    def _done(self, batch_part: BatchPart) -> frozenset[str]:
        return self.done.get(batch_part.key, frozenset())


def has_results(batch_part: BatchPart, context: BatchContext) -> bool:
    """Whether there is something to download: of a batch that was refused as a whole there is nothing."""
    return bool(batch_part.files) if context.api.uploads else batch_part.status != GONE


def _lacking(draft: Path, batch_part: BatchPart, batch: RemoteBatch) -> int:
    """Return how many results a file lacks of those that the vendor counts: a cut body tells nothing else.

    Only lines of the part that can be read count, each once. Of those that were not run there need be none.
    """
    present, ran = set[str](), set[str]()
    with draft.open("rb") as lines:
        for line in lines:
            try:
                record = orjson.loads(line)
                custom_id = id_in(record)
            except (orjson.JSONDecodeError, AttributeError):
                continue
            if (trial_id := trial_of(str(custom_id), batch_part.key)) is not None:
                present.add(trial_id)
                if was_run(record):
                    ran.add(trial_id)
    # Who counts nothing has a line for each request of what was completed.
    wanted = batch_part.requests if batch.done is None and batch.status == "completed" else batch.done or 0
    return 0 if len(present) >= batch_part.requests else max(0, wanted - len(ran))
