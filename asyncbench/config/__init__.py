"""Sweep file → a frozen, valid Sweep; every complaint about configuration.

Entries are pydantic models as written in YAML; what leaves this room is made of records only. Each module
imports only from lines above its own:

    entry
    sources · conditions · deadline · notify
    models
    sweep
"""

from asyncbench.config.deadline import seconds_left
from asyncbench.config.entry import NOT_BUILT
from asyncbench.config.models import check_alias
from asyncbench.config.notify import Notify, is_address
from asyncbench.config.sources import ProblemSource
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
    "NOT_BUILT",
    "Notify",
    "ProblemSource",
    "Sweep",
    "as_mapping",
    "check_alias",
    "is_address",
    "load_sweep",
    "priced_models",
    "seconds_left",
    "stop_rule_in",
    "sweep_from",
    "with_budget",
]
