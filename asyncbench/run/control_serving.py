"""The run's side of its control: a Unix socket that answers the user who started it, and nobody else."""

import asyncio
import os
import pwd
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from asyncbench.errors import AsyncbenchError
from asyncbench.run.place import noted_socket

REQUEST_WITHIN_S: Final = 10.0  # of a connection; what takes longer is no request of ours
_UCRED: Final = "iII"  # Linux: pid, uid, gid
_XUCRED: Final = "IIh"  # macOS: version, uid, groups

Talk = Mapping[str, Any]  # a request, or what is answered; Any: JSON
Answer = Callable[[Talk, "Peer"], Talk]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who asks."""

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
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack(_UCRED, told)
        return Peer(uid=uid, pid=pid)
    if sys.platform == "darwin":  # SOL_LOCAL, LOCAL_PEERCRED
        _, uid, _ = struct.unpack_from(_XUCRED, connection.getsockopt(0, 1, 76))
        return Peer(uid=uid, pid=None)
    return Peer(uid=os.geteuid(), pid=None)


@asynccontextmanager
async def controlled(folder: Path, answer: Answer, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Answer requests about the run in a folder for as long as the body lasts.

    Without a place for a socket the run goes on all the same, and a person is told.
    """
    async with AsyncExitStack() as stack:
        try:
            path = stack.enter_context(noted_socket(folder))
            desk = _ControlDesk(answer)
            server = await asyncio.start_unix_server(desk.accept, path)
            stack.push_async_callback(desk.close, server)
        except OSError as error:
            say(f"`asyncbench pause`, `resume` and `set` cannot reach this run: {error}")
        yield


@dataclass(slots=True)
class _ControlDesk:
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
