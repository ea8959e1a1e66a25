"""The questions a simulator knows the answer of, read from problem sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import ProblemSetError


@dataclass(frozen=True, slots=True)
class Known:
    """What is right, and how long the problem is."""

    expected: str
    length: int


class Questions:
    """Question → what is known of it; holds digests, not the questions."""

    def __init__(self, problem_sets: Sequence[Path]) -> None:
        """Read whole problem sets; of a question found twice the first counts.

        Raises:
            ProblemSetError: a file is missing, is not Parquet or lacks a column.
        """
        self._known: dict[bytes, Known] = {}
        for path in problem_sets:
            for question, known in _rows(path):
                self._known.setdefault(_digest(question), known)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, question: str) -> Known | None:
        """Return what is known of a question; None: it is in no problem set."""
        return self._known.get(_digest(question))


def _digest(question: str) -> bytes:
    return blake2b(question.encode(), digest_size=16).digest()


def _rows(path: Path) -> Iterator[tuple[str, Known]]:
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            columns = _columns(file.schema_arrow, path)
            for batch in file.iter_batches(batch_size=4096, columns=columns):
                yield from _rows_of(batch, path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ProblemSetError(f"{path}: cannot be read as a problem set: {error}") from error


def _columns(schema: pa.Schema, path: Path) -> list[str]:
    for name in ("question", "expected"):
        if name not in schema.names or not _is_text(schema.field(name).type):
            raise ProblemSetError(
                f"{path}: a problem set needs a text column {name!r}; its columns: {', '.join(schema.names)}"
            )
    return [name for name in ("question", "expected", "length") if name in schema.names]


def _is_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _rows_of(batch: pa.RecordBatch, path: Path) -> Iterator[tuple[str, Known]]:
    for row in batch.to_pylist():
        question, expected, length = row["question"], row["expected"], row.get("length")
        if question is None or expected is None:
            raise ProblemSetError(f"{path}: a problem has no question or no expected answer: {row}")
        yield question, Known(expected, len(expected) if length is None else length)
