"""Delivery of an answer: intact, or spoiled in one of the ways in which connections fail.

An answer is a page, written at once, or a broadcast, written piece by piece as its time comes.
"""

import asyncio
import math
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from aiohttp import web

from asyncbench.simulator.counts import Arrival
from asyncbench.simulator.served import Timing
from asyncbench.simulator.settings import FaultKind
from asyncbench.simulator.wire import Script

STALL_S = 300.0  # a client that waits longer than this has no deadline
TICK_S = 0.005  # pieces that are due within it are written together, at its end
WAITING_LINES = 3  # until the first token, evenly, from a provider that sends them
# Announced by providers that close the connection all the same.
KEEP_ALIVE = {"connection": "keep-alive", "keep-alive": "timeout=5, max=100"}
HEADERS = {"content-type": "application/json", "server": "asyncbench", "x-simulated": "asyncbench"}
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, zero seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A status, headers and a JSON body, ready to be written."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """A stream with its headers, ready to be written as its time comes."""

    headers: Mapping[str, str]
    script: Script
    timing: Timing
    start_s: float  # on the event loop's clock
    waiting: bytes  # a line for the time until the first token; empty: none
    closes: bool  # ends the connection, though keep-alive was announced
    arrival: Arrival  # of the call, whose bytes it notes


PageDelivery = Callable[[web.BaseRequest, Page], Awaitable[web.StreamResponse]]
StreamDelivery = Callable[[web.BaseRequest, Broadcast], Awaitable[web.StreamResponse]]


# ── pages ────────────────────────────────────────────────────────────────────────────────────


async def whole(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    """Write the page out.

    Raises:
        ConnectionError: the client is gone.
    """
    response = web.Response(status=page.status, headers=page.headers, body=page.body)
    await response.prepare(request)
    await response.write_eof()
    return response


async def cut(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    length = len(page.body)
    response = web.StreamResponse(status=page.status, headers={**page.headers, "content-length": str(length)})
    await response.prepare(request)
    await response.write(page.body[: length // 2])
    _close(request)
    return response


async def invalid_json(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    return await whole(request, replace(page, body=page.body[:-1]))


async def reset(request: web.BaseRequest, _content: Page | Broadcast) -> web.StreamResponse:
    """Reset the connection before a status line; the response returned is never written."""
    if (transport := request.transport) is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    return web.Response()


async def stall(request: web.BaseRequest, content: Page | Broadcast) -> web.StreamResponse:
    """Say nothing until the client leaves, which cancels this."""
    await asyncio.sleep(STALL_S)
    return await reset(request, content)


async def stale(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    response = await whole(request, replace(page, headers={**page.headers, **KEEP_ALIVE}))
    _close(request)
    return response


# ── streams ──────────────────────────────────────────────────────────────────────────────────


async def whole_stream(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    """Write the stream out, each piece when it is due.

    Raises:
        ConnectionError: the client is gone.
    """
    response = await _opened(request, broadcast)
    rest = await play(response.write, broadcast)
    broadcast.arrival.writes_end()
    await response.write_eof(rest)
    if broadcast.closes:
        _close(request)
    return response


async def stale_stream(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    return await whole_stream(request, replace(broadcast, closes=True))


async def no_terminator(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    return await whole_stream(request, _half(broadcast))


async def stream_error(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    half = _half(broadcast).script
    return await whole_stream(request, replace(broadcast, script=replace(half, closing=[half.error])))


async def invalid_event(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    """Write the stream out; the JSON of the event in its middle does not parse."""
    script = broadcast.script
    opening, pieces = list(script.opening), list(script.pieces)
    events = pieces or opening or [b"data: {}\n\n"]
    middle = len(events) // 2
    events[middle] = events[middle].rstrip(b"\n")[:-1] + b"\n\n"
    return await whole_stream(
        request, replace(broadcast, script=replace(script, opening=opening, pieces=pieces))
    )


async def cut_stream(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    return await _broken_off(request, _half(broadcast))


async def cut_event(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    """Write half of the stream's bytes and close the connection, most likely within an event."""
    script = broadcast.script
    everything = b"".join([*script.opening, *script.pieces, *script.closing])
    half = replace(script, opening=[everything[: len(everything) // 2]], pieces=(), closing=())
    return await _broken_off(request, replace(broadcast, script=half))


async def silent(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    """Write half of the events, then nothing until the client leaves, which cancels this."""
    return await _broken_off(request, _half(broadcast), after_s=STALL_S)


async def _broken_off(
    request: web.BaseRequest, broadcast: Broadcast, *, after_s: float = 0.0
) -> web.StreamResponse:
    """Write what there is, wait, and close the connection."""
    response = await _opened(request, broadcast)
    if rest := await play(response.write, broadcast):
        await response.write(rest)
    await asyncio.sleep(after_s)
    _close(request)
    return response


def _half(broadcast: Broadcast) -> Broadcast:
    return replace(broadcast, script=broadcast.script.first_half())


async def _opened(request: web.BaseRequest, broadcast: Broadcast) -> web.StreamResponse:
    more = KEEP_ALIVE if broadcast.closes else {}
    response = web.StreamResponse(headers={**broadcast.headers, **more})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


async def play(write: Callable[[bytes], Awaitable[None]], broadcast: Broadcast) -> bytes:
    """Write what is due when it is due, in as few writes as that takes; return what is due at the end."""
    clock = asyncio.get_running_loop().time
    ready: list[bytes] = []
    passed_s = latest_s = 0.0
    for beat_s, written in _beats(broadcast):
        due_s = broadcast.timing.comes_s(beat_s)
        if due_s > passed_s and (passed_s := clock() - broadcast.start_s) < due_s:
            if ready:
                if latest_s >= broadcast.timing.ttft_s:
                    broadcast.arrival.writes_text()
                await write(b"".join(ready))
                ready.clear()
            # From the start, not from the last piece: being late once makes nothing after it late.
            await asyncio.sleep(due_s - (clock() - broadcast.start_s))
            passed_s = due_s
        latest_s = beat_s
        ready.append(written)
    return b"".join(ready)


def _beats(broadcast: Broadcast) -> Iterator[tuple[float, bytes]]:
    """Yield the bytes to write, with the seconds after the start at which they are due."""
    script, timing = broadcast.script, broadcast.timing
    opened_s = 0.0
    if broadcast.waiting:
        opened_s = timing.ttft_s
        for line in range(WAITING_LINES):
            yield timing.ttft_s * line / WAITING_LINES, broadcast.waiting
    for event in script.opening:
        yield opened_s, event
    for index, event in enumerate(script.pieces):
        # A piece is written at the end of the tick in which it is due, counted from the first piece.
        ticks = math.ceil((timing.due_s(index, len(script.pieces)) - timing.ttft_s) / TICK_S)
        yield min(timing.latency_s, timing.ttft_s + ticks * TICK_S), event
    for event in script.closing:
        yield timing.latency_s, event


def _close(request: web.BaseRequest) -> None:
    """Close the connection; what was written before is still sent."""
    if request.transport is not None:
        request.transport.close()


PAGES: Mapping[FaultKind | None, PageDelivery] = {  # all that is not here is delivered whole
    FaultKind.CUT: cut,
    FaultKind.INVALID_JSON: invalid_json,
    FaultKind.RESET: reset,
    FaultKind.STALL: stall,
    FaultKind.STALE: stale,
}
STREAMS: Mapping[FaultKind | None, StreamDelivery] = {
    FaultKind.CUT: cut_event,
    FaultKind.CUT_STREAM: cut_stream,
    FaultKind.INVALID_JSON: invalid_event,
    FaultKind.NO_TERMINATOR: no_terminator,
    FaultKind.RESET: reset,
    FaultKind.SILENT: silent,
    FaultKind.STALE: stale_stream,
    FaultKind.STALL: stall,
    FaultKind.STREAM_ERROR: stream_error,
}
