"""Anthropic, and whoever speaks its wire format, through Anthropic's own SDK."""

import asyncio
from typing import Final

import anthropic
import httpx2

from asyncbench.providers import sdk
from asyncbench.providers.anthropic import messages, models
from asyncbench.providers.connections import broken
from asyncbench.providers.endpoint import Endpoint
from asyncbench.providers.failures import encoded, payload, refusal
from asyncbench.providers.response import Response
from asyncbench.records import Reply, Request

# The version of the API that the SDK sends refuses temperature and top_p, even at their defaults.
_OPTIONS: Final[anthropic.RequestOptions] = {}
_SAMPLING_OPTIONS: Final[anthropic.RequestOptions] = {
    "headers": {"anthropic-version": models.SAMPLING_VERSION}
}
# Said, or ANTHROPIC_BASE_URL would lead calls elsewhere unseen.
ANTHROPIC_URL: Final = "https://api.anthropic.com"


class AnthropicProvider:
    """Messages through `AsyncAnthropic.post`: the SDK serves the key, headers, connections and errors."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._key = endpoint.api_key
        self._total_s = endpoint.timeouts.total
        self._client = anthropic.AsyncAnthropic(
            base_url=endpoint.base_url or ANTHROPIC_URL,
            api_key=endpoint.api_key or sdk.NO_KEY,
            max_retries=0,
            open_telemetry=False,
            http_client=anthropic.DefaultAioHttpClient(
                limits=sdk.limits(endpoint), timeout=sdk.timeout(endpoint), follow_redirects=False
            ),
        )
        self._url = sdk.joined(self._client.base_url, messages.PATH)

    async def ask(self, request: Request) -> Reply:
        """Make one call, once; see `Provider`."""
        body = messages.body(request)
        options = _SAMPLING_OPTIONS if models.needs_sampling_version(body) else _OPTIONS
        response = await self._post(encoded(body), options)
        return messages.reply(payload(response, key=self._key), response)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _post(self, content: bytes, options: anthropic.RequestOptions) -> Response:
        try:
            async with asyncio.timeout(self._total_s):
                received = await self._client.post(
                    self._url, content=content, cast_to=httpx2.Response, options=options
                )
        except anthropic.APIStatusError as error:  # its class knows the status alone; the body says more
            raise refusal(sdk.received(error.response), key=self._key) from error
        except (anthropic.AnthropicError, OSError) as error:
            raise broken(error, key=self._key) from error
        return sdk.received(received)
