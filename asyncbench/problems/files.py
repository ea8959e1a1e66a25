"""Parquet files as bytes on a disk, read batch by batch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import ProblemSetError
from asyncbench.writing import local


@contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file for reading.

    Raises:
        ProblemSetError: it cannot be opened, or later a part of it cannot be read.
    """
    try:
        with pq.ParquetFile(local(path), pre_buffer=False) as file:  # pre-buffered, a row group is held whole
            yield file
    except FileNotFoundError:
        raise ProblemSetError(f"{path}: no such file; make one with `asyncbench generate`") from None
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ProblemSetError(
            f"{path}: cannot be read as a Parquet file ({reason}); if it is cut short or damaged, fetch it "
            "or make it again"
        ) from error


def read_batches(
    file: pq.ParquetFile, columns: Sequence[str], *, rows: int, start: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `rows` rows in file order, from row `start` on (the first is 0)."""
    groups, skip = _from_row(file, start)
    for batch in file.iter_batches(rows, row_groups=groups, columns=list(columns)):
        if skip < batch.num_rows:
            yield batch.slice(skip)
        skip = max(0, skip - batch.num_rows)


def _from_row(file: pq.ParquetFile, start: int) -> tuple[list[int], int]:
    """Return the row groups from the one that holds row `start`, and how many of its rows come before."""
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if start < rows:
            return list(range(group, file.num_row_groups)), start
        start -= rows
    return [], 0
