"""Sweep × problem sets → trials, with their ids, in order."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, cast

import pyarrow as pa

from asyncbench.config import Sweep
from asyncbench.problems import ProblemRows, ProblemSet
from asyncbench.prompting import TrialIds
from asyncbench.records import Condition, Model, Problem, Trial
from asyncbench.suites import SUITES

ROWS_AT_ONCE = 1024  # of a problem set in memory
Tasks = Mapping[str, Mapping[str, int]]  # suite → task → problems


class Cell(NamedTuple):
    """Problems of one kind and length."""

    suite: str
    task: str
    variant: str
    representation: str
    length: int | None


CELL = Cell._fields  # columns of a problem set, and of `trials_of`


def cell_of(problem: Problem) -> Cell:
    """Return the cell of a problem."""
    return Cell(problem.suite, problem.task, problem.variant, problem.representation, problem.length)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSet:
    """A problem set as one model is asked it: without the problems that an earlier set also holds."""

    problems: ProblemSet
    tasks: Tasks  # those asked
    skip: frozenset[str] = frozenset()  # problem ids

    @property
    def rows(self) -> int:
        """Problems asked."""
        return self.problems.rows - len(self.skip)


def asked_once(sets: Sequence[ProblemSet]) -> tuple[AskedSet, ...]:
    """Return the sets so that a problem found in two of them belongs to the first.

    Only sets that share a suite can share a problem; their ids are held in memory while comparing.
    """
    asked: list[AskedSet] = []
    for later in sets:
        earlier = [before.problems for before in asked if set(before.problems.suites) & set(later.suites)]
        seen = {problem.problem_id for problems in earlier for problem in problems.read()}
        again = (problem for problem in later.read() if problem.problem_id in seen) if seen else ()
        twice = {problem.problem_id: (problem.suite, problem.task) for problem in again}
        skipped = Counter(twice.values())
        tasks = {
            suite: {task: rows - skipped[suite, task] for task, rows in counts.items()}
            for suite, counts in later.tasks.items()
        }
        asked.append(AskedSet(problems=later, tasks=tasks, skip=frozenset(twice)))
    return tuple(asked)


def asked_by_model(
    sweep: Sweep, models: Sequence[Model], placed: Mapping[str, ProblemSet]
) -> dict[str, tuple[AskedSet, ...]]:
    """Return what each model is asked, by alias, of problem sets by their place in the sweep.

    Models with the same problems share one answer.
    """
    asked: dict[tuple[str, ...], tuple[AskedSet, ...]] = {}
    for places in (places_of(sweep, model) for model in models):
        if places not in asked:
            asked[places] = asked_once([placed[place] for place in places])
    return {model.alias: asked[places_of(sweep, model)] for model in models}


def places_of(sweep: Sweep, model: Model) -> tuple[str, ...]:
    """Return where a model's problems come from, by their place in the sweep, in order."""
    return tuple(source.place for source in sweep.problems_of(model))


def conditions_of(sweep: Sweep, alias: str, suite: str) -> tuple[Condition, ...]:
    """Return how a model is asked the problems of a suite."""
    return tuple(condition for condition in sweep.conditions_of(alias) if condition.is_for(suite))


def planned_tasks(sweep: Sweep, alias: str, sets: Sequence[AskedSet]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many trials a model has in this sweep: condition → suite → task → trials."""
    trials: dict[str, dict[str, dict[str, int]]] = {}
    for suite, counts in (tasks for asked in sets for tasks in asked.tasks.items()):
        for condition in conditions_of(sweep, alias, suite):
            sums = trials.setdefault(condition.name, {}).setdefault(suite, {})
            for task, rows in counts.items():
                sums[task] = sums.get(task, 0) + rows * sweep.repeats
    return trials


def planned(
    sweep: Sweep, alias: str, sets: Sequence[AskedSet], *, limit: int | None, per_cell: int | None = None
) -> int:
    """Return how many trials a model has in this sweep, or in its first problems: see `trials_of`."""
    if limit is None and per_cell is None:
        plan = planned_tasks(sweep, alias, sets)
        return sum(sum(tasks.values()) for suites in plan.values() for tasks in suites.values())
    repeats = sweep.repeats if per_cell is None else 1
    first = (suite for _, _, _, _, suite, _, _ in _chosen(sets, limit, per_cell))
    return repeats * sum(len(conditions_of(sweep, alias, suite)) for suite in first)


def trials_of(
    sweep: Sweep,
    model: Model,
    sets: Sequence[AskedSet],
    *,
    limit: int | None,
    per_cell: int | None = None,
    skip: Callable[[str], bool] = lambda _: False,
    left_out: Callable[[str, Cell, str], None] | None = None,
    model_of: Callable[[Model, str], Model] = lambda model, _: model,
    load: str | None = None,
) -> Iterator[Trial]:
    """Yield one model's trials, every prefix of them balanced over sets and cells.

    Args:
        sweep: conditions and repeats.
        model: who is asked.
        sets: what is asked.
        limit: at most this many problems.
        per_cell: of each cell at most this many of them, each once whatever `repeats` says; None: all.
        skip: is told each trial's id, in order; where it says yes, the trial is left out and not even made.
        left_out: is told of each of those, but further repeats: its condition, cell and id. None: nobody is.
        model_of: returns the model as a trial is asked it, of its condition's model and the trial's id.
        load: the step that asks them, which makes them trials of their own; None: no load does.
    """
    ids = {
        suite: [
            (
                condition,
                model.under(condition),
                TrialIds(model, condition, load=load),
                SUITES[suite].prompt_version,
            )
            for condition in conditions_of(sweep, model.alias, suite)
        ]
        for suite in {suite for asked in sets for suite in asked.tasks}
    }
    for repeat in range(sweep.repeats if per_cell is None else 1):
        for _, _, row, problem_id, suite, name, rows in _chosen(sets, limit, per_cell):
            for condition, asked, trial_ids, version in ids[suite]:
                trial_id = trial_ids.of(problem_id, prompt_version=version, repeat=repeat)
                if skip(trial_id):
                    if left_out is not None and not repeat:
                        left_out(condition.name, rows.cell(row), trial_id)
                    continue
                yield Trial(
                    trial_id=trial_id,
                    run=sweep.name,
                    sweep=sweep.name,
                    problem_set=name,
                    problem=rows.problem(row),
                    model=model_of(asked, trial_id),
                    condition=condition,
                    repeat=repeat,
                    load=load,
                )


class _Rows(ProblemRows):
    """A batch of a problem set, with the cell of each row."""

    __slots__ = ("_cells",)

    def __init__(self, batch: pa.RecordBatch) -> None:
        super().__init__(batch)
        self._cells: list[Cell] = []

    def cell(self, row: int) -> Cell:
        if not self._cells:
            columns = (self._batch[name].to_pylist() for name in CELL)
            self._cells = list(map(Cell._make, zip(*columns, strict=True)))
        return self._cells[row]


# Where a problem stands among all that are asked, in [0, 1), the number of its set (equal places keep the
# sets' order), its row of a batch, its id and suite, the set's name, the batch. A bare tuple: of a complete
# sweep nothing else is made, a million times.
_Place = tuple[float, int, int, str, str, str, _Rows]


def _chosen(sets: Sequence[AskedSet], limit: int | None, per_cell: int | None) -> Iterator[_Place]:
    """Yield the problems that are asked, in order: each set is spread evenly over the whole."""
    places = islice(heapq.merge(*map(_placed, sets, range(len(sets)))), limit)
    return places if per_cell is None else _first_of_cells(places, per_cell)


def _first_of_cells(places: Iterator[_Place], count: int) -> Iterator[_Place]:
    taken = Counter[Cell]()
    for place in places:
        _, _, row, _, _, _, rows = place
        cell = rows.cell(row)
        if taken[cell] < count:
            taken[cell] += 1
            yield place


def _placed(asked: AskedSet, set_number: int) -> Iterator[_Place]:
    """Yield the places of an asked set's problems, in its order."""
    i, count, name = 0, asked.rows, asked.problems.name
    for batch in asked.problems.batches(ROWS_AT_ONCE):
        rows = _Rows(batch)
        ids, suites = (cast("list[str]", batch[column].to_pylist()) for column in ("problem_id", "suite"))
        for row, (problem_id, suite) in enumerate(zip(ids, suites, strict=True)):
            if problem_id not in asked.skip:
                yield (i + 0.5) / count, set_number, row, problem_id, suite, name, rows
                i += 1
