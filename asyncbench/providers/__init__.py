"""One call in, one `Reply` or one `ProviderError` out.

The table of endpoints, the wire formats and the transports stand here. An SDK is imported only when it is
used, and only in its own folder.
"""

from asyncbench.providers.endpoints import KnownEndpoint, Quirks, is_simulated, known_endpoints
from asyncbench.providers.known_models import is_moving_alias, same_model
from asyncbench.providers.listing import (
    endpoint_lines,
    endpoints_as_json,
    endpoints_as_text,
    models_as_json,
    models_as_text,
    models_of,
)
from asyncbench.providers.loose_json import count_in, mapping_in
from asyncbench.providers.model_rules import default_max_tokens, model_complaint
from asyncbench.providers.params import (
    ANY_LONGEST_REPLY,
    billed_besides,
    bills_besides,
    effort_asked,
    ignored,
    longest_reply_of,
    longest_stored,
)
from asyncbench.providers.prices import (
    dearest,
    is_router,
    no_dearer,
    rates_of,
    tier_asked,
    tiers_set_elsewhere,
)
from asyncbench.providers.provider import PROVIDERS, Provider, open_provider, wire_of
from asyncbench.providers.secrets import looks_secret, without_secret
from asyncbench.providers.usage import from_anthropic
from asyncbench.providers.wire import Assembly, Json, Response, Wire

__all__ = [
    "ANY_LONGEST_REPLY",
    "PROVIDERS",
    "Assembly",
    "Json",
    "KnownEndpoint",
    "Provider",
    "Quirks",
    "Response",
    "Wire",
    "billed_besides",
    "bills_besides",
    "count_in",
    "dearest",
    "default_max_tokens",
    "effort_asked",
    "endpoint_lines",
    "endpoints_as_json",
    "endpoints_as_text",
    "from_anthropic",
    "ignored",
    "is_moving_alias",
    "is_router",
    "is_simulated",
    "known_endpoints",
    "longest_reply_of",
    "longest_stored",
    "looks_secret",
    "mapping_in",
    "model_complaint",
    "models_as_json",
    "models_as_text",
    "models_of",
    "no_dearer",
    "open_provider",
    "rates_of",
    "same_model",
    "tier_asked",
    "tiers_set_elsewhere",
    "wire_of",
    "without_secret",
]
