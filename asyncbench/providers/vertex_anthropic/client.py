"""Claude on Google's Vertex AI, through Anthropic's own SDK, with application-default credentials."""

from typing import Final

import anthropic

from asyncbench.providers.anthropic.client import NEEDLESS
from asyncbench.providers.clouds import CloudProvider, Login, region_in
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.google.chain import GoogleChain
from asyncbench.providers.sdk import Transport
from asyncbench.providers.wire import Wire

ADDRESS: Final = "https://REGION-aiplatform.googleapis.com/v1"
GLOBAL: Final = "https://aiplatform.googleapis.com/v1"
_PROJECTS: Final = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}


class VertexAnthropicProvider(CloudProvider):
    """Messages through `AsyncAnthropicVertex`."""

    client_class = anthropic.AsyncAnthropicVertex
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]
    sampling_version = "vertex-2023-10-16"

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        # Said, or ANTHROPIC_VERTEX_BASE_URL and CLOUD_ML_REGION would lead calls elsewhere unseen.
        transport = Transport(endpoint, endpoint.base_url or GLOBAL)
        client = anthropic.AsyncAnthropicVertex(
            region=region_in(ADDRESS, endpoint.base_url) or "global",
            base_url=endpoint.base_url or GLOBAL,
            max_retries=0,
            open_telemetry=False,
            http_client=transport.client(),
        )
        super().__init__(
            client, transport, endpoint, wire, chain=GoogleChain(*_PROJECTS), options=lambda _: _OPTIONS
        )

    def give(self, login: Login) -> None:
        self._client.project_id, self._client.credentials = login.credentials
