"""Control a run: its socket, and who asks it to pause, to go on or to set limits.

The socket is in a directory of the user's own, and a note in the results folder names it. The path of a
socket has at most about 107 bytes, so a deep results folder cannot hold one. And whoever may write to the
folder must not control the run: the directory is its user's alone, and so is the note.
"""

import asyncio
import math
import os
import pwd
import secrets
import shlex
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import orjson

from asyncbench.config.sweep import load_sweep
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.files import home_expanded, quoted
from asyncbench.store.bucket.claiming import run_folder
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.lock import read_mark, writer_of
from asyncbench.store.manifest import SWEEP_FILE, read_manifest
from asyncbench.store.parts import TEMPORARY
from asyncbench.tables.report import Report

# ── The place of the socket


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
        """Return the control file of a folder, or None if it is missing, damaged or of another folder.

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

    # Sockets of runs that were killed go: nobody listens.
    for stale in directory.iterdir():
        with suppress(OSError), socket.socket(socket.AF_UNIX) as tried:
            if time.time() - stale.lstat().st_mtime > YOUNG_S:
                tried.settimeout(1.0)
                try:
                    tried.connect(str(stale))
                except ConnectionRefusedError:
                    stale.unlink()

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
    name, runtime = f"asyncbench-{os.geteuid()}", os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(runtime, "asyncbench")] if runtime else []
    candidates.append(Path(tempfile.gettempdir(), name))
    candidates.append(Path("/tmp", name))  # noqa: S108  it is checked whose it is
    for directory in candidates:
        if len(os.fsencode(directory)) + 20 <= MOST_BYTES:
            with suppress(OSError):
                directory.mkdir(0o700, exist_ok=True)
                if _is_private(directory):
                    return directory
    raise OSError(f"no private directory with a short path (tried {', '.join(map(str, candidates))})")


def _is_private(directory: Path) -> bool:
    """Return whether a directory is ours, and nobody else may enter it."""
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


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
    """Return the user at the other end, as the kernel says; on other systems the folder's rights must do."""
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
        """Answer the one request of a connection, and close it."""
        with suppress(OSError, TimeoutError):  # whoever asked is gone, or says nothing
            try:
                peer = peer_of(writer.get_extra_info("socket"))
                async with asyncio.timeout(REQUEST_WITHIN_S):
                    reply = await self._reply_to(reader, peer)
                    writer.write(orjson.dumps(reply) + b"\n")
                    await writer.drain()
            finally:
                writer.close()

    async def _reply_to(self, reader: asyncio.StreamReader, peer: Peer) -> Talk:
        """Return the reply to a request: what was done, or why it is refused."""
        try:
            line = await reader.readline()  # or they would see a broken connection, and no answer
            if peer.uid != os.geteuid():
                return {"error": f"this run is another user's, and {peer.name} may not control it"}
            return self.answer(orjson.loads(line), peer)
        except AsyncbenchError as error:
            return {"error": str(error)}
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            return {"error": f"not a request that this version of asyncbench knows ({type(error).__name__})"}


# ── Requests, from a terminal or from Python


REPLY_WITHIN_S: Final = 30.0  # of a run whose event loop is busy
STATUS_WITHIN_S: Final = 2.0  # of a status that may do without
KINDS: Final = ("rpm", "tpm", "input_tpm", "output_tpm", "concurrency")  # of limits, as a sweep says them
NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled(Report):
    """Result of a request to a run."""

    folder: str
    paused: bool
    notes: tuple[str, ...]
    lanes: tuple[Mapping[str, object], ...]  # how each stands now

    def notes_above(self) -> Iterator[str]:
        yield from self.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """State of a run that is going on."""

    lanes: tuple[Mapping[str, object], ...] = ()
    workers: tuple[Mapping[str, object], ...] = ()  # none where the run makes its calls itself


async def pause_run(folder: Path | str) -> Controlled:
    """Pause the run in a results folder: it sends nothing new until it is resumed.

        print((await ab.pause_run("results/night")).as_text())

    Calls in flight end, and batches that were created go on. A deadline and Ctrl-C still end the run.

    Args:
        folder: the results folder.

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: No run of yours is going on in the folder.
    """
    return await asyncio.to_thread(send_request, home_expanded(folder), {"do": "pause"})


async def resume_run(folder: Path | str) -> Controlled:
    """Resume a run that was paused. A run that has ended is continued by `run_sweep`.

        print((await ab.resume_run("results/night")).as_text())

    Args:
        folder: the results folder.

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: No run of yours is going on in the folder.
    """
    return await asyncio.to_thread(send_request, home_expanded(folder), {"do": "resume"})


async def set_limits(
    folder: Path | str,
    limits: Mapping[str, float | None],
    *,
    model: str | None = None,
) -> Controlled:
    """Set other limits for a run while it goes on.

        await ab.set_limits("results/night", {"rpm": 30, "concurrency": 4}, model="large")

    Args:
        folder: the results folder.
        limits: `rpm`, `tpm`, `input_tpm`, `output_tpm` (per minute) or `concurrency` (calls in flight);
            None: no such limit.
        model: the alias of a model. [all]

    Returns:
        A `Controlled`: what was done, and the state of each lane.

    Raises:
        ConfigError: A limit or a model is unknown, or no run of yours is going on in the folder.
    """
    request = {"do": "set", "limits": checked_limits(limits), "model": model}
    return await asyncio.to_thread(send_request, home_expanded(folder), request)


def limits_typed(words: Sequence[str]) -> dict[str, float | None]:
    """Return limits that were typed as `rpm=30`; raises ConfigError."""
    limits: dict[str, float | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"{word}: not a limit. Type its name and number, such as rpm=30")
        try:
            limits[name] = None if value == NONE else float(value)
        except ValueError:
            raise ConfigError(f"{word}: {value!r} is not a number. Type one, such as {name}=30") from None
    return checked_limits(limits)


def checked_limits(limits: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return limits after a check of their names and values; raises ConfigError."""
    if not limits:
        raise ConfigError(f"no limit to set. Known: {', '.join(KINDS)}")
    for name, limit in limits.items():
        if name not in KINDS:
            raise ConfigError(f"{name}: unknown limit. Known: {', '.join(KINDS)}")
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
            typed = f"{limit:.10g}" if isinstance(limit, float) else limit
            raise ConfigError(
                f"{name}={typed}: not a number above 0. To send nothing, use `asyncbench pause`; for no such "
                f"limit, {name}={NONE}"
            )
        if name == KINDS[-1] and limit != int(limit):
            raise ConfigError(f"{name}={limit}: not a whole number")
    return dict(limits)


def send_request(folder: Path, request: Mapping[str, object]) -> Controlled:
    """Send a request to the run in a folder, and return what it did; raises ConfigError."""
    path = run_folder(folder)
    read_manifest(path)
    try:
        if (note := SocketNote.read(path)) is None:
            raise FileNotFoundError
        reply = _talk(note, request, within_s=REPLY_WITHIN_S)
    except PermissionError:
        raise ConfigError(
            f"the run in {path} is another user's. Only the user who started it can control it"
        ) from None
    except TimeoutError:
        raise ConfigError(
            f"the run in {path} did not answer within {REPLY_WITHIN_S:.0f} s. This computer may be busy. "
            f"See `asyncbench status {quoted(path)}`"
        ) from None
    except (OSError, ValueError):
        raise ConfigError(_silence_text(path, str(request["do"]))) from None
    if "error" in reply:
        raise ConfigError(str(reply["error"]))
    return Controlled(
        folder=display_name(folder),
        paused=bool(reply["paused"]),
        notes=tuple(reply["notes"]),
        lanes=tuple(reply["lanes"]),
    )


def progress_of_run(folder: Path) -> RunProgress:
    """Return how the run in a folder stands; nothing where there is none, or nobody may know.

    Nothing, too, where this is the process that runs it: its event loop may be waiting for us.
    """
    try:
        note = SocketNote.read(folder)
        if note is None or note.pid == os.getpid():
            return RunProgress()
        reply = _talk(note, {"do": "look"}, within_s=STATUS_WITHIN_S)
        return RunProgress(lanes=tuple(reply.get("lanes", ())), workers=tuple(reply.get("workers", ())))
    except (OSError, ValueError, AttributeError):
        return RunProgress()


def _talk(note: SocketNote, request: Mapping[str, object], *, within_s: float) -> Mapping[str, Any]:
    """Return the reply to one request; raises OSError, ValueError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(within_s)
        connection.connect(note.socket)
        connection.sendall(orjson.dumps(request) + b"\n")
        with connection.makefile("rb") as lines:
            reply: Mapping[str, Any] = orjson.loads(lines.readline())
    return reply


def _silence_text(folder: Path, request: str) -> str:
    """Return why no run answers, and how to continue the sweep; `request`: what the run was to do."""
    if (process := writer_of(folder)) is not None:
        return (
            f"process {process or 'unknown'} is writing to {folder}, but takes no commands: it is starting, "
            "ending, or no run. Try again in a moment"
        )
    killed = ", the last one was killed" if read_mark(folder) is not None else ""
    only = "`resume` only goes on with a paused run. " if request == "resume" else ""
    file, command = folder / SWEEP_FILE, "run"
    with suppress(AsyncbenchError):  # whoever runs it is told
        command = "run" if load_sweep(file).load is None else "load"
    return (
        f"no run is going on in {folder}{killed}. {only}To continue the sweep: "
        f"asyncbench {command} {shlex.quote(str(file))}"
    )
