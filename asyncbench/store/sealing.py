"""The six tables on disk: immutable Parquet parts, made from complete segments of the journal.

    trials/suite=nupa/model=gpt-5-mini/part-000001.parquet
    attempts/model=gpt-5-mini/part-000001.parquet

A part is named after its segment, so making it again puts the same rows in the same place. A segment is
removed when all its parts stand: whatever stops that half-way, doing it again completes it. Compaction and
regrading give parts of several segments new names (see `generation`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import AsyncbenchError, StoreError
from asyncbench.files import discard, storing, sync_to_disk
from asyncbench.records import Ended
from asyncbench.store.generation import sealed_up_to
from asyncbench.store.holdings import declared, list_journal, table_path
from asyncbench.store.journal import Journal, MentionedCalls, Unfinished, lost
from asyncbench.store.manifest import JOURNAL, WORKER, read_manifest
from asyncbench.store.parts import TEMPORARY, Part, read, scanned
from asyncbench.store.rows import joined, tables
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

ONCE = ("trials", "grades", "skipped")  # where a trial must not stand twice, whatever became of it later


def seal(segment: Path, folder: Path) -> list[Damage]:
    """Make the parts of a complete segment, then remove it; return the lines that could not be used.

    Raises:
        StoreError: a part could not be written; the segment stays.
    """
    with storing(segment):
        sync_to_disk(segment)  # until its parts stand, it is all there is
    damaged: list[Damage] = []
    try:
        staged = _stage(segment, folder, damaged)
        quarantine(damaged, folder, temporary=folder / TEMPORARY / QUARANTINE)
        changed: list[Part] = []
        for name in ONCE:
            paths = {part.path for part in staged[name]}
            earlier = [path for path in part_files(folder, name) if path not in paths]
            trials = staged["trials"] if name == "skipped" else ()
            changed += superseded(name, staged[name], earlier, folder, trials=trials)
        changed += [part for parts in staged.values() for part in parts]
        with declared(folder, {part.key: part.entry for part in changed}, sealed=segment):
            for part in changed:
                part.publish()
        with storing(segment):
            segment.unlink()
            sync_to_disk(segment.parent)
    except StoreError:
        for name in SCHEMAS:
            discard(folder / TEMPORARY / name)  # half a part must not take the room that the journal needs
        raise
    finally:
        # To the system: what a seal took would stay with the thread that it was done in, seal after seal.
        pa.default_memory_pool().release_unused()
    return damaged


def part_files(folder: Path, name: str) -> list[Path]:
    """Return the parts of a table: partition by partition, in each what was sealed first."""
    return sorted_parts(table_path(folder, name).rglob("*.parquet"))


def all_parts(folder: Path) -> list[Path]:
    """Return the parts of all tables."""
    return [path for name in SCHEMAS for path in part_files(folder, name)]


def sorted_parts(parts: Iterable[Path]) -> list[Path]:
    """Return parts partition by partition, in each what was sealed first."""
    return sorted(parts, key=lambda path: (path.parent, sealed_up_to(path), path.name))


def part_name(segment: Path) -> str:
    return f"part-{segment.stem}.parquet"


def missing_calls(calls: Collection[tuple[str, int]], folder: Path) -> set[tuple[str, int]]:
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


def _stage(segment: Path, folder: Path, damaged: list[Damage]) -> Mapping[str, list[Part]]:
    """Write all rows of a segment to finished temporary parts, a batch in memory at a time."""
    parts: dict[str, dict[Path, Part]] = {name: {} for name in SCHEMAS}
    for batch in batches(payloads(segment, damaged)):
        for name, table in tables(batch, place=segment).items():
            for partition, rows in partition_rows(name, table):
                if partition not in parts[name]:
                    parts[name][partition] = Part(folder, partition / part_name(segment))
                parts[name][partition].add(rows)
    staged = {name: list(by_partition.values()) for name, by_partition in parts.items()}
    for part in chain.from_iterable(staged.values()):
        part.finish()
    return staged


def partition_rows(name: str, table: pa.Table) -> Iterator[tuple[Path, pa.Table]]:
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
    if len(table) == 0:
        return
    if all(len(pc.unique(table[key])) == 1 for key in keys):  # as of a sweep with one model
        yield {key: str(table[key][0]) for key in keys}, table
        return
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
    table: str, parts: Sequence[Part], earlier: Sequence[Path], folder: Path, *, trials: Sequence[Part] = ()
) -> list[Part]:
    """Move rows out of new, finished parts into new states of those earlier parts that hold their trials.

    So whoever reads the parts finds one answer to a trial or the other: never both, never neither. A trial
    whose model is called by another alias now cannot stay in its folder: it leaves its earlier part.

    Args:
        table: its name.
        parts: its new parts.
        earlier: its parts that stand.
        folder: the results folder.
        trials: new parts of `trials`; in `skipped`, what was asked has no row any more.

    Returns:
        Finished parts, to be published before the new ones.
    """
    if not (parts or trials) or not earlier:
        return []
    changed, gone = [], joined(part.read(["trial_id"])["trial_id"] for part in trials)
    answered = joined(part.read(["trial_id"])["trial_id"] for part in [*parts, *trials]).unique()
    for path in earlier:
        # Little by little: read at once, or with a filter, they take more memory than all else of a seal.
        columns = (batch["trial_id"] for batch in scanned(table, [path], columns=["trial_id"]))
        trial_ids = pa.chunked_array(
            [ids.filter(pc.is_in(ids, value_set=answered)) for ids in columns], pa.string()
        ).combine_chunks()
        if not len(trial_ids):
            continue
        part = Part(folder, path.relative_to(folder))
        part.add(read(table, [path], filters=~pc.field("trial_id").isin(trial_ids)))
        for new in parts:
            if new.path.parent == path.parent:
                part.add(new.take(trial_ids).filter(~pc.field("trial_id").isin(gone)))
        part.finish()
        changed.append(part)
    return changed


# ── the journal of a folder ──────────────────────────────────────────────────────────────────────


class FolderJournal(Journal):
    """The journal of a results folder, and its way into parts.

    `damaged` are lines that a crash or the disk spoiled; `seals` is how often segments became parts.
    """

    def __init__(self, folder: Path, exits: ExitStack) -> None:
        """Begin a segment with what earlier ones left unfinished, then seal those: harmless to repeat.

        Args:
            folder: the results folder, whose lock is held.
            exits: closes the journal.
        """
        self.folder, self.seals = folder, 0
        self.damaged: list[Damage] = []
        unfinished = Unfinished()
        mentioned = MentionedCalls(alone=WORKER not in read_manifest(folder))
        for segment in segments(folder / JOURNAL):
            for payload in payloads(segment, []):
                line = orjson.loads(payload)
                unfinished.follow(line)
                mentioned.follow(line)
        super().__init__(folder / JOURNAL, number=next_number(folder), unfinished=unfinished)
        exits.callback(self.close)
        unrecorded = mentioned.unrecorded()
        lacking = missing_calls(unrecorded.keys() - unfinished.sent.keys(), folder)
        for attempt in [
            *map(lost, unfinished.sent.values()),
            *(unrecorded[call] for call in sorted(lacking)),
        ]:
            self.append(Ended(attempt=attempt, reply=None))
        self.seal()

    def sync(self) -> None:
        """Wait until all that was written is on the disk; raises StoreError."""
        if (segment := self.segment).dirty:
            segment.sync()

    def seal(self) -> None:
        """Make every segment but the present one into parts."""
        current = self.segment
        current.sync()  # what was carried into it must outlive where it came from
        for segment in segments(self.folder / JOURNAL):
            if segment != current.path:
                self.damaged += seal(segment, self.folder)
        list_journal(self.folder)
        self.seals += 1

    def close(self) -> None:
        """Stop writing; a segment of no event leaves the list before it goes, or it would be missed."""
        if self.empty:
            try:
                list_journal(self.folder, but=self.segment.path)
            except AsyncbenchError:  # or it is no results folder any more
                self.segment.close()
                return
        super().close()
