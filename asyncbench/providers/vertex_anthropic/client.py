"""Claude on Google's Vertex AI, through Anthropic's own SDK, with application-default credentials."""

import os
from collections.abc import Iterable
from typing import Final

import anthropic
import google.auth
from google.auth.credentials import Credentials as GoogleCredentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import Request as TokenRequest

from asyncbench.providers.anthropic.client import NEEDLESS, AnthropicConnections
from asyncbench.providers.clouds import CloudProvider, region_in
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.sdk import http_client
from asyncbench.providers.wire import Wire

ADDRESS: Final = "https://REGION-aiplatform.googleapis.com/v1"
GLOBAL: Final = "https://aiplatform.googleapis.com/v1"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_PROJECTS: Final = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}


class NoProjectError(Exception):
    """Neither a variable nor the credentials name a project."""


class VertexAnthropicProvider(CloudProvider):
    """Messages through `AsyncAnthropicVertex`."""

    client_class = anthropic.AsyncAnthropicVertex
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]
    sampling_version = "vertex-2023-10-16"
    chain = "Google's application-default chain"
    unreached = (TransportError,)
    unfound = (GoogleAuthError, NoProjectError)

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._google: GoogleCredentials | None = None
        # Said, or ANTHROPIC_VERTEX_BASE_URL and CLOUD_ML_REGION would lead calls elsewhere unseen.
        client = anthropic.AsyncAnthropicVertex(
            region=region_in(ADDRESS, endpoint.base_url) or "global",
            base_url=endpoint.base_url or GLOBAL,
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(AnthropicConnections, endpoint),
        )
        super().__init__(client, endpoint, wire, options=lambda _: _OPTIONS)

    def find(self, *, anew: bool) -> Iterable[str]:
        if self._google is None or anew:
            self._google, project = google.auth.default(scopes=[_SCOPE])
            self._client.credentials = self._google
            self._client.project_id = next(filter(None, map(os.environ.get, _PROJECTS)), project)
        if not self._client.project_id:
            raise NoProjectError(f"they name no project. Set {_PROJECTS[1]}")
        self._google.refresh(TokenRequest())  # type: ignore[no-untyped-call]  # its signature has none
        return (str(self._google.token),)

    def fresh(self) -> bool:
        return self._google is not None and bool(self._google.valid)
