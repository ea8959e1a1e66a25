"""A sweep file becomes a frozen, valid `Sweep`; every complaint about configuration is made here.

In: YAML, or what the command line says. Out: records only; pydantic stays inside. `starter` writes a first
sweep file. Each module imports only from lines above its own:

    entry · reading
    sources · conditions · deadline · notify
    models
    sweep · starter
"""

from asyncbench.config.conditions import condition_complaint
from asyncbench.config.deadline import deadline_from, seconds_left
from asyncbench.config.entry import ENV_VARIABLE, NOT_BUILT
from asyncbench.config.models import BASE_URL_PATTERN, check_alias
from asyncbench.config.notify import ADDRESS_RULE, News, Notify, is_address
from asyncbench.config.sources import ProblemSource
from asyncbench.config.starter import (
    SIMULATED_MODELS,
    described_models,
    providers_with_keys,
    providers_without_starter,
    refuse_existing,
    write_sweep,
)
from asyncbench.config.sweep import (
    Sweep,
    as_mapping,
    load_sweep,
    priced_models,
    stop_rule_in,
    sweep_from,
    with_budget,
)

__all__ = [
    "ADDRESS_RULE",
    "BASE_URL_PATTERN",
    "ENV_VARIABLE",
    "NOT_BUILT",
    "SIMULATED_MODELS",
    "News",
    "Notify",
    "ProblemSource",
    "Sweep",
    "as_mapping",
    "check_alias",
    "condition_complaint",
    "deadline_from",
    "described_models",
    "is_address",
    "load_sweep",
    "priced_models",
    "providers_with_keys",
    "providers_without_starter",
    "refuse_existing",
    "seconds_left",
    "stop_rule_in",
    "sweep_from",
    "with_budget",
    "write_sweep",
]
