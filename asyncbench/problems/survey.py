"""What a problem set holds, gathered batch by batch while it is written or read."""

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from itertools import chain
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems.schema import PROBLEM_FIELDS, Column


class Facts(TypedDict):
    """What is known of a problem set once every row was seen."""

    rows: int
    tasks: Mapping[str, Mapping[str, int]]  # suite → task → problems, as they first appear
    longest_question: int  # characters
    digest: str  # of the content: 32 hexadecimal characters


class Survey:
    """Takes in a problem set batch by batch."""

    def __init__(self) -> None:
        self.rows = 0
        self._tasks: dict[str, Counter[str]] = {}
        self._longest_question = 0
        self._digests = [
            _TextDigest() for field in PROBLEM_FIELDS for _ in range(1 + pa.types.is_list(field.type))
        ]

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next batch: of the schema, not empty, without a null where it allows none."""
        self.rows += batch.num_rows
        self._count_tasks(batch)
        lengths = pc.utf8_length(_as_text(batch.column("question")))
        self._longest_question = max(self._longest_question, pc.max(lengths).as_py())
        for digest, texts in zip(self._digests, chain(*map(_as_texts, batch.columns)), strict=True):
            digest.add(texts)

    def _count_tasks(self, batch: pa.RecordBatch) -> None:
        pairs = pa.Table.from_batches([batch.select(["suite", "task"])])
        counted = pairs.group_by(pairs.column_names, use_threads=False).aggregate([([], "count_all")])
        for row in counted.to_pylist():
            self._tasks.setdefault(row["suite"], Counter())[row["task"]] += row["count_all"]

    @property
    def digest(self) -> str:
        """The same for the same rows, however they are grouped or encoded."""
        return blake2b(b"".join(digest.digest() for digest in self._digests), digest_size=16).hexdigest()

    @property
    def facts(self) -> Facts:
        """What was seen so far."""
        return Facts(
            rows=self.rows,
            tasks=self._tasks,
            longest_question=self._longest_question,
            digest=self.digest,
        )


class CellCounts:
    """How many problems each cell of a suite holds, where a small one may hold fewer than were asked for."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next batch of the schema."""
        cells = pa.Table.from_batches([batch.select(["task", "variant", "representation", "length"])])
        counted = cells.group_by(cells.column_names, use_threads=False).aggregate([([], "count_all")])
        for row in counted.to_pylist():
            kind = "_".join(filter(None, (row["task"], row["variant"], row["representation"])))
            self._counts.setdefault(kind, Counter())[str(row["length"])] += row["count_all"]

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Task, variant and representation → length → problems, as they first appear."""
        return {kind: dict(lengths) for kind, lengths in self._counts.items()}


class _TextDigest:
    """A column of text: all of it run together, and the length of each, in bytes, beside it."""

    def __init__(self) -> None:
        self._text, self._lengths = blake2b(), blake2b()

    def add(self, texts: pa.StringArray) -> None:
        if len(texts):
            self._text.update(_joined(texts, ""))
            self._lengths.update(_joined(_as_text(pc.binary_length(texts)), " "))
            self._lengths.update(b" ")

    def digest(self) -> bytes:
        return self._text.digest() + self._lengths.digest()


def _as_texts(column: Column) -> tuple[pa.StringArray, ...]:
    """Return the texts that a column consists of; of lists, their items and how many each has."""
    if isinstance(column, pa.ListArray):
        return _as_text(column.flatten()), _as_text(column.value_lengths())
    return (_as_text(column),)


def _as_text(column: Column) -> pa.StringArray:
    return cast("pa.StringArray", column.cast(pa.string()).fill_null(""))


def _joined(texts: pa.StringArray, separator: str) -> pa.Buffer:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined = cast("pa.StringArray", pc.binary_join(whole, separator))
    return joined[0].as_buffer()
