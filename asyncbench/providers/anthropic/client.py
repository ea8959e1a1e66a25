"""Anthropic, and whoever speaks its wire format, through Anthropic's own SDK."""

from typing import Final

import anthropic

from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.params import SAMPLING_VERSION, needs_sampling_version
from asyncbench.providers.sdk import NO_KEY, Rehearsing, SdkProvider, http_client
from asyncbench.providers.wire import Json, Wire

NEEDLESS: Final = {"x-stainless-timeout": anthropic.Omit()}  # "None": the deadlines are ours
# The version of the API that the SDK sends refuses temperature and top_p, even at their defaults.
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}
_SAMPLING_OPTIONS: Final[anthropic.RequestOptions] = {
    "headers": {**NEEDLESS, "anthropic-version": SAMPLING_VERSION}
}
# Said, or ANTHROPIC_BASE_URL would lead calls elsewhere unseen.
ANTHROPIC_URL: Final = "https://api.anthropic.com"


class AnthropicConnections(Rehearsing, anthropic.DefaultAioHttpClient):
    """The SDK's client on aiohttp."""


class AnthropicProvider(SdkProvider):
    """Messages through `AsyncAnthropic`."""

    client_class = anthropic.AsyncAnthropic
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        client = anthropic.AsyncAnthropic(
            base_url=endpoint.base_url or ANTHROPIC_URL,
            api_key=endpoint.api_key or NO_KEY,
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(AnthropicConnections, endpoint, endpoint.base_url or ANTHROPIC_URL),
        )
        super().__init__(client, endpoint, wire, options=_options)


def _options(body: Json) -> anthropic.RequestOptions:
    return _SAMPLING_OPTIONS if needs_sampling_version(body) else _OPTIONS
