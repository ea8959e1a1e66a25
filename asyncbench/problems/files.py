"""Files of problems as bytes on a disk, read in bounded memory: Parquet batch by batch, text row by row.

A few kilobytes of Parquet can hold gigabytes: a text may stand once, and rows name it a million times. So
text is read as a dictionary, measured, and written out for as many rows as fit.

Text files of your own are CSV, TSV, JSON and JSON lines. Values stay the text that was written: readers of
tables make numbers of texts, and lose the zeros of 0012 and 1.50, and the end of a long number.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.errors import ProblemSetError
from asyncbench.files import local
from asyncbench.problems.schema import Column

LONGEST_TEXT: Final = 10_000_000  # bytes: more than the longest context of any model takes
MOST_AT_ONCE: Final = 16_000_000  # bytes of text in a batch, unless a single row has more
MOST_IN_A_GROUP: Final = 1_000_000_000  # bytes of a column in a row group: all may be one page


@contextmanager
def opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file for reading.

    Raises:
        ProblemSetError: it cannot be opened, or later a part of it cannot be read.
    """
    try:
        with pq.ParquetFile(local(path), pre_buffer=False) as file:  # pre-buffered, a row group is held whole
            yield file
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: Exception) -> ProblemSetError:
    """Return what it comes to that a file cannot be read, with the way out."""
    if isinstance(error, FileNotFoundError):
        problem = "no such file. Correct the path, or make the file with `asyncbench generate`."
    elif isinstance(error, PermissionError):
        problem = "permission denied. Get permission to read the file, or name another one."
    elif path.is_dir():
        problem = "cannot be read as a Parquet file: it is a folder. Name a file in it."
    else:
        problem = _other_format(path, str(error).partition("\n")[0])
    return ProblemSetError(f"{path}: {problem}")


def _other_format(path: Path, reason: str) -> str:
    """Return what a file is that is not Parquet, and the way out."""
    first, ending = _first_line(path), ""
    if first.startswith(("[", "{")):
        ending = ".json" if first.startswith("[") else ".jsonl"
    elif "," in first and first.isprintable():
        ending = ".csv"
    if ending:
        kind = {".json": "JSON", ".jsonl": "JSON lines", ".csv": "CSV"}[ending]
        return f"this is {kind}, not Parquet. Rename it to {path.with_suffix(ending)}."
    return (
        f"cannot be read as a Parquet file ({reason}). If it is cut short or damaged, download it or "
        "make it again."
    )


def _first_line(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError), path.open("rb") as file:
        return file.readline(4096).decode("utf-8-sig").strip()
    return ""


def lacking(column: str, names: Sequence[str]) -> str:
    """Return that a file has no such column, or several, and which it has."""
    several = names.count(column)
    problem = f"it has {several} columns {column!r}" if several else f"it has no column {column!r}"
    return f"{problem}. Its columns: {', '.join(names)}."


def read_batches(
    file: pq.ParquetFile, columns: Sequence[str], *, path: Path, rows: int, start: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `rows` rows in file order, from row `start` on (the first is 0).

    Raises:
        ProblemSetError: a text is too long, or too much of a column is in one row group.
    """
    texts = _check_groups(file.metadata, columns, path=path)
    groups, skip = _from_row(file, start)
    with pq.ParquetFile(path, metadata=file.metadata, read_dictionary=texts, pre_buffer=False) as encoded:
        for group in groups:  # each has dictionaries of its own, which lists cannot join
            for batch in encoded.iter_batches(rows, row_groups=[group], columns=list(columns)):
                if skip < batch.num_rows:
                    for part in _parts(batch.slice(skip), path=path):
                        plain = [_plain(column) for column in part.columns]
                        yield pa.RecordBatch.from_arrays(plain, names=part.schema.names)
                skip = max(0, skip - batch.num_rows)


def _check_groups(metadata: pq.FileMetaData, columns: Sequence[str], *, path: Path) -> list[str]:
    """Return the file's columns of text; refuse what its own figures tell is too much."""
    leaves = [metadata.schema.column(i) for i in range(len(metadata.schema))]
    texts = {
        i: leaf.path
        for i, leaf in enumerate(leaves)
        if leaf.path.partition(".")[0] in columns and str(leaf.logical_type) == "String"
    }
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for i, name in texts.items():
            column = group.column(i)
            size = column.total_uncompressed_size
            if size // max(1, column.num_values) > LONGEST_TEXT:
                raise _too_long(name, path)
            if size > MOST_IN_A_GROUP:
                raise ProblemSetError(
                    f"{path}: column {name!r} has {size:,} bytes in one row group; at most "
                    f"{MOST_IN_A_GROUP:,} are allowed. Write smaller row groups (row_group_size=…)."
                )
    return list(texts.values())


def _parts(batch: pa.RecordBatch, *, path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves whose texts, written out, are few enough bytes."""
    size = sum(_bytes_of(batch.column(name), name, path=path) for name in batch.schema.names)
    if size > MOST_AT_ONCE and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half), path=path)
        yield from _parts(batch.slice(half), path=path)
    else:
        yield batch


def _bytes_of(column: Column, name: str, *, path: Path) -> int:
    """Return how many bytes the texts of a column take, each row by itself."""
    if isinstance(column, pa.ListArray | pa.LargeListArray):
        return _bytes_of(column.flatten(), name, path=path)
    if not isinstance(column, pa.DictionaryArray):
        return 0
    lengths = pc.binary_length(cast("pa.StringArray", column.dictionary))
    if (pc.max(lengths).as_py() or 0) > LONGEST_TEXT:
        raise _too_long(name, path)
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def _plain(column: Column) -> Column:
    if isinstance(column, pa.ListArray | pa.LargeListArray):
        kind = pa.list_ if isinstance(column, pa.ListArray) else pa.large_list
        own = pa.concat_arrays([column])  # a slice would write out the items of the whole
        return own.cast(kind(pa.string()))
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _too_long(name: str, path: Path) -> ProblemSetError:
    return ProblemSetError(
        f"{path}: column {name!r} holds a text of more than {LONGEST_TEXT:,} bytes, which no model accepts. "
        "Remove that row."
    )


def _from_row(file: pq.ParquetFile, start: int) -> tuple[list[int], int]:
    """Return the row groups from the one that holds row `start`, and how many of its rows come before."""
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if start < rows:
            return list(range(group, file.num_row_groups)), start
        start -= rows
    return [], 0


# ── text files of your own

TABLES: Final = (".csv", ".tsv")
JSON_LINES: Final = (".jsonl", ".ndjson")
JSON: Final = ".json"  # one list of objects
Row: TypeAlias = dict[str, Any]  # Any: text, or whatever else JSON holds but numbers


class NumberAsWritten(str):
    """A number of a JSON file, as it is written there."""


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
