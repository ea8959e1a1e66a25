"""regrade_folder(): every stored reply of a results folder is graded again; nothing is asked."""

import gc
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pyarrow as pa

from asyncbench.errors import StoreError
from asyncbench.files import local
from asyncbench.store.bucket.fetching import at_hand, told_as
from asyncbench.store.folder import Store
from asyncbench.store.generation import Generation
from asyncbench.store.looking import take_snapshot
from asyncbench.store.manifest import read_manifest
from asyncbench.store.parts import Part, scanned
from asyncbench.store.schema import OF_THE_TRIAL
from asyncbench.store.snapshot import Snapshot
from asyncbench.upkeep.grades import HEADLINE, REPLY, Regrade, regraded
from asyncbench.upkeep.stored import EarlierGrades, FolderQuestions
from asyncbench.upkeep.tally import ChangedTrial, Grader, Move, RegradeTally

READ = tuple(dict.fromkeys([*OF_THE_TRIAL, "problem_set", "problem_id", "expected", *HEADLINE, *REPLY]))
Place = tuple[str, ...]  # the folders of a partition: suite=…, model=…


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGrades:
    """Trials whose grades stay as they are: no copy holds their problem, or their suite is not known."""

    suite: str
    problem_set: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """What today's graders say of a folder's replies, beside its stored grades."""

    folder: str
    written: bool  # the folder has the new grades now
    simulated: bool
    trials: int
    corrected: int  # trials whose problem has another answer now
    kept: tuple[KeptGrades, ...]
    moves: tuple[Move, ...]  # those of every grader
    graders: tuple[Grader, ...]
    examples: tuple[ChangedTrial, ...]


def regrade_folder(folder: PathLike[str] | str, *, write: bool = False) -> Regraded:
    """Grade all stored replies again with today's graders and compare the grades. No model is called.

    The problems are those in the folder's `problems/`, so an expected answer that you corrected there counts.

    Args:
        folder: the results folder. Without `write`, a run may be going in it.
        write: replace the stored grades by the new ones, all or none.

    Returns:
        A `Regraded`: how many grades changed, and from what to what.

    Raises:
        ConfigError: The folder is not a results folder.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: The folder cannot be read; or, with `write`, a run is going in it or the disk is full.
    """
    path = local(folder) if write else at_hand(folder)
    manifest = read_manifest(path)
    tally = RegradeTally()
    with _without_collections():
        (_rewrite if write else _look_over)(path, tally)
    return Regraded(
        folder=told_as(folder),
        written=write,
        simulated=bool(manifest.get("simulated")),
        trials=tally.trials,
        corrected=tally.corrected,
        kept=tuple(
            KeptGrades(suite=suite, problem_set=name, trials=trials)
            for (suite, name), trials in sorted(tally.kept.items())
        ),
        moves=tuple(tally.moves()),
        graders=tuple(tally.graders()),
        examples=tuple(tally.examples()),
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the cyclic collector out: millions of records come and go, none of them in a cycle."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _look_over(folder: Path, tally: RegradeTally) -> None:
    snapshot = take_snapshot(folder)
    batches = _BatchGrader(folder, snapshot, tally)
    for batch in snapshot.batches("trials", READ):
        batches.graded(batch)


def _rewrite(folder: Path, tally: RegradeTally) -> None:
    with (
        Store.reopen(folder) as store,
        store.replaced("trials") as trials,
        store.replaced("grades") as grades,
    ):
        batches = _BatchGrader(folder, take_snapshot(folder), tally)
        changed: set[Path] = set()
        for path, trial_part, grade_part in _rewritten(trials, grades, changed=changed):
            for batch in scanned("trials", [path]):
                made = batches.graded(batch)
                if made.changed:
                    changed.add(path)
                trial_part.add(made.trials)
                grade_part.add(made.grades)


class _BatchGrader:
    """Grades batch after batch, in the order of the folder, and counts what that changes."""

    def __init__(self, folder: Path, snapshot: Snapshot, tally: RegradeTally) -> None:
        self._questions, self._earlier, self._tally = FolderQuestions(folder), EarlierGrades(snapshot), tally

    def graded(self, batch: pa.RecordBatch) -> Regrade:
        trials = pa.Table.from_batches([batch])
        earlier = self._earlier.of(trials)
        made = regraded(trials, self._questions.of(trials), earlier)
        self._tally.add(trials, made, earlier)
        return made


# ── the new generation of both tables, part by part in the places of the old ─────────────────


def _rewritten(
    trials: Generation, grades: Generation, *, changed: Collection[Path]
) -> Iterator[tuple[Path, Part, Part]]:
    """Yield each part of `trials` with the two parts that its rows and their grades go to.

    A part is finished before the next one begins, so that few rows wait in memory.

    Args:
        trials: what takes the place of the trials.
        grades: what takes the place of the grades.
        changed: the parts of `trials`, of those yielded so far, whose rows or grades are others now. Where a
            partition has none of them, its earlier parts stay. (A part of `grades` may hold those of any
            trial of its partition, so a part alone cannot tell.)

    Raises:
        StoreError: trials stand without any grades beside them.
    """
    stored = _by_place(grades.earlier)
    for place, paths in _by_place(trials.earlier).items():
        beside = stored.pop(place, [])
        if not beside:
            raise StoreError(
                f"there are no grades for {paths[0]}. Restore that part of `grades` from a backup"
            )
        yield from _in_partition(paths, beside, trials, grades)
        if not any(path in changed for path in paths):
            trials.keep_after_all(paths)
            grades.keep_after_all(beside)
    for path in (path for paths in stored.values() for path in paths):  # of trials that are gone
        grades.keep(path)


def _in_partition(
    paths: Sequence[Path], stored: Sequence[Path], trials: Generation, grades: Generation
) -> Iterator[tuple[Path, Part, Part]]:
    """Pair the parts of a partition in their order; there may be more of one table than of the other."""
    last = len(paths) - 1
    beside = grades.part(stored[:1] if last else stored)
    for n, path in enumerate(paths):
        if n and (own := stored[n:] if n == last else stored[n : n + 1]):
            beside.finish()
            beside = grades.part(own)
        part = trials.part([path])
        yield path, part, beside
        part.finish()
    beside.finish()


def _by_place(paths: Iterable[Path]) -> dict[Place, list[Path]]:
    places: dict[Place, list[Path]] = {}
    for path in paths:
        places.setdefault(path.parent.parts[-2:], []).append(path)
    return places
