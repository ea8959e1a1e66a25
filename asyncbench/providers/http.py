"""Calls over aiohttp, for every adapter: connections are kept, and replaced after they were closed.

Servers close idle connections, some right after an answer though they announced to keep them. Of a call that
takes up such a connection it must be certain that nobody read it before it is made again. There are three
proofs: the connection was found closed before the first byte was written, the kernel never took the whole
request, or the server ended the connection while its kernel had acknowledged no byte of the request. Such a
call is made again at once, once, over a fresh connection, and counts as one. A connection that breaks later
ends the attempt, however soon: the server may have worked for it. A reset alone proves nothing.

A connection on which anything arrives after its response has ended is given up, and whatever arrived is no
answer: HTTP/1.1 does not say which request a response belongs to. The event loop sees what comes while a
connection is idle (`_Protocol`), the kernel what came since (`_news_of`). A response that comes again while
the next request is on its way is known by its id alone (see `_doubt`). So a server that was caught with such
bytes gets no used connection any more (see `unasked`).

What is left are calls that a server's close crosses on the way. Idle connections are therefore closed sooner
than the server does: a second before the time that it tells (`Keep-Alive: timeout=5`), else after
`KEEPALIVE_S`. `max=100` is not counted: the last answer says `Connection: close`. Where more than `MANY_GONE`
of the used connections turn out to be closed, the server closes even sooner: then connections serve one call
each for `WARY_S`. A few closed ones are no such sign; fresh connections for all would cost more than they.
"""

import asyncio
import re
import select
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode

import aiohttp
import multidict
from aiohttp.client_proto import ResponseHandler

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers import unasked
from asyncbench.providers.calls import Call, News, current_call
from asyncbench.providers.credentials import show_certificate
from asyncbench.providers.endpoints import KEEPALIVE_S, LONGEST_KEEPALIVE_S, Endpoint
from asyncbench.providers.environment import check_certificates, proxy_arguments
from asyncbench.providers.error_kinds import encoded, refusal, safe_line
from asyncbench.providers.secrets import hush
from asyncbench.providers.streams import TooLongError, is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply, Request

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader
    from aiohttp.tracing import Trace

WARY_S: Final = 300.0
MANY_GONE: Final = 0.03  # of the used connections lately: two within some thirty calls
_LATELY: Final = 0.02  # the weight of the latest call
_TCP_INFO: Final = struct.Struct("120xQ")  # of Linux, to the bytes that the other side has acknowledged
_TIMEOUT: Final = re.compile(r"\btimeout *= *\"?(\d{1,9})", re.IGNORECASE)


def session(
    endpoint: Endpoint,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | bool = True,
) -> aiohttp.ClientSession:
    """Open the connections to an endpoint, inside the running loop, to which they belong.

    Deadlines are those of `Call`, except for a connection that is not made. Nothing is read from the
    environment, where aiohttp finds ~/.netrc, too: a proxy is said with each request (`proxy_arguments`).
    """
    connector = _Connector(endpoint, tls)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        middlewares=(connector.again_if_unread,),
        request_class=_Request,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect),
    )


def tls_of(endpoint: Endpoint) -> ssl.SSLContext | bool:
    """Return the certificates for connections; raises ConfigError for one that cannot be used."""
    check_certificates()
    if endpoint.pem is None:
        return True
    context = ssl.create_default_context()
    show_certificate(context, endpoint.pem)
    return context


def add_query(url: str, endpoint: Endpoint) -> str:
    """Return an address with what a gateway asks for in its query."""
    mark = "&" if "?" in url else "?"
    return f"{url}{mark}{urlencode(endpoint.query)}" if endpoint.query else url


def merge_headers(headers: Mapping[str, str], endpoint: Endpoint) -> Mapping[str, str]:
    """Return headers with those that a gateway asks for, in place of ours, however they are spelt."""
    both = multidict.CIMultiDict(headers)
    both.update(endpoint.headers)
    return both


class _Protocol(ResponseHandler):
    """A connection that is lost as soon as something arrives on it while no response is due."""

    due = True  # but while the connection is back in the pool; a proxy, too, answers (CONNECT)
    answered = False  # the response that is due has begun
    server: unasked.ServerRecord | None = None  # once the connection is made
    latest: tuple[int, str | None] | None = None  # the hash of the request answered last, the answer's id
    acknowledged: int | None = None  # bytes, before the request was written
    unread = False  # the server had ended the connection before the first byte of the request came
    news: News | None = None  # asks the kernel, once the connection is made: from then on it is a used one

    def eof_received(self) -> None:
        self.unread = self.acknowledged is not None and self.acknowledged == _acknowledged(self.transport)
        super().eof_received()

    async def read(self) -> "tuple[RawResponseMessage, StreamReader]":
        begun = await super().read()
        self.answered = True
        return begun

    def data_received(self, data: bytes) -> None:
        # aiohttp calls with nothing to go on reading what it had put off; its parser comes with the request.
        if not data or (self.due and self._parser is not None):
            super().data_received(data)
        elif not unasked.is_blank(data):
            if self.server is not None and unasked.is_answer(data):
                self.server.catch()
            if self.transport is not None:
                self.transport.abort()

    def has_surplus(self) -> bool:
        """Return whether more came than the whole response that was due, and tell the server's record.

        It may be another response, the beginning of one, or no response. To be called while none is due, and
        not as the response ends: then its parser has not ended yet.
        """
        if not self.answered or self._parser is None or self._exception is not None:
            return False  # the call was given up, or the answer is broken: what is left is part of it
        if not self._buffer and self._payload is not None and not self._payload.is_eof():
            return False
        try:
            message = self._buffer[0][0][0] if self._buffer else self._parser.feed_eof()
            code = getattr(message, "code", None)
        except Exception:  # what began is no response
            code = 200
        if self.server is not None and code is not None and 200 <= code < 300:
            self.server.catch()
        return code is not None

    async def hear(self) -> None:
        """Let the event loop read what the kernel has, while no response is due."""
        if self.news is not None and self.news(0):
            for _ in range(2):  # the loop polls the kernel after one turn, and reads in the next
                await asyncio.sleep(0)

    def stop_listening(self) -> None:
        """Close the connection, if it waits for a call that its server is not trusted with."""
        if not self.due and (self.server is None or not self.server.keeps(self._loop.time())):
            self.close()


class _Connector(aiohttp.TCPConnector):
    """Tells each call when its connection is there, and whether it is a used one."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | bool) -> None:
        super().__init__(limit=endpoint.connections, keepalive_timeout=KEEPALIVE_S, ssl=tls)
        self._factory = cast("partial[ResponseHandler]", partial(_Protocol, loop=self._loop))
        # Its connections are closed after one call, so that each of them is fresh. No limit: a call that is
        # repeated has just lost the connection that counted.
        self._fresh = aiohttp.TCPConnector(limit=0, force_close=True, ssl=tls)
        self._fresh._factory = self._factory
        self._kept_s = KEEPALIVE_S
        self._gone_share = 0.0  # of used connections, the latest counting most
        self._wary_until_s = 0.0
        self._run_servers = unasked.servers()
        self._servers: dict[ConnectionKey, unasked.ServerRecord] = {}

    async def connect(
        self, req: aiohttp.ClientRequest, traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> "Connection":
        call = current_call()
        self._keepalive_timeout = self._kept_s if self._loop.time() >= self._wary_until_s else 0.0
        connecting = self._fresh.connect if call.repeated else super().connect
        asked_s = self._loop.time()
        connection = await connecting(req, traces, timeout)
        while (protocol := cast("_Protocol", connection.protocol)).has_surplus():
            connection.close()
            connection = await connecting(req, traces, timeout)
        protocol.due, protocol.answered = True, False
        protocol.server = self._server_of(req.connection_key)
        if protocol.server.caught:
            req.headers["Connection"] = "close"
        call.connection, call.doubt, call.news = protocol, self._doubt, protocol.news
        call.sent(reused=protocol.news is not None)
        if not call.reused and (transport := connection.transport) is not None:
            call.connect_s = call.sent_s - asked_s
            protocol.news = _news_of(transport)
            transport.set_write_buffer_limits(high=1, low=0)  # see `_Request`
        return connection

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        """Return a used connection, or None if a new one is needed."""
        keeps = key in self._conns and self._server_of(key).keeps(self._loop.time())
        return await super()._get(key, traces) if keeps else None

    def _release(
        self, key: "ConnectionKey", protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        used, server = cast("_Protocol", protocol), self._server_of(key)
        used.due = False
        should_close = should_close or server.caught
        if used.answered and not should_close and not server.keeps(at_s := self._loop.time()):
            if server.listens(at_s):
                self._loop.call_later(unasked.LISTENS_S, used.stop_listening)
            else:
                should_close = True
        super()._release(key, protocol, should_close=should_close)

    def _server_of(self, key: "ConnectionKey") -> unasked.ServerRecord:
        """Return the server of a connection: a proxy, where that passes on requests of many."""
        if (server := self._servers.get(key)) is None:
            if key.proxy is not None and not key.is_ssl:
                name = str(key.proxy.origin())
            else:
                name = f"{'https' if key.is_ssl else 'http'}://{key.host}:{key.port}"
            server = self._servers[key] = self._run_servers.named(name)
        return server

    async def close(self, *, abort_ssl: bool = False) -> None:
        await self._fresh.close(abort_ssl=abort_ssl)
        await super().close(abort_ssl=abort_ssl)

    async def again_if_unread(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Make a call; again where nobody can have read it, because its used connection had gone."""
        call = current_call()
        try:
            response = await handler(request)
        except aiohttp.ClientConnectionError:
            self._note(call, gone=True)
            if not call.reused or (call.handed_over and not getattr(call.connection, "unread", False)):
                raise
            call.repeated = True
            response = await handler(request)
        else:
            self._note(call, gone=False)
        call.began(response.headers)
        if match := _TIMEOUT.search(response.headers.get("Keep-Alive", "")):
            kept_s = int(match[1])
            self._kept_s = min(max(kept_s - 1, kept_s / 2), LONGEST_KEEPALIVE_S)
        return response

    async def _doubt(self, call: Call, request: bytes) -> str | None:
        """Return why an answer may belong to an earlier request, or None without a sign of it.

        A cache may answer equal requests equally, and ids prove nothing where the server gives one twice.
        """
        protocol, answer_id = call.connection, call.body_id
        if not isinstance(protocol, _Protocol) or protocol.server is None:
            return None
        if not protocol.due and protocol.has_surplus() and protocol.transport is not None:
            protocol.transport.abort()
        server, previous = protocol.server, protocol.latest
        protocol.latest = (hash(request), answer_id)
        has_id = server.ids.unique and answer_id is not None
        if previous is not None and has_id and answer_id == previous[1]:
            if previous == protocol.latest:
                server.ids.note(answer_id)
                return None
            server.catch()
            if protocol.transport is not None:
                protocol.transport.abort()
            return "the server sent the answer to an earlier request again, so this one is not answered"
        server.ids.note(answer_id)
        if not call.reused or has_id:
            return None
        if not protocol.due:
            await protocol.hear()  # where the answer was an earlier one, that to this request may be there
        if server.caught:
            return "the server answers twice, so this may be the answer to an earlier request"
        return None

    def _note(self, call: Call, *, gone: bool) -> None:
        if not call.reused:
            return
        self._gone_share += _LATELY * (gone - self._gone_share)
        if self._gone_share > MANY_GONE:
            self._gone_share, self._wary_until_s = 0.0, self._loop.time() + WARY_S


class _Request(aiohttp.ClientRequest):
    """Looks at a used connection before it writes, and tells the call when the kernel has every byte."""

    async def write_bytes(
        self, writer: "AbstractStreamWriter", conn: "Connection", content_length: int | None = None
    ) -> None:
        call, transport, protocol = current_call(), conn.transport, cast("_Protocol", conn.protocol)
        if call.news is not None:
            protocol.due = False
            await protocol.hear()
            protocol.due = True
        if transport is None or (call.news is not None and (transport.is_closing() or call.news(0))):
            if transport is not None:
                transport.abort()  # the call ends, nothing written
            return
        protocol.acknowledged = _acknowledged(transport)
        await super().write_bytes(writer, conn, content_length)
        with suppress(OSError):
            await writer.drain()  # until nothing waits in front of the kernel: so low are the limits set
            call.handed_over = not transport.is_closing()


def _news_of(transport: asyncio.Transport) -> News:
    """Return a check for an idle connection that the other side closed, before the event loop sees it.

    The kernel is asked. Nothing is due on an idle connection, so that anything to be read is an end, a reset
    or a farewell: of TLS, or an answer to a request that nobody made (408).
    """
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), select.POLLIN)
    return poll.poll


def _acknowledged(transport: asyncio.BaseTransport | None) -> int | None:
    """Return how many bytes the other side's kernel has acknowledged, or None if the system cannot tell."""
    link = None if transport is None else transport.get_extra_info("socket")
    if link is None or not hasattr(socket, "TCP_INFO"):
        return None
    with suppress(OSError, struct.error):
        return int(_TCP_INFO.unpack(link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))[0])
    return None


# ── Errors of connections

_BROKE_OFF: Final = "the reply broke off or was not HTTP"
_ASKS_WHO: Final = (401, 403, 407)  # of a proxy
_SSL: Final = re.compile(r" ssl:.*? \[")  # aiohttp names its setting, of addresses without TLS, too
# First match wins: children before parents.
KINDS: Final[tuple[tuple[type[BaseException], ErrorKind, str], ...]] = (
    (aiohttp.ConnectionTimeoutError, ErrorKind.UNREACHABLE, "no connection within timeouts.connect"),
    (aiohttp.ServerTimeoutError, ErrorKind.TIMEOUT, "no answer within timeouts.total"),
    (aiohttp.ClientConnectorError, ErrorKind.UNREACHABLE, "no connection"),
    (aiohttp.ClientConnectionError, ErrorKind.UNREACHABLE, "the connection was lost before an answer"),
    (aiohttp.ClientError, ErrorKind.BAD_REPLY, _BROKE_OFF),
    (TimeoutError, ErrorKind.TIMEOUT, "no complete reply within timeouts.total"),  # our own deadline
    (OSError, ErrorKind.UNREACHABLE, "no connection"),
)


def broken(error: BaseException, *, key: str, sent: bool = False, answered: bool = False) -> ProviderError:
    """Return the error for a call without a whole response.

    Args:
        error: of a library; its causes are looked at.
        key: the API key, which the message must not repeat.
        sent: the whole request was handed over: it may be worked for, and billed.
        answered: the answer had begun, and may be billed: then nothing is called unreachable.

    The names that SDKs give are not believed: openai 3.52 calls refused, unknown and reset connections
    timeouts. Without an error of aiohttp among the causes the connection held, and what came over it
    could not be read (a false Content-Encoding, say).
    """
    hush(error, key=key)
    for cause in _causes(error):
        if isinstance(cause, aiohttp.ClientHttpProxyError):
            # A proxy opened no way to the server, which has seen nothing. Of the error only these two are
            # told: the rest is an address, and headers with a password.
            message = f"the proxy opens no way to the server: HTTP {cause.status} {cause.message}"
            kind = ErrorKind.UNREACHABLE
            if cause.status in _ASKS_WHO:
                message += (
                    ". Set HTTPS_PROXY to http://USER:PASSWORD@HOST:PORT, or name the server in NO_PROXY"
                )
                kind = ErrorKind.AUTH
            line = safe_line(message, key="")
            return ProviderError(kind, line, may_have_been_billed=False, never_sent=True)
        for family, kind, meaning in KINDS:
            if isinstance(cause, family):
                if answered and kind is ErrorKind.UNREACHABLE:
                    kind, meaning = ErrorKind.BAD_REPLY, _BROKE_OFF
                return ProviderError(
                    kind,
                    safe_line(f"{meaning}: {_SSL.sub(' [', str(cause))}".removesuffix(": "), key=key),
                    may_have_been_billed=True if sent else None,
                )
    *_, last = _causes(error)
    return ProviderError(ErrorKind.BAD_REPLY, safe_line(f"the reply cannot be read: {last}", key=key))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


# ── Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Makes calls of one wire format to one address, with nothing between them and the connections."""

    session: aiohttp.ClientSession
    url: str
    wire: Wire
    endpoint: Endpoint
    headers: Mapping[str, str] | None = None  # None: those of the session
    proxy: Mapping[str, Any] = field(default_factory=dict)  # in the words of `session.post`; empty: none
    # What an SDK raises for a refusal; None: there is no SDK.
    error_of: Callable[[Response], Awaitable[Exception | None]] | None = None

    async def ask(self, content: bytes, *, stream: bool) -> Reply:
        """Send a body, once; raises ProviderError."""
        key = self.endpoint.api_key
        async with Call(self.endpoint.timeouts, key=key) as call:
            try:
                # Not `async with`, which costs a twentieth more; and no bytes, whose kind it would look up.
                body = aiohttp.BytesPayload(content)
                response = await self.session.post(
                    self.url, data=body, headers=self.headers, allow_redirects=False, **self.proxy
                )
                try:
                    reply = await self._read(response, call, stream=stream)
                finally:
                    response.release()  # to be used again where the body was read to its end
                await call.check_answer(content)
                return reply
            except (aiohttp.ClientError, OSError, TooLongError) as error:
                raise broken(error, key=key, sent=call.handed_over, answered=call.answered) from error

    async def _read(self, response: aiohttp.ClientResponse, call: Call, *, stream: bool) -> Reply:
        endpoint = self.endpoint
        max_bytes, key = endpoint.most_bytes, endpoint.api_key
        streamed = stream and response.status < 300 and not is_json(response.headers)
        body = b""
        if not streamed:  # nearly always it comes at once
            body = await response.content.readany()
            if len(body) > max_bytes or not response.content.at_eof():
                body = await whole_body(response.content.iter_any(), max_bytes, begun=body)
        answer = Response(
            status=response.status, headers=response.headers, body=body, requests_per=endpoint.requests_per
        )
        if streamed:
            chunks = response.content.iter_any()
            return await read_stream(chunks, self.wire, answer, call, key=key, max_bytes=max_bytes)
        if answer.status >= 300:
            error = None if self.error_of is None else await self.error_of(answer)
            hush(error, key=key)
            raise refusal(answer, key=key) from error
        return whole_reply(answer, self.wire, call, key=key)


class HttpProvider:
    """Any wire format without an SDK, for self-hosted servers and for speed.

    Raises:
        ConfigError: no base URL: there is no server to assume; or a proxy or certificate that cannot be used.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        if endpoint.base_url is None:
            raise ConfigError(
                "provider http: no base_url. Set one for the model, such as http://localhost:8000/v1"
            )
        self._wire, self._endpoint = wire, endpoint
        self._url = add_query(f"{endpoint.base_url.rstrip('/')}/{wire.path}", endpoint)
        self._tls, self._proxy = tls_of(endpoint), proxy_arguments(self._url)
        self._door: Door | None = None

    async def ask(self, request: Request) -> Reply:
        content = encoded(self._wire.body(request))
        if self._door is None:
            key = self._endpoint.api_key
            auth = {"Authorization": f"Bearer {key}"} if key else {}
            headers = merge_headers({"Content-Type": "application/json", **auth}, self._endpoint)
            connections = session(self._endpoint, headers=headers, tls=self._tls)
            self._door = Door(
                session=connections,
                url=self._url,
                wire=self._wire,
                endpoint=self._endpoint,
                proxy=self._proxy,
            )
        return await self._door.ask(content, stream=request.trial.model.stream)

    async def aclose(self) -> None:
        if self._door is not None:
            await self._door.session.close()
