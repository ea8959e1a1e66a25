"""OpenAI, and whoever speaks its wire format, through OpenAI's own SDK."""

import asyncio
from typing import Final

import aiohttp
import httpx2
import openai

from asyncbench.providers import sdk
from asyncbench.providers.connections import broken
from asyncbench.providers.endpoint import Endpoint
from asyncbench.providers.failures import encoded, payload, refusal
from asyncbench.providers.openai import chat
from asyncbench.providers.response import Response
from asyncbench.records import Reply, Request

# Headers about ourselves that no provider needs: without them a call costs a seventh less.
_NEEDLESS: Final = (
    "X-Stainless-Lang",
    "X-Stainless-Package-Version",
    "X-Stainless-OS",
    "X-Stainless-Arch",
    "X-Stainless-Runtime",
    "X-Stainless-Runtime-Version",
    "X-Stainless-Async",
    "x-stainless-retry-count",
    "x-stainless-read-timeout",
)
# Said, or OPENAI_BASE_URL would lead calls elsewhere unseen.
OPENAI_URL: Final = "https://api.openai.com/v1"
_OPTIONS: Final[openai.RequestOptions] = {"headers": dict.fromkeys(_NEEDLESS, openai.Omit())}


class OpenAIProvider:
    """Chat completions through `AsyncOpenAI.post`: the SDK serves the key, headers, connections and errors.

    Its typed `create` would cost twice the time, and drop what the SDK does not know yet.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._key = endpoint.api_key
        self._total_s = endpoint.timeouts.total
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url or OPENAI_URL,
            api_key=endpoint.api_key or sdk.NO_KEY,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(
                limits=sdk.limits(endpoint), timeout=sdk.timeout(endpoint), follow_redirects=False
            ),
        )
        self._url = sdk.joined(self._client.base_url, chat.PATH)

    async def ask(self, request: Request) -> Reply:
        """Make one call, once; see `Provider`."""
        response = await self._post(encoded(chat.body(request)))
        return chat.reply(payload(response, key=self._key), response)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _post(self, content: bytes) -> Response:
        try:
            async with asyncio.timeout(self._total_s):
                received = await self._client.post(
                    self._url, content=content, cast_to=httpx2.Response, options=_OPTIONS
                )
        except openai.APIStatusError as error:  # its class knows the status alone; the body says more
            raise refusal(sdk.received(error.response), key=self._key) from error
        except (openai.OpenAIError, aiohttp.ClientError, OSError) as error:
            raise broken(error, key=self._key) from error
        return sdk.received(received)
