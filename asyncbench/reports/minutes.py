"""A folder's calls and how long they took: by who was asked, over time, how many at once, how many failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant
from asyncbench.analysis.views import BEGAN, CALLS_IN_BINS, CALLS_IN_REAL_TIME
from asyncbench.errors import ErrorKind
from asyncbench.records import BATCH

TIMED: Final = {"TTFT": "ttft_s", "latency": "latency_s", "queued": "queued_s"}  # by what it is called
SHARES: Final = (0.5, 0.9, 0.95, 0.99)  # of the calls, that took no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The answered calls of one that was asked, which began within some time."""

    entrant: Entrant  # of open trials with an empty run and condition, where the model has several
    at: int  # milliseconds since 1970, UTC: when the time begins
    seconds: float  # how long it is
    calls: int
    p50_s: float | None  # latency, from request sent to last byte
    p95_s: float | None
    output_tokens: int | None  # None: of no call are they known


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCalls:
    """Calls of one that was asked which ended alike, without an answer, and began within some time."""

    entrant: Entrant
    at: int
    seconds: float
    status: str
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesOfCalls:
    """How long the answered calls of one that was asked took, those in batches left out."""

    entrant: Entrant
    answered: int
    known: Mapping[str, int]  # of them, by `TIMED`: those whose time is known
    percentiles: Mapping[str, Sequence[float]]  # seconds at each of `SHARES`; of the known times


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
    (peak,) = views.rows(_AT_ONCE)
    return CallLoad(**counts, most_at_once=int(peak["most"]))


def minutes_of(views: FolderViews) -> tuple[Minute, ...]:
    """Return latency and throughput over time, by entrant and then by time: the view `minutes`.

    Bins are of seconds in a short run, of minutes in a night.
    """
    return tuple(
        Minute(
            entrant=_entrant(row),
            at=row["began"],
            seconds=60.0 * row["minutes"],
            calls=row["calls"],
            p50_s=row["latency_p50_s"],
            p95_s=row["latency_p95_s"],
            output_tokens=row["output_tokens"],
        )
        for row in views.rows("SELECT * REPLACE (epoch_ms(began) AS began) FROM minutes")
    )


_FAILED = f"""
{CALLS_IN_BINS}
SELECT run, model, condition, epoch_ms({BEGAN}) AS at, seconds, status, count(*) AS calls
FROM calls, bins WHERE status <> 'ok' GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def failed_calls(views: FolderViews) -> tuple[FailedCalls, ...]:
    """Return the calls without an answer over time, in the bins of `minutes_of`."""
    return tuple(
        FailedCalls(
            entrant=_entrant(row),
            at=row["at"],
            seconds=float(row["seconds"]),
            status=row["status"],
            calls=row["calls"],
        )
        for row in views.rows(_FAILED)
    )


_TIMES = f"""
{CALLS_IN_BINS}
SELECT run, model, condition, count(*) AS answered,
    {
    ", ".join(
        f"count({column}) AS known_{column}, quantile_cont({column}, {list(SHARES)}) AS {column}"
        for column in TIMED.values()
    )
}
FROM calls WHERE status = 'ok' GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def times_of_calls(views: FolderViews) -> tuple[TimesOfCalls, ...]:
    """Return how long answered calls took, by entrant."""
    return tuple(
        TimesOfCalls(
            entrant=_entrant(row),
            answered=row["answered"],
            known={name: row[f"known_{column}"] for name, column in TIMED.items()},
            percentiles={name: row[column] for name, column in TIMED.items() if row[column] is not None},
        )
        for row in views.rows(_TIMES)
    )


def _entrant(row: Mapping[str, Any]) -> Entrant:  # Any: of a query
    return row["run"] or "", row["model"], row["condition"] or ""
