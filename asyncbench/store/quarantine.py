"""Lines of the journal that cannot be used: kept beside it as they were found, never thrown away.

quarantine/000002.wal    the damaged lines of journal/000002.wal, in their order
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from asyncbench.store.durable import write
from asyncbench.store.segment import Damage

QUARANTINE = "quarantine"  # in a results folder


def quarantine(damaged: Sequence[Damage], folder: Path, *, temporary: Path) -> None:
    """Copy the damaged lines of one segment out of it; doing it again changes nothing.

    Raises:
        StoreError: the disk does not take the copy.
    """
    if damaged:
        name = damaged[0].segment.name
        write(folder / QUARANTINE / name, lines_of(damaged), temporary=temporary / name)


def lines_of(damaged: Sequence[Damage]) -> bytes:
    """Return the damaged lines of one segment as they stand in it."""
    with damaged[0].segment.open("rb") as lines:
        found = [_line(lines.read(one.size)) for one in damaged if lines.seek(one.offset) >= 0]
    return b"".join(found)


def quarantined(folder: Path) -> Mapping[str, int]:
    """Return how many lines of each segment were set aside, by the segment's name, oldest first."""
    files = sorted((folder / QUARANTINE).glob("*.wal"))
    return {file.name: file.read_bytes().count(b"\n") for file in files}


def _line(found: bytes) -> bytes:
    return found if found.endswith(b"\n") else found + b"\n"
