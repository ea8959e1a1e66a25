"""How a page reaches the client: whole, or spoiled on the way in one of the ways that connections fail."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from asyncbench.simulator.faults import FaultKind

STALL_S = 300.0  # a client that waits longer than this has no deadline of its own
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, zero seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A status, headers and a JSON body, ready to be written."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Delivery = Callable[[web.BaseRequest, Page], Awaitable[web.StreamResponse]]


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
    """Announce the whole body, write half of it and close the connection."""
    length = len(page.body)
    response = web.StreamResponse(status=page.status, headers={**page.headers, "content-length": str(length)})
    await response.prepare(request)
    await response.write(page.body[: length // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def invalid_json(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    """Write a complete response whose body is no JSON."""
    return await whole(request, Page(status=page.status, headers=page.headers, body=page.body[:-1]))


async def reset(request: web.BaseRequest, _page: Page) -> web.StreamResponse:
    """Reset the connection before a status line; the response returned is never written."""
    if (transport := request.transport) is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    return web.Response()


async def stall(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    """Say nothing until the client leaves, which cancels this."""
    await asyncio.sleep(STALL_S)
    return await reset(request, page)


DELIVERIES: Mapping[FaultKind | None, Delivery] = {  # all that is not here is delivered whole
    FaultKind.CUT: cut,
    FaultKind.INVALID_JSON: invalid_json,
    FaultKind.RESET: reset,
    FaultKind.STALL: stall,
}
