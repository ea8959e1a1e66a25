"""A table built anew beside the old one, and put in its place in one step.

    .tmp/next/trials/…     being built; a dead process's is worthless
    .tmp/ready/trials/…    complete, on a file system that cannot exchange two folders

Every part of the new generation has a name that no part ever had before: `part-g000002-000017.parquet` is of
the second generation and holds what was sealed up to segment 17. So whoever listed the old parts and opens
them after the step is told that a file is missing, and never reads half of each.
"""

import ctypes
import errno
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import StoreError
from asyncbench.files import discard, make_folder, storing, sync_folders, sync_to_disk
from asyncbench.store.checksums import check
from asyncbench.store.holdings import READY, Changes, declared, known_parts
from asyncbench.store.parts import TEMPORARY, Part, scanned
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.spending import JsonObject

FULL_ROWS = 1_000_000  # a part of so many rows is left as it is: no night's work is copied again and again
MANY_PARTS = 16  # of one partition, that are not full: from here on it is worth it
_NUMBERED = re.compile(r"part-g([0-9]+)-")
_NEXT, _OLD = (Path(TEMPORARY, name) for name in ("next", "old"))
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV}


class Generation:
    """The next generation of one table: what takes the place of which earlier parts."""

    def __init__(self, folder: Path, table: str, earlier: Sequence[Path]) -> None:
        self.earlier = tuple(earlier)
        numbers = [int(match[1]) for path in earlier if (match := _NUMBERED.match(path.stem))]
        self.number = 1 + max(numbers, default=0)
        self._folder = folder
        self._table = table
        self._parts: list[tuple[Part, frozenset[Path]]] = []  # each with the earlier parts it replaces
        self._kept: dict[str, Path] = {}  # earlier parts that are taken over, by their paths in the list
        self._adopted: dict[str, JsonObject] = {}  # the same of other folders' parts: what their lists say
        self._remaining = set(earlier)

    def part(self, replaced: Sequence[Path], *, may_be_empty: bool = False) -> Part:
        """Return a new part, to be filled, that takes the place of earlier ones of one partition.

        Raises:
            StoreError: one of them has been given already, or they are not of one partition.
        """
        part = Part(self._folder / _NEXT, self._next_name(replaced), may_be_empty=may_be_empty)
        self._parts.append((part, frozenset(replaced)))
        return part

    @property
    def changed(self) -> bool:
        """Whether anything but earlier parts is in it."""
        return bool(self._parts or self._adopted)

    def further_part(self, partition: Path, number: int) -> Part:
        """Return a new part, to be filled, that takes the place of none; `number`: one that no part has."""
        part = Part(self._folder / _NEXT, self._further(partition, number))
        self._parts.append((part, frozenset()))
        return part

    def adopt(self, path: Path, entry: JsonObject, partition: Path, number: int) -> None:
        """Take a part of another folder over as it is; raises StoreError: the disk does not take it."""
        name = self._further(partition, number)
        self._adopted[name.as_posix()] = entry
        self._link(path, name)

    def keep_after_all(self, earlier: Sequence[Path]) -> None:
        """Take earlier parts over as they are, instead of the parts that were filled to take their place."""
        for part, replaced in self._parts:
            if replaced.issubset(earlier):
                part.drop()
                self._remaining |= replaced
        self._parts = [(part, replaced) for part, replaced in self._parts if not replaced.issubset(earlier)]
        for path in earlier:
            self.keep(path)

    def keep(self, path: Path) -> None:
        """Take an earlier part over as it is.

        Raises:
            StoreError: it has been given already, or the disk does not take it.
        """
        name = self._next_name([path])
        self._kept[name.as_posix()] = path
        self._link(path, name)

    def _link(self, path: Path, name: Path) -> None:
        target = self._folder / _NEXT / name
        with storing(target):
            make_folder(target.parent)
            try:
                os.link(path, target)
            except OSError as error:
                if error.errno not in _CANNOT | {errno.EPERM, errno.EMLINK}:
                    raise
                shutil.copyfile(path, target)
            sync_to_disk(target)

    def finish(self) -> None:
        """Bring all of it onto the disk."""
        if self._remaining:
            raise StoreError(f"{min(self._remaining)}: no new part replaces it, so the table stays as it was")
        for part, _ in self._parts:
            part.finish()
            part.publish()
        self._parts = [(part, replaced) for part, replaced in self._parts if replaced or part.rows]

    def changes(self) -> Changes:
        """Return the changes to the list of the folder's parts."""
        listed = known_parts(self._folder)
        old = {path: path.relative_to(self._folder).as_posix() for path in self.earlier}
        kept = {key: listed.get(old[path]) for key, path in self._kept.items()}
        new = {part.key: part.entry for part, _ in self._parts}
        return dict.fromkeys(old.values()) | kept | self._adopted | new

    def _further(self, partition: Path, number: int) -> Path:
        return partition / f"part-g{self.number:06d}-{number:06d}.parquet"

    def _next_name(self, replaced: Sequence[Path]) -> Path:
        """Return the path, relative to the folder, of the part that takes the place of earlier ones."""
        partitions = {path.parent for path in replaced}
        if len(partitions) != 1 or not self._remaining.issuperset(replaced):
            raise StoreError(
                f"{', '.join(map(str, replaced))}: not earlier parts of one partition, each given once"
            )
        self._remaining -= set(replaced)
        name = f"part-g{self.number:06d}-{max(map(sealed_up_to, replaced)):06d}.parquet"
        return partitions.pop().relative_to(self._folder) / name


@contextmanager
def next_generation(
    folder: Path, table: str, earlier: Sequence[Path], *, joins: bool = False
) -> Iterator[Generation]:
    """Build the next generation of a table; on the way out it takes the place of the present one.

    Where it holds nothing but earlier parts, these stay where they are. The folder's lock must be held. When
    the body raises, or the process dies, all stays as it was. `joins`: as `declared` has it.

    Raises:
        StoreError: the disk does not take it.
    """
    building = folder / _NEXT / table
    shutil.rmtree(building, ignore_errors=True)
    generation = Generation(folder, table, earlier)
    try:
        yield generation
        generation.finish()
        if not generation.changed:  # the table that stands is the same
            shutil.rmtree(building, ignore_errors=True)
            return
        with storing(folder / table):
            sync_folders(building)
            sync_to_disk(building.parent)
            make_folder(folder / table)  # there may be no part of it yet
        with declared(folder, generation.changes(), table=table, joins=joins), storing(folder / table):
            swap(folder, table)
    except BaseException:
        # Half a table must not take the room that the journal needs. Parts that are kept are links: only what
        # is being written may be emptied.
        discard(folder / _NEXT / TEMPORARY)
        shutil.rmtree(folder / _NEXT, ignore_errors=True)
        raise


def swap(folder: Path, table: str) -> None:
    """Put the table that was built in the place of the present one; what was present is removed."""
    building, present = folder / _NEXT / table, folder / table
    if exchanged(building, present):
        sync_to_disk(building.parent)
        sync_to_disk(folder)
        shutil.rmtree(building, ignore_errors=True)
        return
    ready, old = folder / READY / table, folder / _OLD / table
    for path in (ready, old):
        make_folder(path.parent)
        shutil.rmtree(path, ignore_errors=True)
    building.rename(ready)  # from here on it is complete
    sync_folders(folder / TEMPORARY)
    sync_to_disk(folder)  # or what is moved there would go with it when the power fails
    present.rename(old)  # in between readers find no table at all
    ready.rename(present)
    sync_to_disk(folder)
    shutil.rmtree(old, ignore_errors=True)


def settle(folder: Path) -> None:
    """Finish the step that a dead process was in the middle of, and clear away what else it was writing.

    The folder's lock must be held.
    """
    with storing(folder):
        if (folder / TEMPORARY).exists():  # what a killed process did last may be in memory alone: kept first
            sync_folders(folder)
        for table in SCHEMAS:
            ready, present = folder / READY / table, folder / table
            if ready.exists() and not present.exists():
                ready.rename(present)
                sync_to_disk(folder)
    shutil.rmtree(folder / TEMPORARY, ignore_errors=True)


def sealed_up_to(part: Path) -> int:
    """Return the number of the last segment whose rows a part may hold; 0: it has no name of ours."""
    number = part.stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def exchanged(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; return whether the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    if (number := ctypes.get_errno()) in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(first))


def needs_compaction(parts: Sequence[Path]) -> bool:
    """Return whether some partition of a table has so many small parts that readers feel it."""
    counts = Counter(path.parent for path in parts)
    crowded = [path for path in parts if counts[path.parent] >= MANY_PARTS]  # only these are opened
    return any(len(small) >= MANY_PARTS for small, _ in _partitions(crowded))


def compact(generation: Generation) -> None:
    """Fill the next generation of a table with one part for each partition, beside those that are full.

    A part of a version without checksums gets them.

    Raises:
        StoreError: a part is damaged, or the disk does not take it; the table stays as it was.
    """
    for small, full in _partitions(generation.earlier):
        for few in filter(None, [small, *([path] for path in full)]):
            if len(few) == 1 and check(few[0], ()):
                generation.keep(few[0])
                continue
            merged = generation.part(few)
            for batch in scanned(merged.table, few):
                merged.add(pa.Table.from_batches([batch]))
            merged.finish()  # now: hundreds that wait would hold thousands of long replies
            if merged.rows != (rows := sum(map(_rows, few))):
                raise StoreError(
                    f"{merged.path} has {merged.rows:,} of {rows:,} rows, so the parts stay as they were"
                )


def _partitions(parts: Sequence[Path]) -> Iterator[tuple[list[Path], list[Path]]]:
    """Yield of each partition the small parts and the full ones."""
    for _, group in groupby(sorted(parts, key=lambda path: path.parent), key=lambda path: path.parent):
        paths = list(group)
        full = [path for path in paths if _rows(path) >= FULL_ROWS]
        yield [path for path in paths if path not in full], full


def _rows(part: Path) -> int:
    check(part, ())  # a footer that is damaged must not be believed
    return pq.read_metadata(part).num_rows
