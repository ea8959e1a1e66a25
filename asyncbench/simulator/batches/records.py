"""Files and batches as a simulator keeps them, and where a batch stands at a moment.

The course of a batch is computed from its record and the time: nothing waits for it.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from asyncbench.simulator.batches.settings import BatchFaultKind as Kind, BatchSettings
from asyncbench.simulator.wire import Json

DAY_S = 86_400.0  # then a batch expires
VALIDATING_S = 63.0  # as recorded of a batch of two requests
FINALIZING_S = 1.0
CANCELLING_S = 600.0
LATE_SHARE = 0.01  # of the requests: they were on their way when a batch is cancelled, and are finished
TERMINAL = frozenset({"completed", "failed", "expired", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What the results of a batch say together, once they are written."""

    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    files: Mapping[str, str] = field(default_factory=dict)  # output, error → file id, where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBatch:
    """One batch as it was handed in, and what was done to it since. Times are Unix seconds."""

    id: str
    vendor: str  # openai, anthropic
    workspace: str
    number: int  # which batch of its model it is: 1 is the first
    created_at: float
    endpoint: str
    input_file_id: str
    metadata: Mapping[str, str] | None = None
    model: str  # of its first request
    requests: int
    tokens: int  # of all prompts, estimated
    errors: tuple[Mapping[str, object], ...] | None = None  # of validation, as OpenAI tells; None: it passes
    settings: BatchSettings
    latency_s: float  # from its start to its last answer, by its own clock
    met: Mapping[str, str] = field(default_factory=dict)  # the faults that it meets, with their values
    cancelled_at: float | None = None  # asked to
    outcome: BatchOutcome | None = None  # None: its results are not written
    deleted: bool = False

    def elapsed_s(self, now: float) -> float:
        """Return how old it is by its own clock."""
        return (now - self.created_at) * self.settings.speedup

    def seconds(self, kind: str) -> float:
        """Return the value of a fault that it meets; 0: it does not."""
        return float(self.met.get(kind, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Where a batch stands. States are OpenAI's; seconds are of the batch's own clock since its creation."""

    status: str
    at_s: float  # now
    done: int  # requests run by now
    began_s: Mapping[str, float]  # each state so far → when
    ends_s: float

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def cancelling(self) -> bool:
        return "cancelling" in self.began_s


def course_of(batch: ServedBatch, now: float) -> Course:
    """Return where a batch stands at a moment."""
    elapsed_s, states = batch.elapsed_s(now), _states(batch)
    began_s = {state: began for state, began in states.items() if began <= elapsed_s} or {"validating": 0.0}
    stops = ("expired",) if Kind.CANCEL_COMPLETES in batch.met else ("cancelling", "expired")
    stopped_s = min((states[state] for state in stops if state in states), default=None)
    done = _done(batch, elapsed_s)
    if stopped_s is not None:
        late = int(batch.requests * LATE_SHARE) if "cancelled" in states and _done(batch, stopped_s) else 0
        done = min(done, _done(batch, stopped_s) + late)
    return Course(
        at_s=elapsed_s,
        status=max(began_s, key=lambda state: (began_s[state], [*states].index(state))),
        done=0 if batch.errors is not None else done,
        began_s=began_s,
        ends_s=max(states.values()),
    )


def _states(batch: ServedBatch) -> dict[str, float]:
    """Return all states that a batch will have been in, with when each begins."""
    starts_s = VALIDATING_S + batch.seconds(Kind.STUCK_VALIDATING)
    states = {"validating": 0.0, "failed": starts_s}
    if batch.errors is None:
        done_s = starts_s + batch.seconds(Kind.SLOW_START) + _takes_s(batch)
        ends_s = done_s + FINALIZING_S + batch.seconds(Kind.STUCK_FINALIZING)
        states = {"validating": 0.0, "in_progress": starts_s, "finalizing": done_s, "completed": ends_s}
        if ends_s > DAY_S and Kind.NEVER_EXPIRES not in batch.met:
            states = {state: began for state, began in states.items() if began < DAY_S} | {"expired": DAY_S}
    if batch.cancelled_at is None:
        return states

    # It is cancelled, perhaps too late.
    cancel_s = batch.elapsed_s(batch.cancelled_at)
    before = {state: began for state, began in states.items() if began <= cancel_s} | {"cancelling": cancel_s}
    if Kind.CANCEL_COMPLETES in batch.met or "finalizing" in before:
        last = [*states][-1]
        return before | {last: max(cancel_s, states[last])}
    return before | {"cancelled": cancel_s + (batch.seconds(Kind.CANCEL_SLOW) or CANCELLING_S)}


def _takes_s(batch: ServedBatch) -> float:
    if (share := batch.met.get(Kind.EXPIRES)) is None:
        return batch.latency_s
    starts_s = VALIDATING_S + batch.seconds(Kind.STUCK_VALIDATING) + batch.seconds(Kind.SLOW_START)
    return max(1.0, DAY_S - starts_s) / max(float(share), 1 / (2 * batch.requests))


def _done(batch: ServedBatch, elapsed_s: float) -> int:
    """Return how many requests have been run by then, if nothing stops it."""
    starts_s = VALIDATING_S + batch.seconds(Kind.STUCK_VALIDATING) + batch.seconds(Kind.SLOW_START)
    share = (elapsed_s - starts_s) / _takes_s(batch)
    return int(batch.requests * min(1.0, max(0.0, share)) + 1e-6)


MONTH_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as OpenAI lists it. Times are Unix seconds."""

    id: str
    name: str
    purpose: str
    bytes: int
    created_at: float
    workspace: str
    keep_s: float = MONTH_S  # by its own clock
    speedup: float = 1.0
    deleted_at: float | None = None

    def is_there(self, now: float) -> bool:
        """Tell whether it can be read at a moment."""
        gone = self.deleted_at is not None and self.deleted_at <= now
        return not gone and (now - self.created_at) * self.speedup < self.keep_s


_FILE, _BATCH = TypeAdapter(StoredFile), TypeAdapter(ServedBatch)


class BatchStorage:
    """Files and batches, oldest first. Records are in memory and on disk, contents on disk alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        files = [_FILE.validate_json(path.read_bytes()) for path in folder.glob("file-*.json")]
        batches = [_BATCH.validate_json(path.read_bytes()) for path in folder.glob("*batch_*.json")]
        self.files = {file.id: file for file in sorted(files, key=lambda file: file.created_at)}
        self.batches = {batch.id: batch for batch in sorted(batches, key=lambda batch: batch.created_at)}

    def path(self, name: str) -> Path:
        """Return where the contents of a file are, or what else has this name."""
        return self._folder / name

    def keep_file(self, file: StoredFile) -> StoredFile:
        self.files[file.id] = file
        self._write(file.id, _FILE.dump_json(file))
        return file

    def keep(self, batch: ServedBatch) -> ServedBatch:
        self.batches[batch.id] = batch
        self._write(batch.id, _BATCH.dump_json(batch))
        return batch

    def _write(self, name: str, record: bytes) -> None:
        temporary = self.path(f"{name}.new")
        temporary.write_bytes(record)
        os.replace(temporary, self.path(f"{name}.json"))


def told_error(code: str, message: str, line: int | None = None) -> Json:
    """Write an error of validation; `line`: the wrong one, from 1."""
    return {"code": code, "line": line, "message": f"{message} (simulated)", "param": None}


def new_id(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(12)}"
