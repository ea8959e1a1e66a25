"""`report --style heatmap`: accuracy or another metric as tables, model × task and task × length."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, Final

from asyncbench.analysis.cells import (
    METRICS,
    OF_GRADES,
    Metric,
    check_metric,
    keep_skips,
    lapsed_notes,
    outcomes_of,
    summed,
)
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, finest, kind_of, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.graders import Graded, graded_by, headline_graders
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.store.schema import CELL, ENTRANT
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.numbers import accuracy_goodness, counted_note, number_of, shaded, whole_percent
from asyncbench.tables.report import Sheet
from asyncbench.tables.screen import Cell

MOST_LENGTHS: Final = 12  # columns; more lengths than that stand in ranges
FEW: Final = 10  # problems; a share of fewer is marked
MARK: Final = "~"  # before a share of few problems

MEANING: Final = (
    "{} in percent{}. 100 means that all are right, 0 that none is. Blank: not asked. The "
    "best model comes first."
)
OTHERWISE: Final = "{}: {}. Blank: not asked. The best model comes first."
MARKED: Final = f"{MARK} marks a number from fewer than {FEW} problems."
SKIPPED: Final = (
    "trials were skipped by `stop_when`. Accuracies are those of the trials that were asked; `report` shows "
    "each stopped cell with a valid interval."
)

Row = Mapping[str, Any]  # Any: a cell's text and numbers by column
Lengths = tuple[int, int]  # the first and the last of a range


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """How much an entrant got right of a task, or of some of its lengths: one cell of a table."""

    entrant: Entrant
    suite: str
    task: str  # with variant and representation where the task has several
    lengths: Lengths | None  # None: all lengths, also trials whose length is unknown
    trials: int
    correct: int
    value: float | None  # of the metric; None: unknown
    independent: float  # number of problems: repeats of one problem are not independent

    @property
    def accuracy(self) -> float:
        """The share of all trials that are right."""
        return self.correct / self.trials

    @property
    def few(self) -> bool:
        """True if the value comes from so few problems that it is marked."""
        return self.independent < FEW


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyMaps(FolderReport):
    """The accuracies of a results folder by task and by length, with their tables."""

    metric: str = field(metadata=HIDDEN)  # of `METRICS`
    graders: tuple[Graded, ...]
    names: Mapping[Entrant, str] = field(metadata=HIDDEN)  # in the order of the sweep
    outcomes: Mapping[str, Mapping[str, int]] = field(metadata=HIDDEN)  # by name
    skipped: int  # trials that `stop_when` leaves out
    lapsed: int  # open trials that an earlier `stop_when` left out, but the present rule does not
    without_length: int  # trials of unknown length
    tasks: tuple[Square, ...] = field(metadata=HIDDEN)
    lengths: tuple[Square, ...] = field(metadata=HIDDEN)  # of known length

    def data(self) -> dict[str, object]:
        return FolderReport.data(self) | {
            "tasks": list(map(self._mapping, self.tasks)),
            "lengths": list(map(self._mapping, self.lengths)),
            **({} if self.metric == "accuracy" else {"metric": self.metric}),
        }

    def _mapping(self, square: Square) -> dict[str, object]:
        return {
            "name": self.names[square.entrant],
            **dict(zip(ENTRANT, square.entrant, strict=True)),
            "suite": square.suite,
            "task": square.task,
            **dict(zip(("first", "last"), square.lengths or (), strict=False)),
            "trials": square.trials,
            "independent": square.independent,
            "correct": square.correct,
            "accuracy": square.accuracy,
            **({} if self.metric == "accuracy" else {"value": square.value}),
        }

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of tables."""
        return None if self.tasks else no_trials(self.folder)

    def remarks(self) -> Iterator[str]:
        yield graded_by(self.graders)
        yield from lost_notes(self.outcomes)
        yield from counted_note(self.skipped, SKIPPED)
        yield from lapsed_notes(self.lapsed)
        if self.without_length:
            without = number_of(self.without_length, "trial")
            yield f"{without} without a length: only the first table counts them."
        few = any(square.few for square in (*self.tasks, *self.lengths))
        metric = METRICS[self.metric]
        of_all = " of all trials" if self.metric == "accuracy" else ""
        meaning = (
            MEANING.format(metric.title, of_all)
            if metric.share
            else OTHERWISE.format(metric.title, metric.unit)
        )
        yield f"{meaning} {MARKED}" if few else meaning

    def sheets(self) -> Iterator[Sheet]:
        if self.tasks:  # models × tasks, the more numerous of them down the page
            title = METRICS[self.metric].title
            models = self._best_first(self.tasks)
            tasks = [self._task(*task) for task in sorted({(cell.suite, cell.task) for cell in self.tasks})]
            cells = {
                (self.names[cell.entrant], self._task(cell.suite, cell.task)): cell for cell in self.tasks
            }
            if len(tasks) <= len(models):
                yield self._sheet(f"{title} by model and task", "model", models, tasks, cells)
            else:
                turned = {(task, model): cell for (model, task), cell in cells.items()}
                yield self._sheet(f"{title} by task and model", "task", tasks, models, turned)
        for suite in sorted({square.suite for square in self.lengths}):
            yield from self._length_sheets(
                suite, [square for square in self.lengths if square.suite == suite]
            )

    def _length_sheets(self, suite: str, squares: Sequence[Square]) -> Iterator[Sheet]:
        """Yield tasks × lengths for each model; where tasks are fewer, models × lengths for each of them."""
        models, tasks = self._best_first(squares), sorted({square.task for square in squares})
        title = METRICS[self.metric].title
        what = f"{title[:1].lower()}{title[1:]}"
        lengths = list(map(range_text, sorted({square.lengths for square in squares if square.lengths})))
        cells = {
            (self.names[square.entrant], square.task, range_text(square.lengths)): square
            for square in squares
        }
        if len(tasks) >= len(models):
            for model in models:
                answered = {
                    (task, length): square for (name, task, length), square in cells.items() if name == model
                }
                title = f"{model}, {suite}: {what} by task and length"
                yield self._sheet(title, "task", tasks, lengths, answered)
            return
        for task in tasks:
            best_first = self._best_first(square for square in squares if square.task == task)
            answered = {
                (name, length): square
                for (name, task_name, length), square in cells.items()
                if task_name == task
            }
            title = f"{self._task(suite, task)}: {what} by model and length"
            yield self._sheet(title, "model", best_first, lengths, answered)

    def _sheet(
        self,
        title: str,
        corner: str,
        rows: Sequence[str],
        columns: Sequence[str],
        squares: Mapping[tuple[str, str], Square],
    ) -> Sheet:
        """Return a heatmap without the rows of which nothing was asked."""
        marked = any(square.few for square in squares.values())
        cell = partial(_cell, metric=METRICS[self.metric], marked=marked)
        filled = {row for row, _ in squares}
        lines = [
            [row, *(cell(squares.get((row, column))) for column in columns)] for row in rows if row in filled
        ]
        return Sheet(title=title, head=[corner, *columns], rows=lines, gap=1)

    def _best_first(self, squares: Iterable[Square]) -> list[str]:
        """Return the names of the models that were asked, the best first, equals in the sweep's order."""
        trials, value = Counter[Entrant](), dict.fromkeys(self.names, 0.0)
        for square in squares:
            trials[square.entrant] += square.trials
            value[square.entrant] += (square.value or 0) * square.trials
        best = 1 if METRICS[self.metric].higher_is_better else -1
        entrants = [entrant for entrant in self.names if trials[entrant]]
        entrants.sort(key=lambda who: -best * value[who] / trials[who])
        return [self.names[who] for who in entrants]

    def _task(self, suite: str, task: str) -> str:
        """Return the name of a task, with its suite where there are several."""
        several = len({square.suite for square in self.tasks}) > 1
        return f"{suite}/{task}" if several and task != suite else task


def accuracy_maps_of(views: FolderViews, *, metric: str = "accuracy") -> AccuracyMaps:
    """Return accuracies, or another metric, by task and by length.

    Raises:
        ConfigError: there is no such metric; or trials were skipped and a folder's sweep.yaml cannot be read.
        StoreError: results cannot be read.
    """
    check_metric(metric)
    cells = views.rows(views.sums_query("cells") if metric in OF_GRADES else counts_by("trials", CELL))
    cells.sort(key=lambda cell: [(cell[name] is not None, cell[name]) for name in CELL])
    by_entrant = {
        (run, model, condition): sums for (run, model, condition), sums in summed(cells, ENTRANT).items()
    }
    names, skips = names_of(sort_entrants(by_entrant, views.manifest)), keep_skips(views)
    suites = sorted({cell["suite"] for cell in cells})
    tasks, lengths = list[Square](), list[Square]()
    for suite in suites:
        suite_cells = [cell for cell in cells if cell["suite"] == suite]
        tasks += _squares(suite_cells, metric, finest(kind_of(cell)[1:] for cell in suite_cells), None)
        measured = [cell for cell in suite_cells if cell["length"] is not None]
        forms = finest(kind_of(cell)[1:] for cell in measured)
        lengths += _squares(measured, metric, forms, ranges_of(cell["length"] for cell in measured))
    return AccuracyMaps(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        metric=metric,
        graders=headline_graders(views),
        names=names,
        outcomes={names[entrant]: outcomes_of(sums) for entrant, sums in by_entrant.items()},
        skipped=skips.trials,
        lapsed=skips.lapsed,
        without_length=sum(cell["trials"] for cell in cells if cell["length"] is None),
        tasks=tuple(tasks),
        lengths=tuple(lengths),
    )


def ranges_of(lengths: Iterable[int]) -> dict[int, Lengths]:
    """Return the range of each length: the length alone, or with its neighbours where there are many lengths.

    >>> ranges_of([1, 2, 4])
    {1: (1, 1), 2: (2, 2), 4: (4, 4)}
    """
    ascending = sorted(set(lengths))
    size = ceil(len(ascending) / MOST_LENGTHS)
    groups = [ascending[start : start + size] for start in range(0, len(ascending), size or 1)]
    return {length: (group[0], group[-1]) for group in groups for length in group}


def _squares(
    cells: Sequence[Row],
    metric: str,
    names: Mapping[tuple[str, ...], str],
    ranges: Mapping[int, Lengths] | None,
) -> Iterator[Square]:
    """Yield a square for each entrant and task of a suite and, where ranges are given, range of lengths."""
    named = [
        {
            **cell,
            "task": names[kind_of(cell)[1:]],
            "lengths": None if ranges is None else ranges[cell["length"]],
        }
        for cell in cells
    ]
    for (*entrant, suite, task, lengths), sums in summed(
        named, (*ENTRANT, "suite", "task", "lengths")
    ).items():
        run, model, condition = entrant
        yield Square(
            entrant=(run, model, condition),
            suite=suite,
            task=task,
            lengths=lengths,
            value=METRICS[metric].measure(sums).value,
            **{name: sums[name] for name in ("trials", "correct", "independent")},
        )


def _cell(square: Square | None, *, metric: Metric, marked: bool) -> Cell:
    """Return a share on its colour. All cells of a table are equally wide, so that colours make a surface."""
    if square is None or square.value is None:
        return ""
    mark = MARK if square.few else ""
    if not metric.share:
        return f"{mark}{square.value:.3g}"
    return shaded(
        f"{mark}{whole_percent(square.value)}".rjust(4 if marked else 3), accuracy_goodness(square.value)
    )


def range_text(lengths: Lengths | None) -> str:
    """Return the heading of a range's column: `7`, `11-20`."""
    if lengths is None:
        return ""
    first, last = lengths
    return str(first) if first == last else f"{first}-{last}"
