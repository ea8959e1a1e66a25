"""The connections to one endpoint, as every adapter uses them: kept, and replaced when they had gone.

Some servers close a connection after an answer though they announced to keep it (llama-server after each
stream, uvicorn after an unhandled error); a call that takes it up in that moment fails at once. Such a call
is made again at once, once, over a fresh connection, and counts as one. It is safe enough: no byte of an
answer came, the connection was a used one, and it was closed within milliseconds, as it is when the server
had closed it before it could read the request. Should it have read it all the same, it gave up on it sooner
than a model answers. A reset is no such sign: it comes from a server that has something it did not read, and
is an attempt of its own, as every failure is that a server may have worked for.
"""

import errno
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import aiohttp

from asyncbench.providers.calls import Call, under_way
from asyncbench.providers.endpoint import KEEPALIVE_S, Endpoint

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

STALE_WITHIN_S: Final = 0.05  # a server that has read the request does not give up on it sooner
_GONE: Final = (aiohttp.ClientOSError, aiohttp.ClientConnectionResetError, aiohttp.ServerDisconnectedError)


def session(
    endpoint: Endpoint, *, headers: Mapping[str, str] | None = None, tls: ssl.SSLContext | bool = True
) -> aiohttp.ClientSession:
    """Open the connections to an endpoint, inside the running loop, to which they belong.

    Deadlines are those of `Call`, except for a connection that is not made.
    """
    return aiohttp.ClientSession(
        connector=_Connector(endpoint, tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        middlewares=(_again_if_stale,),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect),
    )


class _Connector(aiohttp.TCPConnector):
    """Tells each call when its connection is there, and whether it is a used one."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | bool) -> None:
        super().__init__(limit=endpoint.connections, keepalive_timeout=KEEPALIVE_S, ssl=tls)
        # Its connections are closed after one call, so that each of them is fresh. No limit: a call that is
        # repeated has just lost the connection that counted.
        self._fresh = aiohttp.TCPConnector(limit=0, force_close=True, ssl=tls)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> "Connection":
        call = under_way()
        connecting = self._fresh.connect if call.repeated else super().connect
        connection = await connecting(req, traces, timeout)
        call.sent(reused=connection.protocol in self._used)
        if connection.protocol is not None:
            self._used.add(connection.protocol)
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        await self._fresh.close(abort_ssl=abort_ssl)
        await super().close(abort_ssl=abort_ssl)


async def _again_if_stale(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    call = under_way()
    try:
        response = await handler(request)
    except _GONE as error:
        if not _was_stale(call, error):
            raise
        call.repeated = True
        response = await handler(request)
    call.began(response.headers)
    return response


def _was_stale(call: Call, error: aiohttp.ClientConnectionError) -> bool:
    # A server that left in the middle of its headers is told by what it had said, instead of by words.
    silent = isinstance(getattr(error, "message", ""), str)
    # Linux calls a write to what the other side has closed a broken pipe.
    closed = getattr(error, "errno", None) != errno.ECONNRESET
    return call.reused and silent and closed and (call.age_s() or 0.0) <= STALE_WITHIN_S
