"""Text files of your own, row by row: CSV, TSV, JSON and JSON lines. Values stay the text that was written.

Readers of tables make numbers of texts: they lose the zeros of 0012 and 1.50, and the end of a long number.
"""

import csv
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from asyncbench.errors import ProblemSetError
from asyncbench.files import local
from asyncbench.problems.files import LONGEST_TEXT, MOST_AT_ONCE, refusal

TABLES: Final = (".csv", ".tsv")
JSON_LINES: Final = (".jsonl", ".ndjson")
JSON: Final = ".json"  # one list of objects
Row: TypeAlias = dict[str, Any]  # Any: text, or whatever else JSON holds but numbers
_EXAMPLE: Final = '{"question": "1 + 1?", "answer": "2"}'
_JSON_KINDS: Final = {list: "a list", dict: "an object", bool: "true or false", type(None): "null"}


def is_text_file(path: Path) -> bool:
    """Return whether a file is read as text; any other is read as Parquet."""
    return path.suffix.lower() in (*TABLES, *JSON_LINES, JSON)


def text_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield each row with its place for messages: the file, and the line that it begins in or its number.

    Raises:
        ProblemSetError: a line is not what it should be; or the file cannot be read.
    """
    ending, lines = path.suffix.lower(), _lines(path)
    if ending in TABLES:
        return _table_rows(path, lines, separator="\t" if ending == ".tsv" else ",")
    return _listed_rows(path, lines) if ending == JSON else _json_rows(path, lines)


def names_in(path: Path) -> list[str]:
    """Return the columns of the first row; raises likewise."""
    return list(next((row for _, row in text_rows(path)), ()))


def text_value(row: Row, column: str, *, place: str) -> str:
    """Return the text of a column of a row.

    Raises:
        ProblemSetError: it is no text; `place` says where the row is.
    """
    value = row[column]
    if not isinstance(value, str):
        kind = _JSON_KINDS.get(type(value), "something else")
        raise ProblemSetError(f"{place}: column {column!r} is {kind}, not text. Write it as text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ProblemSetError(
            f"{place}: column {column!r} holds half of a character (\\ud800 to \\udfff). Correct that text."
        ) from None
    return value


def _lines(path: Path) -> Iterator[str]:
    try:
        with local(path).open("rb") as file:
            for number in range(1, 2**63):
                line = file.readline(MOST_AT_ONCE + 1)
                if not line:
                    return
                place = f"{path}, line {number}"
                if len(line) > MOST_AT_ONCE:
                    raise ProblemSetError(f"{place}: it has more than {MOST_AT_ONCE:,} bytes. Remove it.")
                yield _decoded(line, first=number == 1, place=place)
    except OSError as error:
        raise refusal(path, error) from error


def _decoded(line: bytes, *, first: bool, place: str) -> str:
    try:
        return line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise ProblemSetError(
            f"{place}: it is not UTF-8 text (byte {error.start + 1:,}: {error.reason}). Save it as UTF-8."
        ) from None


# ── tables


def _table_rows(path: Path, lines: Iterator[str], separator: str) -> Iterator[tuple[str, Row]]:
    csv.field_size_limit(LONGEST_TEXT)  # for all of this process: there is no other way
    first, header = next(((n, line) for n, line in enumerate(lines) if not line.isspace()), (0, ""))
    if separator not in header and ";" in header:  # as spreadsheets write it where 1,5 is a number
        separator = ";"
    reader = csv.reader(chain([header], lines), delimiter=separator, strict=True)
    names: list[str] | None = None
    while True:
        place = f"{path}, line {first + reader.line_num + 1}"
        try:
            values = next(reader, None)
        except csv.Error as error:
            raise ProblemSetError(f"{place}: it cannot be read as CSV: {error}. Correct it.") from None
        if values is None:
            return
        if names is None:
            names = _names(values, place)
        elif values:  # no empty line
            if len(values) != len(names):
                raise ProblemSetError(
                    f"{place}: {len(values):,} values, but the header has {len(names):,}. Put a value with "
                    f'{separator!r} or a line break in double quotes ("…").'
                )
            yield place, dict(zip(names, values, strict=True))


def _names(header: list[str], place: str) -> list[str]:
    names = [name.strip() for name in header]
    for name in filter(None, names):
        if names.count(name) > 1:
            raise ProblemSetError(f"{place}: two columns are called {name!r}. Rename one.")
    return names


# ── JSON


def _json_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(lines, 1):
        if not line.isspace():
            place = f"{path}, line {number}"
            yield place, _object(_parsed(line, place, "Write one object per line"), place)


def _listed_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[str, Row]]:
    content = _parsed(
        "".join(lines), str(path), f"If it has one object per line, rename it to {path.stem}.jsonl"
    )
    if not isinstance(content, list):
        raise ProblemSetError(f"{path}: it is not a list of JSON objects. Write [{_EXAMPLE}, …].")
    for number, row in enumerate(content, 1):
        place = f"{path}, object {number}"
        yield place, _object(row, place)


def _parsed(text: str, place: str, way_out: str) -> object:
    try:
        return json.loads(
            text, parse_int=str, parse_float=str, parse_constant=_no_number, object_pairs_hook=_no_key_twice
        )
    except (ValueError, RecursionError) as error:
        raise ProblemSetError(f"{place}: it cannot be read as JSON: {error}. {way_out}.") from None


def _object(row: object, place: str) -> Row:
    if not isinstance(row, dict):
        raise ProblemSetError(f"{place}: it is not a JSON object. Write it as {_EXAMPLE}.")
    return row


def _no_key_twice(pairs: list[tuple[str, Any]]) -> Row:  # Any: JSON
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has {next(name for name in names if names.count(name) > 1)!r} twice")
    return row


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
