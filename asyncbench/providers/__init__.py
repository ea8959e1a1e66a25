"""Call one provider: a request in, one `Reply` or one `ProviderError` out.

The table of endpoints, the wire formats and the transports stand here. An SDK is imported only when it is
used, and only in its own folder.
"""

from asyncbench.providers.endpoints import (
    AddedProvider as AddedProvider,
    Endpoint as Endpoint,
    KnownEndpoint as KnownEndpoint,
    Quirks as Quirks,
)
from asyncbench.providers.provider import (
    Provider as Provider,
)
from asyncbench.providers.wire import (
    Assembly as Assembly,
    Json as Json,
    Response as Response,
    Wire as Wire,
)

PUBLIC = (
    "batch_calls",
    "credentials",
    "endpoints",
    "environment",
    "functions",
    "garbage",
    "listing",
    "params",
    "prices",
    "provider",
    "rate_headers",
    "secrets",
    "unasked",
    "wire",
    "workers.process",
    "workers.workers",
)
