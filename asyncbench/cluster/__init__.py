"""Clusters: one run on many machines, with the promises of one process.

In: the lanes of a run, and what workers report. Out: orders for workers, which run lanes. It
knows no file, provider or transport: a run carries the messages. Each module imports only from lines above
its own:

    messages · links
    ray_actors · leases · dealt_lane
    worker_lane · coordinator
    cluster_worker
"""

from asyncbench.cluster.cluster_worker import (
    ClusterWorker as ClusterWorker,
    StaleOrdersError as StaleOrdersError,
)
from asyncbench.cluster.coordinator import (
    Coordinator as Coordinator,
    RivalError as RivalError,
    WorkerStanding as WorkerStanding,
)
from asyncbench.cluster.links import (
    Cluster as Cluster,
    Link as Link,
    Program as Program,
    Start as Start,
    WorkerDiedError as WorkerDiedError,
    WorkerSilentError as WorkerSilentError,
    awake_s as awake_s,
)
from asyncbench.cluster.messages import (
    ClosedTrial as ClosedTrial,
    JournalCosts as JournalCosts,
    JournalNews as JournalNews,
    Orders as Orders,
    WorkerReport as WorkerReport,
)
from asyncbench.cluster.ray_actors import on_ray as on_ray
