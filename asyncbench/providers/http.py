"""OpenAI's wire formats over aiohttp and orjson, without an SDK: for self-hosted servers, and for speed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from asyncbench.errors import ConfigError
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.error_kinds import encoded, refusal
from asyncbench.providers.pool import broken, session
from asyncbench.providers.secrets import hush
from asyncbench.providers.streams import TooLongError, is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Makes calls of one wire format to one address, with nothing between them and the connections."""

    session: aiohttp.ClientSession
    url: str
    wire: Wire
    endpoint: Endpoint
    headers: Mapping[str, str] | None = None  # None: those of the session
    ways: Mapping[str, Any] = field(default_factory=dict)  # such as a proxy, in the words of `session.post`
    # What an SDK raises for a refusal; None: there is no SDK.
    error_of: Callable[[Response], Awaitable[Exception | None]] | None = None

    async def ask(self, content: bytes, *, stream: bool) -> Reply:
        """Send a body, once; raises ProviderError."""
        key = self.endpoint.api_key
        async with Call(self.endpoint.timeouts, key=key) as call:
            try:
                # Not `async with`, which costs a twentieth more.
                response = await self.session.post(
                    self.url, data=content, headers=self.headers, allow_redirects=False, **self.ways
                )
                try:
                    reply = await self._read(response, call, stream=stream)
                finally:
                    response.release()  # to be used again where the body was read to its end
                call.check_id(content)
                return reply
            except (aiohttp.ClientError, OSError, TooLongError) as error:
                raise broken(error, key=key, sent=call.handed_over, answered=call.answered) from error

    async def _read(self, response: aiohttp.ClientResponse, call: Call, *, stream: bool) -> Reply:
        endpoint = self.endpoint
        most, key = endpoint.most_bytes, endpoint.api_key
        streamed = stream and response.status < 300 and not is_json(response.headers)
        answer = Response(
            status=response.status,
            headers=response.headers,
            body=b"" if streamed else await _whole_body(response.content, most),
            requests_per=endpoint.requests_per,
        )
        if streamed:
            chunks = response.content.iter_any()
            return await read_stream(chunks, self.wire, answer, call, key=key, most=most)
        if answer.status >= 300:
            error = None if self.error_of is None else await self.error_of(answer)
            hush(error, key=key)
            raise refusal(answer, key=key) from error
        return whole_reply(answer, self.wire, call, key=key)


async def _whole_body(content: aiohttp.StreamReader, most: int) -> bytes:
    """Return a body of no more than `most` bytes, which nearly always comes at once; raises TooLongError."""
    begun = await content.readany()
    if content.at_eof() and len(begun) <= most:
        return begun
    return await whole_body(content.iter_any(), most, begun=begun)


class HttpProvider:
    """Any wire format with nothing in between; proxies of the environment are not used.

    Raises:
        ConfigError: no base URL: there is no server to assume.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        if endpoint.base_url is None:
            raise ConfigError(
                "provider http: no base_url. Set one for the model, such as http://localhost:8000/v1"
            )
        self._wire, self._endpoint = wire, endpoint
        self._url = f"{endpoint.base_url.rstrip('/')}/{wire.path}"
        self._door: Door | None = None

    async def ask(self, request: Request) -> Reply:
        content = encoded(self._wire.body(request))
        if self._door is None:
            self._door = self._opened()
        return await self._door.ask(content, stream=request.trial.model.stream)

    def _opened(self) -> Door:
        endpoint = self._endpoint
        key = endpoint.api_key
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connections = session(endpoint, headers=headers)
        return Door(session=connections, url=self._url, wire=self._wire, endpoint=endpoint)

    async def aclose(self) -> None:
        if self._door is not None:
            await self._door.session.close()
