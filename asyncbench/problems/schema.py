"""The columns of a problem set, and the conversion between batches and problems."""

from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
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


def batches_of(problems: Iterator[Problem], *, rows: int = ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Yield problems as batches of `rows` rows; the last may be shorter, as are those of long questions."""
    waiting, room = list[Problem](), MOST_CHARACTERS
    for problem in problems:
        waiting.append(problem)
        room -= len(problem.question) + len(problem.expected)
        if room < 0 or len(waiting) == rows:
            yield _batch(map(_values, waiting), PROBLEM_SCHEMA)
            waiting, room = [], MOST_CHARACTERS
    if waiting:
        yield _batch(map(_values, waiting), PROBLEM_SCHEMA)


def draft_batches(drafts: Iterator[Draft], *, rows: int = ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Yield drafts as batches of `rows` rows, without ids; the last may be shorter."""
    while batch := list(islice(drafts, rows)):
        yield _batch(map(drafted_values, batch), DRAFTED)


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


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text, however it is encoded."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):  # such as JSON
        return is_text(kind.storage_type)
    of_text = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in of_text)  # some tools call text binary


def converted(column: Column, wanted: pa.DataType, *, place: str) -> Column:
    """Return a column as another type.

    Raises:
        ProblemSetError: it holds a value that the type cannot; `place` says which column it is.
    """
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise ProblemSetError(f"{place}: {error}. Write it as {wanted}.") from error


# ── problem ids, and the count of questions already seen


class Occurrences:
    """Counts of 64-bit digests, in a hash table of two flat arrays.

    12 bytes a slot: ten million digests take 200 MB, and 300 MB while the table doubles for the last
    time; a set of Python integers would take about 900.
    """

    def __init__(self, slots: int = 1024) -> None:
        """Start with room for `slots` (a power of two); the table grows by itself."""
        self._digests = array("Q", [0]) * slots
        self._counts = array("I", [0]) * slots  # 0: a free slot
        self._taken = 0

    def add(self, digest: int) -> int:
        """Count one more of a digest, [0, 2**64), and return how often it was seen before."""
        slot = self._slot(digest)
        before = self._counts[slot]
        self._digests[slot] = digest
        self._counts[slot] = before + 1
        if not before:
            self._taken += 1
            if self._taken * 4 > len(self._counts) * 3:
                self._double()
        return before

    def count(self, digest: int) -> int:
        """Return how often a digest was seen."""
        return self._counts[self._slot(digest)]

    def _slot(self, digest: int) -> int:
        digests, counts = self._digests, self._counts
        last = len(counts) - 1
        slot = digest & last
        while counts[slot] and digests[slot] != digest:
            slot = (slot + 1) & last
        return slot

    def _double(self) -> None:
        entries = zip(self._digests, self._counts, strict=True)
        slots = 2 * len(self._counts)
        self._digests, self._counts = array("Q", [0]) * slots, array("I", [0]) * slots
        for digest, count in entries:
            if count:
                slot = self._slot(digest)
                self._digests[slot] = digest
                self._counts[slot] = count


def identified(drafts: Iterable[Draft]) -> Iterator[Problem]:
    """Yield drafts as problems, each with its id (`Ids`)."""
    ids = Ids()
    for draft in drafts:
        yield problem_from(draft, ids.of(draft.suite, draft.task, draft.question))


def problem_from(draft: Draft, problem_id: str) -> Problem:
    """Return a draft as the problem of an id."""
    return Problem(problem_id=problem_id, **dict(zip(DRAFTED.names, drafted_values(draft), strict=True)))


def add_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of drafts as batches of problems, each with its id (`Ids`)."""
    ids = Ids()
    for batch in batches:
        texts = (batch.column(name).to_pylist() for name in ("suite", "task", "question"))
        problem_ids = pa.array(map(ids.of, *texts), pa.string())
        yield pa.RecordBatch.from_arrays([problem_ids, *batch.columns], schema=PROBLEM_SCHEMA)


class Ids:
    """The ids of problems, given in the order of their set: 128 bits as 32 hexadecimal characters.

    An id says which question this is: suite, task, question, and how many of the same came before. The
    expected answer is no part of it: a corrected answer means grading again, not paying again.
    """

    def __init__(self) -> None:
        self._questions = Occurrences()

    def of(self, suite: str, task: str, question: str) -> str:
        """Return the id of the next problem."""
        # Each text with its length before it: no other texts give these bytes.
        framed = "".join(f"{len(text)}:{text}" for text in (suite, task, question))
        digest = blake2b(framed.encode(), digest_size=16)
        digest.update(b"%d" % self._questions.add(int.from_bytes(digest.digest()[:8])))
        return digest.hexdigest()
