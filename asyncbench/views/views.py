"""The tables of a results folder as views of a DuckDB connection, and three ready sums over them.

`trials`, `grades`, `attempts`, `lanes`, `skipped`, `problems`: the rows that every reader gives, those that
only the journal holds among them. `accuracy`, `cost`, `latency`: the usual questions, in the finest cells.

DuckDB opens no file. A scan tells its columns and its filter; our own readers fetch just these, checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from asyncbench.records import Outcome
from asyncbench.stats import Z_95
from asyncbench.store import CELL, SCHEMAS, Snapshot, iter_problems
from asyncbench.store import COPY_SCHEMA as PROBLEMS

if TYPE_CHECKING:
    import duckdb

_CELL = ", ".join(CELL)

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
VIEWS = (*SCHEMAS, "problems", *SUMS)
ROWS = 2048  # of a batch, as DuckDB works on: replies may be long

# some columns, a filter → rows
Rows = Callable[[Sequence[str], pc.Expression | None], Iterator[pa.RecordBatch]]


def add_views(connection: "duckdb.DuckDBPyConnection", folder: Path, snapshot: Snapshot) -> "Sources":
    """Make the views of a folder, as the snapshot has it, in a connection; return where rows come from."""
    sources = Sources()
    for name, schema in SCHEMAS.items():
        connection.register(name, sources.of(schema, partial(snapshot.batches, name, rows=ROWS)))
    connection.register("problems", sources.of(PROBLEMS, partial(iter_problems, folder, batch_rows=ROWS)))
    for name, query in SUMS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    return sources


@dataclass(slots=True)
class Sources:
    """Where the scans of a connection get their rows, and the error that ended one.

    DuckDB passes on only the words of an error.
    """

    refused: list[Exception] = field(default_factory=list)

    def of(self, schema: pa.Schema, rows: Rows) -> ds.Dataset:
        """Return a table that DuckDB can scan, as often as it likes."""
        return _Table(schema, partial(self._read, rows))

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
