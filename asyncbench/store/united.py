"""Several results folders seen as one: each trial once, every call that was made.

Which row a trial keeps: a complete answer before one that was cut short, that before none; of equals the
one finished first. A worker's answer takes the place of one as good in the folder of the run: that was asked
again. The calls of a trial that was asked in several folders are numbered anew by their time, and its row
tells how many they are and what they cost together.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from asyncbench.records import Ended, Outcome
from asyncbench.store.holdings import TakenOver
from asyncbench.store.id_set import in_several
from asyncbench.store.journal import Unfinished
from asyncbench.store.parts import columns_read, with_codes
from asyncbench.store.rows import attempt_row, joined
from asyncbench.store.schema import ATTEMPTS, LOST, SCHEMAS
from asyncbench.store.snapshot import BATCH_ROWS, Columns, Filters, Snapshot, chosen_columns, expression

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

WORSE = {Outcome.TRUNCATED.value: 1, Outcome.FAILED.value: 2}  # than a complete answer
RECOUNTED = ("attempts", "cost_usd")  # columns of trials that count the calls of all folders

Ids = Any  # a column of Arrow, whole or in chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitedSnapshot(Snapshot):
    """What several folders held, as that of one."""

    sources: Sequence[Snapshot]
    asked_again: bool  # the rows of the first give way to as good ones of others
    moved: Collection[int]  # the folders whose grades stand in the first
    gave_way: Mapping[str, Sequence[Ids]]  # by table: of each folder, the trials whose rows do not count
    calls: "SharedCalls"

    def read(self, name: str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
        """Return a table's rows, as `Snapshot.read` does."""
        names = chosen_columns(name, columns, SCHEMAS[name])
        wanted = expression(name, filters, SCHEMAS[name])
        tables = [seen.read(name, names, only) for seen, only in self._alone(name, names, filters, wanted)]
        return pa.concat_tables([*tables, *self._settled(name, names, wanted)])

    def batches(
        self,
        name: str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        rows: int = BATCH_ROWS,
        coded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same rows as `read`, as `Snapshot.batches` does."""
        names = chosen_columns(name, columns, SCHEMAS[name])
        wanted = expression(name, filters, SCHEMAS[name])

        def matching() -> Iterator[pa.RecordBatch]:
            for seen, only in self._alone(name, names, filters, wanted):
                yield from seen.batches(name, names, only, rows=rows, coded=coded)
            for table in self._settled(name, names, wanted):
                settled = table.cast(with_codes(table.schema, coded))
                yield from (batch for batch in settled.to_batches(max_chunksize=rows) if batch.num_rows)

        return matching()

    def counted(
        self, name: str, read: Callable[[Path], Iterable[pa.Table]], columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Yield rows of parts, and of the journals, as they count."""
        for source, seen in enumerate(self.sources):
            for rows in seen.counted(name, read, columns):
                yield self.settled(name, source, rows)
        if name == "attempts":
            yield self.calls.rows.select(list(columns))

    def uncounted(self, name: str) -> Mapping[Path, "pa.Array[pa.StringScalar]"]:
        """Return of each part of a table the ids of trials whose rows in it do not count as they stand."""
        return {
            path: _together([ids, self.left_out(name, source)])
            for source, seen in enumerate(self.sources)
            for path, ids in seen.uncounted(name).items()
        }

    def left_out(self, name: str, source: int) -> Ids:
        """Return the ids of trials whose rows of one folder do not count as they stand."""
        if name == "attempts":
            return self.calls.totals["trial_id"].combine_chunks()
        return self.gave_way[name][source] if name in self.gave_way else pa.array([], pa.string())

    def changed_ids(self, name: str, source: int) -> Ids:
        """Return the ids of trials whose rows of one folder do not count, or not as they stand."""
        recounted = [self.calls.totals["trial_id"].combine_chunks()] if name == "trials" else []
        return _together([self.left_out(name, source), *recounted])

    def settled(self, name: str, source: int, rows: pa.Table) -> pa.Table:
        """Return rows of one folder as they count; the calls of shared trials are in `calls` alone."""
        kept = _without(rows, self.left_out(name, source))
        return self.calls.recounted(kept) if name == "trials" else kept

    def within(self, name: str, fits: Callable[[Path], bool]) -> Snapshot:
        """Return it with only some parts of a table, and all that the journals held."""
        return replace(self, sources=[seen.within(name, fits) for seen in self.sources])

    def ended(self) -> Snapshot:
        """Return it with every call ended: those that had none are lost."""
        ended = [seen.ended() for seen in self.sources]
        return united(ended, asked_again=self.asked_again, moved=self.moved)

    def _alone(
        self, name: str, names: Sequence[str], filters: Filters | None, wanted: Any
    ) -> Iterator[tuple[Snapshot, Filters | None]]:
        """Yield each folder, with the filter for those of its rows that count as they stand."""
        recounted = self._recounts(name, names, wanted)
        for source, seen in enumerate(self.sources):
            gone = [self.left_out(name, source), *recounted]
            ids = _together(gone)
            if not len(ids):
                yield seen, filters
            else:
                yield seen, wanted & ~pc.field("trial_id").isin(ids)

    def _recounts(self, name: str, names: Sequence[str], wanted: Any) -> list[Ids]:
        """Return the trials whose rows have to be counted again before they are looked at."""
        affected = name == "trials" and set(RECOUNTED).intersection(columns_read(name, names, wanted))
        ids = self.calls.totals["trial_id"].combine_chunks()
        return [ids] if affected and len(ids) else []

    def _settled(self, name: str, names: Sequence[str], wanted: Any) -> Iterator[pa.Table]:
        """Yield the rows of trials that were asked in several folders, where they do not stand like this."""
        if name == "attempts":
            yield self.calls.rows.filter(wanted).select(names)
        for ids in self._recounts(name, names, wanted):
            columns = columns_read(name, [*names, "trial_id", *RECOUNTED], wanted)
            for source, seen in enumerate(self.sources):
                own = pc.field("trial_id").isin(ids) & ~pc.field("trial_id").isin(self.left_out(name, source))
                for batch in seen.batches(name, columns, own):
                    rows = self.calls.recounted(pa.Table.from_batches([batch]))
                    yield rows.filter(wanted).select(names)


def united(
    sources: Sequence[Snapshot], *, asked_again: bool = False, moved: Collection[int] = ()
) -> UnitedSnapshot:
    """Return what several folders hold, as that of one.

    In memory are the ids of all trials, and the calls of those that stand in several folders.

    Args:
        sources: the folders.
        asked_again: the rows of the first give way to as good ones of others.
        moved: the folders whose grades stand in the first.

    Raises:
        StoreError: a part cannot be read.
    """
    closed = [seen.read("trials", ["trial_id"])["trial_id"] for seen in sources]
    rows, winners = _best_first(sources, in_several(closed), asked_again)
    calls = SharedCalls.of(sources)
    stay = [*range(len(sources))]
    gave_way = {
        "trials": _giving_way(rows, winners, stay),
        "grades": _giving_way(rows, winners, [0 if source in moved else source for source in stay]),
        "skipped": _skipped_after_all(sources, closed),
    }
    return UnitedSnapshot(
        files={name: [path for seen in sources for path in seen.files[name]] for name in SCHEMAS},
        journalled={
            name: pa.concat_tables(
                _without(seen.journalled[name], gave_way[name][source] if name in gave_way else ())
                for source, seen in enumerate(sources)
            )
            for name in SCHEMAS
        },
        unfinished=_unfinished(sources, gave_way["trials"], calls, asked_again),
        damaged=[line for seen in sources for line in seen.damaged],
        sources=sources,
        asked_again=asked_again,
        moved=moved,
        gave_way=gave_way,
        calls=calls,
    )


def with_workers(own: Snapshot, workers: Mapping[str, Snapshot], taken: TakenOver) -> UnitedSnapshot:
    """Return what a folder and those of its workers, by name, hold; `taken`: what of them it holds itself."""
    standing = [
        _not_taken(seen, taken.tables) if name in taken.workers else seen for name, seen in workers.items()
    ]
    graded = "grades" in taken.tables
    moved = [source for source, name in enumerate(workers, 1) if graded and name in taken.workers]
    return united([own, *standing], asked_again=True, moved=moved)


def _not_taken(seen: Snapshot, tables: Collection[str]) -> Snapshot:
    files = {name: () if name in tables else files for name, files in seen.files.items()}
    unfinished = Unfinished(sent=seen.unfinished.sent) if "journal" in tables else seen.unfinished
    return replace(seen, files=files, unfinished=unfinished)


# ── choice of a trial's row ──────────────────────────────────────────────────────────────────────


def _best_first(sources: Sequence[Snapshot], several: Ids, asked_again: bool) -> tuple[pa.Table, Ids]:
    """Return the rows of trials that stand in several folders; and of each, the folder of the best one."""
    wanted = pc.field("trial_id").isin(several)
    rows = pa.concat_tables(
        _from(source, seen.read("trials", ["trial_id", "outcome", "finished_at"], wanted))
        for source, seen in enumerate(sources if len(several) else sources[:1])
    )
    rank = pa.array((WORSE.get(str(outcome), 0) for outcome in rows["outcome"].to_pylist()), pa.int8())
    asked_before = pc.equal(rows["source"], 0 if asked_again else -1).cast(pa.int8())
    rows = rows.append_column("rank", rank).append_column("asked_before", asked_before)
    rows = _sorted(rows, "trial_id", "rank", "asked_before", "finished_at", "source")
    best = rows.filter(_first_of("trial_id", rows))
    return rows, best["source"].take(pc.index_in(rows["trial_id"], value_set=best["trial_id"]))


def _giving_way(rows: pa.Table, winners: Ids, holders: Sequence[int]) -> list[Ids]:
    """Return of each folder the trials whose rows give way; `holders`: where the rows of each stand."""
    places = pa.array(holders, pa.int32())
    own, best = places.take(rows["source"]), places.take(winners)
    return [
        rows["trial_id"].filter(pc.and_(pc.equal(own, source), pc.not_equal(own, best))).combine_chunks()
        for source in range(len(holders))
    ]


def _skipped_after_all(sources: Sequence[Snapshot], closed: Sequence[Ids]) -> list[Ids]:
    """Return of each folder the trials that it skipped and another asked, or skipped before it."""
    skipped = [seen.read("skipped", ["trial_id"])["trial_id"] for seen in sources]
    return [
        ids.filter(pc.is_in(ids, value_set=joined([*closed, *skipped[:source]]))).combine_chunks()
        if len(ids)
        else pa.array([], pa.string())
        for source, ids in enumerate(skipped)
    ]


# ── calls ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCalls:
    """The calls of trials that were asked in several folders, each once, numbered by their time."""

    rows: pa.Table
    totals: pa.Table  # of each of these trials: how many, and what they cost; NULL: that of one is unknown
    twice: int

    @classmethod
    def of(cls, sources: Sequence[Snapshot]) -> "SharedCalls":
        shared = in_several([seen.read("attempts", ["trial_id"])["trial_id"] for seen in sources])
        wanted = pc.field("trial_id").isin(shared)
        rows = pa.concat_tables(
            _from(source, seen.read("attempts", None, wanted))
            for source, seen in enumerate(sources if len(shared) else sources[:1])
        )
        return cls._numbered(rows)

    @classmethod
    def _numbered(cls, rows: pa.Table) -> "SharedCalls":
        """Leave out what stands twice: the same trial, asked at the same microsecond."""
        # A copy of a folder may know the end of a call that the other takes for lost.
        rows = rows.append_column("is_lost", pc.equal(rows["status"], pa.scalar(LOST)))
        rows = _sorted(rows, "trial_id", "started_at", "is_lost", "source")
        once = rows.filter(_first_of("trial_id", rows, "started_at")).select(ATTEMPTS.names)
        numbers = _within("trial_id", once).cast(pa.int32())
        once = once.set_column(ATTEMPTS.get_field_index("attempt"), ATTEMPTS.field("attempt"), numbers)
        unknown_if_any_is = pc.ScalarAggregateOptions(skip_nulls=False)
        totals = once.group_by("trial_id", use_threads=False).aggregate(  # always the same sum of dollars
            [([], "count_all"), ("cost_usd", "sum", unknown_if_any_is)]
        )
        return cls(rows=once, totals=totals, twice=len(rows) - len(once))

    def recounted(self, trials: pa.Table) -> pa.Table:
        """Return rows of `trials` with all calls that were made for them; a column may be missing."""
        at = pc.index_in(trials["trial_id"], value_set=self.totals["trial_id"])
        for name, total in zip(RECOUNTED, ("count_all", "cost_usd_sum"), strict=True):
            if (place := trials.schema.get_field_index(name)) >= 0:
                field = trials.schema.field(name)
                known = self.totals[total].take(at).cast(field.type)
                trials = trials.set_column(place, field, pc.if_else(pc.is_valid(at), known, trials[name]))
        return trials

    def renumbered(self, ended: Ended) -> Ended:
        """Return a call that has ended, with its new number."""
        attempt = ended.attempt
        at = pa.scalar(attempt_row(attempt)["started_at"], pa.int64()).cast(ATTEMPTS.field("started_at").type)
        match = self.rows.filter((pc.field("trial_id") == attempt.trial_id) & (pc.field("started_at") == at))
        number = match["attempt"][0].as_py() if len(match) else attempt.attempt
        return replace(ended, attempt=replace(attempt, attempt=number))


# ── unfinished calls and answers ─────────────────────────────────────────────────────────────────


def _unfinished(
    sources: Sequence[Snapshot], gave_way: Sequence[Ids], calls: SharedCalls, asked_again: bool
) -> Unfinished:
    """Return the calls without an end, and the answers that nobody has graded and no folder has better."""
    unfinished = Unfinished()
    for sent in (sent for seen in sources for sent in seen.unfinished.sent.values()):
        free = (number for number in count(sent.attempt) if (sent.trial_id, number) not in unfinished.sent)
        unfinished.begin(replace(sent, attempt=next(free)))
    complete = _complete(sources, gave_way)
    for source, seen in enumerate(sources):
        for trial_id, ended in seen.unfinished.replies.items():
            since_us = round(ended.attempt.started_at * 1e6) if asked_again else 0
            if any(other != source and at_us >= since_us for other, at_us in complete.get(trial_id, ())):
                continue
            earlier = unfinished.replies.get(trial_id)
            if earlier is None or ended.attempt.started_at < earlier.attempt.started_at:
                unfinished.replies[trial_id] = calls.renumbered(ended)
    return unfinished


def _complete(sources: Sequence[Snapshot], gave_way: Sequence[Ids]) -> dict[str, list[tuple[int, int]]]:
    """Return of each trial with an ungraded answer the folder that has a complete one, and since when."""
    wanted = pa.array({trial_id for seen in sources for trial_id in seen.unfinished.replies}, pa.string())
    answers: dict[str, list[tuple[int, int]]] = {}
    for source, seen in enumerate(sources if len(wanted) else ()):
        its = pc.field("trial_id").isin(wanted) & ~pc.field("trial_id").isin(gave_way[source])
        its &= ~pc.field("outcome").isin(pa.array(WORSE, pa.string()))
        for row in seen.read("trials", ["trial_id", "finished_at"], its).to_pylist():
            at_us = round(row["finished_at"].timestamp() * 1e6)
            answers.setdefault(row["trial_id"], []).append((source, at_us))
    return answers


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _together(columns: Sequence[Ids]) -> "pa.Array[pa.StringScalar]":
    return joined(pa.chunked_array([ids], pa.string()) for ids in columns)


def _from(source: int, rows: pa.Table) -> pa.Table:
    return rows.append_column("source", pa.repeat(pa.scalar(source, pa.int32()), len(rows)))


def _without(rows: pa.Table, trial_ids: Ids) -> pa.Table:
    if not len(trial_ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["trial_id"], value_set=trial_ids)))


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
    within: pa.Int64Array = pc.add(pc.subtract(numbers, pc.cumulative_max(starts)), pa.scalar(1, pa.int64()))
    return within
