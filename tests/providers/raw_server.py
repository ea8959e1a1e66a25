"""A loopback server that sends exact bytes, or breaks off as it is told."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

Manner = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came over the wire."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, object]


class RawServer:
    """Meets every request with the manner it was given last, and remembers it."""

    def __init__(self, url: str, manner: Manner) -> None:
        self.url = url
        self.manner = manner
        self.received: list[Received] = []
        self.asked = asyncio.Event()
        self.left = asyncio.Event()  # somebody hung up on an answer
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def connections(self) -> int:
        return len(self.writers)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while not writer.is_closing():
            self.received.append(await _read(reader))
            self.asked.set()
            try:
                await self.manner(writer)
            except ConnectionError:
                self.left.set()
                raise


@asynccontextmanager
async def raw_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks[asyncio.create_task(server.talk(reader, writer))] = writer

    listener = await asyncio.start_server(welcome, "127.0.0.1", 0, backlog=1024, ssl=tls)
    host, port = listener.sockets[0].getsockname()
    server = RawServer(f"{'https' if tls else 'http'}://{host}:{port}", answering())
    yield server
    listener.close()
    for talk, writer in talks.items():
        talk.cancel()
        writer.close()
    await asyncio.gather(*talks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    read = orjson.loads(body) if body[:1] in (b"{", b"[") else {}  # a form is not read
    return Received(path=first.split(" ")[1], headers=headers, body=read)


def head(status: int = 200, **headers: object) -> bytes:
    """Return a status line and headers; `retry_after=7` is `retry-after: 7`."""
    lines = (f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Told\r\n{''.join(lines)}\r\n".encode()


def answering(status: int = 200, body: object = b"", **headers: object) -> Manner:
    """Answer in full; a body that is not bytes is written as JSON."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return sending(head(status, content_length=len(content), **headers) + content)


def sending(content: bytes, *, then_close: bool = False) -> Manner:
    async def manner(writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()
        if then_close:
            writer.close()

    return manner


EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"


def chunk(piece: bytes) -> bytes:
    """Return a piece of a body as HTTP sends it; an empty one is the end."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def stream_of(*pieces: bytes, whole: bool = True, headers: bytes = b"") -> bytes:
    """Return a response whose body comes in pieces; `whole`: with the end that HTTP demands."""
    end = chunk(b"") if whole else b""
    return EVENT_STREAM + headers + b"\r\n" + b"".join(map(chunk, pieces)) + end


def events(*data: bytes) -> bytes:
    """Return events in the usual form."""
    return b"".join(b"data: " + one + b"\n\n" for one in data)


def in_steps(*parts: bytes, then_close: bool = False) -> Manner:
    """Send each part on its own, so that it arrives on its own."""

    async def manner(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)
        if then_close:
            writer.close()

    return manner


def resetting(after: bytes = b"") -> Manner:
    async def manner(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        reset(writer)

    return manner


def reset(writer: asyncio.StreamWriter) -> None:
    no_lingering = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
    writer.transport.abort()


def stalling(after: bytes = b"") -> Manner:
    async def manner(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await asyncio.Event().wait()

    return manner


def dripping(after: bytes, drop: bytes = b" ") -> Manner:
    """Send a drop every 50 ms for ever: no single read takes long."""

    async def manner(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)

    return manner


def together(calls: int, then: Manner) -> Manner:
    """Answer nobody before so many are there."""
    all_there = asyncio.Barrier(calls)

    async def manner(writer: asyncio.StreamWriter) -> None:
        await all_there.wait()
        await then(writer)

    return manner
