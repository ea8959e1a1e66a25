"""GPT on Azure with Entra ID, through OpenAI's own SDK and tokens of azure-identity."""

import time
from collections.abc import Iterable
from typing import Final

import openai
from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.identity import DefaultAzureCredential

from asyncbench.errors import ConfigError
from asyncbench.providers.clouds import CloudProvider
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.openai.client import NEEDLESS, OpenAIConnections
from asyncbench.providers.sdk import http_client
from asyncbench.providers.wire import Wire

_SCOPE: Final = "https://cognitiveservices.azure.com/.default"
_SOON_S: Final = 300.0  # a token that ends sooner than that is renewed


class AzureEntraProvider(CloudProvider):
    """Any wire format through `AsyncAzureOpenAI`; it builds one call for each token.

    Raises:
        ConfigError: no base URL: each resource has its own.
    """

    client_class = openai.AsyncAzureOpenAI
    refusals, errors, stream_class = openai.APIStatusError, openai.OpenAIError, openai.AsyncStream[object]
    builds_all = False
    chain = "Entra ID's chain"
    unreached = (ServiceRequestError, ServiceResponseError)
    unfound = (AzureError,)

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        if endpoint.base_url is None:
            raise ConfigError("provider azure-entra: no base_url. Set that of your resource.")
        self._entra: DefaultAzureCredential | None = None
        self._token = AccessToken("", 0)
        client = openai.AsyncAzureOpenAI(
            base_url=endpoint.base_url,
            api_version="v1",  # demanded by the SDK; not sent, for the v1 surface needs none
            azure_ad_token_provider=lambda: self._token.token,  # called for each call
            max_retries=0,
            http_client=http_client(OpenAIConnections, endpoint),
        )
        # None, if given above, would mean: from the environment.
        client.organization = client.project = client.admin_api_key = None
        options: openai.RequestOptions = {"headers": dict.fromkeys(NEEDLESS, openai.Omit())}
        super().__init__(client, endpoint, wire, options=lambda _: options)

    def find(self, *, anew: bool) -> Iterable[str]:
        if self._entra is None or anew:
            self._entra = DefaultAzureCredential()
        self._token = self._entra.get_token(_SCOPE)
        return (self._token.token,)

    def fresh(self) -> bool:
        return time.time() < self._token.expires_on - _SOON_S
