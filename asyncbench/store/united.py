"""Several results folders seen as one: each trial once, every call that was made.

Say a worker was cut off in the middle of an answer to a trial, and another worker asked that trial again:

    folder      trials                            attempts
    workers/a   truncated, 1 attempt,  $0.002     attempt 1
    workers/b   correct,   1 attempt,  $0.003     attempt 1
    as one      correct,   2 attempts, $0.005     attempts 1 and 2

Which row a trial keeps: a complete answer before one that was cut short, that before none; of equals the one
finished first. A worker's answer takes the place of one as good in the folder of the run, for it was asked
again. The calls of such a trial are numbered anew by their time, and its row tells how many they are and what
they cost together.

`united` works out, from ids and from the calls of such trials alone, which rows of which folder do not count
as they stand. Then `UnitedSnapshot` lets each folder read its own rows without those, and adds the rows that
stand in no folder like this. So nothing is copied, and results may be larger than memory.
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
from asyncbench.store.id_set import repeated_ids
from asyncbench.store.journal import Unfinished
from asyncbench.store.manifest import JOURNAL
from asyncbench.store.parts import coded_schema, columns_read
from asyncbench.store.rows import attempt_row, joined
from asyncbench.store.schema import ATTEMPTS, LOST, SCHEMAS
from asyncbench.store.snapshot import BATCH_ROWS, Columns, Filters, Snapshot, chosen_columns, expression

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

WORSE = {Outcome.TRUNCATED.value: 1, Outcome.FAILED.value: 2}  # than a complete answer
RECOUNTED = ("attempts", "cost_usd")  # columns of trials that count the calls of all folders

Ids = Any  # a column of Arrow, whole or in chunks
_NO_IDS = pa.array([], pa.string())


def unite_workers(main: Snapshot, workers: Mapping[str, Snapshot], taken: TakenOver) -> "UnitedSnapshot":
    """Return the content of a folder and of its workers as that of one folder.

    Args:
        main: the folder of the run.
        workers: the folders of its workers, by name.
        taken: the tables of some workers that the folder of the run holds itself by now.
    """
    sources, moved = [main], list[int]()
    for source, (name, seen) in enumerate(workers.items(), 1):
        if name in taken.workers:
            files = {table: () if table in taken.tables else paths for table, paths in seen.files.items()}
            replies_taken = JOURNAL in taken.tables
            unfinished = Unfinished(sent=seen.unfinished.sent) if replies_taken else seen.unfinished
            seen = replace(seen, files=files, unfinished=unfinished)
            moved += [source] if "grades" in taken.tables else []
        sources.append(seen)
    return united(sources, asked_again=True, moved=moved)


def united(
    sources: Sequence[Snapshot], *, asked_again: bool = False, moved: Collection[int] = ()
) -> "UnitedSnapshot":
    """Return the content of several folders as that of one.

    In memory are the ids of all trials, and the calls of those that stand in several folders.

    Args:
        sources: the folders.
        asked_again: the rows of the first give way to as good ones of others.
        moved: the folders whose grades stand in the first.

    Raises:
        StoreError: a part cannot be read.
    """
    # Of trials and their grades, the best row counts.
    closed = [seen.read("trials", ["trial_id"])["trial_id"] for seen in sources]
    rows, winners = _rank_rows(sources, repeated_ids(closed), asked_again=asked_again)
    holders = [*range(len(sources))]
    grade_holders = [0 if source in moved else source for source in holders]
    gave_way = {
        "trials": _losers(rows, winners, holders),
        "grades": _losers(rows, winners, grade_holders),
        "skipped": _overruled_skips(sources, closed),
    }

    # Of calls, all count; those of trials that several folders asked are numbered anew, and stand in `calls`.
    calls = SharedCalls.collect(sources)
    dropped = {name: [_NO_IDS] * len(sources) for name in SCHEMAS}
    dropped |= gave_way | {"attempts": [calls.trial_ids] * len(sources)}

    return UnitedSnapshot(
        files={name: [path for seen in sources for path in seen.files[name]] for name in SCHEMAS},
        journalled={
            name: pa.concat_tables(
                _drop(seen.journalled[name], gave_way[name][source] if name in gave_way else _NO_IDS)
                for source, seen in enumerate(sources)
            )
            for name in SCHEMAS
        },
        unfinished=_unite_unfinished(sources, gave_way["trials"], calls, asked_again=asked_again),
        damaged=[line for seen in sources for line in seen.damaged],
        sources=sources,
        asked_again=asked_again,
        moved=moved,
        dropped=dropped,
        calls=calls,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitedSnapshot(Snapshot):
    """What several folders held, as that of one."""

    sources: Sequence[Snapshot]  # the folders
    asked_again: bool  # the rows of the first give way to as good ones of others
    moved: Collection[int]  # the folders whose grades stand in the first
    dropped: Mapping[str, Sequence[Ids]]  # by table, of each folder: trials whose rows do not count there
    calls: "SharedCalls"

    def read(self, name: str, columns: Columns = None, filters: Filters | None = None) -> pa.Table:
        """Return a table's rows, as `Snapshot.read` does."""
        query = self._query(name, columns, filters)
        tables = [seen.read(name, query.columns, limits) for seen, limits in query.sources]
        return pa.concat_tables([*tables, *self._recounted(query)])

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
        query = self._query(name, columns, filters)

        def matching() -> Iterator[pa.RecordBatch]:
            for seen, limits in query.sources:
                yield from seen.batches(name, query.columns, limits, rows=rows, coded=coded)
            for table in self._recounted(query):
                recounted = table.cast(coded_schema(table.schema, coded))
                yield from (batch for batch in recounted.to_batches(max_chunksize=rows) if batch.num_rows)

        return matching()

    def _query(self, name: str, columns: Columns, filters: Filters | None) -> "_Query":
        """Return the query for each folder, and the trials whose rows are counted anew.

        A filter may look at how many calls a trial had, or at their cost. No folder can apply it to a trial
        that several of them asked.
        """
        names = chosen_columns(name, columns, SCHEMAS[name])
        wanted = expression(name, filters, SCHEMAS[name])
        counts_calls = name == "trials" and not {*RECOUNTED}.isdisjoint(columns_read(name, names, wanted))
        recounted = self.calls.trial_ids if counts_calls else _NO_IDS
        sources: list[tuple[Snapshot, Filters | None]] = []
        for seen, dropped in zip(self.sources, self.dropped[name], strict=True):
            ids = _concat_ids([dropped, recounted])
            sources.append((seen, wanted & ~pc.field("trial_id").isin(ids) if len(ids) else filters))
        return _Query(name=name, columns=names, wanted=wanted, sources=sources, recounted=recounted)

    def _recounted(self, query: "_Query") -> Iterator[pa.Table]:
        """Yield the rows of a query that stand in no folder as they count: shared trials and their calls."""
        if query.name == "attempts":
            yield self.calls.rows.filter(query.wanted).select(query.columns)
        if not len(query.recounted):
            return
        columns = columns_read(query.name, [*query.columns, "trial_id", *RECOUNTED], query.wanted)
        for seen, dropped in zip(self.sources, self.dropped[query.name], strict=True):
            shared = pc.field("trial_id").isin(query.recounted) & ~pc.field("trial_id").isin(dropped)
            for batch in seen.batches(query.name, columns, shared):
                rows = self.calls.recount(pa.Table.from_batches([batch]))
                yield rows.filter(query.wanted).select(query.columns)

    def counted(
        self, name: str, read: Callable[[Path], Iterable[pa.Table]], columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Yield rows of parts, and of the journals, as they count."""
        for source, seen in enumerate(self.sources):
            for rows in seen.counted(name, read, columns):
                yield self.count_rows(name, source, rows)
        if name == "attempts":
            yield self.calls.rows.select(list(columns))

    def count_rows(self, name: str, source: int, rows: pa.Table) -> pa.Table:
        """Return rows of one folder as they count; the calls of shared trials are in `calls` alone."""
        kept = _drop(rows, self.dropped[name][source])
        return self.calls.recount(kept) if name == "trials" else kept

    def changed_ids(self, name: str, source: int) -> Ids:
        """Return the ids of trials whose rows of one folder do not count, or not as they stand."""
        recounted = self.calls.trial_ids if name == "trials" else _NO_IDS
        return _concat_ids([self.dropped[name][source], recounted])

    def uncounted(self, name: str) -> Mapping[Path, "pa.Array[pa.StringScalar]"]:
        """Return of each part of a table the ids of trials whose rows in it do not count as they stand."""
        return {
            path: _concat_ids([ids, dropped])
            for seen, dropped in zip(self.sources, self.dropped[name], strict=True)
            for path, ids in seen.uncounted(name).items()
        }

    def select_parts(self, name: str, fits: Callable[[Path], bool]) -> Snapshot:
        """Return it with only some parts of a table, and all that the journals held."""
        return replace(self, sources=[seen.select_parts(name, fits) for seen in self.sources])

    def ended(self) -> Snapshot:
        """Return it with every call ended: those that had none are lost."""
        ended = [seen.ended() for seen in self.sources]
        return united(ended, asked_again=self.asked_again, moved=self.moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """What is asked of a table, folder by folder."""

    name: str
    columns: Sequence[str]
    wanted: Any  # an expression of Arrow: the filter of all rows
    sources: Sequence[tuple[Snapshot, Filters | None]]  # each folder, and the filter of rows that count there
    recounted: Ids  # trials whose rows are counted anew before they are filtered


# ── choice of a trial's row ──────────────────────────────────────────────────────────────────────


def _rank_rows(
    sources: Sequence[Snapshot], trial_ids: Ids, *, asked_again: bool
) -> tuple[pa.Table, "pa.ChunkedArray[pa.Int32Scalar]"]:
    """Return the rows of trials that stand in several folders, and the folder of the best for each row."""
    wanted = pc.field("trial_id").isin(trial_ids)
    rows = pa.concat_tables(
        _add_source(source, seen.read("trials", ["trial_id", "outcome", "finished_at"], wanted))
        for source, seen in enumerate(sources if len(trial_ids) else sources[:1])
    )
    rank = pa.array((WORSE.get(str(outcome), 0) for outcome in rows["outcome"].to_pylist()), pa.int8())
    asked_before = pc.equal(rows["source"], 0 if asked_again else -1).cast(pa.int8())
    rows = rows.append_column("rank", rank).append_column("asked_before", asked_before)
    rows = _sort(rows, "trial_id", "rank", "asked_before", "finished_at", "source")
    best = rows.filter(_first_rows(rows, "trial_id"))
    return rows, best["source"].take(pc.index_in(rows["trial_id"], value_set=best["trial_id"]))


def _losers(rows: pa.Table, winners: Ids, holders: Sequence[int]) -> list[Ids]:
    """Return for each folder the trials whose rows in it give way to better ones in another.

    Args:
        rows: of trials that stand in several folders.
        winners: for each row, the folder that has the best one of its trial.
        holders: for each folder, the one in which its rows stand by now.
    """
    holder_of = pa.array(holders, pa.int32())
    row_holder, best_holder = holder_of.take(rows["source"]), holder_of.take(winners)
    gives_way = pc.not_equal(row_holder, best_holder)
    return [
        rows["trial_id"].filter(pc.and_(pc.equal(row_holder, source), gives_way)).combine_chunks()
        for source in range(len(holders))
    ]


def _overruled_skips(sources: Sequence[Snapshot], closed: Sequence[Ids]) -> list[Ids]:
    """Return for each folder the trials that it skipped, and that another asked, or skipped before it."""
    skipped = [seen.read("skipped", ["trial_id"])["trial_id"] for seen in sources]
    return [
        ids.filter(pc.is_in(ids, value_set=joined([*closed, *skipped[:source]]))).combine_chunks()
        if len(ids)
        else _NO_IDS
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
    def collect(cls, sources: Sequence[Snapshot]) -> "SharedCalls":
        """Read the calls of such trials from all folders."""
        shared = repeated_ids([seen.read("attempts", ["trial_id"])["trial_id"] for seen in sources])
        wanted = pc.field("trial_id").isin(shared)
        rows = pa.concat_tables(
            _add_source(source, seen.read("attempts", None, wanted))
            for source, seen in enumerate(sources if len(shared) else sources[:1])
        )

        # A call stands twice if its trial was asked at the same microsecond. A copy of a folder may know the
        # end of a call that the other takes for lost.
        rows = rows.append_column("is_lost", pc.equal(rows["status"], pa.scalar(LOST)))
        rows = _sort(rows, "trial_id", "started_at", "is_lost", "source")
        once = rows.filter(_first_rows(rows, "trial_id", "started_at")).select(ATTEMPTS.names)

        # Number the calls of each trial from 1: the distance to its first one.
        positions = pa.array(range(len(once)), pa.int64())
        starts = pc.if_else(_first_rows(once, "trial_id"), positions, pa.scalar(0, pa.int64()))
        numbers = pc.add(pc.subtract(positions, pc.cumulative_max(starts)), pa.scalar(1, pa.int64()))
        column = ATTEMPTS.get_field_index("attempt")
        once = once.set_column(column, ATTEMPTS.field("attempt"), numbers.cast(pa.int32()))

        unknown_if_any_is = pc.ScalarAggregateOptions(skip_nulls=False)
        totals = once.group_by("trial_id", use_threads=False).aggregate(  # always the same sum of dollars
            [([], "count_all"), ("cost_usd", "sum", unknown_if_any_is)]
        )
        return cls(rows=once, totals=totals, twice=len(rows) - len(once))

    @property
    def trial_ids(self) -> Ids:
        return self.totals["trial_id"].combine_chunks()

    def recount(self, trials: pa.Table) -> pa.Table:
        """Return rows of `trials` with all calls that were made for them; a column may be missing."""
        positions = pc.index_in(trials["trial_id"], value_set=self.totals["trial_id"])
        for name, total in zip(RECOUNTED, ("count_all", "cost_usd_sum"), strict=True):
            if (column := trials.schema.get_field_index(name)) >= 0:
                field = trials.schema.field(name)
                totals = self.totals[total].take(positions).cast(field.type)
                values = pc.if_else(pc.is_valid(positions), totals, trials[name])
                trials = trials.set_column(column, field, values)
        return trials

    def renumber(self, ended: Ended) -> Ended:
        """Return a call that has ended, with its new number."""
        attempt = ended.attempt
        begun = pa.scalar(attempt_row(attempt)["started_at"], pa.int64()).cast(
            ATTEMPTS.field("started_at").type
        )
        match = self.rows.filter(
            (pc.field("trial_id") == attempt.trial_id) & (pc.field("started_at") == begun)
        )
        number = match["attempt"][0].as_py() if len(match) else attempt.attempt
        return replace(ended, attempt=replace(attempt, attempt=number))


# ── unfinished calls and answers ─────────────────────────────────────────────────────────────────


def _unite_unfinished(
    sources: Sequence[Snapshot], gave_way: Sequence[Ids], calls: SharedCalls, *, asked_again: bool
) -> Unfinished:
    """Return the calls without an end, and the answers that nobody has graded and no folder has better.

    Args:
        sources: the folders.
        gave_way: for each folder, the trials whose rows give way.
        calls: those of trials that several folders asked.
        asked_again: an answer gives way only to a complete one that another folder got after it was begun.
    """
    unfinished = Unfinished()
    for sent in (sent for seen in sources for sent in seen.unfinished.sent.values()):
        free = (number for number in count(sent.attempt) if (sent.trial_id, number) not in unfinished.sent)
        unfinished.begin(replace(sent, attempt=next(free)))

    # Which folders have complete answers to the same trials, and since when.
    ungraded = pa.array({trial_id for seen in sources for trial_id in seen.unfinished.replies}, pa.string())
    complete: dict[str, list[tuple[int, int]]] = {}
    for source, seen in enumerate(sources if len(ungraded) else ()):
        counts = pc.field("trial_id").isin(ungraded) & ~pc.field("trial_id").isin(gave_way[source])
        counts &= ~pc.field("outcome").isin(pa.array(WORSE, pa.string()))
        for row in seen.read("trials", ["trial_id", "finished_at"], counts).to_pylist():
            finished_us = round(row["finished_at"].timestamp() * 1e6)
            complete.setdefault(row["trial_id"], []).append((source, finished_us))

    # Of several answers to a trial, the call that was begun first counts.
    for source, seen in enumerate(sources):
        for trial_id, ended in seen.unfinished.replies.items():
            since_us = round(ended.attempt.started_at * 1e6) if asked_again else 0
            answers = complete.get(trial_id, ())
            if any(holder != source and finished_us >= since_us for holder, finished_us in answers):
                continue
            earlier = unfinished.replies.get(trial_id)
            if earlier is None or ended.attempt.started_at < earlier.attempt.started_at:
                unfinished.replies[trial_id] = calls.renumber(ended)
    return unfinished


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _concat_ids(columns: Sequence[Ids]) -> "pa.Array[pa.StringScalar]":
    return joined(pa.chunked_array([ids], pa.string()) for ids in columns)


def _add_source(source: int, rows: pa.Table) -> pa.Table:
    return rows.append_column("source", pa.repeat(pa.scalar(source, pa.int32()), len(rows)))


def _drop(rows: pa.Table, trial_ids: Ids) -> pa.Table:
    if not len(trial_ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["trial_id"], value_set=trial_ids)))


def _sort(rows: pa.Table, *names: str) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in names])


def _first_rows(rows: pa.Table, *keys: str) -> "pa.BooleanArray":
    """Return a mask of the rows in a sorted table that are the first with the same keys."""
    if not len(rows):
        return pa.array([], pa.bool_())
    differs = pa.array([False] * (len(rows) - 1), pa.bool_())
    for name in keys:
        column = rows[name].combine_chunks()
        differs = pc.or_(differs, pc.not_equal(column[1:], column[:-1]))
    return pa.concat_arrays([pa.array([True]), differs])
