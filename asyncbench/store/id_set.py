"""Sets of trial ids as Arrow columns: a million take 36 MB, where a set of Python takes 200."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, chain
from typing import Any, Final, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

LEAST: Final = 262_144  # ids that are looked up at a time

Numbers = np.ndarray[Any, np.dtype[Any]]  # Any: of integers of some size
IdColumn: TypeAlias = "pa.ChunkedArray[Any]"  # of text, as are results of comparing them


def strung(columns: Iterable[IdColumn]) -> IdColumn:
    """Return columns of text one after the other, without a copy of them."""
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())


class IdSet(AbstractSet[str]):
    """Trial ids, each once, that do not change.

    `among` looks up a column of them. For a single `in`, a set of Python is made, once.
    """

    def __init__(self, column: IdColumn, by_model: Mapping[str, IdColumn] | None = None) -> None:
        """Hold a column; `by_model`: the same ids by the alias that was asked, as far as that is known."""
        self.column = column
        self._by_model = by_model or {}

    @classmethod
    def collect(cls, ids: Iterable[str]) -> Self:
        """Return the set of some ids; one that is a set already is returned as it is."""
        return ids if isinstance(ids, cls) else cls(pa.chunked_array([list(dict.fromkeys(ids))], pa.string()))

    @classmethod
    def join_models(cls, by_model: Mapping[str, IdColumn]) -> Self:
        """Return the set of the ids of several models, by alias."""
        return cls(strung(by_model.values()), by_model)

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> AbstractSet[Any]:  # Any: as the base class has it
        return frozenset(it)

    def __or__(self, others: AbstractSet[Any]) -> "IdSet":  # Any: as the base class has it
        column = IdSet.collect(others).column
        added = column.filter(pc.invert(self.among(column)))
        return IdSet(strung([self.column, added]), self._by_model)

    def among(self, ids: IdColumn) -> IdColumn:
        """Return a column of booleans: true for ids in this set.

        Of each block of them it is first looked which of the set are in it: so no large table is made.
        """
        if not len(self):
            return pa.chunked_array([pa.repeat(False, len(ids))])
        rows, blocks = max(LEAST, len(self) // 4), []
        for start in range(0, len(ids), rows):
            block = ids.slice(start, rows).combine_chunks()
            here = self.column
            if len(here) > len(block):
                here = here.filter(pc.is_in(here, value_set=block))
            blocks.append(pc.is_in(block, value_set=here))
        return pa.chunked_array(blocks, pa.bool_())

    def places_each(self, ids: Iterable[tuple[str, IdColumn]]) -> list[IdColumn]:
        """Return where in this set each of some models' ids is, as `places` does.

        A model's, by alias, are looked up among its own first, which are few; only what is not there is held.
        """
        starts = dict(
            zip(self._by_model, accumulate(map(len, self._by_model.values()), initial=0), strict=False)
        )
        places_of, missed = list[IdColumn](), list[IdColumn]()
        for alias, column in ids:
            in_model = IdSet(self._by_model.get(alias, strung(()))).places(column)
            places_of.append(pc.add(in_model, pa.scalar(starts.get(alias, 0), pa.int32())))
            missed.append(column.filter(pc.is_null(in_model)))

        # What no model of that alias has may be among the ids of the others.
        if sum(len(places) - places.null_count for places in places_of) < len(self):
            elsewhere, start = self.places(strung(missed)), 0
            for i, (places, missed_ids) in enumerate(zip(places_of, missed, strict=True)):
                replacing = elsewhere.slice(start, len(missed_ids)).combine_chunks()
                every = places.combine_chunks()
                places_of[i] = pa.chunked_array([pc.replace_with_mask(every, pc.is_null(every), replacing)])
                start += len(missed_ids)
        return places_of

    @cached_property
    def _python_set(self) -> frozenset[str]:
        return frozenset(self)

    def __contains__(self, trial_id: object) -> bool:
        return trial_id in self._python_set

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(cast("list[str]", chunk.to_pylist()) for chunk in self.column.chunks)

    def __len__(self) -> int:
        return len(self.column)

    def places(self, ids: IdColumn) -> IdColumn:
        """Return where in this set each of some ids is, from 0 on; NULL: it is not."""
        places: Any = pa.nulls(len(ids), pa.int32())
        rows = max(LEAST, len(self) // 4)
        for start in range(0, len(self), rows):
            block = self.column.slice(start, rows).combine_chunks()
            in_block = pc.add(pc.index_in(ids, value_set=block), pa.scalar(start, pa.int32()))
            places = pc.coalesce(places, in_block)
        return places if isinstance(places, pa.ChunkedArray) else pa.chunked_array([places])


# ── ids as numbers ───────────────────────────────────────────────────────────────────────────────


_ID: Final = 32  # characters of an id of ours
_MIXED: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 1], np.uint64)


def fingerprints(ids: IdColumn) -> Numbers:
    """Return a number for each id: equal ids have equal ones, others hardly ever.

    Chunk by chunk: a copy of all ids as one column would be the most memory that verifying a folder takes.
    """
    return np.concatenate([np.empty(0, np.uint64), *map(_fingerprints, ids.chunks)])


def _fingerprints(texts: Any) -> Numbers:  # Any: a column of ids
    if not len(texts) or not pc.all(pc.equal(pc.binary_length(texts), _ID)).as_py():
        # Ids that are not all ours: each text by itself.
        coded, every = texts.dictionary_encode(), list[int]()
        for text in (text.encode() for text in coded.dictionary.to_pylist()):
            if len(text) == _ID:
                every.append(int(_mixed(np.frombuffer(text, np.uint64))[0]))
            else:
                every.append(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))
        numbers: Numbers = np.array(every, np.uint64)[coded.indices.to_numpy()]
        return numbers
    _, offsets, letters = texts.buffers()
    start = int(np.frombuffer(offsets, np.int32)[texts.offset])
    return _mixed(np.frombuffer(letters, np.uint64, len(texts) * _ID // 8, start))


def repeated_ids(columns: Sequence[IdColumn]) -> "pa.Array[pa.StringScalar]":
    """Return the ids that several columns have."""
    marks = [fingerprints(column) for column in columns]
    every = np.sort(np.concatenate([distinct(mark) for mark in marks]))
    again = every[1:][every[1:] == every[:-1]]  # hardly any other than of equal ids
    if not len(again):
        return pa.array([], pa.string())
    alike = (
        column.filter(pa.array(np.isin(mark, again))) for column, mark in zip(columns, marks, strict=True)
    )
    once = pa.concat_tables(pa.table({"trial_id": column.unique()}) for column in alike)
    counts = once.group_by("trial_id").aggregate([([], "count_all")])
    return counts.filter(pc.field("count_all") > 1)["trial_id"].combine_chunks()


def distinct(marks: Numbers) -> Numbers:
    """Return each number once, ascending; sorting takes a tenth of `numpy.unique`."""
    ordered = np.sort(marks)
    return ordered[firsts(ordered)]


def firsts(ordered: Numbers) -> Numbers:
    """Return a mask of the numbers that differ from the one before."""
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def _mixed(letters: Numbers) -> Numbers:
    sums: Numbers = (letters.reshape(-1, _ID // 8) * _MIXED).sum(1, np.uint64)
    return sums
