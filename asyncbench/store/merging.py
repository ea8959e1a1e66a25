"""The tables of several results folders as those of one: each trial once, every call that was made.

Which row a trial keeps: a complete answer before one that was cut short, that before none; of equals the
one finished first. The calls of a trial that was asked in several folders are numbered anew by their time,
and its row tells how many they are and what they cost together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Union
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.files import write_durably
from asyncbench.records import Ended, Outcome
from asyncbench.store.holdings import JOURNAL, list_of
from asyncbench.store.journal import Journal, Unfinished, lost
from asyncbench.store.manifest import HOLDS, changed_manifest, lost_files, read_manifest
from asyncbench.store.parts import TEMPORARY, Part
from asyncbench.store.rows import attempt_row
from asyncbench.store.schema import ATTEMPTS, LOST, PARTITIONED_BY, SCHEMAS
from asyncbench.store.sealing import by_partition, next_number
from asyncbench.store.segment import QUARANTINE, Damage, lines_of, segments
from asyncbench.store.snapshot import Snapshot, take_snapshot
from asyncbench.store.tables import joined

PART = "part-000001.parquet"
WORSE = {Outcome.TRUNCATED.value: 1, Outcome.FAILED.value: 2}  # than a complete answer

Ids = Union["pa.ChunkedArray[pa.StringScalar]", "pa.StringArray"]
Flags = Union["pa.ChunkedArray[pa.BooleanScalar]", "pa.BooleanArray"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFolders:
    """What became of the rows of several folders."""

    trials: int
    trials_twice: int  # rows that gave way to another folder's
    attempts: int
    attempts_twice: int  # calls that stood in several folders
    damaged: int  # lines of journals, and parts of lines, that were set aside


def join_folders(folders: Sequence[Path], out: Path) -> JoinedFolders:
    """Write the tables, the journal and the quarantine of `out`, which is new, from those of the folders.

    No run may be going in any of them; none is changed. In memory are the ids of all trials, the calls of
    those that stand in several folders, and some thousands of rows.

    Raises:
        StoreError: a folder cannot be read, or the disk does not take the new one.
    """
    seen = [take_snapshot(folder) for folder in folders]
    trials, calls = _Trials.of(seen), _Calls.of(seen)
    for name in SCHEMAS:
        for place in _places(name, seen):
            part = Part(out, place / PART)
            for rows in _rows(name, place, seen, trials, calls):
                part.add(rows)
            part.finish()
            part.publish()
    damaged = _set_aside(folders, seen, out)
    _carry(seen, trials, calls, out)
    gone = [file for folder in folders for file in lost_files(read_manifest(folder))]
    with changed_manifest(out) as manifest:
        manifest[HOLDS] = {
            "parts": list_of(out),
            JOURNAL: [path.name for path in segments(out / JOURNAL)],
            "lost": [file for n, file in enumerate(gone) if file not in gone[:n]],
        }
    kept = take_snapshot(out)
    return JoinedFolders(
        trials=len(kept.read("trials", ["trial_id"])),
        trials_twice=sum(map(len, trials.given_way)),
        attempts=len(kept.read("attempts", ["trial_id"])),
        attempts_twice=calls.twice,
        damaged=damaged,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trials:
    """Whose row of a trial that stands in several folders is kept."""

    given_way: Sequence[Ids]  # of each folder, the trials whose row another has
    complete: Sequence[Ids]  # of each folder, those whose complete answer is kept
    closed: "pa.ChunkedArray[pa.StringScalar]"  # of all folders
    skipped: Sequence["pa.ChunkedArray[pa.StringScalar]"]  # of each folder

    @classmethod
    def of(cls, seen: Sequence[Snapshot]) -> "_Trials":
        rows = pa.concat_tables(
            _from(source, snapshot.read("trials", ["trial_id", "outcome", "finished_at"]))
            for source, snapshot in enumerate(seen)
        )
        rank = pa.array((WORSE.get(str(outcome), 0) for outcome in rows["outcome"].to_pylist()), pa.int8())
        rows = rows.drop_columns(["outcome"]).append_column("rank", rank)
        several = rows.group_by("trial_id").aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
        twice = rows.filter(pc.is_in(rows["trial_id"], value_set=several["trial_id"]))
        twice = _sorted(twice, "trial_id", "rank", "finished_at", "source")
        losing = twice.filter(pc.invert(_first_of("trial_id", twice)))
        complete = rows.filter(pc.field("rank") == 0)
        return cls(
            given_way=[_of(losing, source)["trial_id"] for source in range(len(seen))],
            complete=[_of(complete, source)["trial_id"] for source in range(len(seen))],
            closed=rows["trial_id"],
            skipped=[snapshot.read("skipped", ["trial_id"])["trial_id"] for snapshot in seen],
        )

    def still_skipped(self, source: int, trial_ids: Ids) -> Flags:
        """Return which trials that a folder did not ask no folder asked; of several, the first tells why."""
        return pc.invert(pc.is_in(trial_ids, value_set=joined([self.closed, *self.skipped[:source]])))

    def standing(self, source: int, trial_ids: Ids) -> Flags:
        """Return which rows of a folder are kept."""
        return pc.invert(pc.is_in(trial_ids, value_set=self.given_way[source]))

    def answered_elsewhere(self, source: int, trial_id: str) -> bool:
        """Return whether another folder has the complete answer to a trial, and it is kept."""
        trial = pa.array([trial_id])
        return any(
            pc.is_in(trial, value_set=complete)[0].as_py() and self.standing(other, trial)[0].as_py()
            for other, complete in enumerate(self.complete)
            if other != source
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Calls:
    """The calls of trials that were asked in several folders, each once, numbered by their time."""

    rows: pa.Table
    totals: pa.Table  # of each of these trials: how many, and what they cost; NULL: that of one is unknown
    lost: Sequence[pa.Table]  # of each folder, the calls of dead runs
    twice: int

    @classmethod
    def of(cls, seen: Sequence[Snapshot]) -> "_Calls":
        dead = [_lost_calls(snapshot) for snapshot in seen]
        asked = (
            pa.concat_tables([snapshot.read("attempts", ["trial_id"]), lost_calls.select(["trial_id"])])
            for snapshot, lost_calls in zip(seen, dead, strict=True)
        )
        once_a_folder = pa.concat_tables(table.group_by("trial_id").aggregate([]) for table in asked)
        folders = once_a_folder.group_by("trial_id").aggregate([([], "count_all")])
        shared = folders.filter(pc.field("count_all") > 1)["trial_id"].combine_chunks()
        wanted = pc.field("trial_id").isin(shared)
        every = (
            _from(
                source,
                pa.concat_tables([seen[source].read("attempts", None, wanted), dead[source].filter(wanted)]),
            )
            for source in range(len(seen))
        )
        return cls._numbered(pa.concat_tables(every), dead)

    @classmethod
    def _numbered(cls, rows: pa.Table, dead: Sequence[pa.Table]) -> "_Calls":
        """Leave out what stands twice: the same trial, asked at the same microsecond."""
        # A copy of a folder may know the end of a call that the other takes for lost.
        rows = rows.append_column("is_lost", pc.equal(rows["status"], pa.scalar(LOST)))
        rows = _sorted(rows, "trial_id", "started_at", "is_lost", "source")
        once = rows.filter(_first_of("trial_id", rows, "started_at")).select(ATTEMPTS.names)
        numbers = _within("trial_id", once).cast(pa.int32())
        once = once.set_column(ATTEMPTS.get_field_index("attempt"), ATTEMPTS.field("attempt"), numbers)
        unknown_if_any_is = pc.ScalarAggregateOptions(skip_nulls=False)
        totals = once.group_by("trial_id").aggregate(
            [([], "count_all"), ("cost_usd", "sum", unknown_if_any_is)]
        )
        return cls(rows=once, totals=totals, lost=dead, twice=len(rows) - len(once))

    def counted(self, trials: pa.Table) -> pa.Table:
        """Return rows of `trials` with all calls that were made for them."""
        at = pc.index_in(trials["trial_id"], value_set=self.totals["trial_id"])
        for name, total in (("attempts", "count_all"), ("cost_usd", "cost_usd_sum")):
            field = trials.schema.field(name)
            new = pc.if_else(pc.is_valid(at), self.totals[total].take(at).cast(field.type), trials[name])
            trials = trials.set_column(trials.schema.get_field_index(name), field, new)
        return trials

    def alone(self, attempts: pa.Table) -> pa.Table:
        """Return those rows of one folder whose trials no other folder asked."""
        return attempts.filter(pc.invert(pc.is_in(attempts["trial_id"], value_set=self.totals["trial_id"])))

    def renumbered(self, ended: Ended) -> Ended:
        """Return a call that has ended, with its new number."""
        attempt = ended.attempt
        at = pa.scalar(attempt_row(attempt)["started_at"], pa.int64()).cast(ATTEMPTS.field("started_at").type)
        found = self.rows.filter((pc.field("trial_id") == attempt.trial_id) & (pc.field("started_at") == at))
        number = found["attempt"][0].as_py() if len(found) else attempt.attempt
        return replace(ended, attempt=replace(attempt, attempt=number))


def _lost_calls(seen: Snapshot) -> pa.Table:
    """Return the calls that a dead run had begun: nobody is going to tell how they ended."""
    rows = [attempt_row(lost(sent)) for sent in seen.unfinished.sent.values()]
    plain = pa.schema(
        field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in ATTEMPTS
    )
    return pa.Table.from_pylist(rows, plain).cast(ATTEMPTS)


# ── rows, partition by partition ─────────────────────────────────────────────────────────────


def _places(name: str, seen: Sequence[Snapshot]) -> list[Path]:
    found = {_place(name, path) for snapshot in seen for path in snapshot.files[name]}
    found |= {place for snapshot in seen for place, _ in by_partition(name, snapshot.journalled[name])}
    if name == "attempts":
        found |= {place for snapshot in seen for place, _ in by_partition(name, _lost_calls(snapshot))}
    return sorted(found)


def _place(name: str, part: Path) -> Path:
    return Path(name, *part.parts[-1 - len(PARTITIONED_BY[name]) : -1])


def _rows(
    name: str, place: Path, seen: Sequence[Snapshot], trials: _Trials, calls: _Calls
) -> Iterator[pa.Table]:
    """Yield what is kept of one partition, folder by folder."""
    said = dict(part.split("=", 1) for part in place.parts[1:])
    here = pc.scalar(True)
    for key, value in said.items():
        here = here & (pc.field(key) == unquote(value))
    steps = set[tuple[object, ...]]()
    for source, snapshot in enumerate(seen):
        files = [path for path in snapshot.files[name] if _place(name, path) == place]
        for batch in replace(snapshot, files={**snapshot.files, name: files}).batches(name, None, here):
            rows = pa.Table.from_batches([batch])
            if name == "attempts":
                yield calls.alone(rows)
            elif name == "lanes":
                yield rows  # what a lane did in one folder it did not do in another
            elif name == "steps":  # but a folder may be a copy
                keys = rows.select(["model", "load", "began_at"])
                found = [tuple(step.values()) for step in keys.to_pylist()]
                yield rows.filter(pa.array([step not in steps for step in found], pa.bool_()))
                steps.update(found)
            elif name == "skipped":
                yield rows.filter(trials.still_skipped(source, rows["trial_id"]))
            else:
                kept = rows.filter(trials.standing(source, rows["trial_id"]))
                yield calls.counted(kept) if name == "trials" else kept
        if name == "attempts":
            yield calls.alone(calls.lost[source].filter(here))
    if name == "attempts":
        yield calls.rows.filter(here)


# ── what is not in tables ────────────────────────────────────────────────────────────────────


def _set_aside(folders: Sequence[Path], seen: Sequence[Snapshot], out: Path) -> int:
    """Keep damaged lines, those of earlier segments and of present ones; return how many they are."""
    found: list[bytes] = []
    for folder, snapshot in zip(folders, seen, strict=True):
        found += [file.read_bytes() for file in sorted((folder / QUARANTINE).glob("*.wal"))]
        by_segment: dict[Path, list[Damage]] = {}
        for damage in snapshot.damaged:
            by_segment.setdefault(damage.segment, []).append(damage)
        found += map(lines_of, by_segment.values())
    unlike = dict.fromkeys(found)  # copies of one folder have the same
    for number, lines in enumerate(unlike, 1):
        name = f"{number:06d}.wal"
        write_durably(out / QUARANTINE / name, lines, temporary=out / TEMPORARY / name)
    return sum(lines.count(b"\n") for lines in unlike)


def _carry(seen: Sequence[Snapshot], trials: _Trials, calls: _Calls, out: Path) -> None:
    """Write down the answers that no run has graded yet: the next one does, and asks for none of them."""
    left = Unfinished()
    for source, snapshot in enumerate(seen):
        for trial_id, ended in snapshot.unfinished.replies.items():
            if not trials.answered_elsewhere(source, trial_id):
                earlier = left.replies.get(trial_id)
                if earlier is None or ended.attempt.started_at < earlier.attempt.started_at:
                    left.end(calls.renumbered(ended))
    journal = Journal(out / "journal", number=next_number(out), unfinished=left)
    journal.segment.sync()
    journal.close()  # without an answer in it, it goes


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _from(source: int, rows: pa.Table) -> pa.Table:
    return rows.append_column("source", pa.repeat(pa.scalar(source, pa.int32()), len(rows)))


def _of(rows: pa.Table, source: int) -> pa.Table:
    return rows.filter(pc.field("source") == source)


def _sorted(rows: pa.Table, *names: str) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in names])


def _first_of(key: str, rows: pa.Table, *more: str) -> "pa.BooleanArray":
    """Return which rows of a sorted table are the first of their key."""
    if not len(rows):
        return pa.array([], pa.bool_())
    differs = pa.array([False] * (len(rows) - 1), pa.bool_())
    for name in (key, *more):
        column = rows[name].combine_chunks()
        differs = pc.or_(differs, pc.not_equal(column[1:], column[:-1]))
    return pa.concat_arrays([pa.array([True]), differs])


def _within(key: str, rows: pa.Table) -> "pa.Int64Array":
    numbers = pa.array(range(len(rows)), pa.int64())
    starts = pc.if_else(_first_of(key, rows), numbers, pa.scalar(0, pa.int64()))
    first: pa.Int64Array = pc.cumulative_max(starts)
    return pc.add(pc.subtract(numbers, first), pa.scalar(1, pa.int64()))
