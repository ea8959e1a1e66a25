"""What each worker did: how many calls, how fast, how late its event loop was, and how long models took."""

from dataclasses import dataclass

from asyncbench.analysis.counting import FolderViews
from asyncbench.records import BATCH
from asyncbench.store.manifest import worker_hosts
from asyncbench.store.schema import LOST

MINUTE_S = 60
PAUSE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUse:
    """What the processes of one worker did, one after the other."""

    worker: str
    host: str | None  # the machine that it was on; None: that of the run
    calls: int
    lost: int  # of them: its process died first
    working_s: float  # from its first call to the end of its last; of a longer pause, ten seconds
    busiest_per_s: float | None  # calls a second, of its busiest minute; None: it worked for less than one
    lag_p50_s: float | None  # its event loop's, or that of the run itself, whichever was later
    lag_p99_s: float | None
    lag_max_s: float | None

    @property
    def calls_per_s(self) -> float | None:
        """Calls a second while it worked; None: for no time that can be told."""
        return self.calls / self.working_s if self.working_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLatency:
    """How long one model took to answer the calls of one worker."""

    model: str
    worker: str
    host: str | None
    answered: int
    ttft_p50_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_p99_s: float | None


# A folder that is continued the next night has a pause in it, in which no worker was there.
_USES = f"""
WITH calls AS (
    SELECT {{name}} AS name, {{machine}} AS machine, worker, status, loop_lag_s,
        epoch_us(started_at) AS began_us,
        began_us + (1e6 * coalesce(latency_s, 0))::BIGINT AS ended_us
    FROM attempts WHERE worker IS NOT NULL
), placed AS (
    SELECT *,
        began_us - lag(began_us, 1, began_us) OVER (PARTITION BY name ORDER BY began_us) AS gap_us,
        count(*) OVER (
            PARTITION BY name ORDER BY began_us
            RANGE BETWEEN {MINUTE_S * 1_000_000 - 1} PRECEDING AND CURRENT ROW
        ) AS of_minute
    FROM calls
)
SELECT name AS worker, any_value(machine) AS machine,
    count(*) AS calls, count(*) FILTER (status = '{LOST}') AS lost,
    (sum(least(gap_us, {PAUSE_S * 1_000_000})) + max(ended_us) - max(began_us))::DOUBLE / 1e6 AS working_s,
    CASE WHEN working_s >= {MINUTE_S} THEN max(of_minute) / {MINUTE_S} END AS busiest_per_s,
    quantile_cont(loop_lag_s, 0.5) AS lag_p50_s, quantile_cont(loop_lag_s, 0.99) AS lag_p99_s,
    max(loop_lag_s) AS lag_max_s
FROM placed GROUP BY name
ORDER BY min(length(split_part(worker, '.', 1))), min(split_part(worker, '.', 1)), min(length(worker)), name
"""  # noqa: S608  made of our own words alone


# A worker of a cluster may have processes of its own, which are on its machine: w003-e1, w003-e1.2.
_LATENCIES = f"""
SELECT model, {{name}} AS worker, {{machine}} AS machine, count(*) AS answered,
    quantile_cont(ttft_s, 0.5) AS ttft_p50_s, quantile_cont(latency_s, 0.5) AS latency_p50_s,
    quantile_cont(latency_s, 0.95) AS latency_p95_s, quantile_cont(latency_s, 0.99) AS latency_p99_s
FROM attempts WHERE worker IS NOT NULL AND status = 'ok' AND mode IS DISTINCT FROM '{BATCH}'
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def worker_uses(views: FolderViews) -> tuple[WorkerUse, ...]:
    """Return what each worker did, by name; of several folders each has its own."""
    hosts = _hosts(views)
    rows = views.rows(_USES.format(name=_named("worker", views), machine=_named(_MACHINE, views)))
    return tuple(WorkerUse(host=hosts.get(row.pop("machine")), **row) for row in rows)


def worker_latencies(views: FolderViews) -> tuple[WorkerLatency, ...]:
    """Return how long each model took by worker, where workers of a cluster asked it; () elsewhere."""
    if not (hosts := _hosts(views)):
        return ()
    machine = _named(_MACHINE, views)
    rows = views.rows(_LATENCIES.format(name=machine, machine=machine))
    return tuple(WorkerLatency(host=hosts.get(row.pop("machine")), **row) for row in rows)


_MACHINE = "split_part(worker, '.', 1)"


def _named(worker: str, views: FolderViews) -> str:
    return f"{worker} || ' in ' || folder" if views.chosen.several else worker


def _hosts(views: FolderViews) -> dict[str, str]:
    """Return on which machines workers of clusters were, by the names that tables have for them."""
    return {
        f"{name} in {label}" if views.chosen.several else name: host
        for label, path in views.folders
        for name, host in worker_hosts(path).items()
    }
