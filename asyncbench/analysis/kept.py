"""Counts that a large results folder keeps, and the tables that they are made of.

What was counted once is read the next time, in milliseconds.

    results/night/.counts/41c0…/    one state of the folder: its parts as they are now
        9be2….table, 77ab….rows     what a query of ours gave
        d07a….json                  what Python made of rows, such as the kinds of errors

A state names every file that is counted: its digest in the folder's list, its size, and when the disk last
changed it. So counts are trusted only for exactly these parts: where one is replaced, damaged or restored,
or the folder was copied, all is counted anew from the rows, which are verified as they are read. Nothing is
kept while a journal holds rows: a run goes on, or has to be gone on with. You may delete `.counts` at any
time.
"""

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from uuid import uuid4

import pyarrow as pa

from asyncbench.analysis.views import SUMS, Sources, add_sums
from asyncbench.problems.copies import EARLIER, PROBLEMS, copy_files
from asyncbench.store.holdings import known_parts
from asyncbench.store.snapshot import Snapshot

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

COUNTS: Final = ".counts"  # in a results folder
LEAST = 10_000  # trials: fewer are counted faster than it pays to keep
MOST_BYTES: Final = 200_000_000  # of one result: more is rows, not counts
FEW_BYTES: Final = 1_000_000  # of rows made in Python that a kept result may be counted of
_DIGEST: Final = 16  # bytes
_LARGE: Final = pa.decimal128(38, 0)  # of integers of more than 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCounts:
    """The counts that a folder keeps of its present state."""

    folder: Path
    state: str | None  # None: it keeps none

    def get(self, name: str) -> bytes | None:
        """Return what is kept under a name; None: nothing is, or nothing that can be trusted."""
        if self.state is None:
            return None
        try:
            content = (self._top / self.state / name).read_bytes()
        except OSError:
            return None
        value = content[_DIGEST:]
        return value if content[:_DIGEST] == _digest(value) else None

    def put(self, name: str, value: bytes | None) -> None:
        """Keep a value; where the disk takes none, nothing is kept, and nobody is told."""
        if self.state is None or value is None:
            return
        place = self._top / self.state
        draft = place / f"{uuid4().hex}.new"
        with suppress(OSError):
            if not self._top.is_symlink():
                self._make(place)
                try:
                    draft.write_bytes(_digest(value) + value)
                    draft.replace(place / name)
                finally:
                    draft.unlink(missing_ok=True)

    @property
    def _top(self) -> Path:
        return self.folder / COUNTS

    def _make(self, place: Path) -> None:
        """Make the place of this state, and drop those of others: no reader will ask for them again."""
        if not place.is_dir():
            for other in self._top.iterdir() if self._top.is_dir() else ():
                shutil.rmtree(other, ignore_errors=True)
            place.mkdir(mode=0o700, parents=True, exist_ok=True)


def state_of(folder: Path, snapshot: Snapshot) -> str | None:
    """Return the state of a folder; None: it keeps no counts, as it is small or still changes."""
    listed = known_parts(folder)
    if trials_in(listed) < LEAST or any(map(len, snapshot.journalled.values())):
        return None
    try:
        files = dict(_files(folder, snapshot))
    except (OSError, ValueError):  # replaced a moment ago, which whoever reads it is told, or elsewhere
        return None
    known = [(path, (listed.get(path) or {}).get("digest"), stat) for path, stat in files.items()]
    if any(digest is None and not path.startswith((PROBLEMS, EARLIER)) for path, digest, _ in known):
        return None  # workers have folders of their own
    return _digest(repr((_code(), sorted(known))).encode()).hex()


def trials_in(listed: Mapping[str, Any]) -> int:
    """Return how many trials a folder's list of parts has."""
    return sum(entry["rows"] for key, entry in listed.items() if entry and key.startswith("trials/"))


def _files(folder: Path, snapshot: Snapshot) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield each file that is counted: its place in the folder, its size, and two times of its last change.

    Programs can set the first one back, and on some systems the second one is another time.
    """
    parts = (path for paths in snapshot.files.values() for path in paths)
    for path in (*parts, *copy_files(folder)):
        stat = path.stat()
        yield path.relative_to(folder).as_posix(), (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@cache
def _code() -> list[tuple[str, int, int]]:
    """Return the state of our own modules: another version may count otherwise."""
    top = Path(__file__).parents[1]
    stats = ((path, path.stat()) for path in top.rglob("*.py"))
    return sorted((str(path.relative_to(top)), stat.st_size, stat.st_mtime_ns) for path, stat in stats)


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=_DIGEST).digest()


# ── results as bytes ─────────────────────────────────────────────────────────────────────────────


class ResultForm(NamedTuple, Generic[T]):
    """A form of results: what it is called, and how a result is fetched, packed and unpacked."""

    name: str
    fetch: Callable[["duckdb.DuckDBPyRelation"], T]
    pack: Callable[[T], bytes | None]  # None: it is too large, or would not come back as it is
    unpack: Callable[[bytes], T]


def name_of(kind: str, origin: object) -> str:
    """Return under which name a result is kept.

    Args:
        kind: in what form; each has names of its own.
        origin: all that it depends on, beside the folder.
    """
    return f"{_digest(repr((kind, origin)).encode()).hex()}.{kind}"


def packed(table: pa.Table) -> bytes | None:
    """Return a table as bytes; None: it is too large to be kept."""
    if table.nbytes > MOST_BYTES:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(content: bytes) -> pa.Table:
    """Return the table that was `packed`."""
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def packed_rows(rows: Sequence[Mapping[str, Any]]) -> bytes | None:
    """Return rows as bytes; None: they would not come back as they are."""
    try:
        content = packed(
            pa.table({name: _column([row[name] for row in rows]) for name in rows[0]} if rows else {})
        )
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    if content is None or repr(unpacked_rows(content)) != repr(rows):
        return None
    return content


def _column(values: list[Any]) -> "pa.Array[Any]":
    column: pa.Array[Any]
    try:
        column = pa.array(values)
    except OverflowError:  # exact sums, in small parts of a dollar
        column = pa.array([None if value is None else Decimal(value) for value in values], _LARGE)
    return column


def unpacked_rows(content: bytes) -> list[dict[str, Any]]:
    """Return the rows that were packed."""
    table = unpacked(content)
    columns = [
        [value if value is None else int(value) for value in column.to_pylist()]
        if column.type == _LARGE
        else column.to_pylist()
        for column in table.columns
    ]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _fetched_rows(relation: "duckdb.DuckDBPyRelation") -> list[dict[str, Any]]:
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


TABLE: Final = ResultForm[pa.Table]("table", lambda relation: relation.to_arrow_table(), packed, unpacked)
ROWS: Final = ResultForm[list[dict[str, Any]]]("rows", _fetched_rows, packed_rows, unpacked_rows)


# ── tables that queries name ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """How to make a table: by a query, or in Python."""

    query: str = ""
    values: Mapping[str, object] | None = None
    make: Callable[[], pa.Table] | None = None


@dataclass(slots=True, eq=False)
class Connector:
    """Makes the connection to DuckDB once somebody asks for it: it takes longer than to read a few rows."""

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
    """The tables of a connection: those of folders, and others that are made once a query reads them."""

    connector: Connector
    sources: Sources
    counts: KeptCounts
    options: object = ()  # which trials of the folder count
    more: str = ""  # the first columns of the views that count
    origins: dict[str, str | None] = field(default_factory=dict)  # None: of what nobody can tell
    waiting: dict[str, TableSource] = field(default_factory=dict)  # those that nobody read yet
    kept: set[str] = field(default_factory=set)  # the tables of `keep`

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The connection, which is made for the first that asks."""
        return self.connector.connection()

    def table(self, query: str, values: Mapping[str, object] | None = None) -> pa.Table:
        """Return what a SELECT gives; `$name` in it stands for one of the values.

        Raises:
            StoreError: a part of the folder cannot be read.
        """
        return self._result(query, values, TABLE)

    def rows(self, query: str, values: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Return the same as rows: column → value. Raises as `table` does."""
        return self._result(query, values, ROWS)

    def batches(self, query: str, *, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the same, so many rows at a time, where all would be too much; raises as `table` does."""
        with self.sources.telling():
            yield from self._query(query).to_arrow_reader(rows)

    def add_sums(self, query: str = " ".join(SUMS)) -> None:
        """Make the views that count, of those that a query names."""
        add_sums(self.connection, query, self.more)

    def keep(self, name: str, query: str, values: Mapping[str, object] | None = None) -> None:
        """Read rows once that several queries count: later queries have them as the table `name`."""
        self._replace(name, self._origin_of(query, values))
        self.kept.add(name)
        self._wait(name, TableSource(query=query, values=values))

    def define(self, name: str, query: str) -> None:
        """Name a query: each later query that names it reads its rows anew."""
        self._replace(name, self._origin_of(query))
        self._make_waiting(names_in(query))
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def put(self, name: str, rows: pa.Table) -> None:
        """Count rows made in Python: later queries have them as the table `name`, or instead of that view."""
        content = packed(rows) if self.counts.state and rows.nbytes <= FEW_BYTES else None
        self._replace(name, None if content is None else name_of("rows", content))
        self._register(name, rows)

    def put_when_read(self, name: str, origin: str, make: Callable[[], pa.Table]) -> None:
        """Put rows that are made once a query reads them.

        Args:
            name: that of the table.
            origin: what the rows are made of, beside what the folder holds.
            make: makes them.
        """
        self._replace(name, origin if self.counts.state else None)
        self._wait(name, TableSource(make=make))

    def drop(self, *names: str) -> None:
        """Let go of rows that were kept or put: they take memory, and no later query counts them."""
        for name in names:
            self._replace(name, None)
            del self.origins[name]
            self._remove(name)

    def _query(self, query: str, values: Mapping[str, object] | None = None) -> "duckdb.DuckDBPyRelation":
        self._make_waiting(names_in(query))
        self.add_sums(query)
        return self.connection.sql(query, params=values)

    def _result(self, query: str, values: Mapping[str, object] | None, form: ResultForm[T]) -> T:
        """Return what a query gives, or what the folder keeps of it."""
        origin = self._origin_of(query, values)
        name = name_of(form.name, origin)
        if origin is not None and (content := self.counts.get(name)) is not None:
            return form.unpack(content)
        with self.sources.telling():
            result = form.fetch(self._query(query, values))
        if origin is not None:
            self.counts.put(name, form.pack(result))
        return result

    def _origin_of(self, query: str, values: Mapping[str, object] | None = None) -> str | None:
        """Return all that a query's result depends on, beside the folder; None: its result is not kept."""
        origins = {name: self.origins[name] for name in sorted(names_in(query) & self.origins.keys())}
        if self.counts.state is None or None in origins.values():
            return None
        return repr((query, values, origins, self.options))

    def _replace(self, name: str, origin: str | None) -> None:
        """Note of what a table is made from now on; first make those that are made of the one it was.

        One that waits for a query itself is kept under another name, for those that are made of it.
        """
        made_of_it = {other for other, table in self.waiting.items() if name in names_in(table.query)}
        if (present := self.waiting.pop(name, None)) is None:
            self._make_waiting(made_of_it)
        elif made_of_it:
            before = f"{name}_{len(self.waiting)}"
            self.waiting[before] = present
            for other in made_of_it:
                query = re.sub(rf"\b{name}\b", before, self.waiting[other].query)
                self.waiting[other] = replace(self.waiting[other], query=query)
        self.origins[name] = origin

    def _wait(self, name: str, source: TableSource) -> None:
        """Make a table once a query reads it; at once where no result is kept."""
        self.waiting[name] = source
        if self.origins[name] is None:
            self._make_waiting({name})

    def _make_waiting(self, names: Collection[str]) -> None:
        """Make those of the tables that wait for the first query to name them."""
        for name in {*names} & self.waiting.keys():
            source = self.waiting.pop(name, None)
            if source is None:  # made for another of them
                continue
            if source.make is not None:
                self._register(name, source.make())
                continue
            self._make_waiting(names_in(source.query))
            with self.sources.telling():
                self.add_sums(source.query)
                self.connection.unregister(name)
                create = f"CREATE OR REPLACE TEMP TABLE {name} AS {source.query}"
                self.connection.execute(create, source.values)

    def _register(self, name: str, rows: pa.Table) -> None:
        self._remove(name)
        self.connection.execute(f"DROP VIEW IF EXISTS {name}")  # of chosen trials
        self.connection.register(name, rows)

    def _remove(self, name: str) -> None:
        """Let go of a table of ours, whatever it is."""
        import duckdb

        self.connection.unregister(name)
        self.kept.discard(name)
        for kind in ("TABLE", "VIEW"):
            with suppress(duckdb.CatalogException):  # it is of the other kind
                self.connection.execute(f"DROP {kind} IF EXISTS temp.{name}")


def names_in(query: str) -> set[str]:
    """Return the words of a query, and of the views of ours that it names."""
    words = {*re.findall(r"\w+", query)}
    return words.union(*(re.findall(r"\w+", SUMS[name]) for name in words & SUMS.keys()))
