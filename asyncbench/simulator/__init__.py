"""A loopback provider with real sockets, limits and faults.

In: problem sets or recorded replies. Out: a server process that speaks OpenAI's and Anthropic's wire formats,
and takes their batches.
Each module imports only from lines above its own:

    faults · limits · questions · queueing
    answers · counts · wire · recordings
    asked
    openai_wire
    likes · responses_wire · anthropic_wire · voices
    batches.faults · batches.settings
    settings
    served
    casting
    delivery
    batches
    server
    serving · process
    __main__
"""

from asyncbench.simulator.batches.settings import (
    BatchSettings as BatchSettings,
    parse_batch as parse_batch,
)
from asyncbench.simulator.counts import (
    Arrival as Arrival,
    BatchTruth as BatchTruth,
    RunRequest as RunRequest,
    ServerStats as ServerStats,
)
from asyncbench.simulator.faults import parse_fault as parse_fault
from asyncbench.simulator.process import Simulator as Simulator, running as running
from asyncbench.simulator.questions import (
    DOCTORS_ANSWER as DOCTORS_ANSWER,
    DOCTORS_QUESTION as DOCTORS_QUESTION,
)
from asyncbench.simulator.serving import serve as serve
from asyncbench.simulator.settings import Settings as Settings
