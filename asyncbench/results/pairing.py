"""Who answered which problems right, as bits: what two models have in common is one AND of two integers.

A bit stands for a problem. So twenty models on fifty thousand problems are some milliseconds a pair.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results.entrants import Asked
from asyncbench.store import ENTRANT, Filters, Snapshot, steady

PAIRING_COLUMNS: Final = (*ENTRANT, "suite", "task", "problem_id", "repeat", "outcome")
ROWS: Final = 65_536  # at a time, while they are read
ALL: Final = -1  # as bits: every problem

Bits = int  # bit n: the problem at place n
Ended = Mapping[str, tuple[Bits, ...]]  # outcome → the problems that ended so, by turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What one was asked and got right, by turn: a repeat, or a condition and repeat."""

    asked: tuple[Bits, ...]
    right: tuple[Bits, ...]

    @property
    def problems(self) -> Bits:
        """The problems that were asked at least once."""
        return _any(self.asked)

    def within(self, problems: Bits) -> "Marks":
        """Return the same of these problems alone."""
        return Marks(
            asked=tuple(bits & problems for bits in self.asked),
            right=tuple(bits & problems for bits in self.right),
        )

    @property
    def trials(self) -> int:
        return sum(bits.bit_count() for bits in self.asked)

    @property
    def correct(self) -> int:
        return sum(bits.bit_count() for bits in self.right)

    def by_problem(self) -> dict[tuple[int, int], int]:
        """Return how many problems there are by (times right, times asked)."""
        found = Counter[tuple[int, int]]()
        for times, problems in _split(_counted(self.asked), self.problems).items():
            for right, those in _split(_counted(self.right), problems).items():
                found[right, times] += those.bit_count()
        return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The marks of everybody asked, over the same problems."""

    marks: Mapping[Asked, Marks]
    ended: Mapping[Asked, Ended]
    tasks: Mapping[tuple[str, str], Bits]  # (suite, task) → its problems
    problem_ids: Sequence[str]  # by place

    def of(self, *, suite: str | None = None, task: str | None = None) -> Bits:
        """Return the problems of a suite or task; None: of any."""
        wanted = (
            bits
            for (its_suite, its_task), bits in self.tasks.items()
            if suite in (None, its_suite) and task in (None, its_task)
        )
        return _any(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two on the problems that both were asked, as often as both were."""

    problems: int
    trials: int
    both: int  # trials that both got right
    only_a: int
    only_b: int
    by_problem: Mapping[tuple[int, int], int]  # (times right of a less those of b, times asked) → problems

    @property
    def neither(self) -> int:
        return self.trials - self.both - self.only_a - self.only_b

    @property
    def share_a(self) -> float:
        return (self.both + self.only_a) / self.trials

    @property
    def share_b(self) -> float:
        return (self.both + self.only_b) / self.trials

    @property
    def difference(self) -> float:
        """The accuracy of a less that of b."""
        return (self.only_a - self.only_b) / self.trials

    @property
    def differences(self) -> dict[int, int]:
        """Times right of a less those of b → problems."""
        found = Counter[int]()
        for (difference, _), problems in self.by_problem.items():
            found[difference] += problems
        return dict(found)

    @property
    def discordant_share(self) -> float:
        """The mean square of a problem's difference, over the squared mean of its trials.

        Asked once: the share of problems that one alone got. It may be above 1 where repeats are
        unequal: the difference in accuracy is over trials, so a few problems that were asked often decide it.
        """
        squares = sum(difference**2 * problems for (difference, _), problems in self.by_problem.items())
        return squares * self.problems / self.trials**2


def pair(a: Marks, b: Marks, *, within: Bits = ALL) -> ModelPair:
    """Return how two compare on the problems in common; `within` leaves others out."""
    turns = range(min(len(a.asked), len(b.asked)))
    common = [a.asked[n] & b.asked[n] & within for n in turns]
    right_a = [a.right[n] & common[n] for n in turns]
    right_b = [b.right[n] & common[n] for n in turns]
    both = [right_a[n] & right_b[n] for n in turns]
    counts = [_size(bits) for bits in (common, both, right_a, right_b)]
    return ModelPair(
        problems=_any(common).bit_count(),
        trials=counts[0],
        both=counts[1],
        only_a=counts[2] - counts[1],
        only_b=counts[3] - counts[1],
        by_problem=_by_problem(right_a, right_b, common),
    )


def _size(turns: Iterable[Bits]) -> int:
    return sum(bits.bit_count() for bits in turns)


def _any(turns: Iterable[Bits]) -> Bits:
    found = 0
    for bits in turns:
        found |= bits
    return found


def _by_problem(
    right_a: Sequence[Bits], right_b: Sequence[Bits], common: Sequence[Bits]
) -> dict[tuple[int, int], int]:
    """Return how many problems there are by (times right of a) - (times right of b) and times asked."""
    problems = _any(common)
    # Times right of a, plus times not right of b: the difference, moved up by the number of turns.
    planes = _counted([*right_a, *(problems & ~bits for bits in right_b)])
    found = {
        (value - len(right_b), times): bits.bit_count()
        for times, those in _split(_counted(common), problems).items()
        for value, bits in _split(planes, those).items()
    }
    return dict(sorted(found.items()))


def _counted(turns: Iterable[Bits]) -> list[Bits]:
    """Return in how many turns each bit is set: the ones, the twos, the fours … of all counts at once."""
    planes: list[Bits] = []
    for carry in turns:
        for n, plane in enumerate(planes):
            planes[n], carry = plane ^ carry, plane & carry  # as by hand: what is carried on
        if carry:
            planes.append(carry)
    return planes


def _split(planes: Sequence[Bits], problems: Bits) -> dict[int, Bits]:
    """Return which of the problems have which count."""
    found = {0: problems}
    for n, plane in enumerate(planes):
        halves = [
            (count | (1 << n if yes else 0), bits & (plane if yes else ~plane))
            for count, bits in found.items()
            for yes in (False, True)
        ]
        found = {count: bits for count, bits in halves if bits}
    return found if problems else {}


def places(bits: Bits) -> list[int]:
    """Return the places of the bits that are set, ascending."""
    return [place for place, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_coded(folder: Path | str, columns: Sequence[str], filters: Filters | None = None) -> pa.Table:
    """Return columns of `trials`, texts as dictionaries: a million rows fit into some hundred megabytes.

    Raises:
        ConfigError: the folder is not a results folder.
        StoreError: it cannot be read.
    """

    def read(seen: Snapshot) -> list[pa.RecordBatch]:
        return [_coded(batch) for batch in seen.batches("trials", columns, filters, rows=ROWS)]

    if batches := steady(folder, read):
        return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return steady(folder, lambda seen: seen.read("trials", columns, filters))


def read_model(folder: Path | str, model: str, columns: Sequence[str], filters: pc.Expression) -> pa.Table:
    """Return columns of one model's `trials`; the parts of others are not opened.

    Raises:
        ConfigError, StoreError: as `read_coded` does.
    """

    def read(seen: Snapshot) -> pa.Table:
        own = [path for path in seen.files["trials"] if _model_of(path) == model]
        return replace(seen, files={**seen.files, "trials": own}).read(
            "trials", columns, filters & (pc.field("model") == model)
        )

    return steady(folder, read)


def _model_of(part: Path) -> str:
    return unquote(part.parent.name.removeprefix("model="))


def _coded(batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [
        cast("pa.StringArray", array).dictionary_encode() if pa.types.is_string(array.type) else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(cast("list[pa.Array[Any]]", arrays), names=batch.schema.names)


def marked(trials: pa.Table) -> Marked:
    """Return the marks of a table with `PAIRING_COLUMNS`; a turn is a repeat."""
    if not len(trials):
        return Marked(marks={}, ended={}, tasks={}, problem_ids=())
    problems = _encoded(trials["problem_id"])
    every = pa.array(range(len(problems.dictionary)), pa.int32())
    table = trials.select([*ENTRANT, "suite", "task", "repeat", "outcome"])
    table = table.append_column("place", problems.indices)
    ended = _ended(table, every)
    return Marked(
        marks={who: _marks(its) for who, its in ended.items()},
        ended=ended,
        tasks={
            (row["suite"], row["task"]): _bits(row["places"], every)
            for row in _listed(table, ("suite", "task"))
        },
        problem_ids=cast("list[str]", problems.dictionary.to_pylist()),
    )


def dealt_with(found: Marked, skipped: pa.Table) -> dict[Asked, Bits]:
    """Return the problems that everybody was asked, or that rows of `skipped` say need not be asked.

    Args:
        found: who was asked what. A problem that nobody was asked has no place there, and none here.
        skipped: the columns of `ENTRANT` and `problem_id`.
    """
    dealt = {who: marks.problems for who, marks in found.marks.items()}
    every = pa.array(range(len(found.problem_ids)), pa.int32())
    places = pc.index_in(skipped["problem_id"], value_set=pa.array(found.problem_ids, pa.string()))
    for row in _listed(skipped.select(ENTRANT).append_column("place", places), ENTRANT):
        who = (row["run"], row["model"], row["condition"])
        dealt[who] = dealt.get(who, 0) | _bits(row["places"], every)
    return dealt


def _encoded(column: "pa.ChunkedArray[Any]") -> "pa.DictionaryArray[Any, Any]":
    """Return a column of texts as one dictionary, as which it may have come."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return whole if isinstance(whole, pa.DictionaryArray) else whole.dictionary_encode()


def is_outcome(trials: pa.Table, outcome: Outcome) -> "pa.ChunkedArray[Any]":
    """Return for each trial whether it ended so."""
    found = cast("pa.ChunkedArray[pa.StringScalar]", trials["outcome"].cast(pa.string()))
    return cast("pa.ChunkedArray[Any]", pc.equal(found, pa.scalar(outcome.value)))


def _ended(table: pa.Table, every: "pa.Array[Any]") -> dict[Asked, Ended]:
    turns = cast("list[int]", sorted(pc.unique(table["repeat"]).to_pylist()))
    found: dict[Asked, dict[tuple[int, str], Bits]] = {}
    for row in _listed(table, (*ENTRANT, "repeat", "outcome")):
        who = (row["run"], row["model"], row["condition"])
        found.setdefault(who, {})[row["repeat"], row["outcome"]] = _bits(row["places"], every)
    return {
        who: {one.value: tuple(bits.get((n, one.value), 0) for n in turns) for one in Outcome}
        for who, bits in found.items()
    }


def _marks(ended: Ended) -> Marks:
    asked = tuple(_any(turn) for turn in zip(*ended.values(), strict=True))
    return Marks(asked=asked, right=ended[Outcome.CORRECT])


def _listed(table: pa.Table, keys: Sequence[str]) -> Iterable[dict[str, Any]]:  # Any: keys, and an array
    """Yield each group with the places of its problems."""
    groups = table.group_by(list(keys), use_threads=False).aggregate([("place", "list")]).combine_chunks()
    names = groups.select(list(keys)).to_pylist()
    for n, row in enumerate(names):
        yield row | {"places": groups["place_list"][n].values}  # of a list scalar of Arrow


def _bits(found: "pa.Array[Any]", every: "pa.Array[Any]") -> Bits:
    """Return a bit for each of all places that is among those found."""
    mask = pc.is_in(every, value_set=found)  # Arrow packs booleans as bits, the lowest first
    data = cast("Any", mask).buffers()[1]
    return int.from_bytes(data, "little") & ((1 << len(every)) - 1)
