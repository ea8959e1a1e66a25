"""What of a sweep has to be asked: its trials, the complaints before anything is spent, reuse and skipping.

In: a sweep, its problem sets and its folder. Out: trials in balanced order, and the bounds of its budgets.
"""

from asyncbench.sweeps.budget_bounds import (
    ASKED,
    check_budget,
    held_models,
    most_for,
    most_usd_of,
    named,
    named_before,
    open_ledger,
    priced,
    unpriced,
)
from asyncbench.sweeps.grading import corrected, graded
from asyncbench.sweeps.preflight import (
    check_conditions,
    check_replays,
    check_sets,
    chosen_models,
    keys_for,
    open_sources,
    raise_file_limit,
    read_env_file,
    sets_in_folder,
    sources_of,
)
from asyncbench.sweeps.retry_room import Room, check_longer
from asyncbench.sweeps.reuse import Answers, check_reuse, take_over
from asyncbench.sweeps.skipping import Before, Needed, settle, still_skipped, stopping_of, unsettled
from asyncbench.sweeps.trials import (
    CELL,
    AskedSet,
    Cell,
    asked_by_model,
    asked_once,
    cell_of,
    places_of,
    planned,
    planned_tasks,
    trials_of,
)

__all__ = [
    "ASKED",
    "CELL",
    "Answers",
    "AskedSet",
    "Before",
    "Cell",
    "Needed",
    "Room",
    "asked_by_model",
    "asked_once",
    "cell_of",
    "check_budget",
    "check_conditions",
    "check_longer",
    "check_replays",
    "check_reuse",
    "check_sets",
    "chosen_models",
    "corrected",
    "graded",
    "held_models",
    "keys_for",
    "most_for",
    "most_usd_of",
    "named",
    "named_before",
    "open_ledger",
    "open_sources",
    "places_of",
    "planned",
    "planned_tasks",
    "priced",
    "raise_file_limit",
    "read_env_file",
    "sets_in_folder",
    "settle",
    "sources_of",
    "still_skipped",
    "stopping_of",
    "take_over",
    "trials_of",
    "unpriced",
    "unsettled",
]
