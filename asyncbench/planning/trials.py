"""Trials from a sweep and its problem sets, with their ids, in order; and the columns of these ids."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from math import gcd
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from asyncbench.config.sweep import Sweep
from asyncbench.problems.problem_set import ProblemSet, counted
from asyncbench.problems.samples import DRAWN_FROM, drawn_rows
from asyncbench.problems.schema import PROBLEM_SCHEMA, ProblemRows
from asyncbench.records import Cell, Condition, Model, Problem, Trial
from asyncbench.store.catalog import texts
from asyncbench.store.id_set import IdColumn, IdSet, strung
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES

# ── problem sets as models are asked them

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

ROWS: Final = 65_536  # of a problem set at a time, where few columns are read
AT_ONCE: Final = 32_768  # problems in memory: fewer, and one sorted otherwise is read again and again
CHARACTERS_AT_ONCE: Final = 2**26  # of their questions
Slots = Mapping["Slot", IdColumn]  # the trials of a model, or which of them
Tasks = Mapping[str, Mapping[str, int]]  # suite → task → problems


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSource:
    """A problem set as one model is asked it: in its order, and without what an earlier set also holds."""

    problems: ProblemSet
    tasks: Tasks  # those asked
    order: npt.NDArray[np.int32] = field(compare=False)  # rows of the file, as they are asked

    @property
    def rows(self) -> int:
        """Problems asked."""
        return len(self.order)

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None, *, start: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the problems asked, as they are asked.

        Args:
            columns: of a problem set; None: all.
            rows: how many of the first are wanted; None: all.
            start: how many of them to leave out.
        """
        at_once = max(1, min(AT_ONCE, CHARACTERS_AT_ONCE // max(1, self.problems.longest_question)))
        wanted = self.order[start:rows]
        for i in range(0, max(1, len(wanted)), at_once):
            # The file is read once for these rows, from the first of them to the last; then they are ordered.
            indices = wanted[i : i + at_once]
            in_file = np.sort(indices)
            offset, end = (int(in_file[0]), int(in_file[-1])) if len(indices) else (0, -1)
            taken = list[pa.RecordBatch]()
            for batch in self.problems.batches(at_once, offset, columns or PROBLEM_SCHEMA.names):
                first, last = np.searchsorted(in_file, (offset, offset + batch.num_rows))
                taken.append(batch.take(in_file[first:last] - offset))
                offset += batch.num_rows
                if offset > end:
                    break
            order = np.searchsorted(in_file, indices)
            table: Any = pa.Table.from_batches(taken).take(order).combine_chunks()
            arrays = [column.chunk(0) for column in table.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=table.schema)

    def problem(self, i: int) -> Problem:
        """Return the problem that is asked after `i` others."""
        return next(self.problems.read(1, int(self.order[i])))


class Slot(NamedTuple):
    """Of all trials of a model those that are asked for the same time, of one set, under one condition."""

    repeat: int
    set_number: int
    condition: str


def numbered(table: pa.Table, names: Sequence[str]) -> tuple[IdColumn, pa.Table]:
    """Return for each row the number of its values in some columns, and a row with these for each number.

    They are numbered from 0 on, as they first appear.
    """
    numbers: Any = pa.repeat(pa.scalar(0, pa.int64()), len(table))
    for name in names:
        column: Any = table[name].combine_chunks()
        codes = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode("encode")
        codes = codes.indices.cast(pa.int64())
        count = (pc.max(codes).as_py() or 0) + 1
        numbers = pc.add(pc.multiply(numbers, pa.scalar(count)), codes)
        numbers = numbers.dictionary_encode().indices.cast(pa.int64())
    rows = pa.table({"number": numbers, "row": np.arange(len(table), dtype=np.int32)})
    firsts = rows.group_by("number", use_threads=False).aggregate([("row", "min")])["row_min"]
    return pa.chunked_array([numbers.cast(pa.int32())]), table.select(list(names)).take(firsts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The trials of a model that need no call."""

    done: int  # closed by earlier runs
    failed: int  # those of them without a reply
    rows: Mapping[Slot, bytes]  # a byte for each problem asked: whether nothing of it is to be asked

    def whole_rows(self, repeat: int, set_number: int) -> bytes:
        """Return a byte for each problem of a set: whether it is to be asked under no condition."""
        columns = [mask for slot, mask in self.rows.items() if slot[:2] == (repeat, set_number)]
        return bytes(map(all, zip(*columns, strict=True))) if len(columns) > 1 else columns[0]


# ── the order of the problems of a set
# add 2, sub 8, mul 5, div 3, add 6, sub 4, … and not add 2, add 3, add 4, …


Rows = npt.NDArray[np.int32]
CELL: Final = Cell._fields  # columns of a problem set
OPERATION: Final = CELL[:-1]  # without the length
_GOLDEN: Final = 0.618  # of all lengths: leaps of about so many meet short and long ones in turn


def balanced_rows(problems: ProblemSet) -> Rows:
    """Return the rows of a set in the order in which a sweep asks them.

    The operations take turns until each has no more problems, and so do the lengths of each operation. One
    begins at another length than the next and goes on by leaps, so that already a few problems are short
    and long. Those of one operation and length keep their order.
    """
    cells = pa.Table.from_batches(problems.batches(ROWS, columns=CELL))
    codes, firsts = numbered(cells, CELL)

    # the place of each cell: operations stand as they first appear
    kinds = firsts.to_pylist()
    cells_by_operation: dict[tuple[str, ...], list[int]] = {}
    for i, kind in enumerate(kinds):
        cells_by_operation.setdefault(tuple(kind[name] for name in OPERATION), []).append(i)
    places = np.zeros((len(kinds), 2), np.int32)  # its operation among all, its length among those of it
    operations = len(cells_by_operation)
    for n, numbers in enumerate(cells_by_operation.values()):
        numbers.sort(key=lambda i: (kinds[i]["length"] is None, kinds[i]["length"]))

        # each length once, by leaps: where all operations have the same lengths, those asked in turn are as
        # different as can be
        lengths = len(numbers)
        leap = next(step for step in range(round(_GOLDEN * lengths), 0, -1) if gcd(step, lengths) == 1)
        around = lengths // gcd(operations, lengths)  # turns after which it would be where it began
        for rank in range(lengths):
            places[numbers[(rank * operations + n + rank // around) * leap % lengths]] = n, rank

    # operations take turns, and so do the lengths of each
    cell = codes.to_numpy()
    operation, length = places[cell].T
    in_cell = _counted(cell, np.argsort(cell, kind="stable"))
    in_operation = _counted(operation, np.lexsort((length, in_cell, operation)))
    return np.lexsort((operation, in_operation)).astype(np.int32)


def _counted(groups: Rows, order: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Return how many of its group stand before each row, in an order that has the groups one by one."""
    sizes = np.bincount(groups)
    counted = np.empty(len(groups), np.int64)
    counted[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return counted


# ── trials

ROWS_AT_ONCE = 1024  # whose columns are Python lists


def trial_sources(sets: Sequence[ProblemSet]) -> tuple[TrialSource, ...]:
    """Return the sets as they are asked: a problem found in two of them belongs to the first.

    Only sets that share a suite can share a problem; their ids are held in memory while comparing.
    """
    sources: list[TrialSource] = []
    for later in sets:
        earlier = [source for source in sources if {*source.problems.suites} & {*later.suites}]
        twice = _repeated_problems(later, earlier) if earlier else {}
        skipped = Counter(twice.values())
        tasks = {
            suite: {task: rows - skipped[suite, task] for task, rows in counts.items()}
            for suite, counts in later.tasks.items()
        }
        if later.sample is None:
            order = balanced_rows(later)
        else:
            order = drawn_rows(later.batches(ROWS, columns=DRAWN_FROM), later.sample)
        if twice:
            batches = later.batches(ROWS, columns=["problem_id"])
            ids = pa.chunked_array([batch["problem_id"] for batch in batches], pa.string())
            included = ~pc.is_in(ids, value_set=pa.array(twice, pa.string())).to_numpy()
            order = order[included[order]]
        source = TrialSource(problems=later, tasks=tasks, order=order)

        # Of a sample, the problems of each task are counted.
        if later.sample is not None:
            drawn = dict[str, Counter[str]]()
            for batch in source.batches(["suite", "task"]):
                for row in counted(batch, ("suite", "task")):
                    drawn.setdefault(row["suite"], Counter())[row["task"]] += row["count_all"]
            source = replace(source, tasks=drawn)
        sources.append(source)
    return tuple(sources)


def _repeated_problems(later: ProblemSet, earlier: Sequence[TrialSource]) -> dict[str, tuple[str, str]]:
    """Return the problems of a set that are asked of earlier ones as well: id → suite and task."""
    columns = ["problem_id", "suite", "task"]
    batches = (
        batch
        for source in earlier
        for batch in (
            source.batches(columns)
            if source.problems.sample
            else source.problems.batches(ROWS, columns=columns)
        )
    )
    earlier_ids = IdSet(pa.chunked_array([batch["problem_id"] for batch in batches], pa.string()))
    rows = pa.Table.from_batches(later.batches(ROWS, columns=columns))
    twice = rows.filter(earlier_ids.among(rows["problem_id"])).to_pylist()
    return {row["problem_id"]: (row["suite"], row["task"]) for row in twice}


def sources_by_model(
    sweep: Sweep, models: Sequence[Model], placed: Mapping[str, ProblemSet]
) -> dict[str, tuple[TrialSource, ...]]:
    """Return the problem sets of each model by alias, from sets by their place in the sweep.

    Models with the same problems share one answer.
    """
    sources: dict[tuple[str, ...], tuple[TrialSource, ...]] = {}
    by_alias = dict[str, tuple[TrialSource, ...]]()
    for model in models:
        places = places_of(sweep, model)
        if places not in sources:
            named = sweep.problems_of(model)
            sources[places] = trial_sources(
                [replace(placed[source.place], sample=source.sample) for source in named]
            )
        by_alias[model.alias] = sources[places]
    return by_alias


def places_of(sweep: Sweep, model: Model) -> tuple[str, ...]:
    """Return where a model's problems come from, by their place in the sweep, in order."""
    return tuple(source.place for source in sweep.problems_of(model))


def conditions_of(sweep: Sweep, alias: str, suite: str) -> tuple[Condition, ...]:
    """Return how a model is asked the problems of a suite."""
    return tuple(condition for condition in sweep.conditions_of(alias) if condition.is_for(suite))


def planned_tasks(
    sweep: Sweep, alias: str, sets: Sequence[TrialSource]
) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many trials a model has in this sweep: condition → suite → task → trials."""
    trials: dict[str, dict[str, dict[str, int]]] = {}
    for suite, counts in (tasks for source in sets for tasks in source.tasks.items()):
        for condition in conditions_of(sweep, alias, suite):
            sums = trials.setdefault(condition.name, {}).setdefault(suite, {})
            for task, rows in counts.items():
                sums[task] = sums.get(task, 0) + rows * sweep.repeats
    return trials


def planned(
    sweep: Sweep, alias: str, sets: Sequence[TrialSource], *, limit: int | None, per_cell: int | None = None
) -> int:
    """Return how many trials a model has in this sweep, or in its first problems: see `trials_of`."""
    if limit is None and per_cell is None:
        plan = planned_tasks(sweep, alias, sets)
        return sum(sum(tasks.values()) for suites in plan.values() for tasks in suites.values())
    repeats = sweep.repeats if per_cell is None else 1
    problems = _chosen(sets, limit, per_cell, None, 0)
    first = Counter(problem.batch.suites[problem.row] for problem in problems)
    return repeats * sum(len(conditions_of(sweep, alias, suite)) * count for suite, count in first.items())


def trials_of(
    sweep: Sweep,
    model: Model,
    sets: Sequence[TrialSource],
    *,
    limit: int | None,
    per_cell: int | None = None,
    closed: Closed | None = None,
    skip: Callable[[str], bool] = lambda _: False,
    left_out: Callable[[str, Cell, str], None] | None = None,
    model_of: Callable[[Model, str], Model] = lambda model, _: model,
    load: str | None = None,
) -> Iterator[Trial]:
    """Yield one model's trials, every prefix of them balanced over sets and cells.

    Args:
        sweep, model, sets: conditions and repeats; who is asked; what is asked.
        limit: at most this many problems.
        per_cell: of each cell at most this many of them, each once whatever `repeats` says; None: all.
        closed: which trials need no call, as far as that is known: they are not even looked at.
        skip: gets the id of each other trial, in order, and returns whether to leave it out.
        left_out: gets condition, cell and id of each trial that is left out, but of no further repeat.
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
        for suite in {suite for source in sets for suite in source.tasks}
    }
    for repeat in range(sweep.repeats if per_cell is None else 1):
        for _, number, i, row, batch in _chosen(sets, limit, per_cell, closed, repeat):
            problem_id = batch.ids[row]
            for condition, variant, trial_ids, version in ids[batch.suites[row]]:
                if closed is not None and closed.rows[Slot(repeat, number, condition.name)][i]:
                    continue
                trial_id = trial_ids.make(problem_id, prompt_version=version, repeat=repeat)
                if skip(trial_id):
                    if left_out is not None and not repeat:
                        left_out(condition.name, batch.cell(row), trial_id)
                    continue
                yield Trial(
                    trial_id=trial_id,
                    run=sweep.name,
                    sweep=sweep.name,
                    problem_set=batch.problem_set,
                    problem=batch.problem(row),
                    model=model_of(variant, trial_id),
                    condition=condition,
                    repeat=repeat,
                    load=load,
                )


class _BatchRows(ProblemRows):
    """Rows of a problem set, with the cell of each."""

    __slots__ = ("_cells", "ids", "problem_set", "suites")

    def __init__(self, batch: pa.RecordBatch, problem_set: str) -> None:
        super().__init__(batch)
        self.problem_set = problem_set
        self.ids, self.suites = (
            cast("list[str]", batch[column].to_pylist()) for column in ("problem_id", "suite")
        )
        self._cells: list[Cell] = []

    def cell(self, row: int) -> Cell:
        if not self._cells:
            columns = (self._batch[name].to_pylist() for name in CELL)
            self._cells = list(map(Cell._make, zip(*columns, strict=True)))
        return self._cells[row]


class _ProblemPlace(NamedTuple):
    """The place of a problem among all that are asked; of what `skip` leaves out nothing else is made."""

    position: float  # in [0, 1)
    set_number: int  # equal places keep the sets' order
    number: int  # among those asked of its set
    row: int  # of its batch
    batch: _BatchRows


def _chosen(
    sets: Sequence[TrialSource], limit: int | None, per_cell: int | None, closed: Closed | None, repeat: int
) -> Iterator[_ProblemPlace]:
    """Yield the problems that are asked, in order: each set is spread evenly over the whole."""
    placed = (
        _placed(source, number, None if closed is None else closed.whole_rows(repeat, number))
        for number, source in enumerate(sets)
    )
    problems = islice(heapq.merge(*placed), limit if closed is None else None)
    return problems if per_cell is None else _first_of_cells(problems, per_cell)


def _first_of_cells(problems: Iterator[_ProblemPlace], count: int) -> Iterator[_ProblemPlace]:
    """Yield the first problems of each cell."""
    taken = Counter[Cell]()
    for problem in problems:
        cell = problem.batch.cell(problem.row)
        if taken[cell] < count:
            taken[cell] += 1
            yield problem


def _placed(source: TrialSource, set_number: int, closed: bytes | None) -> Iterator[_ProblemPlace]:
    """Yield the places of an asked set's problems, in its order; `closed`: only of those where it is 0."""
    count = source.rows
    start = 0 if closed is None else closed.find(0)
    last = count if closed is None else closed.rfind(0) + 1
    if start < 0:
        return
    i = start
    for rows in source.batches(rows=last, start=start):
        for first in range(0, rows.num_rows, ROWS_AT_ONCE):
            batch = _BatchRows(rows.slice(first, ROWS_AT_ONCE), source.problems.name)
            for row in range(len(batch.ids)):
                if closed is None or not closed[i]:
                    yield _ProblemPlace((i + 0.5) / count, set_number, i, row, batch)
                i += 1


# ── columns of ids, and which of them are closed: no trial is made


def rows_within(sets: Sequence[TrialSource], limit: int | None) -> list[int]:
    """Return the number of problems of each set among the first `limit`. Without a limit, all count."""
    if limit is None or len(sets) == 1:
        return [source.rows if limit is None else min(limit, source.rows) for source in sets]

    def places(number: int, rows: int) -> Iterator[tuple[float, int]]:
        return (((i + 0.5) / rows, number) for i in range(rows))

    merged = heapq.merge(*(places(number, source.rows) for number, source in enumerate(sets)))
    first = Counter(number for _, number in islice(merged, limit))
    return [first[number] for number in range(len(sets))]


def ids_of(
    sweep: Sweep, model: Model, sets: Sequence[TrialSource], *, limit: int | None
) -> dict[Slot, IdColumn]:
    """Return the ids of a model's trials, in the order of each set; NULL where a condition is for others."""
    by_slot: dict[Slot, IdColumn] = {}
    conditions = sweep.conditions_of(model.alias)
    for number, (source, rows) in enumerate(zip(sets, rows_within(sets, limit), strict=True)):
        batches = list(source.batches(["problem_id", "suite"], rows))
        for condition in conditions:
            ids = TrialIds(model, condition)
            for repeat in range(sweep.repeats):
                slot = Slot(repeat, number, condition.name)
                columns = [_ids(batch, ids, condition, source.tasks, repeat) for batch in batches]
                by_slot[slot] = pa.chunked_array(columns, pa.string())
    return by_slot


def _ids(
    batch: pa.RecordBatch, ids: TrialIds, condition: Condition, suites: Collection[str], repeat: int
) -> Any:  # Any: a column
    trial_ids: Any = pa.nulls(batch.num_rows, pa.string())
    for suite in filter(condition.is_for, suites):
        in_suite = pc.equal(batch["suite"], pa.scalar(suite))
        problem_ids = texts(batch["problem_id"].filter(in_suite))
        version = SUITES[suite].prompt_version
        suite_ids = pa.array(ids.make_all(problem_ids, prompt_version=version, repeat=repeat), pa.string())
        trial_ids = (
            suite_ids
            if len(suite_ids) == len(trial_ids)
            else pc.replace_with_mask(trial_ids, in_suite, suite_ids)
        )
    return trial_ids


def membership_of(ids: Iterable[tuple[str, Slots]], members: IdSet) -> dict[str, dict[Slot, IdColumn]]:
    """Return a mask of the trials in a set, by alias; `ids` are made model by model, and let go."""
    lengths = dict[str, dict[Slot, int]]()

    def columns() -> Iterator[tuple[str, IdColumn]]:
        for alias, slots in ids:
            lengths[alias] = {slot: len(column) for slot, column in slots.items()}
            yield alias, strung(slots.values())

    masks = map(pc.is_valid, members.places_each(columns()))
    membership = dict[str, dict[Slot, IdColumn]]()
    for alias, mask in zip(lengths, masks, strict=True):
        starts = accumulate(lengths[alias].values(), initial=0)
        membership[alias] = {
            slot: mask.slice(next(starts), length) for slot, length in lengths[alias].items()
        }
    return membership


def closed_trials(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, Sequence[TrialSource]],
    *,
    limit: int | None,
    finished: IdSet,
    failed: IdSet,
) -> dict[str, Closed]:
    """Return the finished trials of each model, by alias.

    Args:
        sweep, models, sets: who is asked what; the sets by alias.
        limit: at most this many problems of each model; the others are not asked either.
        finished: trials that need no call.
        failed: those of them without a reply.
    """
    lost, nobodys = dict[str, int](), dict[str, Slots]()

    def ids() -> Iterator[tuple[str, Slots]]:
        for model in models:
            made = ids_of(sweep, model, sets[model.alias], limit=limit)
            lost[model.alias] = _count(failed.among(strung(made.values())))
            nobodys[model.alias] = {slot: pc.is_null(column) for slot, column in made.items()}
            yield model.alias, made

    return {
        alias: Closed(
            done=sum(map(_count, slots.values())),
            failed=lost[alias],
            rows={slot: _bytes(pc.or_(mask, nobodys[alias][slot])) for slot, mask in slots.items()},
        )
        for alias, slots in membership_of(ids(), finished).items()
    }


def _count(mask: IdColumn) -> int:
    return pc.sum(mask).as_py() or 0


def _bytes(mask: IdColumn) -> bytes:
    column: Any = pa.concat_arrays(mask.cast(pa.uint8()).chunks or [pa.array([], pa.uint8())])
    return bytes(column.buffers()[1].to_pybytes()[: len(column)])
