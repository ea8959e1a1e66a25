"""Tables as Arrow, pandas or Polars data frames."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, overload

import pyarrow as pa

from asyncbench.errors import ConfigError
from asyncbench.store.bucket.fetching import at_hand
from asyncbench.store.snapshot import Columns, Filters

if TYPE_CHECKING:
    import pandas
    import polars

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


def in_frames(read: Callable[[Path | str, Columns, Filters | None], pa.Table]) -> TableReader:
    """Return a reader that also takes `as_`, the kind of data frame that comes out."""

    def reading(
        folder: Paths,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Frame = "arrow",
    ) -> Any:  # the data frame that `as_` names
        return framed(lambda: _of_all(read, paths_of(folder), columns, filters), as_)

    update_wrapper(reading, read, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del reading.__wrapped__  # type: ignore[attr-defined]  # else `help` would show the signature without `as_`
    return reading


def _of_all(
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
    paths = (at_hand(folder),) if isinstance(folder, str | PathLike) else tuple(map(at_hand, folder))
    if not paths:
        raise ConfigError("no results folder is named. Name one or more.")
    if twice := [path for path, times in Counter(path.resolve() for path in paths).items() if times > 1]:
        raise ConfigError(f"{twice[0]} is named twice. Name each results folder once.")
    return paths


def labels_of(paths: Sequence[Path]) -> Mapping[str, Path]:
    """Return what to call each of several folders: its last name where no other has it, else its path."""
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
