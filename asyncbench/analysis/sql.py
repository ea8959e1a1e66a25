"""SQL over a results folder: DuckDB with ready views, read-only, within a bounded memory."""

import csv
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.analysis.tables import as_lines, columns
from asyncbench.analysis.views import MADE_OF, SUMS, VIEWS, add_views
from asyncbench.errors import ConfigError, StoreError
from asyncbench.problems.files import replacing
from asyncbench.store.encoding import encode
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.snapshot import Snapshot, look
from asyncbench.store.staging import check_parts

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"  # DuckDB's own; what needs more is put on the disk
ROWS = 8192  # of a batch of the result
MOST_SHOWN = 200  # rows of a table on a screen


class Answer:
    """The result of a query: batches of rows, which can be taken once."""

    def __init__(self, batches: pa.RecordBatchReader) -> None:
        self.schema = batches.schema
        self._batches = batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with _told_in_one_line():
            yield from self._batches

    def as_table(self) -> pa.Table:
        """Return all of it."""
        return pa.Table.from_batches(self, self.schema)

    def as_text(self, *, width: int | None = None) -> str:
        """Return the first rows as a table for a terminal, and say if there are more."""
        rows = list(islice(self._rows(), MOST_SHOWN + 1))
        cells = [[_cell(value) for value in row] for row in rows[:MOST_SHOWN]]
        shown = as_lines(columns(self.schema.names, cells, labels=self._labels()), width=width)
        if len(rows) <= MOST_SHOWN:
            return shown
        more = f"Only the first {MOST_SHOWN} rows are shown: --csv, --json or --parquet FILE gives all."
        return f"{shown}\n{more}"

    def write_csv(self, out: IO[str]) -> None:
        """Write all of it as CSV with a head; NULL is an empty field."""
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.schema.names)
        for row in self._rows():
            writer.writerow(map(_field, row))

    def write_json(self, out: IO[str]) -> None:
        """Write all of it as an array of objects, one a line."""
        out.write("[")
        for n, row in enumerate(self._rows()):
            values = dict(zip(self.schema.names, map(_plain, row), strict=True))
            out.write(f"{',' if n else ''}\n{encode(values).decode()}")
        out.write("\n]\n")

    def write_parquet(self, path: Path) -> int:
        """Write all of it to a Parquet file, whole or not at all; return how many rows.

        Raises:
            ConfigError: the file cannot be written there.
        """
        rows = 0
        with (
            replacing(path, refusal=ConfigError) as file,
            pq.ParquetWriter(file, self.schema, compression="zstd") as writer,
        ):
            for batch in self:
                writer.write_batch(batch)
                rows += batch.num_rows
        return rows

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for batch in self:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def _labels(self) -> int:
        """Return how many columns, from the left, are names and no figures."""
        figures = (n for n, field in enumerate(self.schema) if _is_number(field.type))
        return next(figures, len(self.schema))


@contextmanager
def asking(folder: PathLike[str] | str, query: str) -> Iterator[Answer]:
    """Answer one SELECT over the views of a results folder, while the block lasts.

    Nothing can be changed by it. What does not fit into `MEMORY` is put into temporary files.

    Raises:
        ConfigError: DuckDB is not installed; it is not a results folder; the query is not a SELECT, or wrong.
        StoreError: the folder cannot be read.
    """
    duckdb = _duckdb()
    place = Path(folder)
    snapshot = look(place)
    with tempfile.TemporaryDirectory(prefix="asyncbench-sql-") as spill, _told_in_one_line():
        settings = {
            "memory_limit": MEMORY,
            "temp_directory": spill,
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",  # nothing is fetched from anywhere
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")  # as the tables have it, whatever the machine's is
            add_views(connection, place, snapshot)
            _check(connection, query)
            _check_parts(query, snapshot)
            yield Answer(connection.sql(query).to_arrow_reader(ROWS))


def sql(folder: PathLike[str] | str, query: str) -> pa.Table:
    """Return what one SELECT over the views of a results folder gives; raises as `asking` does.

    The views are trials, grades, attempts, problems, accuracy, cost and latency.
    """
    with asking(folder, query) as answer:
        return answer.as_table()


def _duckdb() -> "Any":  # the module, which may be missing
    try:
        import duckdb
    except ImportError:
        raise ConfigError(
            "`asyncbench sql` needs DuckDB, which is not installed: pip install 'asyncbench[sql]'"
        ) from None
    return duckdb


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    import duckdb

    try:
        yield
    except duckdb.OperationalError as error:  # a file, the disk, memory
        raise StoreError(f"sql: {_line(error)}") from error
    except duckdb.Error as error:
        raise ConfigError(f"sql: {_line(error)}; the views are {', '.join(VIEWS)}") from error


def _line(error: Exception) -> str:
    """Return an error's words without the query that DuckDB repeats below them."""
    words = str(error).partition("\n\nLINE ")[0]
    return "; ".join(line.strip() for line in words.splitlines() if line.strip())


def _check(connection: "duckdb.DuckDBPyConnection", query: str) -> None:
    """Refuse all but one SELECT: whatever writes, in the folder or elsewhere."""
    import duckdb

    statements = connection.extract_statements(query)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
        raise ConfigError(
            "sql: give one SELECT statement; nothing else is carried out, for nothing may change"
        )


def _check_parts(query: str, snapshot: Snapshot) -> None:
    """Refuse damaged parts, as far as the query looks at them: DuckDB would not notice.

    A column counts as looked at when the query, or the view that it names, has its name anywhere.
    """
    said = query.lower()
    every = "*" in said.replace("count(*)", "") or not said.lstrip("( \n\t").startswith(("select", "with"))
    for name, schema in SCHEMAS.items():
        views = [view for view, table in MADE_OF.items() if table == name and view in said]
        if name in said or views:
            text = said + "".join(SUMS[view] for view in views)
            looked_at = schema.names if every else [column for column in schema.names if column in text]
            check_parts(name, snapshot.files[name], columns=looked_at)


# ── how values are written ───────────────────────────────────────────────────────────────────


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _plain(value: object) -> object:
    """Return a value as JSON may hold it: sums of integers come as decimals."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _cell(value: object) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return _figure(value)
    return _field(value).replace("\n", "⏎")


def _figure(value: float) -> str:
    """Return a number to six decimals or, where that would hide it, six digits."""
    if not math.isfinite(value) or (value and not 1e-4 <= abs(value) < 1e15):
        return f"{value:.6g}"
    text = f"{value:.6f}"
    return text.rstrip("0").rstrip(".")


def _field(value: object) -> str:
    """Return a value as CSV has it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, list | dict | tuple):
        return encode(value).decode()
    return str(value)
