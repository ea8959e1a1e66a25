"""`report --style heatmap`: where models break, as shaded tables: model × task, and task × length."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import (
    CELL_COLUMNS,
    Asked,
    Graded,
    any_simulated,
    cells_of,
    finest,
    graded_by,
    graders_of,
    in_order,
    lapsed_note,
    lost_notes,
    names_of,
    no_trials,
    skips_in,
    summed,
)
from asyncbench.shown import SIMULATED, Cell, Report, Sheet, of_accuracy, shaded
from asyncbench.store import ENTRANT, read_grades, read_manifest, read_trials

MOST_LENGTHS: Final = 12  # columns; more lengths than that stand in ranges
GRADES: Final = ("suite", "grader", "grader_version")
FEW: Final = 10  # problems; a share of fewer is marked
MARK: Final = "~"  # before a share of few problems

MEANING: Final = (
    "Percent of all trials that are right, as whole numbers: 100 only where all are, 0 only where none is. "
    "Blank: not asked. Who is right most often, in what each was asked, stands first."
)
MARKED: Final = f"{MARK} stands before a share of fewer than {FEW} problems."
SKIPPED: Final = (
    "trials were skipped, as enough was known of their cells (`stop_when`): shares are of the trials that "
    "were asked. `report` tells each stopped cell with an interval that holds."
)

Row = Mapping[str, Any]  # Any: a cell's text and numbers by column
Lengths = tuple[int, int]  # the first and the last of a range


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """How much one got right of a task, or of some of its lengths."""

    asked: Asked
    suite: str
    task: str  # with variant and representation where the task has several
    lengths: Lengths | None  # None: all of them, unknown ones too
    trials: int
    correct: int
    independent: float  # problems, as far as is known: repeats of one are not independent

    @property
    def accuracy(self) -> float:
        """The share of all trials that are right."""
        return self.correct / self.trials

    @property
    def few(self) -> bool:
        """Whether so few problems say little."""
        return self.independent < FEW


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyMaps(Report):
    """The accuracies of a results folder by task and by length, and how they are shown."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]
    names: Mapping[Asked, str]  # what to call everybody, as planned
    outcomes: Mapping[str, Mapping[str, int]]  # by name
    skipped: int  # trials that `stop_when` leaves out
    lapsed: int  # trials that it left out before, but not by the rule in force: open
    without_length: int  # trials of unknown length
    tasks: tuple[Square, ...]
    lengths: tuple[Square, ...]  # of known length

    def _data(self) -> dict[str, object]:
        return {
            "folder": self.folder,
            "simulated": self.simulated,
            "graders": [asdict(one) for one in self.graders],
            "skipped": self.skipped,
            "lapsed": self.lapsed,
            "without_length": self.without_length,
            "tasks": [self._mapping(one) for one in self.tasks],
            "lengths": [self._mapping(one) for one in self.lengths],
            "nothing": None if self.tasks else no_trials(self.folder),
        }

    def _mapping(self, one: Square) -> dict[str, object]:
        who = dict(zip(ENTRANT, one.asked, strict=True))
        lengths = {} if one.lengths is None else dict(zip(("first", "last"), one.lengths, strict=True))
        counts = {name: getattr(one, name) for name in ("trials", "independent", "correct", "accuracy")}
        return {"name": self.names[one.asked], **who, "suite": one.suite, "task": one.task} | lengths | counts

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        if not self.tasks:
            yield no_trials(self.folder)
            return
        yield graded_by(self.graders)
        yield from lost_notes(self.outcomes)
        if self.skipped:
            yield f"{self.skipped:,} {SKIPPED}"
        if self.lapsed:
            yield lapsed_note(self.lapsed)
        if self.without_length:
            yield f"{self.without_length:,} trials have no length: they are in the first table alone."
        few = any(one.few for one in (*self.tasks, *self.lengths))
        yield f"{MEANING} {MARKED}" if few else MEANING

    def _sheets(self) -> Iterator[Sheet]:
        if self.tasks:
            yield self._by_task()
        for suite in sorted({one.suite for one in self.lengths}):
            yield from self._by_length(suite, [one for one in self.lengths if one.suite == suite])

    def _by_task(self) -> Sheet:
        """Return models × tasks, the more numerous of them down the page."""
        models = self._best_first(self.tasks)
        tasks = [self._task(*one) for one in sorted({(one.suite, one.task) for one in self.tasks})]
        found = {(self.names[one.asked], self._task(one.suite, one.task)): one for one in self.tasks}
        if len(tasks) <= len(models):
            return _sheet("Accuracy by model and task", "model", models, tasks, found)
        turned = {(task, model): one for (model, task), one in found.items()}
        return _sheet("Accuracy by task and model", "task", tasks, models, turned)

    def _by_length(self, suite: str, those: Sequence[Square]) -> Iterator[Sheet]:
        """Yield tasks × lengths for each model; where tasks are fewer, models × lengths for each of them."""
        models, tasks = self._best_first(those), sorted({one.task for one in those})
        lengths = [range_text(one) for one in sorted({one.lengths for one in those if one.lengths})]
        found = {(self.names[one.asked], one.task, range_text(one.lengths)): one for one in those}
        if len(tasks) >= len(models):
            for model in models:
                own = {(task, length): one for (name, task, length), one in found.items() if name == model}
                yield _sheet(f"{model}, {suite}: accuracy by task and length", "task", tasks, lengths, own)
            return
        for task in tasks:
            best_first = self._best_first([one for one in those if one.task == task])
            own = {(name, length): one for (name, its, length), one in found.items() if its == task}
            title = f"{self._task(suite, task)}: accuracy by model and length"
            yield _sheet(title, "model", best_first, lengths, own)

    def _best_first(self, those: Iterable[Square]) -> list[str]:
        """Return the names of those who were asked, the most accurate first; equals as planned."""
        trials, correct = Counter[Asked](), Counter[Asked]()
        for one in those:
            trials[one.asked] += one.trials
            correct[one.asked] += one.correct
        asked = [one for one in self.names if trials[one]]
        return [self.names[one] for one in sorted(asked, key=lambda one: -correct[one] / trials[one])]

    def _task(self, suite: str, task: str) -> str:
        """Return what to call a task among those of all suites."""
        several = len({one.suite for one in self.tasks}) > 1
        return f"{suite}/{task}" if several and task != suite else task


def accuracy_maps_on(folder: Path | str) -> AccuracyMaps:
    """Return the accuracies of a results folder by task and by length; nothing is written to it.

    Raises:
        ConfigError: it is not a results folder, or, where trials were skipped, its sweep.yaml cannot be read.
        StoreError: it cannot be read.
    """
    trials = read_trials(folder, columns=[*CELL_COLUMNS, "provider"])
    found = cells_of(trials.drop_columns(["provider"])).to_pylist()
    asked = {_asked(cell) for cell in found}
    names = names_of(in_order(asked, read_manifest(Path(folder))))
    skips = skips_in(folder, ["suite"])
    known = [cell for cell in found if cell["length"] is not None]
    return AccuracyMaps(
        folder=str(folder),
        simulated=any_simulated(trials),
        graders=graders_of(read_grades(folder, GRADES, pc.field("headline"))),
        names=names,
        outcomes={
            names[run, model, condition]: {one.value: sums[one] for one in Outcome}
            for (run, model, condition), sums in summed(found, ENTRANT).items()
        },
        skipped=len(skips.held),
        lapsed=skips.lapsed,
        without_length=sum(cell["trials"] for cell in found if cell["length"] is None),
        tasks=tuple(chain.from_iterable(_squares(those) for those in _by_suite(found))),
        lengths=tuple(chain.from_iterable(_squares(_in_ranges(those)) for those in _by_suite(known))),
    )


# ── counting ─────────────────────────────────────────────────────────────────────────────────


def _asked(cell: Row) -> Asked:
    return cell["run"], cell["model"], cell["condition"]


def _by_suite(found: Iterable[Row]) -> list[list[Row]]:
    """Return the cells of each suite, each with the name of its task among those of the suite."""
    suites: dict[str, list[Row]] = {}
    for cell in found:
        suites.setdefault(cell["suite"], []).append(cell)
    return [_named(those) for those in suites.values()]


def _named(those: Sequence[Row]) -> list[Row]:
    names = finest(those)
    kinds = [(one["task"], one["variant"] or "", one["representation"] or "") for one in those]
    return [{**one, "named": names[kind]} for one, kind in zip(those, kinds, strict=True)]


def _in_ranges(those: Sequence[Row]) -> list[Row]:
    """Return cells with the range of lengths that each is in."""
    ranges = ranges_of(one["length"] for one in those)
    return [{**one, "lengths": ranges[one["length"]]} for one in those]


def ranges_of(lengths: Iterable[int]) -> dict[int, Lengths]:
    """Return the range that each length is in: by itself, or with its neighbours where there are many.

    >>> ranges_of([1, 2, 4])
    {1: (1, 1), 2: (2, 2), 4: (4, 4)}
    """
    ascending = sorted(set(lengths))
    size = ceil(len(ascending) / MOST_LENGTHS)
    groups = [ascending[start : start + size] for start in range(0, len(ascending), size or 1)]
    return {length: (group[0], group[-1]) for group in groups for length in group}


def _squares(those: Sequence[Row]) -> Iterator[Square]:
    """Yield one for each task, and range of lengths, of everybody."""
    keys = (*ENTRANT, "suite", "named", *(("lengths",) if those and "lengths" in those[0] else ()))
    for (run, model, condition, suite, task, *lengths), sums in summed(those, keys).items():
        yield Square(
            asked=(run, model, condition),
            suite=suite,
            task=task,
            lengths=lengths[0] if lengths else None,
            trials=sums["trials"],
            correct=sums["correct"],
            independent=sums["independent"],
        )


# ── how they are written ─────────────────────────────────────────────────────────────────────


def _sheet(
    title: str,
    corner: str,
    rows: Sequence[str],
    columns: Sequence[str],
    found: Mapping[tuple[str, str], Square],
) -> Sheet:
    """Return a heatmap; rows of which nothing was asked are left out."""
    marked = any(one.few for one in found.values())
    asked = {row for row, _ in found}
    lines = [[row, *(_cell(found.get((row, at)), marked) for at in columns)] for row in rows if row in asked]
    return Sheet(title=title, head=[corner, *columns], rows=lines, gap=1)


def _cell(one: Square | None, marked: bool) -> Cell:
    """Return a share on its colour; all of a table are equally wide: their colours make a surface."""
    if one is None:
        return ""
    mark = MARK if one.few else ""
    return shaded(f"{mark}{whole_percent(one.accuracy)}".rjust(4 if marked else 3), of_accuracy(one.accuracy))


def whole_percent(share: float) -> str:
    """Return a share in whole percent; 0 and 100 are exact.

    >>> whole_percent(0.999), whole_percent(1.0)
    ('99', '100')
    """
    return f"{share:.0%}".rstrip("%") if share in (0, 1) else str(min(99, max(1, round(100 * share))))


def range_text(lengths: Lengths | None) -> str:
    """Return a range as the head of a column: `7`, `11-20`."""
    if lengths is None:
        return ""
    first, last = lengths
    return str(first) if first == last else f"{first}-{last}"
