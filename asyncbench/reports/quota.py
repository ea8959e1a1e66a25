"""`report --style quota`: the used share of each limit, the causes of the rest, and the work of workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from asyncbench.analysis.batch_use import BatchUse, batch_notes, batch_uses
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.folder_report import FolderReport
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import BIN_OF_MINUTES
from asyncbench.records import BATCH, waits
from asyncbench.store.manifest import worker_hosts
from asyncbench.store.schema import LIMITS, LOST
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.headings import BOUND_BY
from asyncbench.tables.numbers import MISSING, count, percent
from asyncbench.tables.report import Columns, Sheet, filled

# ── What each worker did


Row = dict[str, Any]  # Any: of a query
MINUTE_S = 60
PAUSE_S = 10


# A row for each worker, over all its processes. `working_s` is the time from its first call to the end of its
# last; a pause counts for at most ten seconds, since a folder may be continued the next night.
# `busiest_per_s`: calls a second of its busiest minute; NULL: it worked for less than a minute. A lag is that
# of the worker's event loop or of the run itself, whichever is greater. `host`: the worker's machine.
_WORKER_USES = f"""
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
SELECT name AS worker, any_value(machine) AS host,
    count(*) AS calls, count(*) FILTER (status = '{LOST}') AS lost,
    (sum(least(gap_us, {PAUSE_S * 1_000_000})) + max(ended_us) - max(began_us))::DOUBLE / 1e6 AS working_s,
    CASE WHEN working_s >= {MINUTE_S} THEN max(of_minute) / {MINUTE_S} END AS busiest_per_s,
    quantile_cont(loop_lag_s, 0.5) AS lag_p50_s, quantile_cont(loop_lag_s, 0.99) AS lag_p99_s,
    max(loop_lag_s) AS lag_max_s, calls / nullif(working_s, 0) AS calls_per_s
FROM placed GROUP BY name
ORDER BY min(length(split_part(worker, '.', 1))), min(split_part(worker, '.', 1)), min(length(worker)), name
"""  # noqa: S608  made of our own words alone


# A worker of a cluster may have processes of its own, which are on its machine: w003-e1, w003-e1.2.
_LATENCY_OF_WORKERS = f"""
SELECT model, {{name}} AS worker, {{machine}} AS host, count(*) AS answered,
    quantile_cont(ttft_s, 0.5) AS ttft_p50_s, quantile_cont(latency_s, 0.5) AS latency_p50_s,
    quantile_cont(latency_s, 0.95) AS latency_p95_s, quantile_cont(latency_s, 0.99) AS latency_p99_s
FROM attempts WHERE worker IS NOT NULL AND status = 'ok' AND mode IS DISTINCT FROM '{BATCH}'
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def workers_in(views: FolderViews) -> tuple[list[Row], list[Row]]:
    """Return the work of each worker, and the times of models by worker, where a cluster asked them.

    Of several folders each has its own workers.
    """
    folder = " || ' in ' || folder" if views.chosen.several else ""
    machine = f"split_part(worker, '.', 1){folder}"
    uses = views.rows(_WORKER_USES.format(name=f"worker{folder}", machine=machine))
    hosts = {  # machines of workers of clusters, by the names that tables have for them
        f"{name} in {label}" if views.chosen.several else name: host
        for label, path in views.folders
        for name, host in worker_hosts(path).items()
    }
    latencies = views.rows(_LATENCY_OF_WORKERS.format(name=machine, machine=machine)) if hosts else []
    for row in (*uses, *latencies):
        row["host"] = hosts.get(row["host"])  # None: the worker was on the machine of the run
    return uses, latencies


# ── quota


MOST_ROWS: Final = 120  # more minutes than that are shown by the hour
WORTH_SHOWING: Final = 0.005  # a wait is shown from this share of the time
WAIT_NAMES: Final = waits.WORDS | {waits.WORK: "work"}  # a report need not tell apart the last calls of a run
MEANING: Final = (
    "Used: part of the limit in force, while the lane ran. Limited by: what the lane waited for most, apart "
    "from work to do."
)
LEFT_OUT: Final = "They are left out here: batches have limits of their own."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """What a lane used of its limits within a span of time."""

    lane: str
    started_at: datetime
    seconds: float  # how long the lane ran
    used: dict[str, int]  # requests, tokens, input_tokens, output_tokens
    used_of_allowed: dict[str, int]  # the same, used while there was a limit
    allowed: dict[str, float]  # what each limit that there was allows in that time
    refused: int  # replies with status 429, 503 or 529
    most_in_flight: int
    share: float  # the share of its limits that the lane allowed itself at the end
    waited_s: dict[str, float]  # by cause

    @property
    @in_data("shares")
    def shares(self) -> dict[str, float]:
        """The used share of each limit; 1 is all of it."""
        return {
            name: self.used_of_allowed[name] / allowed for name, allowed in self.allowed.items() if allowed
        }

    @property
    @in_data("bound_by")
    def bound_by(self) -> str | None:
        """What the lane waited for most, or None if it waited for nothing but work."""
        causes = {cause: seconds for cause, seconds in self.waited_s.items() if cause != waits.WORK}
        worst = max(causes, key=causes.__getitem__, default=None)
        if worst is None or causes[worst] <= WORTH_SHOWING * self.seconds:
            return None
        return waits.BACK_OFF if worst in LIMITS and worst not in self.allowed else worst


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReport(FolderReport):
    """The lanes of a folder, over its whole time and minute by minute, and its workers."""

    lanes: tuple[LimitUse, ...]
    hours: tuple[LimitUse, ...] = field(metadata=HIDDEN)
    minutes: tuple[LimitUse, ...]
    batches: Sequence[BatchUse]
    workers: Sequence[Row]
    worker_latencies: Sequence[Row]  # empty without a cluster

    def notes_above(self) -> Iterator[str]:
        yield from FolderReport.notes_above(self)
        yield from batch_notes(self.batches, LEFT_OUT)

    def remarks(self) -> Iterator[str]:
        yield MEANING

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without rate limits gets instead of tables."""
        if self.lanes:
            return None
        if self.batches:
            return f"{self.folder} has no calls in real time, so no rate limit was used."
        return (
            f"{self.folder} has no record of rate limits. A run writes it minute by minute, an import never. "
            "Wait for the run, run its sweep first, or name another folder."
        )

    def sheets(self) -> Iterator[Sheet]:
        limits = [name for name in LIMITS if any(name in use.allowed for use in self.lanes)]
        causes = [name for name in waits.REASONS if any(use.waited_s[name] for use in self.lanes)]
        yield _lane_sheet("By lane", self.lanes, limits, causes, time_format=None)

        # When limits are changed by hand, a minute ends: what is left of it may be nothing.
        minutes = [use for use in self.minutes if use.used["requests"] or round(use.seconds)]
        if len(minutes) <= MOST_ROWS:
            yield _lane_sheet("By minute", minutes, limits, causes, time_format="%H:%M:%S")
        else:
            title = "By hour (--json has every minute)"
            yield _lane_sheet(title, self.hours, limits, causes, time_format="%d %H:%M")

        yield filled(Sheet.of("By worker", _WORKERS, self.workers))
        yield filled(Sheet.of("Latency by worker", _LATENCIES, self.worker_latencies, labels=2))


# Sums over the minutes of lanes. NAME_limited is what was used while there was a limit, NAME_allowed what the
# limit allows in that time.
_SUMS = f"""
min(started_at) AS started_at, sum(seconds) AS seconds,
    {", ".join(f"sum({name})::BIGINT AS {name}" for name in LIMITS)},
    {
    ", ".join(
        f"sum(CASE WHEN {name}_limit IS NOT NULL THEN {name} END)::BIGINT AS {name}_limited, "
        f"sum({name}_limit * seconds / 60) AS {name}_allowed"
        for name in LIMITS
    )
},
    sum(refused)::BIGINT AS refused, max(most_in_flight) AS most_in_flight,
    arg_max(share, started_at) AS share,
    {", ".join(f"coalesce(sum(waited_for_{name}_s), 0) AS {name}_s" for name in waits.REASONS)}
"""
_USES = f"""
SELECT lane, minute, hour, {_SUMS}
FROM (SELECT *, row_number() OVER () AS minute, date_trunc('hour', started_at) AS hour FROM lanes)
GROUP BY GROUPING SETS ((lane), (lane, hour), (lane, minute)) ORDER BY lane, started_at
"""  # noqa: S608  made of our own words alone
_OVER_TIME = f"""
WITH bins AS (SELECT {BIN_OF_MINUTES} AS bin_s FROM (
    SELECT epoch_ms(max(started_at)) - epoch_ms(min(started_at)) AS span_ms FROM lanes
))
SELECT lane, bin_s, epoch_ms(started_at) // (1000 * bin_s) AS bin, {_SUMS}
FROM lanes, bins GROUP BY ALL ORDER BY lane, bin
"""  # noqa: S608  made of our own words alone


def quota_of(views: FolderViews) -> QuotaReport:
    """Return how runs used their limits; raises StoreError for a folder that cannot be read."""
    rows = views.table(_USES).to_pylist()
    workers, latencies = workers_in(views)
    return QuotaReport(
        batches=batch_uses(views),
        workers=workers,
        worker_latencies=latencies,
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views, simulated=bool(views.manifest.get("simulated"))),
        lanes=tuple(_use(row) for row in rows if row["minute"] is row["hour"] is None),
        hours=tuple(_use(row) for row in rows if row["hour"] is not None),
        minutes=tuple(_use(row) for row in rows if row["minute"] is not None),
    )


def limits_over_time(views: FolderViews) -> Iterator[tuple[int, float, LimitUse]]:
    """Yield (start in ms since 1970, seconds, use) of each lane, in bins whose width fits the span."""
    for row in views.table(_OVER_TIME).to_pylist():
        yield 1000 * row["bin_s"] * row["bin"], float(row["bin_s"]), _use(row)


def _use(row: Mapping[str, Any]) -> LimitUse:  # Any: sums of `lanes`
    limited = [name for name in LIMITS if row[f"{name}_allowed"] is not None]
    return LimitUse(
        **{
            name: row[name]
            for name in ("lane", "started_at", "seconds", "refused", "most_in_flight", "share")
        },
        used={name: row[name] for name in LIMITS},
        used_of_allowed={name: row[f"{name}_limited"] for name in limited},
        allowed={name: row[f"{name}_allowed"] for name in limited},
        waited_s={name: row[f"{name}_s"] for name in waits.REASONS},
    )


def _lane_sheet(
    title: str, uses: Iterable[LimitUse], limits: list[str], causes: list[str], *, time_format: str | None
) -> Sheet:
    """Return a table of what lanes did, with the time where it has a format."""
    columns: dict[str, Callable[[LimitUse], str]] = {
        "lane": lambda use: use.lane,
        "at (UTC)": lambda use: use.started_at.astimezone(UTC).strftime(time_format or ""),
        "time running": lambda use: str(timedelta(seconds=round(use.seconds))),
        "requests": lambda use: count(use.used["requests"]),
        **{f"{WAIT_NAMES[name]} used": partial(_used_share, name) for name in limits},
        "refused": lambda use: count(use.refused),
        "most in flight": lambda use: count(use.most_in_flight),
        BOUND_BY: lambda use: WAIT_NAMES[use.bound_by] if use.bound_by else MISSING,
        **{f"waiting: {WAIT_NAMES[name]}": partial(_waited_share, name) for name in causes},
    }
    if time_format is None:
        del columns["at (UTC)"]
    return Sheet.of(title, columns, uses, labels=2 if time_format else 1)


def _used_share(limit: str, use: LimitUse) -> str:
    return percent(use.shares.get(limit))


def _waited_share(cause: str, use: LimitUse) -> str:
    share = use.waited_s[cause] / use.seconds if use.seconds else 0.0
    return percent(share if share > WORTH_SHOWING else None)


def _figure(value: float | None, decimals: int = 1) -> str:
    return MISSING if value is None else f"{value:,.{decimals}f}"


def _milliseconds(lag_s: float | None) -> str:
    return _figure(None if lag_s is None else 1000 * lag_s)


_WORKERS: Final[Columns[Row]] = {
    "worker": lambda row: row["worker"],
    "host": lambda row: row["host"] or MISSING,
    "calls made": lambda row: count(row["calls"]),
    "lost calls": lambda row: count(row["lost"]) if row["lost"] else MISSING,
    "calls per s": lambda row: _figure(row["calls_per_s"]),
    "busiest minute": lambda row: _figure(row["busiest_per_s"]),
    "lag p50 ms": lambda row: _milliseconds(row["lag_p50_s"]),
    "lag p99 ms": lambda row: _milliseconds(row["lag_p99_s"]),
    "lag max ms": lambda row: _milliseconds(row["lag_max_s"]),
}
_LATENCIES: Final[Columns[Row]] = {
    "model": lambda row: row["model"],
    "worker": lambda row: row["worker"],
    "host": lambda row: row["host"] or MISSING,
    "answered": lambda row: count(row["answered"]),
    "TTFT p50 s": lambda row: _figure(row["ttft_p50_s"], 3),
    "latency p50 s": lambda row: _figure(row["latency_p50_s"], 3),
    "latency p95 s": lambda row: _figure(row["latency_p95_s"], 3),
    "latency p99 s": lambda row: _figure(row["latency_p99_s"], 3),
}
