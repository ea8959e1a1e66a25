"""Looking at a results folder: what it holds at this moment, with what its workers hold beside it.

Reads only: works while a run is writing, and after one was killed. A row stands in the journal or in a
part or, while a segment is being sealed, in both; here it is read once.
"""

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa

from asyncbench.errors import AsyncbenchError, DamageWarning, StoreError
from asyncbench.store.holdings import TakenOver, refusal, stored, taken_over, wrong_with
from asyncbench.store.journal import Unfinished
from asyncbench.store.manifest import HOLDS, JOINED, Manifest, read_manifest, worker_folders
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import in_order, part_name
from asyncbench.store.segment import Damage, batches, payloads, segments
from asyncbench.store.snapshot import LOOKS, Snapshot
from asyncbench.store.tables import tables
from asyncbench.store.united import UnitedSnapshot, with_workers

PAUSE_S = 0.05  # between two looks: as long as two folders may take to be exchanged


def take_snapshot(folder: Path, *, whatever_is_wrong: bool = False) -> Snapshot:
    """Return what a results folder holds now; looks again while what it holds is changing.

    Args:
        folder: a results folder.
        whatever_is_wrong: also when parts are missing, or others than were written.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its manifest or its journal cannot be read, or its parts are not those that were written.
    """
    seen = look_at(folder, whatever_is_wrong=whatever_is_wrong).seen()
    tell_damage(folder, seen.damaged)
    return seen


class Looked(NamedTuple):
    """A results folder and those of its workers, each by itself."""

    own: Snapshot
    workers: Mapping[str, Snapshot] = {}  # by name
    taken: TakenOver = TakenOver()

    def parts(self, name: str) -> list[Path]:
        """Return the parts of a table."""
        return [path for seen in (self.own, *self.workers.values()) for path in seen.files[name]]

    def only(self, workers: Collection[str]) -> "Looked":
        """Return it with only some of the workers' folders."""
        return self._replace(workers={name: self.workers[name] for name in workers})

    def united(self) -> UnitedSnapshot:
        """Return all of it as one folder; raises StoreError where a part cannot be read."""
        return with_workers(self.own, self.workers, self.taken)

    def seen(self, but: Collection[Path] = ()) -> Snapshot:
        """Return all of it as one folder, without some parts; raises StoreError where one cannot be read."""
        own, *others = [_without(seen, but) if but else seen for seen in (self.own, *self.workers.values())]
        return with_workers(own, dict(zip(self.workers, others, strict=True)), self.taken) if others else own


def _without(seen: Snapshot, but: Collection[Path]) -> Snapshot:
    for name in seen.files:
        seen = seen.within(name, lambda path: path not in but)
    return seen


def look_at(folder: Path, *, whatever_is_wrong: bool = False) -> Looked:
    """Return what `take_snapshot` does, folder by folder; looks again when some of them were joined."""
    if not worker_folders(folder):
        return Looked(_alone(folder, whatever_is_wrong)[0])
    for looks_left in reversed(range(LOOKS)):
        before = read_manifest(folder)
        try:
            workers = {path.name: _alone(path, whatever_is_wrong)[0] for path in worker_folders(folder)}
            own, taken = _alone(folder, whatever_is_wrong)
        except (AsyncbenchError, FileNotFoundError):
            if not looks_left or _joins(before) == _joins(read_manifest(folder)):
                raise
        else:
            if not looks_left or _joins(before) == _joins(read_manifest(folder)):
                return Looked(own, workers, taken)
        time.sleep(PAUSE_S)
    raise AssertionError


def _joins(manifest: Manifest) -> tuple[object, ...]:
    holds = manifest[HOLDS]
    coming = holds.get("next", {})
    return holds.get("joining"), holds.get(JOINED), coming if coming.get("joins") else None


def _alone(folder: Path, whatever_is_wrong: bool) -> tuple[Snapshot, TakenOver]:
    """Return what one folder holds; and what of its workers' folders that is."""
    for looks_left in reversed(range(LOOKS)):
        before = read_manifest(folder)
        seen, found = _look(folder)
        wrong = [] if whatever_is_wrong else wrong_with(folder, before, found)
        after = read_manifest(folder)
        if not wrong and (_same(before, after) or not looks_left):
            return seen, taken_over(before.get(HOLDS, {}), found)
        if wrong and (not looks_left or (_same(before, after) and "next" not in before[HOLDS])):
            raise refusal(folder, wrong)
        time.sleep(PAUSE_S)
    raise AssertionError


def tell_damage(folder: Path, damaged: Sequence[Damage]) -> None:
    """Warn whoever reads, or opens, a folder whose journal has damaged lines."""
    if damaged:
        what = f"{folder}: lines of its journal stand in another order than they were written"
        if lines := sum(line.missing or bool(line.size) for line in damaged):
            what = f"{folder}: {lines:,} damaged lines of its journal are left out"
        warnings.warn(f"{what}. `asyncbench status {folder} --verify` names them.", DamageWarning, 4)


def _same(before: Manifest, after: Manifest) -> bool:
    return bool(before.get(HOLDS) == after.get(HOLDS))


def _look(folder: Path) -> tuple[Snapshot, dict[str, Path]]:
    """Return what is found, and the parts by their paths in the folder's list."""
    covered, damaged, left = set[str](), list[Damage](), Unfinished()
    journalled = [tables([], place=folder)]
    for batch in batches(_lines(folder / "journal", covered, damaged)):
        for line in map(orjson.loads, batch):
            left.follow(line)
        journalled.append(tables(batch, place=folder / "journal"))
    found = stored(folder)  # after the journal was read: what was sealed meanwhile is found here
    snapshot = Snapshot(
        files={
            name: in_order(
                path for key, path in found.items() if key.startswith(f"{name}/") and path.name not in covered
            )
            for name in SCHEMAS
        },
        journalled={name: pa.concat_tables(rows[name] for rows in journalled) for name in SCHEMAS},
        unfinished=left,
        damaged=damaged,
    )
    return snapshot, found


def _lines(journal: Path, covered: set[str], damaged: list[Damage]) -> Iterator[bytes]:
    for segment in segments(journal):
        try:
            yield from payloads(segment, damaged)
            covered.add(part_name(segment))
        except FileNotFoundError:  # sealed a moment ago
            continue
        except OSError as error:
            raise StoreError(f"{segment} cannot be read: {error}. Restore it from a backup.") from error
