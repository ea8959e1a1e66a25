"""OpenAI, and whoever speaks its wire format, through OpenAI's own SDK."""

from typing import Final, cast

import httpx2
import openai

from asyncbench.providers import sdk
from asyncbench.providers.calls import Call
from asyncbench.providers.connections import broken
from asyncbench.providers.endpoint import Endpoint
from asyncbench.providers.failures import encoded, refusal
from asyncbench.providers.secrets import hush
from asyncbench.providers.wire import Wire
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


def _options(endpoint: Endpoint) -> openai.RequestOptions:
    if endpoint.key_header is None:
        return _OPTIONS
    without = dict.fromkeys((*_NEEDLESS, "Authorization"), openai.Omit())
    return {"headers": {**without, endpoint.key_header: endpoint.api_key}}


class OpenAIProvider:
    """Any wire format through `AsyncOpenAI.post`: the SDK serves the key, headers, connections and errors.

    Its typed `create` would cost twice the time, and drop what the SDK does not know yet.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._wire = wire
        self._key = endpoint.api_key
        self._endpoint = endpoint
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url or OPENAI_URL,
            api_key=endpoint.api_key or sdk.NO_KEY,
            max_retries=0,
            http_client=sdk.pooled(
                openai.DefaultAioHttpClient(
                    limits=sdk.limits(endpoint),
                    timeout=sdk.timeout(endpoint),
                    trust_env=sdk.trusts_environment(endpoint),
                    follow_redirects=False,
                ),
                endpoint,
            ),
        )
        # None, if given above, would mean: from the environment.
        self._client.organization = self._client.project = self._client.admin_api_key = None
        self._client._custom_headers = {}
        self._url = sdk.joined(self._client.base_url, wire.path)
        self._options = _options(endpoint)

    async def ask(self, request: Request) -> Reply:
        """Make one call, once; see `Provider`."""
        content, stream = encoded(self._wire.body(request)), request.trial.model.stream
        async with Call(self._endpoint.timeouts, key=self._key) as call:
            try:
                response = await self._post(content)
                return await sdk.read(response, self._wire, call, self._endpoint, stream=stream)
            except openai.APIStatusError as error:  # its class knows the status alone; the body says more
                hush(error, key=self._key)
                refused = sdk.received(error.response, requests_per=self._endpoint.requests_per)
                raise refusal(refused, key=self._key) from error
            except (openai.OpenAIError, *sdk.BREAKS) as error:
                raise broken(error, key=self._key, sent=call.handed_over, answered=call.answered) from error

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _post(self, content: bytes) -> httpx2.Response:
        """Return a response whose headers are there, and whose body is to be read: by us, not by the SDK."""
        response = await self._client.post(
            self._url,
            content=content,
            cast_to=httpx2.Response,
            options=self._options,
            stream=True,
            stream_cls=openai.AsyncStream[object],  # never made: `cast_to` wins
        )
        return cast(httpx2.Response, response)
