"""Counting over a results folder: DuckDB over the views of one moment, within a bounded memory.

def trials_by_model(folder: Path) -> list[dict[str, Any]]:
    return counted(folder, lambda counting: counting.rows(
        "SELECT model, count(*) AS trials, sum_usd(cost_usd) AS cost_usd FROM trials GROUP BY model"
    ))
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from asyncbench.records import Sent
from asyncbench.store import Snapshot, steady
from asyncbench.views.views import Sources, add_views

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

MEMORY: Final = "1GB"  # DuckDB's own; what needs more is put on the disk
_SETTINGS: Mapping[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # FROM name must not find a variable of the program
}
_THEN = """
SET TimeZone = 'UTC';  -- as the tables have it, whatever the machine's is
SET enable_progress_bar = false;  -- it would be drawn over what a program prints
SET enable_external_access = false;
SET lock_configuration = true;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderViews:
    """The views of a results folder at one moment, and DuckDB to count them."""

    connection: "duckdb.DuckDBPyConnection"
    sources: Sources
    snapshot: Snapshot

    @property
    def unended(self) -> tuple[Sent, ...]:
        """The calls without an end: in flight, or lost when no run is going; no view has them."""
        return tuple(self.snapshot.unfinished.sent.values())

    def table(self, query: str, values: Mapping[str, object] | None = None) -> pa.Table:
        """Return what a SELECT gives; `$name` in it stands for one of the values.

        Raises:
            StoreError: a part of the folder cannot be read.
        """
        with self.sources.telling():
            found: pa.Table = self.connection.sql(query, params=values).to_arrow_table()
            return found

    def rows(self, query: str, values: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Return the same as rows: column → value. Raises as `table` does."""
        with self.sources.telling():
            found = self.connection.sql(query, params=values)
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def batches(self, query: str, *, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the same, so many rows at a time, where all would be too much; raises as `table` does."""
        with self.sources.telling():
            yield from self.connection.sql(query).to_arrow_reader(rows)

    def keep(self, name: str, query: str, values: Mapping[str, object] | None = None) -> None:
        """Read rows once that several queries count: later queries have them as the table `name`."""
        with self.sources.telling():
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}", values)

    def put(self, name: str, rows: pa.Table) -> None:
        """Count rows made in Python: later queries have them as the table `name`, or instead of that view."""
        self.connection.unregister(name)
        self.connection.register(name, rows)


def counted(folder: Path | str, count: Callable[[FolderViews], T]) -> T:
    """Return what `count` makes of a folder's views; it begins again where parts were replaced meanwhile.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
    """

    def look(snapshot: Snapshot) -> T:
        with open_views(Path(folder), snapshot) as views:
            return count(views)

    return steady(folder, look)


@contextmanager
def open_views(folder: Path, snapshot: Snapshot) -> Iterator[FolderViews]:
    """Open the views of a folder as a snapshot has it; from then on DuckDB gets no file and no setting."""
    import duckdb  # 0.2 s, which commands without figures need not wait for

    with (
        tempfile.TemporaryDirectory(prefix="asyncbench-sql-") as spill,
        duckdb.connect(":memory:", config={**_SETTINGS, "temp_directory": spill}) as connection,
    ):
        sources = add_views(connection, folder, snapshot)
        connection.execute(_THEN)
        yield FolderViews(connection=connection, sources=sources, snapshot=snapshot)
