"""Claude on Amazon Bedrock, through Anthropic's own SDK, which signs each call (SigV4)."""

import os
from collections.abc import Iterable
from typing import Final

import anthropic
import boto3  # noqa: F401  the SDK signs with it: what is missing is to be told before the first call
from botocore.credentials import Credentials as AwsCredentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, HTTPClientError, MetadataRetrievalError
from botocore.session import Session

from asyncbench.errors import ConfigError
from asyncbench.providers.anthropic.client import NEEDLESS, AnthropicConnections
from asyncbench.providers.bedrock.answers import as_events, in_common_form
from asyncbench.providers.clouds import CloudProvider, region_in
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.sdk import http_client
from asyncbench.providers.wire import Response, Wire

ADDRESS: Final = "https://bedrock-runtime.REGION.amazonaws.com"
BEARER: Final = "AWS_BEARER_TOKEN_BEDROCK"  # an API key of Bedrock's own; then nothing is signed
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}


class NoAwsCredentialsError(Exception):
    """AWS's chain came to its end."""


class BedrockProvider(CloudProvider):
    """Messages through `AsyncAnthropicBedrock`.

    Raises:
        ConfigError: no region is named.
    """

    client_class = anthropic.AsyncAnthropicBedrock
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]
    sampling_version = "bedrock-2023-05-31"
    chain = "AWS's chain"
    unreached = (HTTPClientError, MetadataRetrievalError)
    unfound = (BotoCoreError, NoAwsCredentialsError)

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._session = Session()
        self._aws: AwsCredentials | None = None
        region = region_in(ADDRESS, endpoint.base_url) or _region_of(self._session)
        client = anthropic.AsyncAnthropicBedrock(
            aws_region=region,
            # Said, or ANTHROPIC_BEDROCK_BASE_URL would lead calls elsewhere unseen.
            base_url=endpoint.base_url or ADDRESS.replace("REGION", region),
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(AnthropicConnections, endpoint),
        )
        super().__init__(client, endpoint, wire, options=lambda _: _OPTIONS)

    def find(self, *, anew: bool) -> Iterable[str]:
        if (bearer := os.environ.get(BEARER)) is not None:
            self._client.api_key = bearer
            return (bearer,)
        if anew:
            self._session, self._aws = Session(), None
        self._aws = self._aws or self._session.get_credentials()
        if self._aws is None:
            raise NoAwsCredentialsError("log in (aws sso login), or set AWS_PROFILE")
        frozen = self._aws.get_frozen_credentials()
        self._client.aws_access_key, self._client.aws_secret_key = frozen.access_key, frozen.secret_key
        self._client.aws_session_token = frozen.token
        # A renewed role keeps no key, and a user of AWS has no token.
        return filter(None, (frozen.token or frozen.access_key, frozen.secret_key, frozen.access_key))

    def fresh(self) -> bool:
        return not (isinstance(self._aws, RefreshableCredentials) and self._aws.refresh_needed())

    def told(self, refused: Response) -> Response:
        return in_common_form(refused)

    unpacked = staticmethod(as_events)


def _region_of(session: Session) -> str:
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if not region:
        raise ConfigError(
            f"provider bedrock: no region. Set AWS_REGION, or a `base_url` of the model such as {ADDRESS}."
        )
    return str(region)
