"""Additions and subtractions of a folder by how many carries they have, and how far one of them ripples."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results.anatomy.columns import columns_of
from asyncbench.results.anatomy.compared import sign_of, whole_operands
from asyncbench.results.anatomy.examined_sample import GROUP, Group, group_of
from asyncbench.stats import Proportion
from asyncbench.store import iter_problems

MOST_PROBLEMS: Final = 200_000  # whose carries are counted: the first of the sets, which are balanced

# where each bin of carries starts; it ends where the next one starts
CARRIES: Final = (0, 1, 2, 3, 5, 8, 12, 20)
CHAINS: Final = (0, 1, 2, 3, 4, 6, 10)


class CarryProblem(NamedTuple):
    """What the anatomy needs of a problem."""

    answer_type: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryBin:
    """The trials of additions or subtractions with so many carries."""

    first: int
    last: int | None  # None: there is no most
    right: Proportion  # of the trials with a reply


def problems_of(folder: Path, wanted: set[str]) -> tuple[dict[str, CarryProblem], pa.Table]:
    """Return the problems of these ids, and carries and longest chain of sums by problem_id.

    Raises:
        ProblemSetError: one of the folder's copies of the problems is damaged.
    """
    problems: dict[str, CarryProblem] = {}
    carried: dict[str, tuple[int, int]] = {}
    columns = ["problem_id", "task", "answer_type", "operands"]
    for batch in iter_problems(folder, columns):
        for problem_id, task, answer_type, operands in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if problem_id in wanted:
                problems[problem_id] = CarryProblem(answer_type, tuple(operands))
            if len(carried) < MOST_PROBLEMS and (found := carries_of(task, operands)):
                carried[problem_id] = found
    numbers = list(zip(*carried.values(), strict=True)) or [(), ()]
    return problems, pa.table(
        {
            "problem_id": pa.array(list(carried), pa.string()),
            "carries": pa.array(numbers[0], pa.int32()),
            "chain": pa.array(numbers[1], pa.int32()),
        }
    )


def carries_of(task: str, operands: Sequence[str]) -> tuple[int, int] | None:
    """Return how many carries or borrows a task has and how far one ripples; None: it adds no two numbers."""
    sign = sign_of(task)
    if sign not in ("+", "-") or (numbers := whole_operands(operands)) is None:
        return None
    left, right = numbers
    columns = columns_of(left, right if sign == "+" else -right)
    return columns.carries, columns.chain


def bins_by_group(trials: pa.Table, carried: pa.Table) -> dict[Group, tuple[tuple[CarryBin, ...], ...]]:
    """Return the bins by carries and by longest chain of each group; trials without a reply are in none."""
    places = pc.index_in(trials["problem_id"], carried["problem_id"].combine_chunks())
    known = trials.append_column("place", places).filter(pc.is_valid(places))
    known = known.filter(pc.field("outcome") != Outcome.FAILED.value)
    right = pc.equal(known["outcome"], pa.scalar(Outcome.CORRECT.value))
    by_group = known.select([*GROUP, "repeat"]).append_column("right", pc.cast(right, pa.int64()))
    found: dict[Group, tuple[tuple[CarryBin, ...], ...]] = {}
    sized = [_sizes(by_group, carried[name].take(known["place"])) for name in ("carries", "chain")]
    for group, sizes in sized[0].items():
        found[group] = (_bins(sizes, CARRIES), _bins(sized[1][group], CHAINS))
    return found


Sizes = list[tuple[int, int, int, int]]  # size, right, trials, times that each problem was asked


def _sizes(by_group: pa.Table, size: "pa.ChunkedArray[pa.Int32Scalar]") -> dict[Group, Sizes]:
    table = by_group.append_column("size", size)
    sums = table.group_by([*GROUP, "size"], use_threads=False).aggregate(
        [("right", "sum"), ([], "count_all"), ("repeat", "max")]
    )
    found = defaultdict[Group, Sizes](list)
    for row in sums.to_pylist():
        one = row["size"], row["right_sum"], row["count_all"], row["repeat_max"] + 1
        found[group_of(row)].append(one)
    return found


def _bins(sizes: Sizes, starts: Sequence[int]) -> tuple[CarryBin, ...]:
    right, trials, independent = Counter[int](), Counter[int](), defaultdict[int, float](float)
    for size, correct, count, times in sizes:
        first = max(start for start in starts if start <= size)
        right[first] += correct
        trials[first] += count
        independent[first] += count / times
    return tuple(
        CarryBin(
            first=first,
            last=None if after is None else after - 1,
            right=Proportion(
                successes=right[first],
                trials=trials[first],
                repeats=trials[first] / independent[first],
            ),
        )
        for first, after in _with_next(starts)
        if trials[first]
    )


def _with_next(starts: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    yield from pairwise(starts)
    yield starts[-1], None
