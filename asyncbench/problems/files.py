"""Problem files in columns, Parquet and Arrow, read batch by batch in bounded memory.

A few kilobytes can hold gigabytes: a text may stand once, and rows name it a million times. So text is read
as a dictionary where the encoding allows it, measured, and written out for as many rows as fit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.contents import Content, content_of
from asyncbench.errors import ProblemSetError
from asyncbench.files import local
from asyncbench.problems.schema import Column

LONGEST_TEXT: Final = 10_000_000  # bytes: more than the longest context of any model takes
MOST_AT_ONCE: Final = 16_000_000  # bytes of text in a batch, unless a single row has more
MOST_IN_A_GROUP: Final = 1_000_000_000  # bytes of a column in a row group: all may be one page
MOST_DECODED: Final = 256_000_000  # bytes of a column in a batch of which rows may share their bytes
_SHARED: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BYTE_ARRAY"})  # encodings of Parquet


def content_in(path: Path) -> Content:
    """Return the content of a problem file.

    Raises:
        ProblemSetError: it cannot be read, or holds what asyncbench does not read; with the way out.
    """
    try:
        return content_of(local(path), refuse=ProblemSetError)
    except OSError as error:
        raise refusal(path, error) from error


@contextmanager
def opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file for reading.

    Raises:
        ProblemSetError: it cannot be opened, or later a part of it cannot be read.
    """
    if (form := content_in(path).form) != "parquet":
        raise ProblemSetError(f"{path}: this is {form}, not Parquet. Name a Parquet file.")
    try:
        with pq.ParquetFile(local(path), pre_buffer=False) as file:  # pre-buffered, a row group is held whole
            yield file
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise refusal(path, error) from error


@contextmanager
def opened_columns(path: Path) -> Iterator["ParquetColumns | ArrowColumns"]:
    """Yield a Parquet or Arrow file for reading; raises as `opened_parquet` does."""
    if content_in(path).form != "arrow":
        with opened_parquet(path) as file:
            yield ParquetColumns(path, file)
        return
    try:
        with pa.memory_map(str(local(path))) as source:
            yield ArrowColumns(path, source)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: Exception) -> ProblemSetError:
    """Return the error for a file that cannot be read, with the way out."""
    reason = str(error).partition("\n")[0]
    if isinstance(error, FileNotFoundError):
        problem = "no such file. Correct the path, or make the file with `asyncbench generate`."
    elif isinstance(error, PermissionError):
        problem = "permission denied. Get permission to read the file, or name another one."
    elif path.is_dir():
        problem = "this is a folder. Name a file in it."
    elif isinstance(error, NotImplementedError):  # Arrow's, too
        problem = f"it holds what Arrow cannot read ({reason}). Write it again with simpler columns."
    elif "encrypt" in reason.lower():
        problem = f"it is encrypted ({reason}). Write it without encryption."
    else:
        problem = f"it is cut short or damaged ({reason}). Download it or make it again."
    return ProblemSetError(f"{path}: {problem}")


def lacking(column: str, names: Sequence[str]) -> str:
    """Return that a file has no such column, or several, and which it has."""
    several = names.count(column)
    problem = f"it has {several} columns {column!r}" if several else f"it has no column {column!r}"
    return f"{problem}. Its columns: {', '.join(names)}."


@dataclass(frozen=True)
class ParquetColumns:
    """A Parquet file that is open."""

    path: Path
    file: pq.ParquetFile

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.file.schema_arrow

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """What its writer noted in it."""
        return self.file.metadata.metadata or {}

    def batches(self, columns: Sequence[str], *, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most `rows` rows in file order, from row `start` on (the first is 0).

        Raises:
            ProblemSetError: a text is too long, or too much of a column is in one row group.
        """
        metadata = self.file.metadata
        texts = _check_groups(metadata, columns, path=self.path)

        # read as a dictionary, but for encodings that Arrow cannot read as one
        row_groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        coded = [
            leaf_path
            for i, leaf_path in texts.items()
            if not any("DELTA" in name for group in row_groups for name in group.column(i).encodings)
        ]
        plain = [i for i, leaf_path in texts.items() if leaf_path not in coded]

        # the group that holds row `start`, and how many of its rows come before
        first, skip = 0, start
        while first < len(row_groups) and skip >= row_groups[first].num_rows:
            skip -= row_groups[first].num_rows
            first += 1
        with pq.ParquetFile(self.path, metadata=metadata, read_dictionary=coded, pre_buffer=False) as encoded:
            # Each group has dictionaries of its own, which lists cannot join.
            for group in range(first, len(row_groups)):
                # rows may share bytes, and then each may be as long as the whole
                sizes = (
                    column.total_uncompressed_size
                    for column in map(row_groups[group].column, plain)
                    if _SHARED & set(column.encodings)
                )
                decoded = min(rows, max(1, MOST_DECODED // max(1, *sizes, 1)))
                for batch in encoded.iter_batches(decoded, row_groups=[group], columns=list(columns)):
                    if skip < batch.num_rows:
                        yield from _plain_parts(batch.slice(skip), path=self.path)
                    skip = max(0, skip - batch.num_rows)


@dataclass(frozen=True)
class ArrowColumns:
    """An Arrow file, or a stored stream, that is open."""

    path: Path
    source: pa.MemoryMappedFile

    @cached_property
    def _reader(self) -> "pa.RecordBatchFileReader | pa.RecordBatchStreamReader":
        self.source.seek(0)
        is_file = self.source.read(6) == b"ARROW1"
        self.source.seek(0)
        return pa.ipc.open_file(self.source) if is_file else pa.ipc.open_stream(self.source)

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self._reader.schema

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """What its writer noted in it."""
        return self.schema.metadata or {}

    def batches(self, columns: Sequence[str], *, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield batches as `ParquetColumns.batches` does, and raise likewise."""
        reader = self._reader
        stored: Iterable[pa.RecordBatch] = (
            map(reader.get_batch, range(reader.num_record_batches))
            if isinstance(reader, pa.RecordBatchFileReader)
            else reader
        )
        for whole in stored:
            batch = whole.select(list(columns))
            for first in range(start, batch.num_rows, rows):
                yield from _plain_parts(batch.slice(first, rows), path=self.path)
            start = max(0, start - batch.num_rows)


def _check_groups(metadata: pq.FileMetaData, columns: Sequence[str], *, path: Path) -> dict[int, str]:
    """Return the file's leaves of text in some columns; refuse what its own figures tell is too much."""
    leaves = [metadata.schema.column(i) for i in range(len(metadata.schema))]
    texts = {
        i: leaf.path
        for i, leaf in enumerate(leaves)
        if leaf.physical_type == "BYTE_ARRAY"
        and str(leaf.logical_type).partition("(")[0] != "Decimal"
        and any(leaf.path == column or leaf.path.startswith(f"{column}.") for column in columns)
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
    return texts


def _plain_parts(batch: pa.RecordBatch, *, path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves whose texts, written out, are few enough bytes."""
    size = sum(_bytes_of(batch.column(name), name, path=path) for name in batch.schema.names)
    if size > MOST_AT_ONCE and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _plain_parts(batch.slice(0, half), path=path)
        yield from _plain_parts(batch.slice(half), path=path)
    else:
        plain = [_plain(column) for column in batch.columns]
        yield pa.RecordBatch.from_arrays(plain, names=batch.schema.names)


def _bytes_of(column: Column, name: str, *, path: Path) -> int:
    """Return how many bytes the texts of a column take, each row by itself."""
    if isinstance(column, pa.ExtensionArray):
        return _bytes_of(column.storage, name, path=path)
    if isinstance(column, pa.ListArray | pa.LargeListArray):
        return _bytes_of(column.flatten(), name, path=path)
    if isinstance(column, pa.StructArray):
        return sum(_bytes_of(part, name, path=path) for part in column.flatten())
    rows: pa.Array[Any] | None = None
    if isinstance(column, pa.DictionaryArray):
        rows, column = column.indices, column.dictionary

    # The bytes of each text; a column may hold none.
    lengths: pa.Array[Any]
    kind = column.type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):  # each view begins with its length
        views = cast("list[Any]", column.buffers())[1]
        all_lengths = np.frombuffer(views, np.int32)[::4]
        viewed = pa.array(all_lengths[column.offset : column.offset + len(column)])
        lengths = cast("pa.Array[Any]", pc.if_else(column.is_valid(), viewed, 0))
    elif any(is_kind(kind) for is_kind in texts):
        lengths = pc.binary_length(cast("pa.StringArray", column)).cast(pa.int64())
    else:
        return 0

    if (pc.max(lengths).as_py() or 0) > LONGEST_TEXT:
        raise _too_long(name, path)
    return pc.sum(lengths if rows is None else lengths.take(rows)).as_py() or 0


def _plain(column: Column) -> Column:
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pa.ListArray | pa.LargeListArray):
        if not pa.types.is_dictionary(column.type.value_type):
            return column
        kind = pa.list_ if isinstance(column, pa.ListArray) else pa.large_list
        array = pa.concat_arrays([column])  # a slice would write out the items of the whole
        return array.cast(kind(column.type.value_type.value_type))
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _too_long(name: str, path: Path) -> ProblemSetError:
    return ProblemSetError(
        f"{path}: column {name!r} holds a text of more than {LONGEST_TEXT:,} bytes, which no model accepts. "
        "Remove that row."
    )
