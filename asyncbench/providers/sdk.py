"""Calls through an SDK. OpenAI's and Anthropic's come from one generator and sit on httpx2.

One call takes this way. `SdkProvider.ask` writes the body. At the first call the SDK builds a request, which
is only rehearsed: `Transport` answers it, and nothing is sent. What the SDK built, its address and headers,
makes a `Door`, and this call and all others like it go through that: a body over our own connections. Where a
release of an SDK does not send through the transport that it is given, and where a client signs each request,
every call goes through the `post` of the SDK instead (`_post`). Such a release sends the rehearsal, too: the
server is asked once with the body `{}`.

Of the SDKs and of httpx2 only public names are used here; the two exceptions stand in `private`.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Final

import aiohttp
import httpx2
import multidict

from asyncbench.providers.calls import Call
from asyncbench.providers.credentials import PemFiles, show_certificate
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.environment import check_certificates, proxy_arguments
from asyncbench.providers.error_kinds import encoded, refusal
from asyncbench.providers.http import Door, broken, session
from asyncbench.providers.private import set_defaults
from asyncbench.providers.rate_headers import Span
from asyncbench.providers.secrets import hush
from asyncbench.providers.streams import TooLongError, is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Json, Response, Wire
from asyncbench.records import Reply, Request

_BREAKS: Final = (httpx2.HTTPError, aiohttp.ClientError, OSError, TooLongError)  # of what an SDK lets through
PAUSE_S: Final = 60.0  # at most, within the answer to a call that is no model's
_OF_ONE_CALL: Final = ("content-length", "accept-encoding")  # aiohttp tells what it can decompress
_OF_ONE_BODY: Final = ("content-length", "content-encoding", "transfer-encoding")
REHEARSES_S: Final = 10.0  # where the server is asked for it, which may be slow to answer
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
        transport: "Transport",  # of the client
        endpoint: Endpoint,
        wire: Wire,
        *,
        options: Callable[[Json], Any],  # a body → what a call has beside the SDK's own: one of a few objects
    ) -> None:
        set_defaults(client, headers=endpoint.headers, query=endpoint.query)
        self._client, self._transport, self._options = client, transport, options
        self._endpoint, self._wire = endpoint, wire
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

    def post_arguments(self, body: Json, content: bytes) -> dict[str, Any]:  # noqa: ARG002  some give it instead
        """Return where a body goes and what of it is given, in the words of the SDK's `post`."""
        return {"path": self._url, "content": content}

    def common_form(self, refused: Response) -> Response:
        """Return a refusal in the form that most have."""
        return refused

    @staticmethod
    def event_stream(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return a streamed body as server-sent events, in pieces of any size."""
        return chunks

    async def _open(self, options: Any) -> Door | None:  # in the SDK's words
        """Let the SDK build a request, and return a sender of such requests, or None if only it can send."""
        async with self._opening:
            if self._builds_all or id(options) in self._doors:
                return self._doors.get(id(options))
            built = await self._rehearse(options, Response(status=200, headers={}, body=b""))
            if built is None:
                self._builds_all, self._note = True, NO_DOOR
                return None
            headers = [header for header in _raw_headers(built) if header[0].lower() not in _OF_ONE_CALL]
            self._doors[id(options)] = Door(
                session=self._transport.session(),
                url=str(built.url),
                wire=self._wire,
                endpoint=self._endpoint,
                headers=multidict.CIMultiDict(headers),  # else the session would make one at each call
                proxy=self._transport.proxy,
                error_of=partial(self._error_of, options),
            )
            return self._doors[id(options)]

    async def _rehearse(self, options: Any, answer: Response) -> httpx2.Request | None:
        """Let the SDK build a request and read an answer to it.

        Nothing is sent, unless a release of the SDK passes over the transport that it was given.

        Returns:
            what it built; None: it does not send through the transport that it was given.

        Raises:
            what the SDK does for that answer.
        """
        rehearsal = Rehearsal(answer=answer)
        token = _REHEARSED.set(rehearsal)
        try:
            async with asyncio.timeout(REHEARSES_S):
                await self._client.post(self._url, content=b"{}", cast_to=httpx2.Response, options=options)
        except Exception:
            if rehearsal.request is not None:
                raise
        finally:
            _REHEARSED.reset(token)
        return rehearsal.request

    async def _error_of(self, options: Any, refused: Response) -> Exception | None:
        """Return the exception that the SDK raises for a refusal."""
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
                    **self.post_arguments(body, content),
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
                raise refusal(self.common_form(refused), key=key) from error
            except (self.errors, *_BREAKS) as error:
                raise broken(error, key=key, sent=call.handed_over, answered=call.answered) from error

    async def _read(self, response: httpx2.Response, call: Call, *, stream: bool) -> Reply:
        """Read a good response, whole or as it comes, and close it.

        Raises:
            ProviderError: see `read_stream` and `payload`.
            httpx2.HTTPError: it breaks off.
            TooLongError: it does not end.
        """
        key, max_bytes = self._endpoint.api_key, self._endpoint.most_bytes
        head = _response(response, b"", self._endpoint.requests_per)
        try:
            # Straight from the transport where nothing is to be decompressed.
            packed = "content-encoding" in head.headers
            body_as_it_comes = response.aiter_bytes() if packed else response.stream.__aiter__()  # type: ignore[union-attr]  # of an asynchronous client
            async with aclosing(body_as_it_comes) as chunks:  # type: ignore[type-var]  # a generator, either way
                if stream and not is_json(head.headers):
                    events = self.event_stream(chunks)
                    return await read_stream(events, self._wire, head, call, key=key, max_bytes=max_bytes)
                body = await whole_body(chunks, max_bytes)
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
        return _decompressed(self.answer.status, self.answer.headers, self.answer.body, request)


_REHEARSED: ContextVar[Rehearsal | None] = ContextVar("rehearsed", default=None)


class Transport(httpx2.AsyncBaseTransport):
    """Sends what an SDK builds over connections of ours; what is only rehearsed gets nowhere.

    `Call` keeps all deadlines but that of connecting, which those connections keep.

    Args:
        endpoint: a server, and how it is asked.
        base_url: the server's, or the SDK's own.

    Raises:
        ConfigError: a certificate or a proxy cannot be used.
    """

    def __init__(self, endpoint: Endpoint, base_url: str) -> None:
        self._endpoint = endpoint
        self.tls = _trusted(endpoint.pem, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        self.proxy = proxy_arguments(base_url)
        self._session: aiohttp.ClientSession | None = None

    def client(self) -> httpx2.AsyncClient:
        """Return the `http_client` of an SDK."""
        timeout = httpx2.Timeout(None, connect=self._endpoint.timeouts.connect)
        return httpx2.AsyncClient(transport=self, timeout=timeout, trust_env=False, follow_redirects=False)

    def session(self) -> aiohttp.ClientSession:
        """Return the connections; the first call, inside the running loop, opens them."""
        if self._session is None:
            self._session = session(self._endpoint, tls=self.tls)
        return self._session

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return the answer, of which only the body of a refusal is read."""
        if (rehearsal := _REHEARSED.get()) is not None:
            return rehearsal.meet(request)
        body: Any
        try:
            body = request.content or None
        except httpx2.RequestNotRead:  # a file on its way
            body = request.stream
            request.headers.pop("transfer-encoding", None)  # aiohttp writes it
        answer = await self.session().request(
            request.method,
            str(request.url),
            headers=request.headers,
            data=body,
            allow_redirects=False,
            auto_decompress=False,  # httpx2 does it
            **self.proxy,
        )
        response = httpx2.Response(
            answer.status, headers=answer.raw_headers, stream=AnswerBody(answer), request=request
        )
        if response.is_success:
            return response
        # An SDK would read it to its end, however far that is.
        try:
            async with aclosing(response.aiter_bytes()) as chunks:
                refusal_body = await whole_body(chunks, self._endpoint.most_bytes)
        finally:
            await response.aclose()
        return _decompressed(response.status_code, response.headers, refusal_body, request)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


class AnswerBody(httpx2.AsyncByteStream):
    """The body of an answer, as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.content.iter_any():
            yield chunk

    async def aclose(self) -> None:
        self._answer.release()  # the connection is used again where the body was read to its end


@cache
def _trusted(pem: PemFiles | None, *_of_environment: str | None) -> ssl.SSLContext:
    """Return the certificates of clients, read once: so many take longer than all else."""
    check_certificates()
    context = httpx2.create_ssl_context()
    if pem is not None:
        show_certificate(context, pem)
    return context


def _decompressed(
    status: int, headers: Mapping[str, str], body: bytes, request: httpx2.Request
) -> httpx2.Response:
    """Return an answer whose body is whole and not compressed, whatever its headers say."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_BODY}
    return httpx2.Response(status, headers=kept, content=body, request=request)


def _raw_headers(message: httpx2.Request | httpx2.Response) -> list[tuple[str, str]]:
    """Return headers as they were sent: each look into those of httpx2 goes through all of them."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.raw]


def _response(response: httpx2.Response, body: bytes, requests_per: Span) -> Response:
    headers = {name.lower(): value for name, value in _raw_headers(response)}
    return Response(status=response.status_code, headers=headers, body=body, requests_per=requests_per)
