"""The tables of a results folder as views of a DuckDB connection, and ready sums over them.

`trials`, `grades`, `attempts`, `lanes`, `skipped`, `steps`, `problems`: the rows that every reader gives,
those that only the journal holds among them. Answers to a load are left out unless they are asked for: they
are no second answer to the same question. `cells`: every count and sum of the finest groups of trials.
`accuracy`, `cost`, `latency`, `minutes`: the usual questions. `sum_usd(…)` adds dollars.

DuckDB opens no file. A scan tells its columns and its filter; our own readers fetch just these, checked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from asyncbench.errors import StoreError
from asyncbench.problems.copies import COPY_SCHEMA as PROBLEMS, iter_problems
from asyncbench.records import BATCH, Outcome
from asyncbench.stats.proportions import Z_95
from asyncbench.store.parts import coded_schema
from asyncbench.store.schema import AT_REST, CELL, CODED, SCHEMAS
from asyncbench.store.snapshot import MANY_ROWS, Snapshot

if TYPE_CHECKING:
    import duckdb

_CELL = ", ".join(CELL)
# Counts and sums of grades; `measured`: those that tell digits, of which the last three are.
_JUDGED = (
    *("format_ok", "format_known", "digits_right", "digits_total"),
    *("measured", "exact", "length_error", "digit_match"),
    *("scored", "score", "score_squares"),
)

# Counts are of trials: `known_tokens` with a count of output tokens, `priced` with a cost, and so on. Sums
# are of the trials whose amount is known, NULL where no amount is. `independent`: how many independent trials
# the group is worth at least, as a problem that was asked again tells little more.
_COUNTED = {
    "trials": "count(*)",
    **{outcome.value: f"count(*) FILTER (outcome = '{outcome}')" for outcome in Outcome},
    "known_tokens": "count(output_tokens)",
    "reasoning_known": "count(reasoning_tokens)",
    "priced": "count(cost_usd)",
    "priced_correct": f"count(cost_usd) FILTER (outcome = '{Outcome.CORRECT}')",
    "latencies": "count(latency_s)",
    **{f"{kind}_tokens": f"sum({kind}_tokens)::BIGINT" for kind in ("input", "output", "reasoning")},
    "cost_usd": "sum_usd(cost_usd)",
    "latency_s": "fsum(latency_s)",
    "independent": "count(*) / (max(repeat) + 1)",
}
_OF_SOME = {  # which few reports need: trials with a reply
    "replies": f"count(*) FILTER (outcome <> '{Outcome.FAILED}')",
    "priced_replies": f"count(cost_usd) FILTER (outcome <> '{Outcome.FAILED}')",
}
OUTCOMES = tuple(outcome.value for outcome in Outcome)


def counts_by(
    trials: str, *groups: Sequence[str], only: Sequence[str] = (*_COUNTED,), more: Sequence[str] = ()
) -> str:
    """Return the query of counts and sums of trials: nothing else counts what became of them.

    Args:
        trials: a table of them.
        groups: columns that tell the groups of trials apart; several are counted in one go, with NULL in the
            columns of the others.
        only: names of counts and sums. [all but those of replies]
        more: what else is counted.
    """
    counted = [f"{(_COUNTED | _OF_SOME)[name]} AS {name}" for name in only]
    columns = (*dict.fromkeys(name for group in groups for name in group), *counted, *more)
    sets = ", ".join(f"({', '.join(group)})" for group in groups)
    return f"SELECT {', '.join(columns)} FROM {trials} GROUP BY GROUPING SETS ({sets})"  # noqa: S608  our own words


# Grades have no condition: it is that of their run and model where there is but one, else that of their
# trial, and only of such grades the trials are looked up. Of those of one condition groups are joined: these
# are thousands, and grades millions.
_SAME_CELL = " AND ".join(f"counted.{name} IS NOT DISTINCT FROM graded.{name}" for name in CELL)
_OF_GRADES = ", ".join(name for name in CELL if name != "condition")
_SUMS_OF_GRADES = """count(*) FILTER (format_ok) AS format_ok, count(format_ok) AS format_known,
    sum(digits_right)::BIGINT AS digits_right, sum(digits_total)::BIGINT AS digits_total,
    count(digits_total) AS measured, count(digits_total) FILTER (exact_match) AS exact,
    sum(length_error)::BIGINT AS length_error, fsum(digits_right / digits_total) AS digit_match,
    CASE WHEN count(score) > 0 THEN count(*) FILTER (score IS NOT NULL OR reason IN ('empty', 'error'))
        ELSE 0 END AS scored,
    fsum(score) AS score, fsum(score * score) AS score_squares"""
_ADDED = {name: f"fsum({name})" for name in ("digit_match", "score", "score_squares")}  # all others are whole
HEADLINE_GRADES = f"""
SELECT {_OF_GRADES}, grader, grader_version, {_SUMS_OF_GRADES}
FROM grades WHERE headline AND load IS NULL GROUP BY ALL
"""  # noqa: S608  made of our own words alone


_ONE_CONDITION = f"""judged AS (
    SELECT {_OF_GRADES}, condition, {", ".join(_JUDGED)}
    FROM {{grades}} JOIN (SELECT DISTINCT run, model, condition FROM {{answers}}) USING (run, model)
"""  # noqa: S608  made of our own words alone
_CONDITIONS = f"""entrants AS (
    SELECT run, model, any_value(condition) AS condition, count(DISTINCT condition) AS conditions
    FROM {{answers}} GROUP BY run, model
), judged AS (
    SELECT {_OF_GRADES}, condition, {", ".join(_JUDGED)}
    FROM {{grades}} JOIN (FROM entrants WHERE conditions = 1) AS entrants USING (run, model)
    UNION ALL
    SELECT {_OF_GRADES}, asked.condition, {_SUMS_OF_GRADES}
    FROM grades JOIN (
        SELECT trial_id, condition
        FROM trials SEMI JOIN (FROM entrants WHERE conditions > 1) AS entrants USING (run, model)
    ) AS asked USING (trial_id)
    WHERE headline AND load IS NULL GROUP BY ALL
"""  # noqa: S608  made of our own words alone


def cells_of(answers: str, grades: str, *, one_condition: bool = False) -> str:
    """Return the query of the view `cells`.

    Args:
        answers: a table of its trials.
        grades: one of `HEADLINE_GRADES`.
        one_condition: whether no model of a run has several. DuckDB reads trials for a join with nothing.
    """
    judged = _ONE_CONDITION if one_condition else _CONDITIONS
    return f"""
WITH {judged.format(answers=answers, grades=grades)}), graded AS (
    SELECT {_CELL}, {", ".join(f"{_ADDED.get(name, f'sum({name})::BIGINT')} AS {name}" for name in _JUDGED)}
    FROM judged GROUP BY ALL
), counted AS (
{counts_by(answers, CELL)}
)
SELECT counted.* EXCLUDE (input_tokens, output_tokens, reasoning_tokens, cost_usd, latency_s, independent),
    {", ".join(f"coalesce(graded.{name}, 0) AS {name}" for name in _JUDGED)},
    input_tokens, output_tokens, reasoning_tokens, cost_usd, latency_s, independent
FROM counted LEFT JOIN graded ON {_SAME_CELL} ORDER BY {", ".join(f"counted.{name}" for name in CELL)}
"""  # noqa: S608  made of our own words alone


# The Wilson score interval of `Proportion`: p, n and z as there; NULL without trials. A problem counts
# once, however often it was asked.
_CENTRE = "(p + z*z / (2*n)) / (1 + z*z / n)"
_HALF = "z * sqrt(p * (1 - p) / n + z*z / (4*n*n)) / (1 + z*z / n)"

_ACCURACY = f"""
WITH shares AS (
    SELECT *, correct / trials AS p, independent AS n, {Z_95} AS z
    FROM ({counts_by("(FROM trials WHERE load IS NULL)", CELL)})
)
SELECT {_CELL}, trials, {", ".join(Outcome)},
    p AS accuracy,
    CASE WHEN correct = 0 THEN 0.0 ELSE {_CENTRE} - {_HALF} END AS accuracy_low,
    CASE WHEN correct = trials THEN 1.0 ELSE {_CENTRE} + {_HALF} END AS accuracy_high,
    correct / nullif(correct + wrong, 0) AS accuracy_of_answered,
    n AS independent
FROM shares
"""  # noqa: S608  made of our own words alone

# The sum of dollars, exact in any order of rows, as `math.fsum` is: in steps of 2^-80 USD.
USD_STEPS = 2**80  # of a dollar
_STEPS = f"{USD_STEPS}.0"
_MOST_USD = 1e9  # of a call; more was never money: a price that is refused today, or none
_MONEY = f"CASE WHEN abs(usd) <= {_MOST_USD} THEN usd END"
_SUM_USD = f"CREATE MACRO sum_usd(usd) AS sum(({_MONEY} * {_STEPS})::HUGEINT)::VARCHAR::DOUBLE / {_STEPS}"

# The same of calls; NULL where nothing is known but that refusals are free: `known_cost` of `tables.numbers`.
_SPENT_USD = """CREATE MACRO spent_usd(usd) AS
    CASE WHEN count(usd) = count(*) OR sum_usd(usd) > 0 THEN sum_usd(usd) END"""
MACROS = f"{_SUM_USD}; {_SPENT_USD}"

# Every call counts, those of trials that are still open or were asked again, too.
_COST = f"""
SELECT model, provider, count(*) AS calls, count(*) FILTER (status = 'ok') AS answered,
    count(DISTINCT trial_id) AS trials,
    count(cost_usd) AS priced_calls, spent_usd(cost_usd) AS cost_usd,
    sum(input_tokens)::BIGINT AS input_tokens, sum(cached_input_tokens)::BIGINT AS cached_input_tokens,
    sum(cache_write_tokens)::BIGINT AS cache_write_tokens, sum(output_tokens)::BIGINT AS output_tokens,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
    count(*) FILTER (mode = '{BATCH}') AS batch_requests,
    sum_usd(CASE WHEN mode = '{BATCH}' THEN cost_usd END) AS batch_cost_usd
FROM attempts GROUP BY ALL
"""  # noqa: S608  made of our own words alone

# A request of a batch has no time of its own: latency and throughput are those of calls in real time.
CALLS_IN_REAL_TIME = f"(FROM attempts WHERE mode IS DISTINCT FROM '{BATCH}')"


def _quantiles(column: str) -> str:
    return ", ".join(
        f"quantile_cont({column}, {share}) AS {column.removesuffix('_s')}_p{round(100 * share)}_s"
        for share in (0.5, 0.9, 0.95, 0.99)
    )


_LATENCY = f"""
SELECT model, provider, count(*) AS answered, count(ttft_s) AS streamed,
    {_quantiles("ttft_s")}, {_quantiles("latency_s")}, {_quantiles("queued_s")},
    sum(output_tokens) FILTER (latency_s > 0) / sum(latency_s) FILTER (output_tokens IS NOT NULL)
        AS output_tokens_per_s,
    quantile_cont(loop_lag_s, 0.99) AS loop_lag_p99_s, max(in_flight) AS most_in_flight
FROM {CALLS_IN_REAL_TIME} WHERE status = 'ok' GROUP BY ALL
"""  # noqa: S608  made of our own words alone

# Every call with the run and condition of its trial. That of a trial that is still open has those of its
# model where there is one only, else NULL. Trial ids are joined just for models that have several.
CALLS_OF_ENTRANTS = """
entrants AS (
    SELECT model, any_value(run) AS run, any_value(condition) AS condition, count(*) AS entrants
    FROM (SELECT DISTINCT run, model, condition FROM trials) GROUP BY model
), asked AS (
    SELECT trial_id, run, condition
    FROM trials SEMI JOIN (SELECT model FROM entrants WHERE entrants > 1) USING (model)
), entrant_calls AS (
    SELECT coalesce(asked.run, alone.run) AS run, attempts.model,
        coalesce(asked.condition, alone.condition) AS condition, attempts.* EXCLUDE (model)
    FROM attempts LEFT JOIN asked USING (trial_id)
        LEFT JOIN (FROM entrants WHERE entrants = 1) AS alone ON alone.model = attempts.model
)
"""

# Latency and throughput over time, by when calls began.
SHORT_BINS = (1, 2, 5, 10, 15, 30)  # seconds
BINS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)  # seconds
MOST_SHORT_BINS = 60  # from the first call to the last; longer runs have bins of minutes
MOST_BINS = 120  # from the first call to the last; longer nights have longer bins


def _fitting(bins: Sequence[int], limit: int) -> str:
    return f"list_min(list_filter({list(bins)}::BIGINT[], lambda bin: span_ms < {1000 * limit} * bin))"


# seconds, of `span_ms`: as a sum over minutes takes it, and where calls may stand in finer bins
BIN_OF_MINUTES = f"""coalesce({_fitting(BINS, MOST_BINS)},
    {BINS[-1]} * ceil(span_ms / {MOST_BINS * BINS[-1] * 1000})::BIGINT)"""
_BIN = f"coalesce({_fitting(SHORT_BINS, MOST_SHORT_BINS)}, {BIN_OF_MINUTES})"
CALLS_IN_BINS = f"""
WITH {CALLS_OF_ENTRANTS}, calls AS (
    SELECT run, model, condition, status, epoch_ms(started_at) AS began_ms,
        ttft_s, latency_s, queued_s, output_tokens
    FROM entrant_calls WHERE mode IS DISTINCT FROM '{BATCH}'
), span AS (
    SELECT max(epoch_ms(started_at)) - min(epoch_ms(started_at)) AS span_ms FROM {CALLS_IN_REAL_TIME}
),
bins AS (SELECT {_BIN} AS seconds FROM span)
"""  # noqa: S608  made of our own words alone
BEGAN = "make_timestamptz(1000 * (began_ms - began_ms % (1000 * seconds)))"
_MINUTES = f"""
{CALLS_IN_BINS}
SELECT run, model, condition, {BEGAN} AS began, seconds / 60 AS minutes, count(*) AS calls,
    quantile_cont(latency_s, 0.5) AS latency_p50_s,
    quantile_cont(latency_s, 0.95) AS latency_p95_s, sum(output_tokens)::BIGINT AS output_tokens
FROM calls, bins WHERE status = 'ok' GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

SUMS: Mapping[str, str] = {
    "cells": cells_of("(FROM trials WHERE load IS NULL)", f"({HEADLINE_GRADES})"),
    "accuracy": _ACCURACY,
    "cost": _COST,
    "latency": _LATENCY,
    "minutes": _MINUTES,
}
VIEWS = (*SCHEMAS, "problems", *SUMS)
ROWS_OF_TEXTS = 2048  # of a batch, as DuckDB works on: replies may be long
_TEXTS = {"expected", "answer", "reply_text", "reasoning_text", "error_message", "raw_usage", "error"}
# some columns, a filter → rows
Rows = Callable[[Sequence[str], pc.Expression | None], Iterator[pa.RecordBatch]]


def add_tables(
    connection: "duckdb.DuckDBPyConnection",
    folder: Path,
    snapshot: Snapshot,
    sources: "Sources",
    *,
    named: Callable[[str], str] = str,
    loaded: bool = False,
) -> None:
    """Give a connection the tables of a folder, as the snapshot has it.

    Args:
        connection: that of DuckDB.
        folder, snapshot: what holds the tables.
        sources: where scans get their rows.
        named: under which names.
        loaded: with the answers to a load.
    """
    for name, schema in SCHEMAS.items():
        only = None if loaded else rest_filter(name)
        rows = partial(_batches, folder, snapshot, name, only)
        connection.register(named(name), sources.dataset(coded_schema(schema, CODED), rows))
    problems = partial(iter_problems, folder, batch_rows=ROWS_OF_TEXTS)
    connection.register(named("problems"), sources.dataset(PROBLEMS, problems))


def rest_filter(name: str, wanted: pc.Expression | None = None) -> pc.Expression | None:
    """Return a filter of a table that also leaves out answers to a load; calls are all counted."""
    if name not in ("trials", "grades"):
        return wanted
    return AT_REST if wanted is None else wanted & AT_REST


def add_sums(connection: "duckdb.DuckDBPyConnection", first_column: str = "") -> None:
    """Make the views that count, for the queries of a user; `first_column` comes first in each.

    Each takes DuckDB milliseconds to understand: our own queries name the query of the one that they need.
    """
    for name in SUMS:
        connection.execute(f"CREATE VIEW {name} AS {sums_query(name, first_column)}")


def add_parameters(connection: "duckdb.DuckDBPyConnection") -> None:
    """Give `trials` a column for each parameter with which models were asked: what its JSON columns hold.

    A condition's value goes before its model's. A parameter that is called as another column, or in a way
    that needs escaping, stays in JSON alone.
    """
    values = defaultdict[str, set[type]](set)
    for texts in connection.sql("SELECT DISTINCT params, condition_params FROM trials").fetchall():
        model, condition = (orjson.loads(text or "{}") for text in texts)
        for name, value in [*model.items(), *condition.pop("params", {}).items(), *condition.items()]:
            values[name].add(type(value))

    taken = {name.lower() for name in connection.sql("FROM trials LIMIT 0").columns}
    columns = list[str]()
    for name, types in values.items():
        if name.lower() in taken or not name.isprintable() or not {*name}.isdisjoint("\"'\\"):
            continue
        path = f"""'$."{name}"'"""
        sources = ", ".join(
            f"{source}->>{path}" for source in ("condition_params->'params'", "condition_params", "params")
        )
        kind = next((kind for kind, fitting in _KINDS_OF_VALUES.items() if types <= fitting), "VARCHAR")
        columns.append(f'coalesce({sources})::{kind} AS "{name}"')
        taken.add(name.lower())
    if columns:
        connection.execute("ALTER VIEW trials RENAME TO trials_as_stored")
        connection.execute(f"CREATE VIEW trials AS SELECT *, {', '.join(columns)} FROM trials_as_stored")  # noqa: S608  quoted names


_KINDS_OF_VALUES: Mapping[str, set[type]] = {
    "BOOLEAN": {bool},
    "BIGINT": {int},
    "DOUBLE": {int, float},
}


def sums_query(name: str, first_column: str = "") -> str:
    """Return the query of a view that counts."""
    counts = SUMS[name]
    return f"SELECT {first_column}, * FROM ({counts})" if first_column else counts  # noqa: S608  our words, quoted names


def _batches(
    folder: Path,
    snapshot: Snapshot,
    name: str,
    only: pc.Expression | None,
    columns: Sequence[str],
    wanted: pc.Expression | None,
) -> Iterator[pa.RecordBatch]:
    if only is not None:
        wanted = only if wanted is None else wanted & only
    rows = MANY_ROWS if _TEXTS.isdisjoint(columns) else ROWS_OF_TEXTS
    try:
        yield from snapshot.batches(name, columns, wanted, rows=rows, coded=CODED)
    except StoreError as error:
        if str(folder) in str(error):
            raise
        raise type(error)(f"{folder}: {error}") from error  # which of several it is


@dataclass(slots=True)
class Sources:
    """Where the scans of a connection get their rows, and the error that ended one.

    DuckDB passes on only the words of an error.
    """

    refused: list[Exception] = field(default_factory=list)

    def dataset(self, schema: pa.Schema, rows: Rows) -> ds.Dataset:
        """Return a table that DuckDB can scan, as often as it likes."""
        return _Table(schema, partial(self._read, rows))

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Raise what our readers refused instead of what DuckDB makes of it."""
        try:
            yield
        except Exception:
            if self.refused:
                raise self.refused[0] from None
            raise

    def _read(
        self, rows: Rows, columns: Sequence[str], wanted: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows(columns, wanted)
        except Exception as error:
            self.refused.append(error)
            raise


class _Table(ds.InMemoryDataset):
    """A dataset in DuckDB's eyes, which takes no other object whose scans tell what they need."""

    def __init__(self, schema: pa.Schema, rows: Rows) -> None:
        super().__init__(schema.empty_table())  # type: ignore[call-arg]  # the stubs leave it out
        self._rows = rows

    def scanner(  # type: ignore[override]  # DuckDB gives no more than this, and needs no more of a scan
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  as DuckDB calls it
    ) -> "_Scan":
        names = self.schema.names if columns is None else columns
        return _Scan(pa.schema([self.schema.field(name) for name in names]), self._rows(names, filter))


@dataclass(frozen=True, slots=True)
class _Scan:
    """One scan: no thread of Arrow's waits for our readers, which need those threads themselves."""

    projected_schema: pa.Schema
    rows: Iterator[pa.RecordBatch]

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.rows)
