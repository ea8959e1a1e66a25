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
import orjson
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials as GivenToken

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers.calls import Call
from asyncbench.providers.clouds import CloudCredentials, Login
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.environment import proxy_arguments
from asyncbench.providers.error_kinds import encoded, refusal, safe_line
from asyncbench.providers.google.chain import GoogleChain
from asyncbench.providers.http import Door, add_query, broken, merge_headers, session, tls_of
from asyncbench.providers.sdk import NO_KEY, PAUSE_S
from asyncbench.providers.streams import TooLongError, whole_body
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply, Request

# Said, or GOOGLE_GEMINI_BASE_URL would lead calls elsewhere unseen.
GEMINI_URL: Final = "https://generativelanguage.googleapis.com"
VERSION: Final = "v1beta"  # of which its pages tell; thinking and batches are there
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
        door = self._doors.get((model.model_id, model.stream))
        if door is None:
            door = await self._open(model.model_id, stream=model.stream)
        return await door.ask(content, stream=model.stream)

    async def _open(self, model_id: str, *, stream: bool) -> Door:
        """Return the sender of a model's calls, built by the SDK."""
        async with self._opening:
            if (door := self._doors.get((model_id, stream))) is not None:
                return door
            address = await self.address(model_id, stream=stream)
            door = Door(
                session=self.connections(),
                url=address.url,
                wire=self._wire,
                endpoint=replace(self._endpoint, api_key=address.secret),
                headers=address.headers,
                proxy=proxy_arguments(address.url),
                error_of=_error_of,
            )
            if not self._endpoint.sdk_only:
                self._doors[model_id, stream] = door
            return door

    def connections(self) -> aiohttp.ClientSession:
        """Return the session that all calls go through."""
        if self._session is None:
            self._session = session(self._endpoint, tls=self._tls)
        return self._session

    async def address(self, model_id: str, *, stream: bool = False) -> Address:
        """Let the SDK build a call to a model; return where it would go.

        Raises:
            ProviderError: the SDK refuses the call, or no credentials are found for it.
        """
        try:
            if self._client is None:
                self._rehearsal = aiohttp.ClientSession(middlewares=(_meet,))
                self._client = self._made(types.HttpOptions(aiohttp_client=self._rehearsal))
            models: Any = self._client.aio.models
            if stream:
                async for _ in await models.generate_content_stream(model=model_id, contents="?"):
                    pass
            else:
                await models.generate_content(model=model_id, contents="?")
        except _BuiltError as built:
            url, headers = add_query(built.url, self._endpoint), merge_headers(built.headers, self._endpoint)
            return Address(url, headers, self._secret())
        except ValueError as error:
            why = safe_line(str(error), key=self._endpoint.api_key)
            raise ProviderError(ErrorKind.AUTH, f"no call can be built: {why}", never_sent=True) from error
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
        url = add_query(f"{base}/{path}", self._endpoint)
        timeouts = replace(self._endpoint.timeouts, total=within_s, first_byte=None, between_chunks=PAUSE_S)
        async with Call(timeouts, key=key) as call:
            try:
                async with self.connections().request(
                    method,
                    url,
                    headers={**address.headers, **headers},
                    data=encoded(arguments["body"]) if "body" in arguments else arguments.get("content"),
                    allow_redirects=False,
                    **proxy_arguments(url),
                ) as response:
                    call.flows()
                    if response.status >= 300:
                        body = await whole_body(response.content.iter_any(), self._endpoint.most_bytes)
                        refused = Response(status=response.status, headers=response.headers, body=body)
                        raise refusal(refused, key=key)
                    yield OpenAnswer(response)
                await call.check_answer()
            except (aiohttp.ClientError, OSError, TooLongError) as error:
                failure = broken(error, key=key, sent=call.handed_over, answered=call.answered)
                failure.never_sent = not call.sent_s
                raise failure from error

    def _secret(self) -> str:
        return self._endpoint.api_key

    def _made(self, options: types.HttpOptions) -> genai.Client:
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

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        super().__init__(endpoint, wire)
        chain = GoogleChain("GOOGLE_CLOUD_PROJECT")
        self._cloud = CloudCredentials(chain, self._bring, wait_s=endpoint.timeouts.total)
        self._project, self._token = "", GivenToken(None)  # type: ignore[no-untyped-call]  # its signature has none

    def _bring(self, login: Login) -> None:
        self._project, renewed = login.credentials
        self._token.token = renewed.token  # the client holds `_token`, and reads it for each call it builds
        self._doors.clear()  # built with what was found before

    async def ask(self, request: Request) -> Reply:
        ask = super().ask
        return await self._cloud.ask(lambda: ask(request))

    async def address(self, model_id: str, *, stream: bool = False) -> Address:
        await self._cloud.current()
        return await super().address(model_id, stream=stream)

    def _secret(self) -> str:
        return str(self._token.token)

    def _made(self, options: types.HttpOptions) -> genai.Client:
        url = self._endpoint.base_url
        named = _LOCATION.search(url or "")
        location = named[1] if named else os.environ.get("GOOGLE_CLOUD_LOCATION") or _EVERYWHERE
        options.base_url, options.api_version = url, f"{VERSION}1"
        return genai.Client(
            vertexai=True,
            credentials=self._token,
            project=self._project,
            location=location,
            http_options=options,
        )


async def _error_of(refused: Response) -> Exception | None:
    """Return the exception that the SDK raises for a refusal."""
    with suppress(Exception):  # whatever it makes of it: the refusal is told all the same
        return errors.APIError(refused.status, orjson.loads(refused.body))
    return None
