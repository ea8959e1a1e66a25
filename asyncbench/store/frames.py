"""Tables as the data frame that the caller works with: Arrow, pandas or Polars."""

from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, overload

import pyarrow as pa

from asyncbench.errors import ConfigError
from asyncbench.store.snapshot import Columns, Filters

if TYPE_CHECKING:
    import pandas
    import polars

Frame = Literal["arrow", "pandas", "polars"]

_MADE: Final[dict[str, Callable[[pa.Table, Any], Any]]] = {  # Any: the package, and its data frame
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, polars: polars.from_arrow(table),
}


class TableReader(Protocol):
    """A function that reads a table of a results folder, in the form that `as_` names."""

    @overload
    def __call__(
        self,
        folder: Path | str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["arrow"] = "arrow",
    ) -> pa.Table: ...
    @overload
    def __call__(
        self,
        folder: Path | str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["pandas"],
    ) -> "pandas.DataFrame": ...
    @overload
    def __call__(
        self,
        folder: Path | str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Literal["polars"],
    ) -> "polars.DataFrame": ...


def in_frames(read: Callable[[Path | str, Columns, Filters | None], pa.Table]) -> TableReader:
    """Return a reader that also takes `as_`, the kind of data frame that comes out."""

    def reading(
        folder: Path | str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        as_: Frame = "arrow",
    ) -> Any:  # the data frame that `as_` names
        return framed(lambda: read(folder, columns, filters), as_)

    update_wrapper(reading, read, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del reading.__wrapped__  # type: ignore[attr-defined]  # else `help` would show the signature without `as_`
    return reading


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
