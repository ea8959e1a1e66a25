"""What each worker did: how many calls, how fast, and how late its event loop was."""

from dataclasses import dataclass

from asyncbench.store import LOST
from asyncbench.views import FolderViews

MINUTE_S = 60
PAUSE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUse:
    """What the processes of one worker did, one after the other."""

    worker: str
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


# A folder that is continued the next night has a pause in it, in which no worker was there.
_USES = f"""
WITH calls AS (
    SELECT {{name}} AS name, length(worker) AS digits, status, loop_lag_s, epoch_us(started_at) AS began_us,
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
SELECT name AS worker, count(*) AS calls, count(*) FILTER (status = '{LOST}') AS lost,
    (sum(least(gap_us, {PAUSE_S * 1_000_000})) + max(ended_us) - max(began_us))::DOUBLE / 1e6 AS working_s,
    CASE WHEN working_s >= {MINUTE_S} THEN max(of_minute) / {MINUTE_S} END AS busiest_per_s,
    quantile_cont(loop_lag_s, 0.5) AS lag_p50_s, quantile_cont(loop_lag_s, 0.99) AS lag_p99_s,
    max(loop_lag_s) AS lag_max_s
FROM placed GROUP BY name, digits ORDER BY digits, name
"""  # noqa: S608  made of our own words alone


def worker_uses(views: FolderViews) -> tuple[WorkerUse, ...]:
    """Return what each worker did, by name; of several folders each has its own."""
    name = "worker || ' in ' || folder" if views.chosen.several else "worker"
    return tuple(WorkerUse(**row) for row in views.rows(_USES.format(name=name)))
