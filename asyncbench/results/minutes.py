"""A folder's calls over time: latency and throughput by minute, how many at once, how many refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncbench.errors import ErrorKind
from asyncbench.records import BATCH
from asyncbench.results.names import Entrant
from asyncbench.views import CALLS_IN_REAL_TIME, FolderViews


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The answered calls of one that was asked, which began within some time."""

    name: str  # of the model, with condition and run where it has several, as tables have it
    at: int  # milliseconds since 1970, UTC: when the time begins
    seconds: float  # how long it is
    calls: int
    p50_s: float | None  # latency, from request sent to last byte
    p95_s: float | None
    output_tokens: int | None  # None: of no call are they known


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLoad:
    """How many calls a folder holds, and what they went through."""

    calls: int
    rate_limited: int  # that ended with a 429, those of a load left out: they are not tried again
    most_at_once: int  # in flight, of all models together, those in batches left out
    in_batches: int  # of `calls`


_AT_ONCE = f"""
SELECT coalesce(max(calls), 0) AS most FROM (
    SELECT sum(step) OVER (ORDER BY moment, step ROWS UNBOUNDED PRECEDING) AS calls FROM (
        SELECT epoch_us(started_at) AS moment, 1 AS step FROM {CALLS_IN_REAL_TIME}
        UNION ALL
        SELECT epoch_us(started_at) + (1e6 * coalesce(latency_s, 0))::BIGINT, -1 FROM {CALLS_IN_REAL_TIME}
    )
)
"""  # noqa: S608  made of our own words alone


def call_load(views: FolderViews) -> CallLoad:
    """Return how many calls there were, how many at once, and how many got a 429."""
    (counts,) = views.rows(
        f"""SELECT count(*) AS calls, count(*) FILTER (mode = '{BATCH}') AS in_batches,
            count(*) FILTER (status = '{ErrorKind.RATE_LIMITED}' AND load IS NULL) AS rate_limited
        FROM attempts"""  # noqa: S608  made of our own words alone
    )
    (found,) = views.rows(_AT_ONCE)
    return CallLoad(**counts, most_at_once=int(found["most"]))


def minutes_of(views: FolderViews, names: Mapping[Entrant, str]) -> tuple[Minute, ...]:
    """Return latency and throughput over time, by name and then by time: the view `minutes`.

    Calls of trials that are still open have no condition or run yet: where a model has several, they go by
    the model's name alone.
    """
    found = views.rows("SELECT * REPLACE (epoch_ms(began) AS began) FROM minutes")
    minutes = (
        Minute(
            name=names.get((row["run"], row["model"], row["condition"]), row["model"]),
            at=row["began"],
            seconds=60.0 * row["minutes"],
            calls=row["calls"],
            p50_s=row["latency_p50_s"],
            p95_s=row["latency_p95_s"],
            output_tokens=row["output_tokens"],
        )
        for row in found
    )
    return tuple(sorted(minutes, key=lambda minute: (minute.name, minute.at)))
