"""One run of a sweep, from its start to its summary.

In: a sweep and its `RunOptions`. Out: a `Summary`; the results are in the folder. A run prepares, drives,
settles and sums up; progress, Ctrl-C and notifications belong here. Each module imports only from lines above
its own:

    faults · interrupts · options · progress · channels
    summary
    notify
    state
    forecasts · askers
    preparing · driving
    settling · summing_up
    sweep_run
"""

from asyncbench.run.options import RunOptions
from asyncbench.run.progress import default_screen, spent_text
from asyncbench.run.summary import Exit, Summary
from asyncbench.run.sweep_run import run_as_told, run_sweep

__all__ = [
    "Exit",
    "RunOptions",
    "Summary",
    "default_screen",
    "run_as_told",
    "run_sweep",
    "spent_text",
]
