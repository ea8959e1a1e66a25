"""Readers of a results folder: its tables, and the trials that it already holds."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute

from asyncbench.records import History, Outcome
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.id_set import LEAST, IdSet
from asyncbench.store.reading import take_snapshot
from asyncbench.store.snapshot import (
    BATCH_ROWS as ROWS,
    MANY_ROWS,
    READ_TRIES,
    Columns,
    Filters,
    MovedError,
    Snapshot,
    table_reader,
)

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

T = TypeVar("T")


@table_reader
def read_trials(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the answers of a results folder: one row per finished trial.

        trials = ab.read_trials("results/night", ["model", "task", "exact_match"], as_="pandas")

    You can read while a run writes to the folder. Rows come in no fixed order. Times are in UTC, durations
    in seconds, costs in USD; NULL means unknown.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("outcome", "=", "wrong")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("trials", columns, filters))


@table_reader
def read_grades(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the grades: one row per finished trial and grader.

    `headline` marks the grader that decides `exact_match` in `trials`. Join the tables on `trial_id`.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("model", "=", "small")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("grades", columns, filters))


@table_reader
def read_attempts(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the calls: one row per finished call, also of trials that failed or are still open.

    Sum money and tokens here: `cost_usd` is in USD, `latency_s` and `ttft_s` in seconds.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("model", "=", "small")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("attempts", columns, filters))


@table_reader
def read_lanes(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the use of rate limits: one row per lane and minute.

    A lane is a model, or a group of models that share limits.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("lane", "=", "small")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("lanes", columns, filters))


@table_reader
def read_skipped(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the trials that `stop_when` skipped: one row per trial.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("model", "=", "small")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("skipped", columns, filters))


@table_reader
def read_steps(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Read the results of the steps of `asyncbench load`: one row per model and step.

    Args:
        folder: the results folder, or a list of several: the column `folder` then comes first.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them: `[("model", "=", "small")]`
            or a `pyarrow.compute` expression. They may use any column. [all rows]
        as_: `arrow`, `pandas` or `polars`. [arrow]

    Returns:
        A `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, a filter is wrong, or
            the package that `as_` names is not installed.
        StoreError: A file of the folder is missing or damaged.
    """
    return steady(folder, lambda seen: seen.read("steps", columns, filters))


def iter_trials(
    folder: Path | str,
    columns: Columns = None,
    filters: Filters | None = None,
    *,
    batch_rows: int = ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read the answers in batches, for folders larger than memory.

        for batch in ab.iter_trials("results/night", ["model", "exact_match"]):
            print(batch.num_rows)

    Args:
        folder: the results folder.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them, such as `[("model", "=", "small")]`.
            [all rows]
        batch_rows: the most rows of a batch. [8,192]

    Returns:
        An iterator of `pyarrow.RecordBatch`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, or a filter is wrong.
        StoreError: A file is missing or damaged. A damaged file raises when its rows are reached.
    """
    return take_snapshot(local_folder(folder)).batches("trials", columns, filters, rows=batch_rows)


def iter_grades(
    folder: Path | str,
    columns: Columns = None,
    filters: Filters | None = None,
    *,
    batch_rows: int = ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read the grades in batches, for folders larger than memory.

    Args:
        folder: the results folder.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them, such as `[("model", "=", "small")]`.
            [all rows]
        batch_rows: the most rows of a batch. [8,192]

    Returns:
        An iterator of `pyarrow.RecordBatch`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, or a filter is wrong.
        StoreError: A file is missing or damaged. A damaged file raises when its rows are reached.
    """
    return take_snapshot(local_folder(folder)).batches("grades", columns, filters, rows=batch_rows)


def iter_attempts(
    folder: Path | str,
    columns: Columns = None,
    filters: Filters | None = None,
    *,
    batch_rows: int = ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read the calls in batches, for folders larger than memory.

    Args:
        folder: the results folder.
        columns: the names of the columns, in the order you want. [all]
        filters: which rows, as `pyarrow.parquet.read_table` takes them, such as `[("model", "=", "small")]`.
            [all rows]
        batch_rows: the most rows of a batch. [8,192]

    Returns:
        An iterator of `pyarrow.RecordBatch`.

    Raises:
        ConfigError: The folder is not a results folder, a column does not exist, or a filter is wrong.
        StoreError: A file is missing or damaged. A damaged file raises when its rows are reached.
    """
    return take_snapshot(local_folder(folder)).batches("attempts", columns, filters, rows=batch_rows)


@dataclass(frozen=True, kw_only=True)
class KnownTrials:
    """What a results folder knows of the trials that a run might ask."""

    finished: IdSet = field(default_factory=lambda: IdSet.collect(()))  # closed, and not to be asked again
    failed: IdSet = field(default_factory=lambda: IdSet.collect(()))  # those of them without a reply
    again: Mapping[str, Outcome] = field(default_factory=dict)  # closed with this, and to be asked again
    seen: Snapshot | None = None  # the folder; None: nobody asks about calls

    @cached_property
    def histories(self) -> Mapping[str, History]:
        """What is known of all others that were called; looked for when it is first asked for."""
        if self.seen is None:
            return {}
        calls: dict[str, tuple[int, float | None]] = {}
        for rows in together(self.seen, "attempts", ["trial_id", "attempt", "cost_usd"], len(self.finished)):
            for row in rows.filter(pc.invert(self.finished.among(rows["trial_id"]))).to_pylist():
                number, cost = calls.get(row["trial_id"], (0, 0.0))
                unknown = cost is None or row["cost_usd"] is None
                calls[row["trial_id"]] = (
                    max(number, row["attempt"]),
                    None if unknown else cost + row["cost_usd"],
                )
        replies = self.seen.unfinished.replies
        return {
            trial_id: History(attempts=attempts, cost_usd=cost_usd, ended=replies.get(trial_id))
            for trial_id, (attempts, cost_usd) in calls.items()
        }


def known_trials(folder: Path | str, *, again: Collection[Outcome] = ()) -> KnownTrials:
    """Return the known trials of a folder; those with an outcome of `again` count as unfinished.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    return steady(folder, lambda seen: _find_trials(seen, frozenset(again)))


def _find_trials(snapshot: Snapshot, again: Collection[Outcome]) -> KnownTrials:
    finished, failed = defaultdict[str, list[Any]](list), list[Any]()
    repeated = dict[str, Outcome]()
    # asked again, and answered, but not graded yet: what was paid for is not forgotten
    answered = pa.array(snapshot.unfinished.replies, pa.string())
    for batch in snapshot.batches(
        "trials", ["trial_id", "outcome", "model"], rows=MANY_ROWS, coded=["model"]
    ):
        for outcome in again:
            with_outcome = batch["trial_id"].filter(_is(outcome, batch["outcome"]))
            repeated.update(dict.fromkeys(texts(with_outcome), outcome))
        names = pa.array([*map(str, again)], pa.string())
        others = pc.or_(
            pc.is_in(batch["outcome"], value_set=names), pc.is_in(batch["trial_id"], value_set=answered)
        )
        closed = batch.filter(pc.invert(others))
        failed.append(closed["trial_id"].filter(_is(Outcome.FAILED, closed["outcome"])))
        for alias in pc.unique(closed["model"]).to_pylist():  # a part has but one
            finished[alias].append(closed["trial_id"].filter(pc.equal(closed["model"], pa.scalar(alias))))
    return KnownTrials(
        finished=IdSet.join_models(
            {alias: pa.chunked_array(ids, pa.string()) for alias, ids in finished.items()}
        ),
        failed=IdSet(pa.chunked_array(failed, pa.string())),
        again=repeated,
        seen=snapshot,
    )


def _is(outcome: Outcome, column: Any) -> Any:  # Any: columns of Arrow, of which the stubs know too little
    return pc.equal(column, pa.scalar(str(outcome)))


def texts(column: "pa.Array[pa.StringScalar]") -> list[str]:
    """Return the values of a column that is never NULL."""
    return cast("list[str]", column.to_pylist())


def together(snapshot: Snapshot, table: str, columns: Sequence[str], ids: int) -> Iterator[pa.Table]:
    """Yield rows of many parts together: as many as make few lookups in a set of so many `ids`."""
    batches, rows = list[pa.RecordBatch](), 0
    for batch in snapshot.batches(table, columns, rows=MANY_ROWS):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= max(LEAST, ids // 4):
            yield pa.Table.from_batches(batches)
            batches, rows = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def right_ids(folder: Path | str) -> frozenset[str]:
    """Return the ids of the trials with the right answer; raises as `known_trials` does."""
    return _ids_where(folder, pc.field("exact_match"))


def failed_ids(folder: Path | str) -> frozenset[str]:
    """Return the ids of the trials that were closed without a reply; raises as `known_trials` does."""
    return _ids_where(folder, pc.field("outcome") == Outcome.FAILED.value)


def _ids_where(folder: Path | str, condition: pc.Expression) -> frozenset[str]:
    def matching(seen: Snapshot) -> frozenset[str]:
        batches = seen.batches("trials", ["trial_id"], condition, rows=MANY_ROWS)
        return frozenset(trial_id for batch in batches for trial_id in texts(batch["trial_id"]))

    return steady(folder, matching)


def steady(folder: Path | str, use: Callable[[Snapshot], T]) -> T:
    """Return the result of `use` on a folder; looks again when parts were replaced between look and use."""
    path = local_folder(folder)
    return patiently(lambda: use(take_snapshot(path)))


def patiently(read: Callable[[], T]) -> T:
    """Return the result of `read`; calls it again, some times, when parts were replaced meanwhile."""
    for _ in range(READ_TRIES):
        with suppress(MovedError):
            return read()
    return read()
