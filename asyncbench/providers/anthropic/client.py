"""Anthropic, and whoever speaks its wire format, through Anthropic's own SDK."""

from typing import Final

import anthropic

from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.params import SAMPLING_VERSION, needs_sampling_version
from asyncbench.providers.sdk import NO_KEY, SdkProvider, Transport
from asyncbench.providers.wire import Wire

NEEDLESS: Final = {"x-stainless-timeout": anthropic.Omit()}  # "None": the deadlines are ours
# The version of the API that the SDK sends refuses temperature and top_p, even at their defaults.
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}
_SAMPLING_OPTIONS: Final[anthropic.RequestOptions] = {
    "headers": {**NEEDLESS, "anthropic-version": SAMPLING_VERSION}
}
# Said, or ANTHROPIC_BASE_URL would lead calls elsewhere unseen.
ANTHROPIC_URL: Final = "https://api.anthropic.com"


class AnthropicProvider(SdkProvider):
    """Messages through `AsyncAnthropic`."""

    client_class = anthropic.AsyncAnthropic
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        base_url = endpoint.base_url or ANTHROPIC_URL
        transport = Transport(endpoint, base_url)
        client = anthropic.AsyncAnthropic(
            base_url=base_url,
            api_key=endpoint.api_key or NO_KEY,
            max_retries=0,
            open_telemetry=False,
            http_client=transport.client(),
        )
        super().__init__(
            client,
            transport,
            endpoint,
            wire,
            options=lambda body: _SAMPLING_OPTIONS if needs_sampling_version(body) else _OPTIONS,
        )
