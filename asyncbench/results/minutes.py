"""Latency and throughput of a folder's answered calls over time: a row for everybody asked and minute."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.results.entrants import Asked, names_of
from asyncbench.stats import quantile
from asyncbench.store import ENTRANT, Snapshot, steady

COLUMNS: Final = ("name", "started_at", "latency_s", "output_tokens")
Texts = Any  # a column of Arrow, as its functions return it
MOST_BINS: Final = 240  # from the first call to the last; longer nights have longer bins
BINS_MIN: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440)

_MINUTE_MS: Final = 60_000


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


def minutes_on(folder: Path | str) -> tuple[Minute, ...]:
    """Return latency and throughput over time, by name and then by time.

    Calls of trials that are still open have no condition or run yet: where a model has several, they go by
    the model's name alone.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: it cannot be read.
    """
    return minutes_of(steady(folder, _calls))


def _calls(seen: Snapshot) -> pa.Table:
    """Return the answered calls with the names of who was asked."""
    asked = _asked(seen.read("trials", list(ENTRANT)))
    names = names_of(asked)
    several = pa.array(sorted({one[1] for one in asked if names[one] != one[1]}), pa.string())
    columns = ["model", *COLUMNS[1:], *(["trial_id"] if len(several) else [])]
    calls = seen.read("attempts", columns, pc.field("status") == "ok")
    if not len(several):
        return calls.rename_columns([*COLUMNS])
    trials = seen.read("trials", ["trial_id", *ENTRANT], pc.field("model").isin(several))
    return calls.append_column("name", _names(calls, trials, names)).select(list(COLUMNS))


def _asked(trials: pa.Table) -> list[Asked]:
    rows = trials.group_by(list(ENTRANT)).aggregate([]).sort_by([(name, "ascending") for name in ENTRANT])
    return [(row["run"], row["model"], row["condition"]) for row in rows.to_pylist()]


def _names(calls: pa.Table, trials: pa.Table, names: Mapping[Asked, str]) -> Texts:
    """Return the name of who was asked in each call; the model's where no trial tells more."""
    known = pa.table({name: [one[place] for one in names] for place, name in enumerate(ENTRANT)})
    known = known.append_column("name", pa.array(names.values(), pa.string()))
    told = trials.join(known, list(ENTRANT))
    places = pc.index_in(calls["trial_id"], told["trial_id"])
    return pc.coalesce(told["name"].take(places), calls["model"])


def minutes_of(attempts: pa.Table) -> tuple[Minute, ...]:
    """Return the same of answered calls with the columns `COLUMNS`: the name and those of `attempts`.

    Bins are a minute long, or as long of `BINS_MIN` as makes no more than `MOST_BINS` of them.
    """
    if not len(attempts):
        return ()
    began = pc.cast(pc.cast(attempts["started_at"], pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())
    first, last = pc.min(began).as_py(), pc.max(began).as_py()
    step = _step(last - first)
    bins = pc.multiply(pc.divide(began, step), step)
    grouped = attempts.append_column("at", bins).group_by(["name", "at"], use_threads=False)
    sums = grouped.aggregate(
        [([], "count_all"), ("latency_s", "list"), ("output_tokens", "sum"), ("output_tokens", "count")]
    )
    return tuple(_minutes(sums.sort_by([("name", "ascending"), ("at", "ascending")]), step))


def _step(span_ms: int) -> int:
    """Return the length of a bin in milliseconds, for calls that began over so long a time."""
    wanted = (minutes for minutes in BINS_MIN if span_ms < MOST_BINS * minutes * _MINUTE_MS)
    longest = -(-span_ms // (MOST_BINS * BINS_MIN[-1] * _MINUTE_MS)) * BINS_MIN[-1]
    return next(wanted, longest) * _MINUTE_MS


def _minutes(sums: pa.Table, step: int) -> Iterator[Minute]:
    for batch in sums.to_batches(max_chunksize=256):  # lists of latencies: not all at once
        for row in batch.to_pylist():
            latencies = sorted(value for value in row["latency_s_list"] if value is not None)
            yield Minute(
                name=row["name"],
                at=row["at"],
                seconds=step / 1000,
                calls=row["count_all"],
                p50_s=quantile(latencies, 0.5),
                p95_s=quantile(latencies, 0.95),
                output_tokens=row["output_tokens_sum"] if row["output_tokens_count"] else None,
            )
