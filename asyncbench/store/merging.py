"""Writing the tables of several results folders as those of a new one; `united` says which row counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.files import write_durably
from asyncbench.store.holdings import list_of
from asyncbench.store.journal import Journal
from asyncbench.store.manifest import HOLDS, JOURNAL, changed_manifest, folders_of, lost_files, read_manifest
from asyncbench.store.parts import TEMPORARY, Part, partition_of
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import by_partition, next_number
from asyncbench.store.segment import QUARANTINE, Damage, lines_of, segments
from asyncbench.store.united import UnitedSnapshot, united

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
        for place in _places(name, seen):
            part = Part(out, place / PART)
            for rows in _rows(name, place, seen):
                part.add(rows)
            part.finish()
            part.publish()
    every = [each for folder in folders for each in folders_of(folder)]
    damaged = _set_aside(every, seen.damaged, out)
    journal = Journal(out / JOURNAL, number=next_number(out), unfinished=seen.unfinished)
    journal.segment.sync()
    journal.close()  # without an answer that no run has graded yet, it goes
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
        trials_twice=sum(map(len, seen.gave_way["trials"])),
        attempts=len(kept.read("attempts", ["trial_id"])),
        attempts_twice=seen.calls.twice,
        damaged=damaged,
    )


def _places(name: str, seen: UnitedSnapshot) -> list[Path]:
    """Return the partitions of a table that any of the folders has."""
    places = {partition_of(name, path) for path in seen.files[name]}
    return sorted(places | {place for place, _ in by_partition(name, seen.journalled[name])})


def _rows(name: str, place: Path, seen: UnitedSnapshot) -> Iterator[pa.Table]:
    """Yield what is kept of one partition, folder by folder."""
    partition = dict(part.split("=", 1) for part in place.parts[1:])
    here = pc.scalar(True)
    for key, value in partition.items():
        here = here & (pc.field(key) == unquote(value))
    steps = set[tuple[object, ...]]()
    for batch in seen.within(name, lambda path: partition_of(name, path) == place).batches(name, None, here):
        rows = pa.Table.from_batches([batch])
        if name == "steps":  # a folder may be a copy
            keys = rows.select(["model", "load", "began_at"])
            own = [tuple(step.values()) for step in keys.to_pylist()]
            rows = rows.filter(pa.array([step not in steps for step in own], pa.bool_()))
            steps.update(own)
        yield rows


def _set_aside(folders: Sequence[Path], damaged: Sequence[Damage], out: Path) -> int:
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
