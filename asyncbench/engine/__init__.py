"""When each trial is asked: lanes, limits, retries, budgets.

In: requests, and three functions (`ask`, `grade`, `keep`). Out: events for `keep`, counters for the screen.
This room knows no provider, suite or file.
"""

from asyncbench.engine.always_valid import always_valid_interval
from asyncbench.engine.asker import Asker, MostUsd
from asyncbench.engine.budget import Account, Cap, CostBound, Ledger
from asyncbench.engine.closing import GRADER_ERROR
from asyncbench.engine.lane import Lane, Scheduler
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN, Counting
from asyncbench.engine.stopping import CellCounts, ConditionCell, Stopping, still_stopped
from asyncbench.engine.telemetry import Counters, LoopLag

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "GRADER_ERROR",
    "Account",
    "Asker",
    "Cap",
    "CellCounts",
    "ConditionCell",
    "CostBound",
    "Counters",
    "Counting",
    "Lane",
    "Ledger",
    "LoopLag",
    "MostUsd",
    "Scheduler",
    "Stopping",
    "always_valid_interval",
    "still_stopped",
]
