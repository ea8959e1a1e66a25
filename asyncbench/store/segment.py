"""A segment of the journal: lines that are only added, each with a checksum of itself and of its place.

A line is eight hexadecimal digits, the CRC-32 of what follows them, a space, JSON, and a line feed. What
a killed process had written stays; a line that was cut short or changed on the disk is recognised, left
out and reported, and the lines around it are kept. The first line says by which version all were written.

The JSON ends with the line's number and the CRC-32 of the line before, which covers the one before that: a
running checksum. So a line that was removed, moved, doubled or brought from elsewhere is recognised, too,
and those that are there are read in the order in which they were written. Earlier versions wrote neither.

    journal/000002.wal       a segment
    quarantine/000002.wal    its damaged lines, in their order: never thrown away
"""

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import orjson

from asyncbench.errors import StoreError
from asyncbench.files import make_folder, publish, refused, storing, sync_to_disk, write_durably
from asyncbench.store.schema import SCHEMA_VERSION, check_version

BATCH_BYTES = 2**20  # with as much as these take as tables, a seal needs 8 MB
SENT: Final = b'{"sent"'  # how the line of a call begins
SHORTEST_CALL: Final = 150  # bytes of such a line, at least
QUARANTINE = "quarantine"  # in a results folder
_PREFIX = len(b"01234567 ")
_HEAD_STARTS = b'{"schema_version":'
_ENDING: Final = re.compile(rb',"line":([0-9]+),"after":([0-9]+)}\Z')  # of a line's JSON
_ENDING_BYTES: Final = 64  # the most that match it
_FIRST: Final = 0  # the checksum of the line before the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A line that is not what was written, or not where it was; or lines that are gone."""

    segment: Path
    line: int  # from 1
    offset: int  # bytes from the start of the segment
    size: int  # bytes; 0: nothing of it is left out
    missing: int = 0  # lines that are gone without a trace; they stood before this one

    @property
    def message(self) -> str:
        """What to tell of it."""
        if self.missing:
            lines = "1 line is" if self.missing == 1 else f"{self.missing:,} lines are"
            return f"{lines} missing before it: somebody removed what was written"
        if not self.size:
            return "stands in another place than it was written; it is read in its own"
        return f"{self.size:,} damaged bytes; the next run moves them to {QUARANTINE}/"


class _Line(NamedTuple):
    """A line that is whole."""

    row: int  # from 1, as it stands in the file
    offset: int
    size: int
    number: int | None  # from 1, as it was written; None: an earlier version wrote it
    after: int  # the checksum of the line before it, then
    sum: int  # its own
    payload: bytes
    explained: bool  # a damaged line stands before it


class Segment:
    """A segment being written, by one thread; `sync_to_disk` may be called from any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size, self.lines = 0, 0  # bytes; whole lines
        self.dirty = True  # holds what no `sync_to_disk` has covered; at first, its name in the folder
        self._torn, self._sum = False, _FIRST
        with storing(path):
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)  # less the umask

    def append(self, *payloads: bytes) -> None:
        """Write lines in one call of the system, unbuffered: they outlive the process from here on.

        Raises:
            StoreError: the disk took only a part, or nothing; `lines` tells how many are whole.
        """
        pieces, sums = list[bytes](), [self._sum]
        for number, payload in enumerate(payloads, start=self.lines + 1):
            placed = b'%b,"line":%d,"after":%d}' % (payload[:-1], number, sums[-1])
            sums.append(zlib.crc32(placed))
            pieces += (b"%08x " % sums[-1], placed, b"\n")
        # What is left of a broken line is ended, and spoiled: without its line feed alone it would be whole.
        data = b"".join([b"!\n", *pieces] if self._torn else pieces)
        self.dirty = True
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise refused(self.path, error) from error
        self.size += written
        if written == len(data):
            self._torn, self._sum, self.lines = False, sums[-1], self.lines + len(payloads)
            return
        whole = data.count(b"\n", 2 * self._torn, written)
        self._torn = not data[:written].endswith(b"\n") if written else self._torn
        self._sum, self.lines = sums[whole], self.lines + whole
        raise refused(self.path, f"the disk took {written:,} of {len(data):,} bytes")

    def sync(self) -> None:
        """Wait until all that was appended before this call is on the disk."""
        self.dirty = False
        with storing(self.path), suppress(FileNotFoundError):  # sealed meanwhile: its parts are on the disk
            sync_to_disk(self.path)
            sync_to_disk(self.path.parent)

    def cut(self) -> int:
        """Return how many bytes another program took off the end of the file."""
        return max(0, self.size - os.fstat(self._descriptor).st_size) if self._descriptor >= 0 else 0

    def moved(self) -> bool:
        """Whether the file has another name now; all that was written is in it."""
        return self._descriptor >= 0 and not self._named() and os.fstat(self._descriptor).st_nlink > 0

    def put_back(self) -> bool:
        """Give a file that was removed its name again, by the thread that writes; return whether it was.

        Raises:
            StoreError: the disk does not take it.
        """
        if self._descriptor < 0 or self._named() or self.moved():
            return False
        draft = self.path.with_suffix(".tmp")
        with storing(self.path):
            make_folder(self.path.parent)
            with suppress(FileNotFoundError):  # of another program: not thrown away
                self.path.replace(self.path.with_suffix(".replaced"))
            fresh = os.open(draft, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            with open(os.dup(fresh), "wb") as file:
                for offset in range(0, self.size, BATCH_BYTES):
                    file.write(os.pread(self._descriptor, BATCH_BYTES, offset))
            publish(draft, self.path)
        os.close(self._descriptor)
        self._descriptor = fresh
        return True

    def _named(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False

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
    """Yield the JSON of every sound line after the first, as written; note what is wrong in `damaged`.

    Raises:
        FileNotFoundError: the segment was sealed meanwhile.
        ConfigError: a later asyncbench wrote it.
        StoreError: it is a copy of another segment.
    """
    with segment.open("rb", buffering=BATCH_BYTES) as file:
        for payload in _ordered_lines(segment, file, damaged):
            if not payload.startswith(_HEAD_STARTS):
                yield payload
                continue
            head = orjson.loads(payload)
            if (number := head.get("segment", number_of(segment))) != number_of(segment):
                raise StoreError(f"{segment} is a copy of {name_of(number)}. Move it out of the folder.")
            check_version(segment, head["schema_version"])


def _ordered_lines(segment: Path, file: BinaryIO, damaged: list[Damage]) -> Iterator[bytes]:
    """Yield the JSON of whole lines in the order in which they were written, each once."""
    number, before = 0, _FIRST
    for line in file:
        ending = b',"line":%d,"after":%d}\n' % (number + 1, before)
        checksum = zlib.crc32(memoryview(line)[_PREFIX:-1])
        if not (line.endswith(ending) and line.startswith(b"%08x " % checksum)):
            file.seek(-len(line), os.SEEK_CUR)
            yield from _repaired_lines(segment, file, damaged, number, before)
            return
        yield line[_PREFIX : -len(ending)] + b"}"
        number, before = number + 1, checksum


def _repaired_lines(
    segment: Path, file: BinaryIO, damaged: list[Damage], number: int, last: int
) -> Iterator[bytes]:
    """Yield the lines after the longest undamaged beginning of a segment.

    Args:
        segment: where it is.
        file: the same, open, just after that beginning.
        damaged: takes what is wrong.
        number: how many lines that beginning has.
        last: the checksum of the last of them.
    """
    before: int | None = last  # None: nobody knows
    lines = _whole_lines(segment, file, damaged, number)
    for line in lines:
        if line.number is not None:
            if line.number != number + 1 and not (line.explained and line.number > number):
                # Little is kept of each: the rest of a segment may be large.
                rest = [each._replace(payload=b"") for each in chain((line,), lines)]
                yield from _sorted_lines(segment, file, damaged, number, rest)
                return
            if line.number == number + 1 and before not in {None, line.after}:  # of another journal
                damaged.append(_left_out(segment, line))
                number, before = line.number, None
                continue
            number, before = line.number, line.sum
        yield line.payload


def _sorted_lines(
    segment: Path, file: BinaryIO, damaged: list[Damage], number: int, rest: Sequence[_Line]
) -> Iterator[bytes]:
    """Yield lines that were moved in the order of their numbers; note those that are gone, or there twice.

    Args:
        segment: where they are.
        file: the same, open.
        damaged: takes what is wrong.
        number: the number of the last line before them.
        rest: all lines from there to the end, without their JSON.
    """
    highest = number
    for line in rest:  # as they stand
        if (line.number or 0) < highest:
            damaged.append(Damage(segment=segment, line=line.row, offset=line.offset, size=0))
        highest = max(highest, line.number or 0)
    for line in sorted(rest, key=lambda line: line.number or 0):
        if (line.number or 0) <= number:
            damaged.append(_left_out(segment, line))
            continue
        if (gone := (line.number or 0) - number - 1) and not line.explained:
            damaged.append(Damage(segment=segment, line=line.row, offset=line.offset, size=0, missing=gone))
        number = line.number or 0
        file.seek(line.offset)
        yield _split_ending(file.read(line.size)[_PREFIX:-1])[0]


def _left_out(segment: Path, line: _Line) -> Damage:
    return Damage(segment=segment, line=line.row, offset=line.offset, size=line.size)


def _whole_lines(segment: Path, file: BinaryIO, damaged: list[Damage], before: int) -> Iterator[_Line]:
    """Yield the lines that are whole, as they stand, after the first `before`; note the others."""
    offset, explained = file.tell(), False
    for count, line in enumerate(file, start=before + 1):
        payload = line[_PREFIX:-1]
        checksum = zlib.crc32(payload)
        if line.endswith(b"\n") and line.startswith(b"%08x " % checksum):
            bare, number, after = _split_ending(payload)
            yield _Line(count, offset, len(line), number, after, checksum, bare, explained)
            explained = False
        elif line != b"\n":
            damaged.append(Damage(segment=segment, line=count, offset=offset, size=len(line)))
            explained = True
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


def _split_ending(payload: bytes) -> tuple[bytes, int | None, int]:
    """Return the JSON of a line without its ending, then its number, and the checksum of the line before.

    An earlier version wrote no ending: then the number is None.
    """
    ending = _ENDING.search(payload, max(0, len(payload) - _ENDING_BYTES))
    if ending is None:
        return payload, None, _FIRST
    return payload[: ending.start()] + b"}", int(ending[1]), int(ending[2])


def quarantine(damaged: Sequence[Damage], folder: Path, *, temporary: Path) -> None:
    """Copy the damaged lines of one segment out of it; doing it again changes nothing."""
    if damaged and (lines := lines_of(damaged)):
        name = damaged[0].segment.name
        write_durably(folder / QUARANTINE / name, lines, temporary=temporary / name)


def lines_of(damaged: Sequence[Damage]) -> bytes:
    """Return the damaged lines of one segment as they stand in it; of each that is gone, a word."""
    lines = []
    with damaged[0].segment.open("rb") as segment:
        for line in damaged:
            lines += [b"a line before line %d is missing\n" % line.line] * line.missing
            if line.size:
                segment.seek(line.offset)
                lines.append(segment.read(line.size).removesuffix(b"\n") + b"\n")
    return b"".join(lines)


def quarantined(folder: Path) -> Mapping[str, int]:
    """Return how many lines of each segment were set aside, by the segment's name, oldest first."""
    files = sorted((folder / QUARANTINE).glob("*.wal"))
    return {file.name: file.read_bytes().count(b"\n") for file in files}


def damaged_lines(folder: Path, damaged: Sequence[Damage]) -> Iterator[bytes]:
    """Yield every damaged line of a folder: those of its journal, `damaged`, and those set aside before."""
    present = {line.segment.name for line in damaged}
    for _, lines in groupby(damaged, key=lambda line: line.segment):
        yield from filter(None, lines_of(list(lines)).split(b"\n"))
    for file in sorted((folder / QUARANTINE).glob("*.wal")):
        if file.name not in present:  # or they were being set aside just now
            yield from filter(None, file.read_bytes().split(b"\n"))


def calls_in(line: bytes) -> int:
    """Return how many calls may have been written down in a damaged line: one at least.

    A lost line feed joins lines, and a stretch that never reached the disk may read as zeros.
    """
    return max(1, line.count(SENT), -(-line.count(0) // SHORTEST_CALL))
