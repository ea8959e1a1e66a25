"""OpenAI, and whoever speaks its wire format, through OpenAI's own SDK."""

from typing import Final

import openai

from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.sdk import NO_KEY, SdkProvider, Transport
from asyncbench.providers.wire import Wire

# Headers about ourselves that no provider needs: without them a call costs a seventh less.
NEEDLESS: Final = (
    *("X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch"),
    *("X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Async"),
    *("x-stainless-retry-count", "x-stainless-read-timeout"),
)
# Said, or OPENAI_BASE_URL would lead calls elsewhere unseen.
OPENAI_URL: Final = "https://api.openai.com/v1"


class OpenAIProvider(SdkProvider):
    """Any wire format through `AsyncOpenAI`."""

    client_class = openai.AsyncOpenAI
    refusals, errors, stream_class = openai.APIStatusError, openai.OpenAIError, openai.AsyncStream[object]

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        base_url = endpoint.base_url or OPENAI_URL
        transport = Transport(endpoint, base_url)
        client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=endpoint.api_key or NO_KEY,
            max_retries=0,
            http_client=transport.client(),
        )
        # None, if given above, would mean: from the environment.
        client.organization = client.project = client.admin_api_key = None
        headers: dict[str, str | openai.Omit] = dict.fromkeys(NEEDLESS, openai.Omit())
        if endpoint.key_header is not None:
            headers |= {"Authorization": openai.Omit(), endpoint.key_header: endpoint.api_key}
        options: openai.RequestOptions = {"headers": headers}
        super().__init__(client, transport, endpoint, wire, options=lambda _: options)
