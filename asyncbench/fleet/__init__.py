"""Workers: processes beside a run's own that make its calls; everything else stays where it is.

In: a model and its key. Out: a `Provider` whose calls other processes make. Each module imports only from
lines above its own:

    counts · frames · capacity
    worker
    process
    workers
"""

from asyncbench.fleet.capacity import (
    CallCost as CallCost,
    CallKind as CallKind,
    keep_costs as keep_costs,
    kept_costs as kept_costs,
    kind_of as kind_of,
    kinds_of as kinds_of,
)
from asyncbench.fleet.counts import WorkerCounts as WorkerCounts
from asyncbench.fleet.process import (
    PROXY as PROXY,
    python_running as python_running,
    without_keys as without_keys,
)
from asyncbench.fleet.workers import Workers as Workers
