"""Counts that a large results folder keeps, so that the next report reads them in milliseconds.

    results/night/.counts/41c0…/    one state of the folder: its parts as they are now
        9be2….table, 77ab….rows     what a query of ours gave
        d07a….json                  what Python made of rows, such as the kinds of errors

A state names every file that is counted: its digest in the folder's list, its size, and when the disk last
changed it. So counts are trusted only for exactly these parts: where one is replaced, damaged or restored,
or the folder was copied, all is counted anew from the rows, which are verified as they are read. Nothing is
kept while a journal holds rows: a run goes on, or has to be gone on with. You may delete `.counts` at any
time.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from uuid import uuid4

import pyarrow as pa

from asyncbench.problems.copies import EARLIER, PROBLEMS, copy_files
from asyncbench.store.holdings import known_parts
from asyncbench.store.snapshot import Snapshot

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

COUNTS: Final = ".counts"  # in a results folder
LEAST = 10_000  # trials: fewer are counted faster than it pays to keep
MOST_BYTES: Final = 200_000_000  # of one result: more is rows, not counts
_DIGEST: Final = 16  # bytes
_LARGE: Final = pa.decimal128(38, 0)  # of integers of more than 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCounts:
    """The counts that a folder keeps of its present state."""

    folder: Path
    state: str | None  # None: it keeps none

    def get(self, name: str) -> bytes | None:
        """Return the bytes kept under a name, or None if there are none that can be trusted."""
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
        state_folder = self._top / self.state
        draft = state_folder / f"{uuid4().hex}.new"
        with suppress(OSError):
            if not self._top.is_symlink():
                if not state_folder.is_dir():
                    # Nobody will ask for the counts of other states again.
                    for earlier in self._top.iterdir() if self._top.is_dir() else ():
                        shutil.rmtree(earlier, ignore_errors=True)
                    state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    draft.write_bytes(_digest(value) + value)
                    draft.replace(state_folder / name)
                finally:
                    draft.unlink(missing_ok=True)

    @property
    def _top(self) -> Path:
        return self.folder / COUNTS


def state_of(folder: Path, snapshot: Snapshot) -> str | None:
    """Return the state of a folder, or None if no counts are kept since it is small or still changes."""
    listed = known_parts(folder)
    if trials_in(listed) < LEAST or any(map(len, snapshot.journalled.values())):
        return None

    # Programs can set the first time of a change back, and on some systems the second one is another time.
    files = dict[str, tuple[int, int, int]]()
    try:
        for path in (*chain.from_iterable(snapshot.files.values()), *copy_files(folder)):
            stat = path.stat()
            file_state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            files[path.relative_to(folder).as_posix()] = file_state
    except (OSError, ValueError):  # replaced a moment ago, which whoever reads it is told, or elsewhere
        return None
    entries = [
        (path, (listed.get(path) or {}).get("digest"), file_state) for path, file_state in files.items()
    ]
    if any(digest is None and not path.startswith((PROBLEMS, EARLIER)) for path, digest, _ in entries):
        return None  # workers have folders of their own
    return _digest(repr((_code(), sorted(entries))).encode()).hex()


def trials_in(listed: Mapping[str, Any]) -> int:
    """Return how many trials a folder's list of parts has."""
    return sum(entry["rows"] for key, entry in listed.items() if entry and key.startswith("trials/"))


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
    """Return a table as bytes, or None if it is too large to be kept."""
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
    """Return rows as bytes, or None if they could not be read back unchanged."""
    try:
        columns = {name: _column([row[name] for row in rows]) for name in rows[0]} if rows else {}
        content = packed(pa.table(columns))
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


TABLE: Final = ResultForm[pa.Table]("table", lambda relation: relation.to_arrow_table(), packed, unpacked)
ROWS: Final = ResultForm[list[dict[str, Any]]](
    "rows",
    lambda relation: [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()],
    packed_rows,
    unpacked_rows,
)
