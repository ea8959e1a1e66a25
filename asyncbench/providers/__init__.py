"""One call in, one `Reply` or one `ProviderError` out.

The table of endpoints, the wire formats and the transports stand here. An SDK is imported only when it is
used, and only in its own folder.
"""

from asyncbench.providers.batch_calls import (
    BatchApi as BatchApi,
    BatchLine as BatchLine,
    NotRun as NotRun,
    RemoteBatch as RemoteBatch,
    Submission as Submission,
    certainly_not_created as certainly_not_created,
    fault_error as fault_error,
)
from asyncbench.providers.endpoints import (
    AddedProvider as AddedProvider,
    Endpoint as Endpoint,
    KnownEndpoint as KnownEndpoint,
    Quirks as Quirks,
    added_providers as added_providers,
    is_simulated as is_simulated,
    known_endpoints as known_endpoints,
    usable_endpoints as usable_endpoints,
)
from asyncbench.providers.garbage import (
    collect_rarely as collect_rarely,
    rare_garbage_collection as rare_garbage_collection,
)
from asyncbench.providers.known_models import is_moving_alias as is_moving_alias, same_model as same_model
from asyncbench.providers.listing import (
    endpoint_lines as endpoint_lines,
    endpoints_as_json as endpoints_as_json,
    endpoints_as_text as endpoints_as_text,
    models_as_json as models_as_json,
    models_as_text as models_as_text,
    models_of as models_of,
)
from asyncbench.providers.loose_json import count_in as count_in, mapping_in as mapping_in
from asyncbench.providers.model_rules import (
    batch_complaint as batch_complaint,
    default_max_tokens as default_max_tokens,
    model_complaint as model_complaint,
)
from asyncbench.providers.params import (
    ANY_LONGEST_REPLY as ANY_LONGEST_REPLY,
    billed_besides as billed_besides,
    bills_besides as bills_besides,
    effort_asked as effort_asked,
    ignored as ignored,
    longest_reply_of as longest_reply_of,
    longest_stored as longest_stored,
)
from asyncbench.providers.prices import (
    dearest as dearest,
    is_router as is_router,
    no_dearer as no_dearer,
    rates_of as rates_of,
    tier_asked as tier_asked,
    tiers_set_elsewhere as tiers_set_elsewhere,
)
from asyncbench.providers.provider import (
    PROVIDERS as PROVIDERS,
    Provider as Provider,
    makes_own_calls as makes_own_calls,
    open_batches as open_batches,
    open_provider as open_provider,
    wire_of as wire_of,
)
from asyncbench.providers.secrets import (
    SHORTEST_SECRET as SHORTEST_SECRET,
    looks_secret as looks_secret,
    without_pasted_key as without_pasted_key,
    without_secret as without_secret,
)
from asyncbench.providers.usage import from_anthropic as from_anthropic
from asyncbench.providers.wire import (
    SIMULATOR as SIMULATOR,
    Assembly as Assembly,
    Json as Json,
    Response as Response,
    Wire as Wire,
)
