"""OpenAI's wire format straight over aiohttp and orjson: for self-hosted servers, and for speed."""

import aiohttp

from asyncbench.errors import ConfigError
from asyncbench.providers.connections import broken
from asyncbench.providers.endpoint import KEEPALIVE_S, Endpoint
from asyncbench.providers.failures import encoded, payload, refusal
from asyncbench.providers.openai import chat
from asyncbench.providers.response import Response
from asyncbench.records import Reply, Request


class HttpProvider:
    """Chat completions with nothing in between; proxies of the environment are not used.

    Raises:
        ConfigError: no base URL: there is no server to assume.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        if endpoint.base_url is None:
            raise ConfigError("provider http: give the model a base_url, such as http://localhost:8000/v1")
        self._endpoint = endpoint
        self._url = f"{endpoint.base_url.rstrip('/')}/{chat.PATH}"
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: Request) -> Reply:
        """Make one call, once; see `Provider`."""
        # Some servers know this parameter by its older name alone, none by the newer alone.
        response = await self._post(encoded(chat.body(request, max_tokens_key="max_tokens")))
        if response.status >= 300:
            raise refusal(response, key=self._endpoint.api_key)
        return chat.reply(payload(response, key=self._endpoint.api_key), response)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def _post(self, content: bytes) -> Response:
        if self._session is None:
            self._session = self._opened()
        try:
            # Not `async with`, which costs a twentieth more: a read, whole or not, gives the connection back.
            response = await self._session.post(self._url, data=content, allow_redirects=False)
            return Response(status=response.status, headers=response.headers, body=await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise broken(error, key=self._endpoint.api_key) from error

    def _opened(self) -> aiohttp.ClientSession:
        # Made inside the running loop, to which its connections belong.
        key, timeouts = self._endpoint.api_key, self._endpoint.timeouts
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._endpoint.connections, keepalive_timeout=KEEPALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {key}"} if key else {}),
            },
            timeout=aiohttp.ClientTimeout(total=timeouts.total, sock_connect=timeouts.connect),
        )
