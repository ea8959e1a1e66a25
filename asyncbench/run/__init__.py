"""One run of a sweep, from its start to its summary.

In: a sweep and its `RunOptions`. Out: a `Summary`; the results are in the folder. A run prepares, drives,
settles and sums up; progress, Ctrl-C and notifications belong here. Each module imports only from lines above
its own:

    faults · interrupts · options · channels · costs · refusals
    picture
    progress · summary
    notify
    state
    batch_news
    forecasts · askers · loading
    lanes · serving · steering
    preparing · driving
    settling · summing_up
    sweep_run
    cancelling
    refreshing
"""

from asyncbench.run.cancelling import (
    cancel_as_told as cancel_as_told,
    cancel_batches as cancel_batches,
    price_of_cancelling as price_of_cancelling,
    sweep_in as sweep_in,
)
from asyncbench.run.costs import spent_text as spent_text
from asyncbench.run.options import RunOptions as RunOptions
from asyncbench.run.progress import default_screen as default_screen
from asyncbench.run.refreshing import refresh_batches as refresh_batches
from asyncbench.run.summary import Exit as Exit, Summary as Summary
from asyncbench.run.sweep_run import (
    run_as_told as run_as_told,
    run_load as run_load,
    run_sweep as run_sweep,
)
