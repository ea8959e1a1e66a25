"""Text files of your own, row by row: CSV, TSV, JSON and JSON lines.

Values stay the text that was written: readers of tables make numbers of texts, and lose the zeros of 0012 and
1.50, and the end of a long number.
"""

import csv
import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from asyncbench.contents import text_lines, unpacked_name
from asyncbench.errors import ProblemSetError
from asyncbench.problems.files import LONGEST_TEXT, content_in, refusal

if TYPE_CHECKING:
    import _csv

TABLES: Final = (".csv", ".tsv")
JSON_LINES: Final = (".jsonl", ".ndjson")
JSON: Final = ".json"  # one list of objects
ENDINGS: Final = (*TABLES, *JSON_LINES, JSON)
Row: TypeAlias = dict[str, Any]  # Any: text, or whatever else JSON holds but numbers
MOST_IN_A_LIST: Final = 500_000_000  # characters of one JSON list, which is parsed as a whole
_LISTED: Final = re.compile(r"\s*\[\s*(?:[\[{\"]|$)")
_LIST_OF_OBJECTS: Final = re.compile(r"\s*\[\s*(?:\{|$)")
_OBJECT: Final = re.compile(r"\s*\{\s*(?:[\"}]|$)")
MMLU: Final = ("question", "A", "B", "C", "D", "answer")  # columns of its tables, which have no header
_EXCEL: Final = re.compile(r"\"?sep=(.)\"?\s*", re.IGNORECASE)  # the line that names the separator
_SEPARATORS: Final = ",\t;|"
_QUOTED: Final = re.compile('"[^"]*+"')


class NumberAsWritten(str):
    """A number of a JSON file, as it is written there."""


_EXAMPLE: Final = '{"question": "1 + 1?", "answer": "2"}'
_JSON_KINDS: Final = {list: "a list", dict: "an object", bool: "true or false", type(None): "null"}


def is_text_file(path: Path) -> bool:
    """Return whether a file holds text; any other has columns.

    Raises:
        ProblemSetError: it cannot be read, or holds what asyncbench does not read.
    """
    return content_in(path).form == "text"


def text_rows(path: Path) -> Iterator[tuple[str, Row | ProblemSetError]]:
    """Yield each row with its place for messages: the file, and the line that it begins in or its number.

    In place of a row that is broken by itself stands its error, so that all such rows can be named at once.

    Raises:
        ProblemSetError: what follows cannot be read either; or the file cannot be read.
    """
    match _form(path):
        case "lines":
            return _json_rows(path, _lines(path))
        case "list":
            return _listed_rows(path, _lines(path))
    return _table_rows(path, _lines(path))


def _form(path: Path) -> str:
    """Return table, lines or list: by the ending, and where that is of another form, by the first lines."""
    ending = unpacked_name(path).suffix.lower()
    first, second = [*islice((line for line in _lines(path) if not line.isspace()), 2), "", ""][:2]
    if ending in JSON_LINES:
        return "list" if _LIST_OF_OBJECTS.match(first) else "lines"
    if ending != JSON:
        return "lines" if _OBJECT.match(first) else "list" if _LISTED.match(first) else "table"
    if not second or not _OBJECT.match(first):
        return "list"
    try:
        json.loads(first)  # a whole object on the first of several lines
    except (ValueError, RecursionError):
        return "list"
    return "lines"


def is_one_object(path: Path) -> bool:
    """Return whether a JSON file holds a single object, as a sweep does, and no list or lines of them.

    Raises:
        ProblemSetError: it cannot be read.
    """
    if _form(path) == "lines":
        return False
    return next((line for line in _lines(path) if not line.isspace()), "").lstrip().startswith("{")


def names_in(path: Path) -> list[str]:
    """Return the columns of the first row; raises likewise."""
    return list(first_of(path))


def first_of(path: Path) -> Row:
    """Return the first row of a file, empty where it has none; raises likewise."""
    row = next((row for _, row in text_rows(path)), {})
    if isinstance(row, ProblemSetError):
        raise row
    return row


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
        yield from text_lines(path, content_in(path), refuse=ProblemSetError)
    except OSError as error:
        raise refusal(path, error) from error


# ── tables


def _table_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[str, Row | ProblemSetError]]:
    csv.field_size_limit(LONGEST_TEXT)  # for all of this process: there is no other way
    first, header, separator = _header(path, lines)
    reader = csv.reader(chain([header], lines), delimiter=separator, strict=True)
    rows = _values(path, reader, first)
    if (head := next(rows, None)) is None:
        return
    names = [name.strip() for name in head[1]]

    # Two rows in the form of MMLU, and no header above them.
    if _is_of_mmlu(head[1]) and (second := next(rows, None)) is not None:
        headless = _is_of_mmlu(second[1])
        rows = chain([head, second] if headless else [second], rows)
        names = list(MMLU) if headless else names

    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise ProblemSetError(f"{head[0]}: two columns are called {twice!r}. Rename one.")
    for place, values in rows:
        if len(values) == len(names):
            yield place, dict(zip(names, values, strict=True))
        elif values:  # no empty line
            yield (
                place,
                ProblemSetError(
                    f"{place}: {len(values):,} values, but the header has {len(names):,}. Put a value with "
                    f'{separator!r} or a line break in double quotes ("…").'
                ),
            )


def _values(path: Path, reader: "_csv.Reader", first: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the values of each line with its place; the lines before the header are `first`."""
    while True:
        place = f"{path}, line {first + reader.line_num + 1}"
        try:
            values = next(reader, None)
        except csv.Error as error:
            raise ProblemSetError(f"{place}: it cannot be read as CSV: {error}. Correct it.") from None
        if values is None:
            return
        yield place, values


def _is_of_mmlu(values: list[str]) -> bool:
    """Return whether a line is a question, four choices and the letter of one, and no header of such."""
    return len(values) == len(MMLU) and values[-1] in MMLU[1:-1] and not {*MMLU[1:-1]} <= {*values}


def separator_of(path: Path) -> str | None:
    """Return the delimiter of a table, or None if the file is no table. Raises likewise."""
    return _header(path, _lines(path))[2] if _form(path) == "table" else None


def _header(path: Path, lines: Iterator[str]) -> tuple[int, str, str]:
    """Return the number of the header's line from 0, the line, and what stands between its names."""
    number, header, named = 0, "", None
    for number, header in enumerate(lines):  # noqa: B007  the last one is returned
        if (excel := _EXCEL.fullmatch(header)) is not None:
            named = excel[1]
        elif not header.isspace():
            break
    usual = "\t" if unpacked_name(path).suffix.lower() == ".tsv" else ","
    unquoted = _QUOTED.sub("", header)
    separator = next((sign for sign in (usual, *_SEPARATORS) if sign in unquoted), usual)
    return number, header, named or separator


# ── JSON


def _json_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[str, Row | ProblemSetError]]:
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        place = f"{path}, line {number}"
        try:
            row: Row | ProblemSetError = _object(_parsed(line, place, "Write one object per line"), place)
        except ProblemSetError as error:
            row = error
        yield place, row


def _listed_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[str, Row | ProblemSetError]]:
    text, size = list[str](), 0
    for line in lines:
        text.append(line)
        size += len(line)
        if size > MOST_IN_A_LIST:
            raise ProblemSetError(
                f"{path}: one JSON list of more than {MOST_IN_A_LIST:,} characters. Write JSON lines "
                "(.jsonl), one object a line: they are read one by one."
            )
    content = _parsed("".join(text), str(path), "Write one list of objects, or one object per line (.jsonl)")
    if not isinstance(content, list):
        raise ProblemSetError(f"{path}: it is not a list of JSON objects. Write [{_EXAMPLE}, …].")
    for number, row in enumerate(content, 1):
        place = f"{path}, object {number}"
        try:
            yield place, _object(row, place)
        except ProblemSetError as error:
            yield place, error


def _parsed(text: str, place: str, way_out: str) -> object:
    try:
        return json.loads(
            text,
            parse_int=NumberAsWritten,
            parse_float=NumberAsWritten,
            parse_constant=_no_number,
            object_pairs_hook=_no_key_twice,
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
