"""SQL over a results folder: DuckDB with ready views, read-only, within a bounded memory."""

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.analysis.choosing import Folders, check_select, chosen, line_of
from asyncbench.analysis.counting import open_views
from asyncbench.analysis.views import VIEWS, Sources, add_parameters
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import replacing, writing
from asyncbench.store.catalog import patiently
from asyncbench.store.reading import take_snapshot
from asyncbench.store.rows import encode_json
from asyncbench.store.snapshot import READ_TRIES, Frame, MovedError, framed
from asyncbench.tables.screen import fitted, safe

if TYPE_CHECKING:
    import pandas
    import polars

ROWS = 8192  # of a batch of the result
MOST_SHOWN = 200  # rows of a table on a screen
_PLAIN = re.compile(r"[\w./:+@-]+(?: [\w./:+@-]+)*")  # a field that every reader takes as it is
_OF_STORAGE = ("IO Error", "Out of Memory Error", "[Errno ")  # how errors about files and memory begin


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """A query on a folder as it was when it was read: batches of rows, which can be taken once."""

    sources: Sources
    batches: pa.RecordBatchReader

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with _one_line_errors(self.sources):
            yield from self.batches


class Answer:
    """The result of a query: batches of rows.

    Where parts of the folder are replaced meanwhile it is asked anew, as long as no row was taken; whatever
    takes all rows before it shows one begins again.
    """

    def __init__(self, ask: Callable[[], QueryRun]) -> None:
        """Use `asking`; `ask` reads the folder and runs the query, and ends the run before."""
        self._ask = ask
        self._seen: QueryRun | None = patiently(ask)  # None: its rows were taken, or are gone
        self.schema = self._seen.batches.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for tries_left in reversed(range(READ_TRIES)):
            taken = False
            try:
                seen, self._seen = self._seen, None
                for batch in patiently(self._ask) if seen is None else seen:
                    taken = True
                    yield batch
                return
            except MovedError:
                if taken or not tries_left:
                    raise

    def as_table(self) -> pa.Table:
        """Return all of it."""
        return patiently(lambda: pa.Table.from_batches(self, self.schema))

    def as_text(self, *, width: int | None = None) -> str:
        """Return the first rows as a table for a terminal, and say if there are more."""
        rows = patiently(lambda: list(islice(self._rows(), MOST_SHOWN + 1)))
        cells = [[_cell(value) for value in row] for row in rows[:MOST_SHOWN]]

        # Columns from the left that are no numbers name the rows.
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        figures = (n for n, column in enumerate(self.schema) if any(test(column.type) for test in numeric))
        labels = next(figures, len(self.schema))

        shown = fitted(self.schema.names, cells, labels=labels, width=width)
        if len(rows) <= MOST_SHOWN:
            return shown
        more = f"Only the first {MOST_SHOWN} rows are shown. --csv, --json or --parquet FILE gives all."
        return f"{shown}\n{more}"

    def write_csv(self, out: IO[str]) -> int:
        """Write all of it as CSV with a head, and return how many rows.

        NULL is an empty field, and an empty text is `""`. Every text but plain words is quoted: Python's own
        writer left a lone carriage return bare before 3.11.9. A terminal gets no control characters.

        Raises:
            StoreError: parts of the folder were replaced when rows had been written already.
        """
        shown = partial(safe, most=None) if out.isatty() else str
        out.write(f"{','.join(_quoted(shown(name)) for name in self.schema.names)}\n")
        rows = 0
        for row in self._rows():
            fields = ("" if value is None else _quoted(shown(_field(value))) for value in row)
            out.write(f"{','.join(fields)}\n")
            rows += 1
        out.flush()  # what the disk refuses shows here, not when the interpreter ends
        return rows

    def write_json(self, out: IO[str]) -> None:
        """Write all of it as an array of objects, one a line; raises as `write_csv` does.

        For a terminal, control characters are escaped as JSON has it: it is the same JSON.
        """
        out.write("[")
        terminal = out.isatty()
        for n, line in enumerate(self._objects()):
            text = line
            if terminal:
                text = "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line)
            out.write(f"{',' if n else ''}\n{text}")
        out.write("\n]\n")
        out.flush()

    def write_jsonl(self, out: IO[str]) -> int:
        """Write all of it as objects, one a line, and return how many; raises as `write_csv` does."""
        rows = 0
        for text in self._objects():
            out.write(f"{text}\n")
            rows += 1
        out.flush()
        return rows

    def _objects(self) -> Iterator[str]:
        for row in self._rows():
            yield encode_json(dict(zip(self.schema.names, map(_json_value, row), strict=True))).decode()

    def write_parquet(self, path: Path) -> int:
        """Write all of it to a Parquet file, whole or not at all; return how many rows.

        Raises:
            ConfigError: no file can be there.
            StoreError: the disk does not take it.
        """

        def write() -> int:
            rows = 0
            with (
                writing(path),
                replacing(path) as file,
                pq.ParquetWriter(file, self.schema, compression="zstd") as writer,
            ):
                for batch in self:
                    writer.write_batch(batch)
                    rows += batch.num_rows
            return rows

        return patiently(write)

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for batch in self:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@contextmanager
def asking(folder: Folders, query: str) -> Iterator[Answer]:
    """Answer one SELECT over the views of a results folder, or of several, while the block lasts.

    Nothing can be changed by it. What does not fit into memory is put into temporary files.

    Raises:
        ConfigError: it is not a results folder; the query is not a SELECT, or wrong.
        StoreError: the folder cannot be read.
    """
    folders = replace(chosen(folder), loaded=True)
    with ExitStack() as exits:

        def ask() -> QueryRun:
            exits.close()
            views = exits.enter_context(open_views(folders, *map(take_snapshot, folders.paths)))
            with _one_line_errors(views.sources):
                add_parameters(views.connection)
                views.add_sums()
                check_select(views.connection, query, VIEWS)
                return QueryRun(
                    sources=views.sources, batches=views.connection.sql(query).to_arrow_reader(ROWS)
                )

        yield Answer(ask)


@overload
def sql(folder: Folders, query: str, *, as_: Literal["arrow"] = "arrow") -> pa.Table: ...
@overload
def sql(folder: Folders, query: str, *, as_: Literal["pandas"]) -> "pandas.DataFrame": ...
@overload
def sql(folder: Folders, query: str, *, as_: Literal["polars"]) -> "polars.DataFrame": ...
def sql(folder: Folders, query: str, *, as_: Frame = "arrow") -> Any:
    """Run one SELECT over a results folder, with DuckDB's SQL. Nothing can be changed.

        table = ab.sql("results/night", "SELECT model, task, length, accuracy FROM accuracy")

    The views are trials, grades, attempts, lanes, skipped, steps, problems, cells, accuracy, cost, latency
    and minutes.

    Args:
        folder: the results folder, or a list of several: the column `folder` tells them apart.
        query: the SELECT.
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, the query is wrong or is not a SELECT, or the
            package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """

    def answered() -> pa.Table:
        with asking(folder, query) as answer:
            return answer.as_table()

    return framed(answered, as_)


@contextmanager
def _one_line_errors(sources: Sources) -> Iterator[None]:
    """Turn DuckDB's errors into ours; what our readers refused is told in their own words."""
    import duckdb

    try:
        with sources.telling():
            yield
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        # Arrow has only an OSError for what DuckDB says when rows are taken
        if isinstance(error, duckdb.OperationalError) or str(error).startswith(_OF_STORAGE):
            raise StoreError(f"sql: {line_of(error)}") from error
        raise ConfigError(f"sql: {line_of(error)}. The views are {', '.join(VIEWS)}.") from error


# ── values as text ───────────────────────────────────────────────────────────────────────────────


def _json_value(value: object) -> object:
    """Return a value as JSON may hold it: sums of integers come as decimals."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _cell(value: object) -> str:
    """Return a value as a table shows it.

    A number has six decimals or, where these would hide it, six digits.
    """
    if value is None:
        return "NULL"
    if not isinstance(value, float):
        return _field(value).replace("\n", "⏎")
    if not math.isfinite(value) or (value and not 1e-4 <= abs(value) < 1e15):
        return f"{value:.6g}"
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _quoted(field: str) -> str:
    """Return a field as CSV has it: in quotes, but where no reader could take it for anything else."""
    return field if _PLAIN.fullmatch(field) else '"{}"'.format(field.replace('"', '""'))


def _field(value: object) -> str:
    """Return a value as text, NULL as an empty one."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, list | dict | tuple):
        return encode_json(value).decode()
    return str(value)
