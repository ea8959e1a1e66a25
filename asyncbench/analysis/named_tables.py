"""Queries over the tables of folders, and over tables of our own that queries name.

    views.keep("answers", "SELECT model, outcome FROM trials")  # written down as a step, nothing is read
    views.rows("SELECT count(*) FROM answers")                  # kept by the folder, or counted now

A step that makes a table waits until a query has to be counted; then all steps that wait are done in their
order. Where the folder keeps every result, no step is done and DuckDB is not even imported.

A result is kept under a name that tells the query and all tables that are defined when it is asked, each
with what it is made of. No query is read for the names in it: a table that it does not use does no harm,
but a report that defines its tables in another order than before counts once more.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pyarrow as pa

from asyncbench.analysis.kept import ROWS, TABLE, KeptCounts, ResultForm, name_of, packed
from asyncbench.analysis.views import Sources

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

FEW_BYTES: Final = 1_000_000  # of rows made in Python that a kept result may be counted of


@dataclass(slots=True, eq=False)
class Connector:
    """Makes the connection to DuckDB when it is first needed: that takes longer than reading a few rows."""

    make: Callable[[], "duckdb.DuckDBPyConnection"]
    made: "duckdb.DuckDBPyConnection | None" = None

    def connection(self) -> "duckdb.DuckDBPyConnection":
        """Return the connection."""
        if self.made is None:
            self.made = self.make()
        return self.made

    def interrupt(self) -> None:
        """Interrupt what it works on."""
        if self.made is not None:
            self.made.interrupt()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTables:
    """The tables of a connection: those of folders, and others that are made before a query is counted."""

    connector: Connector
    sources: Sources
    counts: KeptCounts
    options: object = ()  # which trials of the folder count
    # name of a table → what it is made of; None: this is not known, so no result is kept
    definitions: dict[str, str | None] = field(default_factory=dict)
    steps: list[Callable[[], object]] = field(default_factory=list)  # that make and drop tables, still to do

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The connection, which is made for the first that asks."""
        return self.connector.connection()

    # ── queries ──────────────────────────────────────────────────────────────────────────────────

    def table(self, query: str, values: Mapping[str, object] | None = None) -> pa.Table:
        """Return the table of a SELECT; `$name` in it stands for one of the values.

        Raises:
            StoreError: a part of the folder cannot be read.
        """
        return self._result(query, values, TABLE)

    def rows(self, query: str, values: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a SELECT, column → value; raises as `table` does.

        Times come from `table(…).to_pylist()`: for rows with them DuckDB needs a package more, pytz.
        """
        return self._result(query, values, ROWS)

    def batches(self, query: str, *, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a SELECT, `rows` at a time; raises as `table` does."""
        self._do_steps()
        with self.sources.telling():
            yield from self.connection.sql(query).to_arrow_reader(rows)

    def _result(self, query: str, values: Mapping[str, object] | None, form: ResultForm[T]) -> T:
        """Return the result of a query, or the one that the folder keeps."""
        origin = self._origin(query, values)
        name = name_of(form.name, origin)
        if origin is not None and (content := self.counts.get(name)) is not None:
            return form.unpack(content)
        self._do_steps()
        with self.sources.telling():
            result = form.fetch(self.connection.sql(query, params=values))
        if origin is not None:
            self.counts.put(name, form.pack(result))
        return result

    def _origin(self, query: str, values: Mapping[str, object] | None = None) -> str | None:
        """Return all that a query's rows depend on beside the folder, or None if its rows are not kept."""
        if self.counts.state is None or None in self.definitions.values():
            return None
        return name_of("origin", (query, values, sorted(self.definitions.items()), self.options))

    # ── tables of our own ────────────────────────────────────────────────────────────────────────

    def keep(self, name: str, query: str, values: Mapping[str, object] | None = None) -> None:
        """Read rows once that several queries count: later queries have them as the table `name`."""

        def create() -> None:
            with self.sources.telling():
                self.connection.unregister(name)
                self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}", values)

        self._define(name, self._origin(query, values), create)

    def define(self, name: str, query: str) -> None:
        """Name a query: each later query that names it reads its rows anew."""
        create = f"CREATE OR REPLACE TEMP VIEW {name} AS {query}"
        self._define(name, self._origin(query), lambda: self.connection.execute(create))

    def put(self, name: str, rows: pa.Table) -> None:
        """Count rows made in Python: later queries have them as the table `name`, or instead of that view."""
        content = packed(rows) if self.counts.state and rows.nbytes <= FEW_BYTES else None
        origin = None if content is None else name_of("rows", content)
        self._define(name, origin, lambda: self._register(name, rows))

    def put_when_read(self, name: str, origin: str, make: Callable[[Self], pa.Table]) -> None:
        """Put rows that are made once a query has to be counted.

        Args:
            name: that of the table.
            origin: what the rows are made of, beside what the folder and the tables before it hold.
            make: makes them of these tables. What it asks is not kept: the counts of its rows are.
        """

        def register() -> None:
            nothing_kept = replace(self.counts, state=None)
            views = replace(self, counts=nothing_kept, definitions=dict(self.definitions))
            self._register(name, make(views))

        self._define(name, self._origin(origin), register)

    def drop(self, *names: str) -> None:
        """Let go of tables of ours, where there are any: they take memory, and no later query counts them."""
        for name in self.definitions.keys() & names:
            del self.definitions[name]
            self.steps.append(partial(self._remove, name))

    def _define(self, name: str, origin: str | None, create: Callable[[], object]) -> None:
        self.definitions[name] = origin
        self.steps.append(create)

    def _do_steps(self) -> None:
        """Make and drop the tables that were written down, each as those before it left them."""
        while self.steps:
            steps = self.steps.copy()
            self.steps.clear()  # a step may ask queries of its own: these are of the tables before it
            for step in steps:
                step()

    def _register(self, name: str, rows: pa.Table) -> None:
        self._remove(name)
        self.connection.execute(f"DROP VIEW IF EXISTS {name}")  # of chosen trials
        self.connection.register(name, rows)

    def _remove(self, name: str) -> None:
        """Let go of a table of ours, whatever it is."""
        import duckdb

        self.connection.unregister(name)
        for kind in ("TABLE", "VIEW"):
            with suppress(duckdb.CatalogException):  # it is of the other kind
                self.connection.execute(f"DROP {kind} IF EXISTS temp.{name}")
