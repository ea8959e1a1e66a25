"""Gemini through Google's own SDK, by an API key or, on Vertex, by the credentials of the machine."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import google.auth
import orjson
from google import genai
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.genai import errors, types

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.error_kinds import encoded, refusal, safe_line
from asyncbench.providers.http import Door, broken, session, tls_of, with_headers, with_query
from asyncbench.providers.sdk import NO_KEY, PAUSE_S, trusts_environment
from asyncbench.providers.streams import TooLongError, whole_body
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply, Request

# Said, or GOOGLE_GEMINI_BASE_URL would lead calls elsewhere unseen.
GEMINI_URL: Final = "https://generativelanguage.googleapis.com"
VERSION: Final = "v1beta"  # of which its pages tell; thinking and batches are there
_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_LOCATION: Final = re.compile(r"//([a-z0-9-]+)-aiplatform\.")  # of an address of Vertex
_ANY: Final = "any"  # a model, of a call whose address is not used but for its beginning
_CHUNK: Final = 2**16
_EVERYWHERE: Final = "global"
_OF_ONE_CALL: Final = ("host", "content-length", "accept-encoding")  # aiohttp tells them of each


class _BuiltError(Exception):
    """Ends a call of the SDK where it would be sent, with what would be."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        super().__init__(url)
        self.url, self.headers = url, headers


async def _meet(request: aiohttp.ClientRequest, _: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_ONE_CALL}
    raise _BuiltError(str(request.url), headers)


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a call, with its headers and whatever secret they hold."""

    url: str
    headers: Mapping[str, str]
    secret: str


class OpenAnswer:
    """A good answer to a call that is no model's, whose body is not read yet."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content
        self.status_code, self.headers = response.status, response.headers

    async def aiter_bytes(self, chunk_size: int = _CHUNK) -> AsyncGenerator[bytes]:
        """Yield the body as it comes."""
        async for chunk in self._content.iter_chunked(chunk_size):
            yield chunk


class GoogleProvider:
    """Contents through `genai.Client`: it builds a call, which is not sent; others differ by their bodies.

    They go to its address, with its headers, over connections of ours. The SDK has its own way with a
    session that it is given, so nothing private of it is touched. Its typed `generate_content` would drop
    what it does not know yet, and repeat a call that may have been billed when its connection is lost.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint, self._wire, self._tls = endpoint, wire, tls_of(endpoint)
        self._client: genai.Client | None = None
        self._rehearsal: aiohttp.ClientSession | None = None
        self._session: aiohttp.ClientSession | None = None
        self._doors: dict[tuple[str, bool], Door] = {}  # by model, and whether it streams
        self._opening = asyncio.Lock()

    async def ask(self, request: Request) -> Reply:
        model = request.trial.model
        content = encoded(self._wire.body(request))
        door = self._doors.get((model.model_id, model.stream)) if self._valid() else None
        if door is None:
            door = await self._opened(model.model_id, stream=model.stream)
        return await door.ask(content, stream=model.stream)

    async def _opened(self, model_id: str, *, stream: bool) -> Door:
        """Do so within the deadline of a call: a token may be long in coming."""
        total_s = self._endpoint.timeouts.total
        try:
            async with asyncio.timeout(total_s):
                return await self._open(model_id, stream=stream)
        except TimeoutError:
            why = f"no call could be built within timeouts.total ({total_s:g} s)"
            raise ProviderError(ErrorKind.TIMEOUT, why, may_have_been_billed=False, never_sent=True) from None

    async def _open(self, model_id: str, *, stream: bool) -> Door:
        """Return what sends a model's calls, built by the SDK."""
        async with self._opening:
            if not self._valid():
                self._doors.clear()
            if (door := self._doors.get((model_id, stream))) is not None:
                return door
            address = await self.address(model_id, stream=stream)
            door = Door(
                session=self.connections(),
                url=address.url,
                wire=self._wire,
                endpoint=replace(self._endpoint, api_key=address.secret),
                headers=address.headers,
                error_of=_error_of,
            )
            if not self._endpoint.sdk_only:
                self._doors[model_id, stream] = door
            return door

    def _valid(self) -> bool:
        """Return whether the headers that were built are good for another call."""
        return True

    def connections(self) -> aiohttp.ClientSession:
        """Return the session that all calls go through."""
        if self._session is None:
            trust_env = trusts_environment(self._endpoint)
            self._session = session(self._endpoint, tls=self._tls, trust_env=trust_env)
        return self._session

    async def address(self, model_id: str, *, stream: bool = False) -> Address:
        """Let the SDK build a call to a model; return where it would go.

        Raises:
            ProviderError: no credentials are found or renewed, or the SDK refuses the call.
        """
        try:
            if self._client is None:
                self._rehearsal = aiohttp.ClientSession(middlewares=(_meet,))
                self._client = await self._made(types.HttpOptions(aiohttp_client=self._rehearsal))
            models: Any = self._client.aio.models
            if stream:
                async for _ in await models.generate_content_stream(model=model_id, contents="?"):
                    pass
            else:
                await models.generate_content(model=model_id, contents="?")
        except _BuiltError as built:
            url, headers = with_query(built.url, self._endpoint), with_headers(built.headers, self._endpoint)
            return Address(url, headers, self._secret())
        except (GoogleAuthError, ValueError) as error:
            passing = isinstance(error, TransportError) or getattr(error, "retryable", False)
            kind = ErrorKind.UNREACHABLE if passing else ErrorKind.AUTH
            why = safe_line(str(error), key=self._endpoint.api_key)
            raise ProviderError(kind, f"no call can be built: {why}", never_sent=True) from error
        raise ConfigError(
            "the SDK sends its calls past the session that it is given. Install the versions that "
            "`pip install 'asyncbench[google]'` asks for."
        )

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        path: str,
        *,
        within_s: float,
        headers: Mapping[str, str] = MappingProxyType({}),
        **arguments: Any,  # `body` or `content`, as of `SdkProvider.exchange`
    ) -> AsyncIterator[OpenAnswer]:
        """Make any other call, once; see `SdkProvider.exchange`."""
        address = await self.address(_ANY)
        base, key = address.url.partition(f"/{VERSION}/")[0], address.secret
        url = with_query(f"{base}/{path}", self._endpoint)
        timeouts = replace(self._endpoint.timeouts, total=within_s, first_byte=None, between_chunks=PAUSE_S)
        async with Call(timeouts, key=key) as call:
            try:
                async with self.connections().request(
                    method,
                    url,
                    headers={**address.headers, **headers},
                    data=encoded(arguments["body"]) if "body" in arguments else arguments.get("content"),
                    allow_redirects=False,
                ) as response:
                    call.flows()
                    if response.status >= 300:
                        body = await whole_body(response.content.iter_any(), self._endpoint.most_bytes)
                        raise refusal(_response(response, body), key=key)
                    yield OpenAnswer(response)
            except (aiohttp.ClientError, OSError, TooLongError) as error:
                failure = broken(error, key=key, sent=call.handed_over, answered=call.answered)
                failure.never_sent = not call.sent_s
                raise failure from error

    def _secret(self) -> str:
        return self._endpoint.api_key

    async def _made(self, options: types.HttpOptions) -> genai.Client:
        options.base_url, options.api_version = self._endpoint.base_url or GEMINI_URL, VERSION
        return genai.Client(vertexai=False, api_key=self._endpoint.api_key or NO_KEY, http_options=options)

    async def aclose(self) -> None:
        for connections in (self._session, self._rehearsal):
            if connections is not None:
                await connections.close()
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()


class VertexProvider(GoogleProvider):
    """The same models on Vertex: the project and a token that lasts an hour are those of the machine."""

    credentials: Credentials | None = None  # as soon as a call was built

    def _valid(self) -> bool:
        return self.credentials is not None and not self.credentials.expired

    def _secret(self) -> str:
        token: str | None = None if self.credentials is None else self.credentials.token
        return token or ""

    async def _made(self, options: types.HttpOptions) -> genai.Client:
        self.credentials, own_project = await asyncio.to_thread(google.auth.default, scopes=_SCOPES)
        project = os.environ.get("GOOGLE_CLOUD_PROJECT") or own_project
        if not project:
            raise ValueError("no project is known. Set GOOGLE_CLOUD_PROJECT")
        url = self._endpoint.base_url
        named = _LOCATION.search(url or "")
        location = named[1] if named else os.environ.get("GOOGLE_CLOUD_LOCATION") or _EVERYWHERE
        options.base_url, options.api_version = url, f"{VERSION}1"
        return genai.Client(
            vertexai=True,
            credentials=self.credentials,
            project=project,
            location=location,
            http_options=options,
        )


def _response(response: aiohttp.ClientResponse, body: bytes) -> Response:
    return Response(status=response.status, headers=response.headers, body=body)


async def _error_of(refused: Response) -> Exception | None:
    """Return what the SDK raises for a refusal."""
    with suppress(Exception):  # whatever it makes of it: the refusal is told all the same
        return errors.APIError(refused.status, orjson.loads(refused.body))
    return None
