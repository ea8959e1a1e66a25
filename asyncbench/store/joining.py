"""Joining the folders of workers to the folder of their run, table by table, in place.

Parts whose rows all count as they stand are linked and not copied. At every moment the manifest tells which
tables the folder holds of which workers: a reader takes those of the workers' own folders for the others.
Grades go before trials, which tell whose grades count, and trials before attempts, by which calls of several
workers are counted together. So a join that was killed half-way is finished by the next one as it was begun.
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute

from asyncbench.errors import StoreError
from asyncbench.files import make_folder, storing, sync_to_disk, write_durably
from asyncbench.store.generation import Generation, next_generation
from asyncbench.store.holdings import known_parts, list_of, resolved
from asyncbench.store.journal import Journal
from asyncbench.store.lock import LOCK, MARK
from asyncbench.store.manifest import (
    HOLDS,
    JOINED,
    JOURNAL,
    MANIFEST,
    SWEEP_FILE,
    WORKER,
    WORKERS,
    changed_manifest,
    folders_of,
    is_results_folder,
    joined_workers,
    lost_files,
    read_manifest,
    workers_folder,
)
from asyncbench.store.parts import TEMPORARY, Part, partition_of, scanned
from asyncbench.store.reading import read_folder, take_snapshot
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import FolderJournal, next_number, partition_rows
from asyncbench.store.segment import QUARANTINE, Damage, lines_of, name_of, segments
from asyncbench.store.united import UnitedSnapshot, united

# ── Writing the tables of several results folders as those of a new one; `united` says which row counts


pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

PART = "part-000001.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFolders:
    """What became of the rows of several folders."""

    trials: int
    trials_twice: int  # rows that gave way to another folder's
    attempts: int
    attempts_twice: int  # calls that stood in several folders
    damaged: int  # lines of journals, and parts of lines, that were set aside


def join_folders(folders: Sequence[Path], out: Path) -> JoinedFolders:
    """Write the tables, the journal and the quarantine of `out`, which is new, from those of the folders.

    No run may be going in any of them; none is changed. In memory are the ids of all trials, the calls of
    those that stand in several folders, and some thousands of rows.

    Raises:
        StoreError: a folder cannot be read, or the disk does not take the new one.
    """
    seen = united([take_snapshot(folder).ended() for folder in folders])
    for name in SCHEMAS:
        partitions = {partition_of(name, path) for path in seen.files[name]}
        partitions |= {partition for partition, _ in partition_rows(name, seen.journalled[name])}
        for partition in sorted(partitions):
            part = Part(out, partition / PART)
            for rows in _joined_rows(name, partition, seen):
                part.add(rows)
            part.finish()
            part.publish()

    # The journal keeps nothing but answers that no run has graded yet.
    every = [each for folder in folders for each in folders_of(folder)]
    damaged = _set_aside_all(every, seen.damaged, out)
    journal = Journal(out / JOURNAL, number=next_number(out), unfinished=seen.unfinished)
    journal.segment.sync()
    journal.close()  # and is removed, where there are none

    # The manifest lists the new parts, and what was lost of the folders before.
    gone = [file for folder in every for file in lost_files(read_manifest(folder))]
    with changed_manifest(out) as manifest:
        manifest[HOLDS] = {
            "parts": list_of(out),
            JOURNAL: [path.name for path in segments(out / JOURNAL)],
            "lost": [file for n, file in enumerate(gone) if file not in gone[:n]],
        }
    kept = take_snapshot(out)
    return JoinedFolders(
        trials=len(kept.read("trials", ["trial_id"])),
        trials_twice=sum(map(len, seen.dropped["trials"])),
        attempts=len(kept.read("attempts", ["trial_id"])),
        attempts_twice=seen.calls.twice,
        damaged=damaged,
    )


def _joined_rows(name: str, partition: Path, seen: UnitedSnapshot) -> Iterator[pa.Table]:
    """Yield the kept rows of one partition of a table, folder by folder."""
    in_partition = pc.scalar(True)
    for folder in partition.parts[1:]:
        key, _, value = folder.partition("=")
        in_partition = in_partition & (pc.field(key) == unquote(value))
    parts = seen.select_parts(name, lambda path: partition_of(name, path) == partition)
    kept = set[str]()
    for batch in parts.batches(name, None, in_partition):
        rows = pa.Table.from_batches([batch])
        if name in _SAME_IN_COPIES:  # one of the folders may be a copy of another
            keys = [str(row) for row in rows.select(_SAME_IN_COPIES[name]).to_pylist()]
            rows = rows.filter(pa.array([key not in kept for key in keys], pa.bool_()))
            kept.update(keys)
        yield rows


# The columns by which a row of a copied folder is known. Two workers may have run a lane in the same minute,
# so the key of `lanes` alone does not tell their rows apart.
_SAME_IN_COPIES: Final = {"steps": ["model", "load", "began_at"], "lanes": SCHEMAS["lanes"].names}


def _set_aside_all(folders: Sequence[Path], damaged: Sequence[Damage], out: Path) -> int:
    """Keep damaged lines, those of earlier segments and of present ones; return how many they are."""
    texts = [file.read_bytes() for folder in folders for file in sorted((folder / QUARANTINE).glob("*.wal"))]
    by_segment: dict[Path, list[Damage]] = {}
    for damage in damaged:
        by_segment.setdefault(damage.segment, []).append(damage)
    texts += map(lines_of, by_segment.values())
    unlike = dict.fromkeys(texts)  # copies of one folder have the same
    for number, lines in enumerate(unlike, 1):
        name = f"{number:06d}.wal"
        write_durably(out / QUARANTINE / name, lines, temporary=out / TEMPORARY / name)
    return sum(lines.count(b"\n") for lines in unlike)


# ── The folders of workers, joined


IN_ORDER = ("grades", "trials", "attempts", "lanes", "skipped", "steps")
_EVERYWHERE = {MANIFEST, SWEEP_FILE, LOCK, MARK}  # files that every results folder has
ROWS = 2048  # of a batch: replies may be long


def join(folder: Path, ended: Sequence[str], journal: FolderJournal) -> None:
    """Take over all that some workers' folders hold; or those of a join that was killed. Then remove them.

    Args:
        folder: that of the run, whose lock is held.
        ended: the names of the workers' folders, which are recovered and sealed.
        journal: that of the run, which holds nothing but answers that are not graded.

    Raises:
        StoreError: a part is damaged, or the disk does not take it; readers see what they saw.
    """
    with changed_manifest(folder) as manifest:
        holds = resolved(folder, manifest[HOLDS])
        joining = holds.setdefault("joining", {"workers": list(ended), "tables": []})
    workers = {name: workers_folder(folder) / name for name in joining["workers"]}
    for path in workers.values():
        if not is_results_folder(path):
            raise StoreError(
                f"{path} is missing, and not all of it was taken over. Restore it from a backup."
            )
    seen = read_folder(folder).only(workers).united()
    if JOURNAL not in joining["tables"]:
        journal.carry(seen.unfinished.replies)
        journal.seal()
        _note(folder, JOURNAL)
    numbers = count(next_number(folder))
    for name in IN_ORDER:
        if name not in joining["tables"]:
            with next_generation(folder, name, seen.sources[0].files[name], joins=True) as new:
                _fill(new, name, seen, [folder, *workers.values()], numbers)
            _note(folder, name)

    # Files beside the tables. The next segment gets a new number: parts took the numbers up to there.
    _set_aside(folder, workers.values(), numbers)
    journal.rotate(next(numbers))
    journal.seal()

    # Say that all is taken over, what was lost before, and on which machines the workers were.
    manifests = [read_manifest(path) for path in workers.values()]
    with changed_manifest(folder) as manifest:
        holds = manifest[HOLDS]
        holds[JOINED] = [*holds.get(JOINED, ()), *holds.pop("joining")["workers"]]
        if lost := [*lost_files(manifest), *(file for each in manifests for file in lost_files(each))]:
            holds["lost"] = lost
        hosts = {each[WORKER]["name"]: each[WORKER]["host"] for each in manifests if WORKER in each}
        manifest.setdefault(WORKERS, {}).update(hosts)
    remove_joined(folder)


def _note(folder: Path, table: str) -> None:
    """Write down that a table is taken over, where nothing had to be exchanged for that."""
    if table not in read_manifest(folder)[HOLDS]["joining"]["tables"]:
        with changed_manifest(folder) as manifest:
            manifest[HOLDS]["joining"]["tables"].append(table)


# ── one table ────────────────────────────────────────────────────────────────────────────────


def _fill(
    new: Generation, name: str, seen: UnitedSnapshot, folders: Sequence[Path], numbers: Iterator[int]
) -> None:
    """Fill the next generation of a table with the rows of all folders; most parts stay as they are."""
    for source, (alone, folder) in enumerate(zip(seen.sources, folders, strict=True)):
        listed = known_parts(folder) if source and alone.files[name] else {}
        for path in alone.files[name]:
            if _has_rows(path, name, seen.changed_ids(name, source)):
                part = (
                    new.further_part(partition_of(name, path), next(numbers))
                    if source
                    else new.part([path], may_be_empty=True)
                )
                for batch in scanned(name, [path], rows=ROWS):
                    part.add(seen.count_rows(name, source, pa.Table.from_batches([batch])))
                part.finish()
            elif entry := listed.get(path.relative_to(folder).as_posix()):
                new.adopt(path, entry, partition_of(name, path), next(numbers))
            else:
                new.keep(path)
    if name == "attempts":
        for partition, rows in partition_rows(name, seen.calls.rows):
            part = new.further_part(partition, next(numbers))
            part.add(rows)


def _has_rows(path: Path, name: str, trial_ids: Any) -> bool:
    """Return whether a part has rows of some trials."""
    if not len(trial_ids):
        return False
    columns = (batch["trial_id"] for batch in scanned(name, [path], columns=["trial_id"]))
    return any(pc.any(pc.is_in(ids, value_set=trial_ids)).as_py() for ids in columns)


# ── files beside the tables ──────────────────────────────────────────────────────────────────────


def _set_aside(folder: Path, workers: Collection[Path], numbers: Iterator[int]) -> None:
    """Keep damaged lines and parts, and files that are no results; doing it again changes nothing."""
    aside = folder / QUARANTINE
    kept = {file.read_bytes() for file in aside.glob("*.wal")}
    for worker in workers:
        for path in sorted((worker / QUARANTINE).glob("*")):
            if path.is_dir():
                with storing(aside):
                    make_folder(aside / worker.name)
                    path.rename(aside / worker.name / path.name)
            elif (lines := path.read_bytes()) not in kept:
                name = name_of(next(numbers))
                write_durably(aside / name, lines, temporary=folder / TEMPORARY / name)
        for path in sorted(
            path for path in worker.iterdir() if path.is_file() and path.name not in _EVERYWHERE
        ):
            with storing(folder):
                path.rename(folder / f"{worker.name}-{path.name}")  # such as faults.txt


def remove_joined(folder: Path) -> None:
    """Remove the folders of workers whose rows that of their run holds; its lock must be held."""
    top = workers_folder(folder)
    if top.exists():
        with storing(top):
            for name in joined_workers(folder):
                if (top / name).exists():
                    shutil.rmtree(top / name)
            sync_to_disk(top)
            with suppress(OSError):  # others are there still
                top.rmdir()
