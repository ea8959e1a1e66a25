"""Where the socket of a run is: in a directory of the user's own. A note in the results folder leads there.

The path of a socket has at most about 107 bytes, so a deep results folder cannot hold one. And whoever may
write to the folder must not control the run: the directory is its user's alone, and so is the note.
"""

import os
import secrets
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

import orjson

from asyncbench.store.parts import TEMPORARY

NOTE: Final = ".control"  # in a results folder
MOST_BYTES: Final = 100  # of a socket's path
YOUNG_S: Final = 60.0  # a socket that nobody serves yet, perhaps


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketNote:
    """What a results folder says of the run in it."""

    socket: str  # its path
    pid: int
    inode: int  # of the folder: a copy of it is not the run's

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return what a folder says; None: nothing, or nothing of this folder.

        Raises:
            PermissionError: it is another user's, or leads to where others may write.
        """
        try:
            with (folder / NOTE).open("rb") as file:
                owner, said = os.fstat(file.fileno()).st_uid, orjson.loads(file.read())
            note, inode = cls(**said), folder.stat().st_ino
        except (FileNotFoundError, ValueError, TypeError):
            return None
        directory = Path(note.socket).parent
        if owner != os.geteuid() or (directory.exists() and not _is_private(directory)):
            raise PermissionError
        return note if note.inode == inode else None


@contextmanager
def noted_socket(folder: Path) -> Iterator[Path]:
    """Yield where the socket of a run is to be, with a note of it in the folder; both are gone in the end.

    Raises:
        OSError: there is no place for it.
    """
    directory = _private_directory()
    _remove_stale(directory)
    path = directory / secrets.token_hex(8)
    note, draft = folder / NOTE, folder / TEMPORARY / path.name
    said = SocketNote(socket=str(path), pid=os.getpid(), inode=folder.stat().st_ino)
    try:
        draft.parent.mkdir(exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(asdict(said)))
        draft.replace(note)
        yield path
    finally:
        for left in (draft, note, path):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _private_directory() -> Path:
    """Return a directory that its user alone can enter, made where it is missing; raises OSError."""
    own, given = f"asyncbench-{os.geteuid()}", os.environ.get("XDG_RUNTIME_DIR")
    places = [Path(given, "asyncbench")] if given else []
    places += [Path(tempfile.gettempdir(), own), Path("/tmp", own)]  # noqa: S108  it is checked whose it is
    for place in places:
        if len(os.fsencode(place)) + 20 <= MOST_BYTES:
            with suppress(OSError):
                place.mkdir(0o700, exist_ok=True)
                if _is_private(place):
                    return place
    raise OSError(f"no private directory with a short path (tried {', '.join(map(str, places))})")


def _is_private(directory: Path) -> bool:
    found = directory.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _remove_stale(directory: Path) -> None:
    """Remove the sockets of runs that were killed: nobody listens."""
    for path in directory.iterdir():
        with suppress(OSError), socket.socket(socket.AF_UNIX) as tried:
            if time.time() - path.lstat().st_mtime > YOUNG_S:
                tried.settimeout(1.0)
                try:
                    tried.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()
