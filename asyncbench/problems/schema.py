"""The columns of a problem set, and the way between its batches and problems."""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeAlias

import pyarrow as pa

from asyncbench.errors import ProblemSetError
from asyncbench.records import Draft, Problem

ROWS_AT_ONCE = 8192  # of a row group, and of a batch where a whole file passes through memory
MOST_CHARACTERS = 16_000_000  # of a batch of problems, unless the last one alone has more
TOGETHER = 64  # problems made at a time
SCHEMA_VERSION = 1  # raise when a column changes meaning; adding one is not a change
PROBLEM_FIELDS: tuple["pa.Field[pa.DataType]", ...] = (
    pa.field("problem_id", pa.string(), nullable=False),  # 32 hexadecimal characters
    pa.field("suite", pa.string(), nullable=False),
    pa.field("task", pa.string(), nullable=False),
    pa.field("variant", pa.string(), nullable=False),
    pa.field("representation", pa.string(), nullable=False),
    pa.field("length", pa.int32()),  # digits, depth or characters; NULL where unknown
    pa.field("operands", pa.list_(pa.string()), nullable=False),
    pa.field("question", pa.string(), nullable=False),
    pa.field("expected", pa.string(), nullable=False),  # text: beyond 64 bits too
    pa.field("answer_type", pa.string(), nullable=False),
    pa.field("extra", pa.string(), nullable=False),  # JSON, the suite's own
)
PROBLEM_SCHEMA = pa.schema(PROBLEM_FIELDS)
DRAFTED = pa.schema(PROBLEM_FIELDS[1:])  # what a problem is before it has its id

Column: TypeAlias = "pa.Array[Any]"  # of any type: what its values are is known at run time alone

_values = attrgetter(*PROBLEM_SCHEMA.names)
drafted_values = attrgetter(*DRAFTED.names)


def batches_of(problems: Iterator[Problem], *, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield problems as batches of `rows` rows; the last may be shorter, as are those of long questions."""
    waiting, left = list[Problem](), MOST_CHARACTERS
    for problem in problems:
        waiting.append(problem)
        left -= len(problem.question) + len(problem.expected)
        if left < 0 or len(waiting) == rows:
            yield _batch(map(_values, waiting), PROBLEM_SCHEMA)
            waiting, left = [], MOST_CHARACTERS
    if waiting:
        yield _batch(map(_values, waiting), PROBLEM_SCHEMA)


def drafted(drafts: Iterable[Draft]) -> pa.RecordBatch:
    """Return drafts, at least one, as a batch of the schema without ids."""
    return _batch(map(drafted_values, drafts), DRAFTED)


def _batch(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class ProblemRows:
    """The problems of a batch of this schema: each is made, with its neighbours, when it is asked for."""

    __slots__ = ("_batch", "_made", "_start")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._made: list[Problem] = []
        self._start = -1

    def problem(self, row: int) -> Problem:
        """Return the problem of a row, the first being 0."""
        start = row - row % TOGETHER
        if start != self._start:
            values = self._batch.slice(start, TOGETHER).to_pylist()
            self._made = [Problem(**{**value, "operands": tuple(value["operands"])}) for value in values]
            self._start = start
        return self._made[row - start]


def problems_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Problem]:
    """Yield the problems of batches of this schema."""
    for batch in batches:
        yield from map(ProblemRows(batch).problem, range(batch.num_rows))


def is_text(given: pa.DataType) -> bool:
    """Return whether a column of this type holds text, however it is encoded."""
    if pa.types.is_dictionary(given):
        return is_text(given.value_type)
    return pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given)


def converted(column: Column, wanted: pa.DataType, *, place: str) -> Column:
    """Return a column as another type.

    Raises:
        ProblemSetError: it holds a value that the type cannot; `place` says which column it is.
    """
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise ProblemSetError(f"{place}: {error}. Write it as {wanted}.") from error
