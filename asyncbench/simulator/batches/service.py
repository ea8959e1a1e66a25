"""The batches of both vendors: taking them in, showing and ending them; and the truth."""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from email.utils import formatdate
from functools import cached_property
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.simulator.batches.records import (
    BatchStorage,
    Course,
    ServedBatch,
    StoredFile,
    course_of,
    new_id,
    told_error,
)
from asyncbench.simulator.batches.results import BatchRun, executed_path
from asyncbench.simulator.batches.settings import BatchFaultKind as Kind, BatchSettings, Dealer, dealt
from asyncbench.simulator.served import ServedModels
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.wire import Json, RefusedError, Why

HOUR_S = 3600.0
AT_ONCE = 1000  # requests: results of so many are written while the client waits
POOL = 2_000_000  # tokens that a limit names which nobody has set
USUAL_WORKSPACE = "default"
PREFIXES: Mapping[str, str] = {"openai": "batch_", "anthropic": "msgbatch_"}


class Clock:
    """The server's clock, which can be put forward."""

    def __init__(self, storage: BatchStorage) -> None:
        self._path = storage.path("ahead_s")
        self.ahead_s = float(self._path.read_text("utf-8")) if self._path.is_file() else 0.0

    def now(self) -> float:
        """Return Unix seconds."""
        return time.time() + self.ahead_s

    def date(self) -> str:
        """Return the time as a header tells it."""
        return formatdate(self.now(), usegmt=True)

    def forward(self, seconds: object) -> None:
        self.ahead_s += seconds if isinstance(seconds, int | float) else 0
        self._path.write_text(repr(self.ahead_s), "utf-8")


class BatchService:
    """All batches of a server, of both vendors."""

    run_type = BatchRun  # runs the requests of a batch

    def __init__(self, settings: Settings, models: ServedModels) -> None:
        self.settings, self.models = settings, models
        self.dealer = Dealer(str(settings.seed))
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._writing: dict[str, asyncio.Task[ServedBatch]] = {}

    @cached_property
    def storage(self) -> BatchStorage:
        """The storage of files and batches, made when the first is needed."""
        if self.settings.folder is not None:
            return BatchStorage(self.settings.folder)
        self._temporary = tempfile.TemporaryDirectory(prefix="asyncbench-simulator-")
        return BatchStorage(Path(self._temporary.name))

    @cached_property
    def clock(self) -> Clock:
        return Clock(self.storage)

    async def aclose(self) -> None:
        """Stop writing results, and remove what nobody wants kept."""
        for task in self._writing.values():
            task.cancel()
        await asyncio.gather(*self._writing.values(), return_exceptions=True)
        if self._temporary is not None:
            self._temporary.cleanup()

    # ── taking in ────────────────────────────────────────────────────────────────────────────

    def settings_of(self, wanted: object) -> BatchSettings:
        """Return the settings of a batch whose first request asks for some; raises RefusedError."""
        try:
            return self.settings.batch.but(wanted)
        except ConfigError as error:
            raise RefusedError(Why.BAD_REQUEST, str(error)) from None

    def create(self, draft: ServedBatch) -> ServedBatch:
        """Take a batch in; its id, its number, its faults and its latency are found here.

        Raises:
            RefusedError: it has no room, and is not created.
        """
        recent = [
            batch
            for batch in self.storage.batches.values()
            if (batch.vendor, batch.workspace) == (draft.vendor, draft.workspace)
            and batch.elapsed_s(draft.created_at) < HOUR_S
        ]
        if len(recent) >= draft.settings.creates_per_hour:
            raise self.too_many_creates(draft)
        allowed = draft.settings.waiting_requests
        waiting = sum(batch.requests for batch in self.unfinished(draft))
        if draft.vendor == "anthropic" and allowed is not None and waiting + draft.requests > allowed:
            raise RefusedError(Why.RATE_LIMITED, f"More than {allowed:,} requests would wait in batches.")

        number = self.next_number(draft.model)
        draw = random.Random(f"batch latency/{self.settings.seed}/{draft.model}/{number}")
        batch = replace(
            draft,
            id=new_id(PREFIXES[draft.vendor]),
            number=number,
            met=self.dealer.deal(dealt(draft.settings.faults), "batch", draft.model, number=number),
            latency_s=draft.settings.latency_s * draw.lognormvariate(0, draft.settings.latency_sigma),
        )
        return self.storage.keep(replace(batch, errors=self.validation_errors(batch)))

    def next_number(self, model: str) -> int:
        """Return the number of a model's next batch; 1 is the first."""
        return 1 + sum(batch.model == model for batch in self.storage.batches.values())

    def too_many_creates(self, draft: ServedBatch) -> RefusedError:
        message = "Too many batches were created within an hour."
        return RefusedError(Why.RATE_LIMITED, message, retry_after_s=60 / draft.settings.speedup)

    def validation_errors(self, batch: ServedBatch) -> tuple[Mapping[str, object], ...] | None:
        """Return why a batch will fail validation, in OpenAI's words, or None if it passes."""
        if batch.errors is not None or batch.vendor != "openai":
            return batch.errors
        if (code := batch.met.get(Kind.FAILED)) is not None:
            code, _, line = code.partition("@")
            return (told_error(code, "Validation failed.", int(line) if line.isdigit() else None),)

        # The tokens of a model's unfinished batches are limited together.
        allowed = batch.settings.enqueued_tokens
        pool = sum(earlier.tokens for earlier in self.unfinished(batch) if earlier.model == batch.model)
        full = allowed is not None and pool + batch.tokens > allowed
        return (self.token_limit_error(batch),) if full else None

    def token_limit_error(self, batch: ServedBatch) -> Json:
        limit = batch.settings.enqueued_tokens or POOL
        return told_error(
            "token_limit_exceeded",
            f"Enqueued token limit reached for {batch.model} in organization org-simulated. Limit: {limit:,} "
            "enqueued tokens. Please try again once some in_progress batches have been completed.",
        )

    def unfinished(self, batch: ServedBatch) -> list[ServedBatch]:
        """Return the batches of the same vendor and workspace that have not ended when `batch` comes."""
        now = batch.created_at
        return [
            earlier
            for earlier in self.storage.batches.values()
            if (earlier.vendor, earlier.workspace) == (batch.vendor, batch.workspace)
            and earlier.errors is None
            and earlier.elapsed_s(now) < course_of(earlier, now).ends_s
        ]

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def listed(self, vendor: str, workspace: str) -> list[ServedBatch]:
        """Return the batches that a list shows, newest first."""
        now = self.clock.now()
        existing = [
            batch for batch in self.storage.batches.values() if self._exists(batch, vendor, workspace, now)
        ]
        return sorted(existing, key=lambda batch: batch.created_at, reverse=True)

    def find(self, vendor: str, workspace: str, batch_id: str) -> ServedBatch:
        """Return a batch; raises RefusedError where there is none."""
        batch = self.storage.batches.get(batch_id)
        if batch is None or not self._exists(batch, vendor, workspace, self.clock.now()):
            raise RefusedError(Why.NO_SUCH_OBJECT, f"No such batch: {batch_id}.")
        return batch

    def _exists(self, batch: ServedBatch, vendor: str, workspace: str, now: float) -> bool:
        """Tell whether there is a batch; one that comes late finds no input file that was deleted before."""
        file = self.storage.files.get(batch.input_file_id)
        made = batch.created_at <= now and (file is None or file.is_there(batch.created_at))
        return made and not batch.deleted and (batch.vendor, batch.workspace) == (vendor, workspace)

    async def look(self, batch: ServedBatch, *, wait: bool = False) -> tuple[ServedBatch, Course]:
        """Return a batch as it is now, its results written if it has ended, and where it stands.

        A large batch has not ended until they are written; `wait`: the caller has the time.
        """
        batch = self.storage.batches[batch.id]
        course = course_of(batch, self.clock.now())
        if not course.ended or course.status == "failed" or batch.outcome is not None:
            return batch, course
        task = self._writing.get(batch.id)
        if task is None:
            task = self._writing[batch.id] = asyncio.create_task(self._write(batch, course))
        if wait or batch.requests <= AT_ONCE or task.done():
            return await asyncio.shield(task), course
        began_s = {state: at_s for state, at_s in course.began_s.items() if state != course.status}
        return batch, replace(
            course, status="cancelling" if course.cancelling else "finalizing", began_s=began_s
        )

    async def look_in_list(self, batch: ServedBatch) -> tuple[ServedBatch, Course]:
        """Return a batch as a list shows it."""
        return await self.look(batch)

    async def _write(self, batch: ServedBatch, course: Course) -> ServedBatch:
        run = self.run_type(batch, self.storage, self.models, seed=self.settings.seed)
        outcome = await run.write_results(course)
        self._writing.pop(batch.id, None)
        return self.storage.keep(replace(self.storage.batches[batch.id], outcome=outcome))

    async def cancel(self, batch: ServedBatch) -> tuple[ServedBatch, Course]:
        """Cancel a batch; raises RefusedError when it has ended."""
        course = course_of(batch, self.clock.now())
        if course.ended:  # though a client may not have seen it yet
            raise RefusedError(Why.CONFLICT, f"A batch that is {course.status} cannot be cancelled.")
        if batch.cancelled_at is None:
            batch = self.storage.keep(replace(batch, cancelled_at=self.clock.now()))
        return await self.look(batch)

    def delete(self, file: StoredFile) -> None:
        """Delete a file. A batch that was made of it still reads it."""
        self.storage.keep_file(replace(file, deleted_at=self.clock.now()))

    # ── the truth ────────────────────────────────────────────────────────────────────────────

    async def truth(self) -> list[Json]:
        """Return the fate of every batch that was taken in, the oldest first."""
        truths = list[Json]()
        for batch in [*self.storage.batches.values()]:
            if not self._exists(batch, batch.vendor, batch.workspace, self.clock.now()) and not batch.deleted:
                continue  # it has not come yet, or came too late
            ended, course = await self.look(batch, wait=True)
            outcome = ended.outcome
            truths.append(
                {
                    "batch_id": batch.id,
                    "vendor": batch.vendor,
                    "workspace": batch.workspace,
                    "model": batch.model,
                    "status": course.status,  # in OpenAI's words
                    "requests": batch.requests,
                    # Run by now, billed or not. None is billed before the batch has ended.
                    "run": outcome.answered + outcome.failed if outcome else course.done,
                    "billed": outcome.answered if outcome else 0,
                    "input_tokens": outcome.input_tokens if outcome else 0,
                    "output_tokens": outcome.output_tokens if outcome else 0,
                    "metadata": batch.metadata,
                }
            )
        return truths

    async def executed(self) -> AsyncIterator[bytes]:
        """Yield a line of JSON for each time a request of an ended batch was run, in pieces."""
        await self.truth()
        for batch in [*self.storage.batches.values()]:
            if (path := executed_path(batch, self.storage)).is_file():
                with path.open("rb") as file:
                    while piece := file.read(1 << 18):
                        yield piece
