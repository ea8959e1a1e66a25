"""The remaining trials of a sweep, counted by shape; problems are streamed, never all in memory."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.config.sweep import Sweep
from asyncbench.planning.finished import TELLING_REPLIES, SeenUse, TrialGroup
from asyncbench.planning.modes import has_mode_auto
from asyncbench.planning.preflight import check_conditions, check_sets, open_sources, sources_of
from asyncbench.planning.trials import (
    CELL,
    Slot,
    TrialSource,
    ids_of,
    membership_of,
    numbered,
    places_of,
    rows_within,
    sources_by_model,
)
from asyncbench.problems.making import generate
from asyncbench.problems.schema import problems_of
from asyncbench.records import Cell, Condition, Model
from asyncbench.store.id_set import IdColumn, IdSet, strung
from asyncbench.suites.requests import TOKENS_BESIDE_A_MESSAGE, asks_as_it_stands, worded_size

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"


class Shape(NamedTuple):
    """All that a trial's cost depends on: many thousand trials have a few thousand shapes."""

    cell: Cell
    condition: str
    question: int  # characters, with all that the suite adds to it
    question_tokens: int  # of them at most, as a budget counts
    answer: int  # characters


_SIZES = Shape._fields[2:]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedProblems:
    """The problems of a set as they are asked under one condition."""

    source: TrialSource
    shapes: Sequence[Shape]
    numbers: Any  # a column: for each problem the number of its shape; NULL: the condition is for others

    def counted(self, wanted: Any) -> Iterator[tuple[Shape, int, int]]:
        """Yield each shape among the problems that a column of booleans names, how often, and where first."""
        rows = pa.table({"shape": self.numbers, "row": pa.array(range(len(self.numbers)), pa.int32())})
        groups = rows.filter(wanted).group_by("shape").aggregate([([], "count_all"), ("row", "min")])
        for group in groups.to_pylist():
            if group["shape"] is not None:
                yield self.shapes[group["shape"]], group["count_all"], group["row_min"]


def shaped_problems(
    conditions: Sequence[Condition], sets: Sequence[TrialSource], repeats: int, *, limit: int | None
) -> Mapping[Slot, ShapedProblems]:
    """Return the problems of each set under each condition; the order is that of `ids_of`."""
    by_slot = dict[Slot, ShapedProblems]()
    for number, (source, rows) in enumerate(zip(sets, rows_within(sets, limit), strict=True)):
        # the sizes of the first problems as they are asked under each condition
        plain = [
            all(asks_as_it_stands(suite, condition) for suite in source.tasks) for condition in conditions
        ]
        columns = ["problem_id", *CELL, "question", "expected"]
        cells, tables_by_condition = list[Any](), [list[Any]() for _ in conditions]
        for batch in source.batches(columns if all(plain) else None, rows):
            texts = [batch[name].dictionary_encode() if name != "length" else batch[name] for name in CELL]
            cells.append(pa.table(texts, names=[*CELL]))
            answer = pc.utf8_length(batch["expected"])
            for tables, condition, as_it_stands in zip(tables_by_condition, conditions, plain, strict=True):
                sizes = _sizes(batch, None if as_it_stands else condition)
                tables.append(pa.table([*sizes, answer], names=[*_SIZES]))

        # the shapes of each condition, numbered as they first appear
        every = pa.concat_tables(cells).unify_dictionaries()
        for condition, tables in zip(conditions, tables_by_condition, strict=True):
            table = pa.concat_tables(tables)
            for name in CELL:
                table = table.append_column(name, every[name])
            index, firsts = numbered(table, [*CELL, *_SIZES])
            shapes = [
                Shape(Cell(*(row[name] for name in CELL)), condition.name, *(row[name] for name in _SIZES))
                for row in firsts.to_pylist()
            ]
            included = pa.array([condition.is_for(shape.cell.suite) for shape in shapes], pa.bool_())
            numbers = pc.if_else(included.take(index), index, pa.scalar(None, pa.int32()))
            problems = ShapedProblems(source=source, shapes=shapes, numbers=numbers)
            by_slot |= {Slot(repeat, number, condition.name): problems for repeat in range(repeats)}
    return by_slot


def _sizes(batch: pa.RecordBatch, condition: Condition | None) -> Sequence[Any]:
    """Return characters and tokens of questions in two columns, or None if they are asked unchanged."""
    if condition is None:
        questions = batch["question"]
        return pc.utf8_length(questions), pc.add(pc.binary_length(questions), TOKENS_BESIDE_A_MESSAGE)
    sizes = [
        worded_size(problem, condition) if condition.is_for(problem.suite) else (0, 0)
        for problem in problems_of([batch])
    ]
    return [pa.array([size[i] for size in sizes], pa.int32()) for i in (0, 1)]


# ── counting the remaining trials


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCounts:
    """The counts of one model's remaining and finished trials."""

    shapes: Counter[Shape]
    finished: Counter[tuple[str, Cell]]  # trials, by condition and cell
    characters: Counter[tuple[str, Cell]]  # of their questions
    ids: Mapping[str, IdColumn]  # of the finished, by condition
    longest: Mapping[str, tuple[TrialSource, int]]  # of the others: a set and which of its problems

    @property
    def cells(self) -> int:
        """Of how many cells something is left, each condition's apart."""
        return len({(shape.cell, shape.condition) for shape in self.shapes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The remaining trials of a sweep, and the usage of its finished ones."""

    sweep: Sweep
    models: Sequence[Model]  # those that are asked
    remaining: Mapping[str, RemainingCounts]  # by alias
    seen: Mapping[TrialGroup, SeenUse]
    at_s: float  # when it will be asked, for prices: UTC, seconds since 1970
    ends_s: float | None = None  # until the deadline; None: there is none

    def switches_s(self, model: Model) -> float | None:
        """Return the seconds until the deadline for which a model leaves batches, or None if it does not."""
        return self.ends_s if has_mode_auto(self.sweep, model.alias) else None

    def conditions_of(self, model: Model) -> dict[str, Condition]:
        """Return the conditions of a model by their names."""
        return {condition.name: condition for condition in self.sweep.conditions_of(model.alias)}

    def groups_left(self, model: Model) -> list[TrialGroup]:
        """Return the groups of a model of which trials are left."""
        shapes = self.remaining[model.alias].shapes
        return sorted({TrialGroup(model.alias, shape.condition, shape.cell.suite) for shape in shapes})

    def uses_of(self, model: Model) -> list[SeenUse]:
        """Return the use of a model's finished trials, for each of its groups."""
        return [use for group, use in self.seen.items() if group.model == model.alias]

    def can_forecast(self, group: TrialGroup) -> bool:
        """Return whether enough replies were seen to forecast those to come."""
        return group in self.seen and self.seen[group].replies >= TELLING_REPLIES


@contextmanager
def planned_sets(sweep: Sweep, models: Sequence[Model]) -> Iterator[dict[str, tuple[TrialSource, ...]]]:
    """Yield the questions of each model by alias; sets that are not files yet last as long as the body.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting.
    """
    files = open_sources(sweep, models)
    check_conditions(sweep, models, files)
    with TemporaryDirectory(prefix="asyncbench-plan-") as made:
        for i, source in enumerate(sources_of(sweep, models)):
            if source.place not in files:
                out = Path(made, f"{source.suite}-{i}.parquet")
                suite, parameters = str(source.suite), source.parameters
                problems = generate(suite, out, seed=source.seed, exclude=(), **parameters)
                files[source.place] = replace(problems, name=source.name)
        sets = sources_by_model(sweep, models, files)
        check_sets(sweep, models, sets)
        yield sets


def remaining_by_model(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[TrialSource, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
    skipped: Collection[str] = (),
) -> dict[str, RemainingCounts]:
    """Return the rest by alias; where nothing is finished, equal problems are counted once.

    Trials that were skipped, for enough was known of their cells, are neither left nor finished. No id is
    made where nothing is finished or skipped.
    """
    closed = _closed_slots(sweep, models, sets, limit, IdSet.collect(finished), IdSet.collect(skipped))
    shaped, counted = dict[object, Mapping[Slot, ShapedProblems]](), dict[object, RemainingCounts]()
    by_model = dict[str, RemainingCounts]()
    for model in models:
        conditions, alias = sweep.conditions_of(model.alias), model.alias
        same_trials = (places_of(sweep, model), tuple(condition.name for condition in conditions))
        if same_trials not in shaped:
            shaped[same_trials] = shaped_problems(conditions, sets[alias], sweep.repeats, limit=limit)
        key = alias if closed else same_trials
        if key not in counted:
            counted[key] = _remaining_of(shaped[same_trials], closed.get(alias, {}))
        by_model[alias] = counted[key]
    return by_model


class _ClosedSlot(NamedTuple):
    """The finished trials of a slot, and those that are neither finished nor skipped."""

    ids: IdColumn  # of the finished
    finished: IdColumn  # of booleans, one for each problem
    remaining: IdColumn


def _closed_slots(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[TrialSource, ...]],
    limit: int | None,
    finished: IdSet,
    skipped: IdSet,
) -> dict[str, dict[Slot, _ClosedSlot]]:
    """Return finished and skipped slots by alias, if there are any."""
    if not finished and not skipped:
        return {}
    ids = {model.alias: ids_of(sweep, model, sets[model.alias], limit=limit) for model in models}
    done_rows, skipped_rows = membership_of(ids.items(), finished), membership_of(ids.items(), skipped)
    closed = dict[str, dict[Slot, _ClosedSlot]]()
    for alias in done_rows:
        slots = closed[alias] = dict[Slot, _ClosedSlot]()
        for slot, column in ids.pop(alias).items():
            needed = pc.invert(skipped_rows[alias][slot])
            done = pc.and_(done_rows[alias][slot], needed)
            kept = column if pc.all(done).as_py() else column.filter(done)
            slots[slot] = _ClosedSlot(kept, done, pc.and_(needed, pc.invert(done)))
    return closed


def _remaining_of(
    shaped: Mapping[Slot, ShapedProblems], closed: Mapping[Slot, _ClosedSlot]
) -> RemainingCounts:
    """Return the rest of a model's trials, of which some are `closed`, or none."""
    order: dict[Shape, tuple[object, ...]] = {}  # where the first trial of a shape stands among all
    firsts = dict[Shape, tuple[TrialSource, int]]()  # its problem: a set, and which of it
    shapes = Counter[Shape]()
    finished, characters = Counter[tuple[str, Cell]](), Counter[tuple[str, Cell]]()
    ids = defaultdict[str, list[IdColumn]](list)
    for number, (slot, problems) in enumerate(shaped.items()):
        remaining = pc.is_valid(problems.numbers)
        if closed_slot := closed.get(slot):
            for shape, count, _ in problems.counted(closed_slot.finished):
                finished[slot.condition, shape.cell] += count
                characters[slot.condition, shape.cell] += count * shape.question
            ids[slot.condition].append(closed_slot.ids)
            remaining = pc.and_(remaining, closed_slot.remaining)
        for shape, count, row in problems.counted(remaining):
            shapes[shape] += count
            position = (slot.repeat, (row + 0.5) / problems.source.rows, slot.set_number, number)
            if shape not in order or position < order[shape]:
                order[shape], firsts[shape] = position, (problems.source, row)

    ordered = sorted(shapes, key=order.__getitem__)  # as the trials are asked: sums of dollars stay the same
    longest = dict[str, Shape]()
    for shape in ordered:
        if shape.condition not in longest or shape.question > longest[shape.condition].question:
            longest[shape.condition] = shape
    return RemainingCounts(
        shapes=Counter({shape: shapes[shape] for shape in ordered}),
        finished=finished,
        characters=characters,
        ids={name: strung(columns) for name, columns in ids.items() if any(map(len, columns))},
        longest={name: firsts[shape] for name, shape in longest.items()},
    )
