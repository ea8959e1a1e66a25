"""Lines of the journal that cannot be used: kept beside it as they were found, never thrown away.

quarantine/000002.wal    the damaged lines of journal/000002.wal, in their order
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from asyncbench.store.durable import write_durably
from asyncbench.store.segment import Damage

SENT: Final = b'{"sent"'  # how the line of a call begins
SHORTEST_CALL: Final = 150  # bytes of such a line, at least
QUARANTINE = "quarantine"  # in a results folder


def quarantine(damaged: Sequence[Damage], folder: Path, *, temporary: Path) -> None:
    """Copy the damaged lines of one segment out of it; doing it again changes nothing.

    Raises:
        StoreError: the disk does not take the copy.
    """
    if damaged:
        name = damaged[0].segment.name
        write_durably(folder / QUARANTINE / name, lines_of(damaged), temporary=temporary / name)


def lines_of(damaged: Sequence[Damage]) -> bytes:
    """Return the damaged lines of one segment as they stand in it."""
    with damaged[0].segment.open("rb") as lines:
        found = [_line(lines.read(one.size)) for one in damaged if lines.seek(one.offset) >= 0]
    return b"".join(found)


def quarantined(folder: Path) -> Mapping[str, int]:
    """Return how many lines of each segment were set aside, by the segment's name, oldest first."""
    files = sorted((folder / QUARANTINE).glob("*.wal"))
    return {file.name: file.read_bytes().count(b"\n") for file in files}


def damaged_lines(folder: Path, damaged: Sequence[Damage]) -> Iterator[bytes]:
    """Yield every damaged line of a folder: those of its journal, `damaged`, and those set aside before."""
    present = {one.segment.name for one in damaged}
    for _, some in groupby(damaged, key=lambda one: one.segment):
        yield from _apart(lines_of(list(some)))
    for file in sorted((folder / QUARANTINE).glob("*.wal")):
        if file.name not in present:  # or they were being set aside just now
            yield from _apart(file.read_bytes())


def calls_in(line: bytes) -> int:
    """Return how many calls may have been written down in a damaged line: one at least.

    A lost line feed joins lines, and a stretch that never reached the disk may read as zeros.
    """
    return max(1, line.count(SENT), -(-line.count(0) // SHORTEST_CALL))


def _apart(lines: bytes) -> Iterator[bytes]:
    return filter(None, lines.split(b"\n"))


def _line(found: bytes) -> bytes:
    return found if found.endswith(b"\n") else found + b"\n"
