"""Reading a results folder as it is at this moment, together with the folders of its workers.

Reads only: works while a run is writing, and after one was killed. A row stands in the journal or in a
part or, while a segment is being sealed, in both; here it is read once.
"""

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import AsyncbenchError, DamageWarning, StoreError
from asyncbench.files import quoted
from asyncbench.store.holdings import TakenOver, mismatches, parts_on_disk, refusal, taken_over
from asyncbench.store.journal import Unfinished
from asyncbench.store.manifest import HOLDS, JOINED, Manifest, read_manifest, worker_folders
from asyncbench.store.parts import coded_schema, columns_read
from asyncbench.store.rows import tables
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import part_name, sorted_parts
from asyncbench.store.segment import Damage, batches, payloads, segments
from asyncbench.store.snapshot import (
    BATCH_ROWS,
    READ_TRIES,
    Columns,
    Filters,
    Snapshot,
    chosen_columns,
    expression,
)
from asyncbench.store.united import UnitedSnapshot, unite_workers

PAUSE_S = 0.05  # between two looks: as long as two folders may take to be exchanged


def take_snapshot(folder: Path, *, whatever_is_wrong: bool = False) -> Snapshot:
    """Return the present content of a results folder; looks again while it is changing.

    Args:
        folder: a results folder.
        whatever_is_wrong: also when parts are missing, or others than were written.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its manifest or its journal cannot be read, or its parts are not those that were written.
    """
    seen = read_folder(folder, whatever_is_wrong=whatever_is_wrong).seen()
    warn_of_damage(folder, seen.damaged)
    return seen


class FolderReading(NamedTuple):
    """A results folder and those of its workers, each by itself."""

    main: Snapshot
    workers: Mapping[str, Snapshot] = {}  # by name
    taken: TakenOver = TakenOver()

    def parts(self, name: str) -> list[Path]:
        """Return the parts of a table."""
        return [path for seen in (self.main, *self.workers.values()) for path in seen.files[name]]

    def only(self, workers: Collection[str]) -> "FolderReading":
        """Return it with only some of the workers' folders."""
        return self._replace(workers={name: self.workers[name] for name in workers})

    def united(self) -> UnitedSnapshot:
        """Return all of it as one folder; raises StoreError where a part cannot be read."""
        return unite_workers(self.main, self.workers, self.taken)

    def seen(self, but: Collection[Path] = ()) -> Snapshot:
        """Return all of it as one folder, without some parts; raises StoreError where one cannot be read."""
        snapshots = [self.main, *self.workers.values()]
        if but:
            for name in SCHEMAS:
                snapshots = [seen.select_parts(name, lambda path: path not in but) for seen in snapshots]
        main, *workers = snapshots
        if not workers:
            return main
        return unite_workers(main, dict(zip(self.workers, workers, strict=True)), self.taken)


def read_folder(folder: Path, *, whatever_is_wrong: bool = False) -> FolderReading:
    """Return the result of `take_snapshot` by folder; looks again when some of them were joined."""
    if not worker_folders(folder):
        return FolderReading(_read_alone(folder, whatever_is_wrong)[0])
    for tries_left in reversed(range(READ_TRIES)):
        before = read_manifest(folder)
        try:
            workers = {path.name: _read_alone(path, whatever_is_wrong)[0] for path in worker_folders(folder)}
            main, taken = _read_alone(folder, whatever_is_wrong)
        except (AsyncbenchError, FileNotFoundError):
            if not tries_left or _joins(before) == _joins(read_manifest(folder)):
                raise
        else:
            if not tries_left or _joins(before) == _joins(read_manifest(folder)):
                return FolderReading(main, workers, taken)
        time.sleep(PAUSE_S)
    raise AssertionError


def _joins(manifest: Manifest) -> tuple[object, ...]:
    holds = manifest[HOLDS]
    coming = holds.get("next", {})
    return holds.get("joining"), holds.get(JOINED), coming if coming.get("joins") else None


def _read_alone(folder: Path, whatever_is_wrong: bool) -> tuple[Snapshot, TakenOver]:
    """Return the content of a folder without its workers', and the content taken over from theirs."""
    for tries_left in reversed(range(READ_TRIES)):
        before = read_manifest(folder)

        # The journal first: what is sealed meanwhile is found among the parts.
        covered, damaged, unfinished = set[str](), list[Damage](), Unfinished()
        journalled = [tables([], place=folder)]
        for batch in batches(_journal_lines(folder / "journal", covered, damaged)):
            for line in map(orjson.loads, batch):
                unfinished.follow(line)
            journalled.append(tables(batch, place=folder / "journal"))
        on_disk = parts_on_disk(folder)
        seen = Snapshot(
            files={
                name: sorted_parts(
                    path
                    for key, path in on_disk.items()
                    if key.startswith(f"{name}/") and path.name not in covered
                )
                for name in SCHEMAS
            },
            journalled={name: pa.concat_tables(rows[name] for rows in journalled) for name in SCHEMAS},
            unfinished=unfinished,
            damaged=damaged,
        )

        # All this is of one state only if the manifest is the same now.
        wrong = [] if whatever_is_wrong else mismatches(folder, before, on_disk)
        after = read_manifest(folder)
        if not wrong and (_same(before, after) or not tries_left):
            return seen, taken_over(before.get(HOLDS, {}), on_disk)
        if wrong and (not tries_left or (_same(before, after) and "next" not in before[HOLDS])):
            raise refusal(folder, wrong)
        time.sleep(PAUSE_S)
    raise AssertionError


def warn_of_damage(folder: Path, damaged: Sequence[Damage]) -> None:
    """Warn whoever reads, or opens, a folder whose journal has damaged lines."""
    if damaged:
        what = f"{folder}: lines of its journal stand in another order than they were written"
        if lines := sum(line.missing or bool(line.size) for line in damaged):
            what = f"{folder}: {lines:,} damaged lines of its journal are left out"
        warnings.warn(f"{what}. `asyncbench status {quoted(folder)} --verify` names them.", DamageWarning, 4)


def _same(before: Manifest, after: Manifest) -> bool:
    return bool(before.get(HOLDS) == after.get(HOLDS))


def _journal_lines(journal: Path, covered: set[str], damaged: list[Damage]) -> Iterator[bytes]:
    """Yield the sound lines of all segments; note which parts they cover, and the damaged lines."""
    for segment in segments(journal):
        try:
            yield from payloads(segment, damaged)
            covered.add(part_name(segment))
        except FileNotFoundError:  # sealed a moment ago
            continue
        except OSError as error:
            raise StoreError(f"{segment} cannot be read: {error}. Restore it from a backup.") from error


# ── a few trials ─────────────────────────────────────────────────────────────────────────────────


AT_ONCE = 2  # parts: each holds a row group with its replies
OF_TRIALS = ("trials", "grades")  # the tables that are read a few trials at a time

Places = Mapping[Path, Sequence[int]]  # rows of a table's parts, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class FewTrials(Snapshot):
    """A snapshot whose trials and grades are those of a few trials."""

    ids: "pa.Array[pa.StringScalar]"
    places: Mapping[str, Places] = field(default_factory=dict)  # of the tables whose rows are known

    def batches(
        self,
        name: str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        rows: int = BATCH_ROWS,
        coded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as `Snapshot.batches` does, those of the few trials."""
        if name not in OF_TRIALS:
            return Snapshot.batches(self, name, columns, filters, rows=rows, coded=coded)
        wanted = pc.field("trial_id").isin(self.ids)
        if filters is not None:
            wanted &= expression(name, filters, SCHEMAS[name])
        if name not in self.places:
            return Snapshot.batches(self, name, columns, wanted, rows=rows, coded=coded)
        return self._read_places(name, chosen_columns(name, columns, SCHEMAS[name]), wanted, coded)

    def _read_places(
        self, table: str, columns: Sequence[str], wanted: pc.Expression, coded: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        read = columns_read(table, columns, wanted)
        fresh = self.journalled[table].select(read)

        def rows_at(part: Path) -> pa.Table:
            return self.read_part(table, part, read, coded=coded, places=self.places[table][part])

        with ThreadPoolExecutor(AT_ONCE) as threads:  # an answer of each of many models: as many parts
            pieces = [
                fresh.cast(coded_schema(fresh.schema, coded)),
                *threads.map(rows_at, self.places[table]),
            ]
        yield from pa.concat_tables(pieces).filter(wanted).select(columns).to_batches()


def narrowed(seen: Snapshot, ids: Sequence[str], trials: Places, grades: Places | None = None) -> Snapshot:
    """Return a snapshot of these trials alone.

    Args:
        seen: the folder.
        ids: of the trials; those that no part holds stand in the journal.
        trials: where their rows of `trials` stand.
        grades: where those of `grades` do, and maybe others; None: they are looked for.
    """
    if isinstance(seen, UnitedSnapshot):
        few = (
            narrowed(source, ids, _places_in(source, "trials", trials), _places_in(source, "grades", grades))
            for source in seen.sources
        )
        return replace(seen, sources=tuple(few))
    files = {**seen.files, "trials": tuple(trials), "grades": sibling_parts(seen, "grades", trials)}
    return FewTrials(
        files=files,
        journalled=seen.journalled,
        unfinished=seen.unfinished,
        damaged=seen.damaged,
        ids=pa.array(ids, pa.string()),
        places={"trials": trials} | ({} if grades is None else {"grades": grades}),
    )


def _places_in(seen: Snapshot, table: str, places: Places | None) -> Any:  # Any: as `places` is
    """Return those of some places that are in parts of one folder."""
    return places and {part: places[part] for part in seen.files[table] if part in places}


def sibling_parts(seen: Snapshot, table: str, parts: Collection[Path]) -> list[Path]:
    """Return the parts of a table in the same partitions as some parts of `trials`."""
    partitions = {_partition(part) for part in parts}
    return [part for part in seen.files[table] if _partition(part) in partitions]


def _partition(part: Path) -> tuple[str, str]:
    """Return the folders of suite and model that a part stands in."""
    return part.parent.parent.name, part.parent.name
