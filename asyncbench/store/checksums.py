"""Checksums of a part's bytes, to find those that changed on the disk before Arrow believes them.

Parquet's own checksums are not enough. They are written, too, and other readers may use them. But they cover
the data of pages, not the headers of pages and not the footer. With pyarrow 26 and one flipped bit at a time,
in parts of 7 to 55 KB, 2 of 5,400 flips in column chunks gave other rows, and 242 of 5,400 in footers.

So a part has a block of 32-bit numbers, little-endian, between its last column chunk and its footer, where no
reader of Parquet looks:

    CRC-32 of each column chunk, headers included, row group by row group
    how many these are
    CRC-32 of the footer, to the end of the file
    CRC-32 of the block so far
    MAGIC

Who reads two columns checks the footer and the bytes of those two, not the replies beside them. And the block
with the footer stands for all that is in the part: `fingerprint` is a digest of these few bytes, by which the
list of parts notices a part that was put back from an earlier state. Parts of a version that wrote no block
are read unchecked.
"""

import os
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

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


class Chunk(NamedTuple):
    """One column's bytes in one row group."""

    number: int  # from 0, among the column chunks of the file
    offset: int
    size: int  # bytes


def stamp(path: Path) -> None:
    """Put checksums into a Parquet file that is complete and has none."""
    chunks = list(_chunks(pq.read_metadata(path), None))
    with path.open("r+b") as file:
        footer_offset, footer = _read_footer(file)
        sums = [_crc(file, chunk) for chunk in chunks]
        block = struct.pack(f"<{len(sums) + 2}I", *sums, len(sums), zlib.crc32(footer))
        file.seek(footer_offset)
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
            sums = _read_checksums(file)  # first: Arrow would believe a footer that has changed
            metadata = pq.read_metadata(path)
            check_version(path, int((metadata.metadata or {}).get(_VERSION, b"1")))
            for chunk in _chunks(metadata, columns, places) if sums else ():
                if _crc(file, chunk) != sums[chunk.number]:
                    raise ValueError(
                        f"{chunk.size:,} bytes from byte {chunk.offset:,} on have changed since they were "
                        "written"
                    )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, struct.error) as error:  # Arrow's too
        raise StoreError(f"{path} is damaged: {error}. {WAYS_OUT}") from error
    return bool(sums)


def fingerprint(path: Path) -> tuple[int, str]:
    """Return the bytes of a part, and a digest of its checksums and footer: of all that is in it.

    Of a part of a version without checksums it is of the footer alone. Of a file that is no part it is empty.

    Raises:
        FileNotFoundError: the part is not there any more.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
    return stat.st_size, _digest(str(path), stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(65_536)
def _digest(path: str, *_: int) -> str:
    """Return the digest of a file; it is not read again while its size, time and inode stay the same."""
    with open(path, "rb") as file:  # a name is kept, and no object
        try:
            footer_offset, footer = _read_footer(file)
            block_end = _read_back(file, footer_offset, _ENDS.size) if STAMP in footer else b""
        except (ValueError, struct.error):
            return ""  # no part: no other is like it
    return blake2b(block_end + footer, digest_size=16).hexdigest()


def _read_checksums(file: BinaryIO) -> tuple[int, ...]:
    """Return the checksum of every column chunk; none: the part is of a version that had no checksums.

    Raises:
        ValueError: the footer or the block is not what was written.
    """
    footer_offset, footer = _read_footer(file)
    ends = _read_back(file, footer_offset, _ENDS.size)
    if not ends.endswith(MAGIC):
        if STAMP in footer:
            raise ValueError("its checksums are missing")
        return ()
    chunks, footer_sum, block_sum, _ = _ENDS.unpack(ends)
    if zlib.crc32(footer) != footer_sum:
        raise ValueError("its footer has changed since it was written")
    block = _read_back(file, footer_offset, 4 * chunks + _ENDS.size)[: -4 - len(MAGIC)]
    if zlib.crc32(block) != block_sum:
        raise ValueError("its checksums have changed since they were written")
    return struct.unpack(f"<{chunks}I", block[:-8])


def _read_footer(file: BinaryIO) -> tuple[int, bytes]:
    """Return where the footer begins, and its bytes to the end of the file."""
    file_size = file.seek(0, os.SEEK_END)
    length, end = _TAIL.unpack(_read_back(file, file_size, _TAIL.size))
    offset = file_size - _TAIL.size - length
    if end != b"PAR1" or offset < 0:
        raise ValueError("its end is missing or has changed")
    return offset, _read_back(file, file_size, file_size - offset)


def _read_back(file: BinaryIO, end: int, size: int) -> bytes:
    """Return the bytes before an offset; fewer, where the file begins in between."""
    start = file.seek(max(0, end - size))
    return file.read(end - start)


def groups_with(metadata: pq.FileMetaData, places: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the row groups of a file in which some rows stand, and the numbers of the rows in each."""
    remaining, start = list(places), 0
    for group in range(metadata.num_row_groups):
        end = start + metadata.row_group(group).num_rows
        rows = [place - start for place in remaining if place < end]
        remaining, start = remaining[len(rows) :], end
        if rows:
            yield group, rows


def _chunks(
    metadata: pq.FileMetaData, columns: Collection[str] | None, places: Sequence[int] | None = None
) -> Iterator[Chunk]:
    """Yield column chunks, of all columns or of some, and the rows at some places."""
    names = column_names(metadata)
    wanted = [column for column, name in enumerate(names) if columns is None or name in columns]
    groups: Iterable[int] = range(metadata.num_row_groups)
    if places is not None:
        groups = (group for group, _ in groups_with(metadata, places))
    for group in groups:
        row_group = metadata.row_group(group)
        for column in wanted:
            chunk = row_group.column(column)
            pages = filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))
            yield Chunk(
                number=group * metadata.num_columns + column,
                offset=min(pages, default=0),
                size=chunk.total_compressed_size,
            )


def column_names(metadata: pq.FileMetaData) -> list[str]:
    """Return the columns of a file, none where it has no rows.

    Not by `metadata.schema`: the two would keep each other, half a megabyte, until garbage is collected.
    """
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    paths = (group.column(n).path_in_schema for n in range(metadata.num_columns))
    return [path.partition(".")[0] for path in paths]  # a list's items are flags.list.element


def _crc(file: BinaryIO, chunk: Chunk) -> int:
    file.seek(chunk.offset)
    return zlib.crc32(file.read(chunk.size))
