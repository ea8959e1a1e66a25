"""The ledger of a results folder's batches: each step is on the disk before it is taken.

    batches/ledger/000001.wal    a segment for each run, in lines that prove themselves as the journal's do
    batches/<key>.jsonl          the requests of a part, as they are sent
    batches/<key>.manifest       which trial each of them is, and what was set aside for it
    batches/<key>.results        what came back
    batches/simulated/           what a simulator of the run's own keeps of its batches, while any is open

A part is what one batch is made of. Its lines tell its way:

    prepared → uploading → uploaded → submitting → submitted → ended → downloading → collected
             → cleaning → cleaned

`uploading`, `submitting`, `downloading`, `cancelling`, `fencing` and `cleaning` are intents: who finds one as
the last line does not know whether the step was taken.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.errors import StoreError
from asyncbench.files import make_folder, storing
from asyncbench.store.segment import Damage, Segment, head_of, name_of, number_of, payloads, segments

SLOW_S: Final = 3600.0  # that this computer's clock may be ahead, where the vendor's is not known
FOLDER: Final = "batches"  # in a results folder
GONE: Final = "gone"  # as the last word of a batch: its results were deleted, and nobody knows what it did
# How the end of such a batch is written down.
GONE_FOR_GOOD: Final[Mapping[str, Any]] = {
    "status": GONE,
    "ended_at": None,
    "files": (),
    "used": None,
    "faults": (),
}


class Step(StrEnum):
    """A line of the ledger: what is about to happen to a part, or did."""

    PREPARED = "prepared"
    UPLOADING = "uploading"
    UPLOADED = "uploaded"
    SUBMITTING = "submitting"
    REFUSED = "refused"  # certainly not created
    SUBMITTED = "submitted"
    SEEN = "seen"  # it goes on, as the vendor told then; not on the disk at once
    ENDED = "ended"
    DOWNLOADING = "downloading"
    COLLECTED = "collected"
    CLEANING = "cleaning"
    CLEANED = "cleaned"
    FENCING = "fencing"  # the upload is deleted, so that a late create of it fails
    FENCED = "fenced"
    NEVER_CREATED = "never_created"
    UNTRACED = "untraced"  # in doubt, and nothing shows whether there is a batch: a person has to decide
    STRUCK = "struck"  # a batch that might have been ours is another's
    TWIN = "twin"  # a second batch of the same part: it is cancelled
    TWIN_ENDED = "twin_ended"
    CANCELLING = "cancelling"
    GIVEN_UP = "given_up"  # in doubt for good: somebody decided to ask again
    ABANDONED = "abandoned"  # in doubt for good: somebody decided not to ask again


CLOSED: Final = frozenset(
    {
        *(Step.COLLECTED, Step.CLEANING, Step.CLEANED, Step.NEVER_CREATED),
        *(Step.GIVEN_UP, Step.ABANDONED),
    }
)  # nothing of the part is in flight any more
_UNSENT: Final = frozenset({Step.PREPARED, Step.UPLOADING, Step.UPLOADED, Step.REFUSED})
NOTHING: Final = frozenset({Step.NEVER_CREATED, Step.GIVEN_UP})  # as far as we know, no batch came of it
_SIDE_NOTES: Final = frozenset(
    {Step.SEEN, Step.STRUCK, Step.TWIN, Step.TWIN_ENDED, Step.CANCELLING, Step.UNTRACED}
)  # a part stays at its step after such a line
# The fields of a line that a part takes over under the same name.
_COPIED_FIELDS: Final[Mapping[Step, tuple[str, ...]]] = {
    Step.UPLOADED: ("file_id",),
    Step.REFUSED: ("why",),
    Step.SEEN: ("status", "counted", "done"),
    Step.SUBMITTED: ("batch_id", "created_at"),
    Step.ENDED: ("status", "ended_at", "files", "used", "faults"),
    Step.COLLECTED: ("unanswered",),
}


@dataclass(slots=True, kw_only=True)
class BatchPart:
    """One part and all that its lines tell. Times are UTC, seconds since 1970."""

    key: str  # 16 hexadecimal digits
    alias: str
    requests: int
    size: int  # bytes
    sha256: str
    tokens: int  # that it takes of the vendor's pool, estimated
    reserved_usd: float | None = None  # of a budget, for all its requests; None: there is none
    account: str = ""  # a hash of the account whose batch it is: no other one can see it
    step: Step = Step.PREPARED
    at: float = 0.0  # of that step
    prepared_at: float = 0.0
    intended_at: float = 0.0  # when it was about to be submitted first, by the vendor's clock
    file_id: str | None = None
    batch_id: str | None = None
    created_at: float | None = None
    kept_s: float | None = None  # its results are, from then on; None: as usual
    ended_at: float | None = None
    status: str = ""  # the vendor's last word on its batch
    seen_at: float = 0.0  # when what the vendor said of it was written down last
    counted: bool = False  # the vendor has counted its requests: it was validated
    done: int | None = None  # requests that were run, as the vendor told last
    files: tuple[str, ...] = ()  # with the results
    faults: tuple[dict[str, Any], ...] = ()  # why all of it was refused. Any: JSON of the vendor
    used: tuple[int, int] | None = None  # input and output tokens, as the vendor sums them up
    struck: set[str] = field(default_factory=set)  # batches that are not this one
    twins: dict[str, bool] = field(default_factory=dict)  # further batches of this part → whether they ended
    paid_twins: int = 0  # those that ended, and may have cost something
    cancelled_at: float | None = None  # when its cancelling was written down
    unanswered: int = 0  # lines that were not answered, once it was collected
    untraced: bool = False  # in doubt, and no later look is planned
    refusals: int = 0  # how often its create was refused
    why: str = ""  # what the vendor said when it refused it last
    restored: bool = False  # an earlier run prepared it
    unread: bool = False  # lines of it may be damaged: it may have been sent at any time since

    @property
    def file_name(self) -> str:
        """The name of its upload."""
        return f"asyncbench-{self.key}.jsonl"

    @property
    def open(self) -> bool:
        """Whether its requests are, or may be, in flight, or are not collected yet."""
        return self.step not in CLOSED

    @property
    def submitted(self) -> bool:
        """Whether its batch is known, and has not ended as far as is known."""
        return self.step is Step.SUBMITTED

    @property
    def unsent(self) -> bool:
        """Whether there is certainly no batch of it, and one was to be."""
        return self.batch_id is None and self.step in _UNSENT and not self.unread

    @property
    def open_twins(self) -> int:
        """The number of its further batches that have not ended."""
        return sum(not ended for ended in self.twins.values())

    @property
    def in_doubt(self) -> bool:
        """Whether a batch of it may exist that is not known."""
        intended = self.step in (Step.SUBMITTING, Step.FENCING, Step.FENCED)
        return self.batch_id is None and (intended or (self.unread and self.open))

    def follow(self, step: Step, at: float, fields: dict[str, Any]) -> None:  # Any: JSON of our own
        """Take in the next line of this part: its step, when that was, and its other fields."""
        if step not in _SIDE_NOTES:
            self.step, self.at = step, at
        for name in _COPIED_FIELDS.get(step, ()):
            setattr(self, name, tuple(fields[name]) if isinstance(fields[name], list) else fields[name])
        match step:
            case Step.PREPARED:
                self.prepared_at = at
            case Step.SUBMITTING:
                self.intended_at, self.account = fields["server_at"], fields["account"] or self.account
            case Step.REFUSED:
                self.refusals, self.batch_id = self.refusals + 1, None
            case Step.SEEN:
                self.seen_at = at
            case Step.SUBMITTED:
                self.status, self.counted, self.done = "", False, None
                self.kept_s = fields.get("kept_s")
            case Step.STRUCK:
                self.struck.add(fields["batch_id"])
            case Step.TWIN | Step.TWIN_ENDED:
                self.twins[fields["batch_id"]] = step is Step.TWIN_ENDED
                self.paid_twins += step is Step.TWIN_ENDED and any(fields["used"] or (1,))
            case Step.CANCELLING:
                self.cancelled_at = at
            case Step.UNTRACED:
                self.untraced = True


class BatchLedger:
    """All parts of a results folder. The folder is held for writing by who writes here."""

    def __init__(self, folder: Path) -> None:
        """Read what earlier runs wrote; nothing is written before the first `note`."""
        self.folder = folder / FOLDER
        self.parts: dict[str, BatchPart] = {}
        self.damaged: list[Damage] = []  # a last line that was cut short is none: its step was not taken
        self.written_at = 0.0  # UTC, of the latest line; 0: there is none
        self.packing = asyncio.Lock()  # held while a part takes its number of requests
        self._lines = self.folder / "ledger"
        self._segment: Segment | None = None
        for segment in segments(self._lines):
            damages = list[Damage]()
            for payload in payloads(segment, damages):
                self._follow(orjson.loads(payload))
            if damaged := [line for line in damages if not _cut_short(line)]:
                self.damaged += damaged
                for batch_part in self.parts.values():
                    batch_part.unread, batch_part.intended_at = (
                        True,
                        batch_part.intended_at or batch_part.prepared_at - SLOW_S,
                    )
        for batch_part in self.parts.values():
            batch_part.restored = True

    def path(self, batch_part: BatchPart, suffix: str) -> Path:
        """Return where a file of a part is."""
        return self.folder / f"{batch_part.key}.{suffix}"

    def parts_of(self, alias: str) -> list[BatchPart]:
        """Return the parts of a model, oldest first."""
        return [batch_part for batch_part in self.parts.values() if batch_part.alias == alias]

    def open_parts_of(self, alias: str) -> list[BatchPart]:
        return [batch_part for batch_part in self.parts_of(alias) if batch_part.open]

    def knows(self, batch_id: str) -> bool:
        """Whether a batch belongs to one of the parts."""
        return any(
            batch_part.batch_id == batch_id or batch_id in batch_part.twins
            for batch_part in self.parts.values()
        )

    async def note(self, batch_part: BatchPart, step: Step, *, at: float, **details: object) -> None:
        """Write a step down; when this returns, it is on the disk."""
        self.write(batch_part, step, at=at, **details)
        await asyncio.to_thread(self.sync)

    def write(self, batch_part: BatchPart, step: Step, *, at: float, **details: object) -> None:
        """Write a step down; it is on the disk after `sync`."""
        if self._segment is None:
            with storing(self._lines):
                make_folder(self._lines)
            number = 1 + max(map(number_of, segments(self._lines)), default=0)
            self._segment = Segment(self._lines / name_of(number))
            self._segment.append(head_of(number))
        if step is Step.PREPARED:
            details |= {name: getattr(batch_part, name) for name in _PREPARED}
        line = {"part": batch_part.key, "step": step, "at": at, **details}
        self._segment.append(orjson.dumps(line))
        self._follow(orjson.loads(orjson.dumps(line)), batch_part)

    def sync(self) -> None:
        if self._segment is not None:
            self._segment.sync()

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()

    @property
    def damage(self) -> str | None:
        """A warning of damaged lines, or None."""
        if not self.damaged:
            return None
        first = self.damaged[0]
        return (
            f"{len(self.damaged):,} lines of the ledger of batches are damaged, the first at "
            f"{first.segment}, line {first.line}. Parts that look unsent may have been sent: asyncbench "
            "looks for their batches first, and sends nothing twice."
        )

    def remove_strays(self) -> None:
        """Remove files that nobody reads: those of unprepared parts, and requests that became no batch.

        Raises:
            StoreError: a part is not known because its lines are damaged; it may have been sent.
        """
        for path in self.folder.glob("*.*"):
            batch_part = self.parts.get(path.name.partition(".")[0])
            if batch_part is None and self.damaged and path.suffix == ".manifest":
                raise StoreError(
                    f"{path}: the ledger's lines of this part are damaged, so it may have been sent. Look "
                    f"into your provider's console for a batch whose custom ids end with {path.stem}. If "
                    f"there is none, move the files {path.stem}.* out of the folder, and run again."
                )
            needless = batch_part is None or (batch_part.step in NOTHING and path.suffix == ".jsonl")
            if path.is_file() and needless:
                path.unlink()

    def _follow(
        self, line: dict[str, Any], batch_part: BatchPart | None = None
    ) -> None:  # Any: JSON of our own
        key, step, at = line.pop("part"), Step(line.pop("step")), line.pop("at")
        self.written_at = max(self.written_at, at)
        if step is Step.PREPARED:
            batch_part = batch_part or BatchPart(key=key, **line)
            self.parts[key] = batch_part
        elif key not in self.parts:
            raise StoreError(
                f"{self._lines}: a line tells of part {key}, but the line that began it is damaged. "
                f"Look for batch_key {key} in your provider's console before you ask again."
            )
        self.parts[key].follow(step, at, line)


def _cut_short(line: Damage) -> bool:
    """Whether a line lacks its end, as the last one does when a process dies."""
    if not line.size:  # it is whole, or gone
        return False
    with line.segment.open("rb") as segment:
        segment.seek(line.offset + line.size - 1)
        return segment.read(1) != b"\n"


_PREPARED: Final = ("alias", "requests", "size", "sha256", "tokens", "reserved_usd")
