"""Objects of Python in a sweep: rows, functions and suites become what a sweep file's keys hold.

    {"problems": df, "models": [answer, "openai/gpt-5-mini"], "grader": lambda reply, problem: …}

Rows are kept in a file that lasts as long as this process; a results folder has a copy of its own.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from math import isfinite, isnan
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from asyncbench.errors import ConfigError
from asyncbench.suites.handed_functions import text_of_function, text_of_suite
from asyncbench.suites.suite import Suite

NAME: Final = "sweep"  # of a sweep that says none
ROWS: Final = "problems.jsonl"
Row = Mapping[str, Any]  # Any: whatever a table holds


def plain_sweep(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping of a sweep file that says the same as a dict written in Python.

    Raises:
        ConfigError: it holds an object that is neither rows, nor a function.
    """
    sweep = {"name": NAME, **{key: _plain(value) for key, value in raw.items() if key != "problems"}}
    grader = sweep.pop("grader", None)
    if "problems" in raw:
        sweep["problems"] = _sources(raw["problems"], grader)
    elif grader is not None:
        raise ConfigError("sweep: `grader` is for `problems`, and there are none. Add them.")
    if isinstance(sweep.get("models"), str):
        sweep["models"] = [sweep["models"]]
    for model, entry in zip(_listed(sweep.get("models")), _listed(raw.get("models")), strict=True):
        if isinstance(entry, Mapping) and "problems" in entry:
            model["problems"] = _sources(entry["problems"], grader)
    return sweep


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _plain(value: object) -> object:
    """Return a value with functions and suites as the texts that name them, and paths as text."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {key: nested if key == "problems" else _plain(nested) for key, nested in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(nested) for nested in value]
    if isinstance(value, Suite):
        return text_of_suite(value)
    return text_of_function(value) if callable(value) and not isinstance(value, type) else value


def _sources(problems: object, grader: object) -> object:
    """Return the entries of problem sets: files, suites and rows, with the sweep's grader where none is."""
    if isinstance(problems, str | Path | Mapping | Suite) or _rows(problems) is not None:
        problems = [problems]
    if not isinstance(problems, list | tuple):
        raise ConfigError(
            f"sweep: `problems` is a {type(problems).__name__}. Give a path, a list of dicts or a data "
            "frame. Of a lazy frame, that is `collect()`; of a generator, `list(…)`."
        )
    entries = []
    for source in problems:
        key = "suite" if isinstance(source, Suite) else "path"
        entry = source if isinstance(source, Mapping) else {key: source}
        rows = _rows(entry.get("path"))
        if rows is not None:
            entry = {"suite": "custom", **entry, "path": _rows_file(rows)}
        elif grader is not None and "path" in entry:
            entry = {"suite": "custom", **entry}
        plain = _plain(entry)
        if grader is not None and entry.get("suite") == "custom" and "grader" not in entry:
            plain = {**plain, "grader": grader}  # type: ignore[dict-item]  # a mapping, as the entry is
        entries.append(plain["path"] if isinstance(plain, dict) and [*plain] == ["path"] else plain)
    return entries


# ── rows


def _rows(value: object) -> Iterable[Row] | None:
    """Return the rows of a table or a list of dicts, or None for anything else."""
    if isinstance(value, list | tuple):
        # A mapping with `path` or `suite` names a problem set, unless it holds a question.
        are_rows = value and all(
            isinstance(row, Mapping) and ("question" in row or not {"path", "suite"} & row.keys())
            for row in value
        )
        return value if are_rows else None
    table = _table(value)
    if table is None:
        return None

    columns = list[list[Any]]()
    for column in table.columns:
        if not pa.types.is_floating(column.type):
            columns.append(column.to_pylist())
            continue

        # Through text: a short float of 0.1 is not 0.10000000149. One whose numbers are all whole is a column
        # of integers, of which some are missing.
        floats = column.cast(pa.string()).cast(pa.float64()).to_pylist()
        numbers = [None if number is None or isnan(number) else number for number in floats]
        whole = all(number is None or number.is_integer() for number in numbers)
        columns.append([int(number) if whole and number is not None else number for number in numbers])
    return (dict(zip(table.column_names, cells, strict=True)) for cells in zip(*columns, strict=True))


def _table(value: object) -> pa.Table | None:
    """Return a table of pandas, Polars, Arrow or anything else that hands its columns on.

    Raises:
        ConfigError: two columns have one name, or a column holds what no file of problems can say.
    """
    if isinstance(value, pa.Table):
        return value
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns"):
        return _table_of_pandas(value)
    if hasattr(value, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(value).read_all()
        except pa.ArrowException as error:
            raise ConfigError(
                f"sweep, problems: a {type(value).__name__} is here, and it is no table that Arrow can read "
                f"({error}). Give a data frame or a list of dicts, such as `frame.to_dicts()` of Polars."
            ) from None
    if hasattr(value, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        table: pa.Table = from_dataframe(value)  # type: ignore[operator]  # its stubs name a module so
        return table
    return None


def _table_of_pandas(frame: Any) -> pa.Table:  # Any: pandas need not be installed
    """Return the columns of a data frame, and of its index what has a name."""
    if named := [name for name in frame.index.names if name is not None and name not in frame.columns]:
        frame = frame.reset_index(level=named)
    names = [*map(str, frame.columns)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"sweep, problems: several columns are called {', '.join(repeated)}. Rename them.")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, OverflowError):  # such as a column with values of several types
        columns = dict[str, list[str | None]]()
        for name, column in zip(names, frame.columns, strict=True):
            try:
                cells = [_written(cell) for cell in frame[column]]
            except TypeError as error:
                raise ConfigError(f"sweep, problems, column {name!r}: {error}. Write it as text.") from None
            columns[name] = [cell if isinstance(cell, str | None) else json.dumps(cell) for cell in cells]
        return pa.Table.from_pydict(columns)


def _rows_file(rows: Iterable[Row]) -> str:
    """Write rows down and return the path; equal rows have the same.

    Raises:
        ConfigError: they have no content, or hold what no file of problems can say.
    """
    lines = list[str]()
    for number, row in enumerate(rows, 1):
        cells = dict[str, object]()
        for name, value in row.items():
            try:
                cells[str(name)] = _written(value)
            except TypeError as error:
                place = f"sweep, problems, row {number}, column {str(name)!r}"
                raise ConfigError(f"{place}: {error}. Write it as text.") from None
        lines.append(json.dumps(cells))
    if not lines:
        raise ConfigError("sweep, problems: the table has no rows.")
    text = "\n".join(lines).encode()
    folder = Path(_folder().name, blake2b(text, digest_size=8).hexdigest())
    folder.mkdir(exist_ok=True)
    (folder / ROWS).write_bytes(text)
    return str(folder / ROWS)


@cache
def _folder() -> "TemporaryDirectory[str]":
    """Return the folder of this process for rows; it goes with it."""
    return TemporaryDirectory(prefix="asyncbench-rows-")


def _written(value: Any) -> object:
    """Return a cell as JSON holds it; what is missing is null.

    Raises:
        TypeError: it is of a kind that has no text of its own.
    """
    if value is None or isinstance(value, str | bool | int):
        return str(value) if type(value) not in (str, bool, int) and isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(key): _written(nested) for key, nested in value.items()}
    if isinstance(value, list | tuple):
        return [_written(nested) for nested in value]
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if isnan(value):
            return None
        return float(value) if isfinite(value) else str(value)  # JSON has no infinite number
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas"):
        if hasattr(value, "tolist"):  # an array, or one of its values
            return _written(value.tolist())
        if str(value) in ("<NA>", "NaT"):
            return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{value!r:.60} is {type(value).__name__}")
