"""All trials of results folders in memory, as numbers, so that a query takes milliseconds.

What is read of a part stays, for a part never changes; rows of the journal are read anew for each
snapshot. Ten columns of each trial are in memory, some 90 bytes. Its other texts stay on disk until you open
the trial.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from asyncbench.records import Outcome
from asyncbench.store.id_set import Numbers, fingerprints
from asyncbench.store.schema import ENTRANT
from asyncbench.store.snapshot import Snapshot

pc: Any = pyarrow.compute  # its stubs take a column for "array or scalar"

KIND: Final = ("suite", "task", "variant", "representation")
_CODED: Final = (*ENTRANT, *KIND, "outcome", "problem_id", "load")
_COLUMNS: Final = ("trial_id", *_CODED, "length", "finished_at", "expected", "answer")
_TEXTS: Final = ("trial_id", "expected", "answer")
UNKNOWN: Final = -1  # a length, or a trial that is not among others

T = TypeVar("T", bound=Hashable)


class Register(Generic[T]):
    """Values and their numbers, in the order in which they were met."""

    def __init__(self, known: Iterable[T] = ()) -> None:
        self._numbers: dict[T, int] = {value: number for number, value in enumerate(known)}

    def __getitem__(self, value: T) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def __iter__(self) -> Iterator[T]:
        return iter(self._numbers)

    def get(self, value: T) -> int:
        """Return the number of a value; `UNKNOWN` where it was never met."""
        return self._numbers.get(value, UNKNOWN)

    def among(self, places: Mapping[T, int]) -> Numbers:
        """Return the place of each value, by number; the last place and one more where it has none."""
        return np.array([places.get(value, len(places)) for value in self._numbers] or [0], np.int64)


class TextRegister:
    """Many texts and their numbers, in the order in which they were met."""

    def __init__(self) -> None:
        self._known = pa.array([], pa.string())

    def numbers(self, values: Any) -> Numbers:
        """Return the number of each of some texts that differ."""
        indices = pc.index_in(values, value_set=self._known)
        new = values.filter(pc.is_null(indices))
        numbers: Numbers = indices.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).copy()
        numbers[numbers == UNKNOWN] = np.arange(len(self._known), len(self._known) + len(new))
        self._known = pa.concat_arrays([self._known, new])
        return numbers

    def get(self, text: str) -> int:
        """Return the number of a text; `UNKNOWN` where it was never met."""
        return int(pc.index(self._known, pa.scalar(text)).as_py())


@dataclass(slots=True)
class Registers:
    """The values that numbers in rows in memory stand for."""

    entrants: Register[tuple[str, ...]] = field(default_factory=Register)  # with the folder first
    kinds: Register[tuple[str, ...]] = field(default_factory=Register)
    outcomes: Register[tuple[str, ...]] = field(
        default_factory=lambda: Register((outcome.value,) for outcome in Outcome)
    )
    problems: "TextRegister" = field(default_factory=lambda: TextRegister())


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """The trials of one part, or of a journal, column by column."""

    texts: pa.Table  # `_TEXTS`
    entrant: Numbers
    kind: Numbers
    outcome: Numbers
    problem: Numbers
    length: Numbers
    at: Numbers  # milliseconds since 1970, UTC: when the trial was finished
    counted: Numbers | None  # which rows are answers at rest, True or False; None: all

    def __len__(self) -> int:
        return len(self.at)


def rows_in_memory(rows: pa.Table, registers: Registers, label: str) -> RowsInMemory:
    """Return rows of `trials` as numbers; `label`: what their folder is called."""
    length = pc.fill_null(rows["length"], UNKNOWN)
    at_rest = pc.is_null(rows["load"])
    problem: Any = rows["problem_id"].combine_chunks()
    return RowsInMemory(
        texts=rows.select(_TEXTS),
        entrant=_numbered(rows.select(ENTRANT), registers.entrants, label),
        kind=_numbered(rows.select(KIND), registers.kinds),
        outcome=_numbered(rows.select(["outcome"]), registers.outcomes).astype(np.int8),
        problem=registers.problems.numbers(problem.dictionary)[problem.indices.to_numpy()],
        length=length.to_numpy().astype(np.int32),
        at=rows["finished_at"].cast(pa.int64()).to_numpy() // 1000,
        counted=None if pc.all(at_rest).as_py() in (True, None) else at_rest.to_numpy(),
    )


def _numbered(rows: pa.Table, register: Register[tuple[str, ...]], *first: str) -> Numbers:
    """Return the number of each row's values in a register."""
    together = np.zeros(len(rows), np.int64)
    columns: list[Any] = [column.combine_chunks() for column in rows.columns]
    for column in columns:
        together *= len(column.dictionary) + 1
        together += pc.fill_null(column.indices, len(column.dictionary)).to_numpy()
    which, at = _distinct(together)
    values = [column.take(pa.array(at)).to_pylist() for column in columns]
    numbers = [register[*first, *(value or "" for value in met)] for met in zip(*values, strict=True)]
    return np.array(numbers, np.int32)[which]


def _distinct(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return which of the distinct values each is, and where each of these first stands."""
    if len(values) and values.min() == values.max():  # most columns of a part have but one
        return np.zeros(len(values), np.int8), np.zeros(1, np.int64)
    _, at, which = np.unique(values, return_index=True, return_inverse=True)
    return which, at


class FolderInMemory:
    """The trials of one folder; `read_trials` reads new parts."""

    def __init__(self, label: str, registers: Registers) -> None:
        self.label = label
        self._registers = registers
        self._parts: dict[Path, RowsInMemory] = {}
        self._graded: dict[Path, Numbers] = {}  # fingerprints of the ids in parts of `grades`

    def read_trials(self, snapshot: Snapshot) -> list[tuple[Path | None, RowsInMemory, Numbers | None]]:
        """Return the rows of each part, and of the journal (None), with which of them count (None: all)."""
        self._parts = {
            part: self._parts.get(part) or self._read(snapshot, part) for part in snapshot.files["trials"]
        }
        pa.default_memory_pool().release_unused()
        gone = snapshot.uncounted("trials")
        parts: list[tuple[Path | None, RowsInMemory, Numbers | None]] = [
            (part, rows, _counting(rows, gone[part])) for part, rows in self._parts.items()
        ]
        fresh = snapshot.journalled["trials"].select(_COLUMNS)
        coded = pa.table(
            {
                name: column.dictionary_encode() if name in _CODED else column
                for name, column in zip(fresh.column_names, fresh.columns, strict=True)
            }
        ).unify_dictionaries()
        rows = rows_in_memory(coded, self._registers, self.label)
        return [*parts, (None, rows, rows.counted)] if len(rows) else parts

    def read_grades(self, snapshot: Snapshot) -> None:
        """Read which trials each part of `grades` holds, so that one trial needs no search."""
        for part in snapshot.files["grades"]:
            if part not in self._graded:
                ids = snapshot.read_part("grades", part, ["trial_id"], coded=())["trial_id"]
                self._graded[part] = fingerprints(ids)
        self._graded = {part: self._graded[part] for part in snapshot.files["grades"]}
        pa.default_memory_pool().release_unused()

    def grades_of(self, parts: Iterable[Path], ids: Sequence[str]) -> dict[Path, Sequence[int]] | None:
        """Return the rows of trials in parts of `grades`, and maybe others; None: nobody knows yet."""
        wanted, by_part = fingerprints(pa.chunked_array([ids], pa.string())), dict[Path, Sequence[int]]()
        for part in parts:
            if part not in self._graded:
                return None
            rows: list[int] = np.flatnonzero(np.isin(self._graded[part], wanted)).tolist()
            by_part |= {part: rows} if rows else {}
        return by_part

    def _read(self, snapshot: Snapshot, part: Path) -> RowsInMemory:
        rows = snapshot.read_part("trials", part, _COLUMNS, coded=_CODED)
        return rows_in_memory(rows, self._registers, self.label)


def _counting(rows: RowsInMemory, gone: "pa.Array[pa.StringScalar]") -> Numbers | None:
    if not len(gone):
        return rows.counted
    first: Numbers = pc.invert(pc.is_in(rows.texts["trial_id"], value_set=gone)).to_numpy()
    return first if rows.counted is None else first & rows.counted
