"""Checksums inside a part, to find bytes that changed since they were written.

Parquet checks nothing by itself. Between the last column chunk and the footer, where no reader looks, a part
of ours holds a block of 32-bit numbers, little-endian:

    the CRC-32 of every column chunk, row group by row group · how many those are
    the CRC-32 of the footer, to the end of the file · the CRC-32 of the block so far · MAGIC

So who reads two columns checks the footer and the bytes of those two, not the replies beside them.
"""

import os
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq

from asyncbench.errors import StoreError
from asyncbench.store.schema import check_version

WAYS_OUT = (
    "Restore the file from a backup. Or ask the lost trials again with `asyncbench run SWEEP "
    "--accept-loss`; the cost of the lost calls still counts."
)
STAMP = b"asyncbench.checksums"
STAMPED = {STAMP: b"1"}  # in the metadata of a part that must have the block
MAGIC = b"ABCRC32\n"
_ENDS = struct.Struct("<III8s")  # chunks, footer, block, MAGIC
_TAIL = struct.Struct("<I4s")  # how Parquet ends: bytes of the footer before it, PAR1
_VERSION = b"asyncbench.schema_version"

Chunk = tuple[int, int, int]  # which of the file's column chunks, where it starts, bytes


def stamp(path: Path) -> None:
    """Put checksums into a Parquet file that is complete and has none."""
    chunks = list(_chunks(pq.read_metadata(path), None))
    with path.open("r+b") as file:
        footer_at, footer = _footer(file)
        sums = [_crc(file, start, size) for _, start, size in chunks]
        block = struct.pack(f"<{len(sums) + 2}I", *sums, len(sums), zlib.crc32(footer))
        file.seek(footer_at)
        file.write(block + struct.pack("<I", zlib.crc32(block)) + MAGIC + footer)


def check(path: Path, columns: Collection[str] | None = None, places: Sequence[int] | None = None) -> bool:
    """Read the footer of a part and some of its columns, all by default; return whether they have checksums.

    With `places`, ascending, only row groups are read in which these rows stand.

    Raises:
        FileNotFoundError: the part is not there any more.
        ConfigError: a later asyncbench wrote it.
        StoreError: its bytes are not those that were written.
    """
    try:
        with path.open("rb") as file:
            sums = _sums(file)
            metadata = pq.read_metadata(path)
            check_version(path, int((metadata.metadata or {}).get(_VERSION, b"1")))
            for number, start, size in _chunks(metadata, columns, places) if sums else ():
                if _crc(file, start, size) != sums[number]:
                    raise ValueError(
                        f"{size:,} bytes from byte {start:,} on have changed since they were written"
                    )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, struct.error) as error:  # Arrow's too
        raise StoreError(f"{path} is damaged: {error}. {WAYS_OUT}") from error
    return bool(sums)


def fingerprint(path: Path) -> tuple[int, str]:
    """Return the bytes of a part, and a digest of its checksums and footer: of all that is in it.

    Of a part of a version without checksums it is of the footer alone. A file that is no part has one, too.

    Raises:
        FileNotFoundError: the part is not there any more.
    """
    with path.open("rb") as file:
        at = os.fstat(file.fileno())
    return at.st_size, _digest(str(path), at.st_size, at.st_mtime_ns, at.st_ino)


@lru_cache(65_536)
def _digest(path: str, *_: int) -> str:
    """Return the digest of a file, which is not read again as long as it is the same."""
    with open(path, "rb") as file:  # a name is kept, and no object
        try:
            start, footer = _footer(file)
            block = _before(file, start, _ENDS.size) if STAMP in footer else b""
        except (ValueError, struct.error):
            return ""  # no part: no other is like it
    return blake2b(block + footer, digest_size=16).hexdigest()


def _sums(file: BinaryIO) -> tuple[int, ...]:
    """Return the checksum of every column chunk; none: the part is of a version that had no checksums.

    Arrow must not be given a footer that nobody has checked: it would believe it.
    """
    footer_at, footer = _footer(file)
    ends = _before(file, footer_at, _ENDS.size)
    if not ends.endswith(MAGIC):
        if STAMP in footer:
            raise ValueError("its checksums are missing")
        return ()
    chunks, footer_sum, block_sum, _ = _ENDS.unpack(ends)
    if zlib.crc32(footer) != footer_sum:
        raise ValueError("its footer has changed since it was written")
    block = _before(file, footer_at, 4 * chunks + _ENDS.size)[: -4 - len(MAGIC)]
    if zlib.crc32(block) != block_sum:
        raise ValueError("its checksums have changed since they were written")
    return struct.unpack(f"<{chunks}I", block[:-8])


def _footer(file: BinaryIO) -> tuple[int, bytes]:
    size = file.seek(0, 2)
    length, end = _TAIL.unpack(_before(file, size, _TAIL.size))
    start = size - _TAIL.size - length
    if end != b"PAR1" or start < 0:
        raise ValueError("its end is missing or has changed")
    return start, _before(file, size, size - start)


def _before(file: BinaryIO, end: int, size: int) -> bytes:
    start = file.seek(max(0, end - size))
    return file.read(end - start)


def groups_with(metadata: pq.FileMetaData, places: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the row groups of a file in which some rows stand, ascending, and where in them."""
    remaining, start = list(places), 0
    for group in range(metadata.num_row_groups):
        end = start + metadata.row_group(group).num_rows
        here = [place - start for place in remaining if place < end]
        remaining, start = remaining[len(here) :], end
        if here:
            yield group, here


def _chunks(
    metadata: pq.FileMetaData, columns: Collection[str] | None, places: Sequence[int] | None = None
) -> Iterator[Chunk]:
    """Yield where the column chunks of some columns, and with some rows, are; None: of all."""
    many, names = metadata.num_columns, column_names(metadata)
    wanted = [n for n, name in enumerate(names) if columns is None or name in columns]
    every = range(metadata.num_row_groups)
    for group in every if places is None else (group for group, _ in groups_with(metadata, places)):
        row_group = metadata.row_group(group)
        for n in wanted:
            chunk = row_group.column(n)
            pages = filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))
            yield group * many + n, min(pages, default=0), chunk.total_compressed_size


def column_names(metadata: pq.FileMetaData) -> list[str]:
    """Return the columns of a file, none where it has no rows.

    Not by `metadata.schema`: the two would keep each other, half a megabyte, until garbage is collected.
    """
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    paths = (group.column(n).path_in_schema for n in range(metadata.num_columns))
    return [path.partition(".")[0] for path in paths]  # a list's items are flags.list.element


def _crc(file: BinaryIO, start: int, size: int) -> int:
    file.seek(start)
    return zlib.crc32(file.read(size))
