"""Makes a frozen, valid `Sweep` of a sweep file. All errors of configuration are raised here.

In: YAML, or what the command line says. Out: records only; pydantic stays inside. `starter` writes a first
sweep file. Each module imports only from lines above its own:

    place
    entry · reading
    sources · conditions · deadline · notify · matrix · batching · prices · serving · workers
    models · loading
    sweep_file
    contradictions
    sweep · starter
    overriding
"""

from asyncbench.config.batching import Batching as Batching
from asyncbench.config.conditions import (
    condition_again as condition_again,
    condition_complaint as condition_complaint,
)
from asyncbench.config.deadline import deadline_from as deadline_from, seconds_left as seconds_left
from asyncbench.config.entry import (
    BASE_URL_PATTERN as BASE_URL_PATTERN,
    ENV_VARIABLE as ENV_VARIABLE,
    suggestion as suggestion,
)
from asyncbench.config.loading import (
    CLOSED as CLOSED,
    Find as Find,
    Load as Load,
    Slo as Slo,
    check_keys as check_keys,
)
from asyncbench.config.models import check_alias as check_alias
from asyncbench.config.notify import (
    ADDRESS_RULE as ADDRESS_RULE,
    News as News,
    Notify as Notify,
    is_address as is_address,
)
from asyncbench.config.overriding import (
    with_budget as with_budget,
    with_journal as with_journal,
    with_mode as with_mode,
    with_workers as with_workers,
)
from asyncbench.config.place import Place as Place
from asyncbench.config.sources import ProblemSource as ProblemSource
from asyncbench.config.starter import (
    PROBLEMS as PROBLEMS,
    SIMULATED_MODELS as SIMULATED_MODELS,
    STARTERS as STARTERS,
    FirstSweep as FirstSweep,
    key_variable as key_variable,
    price_text as price_text,
    provider_of as provider_of,
    providers_with_keys as providers_with_keys,
    providers_without_starter as providers_without_starter,
    refuse_existing as refuse_existing,
    size_of as size_of,
    starter_models as starter_models,
    write_sweep as write_sweep,
)
from asyncbench.config.sweep import (
    AnySweep as AnySweep,
    Sweep as Sweep,
    all_sources as all_sources,
    as_mapping as as_mapping,
    load_sweep as load_sweep,
    priced_models as priced_models,
    set_names_in as set_names_in,
    stop_rule_in as stop_rule_in,
    sweep_from as sweep_from,
    with_load as with_load,
)
from asyncbench.config.sweep_file import sweep_schema as sweep_schema
from asyncbench.config.workers import (
    AUTO_WORKERS as AUTO_WORKERS,
    MOST_WORKERS as MOST_WORKERS,
    WorkersWanted as WorkersWanted,
    usable_cores as usable_cores,
    workers_given as workers_given,
    workers_here as workers_here,
)
