"""OpenAI's wire formats straight over aiohttp and orjson: for self-hosted servers, and for speed."""

import aiohttp

from asyncbench.errors import ConfigError
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.failures import encoded, refusal
from asyncbench.providers.pool import broken, session
from asyncbench.providers.sse import TooLongError
from asyncbench.providers.streams import is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import Reply, Request


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
        self._wire = wire
        self._endpoint = endpoint
        self._key = endpoint.api_key
        self._url = f"{endpoint.base_url.rstrip('/')}/{wire.path}"
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: Request) -> Reply:
        content, stream = encoded(self._wire.body(request)), request.trial.model.stream
        if self._session is None:
            authorization = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            headers = {"Content-Type": "application/json", **authorization}
            self._session = session(self._endpoint, headers=headers)
        async with Call(self._endpoint.timeouts, key=self._key) as call:
            try:
                # Not `async with`, which costs a twentieth more.
                response = await self._session.post(self._url, data=content, allow_redirects=False)
                try:
                    return await self._read(response, call, stream=stream)
                finally:
                    response.release()  # to be used again where the body was read to its end
            except (aiohttp.ClientError, OSError, TooLongError) as error:
                raise broken(error, key=self._key, sent=call.handed_over, answered=call.answered) from error

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _read(self, response: aiohttp.ClientResponse, call: Call, *, stream: bool) -> Reply:
        chunks, most = response.content.iter_any(), self._endpoint.most_bytes
        streamed = stream and response.status < 300 and not is_json(response.headers)
        answer = Response(
            status=response.status,
            headers=response.headers,
            body=b"" if streamed else await whole_body(chunks, most),
            requests_per=self._endpoint.requests_per,
        )
        if streamed:
            return await read_stream(chunks, self._wire, answer, call, key=self._key, most=most)
        if answer.status >= 300:
            raise refusal(answer, key=self._key)
        return whole_reply(answer, self._wire, call, key=self._key)
