"""Control of a run that is going on, by the user who started it: over a Unix socket in a private directory.

In: requests as lines of JSON. Out: what the run answers. What is done, `run` says. Each module imports only
from lines above its own:

    place
    asking · serving
"""

from asyncbench.control.asking import (
    KINDS as KINDS,
    Controlled as Controlled,
    RunStanding as RunStanding,
    checked_limits as checked_limits,
    limits_typed as limits_typed,
    pause_run as pause_run,
    resume_run as resume_run,
    set_limits as set_limits,
    standing_of_run as standing_of_run,
    told as told,
)
from asyncbench.control.place import NOTE as NOTE
from asyncbench.control.serving import Peer as Peer, Talk as Talk, controlled as controlled
