"""Verifying a results folder: every byte is read, every row counted, every id looked up."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.checksums import WAYS_OUT, check
from asyncbench.store.holdings import mismatches, parts_on_disk
from asyncbench.store.id_set import Numbers, distinct, fingerprints, firsts
from asyncbench.store.manifest import (
    SWEEP_FILE,
    WORKERS,
    folders_of,
    kept_sweep_file,
    lost_files,
    read_manifest,
)
from asyncbench.store.parts import read_checked
from asyncbench.store.reading import read_folder, warn_of_damage
from asyncbench.store.schema import CODED, PARTITIONED_BY, SCHEMAS
from asyncbench.store.segment import QUARANTINE, quarantined

_KEYS = {  # what tells the rows of a table apart
    "trials": ("trial_id",),
    "grades": ("trial_id", "grader"),
    "attempts": ("trial_id", "attempt"),
    "lanes": ("lane", "started_at"),
    "skipped": ("trial_id",),
    "steps": ("model", "load", "began_at"),
}
_LOOKED_UP: Final = {
    "trials": ("trial_id", "attempts"),
    "grades": ("trial_id",),
    "attempts": ("trial_id", "attempt"),
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
    path = local_folder(folder)
    reading, folders = read_folder(path, whatever_is_wrong=True), folders_of(path)
    parts, every = _VerifiedParts(path), [part for name in SCHEMAS for part in reading.parts(name)]
    seen = reading.seen(but={part for part in every if not parts.is_sound(part)})
    warn_of_damage(path, seen.damaged)
    keys = {
        name: _count_keys(name, seen.counted(name, partial(parts.keys, name), _schema(name).names))
        for name in SCHEMAS
    }

    # Damaged lines of the journal, here and in quarantine.
    findings = list[FolderFinding]()
    for line in seen.damaged:
        where = f"{line.segment.relative_to(path)}, line {line.line}"
        findings.append(FolderFinding(place=where, what=line.message))
    for each in folders:
        for name, lines in quarantined(each).items():
            what = f"{lines:,} damaged lines of the journal were moved here; their content is lost"
            where = str((each / QUARANTINE / name).relative_to(path))
            findings.append(FolderFinding(place=where, what=what, known=True))

    # Rows that stand twice; but two workers may have run a lane in the same minute.
    repeated = list[FolderFinding]()
    by_workers = len(folders) > 1 or WORKERS in read_manifest(folders[0])
    for name, columns in _KEYS.items():
        if (twice := keys[name].twice) and not (by_workers and name == "lanes"):
            what = f"{twice:,} rows are there more than once (same {' and '.join(columns)})"
            repeated.append(FolderFinding(place=name, what=what))

    lost = {file["path"].partition("/")[0] for each in folders for file in lost_files(read_manifest(each))}
    return Verified(
        rows={name: keyed.rows for name, keyed in keys.items()},
        parts=len(every),
        unchecked=parts.unchecked,
        findings=(
            *findings,
            *(finding for each in folders for finding in _list_findings(path, each)),
            *parts.findings,
            *repeated,
            *_missing_rows(keys, lost),
        ),
    )


# ── parts


class _VerifiedParts:
    """The parts of a folder: those that are damaged are found, and rows of the others read."""

    def __init__(self, folder: Path) -> None:
        self.findings = list[FolderFinding]()
        self.unchecked = 0  # that have no checksums
        self._folder = folder
        self._checked = dict[Path, bool]()

    def is_sound(self, part: Path) -> bool:
        """Read every byte of a part; return whether it is as it was written, as far as can be known."""
        try:
            self._checked[part] = check(part)
        except (StoreError, OSError) as error:
            self._add(part, error)
            return False
        self.unchecked += not self._checked[part]
        return True

    def keys(self, name: str, part: Path) -> Iterator[pa.Table]:
        """Yield the keys of a sound part's rows, once they are held against the folder that it stands in."""
        try:
            yield _keys_in(name, part, checked=self._checked[part])
        except (StoreError, pa.ArrowException, OSError) as error:
            self._add(part, error)

    def _add(self, part: Path, error: Exception) -> None:
        what = str(error).removeprefix(f"{part} ")  # the place says which it is
        self.findings.append(FolderFinding(place=str(part.relative_to(self._folder)), what=what))


def _schema(name: str) -> pa.Schema:
    """Return the columns that tell the rows of a table apart, and those of `trials` that count calls."""
    more = ["attempts"] if name == "trials" else []
    return pa.schema([SCHEMAS[name].field(column) for column in (*_KEYS[name], *more)])


def _keys_in(name: str, part: Path, *, checked: bool) -> pa.Table:
    """Return the keys of a part's rows.

    Where checksums were checked, other values are those that were written. Without, each has to be readable.
    """
    partition, schema = PARTITIONED_BY[name], _schema(name)
    values = dict(folder.split("=", 1) for folder in part.parts[-1 - len(partition) : -1])
    columns = [*dict.fromkeys([*schema.names, *partition])] if checked else SCHEMAS[name].names
    kept = []
    for batch in read_checked(name, part, columns=columns, coded=CODED):
        batch.validate(full=True)
        for key in partition:
            if (parts_on_disk := pc.unique(batch[key]).to_pylist()) != [unquote(values[key])]:
                raise StoreError(
                    f"is in the wrong folder: it holds rows of {key} {', '.join(map(str, parts_on_disk))}"
                )
        kept.append(batch.select(schema.names).cast(schema))
    return pa.Table.from_batches(kept, schema)


def _list_findings(run_folder: Path, folder: Path) -> Iterator[FolderFinding]:
    """Yield where the files of one of the folders are not as its manifest lists them.

    Args:
        run_folder: the folder of the run; findings name paths in there.
        folder: the same, or that of one of its workers.
    """
    manifest = read_manifest(folder)
    for key, what in mismatches(folder, manifest, parts_on_disk(folder)):
        yield FolderFinding(place=str((folder / key).relative_to(run_folder)), what=f"{what}. {WAYS_OUT}")
    for file in lost_files(manifest):
        what = "was lost, and you accepted that; the cost of its calls still counts"
        yield FolderFinding(place=str((folder / file["path"]).relative_to(run_folder)), what=what, known=True)
    try:
        kept_sweep_file(folder)
    except StoreError as error:
        yield FolderFinding(place=str((folder / SWEEP_FILE).relative_to(run_folder)), what=str(error))


# ── rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyedRows:
    """The rows of a table, and what other tables are held against."""

    rows: int
    twice: int  # keys that stand there more than once
    columns: Mapping[str, Numbers]  # in the order of ids, which as numbers take a quarter of the memory


def _count_keys(name: str, tables: Iterable[pa.Table]) -> _KeyedRows:
    """Count rows, and the keys that stand there more than once."""
    keys, looked_up = list[Numbers](), defaultdict[str, list[Numbers]](list)
    for rows in tables:
        columns = {
            column: fingerprints(texts) if pa.types.is_string(texts.type) else texts.to_numpy()
            for column, texts in zip(rows.column_names, rows.columns, strict=True)
        }
        # A number for each row: equal keys have equal ones, others hardly ever.
        mixed = np.zeros(len(rows), np.uint64)
        for column in _KEYS[name]:
            mixed = mixed * _ODD + columns[column].astype(np.uint64, copy=False)
        keys.append(mixed)
        if name == "grades":  # several a trial
            columns["trial_id"] = distinct(columns["trial_id"])
        for column in _LOOKED_UP.get(name, ()):
            looked_up[column].append(columns[column])
    pa.default_memory_pool().release_unused()

    ordered = _joined(keys)
    ordered.sort()
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    total, twice = len(ordered), int(firsts(again).sum())
    del ordered, again  # they may take as much memory as the columns that follow

    # In the order of ids: what is looked up in order is found ten times as fast.
    columns = {column: _joined(numbers) for column, numbers in looked_up.items()}
    if columns:
        order = np.argsort(columns["trial_id"])
        columns = {column: numbers[order] for column, numbers in columns.items()}
    return _KeyedRows(rows=total, twice=twice, columns=columns)


def _joined(numbers: list[Numbers]) -> Numbers:
    """Return numbers of several parts as one array, and let the parts go: they may take 240 MB."""
    joined = np.concatenate(numbers)
    numbers.clear()
    return joined


def _missing_rows(keys: Mapping[str, _KeyedRows], lost: Collection[str]) -> Iterator[FolderFinding]:
    """Yield the rows that lack their counterpart in another table.

    Args:
        keys: of all rows that are sound, by table.
        lost: tables of which parts are lost, and known to be.
    """
    closed, calls = keys["trials"].columns, keys["attempts"].columns
    trials, made, attempts = closed["trial_id"], closed["attempts"], calls["trial_id"]
    grades = keys["grades"].columns["trial_id"]
    for table, what, ids, counterparts in (
        ("grades", "trials have no grades", trials, grades),
        ("trials", "trials have grades but no row", grades, trials),
        ("attempts", "trials have no call", trials[made > 0], attempts),  # others were taken over
    ):
        if lacking := int((firsts(ids) & ~_found(ids, counterparts)).sum()):
            missing = f"{lacking:,} {what}, so a part is missing. Restore it from a backup"
            yield FolderFinding(place=table, what=missing, known=table in lost)

    # A trial tells how many calls were made for it: as many as its last call's number.
    starts = np.flatnonzero(firsts(attempts))
    last = np.maximum.reduceat(calls["attempt"], starts) if len(starts) else calls["attempt"]
    called = _found(trials, attempts)
    if fewer := int((last[np.searchsorted(attempts[starts], trials[called])] < made[called]).sum()):
        what = f"calls of {fewer:,} trials are missing, so a part is missing. Restore it from a backup"
        yield FolderFinding(place="attempts", what=what, known="attempts" in lost)


def _found(ids: Numbers, among: Numbers) -> Numbers:
    """Return a mask of the ids that are among others, which are in order."""
    if not len(among):
        return np.zeros(len(ids), bool)
    places = np.searchsorted(among, ids)
    matches: Numbers = among[np.minimum(places, len(among) - 1, out=places)] == ids
    return matches
