"""The tables of a results folder as views of a DuckDB connection, and three ready sums over them.

`trials`, `grades`, `attempts`: every row once, those that only the journal holds among them. `problems`: one
row a set and problem. `accuracy`, `cost`, `latency`: what is asked for most, in the finest cells.
"""

from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from asyncbench.analysis.stats import Z_95
from asyncbench.copies import SCHEMA as PROBLEMS
from asyncbench.copies import Copy, copies
from asyncbench.records import Outcome
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.snapshot import Snapshot, overruled_by

if TYPE_CHECKING:
    import duckdb

_CELL = "run, model, condition, suite, task, variant, representation, length"

# The Wilson score interval of `stats.Proportion`: p, n and z as there; NULL without trials. A problem counts
# once, however often it was asked.
_CENTRE = "(p + z*z / (2*n)) / (1 + z*z / n)"
_HALF = "z * sqrt(p * (1 - p) / n + z*z / (4*n*n)) / (1 + z*z / n)"

_ACCURACY = f"""
WITH counted AS (
    SELECT {_CELL}, count(*) AS trials, max(repeat) + 1 AS repeats,
        {", ".join(f"count(*) FILTER (outcome = '{one}') AS {one}" for one in Outcome)}
    FROM trials GROUP BY ALL
), shares AS (SELECT *, correct / trials AS p, trials::DOUBLE / repeats AS n, {Z_95} AS z FROM counted)
SELECT {_CELL}, trials, {", ".join(Outcome)},
    p AS accuracy,
    CASE WHEN correct = 0 THEN 0.0 ELSE {_CENTRE} - {_HALF} END AS accuracy_low,
    CASE WHEN correct = trials THEN 1.0 ELSE {_CENTRE} + {_HALF} END AS accuracy_high,
    correct / nullif(correct + wrong, 0) AS accuracy_of_answered
FROM shares
"""  # noqa: S608  made of our own words alone

# Every call counts, those of trials that are still open or were asked again, too.
_COST = """
SELECT model, provider, count(*) AS calls, count(*) FILTER (status = 'ok') AS answered,
    count(DISTINCT trial_id) AS trials,
    count(cost_usd) AS priced_calls, sum(cost_usd) AS cost_usd,
    sum(input_tokens)::BIGINT AS input_tokens, sum(cached_input_tokens)::BIGINT AS cached_input_tokens,
    sum(cache_write_tokens)::BIGINT AS cache_write_tokens, sum(output_tokens)::BIGINT AS output_tokens,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens
FROM attempts GROUP BY ALL
"""


def _quantiles(column: str) -> str:
    return ", ".join(
        f"quantile_cont({column}, {share}) AS {column.removesuffix('_s')}_p{round(100 * share)}_s"
        for share in (0.5, 0.95, 0.99)
    )


_LATENCY = f"""
SELECT model, provider, count(*) AS answered, count(ttft_s) AS streamed,
    {_quantiles("ttft_s")}, {_quantiles("latency_s")}, {_quantiles("queued_s")},
    sum(output_tokens) FILTER (latency_s > 0) / sum(latency_s) FILTER (output_tokens IS NOT NULL)
        AS output_tokens_per_s,
    quantile_cont(loop_lag_s, 0.99) AS loop_lag_p99_s, max(in_flight) AS most_in_flight
FROM attempts WHERE status = 'ok' GROUP BY ALL
"""  # noqa: S608  made of our own words alone

SUMS: Mapping[str, str] = {"accuracy": _ACCURACY, "cost": _COST, "latency": _LATENCY}
MADE_OF = {"accuracy": "trials", "cost": "attempts", "latency": "attempts"}
VIEWS = (*SCHEMAS, "problems", *SUMS)


def add_views(connection: "duckdb.DuckDBPyConnection", folder: Path, snapshot: Snapshot) -> None:
    """Make the views in a connection; the folder is as the snapshot has it."""
    for name, schema in SCHEMAS.items():
        connection.register(f"journalled_{name}", snapshot.journalled[name])
        _add(connection, name, _table(name, schema.names, snapshot))
    _add(connection, "problems", _problems(copies(folder)))
    for name, sql in SUMS.items():
        _add(connection, name, sql)


def _add(connection: "duckdb.DuckDBPyConnection", name: str, sql: str) -> None:
    connection.execute(f"CREATE VIEW {name} AS {sql}")


def _table(name: str, columns: Sequence[str], snapshot: Snapshot) -> str:
    """Return the rows of the parts, then of the journal; what was answered again since counts once."""
    chosen = ", ".join(columns)
    journalled = f"SELECT {chosen} FROM journalled_{name}"  # noqa: S608  our own words alone
    if not snapshot.files[name]:
        return journalled
    parts = f"SELECT * FROM {_files(snapshot.files[name])}"  # noqa: S608  our own words, quoted paths
    if later := [one for one in overruled_by(name) if len(snapshot.journalled[one])]:
        ids = " UNION ALL ".join(f"SELECT trial_id FROM journalled_{one}" for one in later)  # noqa: S608  our own words
        parts += f" WHERE trial_id NOT IN ({ids})"
    # by name: a column that the parts do not have yet is NULL
    return f"SELECT {chosen} FROM ({parts} UNION ALL BY NAME {journalled})"  # noqa: S608  our own words, quoted paths


def _problems(found: Sequence[Copy]) -> str:
    if not found:
        empty = ", ".join(f"NULL::{'INTEGER' if n == 'length' else 'VARCHAR'} AS {n}" for n in PROBLEMS.names)
        return f"SELECT {empty} WHERE false"
    return " UNION ALL ".join(map(_copy, found))


def _copy(copy: Copy) -> str:
    """Return what counts of a copy: the problems that no newer one holds."""
    named = f"SELECT {_text(copy.problem_set)} AS problem_set, * FROM {_files([copy.path])}"  # noqa: S608  our own words, quoted paths
    rows = f"SELECT {', '.join(PROBLEMS.names)} FROM ({named})"  # noqa: S608  our own words, quoted paths
    if not copy.replaces:
        return rows
    return f"{rows} WHERE problem_id NOT IN (SELECT problem_id FROM {_files(copy.replaces)})"  # noqa: S608  our own words, quoted paths


def _files(paths: Sequence[Path]) -> str:
    """Return Parquet files as one table, by their own columns: a folder's name (`model=…`) is none."""
    names = ", ".join(_text(escape(str(path.absolute()))) for path in paths)
    return f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"


def _text(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"
