"""The finest groups of trials, counted once: what tables, charts and the page are made of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.store import CELL
from asyncbench.views import counted

CELL_COLUMNS: Final = (
    *("trial_id", *CELL, "repeat", "outcome"),
    *("input_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "latency_s"),
)
GRADE_COLUMNS: Final = (
    *("trial_id", *(name for name in CELL if name != "condition")),
    *("format_ok", "digits_right", "digits_total"),
)

_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)
_TOKENS: Final = ("input_tokens", "output_tokens", "reasoning_tokens")
COUNTS: Final = (
    *("trials", *_OUTCOMES),
    *("known_tokens", "reasoning_known", "priced", "priced_correct", "latencies"),
    *("format_ok", "format_known", "digits_right", "digits_total"),
)
Columns = dict[str, Any]  # Any: arrays of Arrow, as its functions return them

_AMOUNTS: Final = (*_TOKENS, "cost_usd", "latency_s")
SUMS: Final = (*_AMOUNTS, "independent")
SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, pa.int32() if name == "length" else pa.string()) for name in CELL),
        *(pa.field(name, pa.int64(), nullable=False) for name in COUNTS),
        *(pa.field(name, pa.int64() if name in _TOKENS else pa.float64()) for name in SUMS),
    ]
)


def cells_on(folder: Path | str) -> pa.Table:
    """Return the cells of a results folder, format and digits among them; of one moment.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: it cannot be read.
    """
    return counted(folder, lambda views: views.table("SELECT * FROM cells"))


def cells_of(trials: pa.Table, grades: pa.Table | None = None) -> pa.Table:
    """Return one row a cell, in the order of `CELL`: columns as in `SCHEMA`.

    Counts are of trials: `known_tokens` with usage, `reasoning_known` with a count of reasoning tokens,
    `priced` with a cost (`priced_correct`: and right), `latencies` with a latency, `format_known` where the
    headline grader judged the format. `digits_right` of `digits_total` are digits. Sums (tokens, USD,
    seconds) are of the trials where the amount is known, NULL where it is of none. `independent` is trials /
    times that each problem was asked: how many independent ones the trials are worth at least.

    Args:
        trials: `trials` with the columns `CELL_COLUMNS`.
        grades: its headline grades with the columns `GRADE_COLUMNS`; None: format and digits count 0.
    """
    parts = [_of_trials(trials)]
    if grades is not None:
        parts.append(_of_grades(grades, trials))
    together = pa.concat_tables(parts, promote_options="default")
    summed = _summed(together, [name for name in together.column_names if name not in CELL])
    return _complete(summed).sort_by([(name, "ascending") for name in CELL])


def _of_trials(trials: pa.Table) -> pa.Table:
    """Return what each cell's trials add up to."""
    outcome = trials["outcome"]
    counted = {name: pc.equal(outcome, pa.scalar(name)) for name in _OUTCOMES}
    known = {
        "known_tokens": trials["output_tokens"],
        "reasoning_known": trials["reasoning_tokens"],
        "priced": trials["cost_usd"],
        "latencies": trials["latency_s"],
    }
    counted |= {name: pc.is_valid(column) for name, column in known.items()}
    counted["priced_correct"] = pc.and_(counted["priced"], counted[Outcome.CORRECT])
    columns: Columns = {name: trials[name] for name in (*CELL, *_AMOUNTS)}
    columns |= {name: pc.cast(column, pa.int64()) for name, column in counted.items()}
    columns["trials"] = pa.chunked_array([pa.repeat(pa.scalar(1), len(trials))])
    columns["repeat"] = trials["repeat"]
    sums = _summed(pa.table(columns), ["trials", *counted, *_AMOUNTS], ["repeat"])
    times = pc.add(sums["repeat_max"].cast(pa.float64()), 1.0)
    worth = pc.divide(sums["trials"].cast(pa.float64()), times)
    return sums.append_column("independent", worth).drop_columns(["repeat_max"])


def _of_grades(grades: pa.Table, trials: pa.Table) -> pa.Table:
    """Return what each cell's headline grades add up to; the condition is the trial's."""
    conditions, format_ok = _conditions(grades["trial_id"], trials), grades["format_ok"]
    columns: Columns = {name: grades[name] for name in CELL if name != "condition"}
    columns |= {
        "condition": conditions,
        "format_ok": pc.cast(format_ok, pa.int64()),
        "format_known": pc.cast(pc.is_valid(format_ok), pa.int64()),
    }
    columns |= {name: pc.cast(grades[name], pa.int64()) for name in ("digits_right", "digits_total")}
    table = pa.table(columns).filter(pc.is_valid(conditions))  # of a run that goes on: newer trials
    return _summed(table, [name for name in columns if name not in CELL])


def _conditions(trial_ids: "pa.ChunkedArray[Any]", trials: pa.Table) -> "pa.ChunkedArray[Any]":
    """Return the condition of each trial; a look-up by id only where there are several."""
    named = trials["condition"].unique()
    if len(named) == 1:
        return pa.chunked_array([pa.repeat(named[0], len(trial_ids))])
    places = pc.index_in(trial_ids, trials["trial_id"])
    return trials["condition"].take(places)


def _summed(table: pa.Table, names: Sequence[str], greatest: Sequence[str] = ()) -> pa.Table:
    """Return the sums of columns by cell, and the greatest value of others as `…_max`."""
    some = pc.ScalarAggregateOptions(min_count=1)  # the sum of nothing is NULL, not 0
    # One thread: sums of dollars are the same to the last bit, whenever they are made.
    groups = table.group_by(list(CELL), use_threads=False)
    wanted: list[Any] = [*((name, "sum", some) for name in names), *((name, "max") for name in greatest)]
    sums = groups.aggregate(wanted)
    return sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])


def _complete(table: pa.Table) -> pa.Table:
    """Return it by `SCHEMA`: what was not counted is 0."""
    for name in COUNTS:
        if name not in table.column_names:
            table = table.append_column(name, pa.array([0] * len(table), pa.int64()))
    columns: Columns = {name: table[name] for name in SCHEMA.names}
    columns |= {name: columns[name].fill_null(0) for name in COUNTS}
    return pa.table(columns).cast(SCHEMA)
