"""OpenAI's wire formats straight over aiohttp and orjson: for self-hosted servers, and for speed."""

from asyncbench.errors import ConfigError
from asyncbench.providers.door import Door
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.failures import encoded
from asyncbench.providers.pool import session
from asyncbench.providers.wire import Wire
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
