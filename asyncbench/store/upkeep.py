"""The state of a folder's files: who writes to it, what waits in its journal, what a dead process left."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from asyncbench.store.lock import writer_of
from asyncbench.store.partitions import part_files
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.segment import segments
from asyncbench.store.staging import TEMPORARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the files of a results folder are like."""

    writer: int | None  # the process that is writing to it, 0: one that does not say; None: nobody is
    parts: int
    part_bytes: int
    segments: int  # of the journal
    journal_bytes: int
    leftovers: tuple[str, ...]  # of a dead process, relative to the folder; the next run clears them away


def read_upkeep(folder: Path) -> Upkeep:
    """Look at the files of a results folder; nothing is changed."""
    writer = writer_of(folder)
    parts = [path for name in SCHEMAS for path in part_files(folder, name)]
    journal = segments(folder / "journal")
    return Upkeep(
        writer=writer,
        parts=len(parts),
        part_bytes=sum(map(_size, parts)),
        segments=len(journal),
        journal_bytes=sum(map(_size, journal)),
        leftovers=_leftovers(folder) if writer is None else (),
    )


def _leftovers(folder: Path) -> tuple[str, ...]:
    """Return what was being written: the files, and a journal whose rows are in no part yet."""
    temporary = (path for path in (folder / TEMPORARY).rglob("*") if path.is_file())
    left = [*sorted(temporary), *segments(folder / "journal")]
    return tuple(str(path.relative_to(folder)) for path in left)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):  # sealed, or compacted, a moment ago
        return path.stat().st_size
    return 0
