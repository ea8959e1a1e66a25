"""JSON as lines of text: which keys it has and of which types, and which figures it holds."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any

MOST_ROWS = 150  # of a table that shows every figure
DIGEST = "~"  # the column of what a longer table does not show
TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}
WORD = re.compile(r"[a-z][a-z_-]*")  # of our own, such as `tied`; no sentence, path, time or reply
Row = dict[str, Any]
Path = tuple[str, ...]  # of keys


def shape_lines(documents: Iterable[Any], names: Collection[str], *, typed: bool = True) -> list[str]:
    """Return all keys with their types, one a line, below the key that holds them.

    A key that is one of `names`, or a number, is `*`; `[]` are the items of a list.
    """
    types: dict[Path, set[str]] = {}
    for document in documents:
        for path, kind in _shape(document, (), names):
            types.setdefault(path, set()).add(kind)
    return [
        f"{'  ' * len(path)}{path[-1]}{': ' * typed}{'|'.join(sorted(kinds)) * typed}"
        for path, kinds in sorted(types.items())
        if path
    ]


def _shape(value: Any, path: Path, names: Collection[str]) -> Iterator[tuple[Path, str]]:
    match value:
        case dict():
            yield path, "object"
            for key, inner in value.items():
                yield from _shape(inner, (*path, "*" if key in names or key.isdecimal() else key), names)
        case list():
            yield path, "array"
            for inner in value:
                yield from _shape(inner, (*path, "[]"), names)
        case _:
            yield path, TYPES[type(value)]


def figure_lines(document: Any, names: Collection[str]) -> list[str]:
    """Return all figures as tables, a record a line; of texts only names and our own words are kept."""
    tables: dict[str, list[Row]] = {}
    for table, row in _records(document, "", names):
        tables.setdefault(table, []).append(row)
    return [line for table, rows in sorted(tables.items()) for line in _table(table, rows)]


def _table(name: str, rows: list[Row]) -> Iterator[str]:
    """Yield its head and its rows; what is the same in all rows stands in the head, `"` is as above."""
    rows = list(map(_with_digest, rows)) if len(rows) > MOST_ROWS else rows
    cells = {column: [_cell(row, column) for row in rows] for column in _columns(rows)}
    same = {column: held[0] for column, held in cells.items() if len(rows) > 2 and len({*held}) == 1}
    if not cells:
        return
    head = (f"{column}={same[column]}" if column in same else column for column in cells)
    yield f"# {name} {'|'.join(head)}"
    shown = [
        _ditto(held) if _is_label(held) else held for column, held in cells.items() if column not in same
    ]
    yield from map("|".join, zip(*shown, strict=True))


def _with_digest(row: Row) -> Row:
    """Return a row whose counts are as they are; of all else that is a figure, there is one digest."""
    rest = {column: value for column, value in row.items() if isinstance(value, float | list)}
    told = sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:8]
    return {column: value for column, value in row.items() if column not in rest} | {DIGEST: f"~{told}"}


def _columns(rows: list[Row]) -> list[str]:
    """Return names before figures, and these before a digest."""
    texts = {column for row in rows for column, value in row.items() if isinstance(value, str)}
    columns = {column for row in rows for column in row}
    return sorted(columns, key=lambda column: (column == DIGEST, column not in texts, column))


def _is_label(cells: list[str]) -> bool:
    return any(cell[:1].isalpha() and cell not in ("null", "true", "false") for cell in cells)


def _ditto(cells: list[str]) -> list[str]:
    return [
        '"' if above == cell and cell else cell for above, cell in zip([None, *cells], cells, strict=False)
    ]


def _cell(row: Row, column: str) -> str:
    if column not in row:
        return ""
    value = row[column]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _records(value: Any, table: str, names: Collection[str]) -> Iterator[tuple[str, Row]]:
    """Yield a record as a row of its table, then the rows of the tables within it."""
    row: Row = {}
    within: list[tuple[str, list[Any]]] = []
    for path, leaf in _leaves(value, ""):
        if isinstance(leaf, list) and any(isinstance(one, dict | list) for one in leaf):
            within.append((path, leaf))
        elif not isinstance(leaf, str) or leaf in names or WORD.fullmatch(leaf):
            row[path] = _exact(leaf, path, names)
    yield table, row
    for path, leaf in within:
        for inner in leaf:
            yield from _records(inner, f"{table}{path}/", names)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        if key != "examples":  # of questions and replies
            yield from _leaves(inner, f"{path}.{key}" if path else key)


def _exact(value: Any, path: str, names: Collection[str]) -> Any:
    """Return a figure as every machine has it: to 10 digits, p-values to 12, dollars to 12 decimals."""
    match value:
        case float() if isfinite(value):
            digits = 12 if path.split(".")[-1].startswith("p") else 10
            return round(value, 12) if "usd" in path else float(f"{value:.{digits}g}")
        case list():
            kept = (one for one in value if not isinstance(one, str) or one in names or WORD.fullmatch(one))
            return [_exact(one, path, names) for one in kept]
    return value


def without_times(document: Any) -> Any:
    """Return the same without what a clock measured: for runs that really took place."""
    match document:
        case Mapping():
            return {key: without_times(value) for key, value in document.items() if not timed(key)}
        case list():
            return [without_times(value) for value in document]
    return document


def timed(key: str) -> bool:
    """Return whether a key is of a time, or of what depends on it."""
    return bool(
        re.search(r"seconds|latency|ttft|ttfo|tpot|itl|_s$|_at$|per_s|in_flight|at_once|minutes|hours", key)
    )
