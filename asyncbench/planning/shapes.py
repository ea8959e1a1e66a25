"""The problems of a set as columns: the shape of each, which is all that the cost of asking it depends on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from asyncbench.problems import problems_of
from asyncbench.prompting import TOKENS_BESIDE_A_MESSAGE, asks_as_it_stands, worded_size
from asyncbench.records import Condition
from asyncbench.sweeps import CELL, AskedSet, Cell, Slot, numbered, rows_within

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"


class Shape(NamedTuple):
    """All that a trial's cost depends on: many thousand trials have a few thousand shapes."""

    cell: Cell
    condition: str
    question: int  # characters, with all that the suite says beside it
    most: int  # tokens of them, as a budget counts
    answer: int  # characters


_SIZES = Shape._fields[2:]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedProblems:
    """The problems of a set as they are asked under one condition."""

    asked: AskedSet
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
    conditions: Sequence[Condition], sets: Sequence[AskedSet], repeats: int, *, limit: int | None
) -> Mapping[Slot, ShapedProblems]:
    """Return the problems of each set under each condition; the order is that of `ids_of`."""
    found = {}
    for number, (asked, rows) in enumerate(zip(sets, rows_within(sets, limit), strict=True)):
        for condition, problems in zip(conditions, _shaped(conditions, asked, rows), strict=True):
            for repeat in range(repeats):
                found[Slot(repeat, number, condition.name)] = problems
    return found


def _shaped(conditions: Sequence[Condition], asked: AskedSet, rows: int) -> Iterator[ShapedProblems]:
    plain = [all(asks_as_it_stands(suite, condition) for suite in asked.tasks) for condition in conditions]
    columns = ["problem_id", *CELL, "question", "expected"]
    batches = asked.batches(columns if all(plain) else None, rows)
    cells, sizes = list[Any](), [list[Any]() for _ in conditions]
    for batch in batches:
        texts = [batch[name].dictionary_encode() if name != "length" else batch[name] for name in CELL]
        cells.append(pa.table(texts, names=[*CELL]))
        answer = pc.utf8_length(batch["expected"])
        for of_condition, condition, as_it_stands in zip(sizes, conditions, plain, strict=True):
            said = _as_they_stand(batch) if as_it_stands else _worded(batch, condition)
            of_condition.append(pa.table([*said, answer], names=[*_SIZES]))
    every = pa.concat_tables(cells).unify_dictionaries()
    for condition, parts in zip(conditions, sizes, strict=True):
        table = pa.concat_tables(parts)
        for name in CELL:
            table = table.append_column(name, every[name])
        yield _with_numbers(table, condition, asked)


def _as_they_stand(batch: pa.RecordBatch) -> tuple[Any, Any]:
    asked = batch["question"]
    return pc.utf8_length(asked), pc.add(pc.binary_length(asked), TOKENS_BESIDE_A_MESSAGE)


def _worded(batch: pa.RecordBatch, condition: Condition) -> Collection[Any]:
    sizes = [
        worded_size(problem, condition) if condition.is_for(problem.suite) else (0, 0)
        for problem in problems_of([batch])
    ]
    return [pa.array([size[i] for size in sizes], pa.int32()) for i in (0, 1)]


def _with_numbers(table: pa.Table, condition: Condition, asked: AskedSet) -> ShapedProblems:
    """Return problems with the shapes that their columns tell, numbered as they first appear."""
    number, firsts = numbered(table, [*CELL, *_SIZES])
    shapes = [
        Shape(Cell(*(row[name] for name in CELL)), condition.name, *(row[name] for name in _SIZES))
        for row in firsts.to_pylist()
    ]
    meant = pa.array([condition.is_for(shape.cell.suite) for shape in shapes], pa.bool_())
    numbers = pc.if_else(meant.take(number), number, pa.scalar(None, pa.int32()))
    return ShapedProblems(asked=asked, shapes=shapes, numbers=numbers)
