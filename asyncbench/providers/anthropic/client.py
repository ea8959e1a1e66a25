"""Anthropic, and whoever speaks its wire format, through Anthropic's own SDK."""

from typing import Final, cast

import anthropic
import httpx2

from asyncbench.providers import sdk
from asyncbench.providers.anthropic import models
from asyncbench.providers.calls import Call
from asyncbench.providers.connections import broken
from asyncbench.providers.endpoint import Endpoint
from asyncbench.providers.failures import encoded, refusal
from asyncbench.providers.secrets import hush
from asyncbench.providers.wire import Wire
from asyncbench.records import Reply, Request

_NEEDLESS: Final = {"x-stainless-timeout": anthropic.Omit()}  # "None": the deadlines are ours
# The version of the API that the SDK sends refuses temperature and top_p, even at their defaults.
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": _NEEDLESS}
_SAMPLING_OPTIONS: Final[anthropic.RequestOptions] = {
    "headers": {**_NEEDLESS, "anthropic-version": models.SAMPLING_VERSION}
}
# Said, or ANTHROPIC_BASE_URL would lead calls elsewhere unseen.
ANTHROPIC_URL: Final = "https://api.anthropic.com"


class AnthropicProvider:
    """Messages through `AsyncAnthropic.post`: the SDK serves the key, headers, connections and errors."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._wire = wire
        self._key = endpoint.api_key
        self._endpoint = endpoint
        self._client = anthropic.AsyncAnthropic(
            base_url=endpoint.base_url or ANTHROPIC_URL,
            api_key=endpoint.api_key or sdk.NO_KEY,
            max_retries=0,
            open_telemetry=False,
            http_client=sdk.pooled(
                anthropic.DefaultAioHttpClient(
                    limits=sdk.limits(endpoint),
                    timeout=sdk.timeout(endpoint),
                    trust_env=sdk.trusts_environment(endpoint),
                    follow_redirects=False,
                ),
                endpoint,
            ),
        )
        self._client._custom_headers = {}  # those of the environment
        self._url = sdk.joined(self._client.base_url, wire.path)

    async def ask(self, request: Request) -> Reply:
        """Make one call, once; see `Provider`."""
        body, stream = self._wire.body(request), request.trial.model.stream
        content = encoded(body)
        options = _SAMPLING_OPTIONS if models.needs_sampling_version(body) else _OPTIONS
        async with Call(self._endpoint.timeouts, key=self._key) as call:
            try:
                response = await self._post(content, options)
                return await sdk.read(response, self._wire, call, self._endpoint, stream=stream)
            except anthropic.APIStatusError as error:  # its class knows the status alone; the body says more
                hush(error, key=self._key)
                refused = sdk.received(error.response, requests_per=self._endpoint.requests_per)
                raise refusal(refused, key=self._key) from error
            except (anthropic.AnthropicError, *sdk.BREAKS) as error:
                raise broken(error, key=self._key, sent=call.handed_over, answered=call.answered) from error

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _post(self, content: bytes, options: anthropic.RequestOptions) -> httpx2.Response:
        """Return a response whose headers are there, and whose body is to be read: by us, not by the SDK."""
        response = await self._client.post(
            self._url,
            content=content,
            cast_to=httpx2.Response,
            options=options,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],  # never made: `cast_to` wins
        )
        return cast(httpx2.Response, response)
