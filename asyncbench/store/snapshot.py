"""A results folder at one moment: its parts, and the rows that only the journal holds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import update_wrapper
from importlib import import_module
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.errors import ConfigError, StoreError
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.journal import Unfinished, lost
from asyncbench.store.parts import check_parts, coded_schema, dataset, read_checked, scanned
from asyncbench.store.rows import Tables, attempt_row, joined
from asyncbench.store.schema import ATTEMPTS, SCHEMAS
from asyncbench.store.sealing import ONCE
from asyncbench.store.segment import Damage

if TYPE_CHECKING:
    import pandas
    import polars

READ_TRIES = 5  # a folder is rewritten once in a long while
BATCH_ROWS = 8192  # as many as a row group has
MANY_ROWS = 65_536  # where columns hold no long texts: fewer and larger batches are read twice as fast

Columns = Sequence[str] | None  # their names, in the order wanted; None: all
Filters = pc.Expression | list[tuple[str, str, object]]  # as pyarrow.parquet.read_table takes them


class MovedError(StoreError):
    """A part was there, and then another had taken its place: look again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a results folder held when it was looked at."""

    files: Mapping[str, Sequence[Path]]  # the parts of each table, without those that the journal covers
    journalled: Tables
    unfinished: Unfinished
    damaged: Sequence[Damage]

    def read(self, name: str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
        """Return a table's rows: of its parts, then of the journal.

        Raises:
            ConfigError: there is no such column, or a filter compares what cannot be compared.
            StoreError: a part cannot be read.
        """
        names = chosen_columns(name, columns, SCHEMAS[name])
        wanted = expression(name, filters, SCHEMAS[name])
        tables = [self.journalled[name].filter(wanted).select(names)]
        if files := self.files[name]:
            with reading(name):
                standing = self._standing(name, wanted)
                check_parts(name, files, columns=names, filters=standing)
                tables.insert(0, dataset(name, files).to_table(names, filter=standing))
        return pa.concat_tables(tables)

    def batches(
        self,
        name: str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        rows: int = BATCH_ROWS,
        coded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same rows as `read`, at most `rows` at a time; few batches are in memory together.

        The `coded` columns come as dictionaries: where values are few, that is faster and smaller.

        Raises:
            ConfigError, StoreError: as `read` does; a wrong column or filter before the first batch.
        """
        names = chosen_columns(name, columns, SCHEMAS[name])
        wanted = expression(name, filters, SCHEMAS[name])
        limits = None if filters is None else wanted

        def matching() -> Iterator[pa.RecordBatch]:
            if self.files[name]:
                standing = self._standing(name, limits)
                with reading(name):
                    yield from scanned(
                        name, self.files[name], columns=names, filters=standing, rows=rows, coded=coded
                    )
            fresh = self.journalled[name].filter(wanted).select(names)
            fresh = fresh.cast(coded_schema(fresh.schema, coded))
            yield from (batch for batch in fresh.to_batches(max_chunksize=rows) if batch.num_rows)

        return matching()

    def read_coded(
        self, name: str, columns: Sequence[str], filters: Filters | None = None, *, coded: Collection[str]
    ) -> pa.Table:
        """Return the same rows as `read`; the `coded` columns come as dictionaries, each as one."""
        schema = coded_schema(pa.schema([SCHEMAS[name].field(column) for column in columns]), coded)
        batches = self.batches(name, columns, filters, rows=MANY_ROWS, coded=coded)
        return pa.Table.from_batches(batches, schema).unify_dictionaries()

    def read_part(
        self,
        name: str,
        part: Path,
        columns: Sequence[str],
        *,
        coded: Collection[str] = (),
        places: Sequence[int] | None = None,
    ) -> pa.Table:
        """Return columns of one of a table's parts, with rows that do not count; raises as `read` does.

        Args:
            name: of the table.
            part: one of its parts.
            columns: their names.
            coded: those that come as dictionaries.
            places: of its rows, ascending; None: all.
        """
        schema = coded_schema(pa.schema([SCHEMAS[name].field(column) for column in columns]), coded)
        batches = self.part_batches(name, part, columns, coded=coded, places=places)
        return pa.Table.from_batches(batches, schema).unify_dictionaries()

    def part_batches(
        self,
        name: str,
        part: Path,
        columns: Sequence[str],
        *,
        coded: Collection[str] = (),
        places: Sequence[int] | None = None,
        rows: int = MANY_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same as `read_part`, at most `rows` at a time."""
        with reading(name):
            check_parts(name, [part], columns=columns, places=places)
            yield from read_checked(name, part, columns=columns, places=places, rows=rows, coded=coded)

    def counted(
        self, name: str, read: Callable[[Path], Iterable[pa.Table]], columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Yield the rows that `read` returns of each part, as they count now; then those of the journal."""
        standing = self._standing(name, None)
        for rows in chain.from_iterable(map(read, self.files[name])):
            yield rows if standing is None else rows.filter(standing)
        yield self.journalled[name].select(list(columns))

    def select_parts(self, name: str, fits: Callable[[Path], bool]) -> "Snapshot":
        """Return it with only some parts of a table, and all that its journal held."""
        return replace(self, files={**self.files, name: [path for path in self.files[name] if fits(path)]})

    def ended(self) -> "Snapshot":
        """Return it with every call ended: nobody is going to tell how those of dead runs did."""
        rows = {"attempts": pa.concat_tables([self.journalled["attempts"], lost_calls(self.unfinished)])}
        answers = Unfinished(replies=self.unfinished.replies)
        return replace(self, journalled={**self.journalled, **rows}, unfinished=answers)

    def _standing(self, name: str, wanted: pc.Expression | None) -> pc.Expression | None:
        """Return the condition for the wanted rows of the parts, None for all. Replaced rows are out."""
        ids = self._answered_again(name)
        if not len(ids):
            return wanted
        first = ~pc.field("trial_id").isin(ids)
        return first if wanted is None else wanted & first

    def uncounted(self, name: str) -> Mapping[Path, "pa.Array[pa.StringScalar]"]:
        """Return of each part of a table the ids of trials whose rows in it do not count."""
        return dict.fromkeys(self.files[name], self._answered_again(name))

    def _answered_again(self, name: str) -> "pa.Array[pa.StringScalar]":
        """Return the ids of trials whose rows in parts do not count: the journal has later ones."""
        return joined(self.journalled[table]["trial_id"] for table in overruled_by(name))


def overruled_by(name: str) -> tuple[str, ...]:
    """Return the tables whose later rows take the place of this table's of the same trial."""
    asked_after_all = ("trials",) if name == "skipped" else ()
    return (name, *asked_after_all) if name in ONCE else ()


def chosen_columns(name: str, columns: Sequence[str] | None, schema: pa.Schema) -> list[str]:
    """Return the wanted columns of a table. None means all."""
    if isinstance(columns, str):
        raise ConfigError(f"{name}: columns must be a list of names, not a text. Write [{columns!r}].")
    chosen = schema.names if columns is None else list(columns)
    if unknown := [column for column in chosen if column not in schema.names]:
        raise ConfigError(
            f"{name} has no column {', '.join(map(repr, unknown))}. Its columns: {', '.join(schema.names)}."
        )
    return chosen


def expression(name: str, filters: Filters | None, schema: pa.Schema) -> pc.Expression:
    """Return filters in either form as an expression that fits a table's columns.

    Raises:
        ConfigError: they name a column that is not there, or compare what cannot be compared.
    """
    if filters is None:
        return pc.scalar(True)
    try:
        wanted = pq.filters_to_expression(filters)  # type: ignore[arg-type]  # it takes both forms, and objects
        schema.empty_table().filter(wanted)
    except (pa.ArrowException, ValueError, TypeError) as error:
        why = str(error).partition(" in ")[0].partition("\n")[0]
        raise ConfigError(
            f"{name}: the filter does not work: {why}. Its columns: {', '.join(schema.names)}."
        ) from error
    return wanted


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what a spoiled part of a table raises into a StoreError that says what to do."""
    try:
        yield
    except FileNotFoundError as error:
        raise MovedError(f"{name}: {error}. The folder was being rewritten. Read it again.") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise StoreError(f"{name}: {error}. Restore that part from a backup, or remove it.") from error


def lost_calls(unfinished: Unfinished) -> pa.Table:
    """Return the calls without an end as rows of `attempts`."""
    rows = [attempt_row(lost(sent)) for sent in unfinished.sent.values()]
    plain = pa.schema(
        field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in ATTEMPTS
    )
    return pa.Table.from_pylist(rows, plain).cast(ATTEMPTS)


# ── Tables as Arrow, pandas or Polars data frames


Frame = Literal["arrow", "pandas", "polars"]
Paths = PathLike[str] | str | Sequence[PathLike[str] | str]  # one folder or several

_MADE: Final[dict[str, Callable[[pa.Table, Any], Any]]] = {  # Any: the package, and its data frame
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, polars: polars.from_arrow(table),
}


class TableReader(Protocol):
    """A function that reads a table of a results folder, in the form that `as_` names."""

    @overload
    def __call__(
        self,
        folder: Paths,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["arrow"] = "arrow",
    ) -> pa.Table: ...
    @overload
    def __call__(
        self,
        folder: Paths,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["pandas"],
    ) -> "pandas.DataFrame": ...
    @overload
    def __call__(
        self,
        folder: Paths,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["polars"],
    ) -> "polars.DataFrame": ...


def table_reader(read: Callable[[Path | str, Columns, Filters | None], pa.Table]) -> TableReader:
    """Return a reader that also takes `as_`, the kind of data frame that comes out."""

    def reading(
        folder: Paths,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Frame = "arrow",
    ) -> Any:  # the data frame that `as_` names
        return framed(lambda: _read_all(read, paths_of(folder), columns, filters), as_)

    update_wrapper(reading, read, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del reading.__wrapped__  # type: ignore[attr-defined]  # else `help` would show the signature without `as_`
    return reading


def _read_all(
    read: Callable[[Path | str, Columns, Filters | None], pa.Table],
    paths: Sequence[Path],
    columns: Columns,
    filters: Filters | None,
) -> pa.Table:
    """Return the rows of all folders; where there are several, the column `folder` comes first."""
    if len(paths) == 1:
        return read(paths[0], columns, filters)
    tables = []
    for label, path in labels_of(paths).items():
        rows = read(path, columns, filters)
        tables.append(rows.add_column(0, "folder", pa.repeat(pa.scalar(label), len(rows))))
    return pa.concat_tables(tables)


def paths_of(folder: Paths) -> tuple[Path, ...]:
    """Return the folders that are named; those of a bucket are fetched.

    Raises:
        ConfigError: none is, or one is named twice.
    """
    paths = (
        (local_folder(folder),) if isinstance(folder, str | PathLike) else tuple(map(local_folder, folder))
    )
    if not paths:
        raise ConfigError("no results folder is named. Name one or more.")
    if twice := [path for path, times in Counter(path.resolve() for path in paths).items() if times > 1]:
        raise ConfigError(f"{twice[0]} is named twice. Name each results folder once.")
    return paths


def labels_of(paths: Sequence[Path]) -> Mapping[str, Path]:
    """Return a label for each of several folders: its last name where no other has it, else its path."""
    names = [path.resolve().name for path in paths]
    times = Counter(names)
    return {name if times[name] == 1 else str(path): path for name, path in zip(names, paths, strict=True)}


def framed(read: Callable[[], pa.Table], as_: Frame) -> Any:
    """Return a table as the data frame that `as_` names; a package that is missing is told before reading.

    Raises:
        ConfigError: there is no such kind of data frame, or its package is not installed.
    """
    if as_ == "arrow":
        return read()
    if as_ not in _MADE:
        raise ConfigError(f"as_={as_!r} is not a kind of table. Choose 'arrow', 'pandas' or 'polars'.")
    try:
        package = import_module(as_)
    except ImportError as error:
        raise ConfigError(f"as_={as_!r} needs the package {as_}. Install it: pip install {as_}") from error
    return _MADE[as_](read(), package)
