"""The trials of a model as columns of ids and of closed ones; no trial is made."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from asyncbench.config.sweep import Sweep
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import PROBLEM_SCHEMA
from asyncbench.records import Condition, Model, Problem
from asyncbench.store.catalog import texts
from asyncbench.store.id_set import IdColumn, IdSet, strung
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

ROWS: Final = 65_536  # of a problem set at a time, where few columns are read
AT_ONCE: Final = 32_768  # problems in memory: fewer, and one sorted otherwise is read again and again
CHARACTERS_AT_ONCE: Final = 2**26  # of their questions
Slots = Mapping["Slot", IdColumn]  # the trials of a model, or which of them
Tasks = Mapping[str, Mapping[str, int]]  # suite → task → problems


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSource:
    """A problem set as one model is asked it: in its order, and without what an earlier set also holds."""

    problems: ProblemSet
    tasks: Tasks  # those asked
    order: npt.NDArray[np.int32] = field(compare=False)  # rows of the file, as they are asked

    @property
    def rows(self) -> int:
        """Problems asked."""
        return len(self.order)

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None, *, start: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the problems asked, as they are asked.

        Args:
            columns: of a problem set; None: all.
            rows: how many of the first are wanted; None: all.
            start: how many of them to leave out.
        """
        at_once = max(1, min(AT_ONCE, CHARACTERS_AT_ONCE // max(1, self.problems.longest_question)))
        wanted = self.order[start:rows]
        for i in range(0, max(1, len(wanted)), at_once):
            yield self._rows_in_order(wanted[i : i + at_once], columns or PROBLEM_SCHEMA.names, at_once)

    def _rows_in_order(
        self, rows: npt.NDArray[np.int32], columns: Sequence[str], at_once: int
    ) -> pa.RecordBatch:
        """Return rows of the file in this order; it is read once, from the first of them to the last."""
        in_file = np.sort(rows)
        at, end = (int(in_file[0]), int(in_file[-1])) if len(rows) else (0, -1)
        taken = list[pa.RecordBatch]()
        for batch in self.problems.batches(at_once, at, columns):
            first, last = np.searchsorted(in_file, (at, at + batch.num_rows))
            taken.append(batch.take(in_file[first:last] - at))
            at += batch.num_rows
            if at > end:
                break
        table: Any = pa.Table.from_batches(taken).take(np.searchsorted(in_file, rows)).combine_chunks()
        return pa.RecordBatch.from_arrays([column.chunk(0) for column in table.columns], schema=table.schema)

    def problem(self, i: int) -> Problem:
        """Return the problem that is asked after `i` others."""
        return next(self.problems.read(1, int(self.order[i])))


class Slot(NamedTuple):
    """Of all trials of a model those that are asked for the same time, of one set, under one condition."""

    repeat: int
    set_number: int
    condition: str


def numbered(table: pa.Table, names: Sequence[str]) -> tuple[IdColumn, pa.Table]:
    """Return for each row the number of its values in some columns, and a row with these for each number.

    They are numbered from 0 on, as they first appear.
    """
    numbers: Any = pa.repeat(pa.scalar(0, pa.int64()), len(table))
    for name in names:
        column: Any = table[name].combine_chunks()
        codes = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode("encode")
        codes = codes.indices.cast(pa.int64())
        most = (pc.max(codes).as_py() or 0) + 1
        numbers = pc.add(pc.multiply(numbers, pa.scalar(most)), codes)
        numbers = numbers.dictionary_encode().indices.cast(pa.int64())
    rows = pa.table({"number": numbers, "row": np.arange(len(table), dtype=np.int32)})
    firsts = rows.group_by("number", use_threads=False).aggregate([("row", "min")])["row_min"]
    return pa.chunked_array([numbers.cast(pa.int32())]), table.select(list(names)).take(firsts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The trials of a model that need no call."""

    done: int  # closed by earlier runs
    failed: int  # those of them without a reply
    rows: Mapping[Slot, bytes]  # a byte for each problem asked: whether nothing of it is to be asked

    def whole_rows(self, repeat: int, set_number: int) -> bytes:
        """Return a byte for each problem of a set: whether it is to be asked under no condition."""
        columns = [mask for slot, mask in self.rows.items() if slot[:2] == (repeat, set_number)]
        return bytes(map(all, zip(*columns, strict=True))) if len(columns) > 1 else columns[0]


def rows_within(sets: Sequence[TrialSource], limit: int | None) -> list[int]:
    """Return how many problems of each set are among the first `limit` of all; None: all are."""
    if limit is None or len(sets) == 1:
        return [source.rows if limit is None else min(limit, source.rows) for source in sets]

    def places(number: int, rows: int) -> Iterator[tuple[float, int]]:
        return (((i + 0.5) / rows, number) for i in range(rows))

    merged = heapq.merge(*(places(number, source.rows) for number, source in enumerate(sets)))
    first = Counter(number for _, number in islice(merged, limit))
    return [first[number] for number in range(len(sets))]


def ids_of(
    sweep: Sweep, model: Model, sets: Sequence[TrialSource], *, limit: int | None
) -> dict[Slot, IdColumn]:
    """Return the ids of a model's trials, in the order of each set; NULL where a condition is for others."""
    by_slot: dict[Slot, IdColumn] = {}
    conditions = sweep.conditions_of(model.alias)
    for number, (source, rows) in enumerate(zip(sets, rows_within(sets, limit), strict=True)):
        batches = list(source.batches(["problem_id", "suite"], rows))
        for condition in conditions:
            ids = TrialIds(model, condition)
            for repeat in range(sweep.repeats):
                slot = Slot(repeat, number, condition.name)
                columns = [_ids(batch, ids, condition, source.tasks, repeat) for batch in batches]
                by_slot[slot] = pa.chunked_array(columns, pa.string())
    return by_slot


def _ids(
    batch: pa.RecordBatch, ids: TrialIds, condition: Condition, suites: Collection[str], repeat: int
) -> Any:  # Any: a column
    made: Any = pa.nulls(batch.num_rows, pa.string())
    for suite in filter(condition.is_for, suites):
        here = pc.equal(batch["suite"], pa.scalar(suite))
        problem_ids = texts(batch["problem_id"].filter(here))
        version = SUITES[suite].prompt_version
        its = pa.array(ids.of_all(problem_ids, prompt_version=version, repeat=repeat), pa.string())
        made = its if len(its) == len(made) else pc.replace_with_mask(made, here, its)
    return made


def membership_of(ids: Iterable[tuple[str, Slots]], known: IdSet) -> dict[str, dict[Slot, IdColumn]]:
    """Return which trials are known, by alias; `ids` are made one model after the other, and let go."""
    lengths = dict[str, dict[Slot, int]]()

    def columns() -> Iterator[tuple[str, IdColumn]]:
        for alias, slots in ids:
            lengths[alias] = {slot: len(column) for slot, column in slots.items()}
            yield alias, strung(slots.values())

    masks = map(pc.is_valid, known.places_each(columns()))
    return {alias: _cut(mask, lengths[alias]) for alias, mask in zip(lengths, masks, strict=True)}


def _cut(column: IdColumn, lengths: Mapping[Slot, int]) -> dict[Slot, IdColumn]:
    starts = accumulate(lengths.values(), initial=0)
    return {slot: column.slice(next(starts), length) for slot, length in lengths.items()}


def closed_trials(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, Sequence[TrialSource]],
    *,
    limit: int | None,
    finished: IdSet,
    failed: IdSet,
) -> dict[str, Closed]:
    """Return which trials of each model are finished, by alias.

    Args:
        sweep, models, sets: who is asked what; the sets by alias.
        limit: at most this many problems of each model; the others are not asked either.
        finished: trials that need no call.
        failed: those of them without a reply.
    """
    lost, nobodys = dict[str, int](), dict[str, Slots]()

    def ids() -> Iterator[tuple[str, Slots]]:
        for model in models:
            made = ids_of(sweep, model, sets[model.alias], limit=limit)
            lost[model.alias] = _count(failed.among(strung(made.values())))
            nobodys[model.alias] = {slot: pc.is_null(column) for slot, column in made.items()}
            yield model.alias, made

    return {
        alias: Closed(
            done=sum(map(_count, slots.values())),
            failed=lost[alias],
            rows={slot: _bytes(pc.or_(mask, nobodys[alias][slot])) for slot, mask in slots.items()},
        )
        for alias, slots in membership_of(ids(), finished).items()
    }


def _count(mask: IdColumn) -> int:
    return pc.sum(mask).as_py() or 0


def _bytes(mask: IdColumn) -> bytes:
    column: Any = pa.concat_arrays(mask.cast(pa.uint8()).chunks or [pa.array([], pa.uint8())])
    return bytes(column.buffers()[1].to_pybytes()[: len(column)])
