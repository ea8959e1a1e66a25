"""What a disk may hold after a power failure, drawn from the record of all that processes did to it.

Only what an fsync covered is certain: the bytes of a file, the names in a folder. Each part of anything else
may be there or not, whatever was done first. Blocks of 512 bytes or 4 KiB are as they were after any write.
Lengths hold zeros or rubbish where bytes never came. A name was given, or was not; a rename is one step.
"""

import os
import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest

BLOCK = 512
ROOT = 0  # the number of the topmost folder
TAP = Path(__file__).with_name("tap.c")
_HEAD = struct.Struct("<cqqqq")
_SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)  # of what is uncertain, how much came to the disk

Name = tuple[int, str]  # a folder's number, and a name in it
Names = dict[Name, int]


class Change(NamedTuple):
    """One call of the system, as tap.c writes it down."""

    what: str
    one: int
    two: int
    first: bytes
    second: bytes


def tapped(folder: Path) -> Path:
    """Return the library that writes down what a process does to its files; it is made in `folder`."""
    if (compiler := which("cc") or which("gcc")) is None or not Path("/proc/self/fd").is_dir():
        pytest.skip(
            "what a process does to its files is written down by a small library in C: needs Linux and cc"
        )
    made = folder / "tap.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(TAP), "-ldl", "-lpthread"]
    subprocess.run(words, check=True)
    return made


def changes(log: Path) -> Iterator[Change]:
    """Yield what is written down in a log."""
    data, at = log.read_bytes(), 0
    while at < len(data):
        what, one, two, size, more = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Change(what.decode(), one, two, data[at : at + size], data[at + size : at + size + more])
        at += size + more


class File:
    """The bytes of a file: every state of every block since the last fsync, and every length."""

    def __init__(self, data: bytes = b"") -> None:
        self.sizes = [(0, len(data))]  # since when, bytes; the first is certain
        self.blocks: dict[int, list[tuple[int, bytes]]] = {}
        for at in range(0, len(data), BLOCK):
            self.blocks[at // BLOCK] = [(0, data[at : at + BLOCK].ljust(BLOCK, b"\0"))]

    def write(self, now: int, offset: int, data: bytes) -> None:
        end = offset + len(data)
        for number in range(offset // BLOCK, -(-end // BLOCK)):
            states, start = self.blocks.setdefault(number, []), number * BLOCK
            block = bytearray(states[-1][1] if states else bytes(BLOCK))
            first, last = max(offset, start), min(end, start + BLOCK)
            block[first - start : last - start] = data[first - offset : last - offset]
            states.append((now, bytes(block)))
        if end > self.sizes[-1][1]:
            self.sizes.append((now, end))

    def resize(self, now: int, size: int) -> None:
        for number, states in self.blocks.items():
            if (kept := max(0, size - number * BLOCK)) < BLOCK:
                states.append((now, states[-1][1][:kept].ljust(BLOCK, b"\0")))
        self.sizes.append((now, size))

    def sync(self) -> None:
        self.sizes = [(0, self.sizes[-1][1])]
        self.blocks = {number: [(0, states[-1][1])] for number, states in self.blocks.items()}

    @property
    def live(self) -> bytes:
        blocks = bytearray(self.sizes[-1][1])
        for number, states in self.blocks.items():
            blocks[number * BLOCK : (number + 1) * BLOCK] = states[-1][1]
        return bytes(blocks[: self.sizes[-1][1]])

    def drawn(self, rng: random.Random, share: float, page: int) -> bytes:
        """Return the bytes that may be found."""
        if len(self.sizes) == 1 and all(
            len(states) == 1 and not states[0][0] for states in self.blocks.values()
        ):
            return self.live
        size = self.sizes[-1][1] if rng.random() < share else rng.choice(self.sizes)[1]
        rubbish = rng.random() < 0.3
        found = bytearray(size)
        pages: dict[int, list[int]] = {}
        for number in sorted(self.blocks):
            pages.setdefault(number * BLOCK // page, []).append(number)
        for numbers in pages.values():
            times = [0, *(at for number in numbers for at, _ in self.blocks[number])]
            until = max(times) if rng.random() < share else rng.choice(times)
            for number in numbers:
                there = [data for at, data in self.blocks[number] if at <= until]
                block = there[-1] if there else rng.randbytes(BLOCK) if rubbish else bytes(BLOCK)
                found[number * BLOCK : (number + 1) * BLOCK] = block
        return bytes(found[:size])


@dataclass(slots=True)
class _Move:
    """Names given or taken away in one step."""

    names: dict[Name, int | None]
    sure: bool = False


@dataclass(slots=True)
class Disk:
    """A file system below one folder, which knows what of it would outlive the power."""

    place: Path
    files: dict[int, File] = field(default_factory=dict)
    live: Names = field(default_factory=dict)
    sure: Names = field(default_factory=dict)
    moves: list[_Move] = field(default_factory=list)  # in their order, from the first that is not sure
    inodes: dict[int, int] = field(default_factory=dict)  # of files, as the system numbers them
    now: int = 0
    _last: int = ROOT

    @classmethod
    def of(cls, place: Path) -> "Disk":
        """Return the disk that was found after a power failure: all that is there is certain."""
        disk = cls(place)
        for path in sorted(place.rglob("*")):
            folder, name = disk._at(os.fsencode(path))
            inode = path.stat().st_ino
            number = disk.inodes.get(inode) or disk._new()
            disk.live[folder, name] = disk.sure[folder, name] = number
            if path.is_file():
                disk.inodes[inode] = number
                disk.files.setdefault(number, File(path.read_bytes()))
        return disk

    def do(self, change: Change) -> None:
        """Follow a change."""
        self.now += 1
        match change.what:
            case "o":
                self._open(change)
            case "w":
                self.files[self.inodes[change.one]].write(self.now, change.two, change.first)
            case "t":
                self.files[self.inodes[change.one]].resize(self.now, change.two)
            case "a":
                file = self.files[self.inodes[change.one]]
                file.resize(self.now, max(change.two, file.sizes[-1][1]))
            case "s":
                self._sync(change)
            case "m":
                self._name({self._at(change.first): self._new()})
            case "u":
                self._name({self._at(change.first): None})
            case "l":
                self._name({self._at(change.second): self.live[self._at(change.first)]})
            case "r":
                one, other = self._at(change.first), self._at(change.second)
                self._name({one: None, other: self.live[one]})
            case "x":
                one, other = self._at(change.first), self._at(change.second)
                self._name({one: self.live[other], other: self.live[one]})

    def draw(self, rng: random.Random, into: Path) -> None:
        """Make in `into` what may be found if the power fails now."""
        named, written = rng.choice(_SHARES), rng.choice(_SHARES)
        page, names = rng.choice((BLOCK, 8 * BLOCK)), dict(self.sure)
        for move in self.moves:
            if move.sure or rng.random() < named:
                _apply(move, names)
        self._make(names, into, {n: file.drawn(rng, written, page) for n, file in self.files.items()})

    def tree(self) -> dict[str, bytes | None]:
        """Return what a process sees: the bytes of each file by its path, None of each folder."""
        return {str(path): self.files[n].live if n in self.files else None for path, n in _walk(self.live)}

    def _make(self, names: Names, into: Path, data: dict[int, bytes]) -> None:
        into.mkdir(parents=True)
        made: dict[int, Path] = {}
        for path, number in _walk(names):
            if number not in data:
                (into / path).mkdir()
            elif number in made:
                (into / path).hardlink_to(made[number])
            else:
                made[number] = into / path
                made[number].write_bytes(data[number])

    def _open(self, change: Change) -> None:
        where = self._at(change.first)
        if where not in self.live:
            self._name({where: self._new()})
            self.files[self.live[where]] = File()
        elif change.two:
            self.files[self.live[where]].resize(self.now, 0)
        self.inodes[change.one] = self.live[where]

    def _sync(self, change: Change) -> None:
        path = os.fsdecode(change.first)
        folder = ROOT if path == str(self.place) else self.live.get(self._at(change.first), ROOT)
        if folder in self.files or path.endswith(" (deleted)"):
            self.files[self.inodes[change.one]].sync()
            return
        for move in self.moves:
            move.sure |= any(at == folder for at, _ in move.names)
        while self.moves and self.moves[0].sure:
            _apply(self.moves.pop(0), self.sure)

    def _name(self, names: dict[Name, int | None]) -> None:
        move = _Move(names)
        self.moves.append(move)
        _apply(move, self.live)

    def _at(self, path: bytes) -> Name:
        *folders, name = Path(os.fsdecode(path)).relative_to(self.place).parts
        number = ROOT
        for folder in folders:
            number = self.live[number, folder]
        return number, name

    def _new(self) -> int:
        self._last += 1
        return self._last


def _apply(move: _Move, names: Names) -> None:
    for name, number in move.names.items():
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


def _walk(names: Names) -> Iterator[tuple[Path, int]]:
    """Yield what can be reached from the topmost folder, folders before what is in them."""
    within: dict[int, list[tuple[str, int]]] = {}
    for (folder, name), number in names.items():
        within.setdefault(folder, []).append((name, number))
    waiting = [(Path(), ROOT)]
    while waiting:
        path, folder = waiting.pop()
        for name, number in sorted(within.get(folder, ())):
            yield path / name, number
            waiting.append((path / name, number))
