"""Regrade: `regrade_folder` grades all stored replies by today's graders and counts what that changes.

Batch by batch, `RegradeTally` counts the changes and keeps a few examples of each kind. With `write`, both
tables are built anew beside the old ones and take their places in one step.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.files import local
from asyncbench.records import GRADER_ERROR
from asyncbench.store.bucket.fetching import display_name, local_folder
from asyncbench.store.folder import Store
from asyncbench.store.manifest import read_manifest
from asyncbench.store.parts import scanned
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import OF_THE_TRIAL
from asyncbench.store.snapshot import Snapshot
from asyncbench.upkeep.stored_grades import (
    HEADLINE,
    OF_THE_GRADE,
    REPLY,
    Column,
    EarlierGrades,
    FolderQuestions,
    Regrade,
    joined,
    regraded,
)

EXAMPLES: Final = 3  # of each kind of change, of as many models as there are
TAIL: Final = 60  # characters of a reply: an answer stands at its end

Key = tuple[Any, ...]  # Any: values of columns
_MOVE: Final = ("model", "suite", "grader", "headline", "before", "now")
_GRADER: Final = ("suite", "grader", "version_before", "version")
_CHANGE: Final = ("suite", "grader", "before", "now", "model")
_SHOWN: Final = ("trial_id", "model", "suite", "grader", "before", "now", "answer_before", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Trials of one model that one grader takes for something else now, or for the same as before."""

    model: str
    suite: str
    grader: str
    headline: bool  # the grade that decides the trial
    before: str | None  # outcome; None: this grader had not graded them
    now: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """One grader, and how many of its grades differ from those that are stored."""

    suite: str
    grader: str
    version_before: int | None  # None: it had not graded them
    version: int | None  # None: there is no such grade any more
    grades: int
    changed: int  # in any column but the version


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTrial:
    """One trial that changed."""

    trial_id: str
    model: str
    suite: str
    grader: str
    before: str | None
    now: str
    expected: str
    answer_before: str | None
    answer: str | None
    reply_end: str | None  # the last characters of the reply


class RegradeTally:
    """Takes in regraded batches."""

    def __init__(self) -> None:
        self.trials = 0
        self.corrected = 0  # trials whose problem has another answer now
        self.kept = Counter[Key]()  # trials that could not be graded: suite, problem set
        self.ungraded = 0  # trials whose reply a grader stumbled over
        self.fault: str | None = None  # the first of these times
        self._moves = Counter[Key]()
        self._graders = Counter[Key]()  # `_GRADER`, and whether it changed
        self._examples: defaultdict[Key, dict[str, list[ChangedTrial]]] = defaultdict(dict)

    def add(self, before: pa.Table, made: Regrade, earlier: pa.Table) -> None:
        """Take in a batch: its trials as they stood, what they became, and the grades that stood for them."""
        self.trials += len(before)
        corrected = pc.sum(_differ(before["expected"], made.trials["expected"]), min_count=0)
        self.corrected += int(corrected.as_py())
        self.kept += _counted(before.filter(made.kept), ("suite", "problem_set"))
        self.ungraded += len(made.grades.filter(pc.field("reason") == GRADER_ERROR))
        self.fault = self.fault or made.fault
        now_keys, earlier_keys = (joined(table, "trial_id", "grader") for table in (made.grades, earlier))
        compared = _compared(made.grades, earlier.take(pc.index_in(now_keys, value_set=earlier_keys)), before)
        self._moves += _counted(compared, _MOVE)
        self._graders += _counted(compared, (*_GRADER, "changed"))
        gone = earlier.filter(pc.invert(pc.is_in(earlier_keys, value_set=now_keys)))
        for (suite, grader, version), count in _counted(gone, ("suite", "grader", "grader_version")).items():
            self._graders[suite, grader, version, None, True] += count

        # Examples of each kind of change, up to a few of each model.
        changed = compared.filter(_differ(compared["before"], compared["now"]))
        for *kind, model in _counted(changed, _CHANGE):
            examples = self._examples[tuple(kind)].setdefault(model, [])
            if len(examples) == EXAMPLES:
                continue
            wanted = pc.scalar(True)
            for name, value in zip(_CHANGE, (*kind, model), strict=True):
                wanted &= pc.field(name).is_null() if value is None else pc.field(name) == value
            rows = changed.filter(wanted).slice(0, EXAMPLES - len(examples)).select(list(_SHOWN))
            places = pc.index_in(rows["trial_id"], value_set=before["trial_id"])
            replies = before["reply_text"].take(places).to_pylist()
            answers: list[Any] = made.trials["expected"].take(places).to_pylist()
            for row, reply, expected in zip(rows.to_pylist(), replies, answers, strict=True):
                end = None if reply is None else str(reply)[-TAIL:]
                examples.append(ChangedTrial(**row, expected=expected, reply_end=end))

    def moves(self) -> Iterator[Move]:
        """Yield the counts by model."""
        for key, trials in sorted(self._moves.items(), key=str):
            yield Move(**dict(zip(_MOVE, key, strict=True)), trials=trials)

    def graders(self) -> Iterator[Grader]:
        """Yield each grader with its versions, by suite."""
        for key in sorted({which[:-1] for which in self._graders}, key=str):
            changed, same = self._graders[*key, True], self._graders[*key, False]
            yield Grader(**dict(zip(_GRADER, key, strict=True)), grades=changed + same, changed=changed)

    def examples(self) -> Iterator[ChangedTrial]:
        """Yield the examples of each kind, of different models first."""
        for _, by_model in sorted(self._examples.items(), key=str):
            in_turn = chain.from_iterable(zip_longest(*(by_model[model] for model in sorted(by_model))))
            yield from islice(filter(None, in_turn), EXAMPLES)


def _compared(grades: pa.Table, old: pa.Table, trials: pa.Table) -> pa.Table:
    """Return the new grades with the outcome, the answer and the version that stood there.

    Of a headline grade that is what the trial said, whichever grader was the headline then.
    """
    changed = pc.is_null(old["trial_id"])
    for name in OF_THE_GRADE:
        if name not in ("grader", "grader_version", "flags"):
            changed = pc.or_(changed, _differ(old[name], grades[name]))
    old_flags, flags = (pc.binary_join(table["flags"], "\n") for table in (old, grades))
    changed = pc.or_(changed, _differ(old_flags, flags))
    of_trial = trials.take(pc.index_in(grades["trial_id"], value_set=trials["trial_id"]))
    before, answer_before = (
        pc.if_else(grades["headline"], of_trial[name], old[name]) for name in ("outcome", "answer")
    )
    now = grades.select(["trial_id", "model", "suite", "grader", "headline", "answer"])
    return (
        now.append_column("now", grades["outcome"])
        .append_column("before", before)
        .append_column("answer_before", answer_before)
        .append_column("version_before", old["grader_version"])
        .append_column("version", grades["grader_version"])
        .append_column("changed", changed)
    )


def _differ(before: Any, right: Any) -> Column:
    """Return where two columns differ; NULL equals NULL."""
    both = pc.and_(pc.is_valid(before), pc.is_valid(right))
    one_alone = pc.xor(pc.is_valid(before), pc.is_valid(right))
    differ: Column = pc.if_else(both, pc.not_equal(before, right), one_alone)
    return differ


def _counted(table: pa.Table, names: Sequence[str]) -> Counter[Key]:
    """Return how many rows have each combination of values."""
    counts = table.group_by(list(names), use_threads=False).aggregate([([], "count_all")])
    return Counter({tuple(row[name] for name in names): row["count_all"] for row in counts.to_pylist()})


# ── regrade_folder(): every stored reply of a results folder is graded again; nothing is asked


READ = tuple(dict.fromkeys([*OF_THE_TRIAL, "problem_set", "problem_id", "expected", *HEADLINE, *REPLY]))
Partition = tuple[str, ...]  # its folders: suite=…, model=…


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
    ungraded: int  # trials whose reply a grader stumbled over
    fault: str | None  # what the first of them met; None: there is none
    moves: tuple[Move, ...]  # those of every grader
    graders: tuple[Grader, ...]
    examples: tuple[ChangedTrial, ...]


def regrade_folder(folder: PathLike[str] | str, *, write: bool = False) -> Regraded:
    """Grade all stored replies again with today's graders and compare the grades. No model is called.

    The problems are those in the folder's `problems/`, so an expected answer that you corrected there counts.

    Args:
        folder: the results folder. Without `write`, a run may be going in it.
        write: replace the stored grades by the new ones, all or none. [False]

    Returns:
        A `Regraded`: how many grades changed, and from what to what.

    Raises:
        ConfigError: The folder is not a results folder.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: The folder cannot be read; or, with `write`, a run is going in it or the disk is full.
    """
    path = local(folder) if write else local_folder(folder)
    manifest = read_manifest(path)
    tally = RegradeTally()
    with _paused_collector():
        if write:
            _rewrite(path, tally)
        else:
            snapshot = take_snapshot(path)
            batches = _BatchGrader(path, snapshot, tally)
            for batch in snapshot.batches("trials", READ):
                batches.graded(batch)
    return Regraded(
        folder=display_name(folder),
        written=write,
        simulated=bool(manifest.get("simulated")),
        trials=tally.trials,
        corrected=tally.corrected,
        kept=tuple(
            KeptGrades(suite=suite, problem_set=name, trials=trials)
            for (suite, name), trials in sorted(tally.kept.items())
        ),
        moves=tuple(tally.moves()),
        ungraded=tally.ungraded,
        fault=tally.fault,
        graders=tuple(tally.graders()),
        examples=tuple(tally.examples()),
    )


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Keep the cyclic collector out: millions of records come and go, none of them in a cycle."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _rewrite(folder: Path, tally: RegradeTally) -> None:
    """Replace both tables, part by part in the places of the old; few rows wait in memory."""
    with (
        Store.reopen(folder) as store,
        store.replaced("trials") as trials,
        store.replaced("grades") as grades,
    ):
        batches = _BatchGrader(folder, take_snapshot(folder), tally)
        stored = _group_by_partition(grades.earlier)
        for partition, paths in _group_by_partition(trials.earlier).items():
            if not (grade_paths := stored.pop(partition, [])):
                raise StoreError(
                    f"there are no grades for {paths[0]}. Restore that part of `grades` from a backup"
                )

            # Pair the parts in their order; there may be more of one table than of the other.
            last, changed = len(paths) - 1, False
            grade_part = grades.part(grade_paths[:1] if last else grade_paths)
            for n, path in enumerate(paths):
                if n and (replaced := grade_paths[n:] if n == last else grade_paths[n : n + 1]):
                    grade_part.finish()
                    grade_part = grades.part(replaced)
                trial_part = trials.part([path])
                for batch in scanned("trials", [path]):
                    made = batches.graded(batch)
                    changed = changed or made.changed
                    trial_part.add(made.trials)
                    grade_part.add(made.grades)
                trial_part.finish()
            grade_part.finish()

            # Grades of a partition may stand in any of its parts: all of these stay, or none.
            if not changed:
                trials.keep_after_all(paths)
                grades.keep_after_all(grade_paths)
        for path in chain.from_iterable(stored.values()):  # of trials that are gone
            grades.keep(path)


def _group_by_partition(paths: Iterable[Path]) -> dict[Partition, list[Path]]:
    partitions: dict[Partition, list[Path]] = {}
    for path in paths:
        partitions.setdefault(path.parent.parts[-2:], []).append(path)
    return partitions


class _BatchGrader:
    """Grades batch after batch, in the order of the folder, and counts what that changes."""

    def __init__(self, folder: Path, snapshot: Snapshot, tally: RegradeTally) -> None:
        self._questions, self._earlier, self._tally = FolderQuestions(folder), EarlierGrades(snapshot), tally

    def graded(self, batch: pa.RecordBatch) -> Regrade:
        trials = pa.Table.from_batches([batch])
        earlier = self._earlier.take(trials)
        made = regraded(trials, self._questions.find(trials), earlier)
        self._tally.add(trials, made, earlier)
        return made
