"""The six tables on disk: immutable Parquet parts, made from complete segments of the journal.

    trials/suite=nupa/model=gpt-5-mini/part-000001.parquet
    attempts/model=gpt-5-mini/part-000001.parquet

A part is named after its segment, so making it again puts the same rows in the same place. A segment is
removed when all its parts stand: whatever stops that half-way, doing it again completes it. Compaction and
regrading give parts of several segments new names (see `generation`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.files import discard, storing, sync_to_disk
from asyncbench.store.generation import sealed_up_to
from asyncbench.store.holdings import declared, standing
from asyncbench.store.journal import Journal
from asyncbench.store.parts import TEMPORARY, Part, read, scanned
from asyncbench.store.rows import Row
from asyncbench.store.schema import PARTITIONED_BY, SCHEMAS
from asyncbench.store.segment import (
    QUARANTINE,
    Damage,
    batches,
    number_of,
    payloads,
    quarantine,
    quarantined,
    segments,
)
from asyncbench.store.tables import Tables, joined, tables, tables_of

LINES = 1000  # made into rows at once: no other thread runs for some milliseconds
ONCE = ("trials", "grades", "skipped")  # where a trial must not stand twice, whatever became of it later


class PartsInMaking:
    """The parts of a segment: written to temporary files, a row group at a time."""

    def __init__(self, segment: Path, folder: Path) -> None:
        self.segment, self._folder = segment, folder
        self.waiting: list[Row] = []  # lines of the segment, as they were before they were JSON
        self.taken = 0  # of them
        self._parts: Mapping[str, dict[Path, Part]] = {name: {} for name in SCHEMAS}

    def take(self, least: int) -> None:
        """Take in lines that wait, while there are so many, whoever adds to them meanwhile.

        Raises:
            Exception: whatever Arrow says of an odd value; also StoreError.
        """
        while len(self.waiting) >= least:
            lines = self.waiting[:LINES]
            del self.waiting[: len(lines)]
            self.add(tables_of(lines))
            self.taken += len(lines)

    def add(self, found: Tables) -> None:
        """Take in rows of all tables."""
        for name, table in found.items():
            for place, rows in by_partition(name, table):
                parts = self._parts[name]
                if place not in parts:
                    parts[place] = Part(self._folder, place / part_name(self.segment))
                parts[place].add(rows)

    def finished(self) -> Mapping[str, list[Part]]:
        """Return the parts of each table, finished."""
        for part in (part for parts in self._parts.values() for part in parts.values()):
            part.finish()
        return {name: list(parts.values()) for name, parts in self._parts.items()}


class PartsAlong:
    """Makes the parts of a journal's segment while its lines come, so that sealing need not read it.

    If anything is odd about a line, or the disk refuses a part, the segment is read, as after a crash.
    """

    def __init__(self, journal: Journal, folder: Path) -> None:
        self._journal, self._folder = journal, folder
        self._making: PartsInMaking | None = None  # of the present segment
        self._complete: PartsInMaking | None = None  # of the one before

    def begin(self) -> None:
        """Begin with the present segment, unless it has rows already."""
        if not self._journal.rows:
            self._making = PartsInMaking(self._journal.segment.path, self._folder)
            self._journal.lines_into = self._making.waiting

    @property
    def due(self) -> bool:
        """Whether enough lines wait for `take`."""
        making = self._making
        return making is not None and len(making.waiting) >= LINES

    def take(self) -> None:
        """Make rows of lines that wait; another thread may write to the journal meanwhile."""
        if self._making is not None:
            self._took(self._making, least=LINES)

    def rotate(self) -> None:
        """Begin the journal's next segment."""
        making, rows, segment = self._making, self._journal.rows, self._journal.segment.path
        self._journal.rotate()
        whole = making and making.segment == segment and making.taken + len(making.waiting) == rows
        self._complete = making if whole else None
        self.begin()

    def made_of(self, segment: Path) -> PartsInMaking | None:
        """Return the parts of a complete segment with all its rows; None: it has to be read."""
        made = self._complete
        return made if made and made.segment == segment and self._took(made, least=1) else None

    def _took(self, parts: PartsInMaking, *, least: int) -> bool:
        try:
            parts.take(least)
        except Exception:  # whatever it is: reading the segment does without, or tells
            self._making = self._complete = self._journal.lines_into = None
            _discard_parts(self._folder)
            return False
        return True


def seal(segment: Path, folder: Path) -> list[Damage]:
    """Make the parts of a complete segment, then remove it; return the lines that could not be used.

    Raises:
        StoreError: a part could not be written; the segment stays.
    """
    return _seal(segment, folder, None)


def seal_made(made: PartsInMaking, folder: Path) -> None:
    """Do the same with parts that have all rows of their segment, which is not read.

    Raises:
        StoreError: likewise.
    """
    _seal(made.segment, folder, made)


def _seal(segment: Path, folder: Path, made: PartsInMaking | None) -> list[Damage]:
    with storing(segment):
        sync_to_disk(segment)  # until its parts stand, it is all there is
    damaged: list[Damage] = []
    try:
        staged = (made or _read(segment, folder, damaged)).finished()
        quarantine(damaged, folder, temporary=folder / TEMPORARY / QUARANTINE)
        changed: list[Part] = []
        for name in ONCE:
            own = {part.path for part in staged[name]}
            earlier = [path for path in part_files(folder, name) if path not in own]
            asked = staged["trials"] if name == "skipped" else ()
            changed += superseded(name, staged[name], earlier, folder, asked=asked)
        changed += [part for parts in staged.values() for part in parts]
        with declared(folder, {part.key: part.entry for part in changed}, sealed=segment):
            for part in changed:
                part.publish()
        with storing(segment):
            segment.unlink()
            sync_to_disk(segment.parent)
    except StoreError:
        _discard_parts(folder)
        raise
    finally:
        # To the system: what a seal took would stay with the thread that it was done in, seal after seal.
        pa.default_memory_pool().release_unused()
    return damaged


def _discard_parts(folder: Path) -> None:
    """Remove all parts in the making: half a part must not take the room that the journal needs."""
    for name in SCHEMAS:
        discard(folder / TEMPORARY / name)


def part_files(folder: Path, name: str) -> list[Path]:
    """Return the parts of a table: partition by partition, in each what was sealed first."""
    return in_order(standing(folder, name).rglob("*.parquet"))


def all_parts(folder: Path) -> list[Path]:
    """Return the parts of all tables."""
    return [path for name in SCHEMAS for path in part_files(folder, name)]


def in_order(parts: Iterable[Path]) -> list[Path]:
    return sorted(parts, key=lambda path: (path.parent, sealed_up_to(path), path.name))


def part_name(segment: Path) -> str:
    return f"part-{segment.stem}.parquet"


def without_rows(calls: Collection[tuple[str, int]], folder: Path) -> set[tuple[str, int]]:
    """Return those calls, each a trial and an attempt, of which no part of `attempts` has a row."""
    if not calls:
        return set()
    trials = pa.array({trial_id for trial_id, _ in calls}, pa.string())
    wanted = pc.field("trial_id").isin(trials)
    rows = read("attempts", part_files(folder, "attempts"), columns=["trial_id", "attempt"], filters=wanted)
    return set(calls) - {(row["trial_id"], row["attempt"]) for row in rows.to_pylist()}


def next_number(folder: Path) -> int:
    """Return a number that no segment has, nor any part made of one."""
    aside = (number_of(Path(name)) for name in quarantined(folder))
    taken = [*map(sealed_up_to, all_parts(folder)), *aside, *map(number_of, segments(folder / "journal"))]
    return 1 + max(taken, default=0)


def _read(segment: Path, folder: Path, damaged: list[Damage]) -> PartsInMaking:
    """Return the parts of what the lines of a segment hold, a batch in memory at a time."""
    made = PartsInMaking(segment, folder)
    for batch in batches(payloads(segment, damaged)):
        made.add(tables(batch, place=segment))
    return made


def by_partition(name: str, table: pa.Table) -> Iterator[tuple[Path, pa.Table]]:
    """Yield the rows of each partition and its folder, relative to the results folder."""
    keys = PARTITIONED_BY[name]
    for group, rows in groups_of(table, keys):
        yield Path(name, *(f"{key}={quote(group[key], safe='')}" for key in keys)), rows


def groups_of(table: pa.Table, keys: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """Yield the values of the keys and the rows that have them, which keep their order; groups by their keys.

    Args:
        table: any rows.
        keys: columns of text without NULLs.
    """
    order: list[tuple[str, Literal["ascending", "descending"]]] = [(key, "ascending") for key in keys]
    # Sorted: group_by promises no order, and that of first occurrence only seems to be it.
    groups = table.group_by(list(keys)).aggregate([([], "count_all")]).sort_by(order)
    rows = table.sort_by(order) if len(groups) > 1 else table  # stable
    start = 0
    for group in groups.to_pylist():
        count = group.pop("count_all")
        yield group, rows.slice(start, count)
        start += count


def superseded(
    table: str, parts: Sequence[Part], earlier: Sequence[Path], folder: Path, *, asked: Sequence[Part] = ()
) -> list[Part]:
    """Move rows out of new, finished parts into new states of those earlier parts that hold their trials.

    So whoever reads the parts finds one answer to a trial or the other: never both, never neither. A trial
    whose model is called by another alias now cannot stay in its folder: it leaves its earlier part.

    Args:
        table: its name.
        parts: its new parts.
        earlier: its parts that stand.
        folder: the results folder.
        asked: new parts of `trials`; in `skipped`, what was asked has no row any more.

    Returns:
        Finished parts, to be published before the new ones.
    """
    if not (parts or asked) or not earlier:
        return []
    found, gone = [], joined(part.read(["trial_id"])["trial_id"] for part in asked)
    answered = joined(part.read(["trial_id"])["trial_id"] for part in [*parts, *asked]).unique()
    for path in earlier:
        # Little by little: read at once, or with a filter, they take more memory than all else of a seal.
        there = (batch["trial_id"] for batch in scanned(table, [path], columns=["trial_id"]))
        trial_ids = pa.chunked_array(
            [ids.filter(pc.is_in(ids, value_set=answered)) for ids in there], pa.string()
        ).combine_chunks()
        if not len(trial_ids):
            continue
        part = Part(folder, path.relative_to(folder))
        part.add(read(table, [path], filters=~pc.field("trial_id").isin(trial_ids)))
        for new in parts:
            if new.path.parent == path.parent:
                part.add(new.take(trial_ids).filter(~pc.field("trial_id").isin(gone)))
        part.finish()
        found.append(part)
    return found
