"""Verifying a results folder: every byte is read, every row counted, every id looked up."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.store.bucket.fetching import at_hand
from asyncbench.store.checksums import WAYS_OUT, check
from asyncbench.store.holdings import mismatches, parts_on_disk
from asyncbench.store.id_set import Numbers, distinct, fingerprints
from asyncbench.store.manifest import (
    SWEEP_FILE,
    WORKERS,
    folders_of,
    kept_sweep_file,
    lost_files,
    read_manifest,
)
from asyncbench.store.parts import read_checked
from asyncbench.store.reading import FolderReading, read_folder, warn_of_damage
from asyncbench.store.schema import CODED, PARTITIONED_BY, SCHEMAS
from asyncbench.store.segment import QUARANTINE, quarantined
from asyncbench.store.snapshot import Snapshot

_KEYS = {  # what tells the rows of a table apart
    "trials": ("trial_id",),
    "grades": ("trial_id", "grader"),
    "attempts": ("trial_id", "attempt"),
    "lanes": ("lane", "started_at"),
    "skipped": ("trial_id",),
    "steps": ("model", "load", "began_at"),
}
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers over 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFinding:
    """Something in a results folder that is not as it should be."""

    place: str  # relative to the folder
    what: str  # and what to do
    known: bool = False  # it was told and dealt with before: nothing is to be done


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a folder holds, and all that is wrong with it."""

    rows: Mapping[str, int]  # of each table, the journal's included
    parts: int
    unchecked: int  # parts of a version that wrote no checksums
    findings: Sequence[FolderFinding]

    @property
    def sound(self) -> bool:
        return all(finding.known for finding in self.findings)


def verify_folder(folder: Path | str) -> Verified:
    """Read everything that a results folder holds but its problem sets; nothing is changed.

    Raises:
        ConfigError: it is not a results folder, or a later asyncbench wrote something in it.
        StoreError: its manifest or its journal cannot be read at all.
    """
    path = at_hand(folder)
    reading = read_folder(path, whatever_is_wrong=True)
    seen = reading.seen(but=_unsound(reading))
    warn_of_damage(path, seen.damaged)
    folders = folders_of(path)
    findings = [
        *_journal(path, folders, seen),
        *(finding for each in folders for finding in _holdings(path, each)),
    ]
    keys, unchecked = dict[str, pa.Table](), 0
    for name in SCHEMAS:
        parts = {}
        for part in reading.parts(name):
            try:
                unchecked += not check(part)
                parts[part] = _read_all(name, part)
            except (StoreError, pa.ArrowException, OSError) as error:
                what = str(error).removeprefix(f"{part} ")  # the place says which it is
                findings.append(FolderFinding(place=str(part.relative_to(path)), what=what))
        keys[name] = seen.counted(name, parts, _schema(name).names)
        if name in ("trials", "grades", "attempts"):
            numbers = pa.array(fingerprints(keys[name]["trial_id"]))  # a quarter of the memory
            keys[name] = keys[name].set_column(0, "trial_id", numbers)
            pa.default_memory_pool().release_unused()
    lost = {file["path"].partition("/")[0] for each in folders for file in lost_files(read_manifest(each))}
    return Verified(
        rows={name: len(rows) for name, rows in keys.items()},
        parts=sum(len(reading.parts(name)) for name in SCHEMAS),
        unchecked=unchecked,
        findings=(*findings, *_twice_there(keys, folders), *_ids(keys, lost)),
    )


def _unsound(reading: FolderReading) -> set[Path]:
    """Return the damaged parts, where several folders are held against each other first."""
    parts = set[Path]()
    for part in (part for name in SCHEMAS for part in reading.parts(name) if reading.workers):
        try:
            check(part)
        except (StoreError, OSError):
            parts.add(part)
    return parts


def _journal(folder: Path, folders: Sequence[Path], seen: Snapshot) -> Iterator[FolderFinding]:
    for line in seen.damaged:
        place = f"{line.segment.relative_to(folder)}, line {line.line}"
        yield FolderFinding(place=place, what=line.message)
    for each in folders:
        for name, lines in quarantined(each).items():
            what = f"{lines:,} damaged lines of the journal were moved here; their content is lost"
            place = str((each / QUARANTINE / name).relative_to(folder))
            yield FolderFinding(place=place, what=what, known=True)


def _holdings(around: Path, folder: Path) -> Iterator[FolderFinding]:
    """Yield what is wrong with one of the folders, by places in the one `around` it."""
    manifest = read_manifest(folder)
    for key, what in mismatches(folder, manifest, parts_on_disk(folder)):
        yield FolderFinding(place=str((folder / key).relative_to(around)), what=f"{what}. {WAYS_OUT}")
    for file in lost_files(manifest):
        what = "was lost, and you accepted that; the cost of its calls still counts"
        yield FolderFinding(place=str((folder / file["path"]).relative_to(around)), what=what, known=True)
    try:
        kept_sweep_file(folder)
    except StoreError as error:
        yield FolderFinding(place=str((folder / SWEEP_FILE).relative_to(around)), what=str(error))


def _schema(name: str) -> pa.Schema:
    """Return the columns that tell the rows of a table apart, and those of `trials` that count calls."""
    more = ["attempts"] if name == "trials" else []
    return pa.schema([SCHEMAS[name].field(column) for column in (*_KEYS[name], *more)])


def _read_all(name: str, part: Path) -> pa.Table:
    """Read every value of a part, hold its rows against the folder it stands in, and return their keys."""
    partition, schema = PARTITIONED_BY[name], _schema(name)
    values = dict(folder.split("=", 1) for folder in part.parts[-1 - len(partition) : -1])
    kept = []
    for batch in read_checked(name, part, columns=SCHEMAS[name].names, coded=CODED):
        batch.validate(full=True)
        for key in partition:
            if (parts_on_disk := pc.unique(batch[key]).to_pylist()) != [unquote(values[key])]:
                raise StoreError(
                    f"is in the wrong folder: it holds rows of {key} {', '.join(map(str, parts_on_disk))}"
                )
        kept.append(batch.select(schema.names).cast(schema))
    return pa.Table.from_batches(kept, schema)


def _twice_there(keys: Mapping[str, pa.Table], folders: Sequence[Path]) -> Iterator[FolderFinding]:
    """Yield the rows that stand twice; two workers may have run a lane in the same minute."""
    by_workers = len(folders) > 1 or WORKERS in read_manifest(folders[0])
    for name, columns in _KEYS.items():
        if by_workers and name == "lanes":
            continue
        if twice := _twice(keys[name].select(columns)):
            yield FolderFinding(
                place=name, what=f"{twice:,} rows are there more than once (same {' and '.join(columns)})"
            )


def _ids(keys: Mapping[str, pa.Table], lost: Collection[str]) -> Iterator[FolderFinding]:
    """Yield the rows that lack their counterpart in another table.

    Args:
        keys: the keys of all rows that are sound, by table; for trial ids their `fingerprints`.
        lost: tables of which parts are lost, and known to be.
    """
    ids = {name: keys[name]["trial_id"].to_numpy() for name in ("trials", "grades", "attempts")}
    made = keys["trials"]["attempts"].to_numpy()  # calls of each trial; 0: it was taken over
    trials, grades, called = (
        distinct(these) for these in (ids["trials"], ids["grades"], ids["trials"][made > 0])
    )
    order = np.argsort(ids["attempts"], kind="stable")
    attempts, starts = np.unique(ids["attempts"][order], return_index=True)
    for place, what, those, others in (
        ("grades", "trials have no grades", trials, grades),
        ("trials", "trials have grades but no row", grades, trials),
        ("attempts", "trials have no call", called, attempts),
    ):
        if lacking := int((_places(those, others) < 0).sum()):
            missing = f"{lacking:,} {what}, so a part is missing. Restore it from a backup"
            yield FolderFinding(place=place, what=missing, known=place in lost)
    if not len(attempts):
        return
    most = np.maximum.reduceat(keys["attempts"]["attempt"].to_numpy()[order], starts)
    places = _places(ids["trials"], attempts)
    if fewer := int(((places >= 0) & (most[places] < made)).sum()):
        what = f"calls of {fewer:,} trials are missing, so a part is missing. Restore it from a backup"
        yield FolderFinding(place="attempts", what=what, known="attempts" in lost)


def _places(ids: Numbers, among: Numbers) -> Numbers:
    """Return where ids are among others, which are in order; -1: they are not there."""
    if not len(among):
        return np.full(len(ids), -1)
    places: Numbers = np.minimum(np.searchsorted(among, ids), len(among) - 1)
    return np.where(among[places] == ids, places, -1)


def _twice(rows: pa.Table) -> int:
    """Return how many rows stand there more than once."""
    numbers = np.zeros(len(rows), np.uint64)  # hardly ever the same for two that differ
    for column in rows.columns:
        places = (
            column if pa.types.is_integer(column.type) else pc.index_in(column, value_set=column.unique())
        )
        numbers = numbers * _ODD + places.to_numpy().astype(np.uint64)
    numbers.sort()
    return len(distinct(numbers[1:][numbers[1:] == numbers[:-1]]))
