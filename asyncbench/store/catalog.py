"""What a results folder already holds: its tables, what is finished, what it cost so far."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import History, Outcome
from asyncbench.store.partitions import part_files
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.segment import Damage, segments
from asyncbench.store.snapshot import Filters, Snapshot, look


def read_trials(
    folder: Path | str, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Return `trials`, one row a finished trial; docs/results.md describes the columns.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest or its journal cannot be read.
    """
    return look(Path(folder)).read("trials", columns, filters)


def read_grades(
    folder: Path | str, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Return `grades`, one row a finished trial and grader; raises as `read_trials` does."""
    return look(Path(folder)).read("grades", columns, filters)


def read_attempts(
    folder: Path | str, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Return `attempts`, one row a call that is over; raises as `read_trials` does."""
    return look(Path(folder)).read("attempts", columns, filters)


def read_lanes(
    folder: Path | str, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Return `lanes`, one row a lane and minute; raises as `read_trials` does."""
    return look(Path(folder)).read("lanes", columns, filters)


def finished_ids(folder: Path | str, *, again: Collection[Outcome] = ()) -> frozenset[str]:
    """Return the ids of all finished trials; those with an outcome of `again` count as unfinished."""
    return _as_ids(_finished(look(Path(folder)), again))


def failed_ids(folder: Path | str) -> frozenset[str]:
    """Return the ids of the trials that were closed without a reply."""
    failed = pc.field("outcome") == Outcome.FAILED.value
    return _as_ids(look(Path(folder)).read("trials", ["trial_id"], failed)["trial_id"])


def _as_ids(column: "pa.ChunkedArray[pa.StringScalar]") -> frozenset[str]:
    return frozenset(cast("list[str]", column.to_pylist()))  # the column is never NULL


def histories(folder: Path | str, *, again: Collection[Outcome] = ()) -> dict[str, History]:
    """Return what is known of each unfinished trial for which calls were made, by trial id."""
    snapshot = look(Path(folder))
    attempts = snapshot.read("attempts", ["trial_id", "attempt", "cost_usd"])
    finished = pc.is_in(attempts["trial_id"], value_set=_finished(snapshot, again))
    unknown_if_any_is = pc.ScalarAggregateOptions(skip_nulls=False)
    totals = (
        attempts.filter(pc.invert(finished))
        .group_by("trial_id")
        .aggregate([("attempt", "max"), ("cost_usd", "sum", unknown_if_any_is)])
    )
    return {
        row["trial_id"]: History(
            attempts=row["attempt_max"],
            cost_usd=row["cost_usd_sum"],
            ended=snapshot.unfinished.replies.get(row["trial_id"]),
        )
        for row in totals.to_pylist()
    }


@dataclass(slots=True, kw_only=True)
class ModelCounts:
    """How far one model is."""

    outcomes: dict[str, int] = field(default_factory=dict)  # finished trials by outcome
    attempts: int = 0  # calls that are over
    cost_usd: float | None = 0.0  # of the calls whose cost is known; None: of none is it known
    unpriced: int = 0  # calls whose cost is unknown
    in_flight: int = 0  # calls without an end; when no run is going, they are lost

    @property
    def finished(self) -> int:
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far a results folder is."""

    models: Mapping[str, ModelCounts]  # by alias, in order
    written_at: float | None  # UTC, seconds since 1970; None: nothing was written yet
    damaged: Sequence[Damage]  # lines of the journal that cannot be used


def counts(folder: Path | str) -> Counts:
    """Count what a results folder holds, whether a run is going, was killed, or is complete.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest or its journal cannot be read.
    """
    snapshot = look(Path(folder))
    return Counts(
        models=_by_model(snapshot),
        written_at=_written_at(Path(folder)),
        damaged=snapshot.damaged,
    )


def _finished(snapshot: Snapshot, again: Collection[Outcome]) -> "pa.ChunkedArray[pa.StringScalar]":
    counts = ~pc.field("outcome").isin(pa.array(again, pa.string()))
    # asked again, and answered, but not graded yet: what was paid for is not forgotten
    settled = ~pc.field("trial_id").isin(pa.array(snapshot.unfinished.replies, pa.string()))
    return snapshot.read("trials", ["trial_id"], counts & settled)["trial_id"]


def _written_at(folder: Path) -> float | None:
    parts = [path for name in SCHEMAS for path in part_files(folder, name)]
    times = []
    for path in segments(folder / "journal") + parts:
        with suppress(FileNotFoundError):  # sealed a moment ago
            times.append(path.stat().st_mtime)
    return max(times, default=None)


def _by_model(snapshot: Snapshot) -> dict[str, ModelCounts]:
    models: defaultdict[str, ModelCounts] = defaultdict(ModelCounts)
    trials = snapshot.read("trials", ["model", "outcome"]).group_by(["model", "outcome"])
    for row in trials.aggregate([([], "count_all")]).to_pylist():
        models[row["model"]].outcomes[row["outcome"]] = row["count_all"]
    attempts = snapshot.read("attempts", ["model", "cost_usd"]).group_by("model")
    known = pc.ScalarAggregateOptions(min_count=1)  # without any, the sum is unknown, not 0
    sums = attempts.aggregate([([], "count_all"), ("cost_usd", "sum", known), ("cost_usd", "count")])
    for row in sums.to_pylist():
        model = models[row["model"]]
        model.attempts = row["count_all"]
        model.cost_usd = row["cost_usd_sum"]
        model.unpriced = row["count_all"] - row["cost_usd_count"]
    for sent in snapshot.unfinished.sent.values():
        models[sent.model].in_flight += 1
    return dict(sorted(models.items()))
