"""Figures of how each model of a folder was delivered, as if models were providers of the same one.

Calls of sweeps and of loads count alike. Calls that warm up a step, that were lost, or that went out in a
batch do not count. Times of a load are of one rate that all models were asked at, and count from when a call
was due.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import quoted
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.views import counts_by
from asyncbench.errors import ErrorKind
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, MET, base_in
from asyncbench.records import BATCH
from asyncbench.reports.load.steps import CallTimes, StepFigures
from asyncbench.stats.proportions import Proportion
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import LIMITS, LOST
from asyncbench.tables.data import HIDDEN, in_data

# `seen_s`, `first_s`: latency and time to first token as a user sees them, from when the call was due.
# `pace`: tokens a second after the first token; hidden thinking does not count.
_CALLS: Final = f"""
SELECT attempts.model, attempts.provider, coalesce(attempts.load, '') AS load, started_at,
    status = 'ok' AS answered,
    status <> 'ok' AND (status IN ('{ErrorKind.RATE_LIMITED}', '{ErrorKind.OVERLOADED}')
        OR coalesce(http_status IN (429, 503, 529), false)) AS refused,
    retry_after_s, connect_s, started_at + to_microseconds((1e6 * latency_s)::BIGINT) AS ended_at,
    coalesce(late_s, 0) + latency_s AS seen_s, coalesce(late_s, 0) + ttft_s AS first_s,
    CASE WHEN output_tokens - coalesce(hidden, 0) > 1 AND latency_s > ttft_s
        THEN (output_tokens - coalesce(hidden, 0) - 1) / (latency_s - ttft_s) END AS pace
FROM attempts LEFT JOIN (
    SELECT trial_id, reasoning_tokens AS hidden FROM trials
    WHERE {{0}} AND reasoning_tokens > 0 AND reasoning_text IS NULL
) USING (trial_id)
WHERE {{0}} AND mode IS DISTINCT FROM '{BATCH}' AND status <> '{LOST}' AND phase IS DISTINCT FROM 'warmup'
"""  # noqa: S608  made of our own words alone

_CALLS_BY_MODEL: Final = "SELECT model, count(*) AS calls FROM attempts GROUP BY model"
CALLS_AT_ONCE: Final = 250_000  # DuckDB holds about so many calls as a table

_COUNTS: Final = """
SELECT model, any_value(provider) AS provider, count(*) AS calls, count(*) FILTER (answered) AS answered,
    count(*) FILTER (refused) AS refused, count(connect_s) AS connections,
    quantile_disc(connect_s, 0.5) AS connect_p50_s, min(started_at) AS first_at, max(started_at) AS last_at
FROM provider_calls GROUP BY model
"""

# Each refusal that names a time to wait is joined with the first call after that time (in a load: of the same
# step). `told`: number of these refusals; `obeyed`: those with such a call; `admitted`: those whose call was
# not refused.
_OBEYED: Final = """
WITH told AS (
    SELECT model, load, retry_after_s, ended_at + to_microseconds((1e6 * retry_after_s)::BIGINT) AS until
    FROM provider_calls WHERE refused AND retry_after_s IS NOT NULL AND ended_at IS NOT NULL
)
SELECT told.model, count(*) AS told, quantile_disc(told.retry_after_s, 0.5) AS median_s,
    count(after.started_at) AS obeyed, count(*) FILTER (NOT after.refused) AS admitted
FROM told ASOF LEFT JOIN provider_calls AS after
    ON told.model = after.model AND told.load = after.load AND told.until <= after.started_at
GROUP BY told.model
"""
_NOTHING_TOLD: Final = {"told": 0, "median_s": None, "obeyed": 0, "admitted": 0}

_TIMED: Final = "provider_calls SEMI JOIN timed_steps USING (model, load)"
_TIMES: Final = f"""
SELECT model, list(first_s ORDER BY first_s) FILTER (first_s IS NOT NULL) AS ttft,
    list(seen_s ORDER BY seen_s) FILTER (seen_s IS NOT NULL) AS latency,
    quantile_disc(pace, 0.5) AS pace
FROM {_TIMED} WHERE answered GROUP BY model
"""  # noqa: S608  made of our own words alone
_HOURS: Final = f"""
SELECT model, date_trunc('hour', started_at) AS hour, count(*) AS calls,
    count(*) FILTER (answered) AS answered,
    list(seen_s ORDER BY seen_s) FILTER (answered AND seen_s IS NOT NULL) AS latency
FROM {_TIMED} GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

# The most answers to the calls of one minute (`most`), and of a minute in which some calls were refused
# (`found`).
_MINUTES: Final = """
SELECT model, max(answered) AS most, max(answered) FILTER (refused > 0) AS found FROM (
    SELECT model, count(*) FILTER (answered) AS answered, count(*) FILTER (refused) AS refused
    FROM provider_calls WHERE load = '' GROUP BY model, date_trunc('minute', started_at)
) GROUP BY model
"""

_LIMITS_IN_FORCE: Final = f"""
SELECT lane, {", ".join(f"arg_max({name}_limit, started_at) AS {name}" for name in LIMITS)}
FROM lanes GROUP BY lane
"""  # noqa: S608  made of our own words alone

_TRIALS: Final = counts_by(
    "provider_trials",
    ("model",),
    only=("replies", "truncated", "refused", "cost_usd", "priced_replies", "priced_correct"),
    more=[
        "coalesce(list(DISTINCT model_id ORDER BY model_id) FILTER (outcome <> 'failed'), []) AS model_ids",
        "count(*) - count(cost_usd) AS unpriced",
    ],
)

# The replies by each value of one of `SERVED_BY`; `changes`: how often it answered right after another value.
SERVED_BY: Final = ("model_served", "fingerprint", "upstream")
_SERVED: Final = """
SELECT model, value, count(*) AS replies, min(finished_at) AS first_at, max(finished_at) AS last_at,
    count(*) FILTER (value <> before) AS changes
FROM (
    SELECT model, {0} AS value, finished_at,
        lag({0}) OVER (PARTITION BY model ORDER BY finished_at, trial_id) AS before
    FROM provider_trials WHERE {0} IS NOT NULL
) GROUP BY model, value ORDER BY model, replies DESC, value
"""
# The number of calls by the minute in which they began: `fairness_of` needs it after the calls are dropped.
_STARTS: Final = """
SELECT model, epoch(started_at)::BIGINT // 60 AS minute, count(*) AS calls FROM provider_calls GROUP BY ALL
"""
_WARMED: Final = "SELECT trial_id FROM attempts WHERE phase = 'warmup'"
_KEPT_TRIALS: Final = """
SELECT trial_id, run, model, model_id, condition, load, repeat, suite, task, problem_id, outcome, cost_usd,
    model_served, fingerprint, upstream, finished_at, params, effort
FROM trials ANTI JOIN warmed USING (trial_id)
"""


Row = dict[str, Any]  # Any: of a query


@in_data(None)
def _availability(figures: "HourFigures | EndpointFigures") -> Mapping[str, object]:
    """Return the share of calls that were answered, with its interval."""
    share = Proportion(successes=figures.answered, trials=figures.calls)
    return {"availability": share.share, "availability_interval": share.interval}


@dataclass(frozen=True, slots=True, kw_only=True)
class HourFigures:
    """The timed calls that began within an hour."""

    hour: datetime
    calls: int
    answered: int
    latency: CallTimes
    availability = property(_availability)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFigures:
    """The figures of one model of a folder."""

    model: str
    provider: str
    model_ids: Sequence[str] = ()
    asked_by: str  # `load` or `sweep`
    calls: int
    answered: int
    refused: int
    connections: int  # calls that opened a connection
    connect_p50_s: float | None
    first_at: datetime
    last_at: datetime
    replies: int = 0  # trials with a reply
    truncated: int = 0
    declined: int = 0
    cost_usd: float | None = None  # of trials whose cost is known
    unpriced: int = 0
    priced_replies: int = field(default=0, metadata=HIDDEN)
    priced_correct: int = field(default=0, metadata=HIDDEN)
    step: StepFigures | None = field(metadata=HIDDEN)  # times are of its calls; None: of all calls
    ttft: CallTimes
    latency: CallTimes
    tokens_per_s: float | None  # median over calls, after the first token
    limits: Row  # the result of `_limits` for this model
    retry_after: Row  # a row of `_OBEYED`
    served: Mapping[str, Sequence[Row]]  # by `SERVED_BY`: rows of `_SERVED`, the most frequent first
    hours: Sequence[HourFigures]
    steps: Sequence[StepFigures]  # of its load, by rate
    availability = property(_availability)

    @property
    @in_data("timed_step")
    def timed_step(self) -> str | None:
        """The step whose times are shown, or None if times are of all calls."""
        return None if self.step is None else self.step.step


def endpoints_in(views: FolderViews, steps: Sequence[StepFigures]) -> tuple[EndpointFigures, ...]:
    """Return a line for each model that was called in real time, by name.

    Args:
        views: of the folders, with the answers to a load (`chosen(…, loaded=True)`).
        steps: of the folders' loads, as `steps_in` returns them.
    """
    views.keep("warmed", _WARMED)
    if views.rows("SELECT 1 FROM warmed LIMIT 1"):
        views.keep("provider_trials", _KEPT_TRIALS)
    else:  # a million of them would fill the memory, or the disk
        views.define("provider_trials", "FROM trials")
    by_model = rows_by(steps, attrgetter("model"))

    timed = timed_steps(by_model)
    calls = _call_counts(views, timed, by_model)
    views.put("provider_minutes", pa.Table.from_pylist(calls["starts"], pa.schema(_MINUTES_OF_STARTS)))
    counts, hours = _row_by_model(calls["counts"]), _rows_by_model(calls["hours"])
    times, obeyed, minutes = (_row_by_model(calls[name]) for name in ("times", "obeyed", "minutes"))
    trials = _row_by_model(_rows(views, _TRIALS))
    for row in trials.values():
        row["declined"] = row.pop("refused")  # here the model refused, in `counts` the provider

    limits = _limits(views, counts, minutes, by_model)
    served = {name: _rows_by_model(_rows(views, _SERVED.format(name))) for name in SERVED_BY}
    return tuple(
        EndpointFigures(
            model=model,
            **row,
            asked_by="load" if model in by_model else "sweep",
            **trials.get(model, {}),
            step=timed.get(model),
            **_times(timed.get(model), times.get(model, {})),
            limits=limits[model],
            retry_after=obeyed.get(model, _NOTHING_TOLD),
            served={name: served[name].get(model, []) for name in SERVED_BY},
            hours=[_hour(hour, endless=model in timed) for hour in hours.get(model, [])],
            steps=by_model.get(model, []),
        )
        for model, row in sorted(counts.items())
    )


_CALL_QUERIES: Final = {
    "counts": _COUNTS,
    "times": _TIMES,
    "obeyed": _OBEYED,
    "hours": _HOURS,
    "minutes": _MINUTES,
    "starts": _STARTS,
}


def _call_counts(
    views: FolderViews, timed: Mapping[str, StepFigures], by_model: Mapping[str, object]
) -> dict[str, list[Row]]:
    """Return the rows of each of `_CALL_QUERIES`, and put the table `timed_steps`.

    They are counted for a few models at a time, which have about `CALLS_AT_ONCE` calls together.
    """
    calls = {row["model"]: row["calls"] for row in views.rows(_CALLS_BY_MODEL)}

    # Times are of the calls of these steps; of models without a load, they are of all calls.
    loads = [
        {"model": row["model"], "load": row["load"]}
        for row in _rows(views, "SELECT model, load, verdict FROM steps")
        if row["model"] in timed
        and base_in(row["load"]) == timed[row["model"]].step
        and row["verdict"] not in (INCOMPLETE, CLIENT_BOUND)
    ]
    sweeps = [{"model": model, "load": ""} for model in calls if model not in by_model]
    views.put("timed_steps", pa.Table.from_pylist([*loads, *sweeps], _TIMED_STEPS))

    models_in_order = sorted(calls)
    ends = dict(zip(models_in_order, accumulate(calls[model] for model in models_in_order), strict=True))
    batches = rows_by(models_in_order, lambda model: ends[model] // CALLS_AT_ONCE)
    rows: dict[str, list[Row]] = {name: [] for name in _CALL_QUERIES}
    for models in batches.values():
        listed = ", ".join(map(quoted, models))
        views.keep("provider_calls", _CALLS.format(f"model IN ({listed})"))
        for name, query in _CALL_QUERIES.items():
            rows[name] += _rows(views, query)
        views.drop("provider_calls")
    return rows


def timed_steps(by_model: Mapping[str, Sequence[StepFigures]]) -> dict[str, StepFigures]:
    """Return for each model with a load the step that its times are of: the same rate for all, if possible.

    This is the highest rate that all were asked at and at which all kept their SLO; else the lowest rate that
    all were asked at; else the lowest rate of each model.
    """
    usable = {
        model: {step.step: step for step in steps if step.verdict not in (INCOMPLETE, CLIENT_BOUND)}
        for model, steps in by_model.items()
    }
    usable = {model: steps for model, steps in usable.items() if steps}
    common = set.intersection(*(set(steps) for steps in usable.values())) if usable else set()
    kept = [name for name in common if all(steps[name].verdict == MET for steps in usable.values())]
    if kept or common:
        rate_of = next(iter(usable.values()))
        best = max(kept, key=lambda name: rate_of[name].rate) if kept else None
        name = best or min(common, key=lambda name: rate_of[name].rate)
        return {model: steps[name] for model, steps in usable.items()}
    return {model: min(steps.values(), key=lambda step: step.rate) for model, steps in usable.items()}


def _rows(views: FolderViews, query: str) -> list[dict[str, Any]]:  # Any: of the query
    """Return the rows of a query, by way of Arrow: DuckDB needs one more library for columns of times.

    A list of seconds may have a million entries, so it becomes an array of numbers, not a list of objects.
    """
    table = views.table(query)
    seconds = [field.name for field in table.schema if field.type == _SECONDS]
    rows: list[dict[str, Any]] = table.drop_columns(seconds).to_pylist()
    for name in seconds:
        for row, times in zip(rows, table[name], strict=True):
            row[name] = array("d", times.values.to_numpy().tobytes() if times.is_valid else b"")
    return rows


_SECONDS: Final = pa.list_(pa.float64())


_TIMED_STEPS: Final = pa.schema([("model", pa.string()), ("load", pa.string())])
_MINUTES_OF_STARTS: Final[Mapping[str, pa.DataType]] = {
    "model": pa.string(),
    "minute": pa.int64(),
    "calls": pa.int64(),
}


def _row_by_model(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:  # Any: of a query
    return {row.pop("model"): row for row in rows}


def _rows_by_model(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:  # Any: of a query
    return rows_by(rows, lambda row: row.pop("model"))


def _times(step: StepFigures | None, row: Mapping[str, Any]) -> Mapping[str, Any]:  # Any: lists of seconds
    times = {
        kind: CallTimes(kind=kind, told_s=row.get(kind) or [], endless=0) for kind in ("ttft", "latency")
    }
    if step is not None:
        times = {kind: step.times[kind] for kind in times}
    return times | {"tokens_per_s": row.get("pace")}


def _hour(row: Mapping[str, Any], *, endless: bool) -> HourFigures:
    answered = row["answered"]
    return HourFigures(
        hour=row["hour"],
        calls=row["calls"],
        answered=answered,
        latency=CallTimes(
            kind="latency", told_s=row["latency"] or [], endless=row["calls"] - answered if endless else 0
        ),
    )


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def _limits(
    views: FolderViews,
    models: Iterable[str],
    minutes: Mapping[str, Row],
    by_model: Mapping[str, Sequence[StepFigures]],
) -> dict[str, Row]:
    """Return by model how much its provider lets through a minute.

    `promised`: the limits in the sweep, by name. `told`: the limits in force at the end, by name: those of
    the sweep or of the provider's headers, whichever are lower. `most`: the most answers in a minute, or in a
    step of a load, per minute. `found`: the same of minutes and steps in which some calls were refused.
    """
    promised = dict[str, dict[str, float]]()
    for label, path in views.folders:
        if (sweep_file := kept_sweep_file(path)) is not None:
            from asyncbench.config.sweep import priced_models

            for entry in priced_models(sweep_file):
                promised[views.called(label, entry.alias)] = _set_limits(entry.limits.per_minute)

    in_force = {row.pop("lane"): row for row in _rows(views, _LIMITS_IN_FORCE)}
    limits = dict[str, Row]()
    for model in models:
        minute, steps = minutes.get(model, {}), by_model.get(model, ())
        answers = [minute.get("most"), *(60 * step.answered_per_s for step in steps)]
        per_minute = [minute.get("found"), *(60 * step.answered_per_s for step in steps if step.refused)]
        limits[model] = {
            "promised": promised.get(model, {}),
            "told": _set_limits(in_force.get(model, {})),
            "found": max(filter(None, per_minute), default=None),
            "most": max(filter(None, answers), default=None),
        }
    return limits


def _set_limits(limits: Mapping[str, float | None]) -> dict[str, float]:
    return {name: limit for name, limit in limits.items() if limit is not None}
