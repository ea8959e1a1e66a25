"""Claude on Amazon Bedrock, through Anthropic's own SDK, which signs each call (SigV4)."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anthropic
import boto3  # noqa: F401  the SDK signs with it: what is missing is to be told before the first call
from botocore.exceptions import (
    ClientError,
    ConnectionError as BotoConnectionError,
    HTTPClientError,
    MetadataRetrievalError,
)
from botocore.session import Session

from asyncbench.errors import ConfigError
from asyncbench.providers.anthropic.client import NEEDLESS
from asyncbench.providers.bedrock.answers import rewrite_refusal, sse_events
from asyncbench.providers.clouds import LATER, Chain, CloudProvider, Login, region_in
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.private import expiry, found_keys, run_programs_by
from asyncbench.providers.sdk import Transport
from asyncbench.providers.wire import Response, Wire

ADDRESS: Final = "https://bedrock-runtime.REGION.amazonaws.com"
PROGRAM_S: Final = 60.0  # for a `credential_process`
BEARER: Final = "AWS_BEARER_TOKEN_BEDROCK"  # an API key of Bedrock's own; then nothing is signed
_OPTIONS: Final[anthropic.RequestOptions] = {"headers": NEEDLESS}


class NoAwsCredentialsError(Exception):
    """AWS's chain came to its end."""


class _Program(subprocess.Popen[bytes]):
    """A `credential_process`, which may hang."""

    def communicate(self, *args: Any, **how: Any) -> tuple[bytes, bytes]:
        """Wait for its output; see `subprocess.Popen`."""
        try:
            return super().communicate(*args, **{"timeout": PROGRAM_S, **how})
        except subprocess.TimeoutExpired:
            self.kill()
            for pipe in filter(None, (self.stdout, self.stderr)):
                pipe.close()  # whatever it started may hold the other end
            self.wait()
            raise NoAwsCredentialsError(f"credential_process did not end within {PROGRAM_S:g} s") from None


class AwsChain(Chain):
    """AWS's: variables, files, a `credential_process`, SSO, the role of a container or of a machine."""

    name = "AWS's chain"
    unreached = (BotoConnectionError, HTTPClientError, MetadataRetrievalError)

    def find(self) -> Login:
        if (bearer := os.environ.get(BEARER)) is not None:
            return Login(credentials=bearer, secrets=(bearer,))
        session = Session()
        run_programs_by(session, _Program)
        credentials = session.get_credentials()
        if credentials is None:
            raise NoAwsCredentialsError("log in (aws sso login), or set AWS_PROFILE")
        keys, ends = found_keys(credentials), expiry(credentials)
        # A renewed role keeps no key, and a user of AWS has no token.
        secrets = filter(None, (keys.token or keys.access_key, keys.secret_key, keys.access_key))
        return Login(credentials=keys, secrets=tuple(secrets), ends_s=ends.timestamp() if ends else None)

    def is_down(self, error: Exception) -> bool:
        if isinstance(error, ClientError):  # of STS or SSO
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return status >= 500 or status in LATER
        # botocore passes over a machine's metadata service that does not answer.
        return super().is_down(error) or (isinstance(error, NoAwsCredentialsError) and _is_on_ec2())


def _is_on_ec2() -> bool:
    """Return whether a machine of AWS's would give credentials by its metadata service."""
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    with suppress(OSError):
        if Path("/sys/class/dmi/id/sys_vendor").read_text().strip() == "Amazon EC2":
            return True
    return bool(os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"))


class BedrockProvider(CloudProvider):
    """Messages through `AsyncAnthropicBedrock`.

    Raises:
        ConfigError: no region is named.
    """

    client_class = anthropic.AsyncAnthropicBedrock
    refusals, errors = anthropic.APIStatusError, anthropic.AnthropicError
    stream_class = anthropic.AsyncStream[object]
    sampling_version = "bedrock-2023-05-31"

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        region = region_in(ADDRESS, endpoint.base_url) or os.environ.get("AWS_REGION")
        region = region or Session().get_config_variable("region")
        if not region:
            raise ConfigError(
                "provider bedrock: no region. Set AWS_REGION, or a `base_url` of the model such as "
                f"{ADDRESS}."
            )
        # Said, or ANTHROPIC_BEDROCK_BASE_URL would lead calls elsewhere unseen.
        base_url = endpoint.base_url or ADDRESS.replace("REGION", region)
        transport = Transport(endpoint, base_url)
        client = anthropic.AsyncAnthropicBedrock(
            aws_region=region,
            base_url=base_url,
            max_retries=0,
            open_telemetry=False,
            http_client=transport.client(),
        )
        super().__init__(client, transport, endpoint, wire, chain=AwsChain(), options=lambda _: _OPTIONS)

    def give(self, login: Login) -> None:
        keys = login.credentials
        if isinstance(keys, str):
            self._client.api_key = keys
            return
        self._client.aws_access_key, self._client.aws_secret_key = keys.access_key, keys.secret_key
        self._client.aws_session_token = keys.token

    def common_form(self, refused: Response) -> Response:
        return rewrite_refusal(refused)

    event_stream = staticmethod(sse_events)
