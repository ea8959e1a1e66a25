"""GPT on Azure with Entra ID, through OpenAI's own SDK and tokens of azure-identity."""

import os
from typing import Final

import openai
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential

from asyncbench.errors import ConfigError
from asyncbench.providers.clouds import Chain, CloudProvider, Login
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.openai.client import NEEDLESS
from asyncbench.providers.sdk import Transport
from asyncbench.providers.token_servers import TokenSession
from asyncbench.providers.wire import Wire

_SERVICES: Final = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT", "AZURE_TENANT_ID")  # set: there is one
_SCOPE: Final = "https://cognitiveservices.azure.com/.default"


class EntraChain(Chain):
    """Entra ID's: variables, a workload's or a managed identity, a login of yours."""

    name = "Entra ID's chain"
    unreached = (ServiceRequestError, ServiceResponseError)

    def __init__(self) -> None:
        self._session = TokenSession()

    def find(self) -> Login:
        self._session.status = None
        transport = RequestsTransport(session=self._session, session_owner=False)
        with DefaultAzureCredential(transport=transport) as credential:
            token = credential.get_token(_SCOPE)
        return Login(credentials=token.token, secrets=(token.token,), ends_s=token.expires_on)

    def is_down(self, error: Exception) -> bool:
        # Its chain passes over what does not answer, as nothing does where no such service is.
        has_service = any(map(os.environ.get, _SERVICES))
        return super().is_down(error) or self._session.is_down or (has_service and self._session.broke_off)


class AzureEntraProvider(CloudProvider):
    """Any wire format through `AsyncAzureOpenAI`; it builds one call for each token.

    Raises:
        ConfigError: no base URL: each resource has its own.
    """

    client_class = openai.AsyncAzureOpenAI
    refusals, errors, stream_class = openai.APIStatusError, openai.OpenAIError, openai.AsyncStream[object]
    builds_all = False

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        if endpoint.base_url is None:
            raise ConfigError("provider azure-entra: no base_url. Set that of your resource.")
        self._token = ""
        transport = Transport(endpoint, endpoint.base_url)
        client = openai.AsyncAzureOpenAI(
            base_url=endpoint.base_url,
            api_version="v1",  # demanded by the SDK; not sent, for the v1 surface needs none
            azure_ad_token_provider=lambda: self._token,  # called for each call
            max_retries=0,
            http_client=transport.client(),
        )
        # None, if given above, would mean: from the environment.
        client.organization = client.project = client.admin_api_key = None
        options: openai.RequestOptions = {"headers": dict.fromkeys(NEEDLESS, openai.Omit())}
        super().__init__(client, transport, endpoint, wire, chain=EntraChain(), options=lambda _: options)

    def give(self, login: Login) -> None:
        self._token = login.credentials
