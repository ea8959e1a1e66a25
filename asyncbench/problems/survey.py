"""What a problem set holds, gathered batch by batch while it is written or read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypedDict, cast

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
        for row in counted(batch, ("suite", "task")):
            self._tasks.setdefault(row["suite"], Counter())[row["task"]] += row["count_all"]
        lengths = pc.utf8_length(_as_text(batch.column("question")))
        self._longest_question = max(self._longest_question, pc.max(lengths).as_py())
        texts = list[pa.StringArray]()
        for column in batch.columns:  # of lists, their items and how many each has
            if isinstance(column, pa.ListArray):
                texts.append(_as_text(column.flatten()))
                column = column.value_lengths()  # what is left of it
            texts.append(_as_text(column))
        for digest, column in zip(self._digests, texts, strict=True):
            digest.add(column)

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


def counted(batch: pa.RecordBatch, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the different rows of some columns, and as `count_all` how often each is there."""
    rows = pa.Table.from_batches([batch.select(list(columns))])
    groups = rows.group_by(rows.column_names, use_threads=False).aggregate([([], "count_all")])
    return groups.to_pylist()


class CellCounts:
    """How many problems each cell of a suite holds, where a small one may hold fewer than were asked for."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take in the next batch of the schema, and return it."""
        for row in counted(batch, ("task", "variant", "representation", "length")):
            kind = "_".join(filter(None, (row["task"], row["variant"], row["representation"])))
            self._counts.setdefault(kind, Counter())[str(row["length"])] += row["count_all"]
        return batch

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
            lengths = pc.binary_length(texts)
            few = pc.unique(lengths)
            if len(few) == 1:
                self._lengths.update(b"%d " % few[0].as_py() * len(texts))
                return
            self._lengths.update(_joined(_as_text(lengths), " "))
            self._lengths.update(b" ")

    def digest(self) -> bytes:
        return self._text.digest() + self._lengths.digest()


def _as_text(column: Column) -> pa.StringArray:
    return cast("pa.StringArray", column.cast(pa.string()).fill_null(""))


def _joined(texts: pa.StringArray, separator: str) -> pa.Buffer:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined = cast("pa.StringArray", pc.binary_join(whole, separator))
    return joined[0].as_buffer()
