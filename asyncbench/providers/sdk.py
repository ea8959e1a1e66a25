"""Calls through an SDK. OpenAI's and Anthropic's come from one generator and sit on httpx2."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Final

import aiohttp
import httpx2
import multidict

from asyncbench.errors import ConfigError
from asyncbench.providers.calls import Call
from asyncbench.providers.credentials import PemFiles, show_certificate
from asyncbench.providers.endpoints import KEEPALIVE_S, Endpoint
from asyncbench.providers.environment import check_certificates, proxy_of
from asyncbench.providers.error_kinds import encoded, refusal
from asyncbench.providers.http import Door, broken, session
from asyncbench.providers.rate_headers import Span
from asyncbench.providers.secrets import hush
from asyncbench.providers.streams import TooLongError, is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Json, Response, Wire
from asyncbench.records import Reply, Request

_BREAKS: Final = (httpx2.HTTPError, aiohttp.ClientError, OSError, TooLongError)  # of what an SDK lets through
PAUSE_S: Final = 60.0  # at most, within the answer to a call that is no model's
_OF_ONE_CALL: Final = ("content-length", "accept-encoding")  # aiohttp tells what it can decompress
_OF_ONE_BODY: Final = ("content-length", "content-encoding", "transfer-encoding")
NO_DOOR: Final = "every call is built by the SDK: this release of it, or of httpx2, is not known"
NO_KEY: Final = "none"  # the SDKs insist on a key even where the server asks for none


class SdkProvider:
    """Any wire format through an SDK, which serves the key, headers, connections and errors.

    It builds one request, which is not sent: calls send their bodies to its address, with its headers, over
    the same connections (`Door`). Some go through its `post`, which builds each: those of a client that signs
    them, of `door: sdk`, and of a release that is not known. Its typed `create` would cost twice as much as
    that, and drop what the SDK does not know yet.
    """

    client_class: ClassVar[type[Any]]  # whose requests differ by their bodies alone; a subclass may sign each
    refusals: ClassVar[type[Any]]  # the SDK's errors with a response: their classes know the status alone
    errors: ClassVar[type[Exception]]  # all of the SDK's
    stream_class: ClassVar[type[Any]]  # never made: `cast_to` wins
    builds_all: ClassVar[bool] = False  # every call is built by the SDK, whatever it is

    def __init__(
        self,
        client: Any,  # the SDKs share no type
        endpoint: Endpoint,
        wire: Wire,
        *,
        options: Callable[[Json], Any],  # a body → what a call has beside the SDK's own: one of a few objects
    ) -> None:
        # In place of those of the environment.
        client._custom_headers, client._custom_query = dict(endpoint.headers), dict(endpoint.query)
        self._client, self._options, self._endpoint, self._wire = client, options, endpoint, wire
        # The whole address: given a part of it, an SDK would join and parse it anew for each call.
        self._url = f"{str(client.base_url).rstrip('/')}/{wire.path}"
        self._builds_all = self.builds_all or endpoint.sdk_only or type(client) is not self.client_class
        self._doors: dict[int, Door] = {}  # by the identity of options
        self._opening = asyncio.Lock()
        self._note: str | None = None  # for the first reply

    async def ask(self, request: Request) -> Reply:
        body, stream = self._wire.body(request), request.trial.model.stream
        content, options = encoded(body), self._options(body)
        door = None if self._builds_all else self._doors.get(id(options)) or await self._open(options)
        if door is not None:
            return await door.ask(content, stream=stream)
        reply = await self._post(body, content, options, stream=stream)
        note, self._note = self._note, None
        return replace(reply, note="; ".join(filter(None, (reply.note, note)))) if note else reply

    def addressed(self, body: Json, content: bytes) -> dict[str, Any]:  # noqa: ARG002  some give it instead
        """Return where a body goes and what of it is given, in the words of the SDK's `post`."""
        return {"path": self._url, "content": content}

    def told(self, refused: Response) -> Response:
        """Return a refusal in the form that most have."""
        return refused

    @staticmethod
    def unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return a streamed body as server-sent events, in pieces of any size."""
        return chunks

    async def _open(self, options: Any) -> Door | None:  # in the SDK's words
        """Let the SDK build a request, and return what sends others like it; None: only the SDK can."""
        async with self._opening:
            if self._builds_all or id(options) in self._doors:
                return self._doors.get(id(options))
            built = await self._rehearse(options, Response(status=200, headers={}, body=b""))
            connections = None if built is None else _connections(self._client, built.url)
            if built is None or connections is None:
                self._builds_all, self._note = True, NO_DOOR
                return None
            session, ways = connections
            self._doors[id(options)] = Door(
                session=session,
                url=str(built.url),
                wire=self._wire,
                endpoint=self._endpoint,
                # Such a dictionary, or the session would make one at each call.
                headers=multidict.CIMultiDict(
                    header for header in _raw_headers(built) if header[0].lower() not in _OF_ONE_CALL
                ),
                ways=ways,
                error_of=partial(self._error_of, options),
            )
            return self._doors[id(options)]

    async def _rehearse(self, options: Any, answer: Response) -> httpx2.Request | None:
        """Let the SDK build a request and read an answer to it, with nothing sent.

        Returns:
            what it built; None: it does not send through the client that it was given.

        Raises:
            what the SDK does for that answer.
        """
        if not isinstance(getattr(self._client, "_client", None), Rehearsing):
            return None  # another would send it
        rehearsal = Rehearsal(answer=answer)
        token = _REHEARSED.set(rehearsal)
        try:
            await self._client.post(self._url, content=b"{}", cast_to=httpx2.Response, options=options)
        finally:
            _REHEARSED.reset(token)
        return rehearsal.request

    async def _error_of(self, options: Any, refused: Response) -> Exception | None:
        """Return what the SDK raises for a refusal."""
        try:
            await self._rehearse(options, refused)
        except Exception as error:  # whatever it makes of it: the refusal is told all the same
            return error
        return None

    async def _post(self, body: Json, content: bytes, options: Any, *, stream: bool) -> Reply:
        key = self._endpoint.api_key
        async with Call(self._endpoint.timeouts, key=key) as call:
            try:
                response = await self._client.post(
                    **self.addressed(body, content),
                    cast_to=httpx2.Response,
                    options=options,
                    stream=True,  # the body is read by us
                    stream_cls=self.stream_class,
                )
                reply = await self._read(response, call, stream=stream)
                await call.check_answer(content)
                return reply
            except self.refusals as error:
                hush(error, key=key)
                refused = _response(error.response, error.response.content, self._endpoint.requests_per)
                raise refusal(self.told(refused), key=key) from error
            except (self.errors, *_BREAKS) as error:
                raise broken(error, key=key, sent=call.handed_over, answered=call.answered) from error

    async def _read(self, response: httpx2.Response, call: Call, *, stream: bool) -> Reply:
        """Read a good response, whole or as it comes, and close it.

        Raises:
            ProviderError: see `read_stream` and `payload`.
            httpx2.HTTPError: it breaks off.
            TooLongError: it does not end.
        """
        key, most = self._endpoint.api_key, self._endpoint.most_bytes
        head = _response(response, b"", self._endpoint.requests_per)
        try:
            # Straight from the transport where nothing is to be decompressed.
            packed = "content-encoding" in head.headers
            body_as_it_comes = response.aiter_bytes() if packed else response.stream.__aiter__()  # type: ignore[union-attr]  # of an asynchronous client
            async with aclosing(body_as_it_comes) as chunks:  # type: ignore[type-var]  # a generator, either way
                if stream and not is_json(head.headers):
                    events = self.unpacked(chunks)
                    return await read_stream(events, self._wire, head, call, key=key, most=most)
                body = await whole_body(chunks, most)
        finally:
            await response.aclose()
        return whole_reply(replace(head, body=body), self._wire, call, key=key)

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        path: str,
        *,
        within_s: float,
        headers: Json = MappingProxyType({}),
        **arguments: object,
    ) -> AsyncIterator[httpx2.Response]:
        """Make any other call, once: yield a good response, whose body is not read yet.

        Args:
            method: get, post or delete.
            path: after the base URL.
            within_s: the most seconds from the connection to the end of the block.
            headers: those of this call.
            arguments: what is sent, in the SDK's words: `body`, `content` or `files`.

        Raises:
            ProviderError: as `ask`; also for what breaks while the block reads.
        """
        key = self._endpoint.api_key
        arguments["stream" if method != "delete" else "body"] = True if method != "delete" else None
        options = self._options({})
        options = {**options, "headers": {**options["headers"], **headers}}
        # An answer may take long to begin; once it has, it does not pause.
        timeouts = replace(self._endpoint.timeouts, total=within_s, first_byte=None, between_chunks=PAUSE_S)
        async with Call(timeouts, key=key) as call:
            try:
                response = await getattr(self._client, method)(
                    f"{str(self._client.base_url).rstrip('/')}/{path}",
                    cast_to=httpx2.Response,
                    options=options,
                    **arguments,
                )
                try:
                    call.flows()
                    yield response
                finally:
                    await response.aclose()
                await call.check_answer()
            except self.refusals as error:
                hush(error, key=key)
                refused = _response(error.response, error.response.content, self._endpoint.requests_per)
                raise refusal(refused, key=key) from error
            except (self.errors, *_BREAKS) as error:
                sent = call.handed_over
                failure = broken(error, key=key, sent=sent, answered=call.answered)
                failure.never_sent = not call.sent_s
                raise failure from error

    async def aclose(self) -> None:
        await self._client.close()


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """A request that is built and not sent, and what is answered in place of a server."""

    answer: Response
    request: httpx2.Request | None = None

    def meet(self, request: httpx2.Request) -> httpx2.Response:
        """Take a request; return the answer to it, as one that is decompressed already."""
        self.request = request
        headers = {
            name: value for name, value in self.answer.headers.items() if name.lower() not in _OF_ONE_BODY
        }
        return httpx2.Response(self.answer.status, headers=headers, content=self.answer.body, request=request)


_REHEARSED: ContextVar[Rehearsal | None] = ContextVar("rehearsed", default=None)


class Rehearsing(httpx2.AsyncClient):
    """A client that an SDK sends through; what is only rehearsed gets nowhere."""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:  # as httpx2 has it
        rehearsal = _REHEARSED.get()
        return await super().send(request, **how) if rehearsal is None else rehearsal.meet(request)


def _connections(client: Any, url: httpx2.URL) -> tuple[aiohttp.ClientSession, dict[str, Any]] | None:
    """Return the session that an SDK's calls to an address go through, and the proxy, in the session's words.

    Names are looked up that httpx2 does not promise; None: one of them is gone.
    """
    transport: Any = getattr(getattr(client, "_client", None), "_transport_for_url", lambda _: None)(url)
    if callable(opens := getattr(transport, "client", None)):
        transport.client = opens()
    if not isinstance(session := getattr(transport, "client", None), aiohttp.ClientSession):
        return None
    if (proxy := transport.proxy) is None:
        return session, {}
    # aiohttp makes the header for proxies of this one.
    auth = {"Authorization": aiohttp.encode_basic_auth(*proxy.auth)} if proxy.auth else {}
    return session, {"proxy": str(proxy.url), "proxy_headers": {**proxy.headers, **auth}}


def http_client(
    make: Callable[..., httpx2.AsyncClient], endpoint: Endpoint, base_url: str
) -> httpx2.AsyncClient:
    """Make an SDK's aiohttp client, with as many connections as calls may be in flight.

    `Call` keeps all deadlines but one. A plain number would also limit the wait for a free connection, and
    start a timer at every chunk.

    Args:
        make: its class.
        endpoint: a server, and how it is asked.
        base_url: the server's, or the SDK's own.

    Raises:
        ConfigError: a certificate or a proxy cannot be used.
    """
    proxy = proxy_of(base_url)
    client = make(
        verify=_trusted(endpoint.pem, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        limits=httpx2.Limits(
            max_connections=endpoint.connections,
            max_keepalive_connections=endpoint.connections,
            keepalive_expiry=KEEPALIVE_S,
        ),
        timeout=httpx2.Timeout(None, connect=endpoint.timeouts.connect),
        trust_env=False,
        proxy=None if proxy is None else httpx2.Proxy(proxy.url, auth=proxy.login),
        follow_redirects=False,
    )
    return pooled(client, endpoint)


@cache
def _trusted(pem: PemFiles | None, *_of_environment: str | None) -> ssl.SSLContext:
    """Return what clients trust and show, read once: so many certificates take longer than all else."""
    check_certificates()
    context = httpx2.create_ssl_context()
    if pem is not None:
        show_certificate(context, pem)
    return context


def pooled(client: httpx2.AsyncClient, endpoint: Endpoint) -> httpx2.AsyncClient:
    """Let an SDK's aiohttp client, which keeps its ways with TLS and proxies, use connections of ours.

    Its transports take a session, or what opens one at the first call; their classes have no public name.

    Raises:
        ConfigError: they take none: a release that we do not know, with which no deadline would be kept.
    """
    for transport in (getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values()):
        if transport is None and hasattr(client, "_transport"):
            continue  # a mount for what goes past the proxy
        if not (hasattr(transport, "client") and hasattr(transport, "ssl_context")):
            raise ConfigError(
                f"{type(transport).__name__} of {type(transport).__module__} takes no session, which "
                "asyncbench needs. Install the versions of the SDKs and of httpx2 that asyncbench requires."
            )
        transport.client = partial(session, endpoint, tls=transport.ssl_context)
    client.event_hooks = {"response": [partial(_read_refusal, most=endpoint.most_bytes)]}
    return client


async def _read_refusal(response: httpx2.Response, *, most: int) -> None:
    """Read what an SDK would read to its end, however far that is."""
    if response.is_success:
        return
    async with aclosing(response.aiter_bytes()) as chunks:
        response._content = await whole_body(chunks, most)


def _raw_headers(message: httpx2.Request | httpx2.Response) -> list[tuple[str, str]]:
    """Return headers as they were sent: each look into those of httpx2 goes through all of them."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.raw]


def _response(response: httpx2.Response, body: bytes, requests_per: Span) -> Response:
    headers = {name.lower(): value for name, value in _raw_headers(response)}
    return Response(status=response.status_code, headers=headers, body=body, requests_per=requests_per)
