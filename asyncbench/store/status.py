"""Counts of the trials in a results folder, and the state of its files."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import FINAL_FOR_LANE, ErrorKind
from asyncbench.records import LEFT_SWEEP
from asyncbench.store.bucket.fetching import local_folder
from asyncbench.store.catalog import steady
from asyncbench.store.lock import writer_of
from asyncbench.store.manifest import folders_of
from asyncbench.store.parts import TEMPORARY
from asyncbench.store.sealing import all_parts
from asyncbench.store.segment import Damage, quarantined, segments
from asyncbench.store.snapshot import Snapshot
from asyncbench.tables.numbers import known_cost

_FEW = ("model", "outcome", "load", "status")  # columns with few different texts


@dataclass(slots=True, kw_only=True)
class ModelCounts:
    """How far one model is."""

    outcomes: dict[str, int] = field(default_factory=dict)  # finished trials by outcome, but for loads
    loaded: int = 0  # finished trials of loads
    steps: Counter[str | None] = field(default_factory=Counter)  # of loads, by verdict
    attempts: int = 0  # calls that are over
    cost_usd: float | None = 0.0  # of the calls whose cost is known; None: of none is it known
    unpriced: int = 0  # calls whose cost is unknown
    in_flight: int = 0  # calls without an end; when no run is going, they are lost
    suspended: str | None = None  # the kind of error by which it was refused for good; None: it was not
    skips: dict[tuple[int, int], int] = field(default_factory=dict)  # by (correct, asked) of their cells

    @property
    def finished(self) -> int:
        return sum(self.outcomes.values())

    @property
    def skipped(self) -> int:
        """Trials written down as skipped, whatever the rule in force says of them."""
        return sum(self.skips.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """How far a results folder is."""

    models: Mapping[str, ModelCounts]  # by alias, in order
    written_at: float | None  # UTC, seconds since 1970; None: nothing was written yet
    damaged: Sequence[Damage]  # lines of the journal that cannot be used
    quarantined: Mapping[str, int] = field(default_factory=dict)  # of earlier segments, by name
    waiting: Mapping[str, int] = field(default_factory=dict)  # rows that only the journal holds, by table
    ungraded: int = 0  # answers that are not graded yet: the next run does, if none is going
    outside: int = 0  # answers that nobody grades, as their trials have left the sweep
    changes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by people: when, who, what → lanes


def trial_counts(folder: Path | str) -> TrialCounts:
    """Count what a results folder holds, whether a run is going, was killed, or is complete.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: its manifest or its journal cannot be read.
    """
    path = local_folder(folder)

    def counted(seen: Snapshot) -> TrialCounts:
        folders = folders_of(path)
        outside = sum(ended.attempt.note == LEFT_SWEEP for ended in seen.unfinished.replies.values())

        # What people changed while runs went on, with the lanes in which they did.
        changes: defaultdict[str, list[str]] = defaultdict(list)
        rows = seen.read("lanes", ["lane", "changes"], ~pc.field("changes").is_null()).to_pylist()
        for row in rows:
            for change in row["changes"].splitlines():
                changes[change].append(row["lane"])

        stats = _stats(file for each in folders for file in segments(each / "journal") + all_parts(each))
        return TrialCounts(
            models=count_models(seen),
            written_at=max((stat.st_mtime for stat in stats), default=None),
            damaged=seen.damaged,
            quarantined={
                str((each / name).relative_to(path)): lines
                for each in folders
                for name, lines in quarantined(each).items()
            },
            waiting={name: len(rows) for name, rows in seen.journalled.items()},
            ungraded=len(seen.unfinished.replies) - outside,
            outside=outside,
            # By time alone: two of one moment stay in the order in which they were made.
            changes=dict(sorted(changes.items(), key=lambda change: change[0].partition(" ")[0])),
        )

    return steady(path, counted)


def _stats(paths: Iterable[Path]) -> list[os.stat_result]:
    stats = []
    for path in paths:
        with suppress(FileNotFoundError):  # sealed, or compacted, a moment ago
            stats.append(path.stat())
    return stats


def count_models(snapshot: Snapshot) -> dict[str, ModelCounts]:
    """Return how far each model is at one moment of a folder, by alias, in order."""
    models: defaultdict[str, ModelCounts] = defaultdict(ModelCounts)
    trials = snapshot.read_coded("trials", ["model", "outcome", "load"], coded=_FEW)
    at_rest = trials.filter(pc.is_null(trials["load"])).group_by(["model", "outcome"])
    for row in at_rest.aggregate([([], "count_all")]).to_pylist():
        models[row["model"]].outcomes[row["outcome"]] = row["count_all"]
    for row in trials.group_by("model").aggregate([("load", "count")]).to_pylist():
        models[row["model"]].loaded = row["load_count"]
    for row in snapshot.read("steps", ["model", "verdict"]).to_pylist():
        models[row["model"]].steps[row["verdict"]] += 1
    attempts = snapshot.read_coded("attempts", ["model", "cost_usd", "started_at"], coded=_FEW)
    null_if_none = pc.ScalarAggregateOptions(min_count=1)  # where no cost is known, the sum is not 0
    sums = attempts.group_by("model", use_threads=False).aggregate(  # always the same sum of dollars
        [([], "count_all"), ("cost_usd", "sum", null_if_none), ("cost_usd", "count"), ("started_at", "max")]
    )
    last_begun: dict[str, datetime] = {}
    for row in sums.to_pylist():
        last_begun[row["model"]] = row["started_at_max"]
        model = models[row["model"]]
        model.attempts = row["count_all"]
        model.unpriced = row["count_all"] - row["cost_usd_count"]
        model.cost_usd = known_cost(row["cost_usd_sum"], unknown=model.unpriced)
    keys = ["model", "correct", "asked"]
    skipped = snapshot.read("skipped", keys).group_by(keys).aggregate([([], "count_all")])
    for row in skipped.to_pylist():
        models[row["model"]].skips[row["correct"], row["asked"]] = row["count_all"]
    for alias, why in suspended(snapshot, last_begun).items():
        models[alias].suspended = why
    for sent in snapshot.unfinished.sent.values():
        models[sent.model].in_flight += 1
        models[sent.model].suspended = None  # whether it is shows when its last calls have ended
    return dict(sorted(models.items()))


# a few equal ones of the last kind suspend a model; then their trials stay open
REFUSALS = (*sorted(FINAL_FOR_LANE), ErrorKind.BAD_REQUEST)


def suspended(seen: Snapshot, last_begun: Mapping[str, datetime]) -> dict[str, str]:
    """Return why each model that is refused for good is: alias → the kind of the error.

    It is read off the calls, for a killed run says nothing. Once a model is suspended, no call of it is begun
    any more: so its last calls ended in a refusal, and none was begun after that.

    Args:
        seen: the folder.
        last_begun: when the last call of each model was begun, by alias.
    """
    wanted = ["model", "trial_id", "status", "started_at", "latency_s", "batch_ended_at"]
    refusals = pc.field("status").isin(pa.array(REFUSALS, pa.string()))
    refused = seen.read_coded("attempts", wanted, refusals, coded=_FEW)
    refused_ids = pc.unique(refused.filter(pc.field("status") == ErrorKind.BAD_REQUEST.value)["trial_id"])
    its = pc.field("trial_id").isin(refused_ids)
    closed = (
        set(seen.read("trials", ["trial_id"], its)["trial_id"].to_pylist()) if len(refused_ids) else set()
    )
    ends: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for row in refused.to_pylist():
        if row["status"] in FINAL_FOR_LANE or row["trial_id"] not in closed:
            ended_at = row["batch_ended_at"] or row["started_at"] + timedelta(seconds=row["latency_s"] or 0.0)
            ends[row["model"]].append((ended_at, row["status"]))
    last = {model: max(many) for model, many in ends.items()}
    return {model: why for model, (ended_at, why) in last.items() if last_begun[model] <= ended_at}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the files of a results folder are like."""

    writer: int | None  # the process that is writing to it, 0: one that does not say; None: nobody is
    parts: int
    part_bytes: int
    segments: int  # of the journal
    journal_bytes: int
    leftovers: tuple[str, ...]  # of a dead process, relative to the folder; the next run clears them away


def read_upkeep(folder: Path) -> Upkeep:
    """Look at the files of a results folder; nothing is changed."""
    folders = folders_of(folder)
    parts = [path for each in folders for path in all_parts(each)]
    journal = [path for each in folders for path in segments(each / "journal")]

    # What a dead process left: files that it was writing, and a journal that no run has open.
    leftovers = list[Path]()
    for each in folders:
        if writer_of(each) is None:
            leftovers += sorted(path for path in (each / TEMPORARY).rglob("*") if path.is_file())
            leftovers += segments(each / "journal")
    return Upkeep(
        writer=writer_of(folder),
        parts=len(parts),
        part_bytes=sum(stat.st_size for stat in _stats(parts)),
        segments=len(journal),
        journal_bytes=sum(stat.st_size for stat in _stats(journal)),
        leftovers=tuple(str(path.relative_to(folder)) for path in leftovers),
    )
