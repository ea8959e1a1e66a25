"""Load: calls at times drawn beforehand, whatever is in flight, and what each step of it came to.

In: the `load` block of a sweep and its trials. Out: the same events as of any other lane, and a row of
`steps` for each step. Each module imports only from lines above its own:

    arrivals
    steps
    measuring · searching
    resuming · open_lane
"""

from asyncbench.load.arrivals import due_times as due_times
from asyncbench.load.measuring import MEASURED as MEASURED, why_client_bound as why_client_bound
from asyncbench.load.open_lane import LoadLane as LoadLane
from asyncbench.load.resuming import (
    killed_steps as killed_steps,
    limits_before as limits_before,
    refuse_beyond_limits as refuse_beyond_limits,
    steps_before as steps_before,
)
from asyncbench.load.searching import RateSearch as RateSearch, most_calls as most_calls, probe_s as probe_s
from asyncbench.load.steps import (
    CLIENT_BOUND as CLIENT_BOUND,
    CLOSED_LOOP as CLOSED_LOOP,
    INCOMPLETE as INCOMPLETE,
    MET as MET,
    MISSED as MISSED,
    UNRESOLVED as UNRESOLVED,
    LoadStep as LoadStep,
    StepsBefore as StepsBefore,
    base_in as base_in,
    base_of as base_of,
    few_problems as few_problems,
    listed as listed,
    step_text as step_text,
    to_measure as to_measure,
)
