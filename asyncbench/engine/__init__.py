"""When each trial is asked: lanes, limits, retries, budgets.

In: requests, and three functions (`ask`, `grade`, `keep`). Out: events for `keep`, counters for the screen.
This room knows no provider, suite or file.
"""

from asyncbench.engine.always_valid import (
    Interval as Interval,
    always_valid_interval as always_valid_interval,
)
from asyncbench.engine.asker import Asker as Asker, Keep as Keep, MostUsd as MostUsd
from asyncbench.engine.attempts import (
    INTERRUPTED as INTERRUPTED,
    LOST as LOST,
    BatchOfCall as BatchOfCall,
)
from asyncbench.engine.budget import (
    AS_BOUND as AS_BOUND,
    NOTHING as NOTHING,
    Account as Account,
    Cap as Cap,
    CostBound as CostBound,
    Hold as Hold,
    Ledger as Ledger,
)
from asyncbench.engine.closing import GRADER_ERROR as GRADER_ERROR
from asyncbench.engine.lane import Lane as Lane
from asyncbench.engine.lane_model import LaneModel as LaneModel
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN as CHARACTERS_PER_TOKEN, Counting as Counting
from asyncbench.engine.minutes import change_alone as change_alone
from asyncbench.engine.scheduler import (
    AnyLane as AnyLane,
    Scheduler as Scheduler,
    SteeredLane as SteeredLane,
    note_change as note_change,
)
from asyncbench.engine.stopping import (
    CellCounts as CellCounts,
    ConditionCell as ConditionCell,
    Stopping as Stopping,
    still_stopped as still_stopped,
)
from asyncbench.engine.telemetry import (
    BatchCounts as BatchCounts,
    Counters as Counters,
    LoopLag as LoopLag,
    StepCounts as StepCounts,
)
from asyncbench.engine.turn import Turn as Turn
