"""A problem set that was checked: what it holds, and its problems as a stream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from asyncbench.problems.custom import Custom, drafts
from asyncbench.problems.files import opened_parquet, read_batches
from asyncbench.problems.identity import identified
from asyncbench.problems.schema import PROBLEM_FIELDS, PROBLEM_SCHEMA, batches_of, converted, problems_of
from asyncbench.records import Problem
from asyncbench.suites import Kind

KIND = ("suite", "task", "variant", "representation")  # the columns that tell the kind of a problem


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
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # `CellCounts`, where they vary
    custom: Custom | None = None  # how to read a file that is not in the contract's form

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites whose problems it holds, as they first appear."""
        return tuple(self.tasks)

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
        """Return the suite and the kind of every problem, each pair once.

        Raises:
            ProblemSetError: the file can no longer be read.
        """
        if self.custom is not None:
            return {(one.suite, (one.task, one.variant, one.representation)) for one in self.read()}
        with opened_parquet(self.path) as file:
            return {
                (row["suite"], (row["task"], row["variant"], row["representation"]))
                for batch in read_batches(file, KIND, path=self.path, rows=65_536)
                for row in _distinct(batch)
            }

    def batches(self, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the problems as batches of the contract's schema; otherwise like `read`."""
        if self.custom is None:
            return contract_batches(self.path, rows=rows, start=start)
        problems = identified(drafts(self.path, self.custom, rows=rows))
        return batches_of(islice(problems, start, None), rows=rows)


def _distinct(batch: pa.RecordBatch) -> list[dict[str, str]]:
    table = pa.Table.from_batches([batch])
    return table.group_by(table.column_names, use_threads=False).aggregate([]).to_pylist()


def contract_batches(path: Path, *, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that has the contract's columns: those alone, in its order and types."""
    with opened_parquet(path) as file:
        for batch in read_batches(file, PROBLEM_SCHEMA.names, path=path, rows=rows, start=start):
            columns = [
                converted(batch.column(field.name), field.type, place=f"{path}: column {field.name!r}")
                for field in PROBLEM_FIELDS
            ]
            ours = pa.RecordBatch.from_arrays(columns, schema=PROBLEM_SCHEMA)
            ours.validate(full=True)  # a damaged file may hold text that is not UTF-8
            yield ours
