"""Control socket of a run, in a directory of the user's own. A note in the results folder names it.

The path of a socket has at most about 107 bytes, so a deep results folder cannot hold one. And whoever may
write to the folder must not control the run: the directory is its user's alone, and so is the note.
"""

import asyncio
import os
import pwd
import secrets
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import orjson

from asyncbench.errors import AsyncbenchError
from asyncbench.store.parts import TEMPORARY

NOTE: Final = ".control"  # in a results folder
MOST_BYTES: Final = 100  # of a socket's path
YOUNG_S: Final = 60.0  # a socket that nobody serves yet, perhaps


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketNote:
    """Note in a results folder about the run in it."""

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
                owner, content = os.fstat(file.fileno()).st_uid, orjson.loads(file.read())
            note, inode = cls(**content), folder.stat().st_ino
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
    record = SocketNote(socket=str(path), pid=os.getpid(), inode=folder.stat().st_ino)
    try:
        draft.parent.mkdir(exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(asdict(record)))
        draft.replace(note)
        yield path
    finally:
        for leftover in (draft, note, path):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _private_directory() -> Path:
    """Return a directory that its user alone can enter, made where it is missing; raises OSError."""
    own, runtime = f"asyncbench-{os.geteuid()}", os.environ.get("XDG_RUNTIME_DIR")
    places = [Path(runtime, "asyncbench")] if runtime else []
    places += [Path(tempfile.gettempdir(), own), Path("/tmp", own)]  # noqa: S108  it is checked whose it is
    for place in places:
        if len(os.fsencode(place)) + 20 <= MOST_BYTES:
            with suppress(OSError):
                place.mkdir(0o700, exist_ok=True)
                if _is_private(place):
                    return place
    raise OSError(f"no private directory with a short path (tried {', '.join(map(str, places))})")


def _is_private(directory: Path) -> bool:
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


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


# ── The server: a Unix socket that answers only the user who started the run

REQUEST_WITHIN_S: Final = 10.0  # of a connection; what takes longer is no request of ours
_UCRED: Final = "iII"  # Linux: pid, uid, gid
_XUCRED: Final = "IIh"  # macOS: version, uid, groups

Talk = Mapping[str, Any]  # a request, or what is answered; Any: JSON
Answer = Callable[[Talk, "Peer"], Talk]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The process at the other end of a connection."""

    uid: int
    pid: int | None  # None: the system does not say

    @property
    def name(self) -> str:
        """The user's name."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"

    def __str__(self) -> str:
        return self.name if self.pid is None else f"{self.name} (process {self.pid})"


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end, by the kernel's word; elsewhere the directory's rights must do."""
    if sys.platform == "linux":
        size = struct.calcsize(_UCRED)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack(_UCRED, credentials)
        return Peer(uid=uid, pid=pid)
    if sys.platform == "darwin":  # SOL_LOCAL, LOCAL_PEERCRED
        _, uid, _ = struct.unpack_from(_XUCRED, connection.getsockopt(0, 1, 76))
        return Peer(uid=uid, pid=None)
    return Peer(uid=os.geteuid(), pid=None)


@asynccontextmanager
async def controlled(folder: Path, answer: Answer, notify: Callable[[str], None]) -> AsyncIterator[None]:
    """Answer requests about the run in a folder for as long as the body lasts.

    Without a place for a socket the run goes on all the same, and a person is told.
    """
    async with AsyncExitStack() as stack:
        try:
            path = stack.enter_context(noted_socket(folder))
            control = _ControlServer(answer)
            server = await asyncio.start_unix_server(control.accept, path)
            stack.push_async_callback(control.close, server)
        except OSError as error:
            notify(f"`asyncbench pause`, `resume` and `set` cannot reach this run: {error}")
        yield


@dataclass(slots=True)
class _ControlServer:
    """Serves one request for each connection."""

    answer: Answer
    _serving: set["asyncio.Task[None]"] = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="control")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def close(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError):  # whoever asked is gone, or says nothing
            try:
                peer = peer_of(writer.get_extra_info("socket"))
                async with asyncio.timeout(REQUEST_WITHIN_S):
                    reply = await self._answered(reader, peer)
                    writer.write(orjson.dumps(reply) + b"\n")
                    await writer.drain()
            finally:
                writer.close()

    async def _answered(self, reader: asyncio.StreamReader, peer: Peer) -> Talk:
        try:
            line = await reader.readline()  # or they would see a broken connection, and no answer
            if peer.uid != os.geteuid():
                return {"error": f"this run is another user's, and {peer.name} may not control it"}
            return self.answer(orjson.loads(line), peer)
        except AsyncbenchError as error:
            return {"error": str(error)}
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            return {"error": f"not a request that this version of asyncbench knows ({type(error).__name__})"}
