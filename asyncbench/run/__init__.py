"""One run of a sweep, from its start to its summary.

In: a sweep. Out: a `Summary`; the results are in the folder. Progress, Ctrl-C and notifications belong here.
"""

from asyncbench.run.progress import default_screen, spent_text
from asyncbench.run.summary import Exit, Summary
from asyncbench.run.sweep_run import run_sweep

__all__ = [
    "Exit",
    "Summary",
    "default_screen",
    "run_sweep",
    "spent_text",
]
