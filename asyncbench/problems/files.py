"""Parquet files as bytes on a disk: read batch by batch, and written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import AsyncbenchError, ProblemSetError


@contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file for reading.

    Raises:
        ProblemSetError: it cannot be opened, or later a part of it cannot be read.
    """
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:  # pre-buffered, a row group is held whole
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


@contextmanager
def replacing(path: Path, *, refusal: type[AsyncbenchError]) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of `path` once it is complete and on the disk.

    Raises:
        refusal: it cannot be written there; what stood at `path` is as it was.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # no reader takes it for Parquet
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise refusal(f"{path}: cannot be written: {reason}; choose another place or make room") from error
    finally:
        with suppress(OSError):
            draft.unlink()
