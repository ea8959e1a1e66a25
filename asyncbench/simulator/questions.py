"""The questions a simulator knows the answer of, read from problem sets."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from asyncbench.errors import ProblemSetError
from asyncbench.problems.files import ParquetColumns, opened_parquet
from asyncbench.suites.chats import map_contents
from asyncbench.suites.numbers import rewritten


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """What is right, and how long the problem is."""

    expected: str
    length: int


# What `asyncbench doctor` asks every model: known without any problem set, and not counted.
DOCTORS_QUESTION: Final = "What is 2 + 2? Answer with the number alone."
DOCTORS_ANSWER: Final = "4"


OPENING: Final = 6  # characters of a question by which it is looked for in a longer text


class FormIndex(NamedTuple):
    """The questions with their numbers in one form."""

    answers: dict[bytes, KnownAnswer]  # by the digest of a question
    lengths: dict[str, set[int]]  # of the questions, by how they begin


class Questions:
    """The known answers by question; digests of questions are in memory, not their texts."""

    def __init__(self, problem_sets: Sequence[Path]) -> None:
        """Read whole problem sets; of a question found twice the first counts.

        Raises:
            ProblemSetError: a file is missing, is not Parquet or lacks a column.
        """
        self._sets = tuple(problem_sets)
        self._by_form: dict[tuple[str, ...], FormIndex] = {(): self._read(())}

    def __len__(self) -> int:
        return len(self._by_form[()].answers)

    def find(self, question: str, digits: tuple[str, ...] = ()) -> KnownAnswer | None:
        """Return the answer to a question, or None if it is in no problem set.

        With `digits` the numbers of the question are in these forms; those of the answer are plain.
        """
        answer = self._index(digits).answers.get(digest(question))
        if answer is None and question == DOCTORS_QUESTION:
            return KnownAnswer(DOCTORS_ANSWER, len(DOCTORS_ANSWER))
        return answer

    def find_inside(self, message: str, digits: tuple[str, ...] = ()) -> str | None:
        """Return the longest question in a message, the last of equally long ones, or None."""
        longest, index = "", self._index(digits)
        openings = {len(opening) for opening in index.lengths}
        for start in range(len(message)):
            for opening in openings:
                for length in index.lengths.get(message[start : start + opening], ()):
                    question = message[start : start + length]
                    if length >= len(longest) and digest(question) in index.answers:
                        longest = question
        return longest or None

    def _index(self, digits: tuple[str, ...]) -> FormIndex:
        if digits not in self._by_form:
            self._by_form[digits] = self._read(digits)
        return self._by_form[digits]

    def _read(self, digits: tuple[str, ...]) -> FormIndex:
        answers, lengths = dict[bytes, KnownAnswer](), dict[str, set[int]]()
        for path in self._sets:
            for row in rows(path, ["question", "expected"], also=["length", "operands"]):
                form = partial(rewritten, digits=digits, numbers=row.get("operands") or ())
                question = map_contents(row["question"], form)
                expected, length = row["expected"], row.get("length")
                answer = KnownAnswer(expected, len(expected) if length is None else length)
                answers.setdefault(digest(question), answer)
                lengths.setdefault(question[:OPENING], set()).add(len(question))
        return FormIndex(answers, lengths)


def digest(question: str) -> bytes:
    """Return the 16 bytes that stand for the text of a question."""
    return blake2b(question.encode(), digest_size=16).digest()


def rows(path: Path, texts: Sequence[str], *, also: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a problem set in file order.

    Args:
        path: the file.
        texts: the columns that it must have, of text; none of them is NULL.
        also: columns that are read where it has them.

    Raises:
        ProblemSetError: the file is missing, is not Parquet, or lacks a column or a value of `texts`.
    """
    with opened_parquet(path) as file:
        reader = ParquetColumns(path, file)
        schema = reader.schema
        for name in texts:
            kind = schema.field(name).type if name in schema.names else pa.null()
            if isinstance(kind, pa.DictionaryType):
                kind = kind.value_type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                there = ", ".join(schema.names)
                raise ProblemSetError(
                    f"{path}: a problem set needs a text column {name!r}; its columns: {there}"
                )
        columns = [*texts, *(name for name in also if name in schema.names)]
        for batch in reader.batches(columns, rows=4096):
            for row in batch.to_pylist():
                if missing := [name for name in texts if row[name] is None]:
                    lacks = " and no ".join(missing)
                    raise ProblemSetError(f"{path}: a problem has no {lacks}: {row}")
                yield row
