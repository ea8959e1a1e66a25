"""A checked problem set: its facts, and its problems as a stream."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems.choices import ChoiceColumns
from asyncbench.problems.custom import CHOICES, Custom, drafts
from asyncbench.problems.files import opened_columns
from asyncbench.problems.hub import HubFile
from asyncbench.problems.recorded import OneRun, run_drafts
from asyncbench.problems.repeats import Repeats
from asyncbench.problems.samples import Sample
from asyncbench.problems.schema import (
    PROBLEM_FIELDS,
    PROBLEM_SCHEMA,
    ROWS_AT_ONCE,
    SCHEMA_VERSION,
    Column,
    batches_of,
    converted,
    identified,
    problems_of,
)
from asyncbench.records import Problem
from asyncbench.suites.suite import Kind

KIND = ("suite", "task", "variant", "representation")  # the columns that tell the kind of a problem

# ── facts gathered batch by batch while a set is written or read


class Survey:
    """Takes in a problem set batch by batch."""

    def __init__(self, *, cells: bool = False) -> None:
        """Begin with no rows; `cells`: count those of each cell, which may hold fewer than were asked for."""
        self.rows = 0
        self._cells: dict[str, Counter[str]] | None = {} if cells else None
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
        if self._cells is not None:
            for row in counted(batch, (*KIND[1:], "length")):
                kind = "_".join(filter(None, (row[name] for name in KIND[1:])))
                self._cells.setdefault(kind, Counter())[str(row["length"])] += row["count_all"]
        lengths = pc.utf8_length(_text_column(batch.column("question")))
        self._longest_question = max(self._longest_question, pc.max(lengths).as_py())
        texts = list[pa.StringArray]()
        for column in batch.columns:  # of lists, their items and how many each has
            if isinstance(column, pa.ListArray):
                texts.append(_text_column(column.flatten()))
                column = column.value_lengths()  # what is left of it
            texts.append(_text_column(column))
        for digest, column in zip(self._digests, texts, strict=True):
            digest.add(column)

    @property
    def digest(self) -> str:
        """The same for the same rows, however they are grouped or encoded."""
        return blake2b(b"".join(digest.digest() for digest in self._digests), digest_size=16).hexdigest()

    @property
    def facts(self) -> dict[str, Any]:  # Any: fields of a `ProblemSet`
        """The facts of the rows seen so far."""
        facts: dict[str, Any] = {
            "rows": self.rows,
            "tasks": self._tasks,
            "longest_question": self._longest_question,
            "digest": self.digest,
        }
        if self._cells is not None:
            facts["counts"] = {kind: dict(lengths) for kind, lengths in self._cells.items()}
        return facts


def counted(batch: pa.RecordBatch, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the different rows of some columns, and as `count_all` how often each is there."""
    rows = pa.Table.from_batches([batch.select(list(columns))])
    groups = rows.group_by(rows.column_names, use_threads=False).aggregate([([], "count_all")])
    return groups.to_pylist()


class _TextDigest:
    """A column of text: all of it run together, and the length of each, in bytes, beside it."""

    def __init__(self) -> None:
        self._text, self._lengths = blake2b(), blake2b()

    def add(self, texts: pa.StringArray) -> None:
        if not len(texts):
            return
        text, lengths = run_together(texts)
        self._text.update(text)
        if lengths.min() == lengths.max():
            self._lengths.update(b"%d " % lengths[0] * len(texts))
            return
        numbers = _text_column(pa.array(lengths))
        whole = pa.ListArray.from_arrays(pa.array([0, len(numbers)], pa.int32()), numbers)
        spaced: Any = pc.binary_join(whole, " ")
        self._lengths.update(spaced[0].as_buffer())
        self._lengths.update(b" ")

    def digest(self) -> bytes:
        return self._text.digest() + self._lengths.digest()


def _text_column(column: Column) -> pa.StringArray:
    return cast("pa.StringArray", column.cast(pa.string()).fill_null(""))


def run_together(texts: pa.StringArray) -> tuple[memoryview, npt.NDArray[np.int32]]:
    """Return the bytes of texts, none of them NULL, one after the other, and the length of each."""
    _, starts, data = cast("list[Any]", texts.buffers())
    bounds = np.frombuffer(starts, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data or b"")[bounds[0] : bounds[-1]], np.diff(bounds)


# ── the problem set


_PREFIX = "asyncbench."  # of the keys of its metadata; their values are text
FileState = tuple[int, ...]


def state_of(path: Path) -> FileState:
    """Return the state of a file, which changes once it is written or another takes its name."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSet:
    """A file of problems that was checked as a whole; what made it says so where it is known."""

    path: Path
    name: str
    rows: int
    tasks: Mapping[str, Mapping[str, int]]  # suite → task → problems
    digest: str  # of the content: 32 hexadecimal characters
    longest_question: int  # characters
    generator_version: int | None = None
    seed: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # kind → length → rows
    custom: Custom | OneRun | None = None  # how to read a file that is not in the contract's form
    repeats: Repeats | None = None  # questions of such a file that are there more than once
    hub: HubFile | None = None  # where it comes from, if it is of the Hub
    sample: Sample | None = None  # the problems of it that are asked; None: all
    state: FileState | None = field(default=None, compare=False)  # of the file when it was checked

    @property
    def place(self) -> str:
        """The name of the file in messages."""
        return str(self.path) if self.hub is None else self.hub.address

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites whose problems it holds, as they first appear."""
        return tuple(self.tasks)

    @property
    def own_columns(self) -> Mapping[str, str | Sequence[str]]:
        """The columns of somebody's own file: our name → the file's, or several."""
        if not isinstance(self.custom, Custom):
            return {}
        answers = {"expected": list(self.custom.accepted)} if self.custom.accepted else {}
        choices = {} if self.choices is None else {CHOICES: self.choices.named}
        return {**self.custom.columns, **answers, **choices}

    @property
    def choices(self) -> ChoiceColumns | None:
        """The choices of somebody's own file."""
        return self.custom.choices if isinstance(self.custom, Custom) else None

    @property
    def guessed_columns(self) -> Mapping[str, str]:
        """Columns of somebody's own file that were found by a usual name: our name → the file's."""
        guesses = self.custom.guessed if isinstance(self.custom, Custom) else {}
        return {ours: theirs for ours, theirs in guesses.items() if ours != theirs}

    @property
    def graders(self) -> Sequence[str]:
        """The graders of somebody's own file; none: its problems have those of their suites."""
        return self.custom.graders.names if isinstance(self.custom, Custom) else ()

    @property
    def own_graders(self) -> Mapping[str, str]:
        """The grader that is somebody's own function: its name → the digest of its source."""
        return self.custom.graders.own if isinstance(self.custom, Custom) else {}

    def read(self, batch_rows: int = 1024, start: int = 0) -> Iterator[Problem]:
        """Yield the problems in file order, one batch in memory at a time.

        Args:
            batch_rows: rows of a batch.
            start: the first row to yield; that of the file is 0.

        Raises:
            ProblemSetError: the file can no longer be read as it was when it was checked.
        """
        return problems_of(self.batches(batch_rows, start))

    def kinds(self) -> set[tuple[str, Kind]]:
        """Return the suite and the kind of every problem, each pair once."""
        if self.custom is not None:
            return {
                (problem.suite, (problem.task, problem.variant, problem.representation))
                for problem in self.read()
            }
        with opened_columns(self.path) as file:
            return {
                (row["suite"], (row["task"], row["variant"], row["representation"]))
                for batch in file.batches(KIND, rows=65_536)
                for row in counted(batch, KIND)
            }

    def batches(
        self, rows: int, start: int = 0, columns: Sequence[str] = PROBLEM_SCHEMA.names
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the problems as batches of the contract's schema; otherwise like `read`."""
        if self.custom is None:
            return contract_batches(self.path, rows=rows, start=start, columns=columns)
        problem_drafts = (
            run_drafts(self.path, self.custom)
            if isinstance(self.custom, OneRun)
            else drafts(self.path, self.custom, rows=rows)
        )
        return (
            batch.select(list(columns))
            for batch in batches_of(islice(identified(problem_drafts), start, None), rows=rows)
        )


def contract_batches(
    path: Path, *, rows: int = ROWS_AT_ONCE, start: int = 0, columns: Sequence[str] = PROBLEM_SCHEMA.names
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a file that has the contract's columns: some of those, in its types."""
    schema = pa.schema(map(PROBLEM_SCHEMA.field, columns))
    with opened_columns(path) as file:
        for batch in file.batches(columns, rows=rows, start=start):
            arrays = [
                converted(batch.column(field.name), field.type, place=f"{path}: column {field.name!r}")
                for field in schema
            ]
            ours = pa.RecordBatch.from_arrays(arrays, schema=schema)
            ours.validate(full=True)  # a damaged file may hold text that is not UTF-8
            yield ours


# ── the metadata of a file


def metadata_of(problems: ProblemSet) -> dict[str, str]:
    """Return the metadata for the file of a problem set."""
    facts = {
        "schema_version": SCHEMA_VERSION,
        "suite": ",".join(problems.suites),
        "generator_version": problems.generator_version,
        "seed": problems.seed,
        "parameters": json.dumps(problems.parameters, default=list),
        "counts": json.dumps(problems.counts) if problems.counts else None,
        "rows": problems.rows,
        "digest": problems.digest,
    }
    return {_PREFIX + key: str(value) for key, value in facts.items() if value is not None}


_READ: Mapping[str, Callable[[str], Any]] = {  # Any: of the fields of a set
    "schema_version": int,
    "generator_version": int,
    "seed": int,
    "parameters": json.loads,
    "counts": json.loads,
    "digest": str,
}


def metadata_in(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return a problem set's description from the metadata of its file, as far as it is there.

    Raises:
        ValueError: it makes no sense.
    """
    ours = {key: value for key, value in (metadata or {}).items() if key.startswith(_PREFIX.encode())}
    values = {key.decode().removeprefix(_PREFIX): value.decode() for key, value in ours.items()}
    return {name: read(values[name]) for name, read in _READ.items() if name in values}
