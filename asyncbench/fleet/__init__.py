"""Workers: processes beside a run's own that make its calls; everything else stays where it is.

In: a model and its key. Out: a `Provider` whose calls other processes make. Each module imports only from
lines above its own:

    frames
    worker
    process
    workers
"""

from asyncbench.fleet.process import (
    PROXY as PROXY,
    WorkerCounts as WorkerCounts,
    without_keys as without_keys,
)
from asyncbench.fleet.workers import Workers as Workers
