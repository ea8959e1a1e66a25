"""A segment of the journal: lines that only ever grow, each of which proves itself.

A line is eight hexadecimal digits, the CRC-32 of what follows them, a space, JSON, and a line feed. What
a killed process had written stays; a line that was cut short or changed on the disk is recognised, left
out and reported, and the lines around it are kept. The first line says by which version all were written.

    journal/000002.wal       a segment
    quarantine/000002.wal    its damaged lines, in their order: never thrown away
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import orjson

from asyncbench.errors import StoreError
from asyncbench.files import refused, storing, sync_to_disk, write_durably
from asyncbench.store.schema import SCHEMA_VERSION, check_version

BATCH_BYTES = 2**20  # with as much as these take as tables, a seal needs 8 MB
SENT: Final = b'{"sent"'  # how the line of a call begins
SHORTEST_CALL: Final = 150  # bytes of such a line, at least
QUARANTINE = "quarantine"  # in a results folder
_PREFIX = len(b"01234567 ")
_HEAD_STARTS = b'{"schema_version":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A line that is not what was written."""

    segment: Path
    line: int  # from 1
    offset: int  # bytes from the start of the segment
    size: int  # bytes


class Segment:
    """A segment being written, by one thread; `sync_to_disk` may be called from any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size, self.lines = 0, 0  # bytes; whole lines
        self.dirty = True  # holds what no `sync_to_disk` has covered; at first, its name in the folder
        self._torn = False
        with storing(path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)  # less the umask

    def append(self, *payloads: bytes) -> None:
        """Write lines in one call of the system, unbuffered: they outlive the process from here on.

        Raises:
            StoreError: the disk took only a part, or nothing; `lines` tells how many are whole.
        """
        data = b"".join(map(_line, payloads))
        ended = int(self._torn)
        if self._torn:  # ends what is left of a broken line, so that it takes no other with it
            data = b"\n" + data
        self.dirty = True
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise refused(self.path, error) from error
        self.size += written
        self._torn = written < len(data)
        self.lines += data.count(b"\n", ended, written) if self._torn else len(payloads)
        if self._torn:
            raise refused(self.path, f"the disk took {written:,} of {len(data):,} bytes")

    def sync(self) -> None:
        """Wait until all that was appended before this call is on the disk."""
        self.dirty = False
        with storing(self.path), suppress(FileNotFoundError):  # sealed meanwhile: its parts are on the disk
            sync_to_disk(self.path)
            sync_to_disk(self.path.parent)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1  # a late line is refused; it must not find another file under the old number


def segments(folder: Path) -> list[Path]:
    """Return the segments of a journal's folder, oldest first."""
    return sorted(folder.glob("*.wal"), key=number_of)


def number_of(segment: Path) -> int:
    if not segment.stem.isdecimal():
        raise StoreError(f"{segment} is not a segment of the journal. Move it out of the folder.")
    return int(segment.stem)


def name_of(number: int) -> str:
    return f"{number:06d}.wal"


def head_of(number: int) -> bytes:
    """Return the first line of a segment: by which version it is, and its number, which a copy lacks."""
    return b'{"schema_version":%d,"segment":%d}' % (SCHEMA_VERSION, number)


def payloads(segment: Path, damaged: list[Damage]) -> Iterator[bytes]:
    """Yield the JSON of every sound line after the first; note the others in `damaged`.

    Raises:
        FileNotFoundError: the segment was sealed meanwhile.
        ConfigError: a later asyncbench wrote it.
        StoreError: it is a copy of another segment.
    """
    with segment.open("rb") as lines:
        offset = 0
        for count, line in enumerate(lines, start=1):
            payload = line[_PREFIX:-1]
            if line != _line(payload):
                if line != b"\n":
                    damaged.append(Damage(segment=segment, line=count, offset=offset, size=len(line)))
            elif payload.startswith(_HEAD_STARTS):
                head = orjson.loads(payload)
                if (own := head.get("segment", number_of(segment))) != number_of(segment):
                    raise StoreError(f"{segment} is a copy of {name_of(own)}. Move it out of the folder.")
                check_version(segment, head["schema_version"])
            else:
                yield payload
            offset += len(line)


def batches(payloads: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lists of lines that fit into memory together."""
    batch, size = list[bytes](), 0
    for payload in payloads:
        batch.append(payload)
        size += len(payload)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _line(payload: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def quarantine(damaged: Sequence[Damage], folder: Path, *, temporary: Path) -> None:
    """Copy the damaged lines of one segment out of it; doing it again changes nothing."""
    if damaged:
        name = damaged[0].segment.name
        write_durably(folder / QUARANTINE / name, lines_of(damaged), temporary=temporary / name)


def lines_of(damaged: Sequence[Damage]) -> bytes:
    """Return the damaged lines of one segment as they stand in it."""
    found = []
    with damaged[0].segment.open("rb") as segment:
        for line in damaged:
            segment.seek(line.offset)
            found.append(segment.read(line.size).removesuffix(b"\n") + b"\n")
    return b"".join(found)


def quarantined(folder: Path) -> Mapping[str, int]:
    """Return how many lines of each segment were set aside, by the segment's name, oldest first."""
    files = sorted((folder / QUARANTINE).glob("*.wal"))
    return {file.name: file.read_bytes().count(b"\n") for file in files}


def damaged_lines(folder: Path, damaged: Sequence[Damage]) -> Iterator[bytes]:
    """Yield every damaged line of a folder: those of its journal, `damaged`, and those set aside before."""
    present = {line.segment.name for line in damaged}
    for _, some in groupby(damaged, key=lambda line: line.segment):
        yield from filter(None, lines_of(list(some)).split(b"\n"))
    for file in sorted((folder / QUARANTINE).glob("*.wal")):
        if file.name not in present:  # or they were being set aside just now
            yield from filter(None, file.read_bytes().split(b"\n"))


def calls_in(line: bytes) -> int:
    """Return how many calls may have been written down in a damaged line: one at least.

    A lost line feed joins lines, and a stretch that never reached the disk may read as zeros.
    """
    return max(1, line.count(SENT), -(-line.count(0) // SHORTEST_CALL))
