"""`report --style quota`: the used share of each limit, the causes of the rest, and the work of workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import BatchUse, FolderReport, batch_notes, batch_uses, note_of_simulated
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


# What the processes of one worker did, one after the other: `working_s` is from its first call to the end of
# its last, with ten seconds of a longer pause, as a folder has that is continued the next night.
# `busiest_per_s`: calls a second of its busiest minute; NULL: it worked for less than one. Lags are those of
# its event loop, or of the run itself, whichever was later. `host`: its machine.
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
    """Return what each worker did, by name, and how long models took by worker, where a cluster asked them.

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
        row["host"] = hosts.get(row["host"])  # None: it was on the machine of the run
    return uses, latencies


# ── quota


MOST_ROWS: Final = 120  # of minutes; more are shown by the hour
WORTH_SHOWING: Final = 0.005  # of the time
WAIT_NAMES: Final = waits.WORDS | {waits.WORK: "work"}  # afterwards nobody asks which calls were the last
MEANING: Final = (
    "Used: part of the limit in force, while the lane ran. Limited by: what the lane waited for most, apart "
    "from work to do."
)
LEFT_OUT: Final = "They are left out here: batches have limits of their own."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """What a lane did within some time."""

    lane: str
    started_at: datetime
    seconds: float  # that it ran
    used: dict[str, int]  # requests, tokens, input_tokens, output_tokens
    used_of_allowed: dict[str, int]  # the same, of the time in which there was a limit
    allowed: dict[str, float]  # of those that have a limit: what it allows in that time
    refused: int  # 429, 503, 529
    most_in_flight: int
    share: float  # of its limits that it allowed itself at the end
    waited_s: dict[str, float]  # by cause

    @property
    @in_data("shares")
    def shares(self) -> dict[str, float]:
        """The part of each limit that was used, 1 is all."""
        return {name: self.used_of_allowed[name] / most for name, most in self.allowed.items() if most}

    @property
    @in_data("bound_by")
    def bound_by(self) -> str | None:
        """What it waited for most; None: for nothing but work."""
        causes = {cause: seconds for cause, seconds in self.waited_s.items() if cause != waits.WORK}
        worst = max(causes, key=causes.__getitem__, default=None)
        if worst is None or causes[worst] <= WORTH_SHOWING * self.seconds:
            return None
        return waits.BACK_OFF if worst in LIMITS and worst not in self.allowed else worst


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReport(FolderReport):
    """The lanes of a folder, as a whole and minute by minute, and its workers."""

    lanes: tuple[LimitUse, ...]
    hours: tuple[LimitUse, ...] = field(metadata=HIDDEN)
    minutes: tuple[LimitUse, ...]
    batches: Sequence[BatchUse]
    workers: Sequence[Row]
    worker_latencies: Sequence[Row]  # none without a cluster

    def _notes(self) -> Iterator[str]:
        yield from self._simulated()
        yield self.nothing or MEANING
        yield from batch_notes(self.batches, LEFT_OUT)

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """What to say of a folder without rate limits."""
        if self.lanes:
            return None
        if self.batches:
            return f"{self.folder} has no calls in real time, so no rate limit was used."
        return (
            f"{self.folder} has no record of rate limits. A run writes it minute by minute, an import never. "
            "Wait for the run, run its sweep first, or name another folder."
        )

    def _sheets(self) -> Iterator[Sheet]:
        if self.lanes:
            yield from self._lane_sheets()
        yield filled(Sheet.of("By worker", _WORKERS, self.workers))
        yield filled(Sheet.of("Latency by worker", _LATENCIES, self.worker_latencies, labels=2))

    def _lane_sheets(self) -> Iterator[Sheet]:
        limits = [name for name in LIMITS if any(name in one.allowed for one in self.lanes)]
        causes = [name for name in waits.REASONS if any(one.waited_s[name] for one in self.lanes)]
        yield _sheet("By lane", self.lanes, limits, causes, at=None)
        # A change by hand ends a minute: what is left of it may be nothing.
        minutes = [one for one in self.minutes if one.used["requests"] or round(one.seconds)]
        if len(minutes) <= MOST_ROWS:
            yield _sheet("By minute", minutes, limits, causes, at="%H:%M:%S")
        else:
            yield _sheet("By hour (--json has every minute)", self.hours, limits, causes, at="%d %H:%M")


# Sums of lanes' minutes: of the time in which there was a limit alone, and of what it allows in that time.
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
    """Return what became of the limits of runs; raises StoreError for what cannot be read."""
    rows = views.table(_USES).to_pylist()
    workers, latencies = workers_in(views)
    return QuotaReport(
        batches=batch_uses(views),
        workers=workers,
        worker_latencies=latencies,
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views, known=bool(views.manifest.get("simulated"))),
        lanes=tuple(_use(row) for row in rows if row["minute"] is row["hour"] is None),
        hours=tuple(_use(row) for row in rows if row["hour"] is not None),
        minutes=tuple(_use(row) for row in rows if row["minute"] is not None),
    )


def limits_over_time(views: FolderViews) -> Iterator[tuple[int, float, LimitUse]]:
    """Yield what each lane did in bins that fit the span: when one begins (ms since 1970), its seconds."""
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


def _sheet(
    title: str, uses: Iterable[LimitUse], limits: list[str], causes: list[str], *, at: str | None
) -> Sheet:
    columns: dict[str, Callable[[LimitUse], str]] = {
        "lane": lambda one: one.lane,
        "at (UTC)": lambda one: one.started_at.astimezone(UTC).strftime(at or ""),
        "time running": lambda one: str(timedelta(seconds=round(one.seconds))),
        "requests": lambda one: count(one.used["requests"]),
        **{f"{WAIT_NAMES[name]} used": partial(_share_of, name) for name in limits},
        "refused": lambda one: count(one.refused),
        "most in flight": lambda one: count(one.most_in_flight),
        BOUND_BY: lambda one: WAIT_NAMES[one.bound_by] if one.bound_by else MISSING,
        **{f"waiting: {WAIT_NAMES[name]}": partial(_waited_for, name) for name in causes},
    }
    if at is None:
        del columns["at (UTC)"]
    return Sheet.of(title, columns, uses, labels=2 if at else 1)


def _share_of(limit: str, one: LimitUse) -> str:
    return percent(one.shares.get(limit))


def _waited_for(cause: str, one: LimitUse) -> str:
    share = one.waited_s[cause] / one.seconds if one.seconds else 0.0
    return percent(share if share > WORTH_SHOWING else None)


def _figure(value: float | None, decimals: int = 1) -> str:
    return MISSING if value is None else f"{value:,.{decimals}f}"


def _in_ms(lag_s: float | None) -> str:
    return _figure(None if lag_s is None else 1000 * lag_s)


_WORKERS: Final[Columns[Row]] = {
    "worker": lambda one: one["worker"],
    "host": lambda one: one["host"] or MISSING,
    "calls made": lambda one: count(one["calls"]),
    "lost calls": lambda one: count(one["lost"]) if one["lost"] else MISSING,
    "calls per s": lambda one: _figure(one["calls_per_s"]),
    "busiest minute": lambda one: _figure(one["busiest_per_s"]),
    "lag p50 ms": lambda one: _in_ms(one["lag_p50_s"]),
    "lag p99 ms": lambda one: _in_ms(one["lag_p99_s"]),
    "lag max ms": lambda one: _in_ms(one["lag_max_s"]),
}
_LATENCIES: Final[Columns[Row]] = {
    "model": lambda one: one["model"],
    "worker": lambda one: one["worker"],
    "host": lambda one: one["host"] or MISSING,
    "answered": lambda one: count(one["answered"]),
    "TTFT p50 s": lambda one: _figure(one["ttft_p50_s"], 3),
    "latency p50 s": lambda one: _figure(one["latency_p50_s"], 3),
    "latency p95 s": lambda one: _figure(one["latency_p95_s"], 3),
    "latency p99 s": lambda one: _figure(one["latency_p99_s"], 3),
}
