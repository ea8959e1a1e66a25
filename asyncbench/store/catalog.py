"""What a results folder already holds: its tables, what is finished, what it cost so far."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import History, Outcome
from asyncbench.store.snapshot import (
    BATCH_ROWS as ROWS,
    LOOKS,
    Columns,
    Filters,
    MovedError,
    Snapshot,
    take_snapshot,
)

T = TypeVar("T")

_MANY = 65_536  # rows at a time where few columns are read


def read_trials(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Return `trials`, one row a finished trial; docs/results.md describes the columns.

    What only the journal holds yet is among them, so that a folder can be read while a run writes to it.

    Args:
        folder: a results folder.
        columns: their names, in the order wanted; None: all.
        filters: as `pyarrow.parquet.read_table` takes them, over any columns; None: every row.

    Raises:
        ConfigError: the folder is not a results folder; a column that is not there; a filter that cannot be.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    return steady(folder, lambda seen: seen.read("trials", columns, filters))


def read_grades(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Return `grades`, one row a finished trial and grader; raises as `read_trials` does."""
    return steady(folder, lambda seen: seen.read("grades", columns, filters))


def read_attempts(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Return `attempts`, one row a call that is over; raises as `read_trials` does."""
    return steady(folder, lambda seen: seen.read("attempts", columns, filters))


def read_lanes(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Return `lanes`, one row a lane and minute; raises as `read_trials` does."""
    return steady(folder, lambda seen: seen.read("lanes", columns, filters))


def read_skipped(folder: Path | str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
    """Return `skipped`, one row a trial that needs no answer; raises as `read_trials` does."""
    return steady(folder, lambda seen: seen.read("skipped", columns, filters))


def iter_trials(
    folder: Path | str, columns: Columns = None, filters: Filters | None = None, *, batch_rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_trials` in batches of at most `batch_rows`: for tables larger than memory.

    It raises as `read_trials` does, all but what spoiled parts raise before the first batch.
    """
    return take_snapshot(Path(folder)).batches("trials", columns, filters, rows=batch_rows)


def iter_grades(
    folder: Path | str, columns: Columns = None, filters: Filters | None = None, *, batch_rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_grades` in batches, as `iter_trials` does."""
    return take_snapshot(Path(folder)).batches("grades", columns, filters, rows=batch_rows)


def iter_attempts(
    folder: Path | str, columns: Columns = None, filters: Filters | None = None, *, batch_rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_attempts` in batches, as `iter_trials` does."""
    return take_snapshot(Path(folder)).batches("attempts", columns, filters, rows=batch_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrials:
    """What a results folder knows of the trials that a run might ask."""

    finished: frozenset[str] = frozenset()  # trial ids: closed, and not to be asked again
    failed: frozenset[str] = frozenset()  # those of them without a reply
    again: Mapping[str, Outcome] = field(default_factory=dict)  # closed with this, and to be asked again
    histories: Mapping[str, History] = field(default_factory=dict)  # of all others that were called


def known_trials(folder: Path | str, *, again: Collection[Outcome] = ()) -> KnownTrials:
    """Return what a results folder knows; trials with an outcome of `again` count as unfinished.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest, its journal or a part cannot be read.
    """
    return steady(folder, lambda seen: _known(seen, frozenset(again)))


def _known(snapshot: Snapshot, again: Collection[Outcome]) -> KnownTrials:
    finished, failed, repeated = set[str](), set[str](), dict[str, Outcome]()
    for batch in snapshot.batches("trials", ["trial_id", "outcome"], rows=_MANY):
        ids = batch["trial_id"]
        of_outcome = {
            outcome: texts(ids.filter(pc.equal(batch["outcome"], pa.scalar(outcome.value))))
            for outcome in Outcome
        }
        failed.update(of_outcome[Outcome.FAILED])
        for outcome, found in of_outcome.items():
            if outcome in again:
                repeated.update(dict.fromkeys(found, outcome))
            else:
                finished.update(found)
    # asked again, and answered, but not graded yet: what was paid for is not forgotten
    finished.difference_update(snapshot.unfinished.replies)
    failed &= finished
    return KnownTrials(
        finished=frozenset(finished),
        failed=frozenset(failed),
        again=repeated,
        histories=_histories(snapshot, finished),
    )


def texts(column: "pa.Array[pa.StringScalar]") -> list[str]:
    """Return the values of a column that is never NULL."""
    return cast("list[str]", column.to_pylist())


def _histories(snapshot: Snapshot, finished: Container[str]) -> dict[str, History]:
    calls: dict[str, tuple[int, float | None]] = {}
    for batch in snapshot.batches("attempts", ["trial_id", "attempt", "cost_usd"], rows=_MANY):
        others = pa.array(
            [trial_id not in finished for trial_id in batch["trial_id"].to_pylist()], pa.bool_()
        )
        for row in batch.filter(others).to_pylist():
            number, cost = calls.get(row["trial_id"], (0, 0.0))
            unknown = cost is None or row["cost_usd"] is None
            calls[row["trial_id"]] = (
                max(number, row["attempt"]),
                None if unknown else cost + row["cost_usd"],
            )
    replies = snapshot.unfinished.replies
    return {
        trial_id: History(attempts=attempts, cost_usd=cost_usd, ended=replies.get(trial_id))
        for trial_id, (attempts, cost_usd) in calls.items()
    }


def right_ids(folder: Path | str) -> frozenset[str]:
    """Return the ids of the trials with the right answer; raises as `known_trials` does."""
    return _ids_where(folder, pc.field("exact_match"))


def failed_ids(folder: Path | str) -> frozenset[str]:
    """Return the ids of the trials that were closed without a reply; raises as `known_trials` does."""
    return _ids_where(folder, pc.field("outcome") == Outcome.FAILED.value)


def _ids_where(folder: Path | str, condition: pc.Expression) -> frozenset[str]:
    def found(seen: Snapshot) -> frozenset[str]:
        batches = seen.batches("trials", ["trial_id"], condition, rows=_MANY)
        return frozenset(trial_id for batch in batches for trial_id in texts(batch["trial_id"]))

    return steady(folder, found)


def steady(folder: Path | str, use: Callable[[Snapshot], T]) -> T:
    """Return what `use` makes of a folder; looks again when parts were replaced between look and use."""
    return patiently(lambda: use(take_snapshot(Path(folder))))


def patiently(read: Callable[[], T]) -> T:
    """Return what `read` returns; calls it again, some times, when parts were replaced under its hands."""
    for _ in range(LOOKS):
        with suppress(MovedError):
            return read()
    return read()
