"""Additions and subtractions of a folder by how many carries they have, and how far one of them ripples."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.anatomy.numbers import carries_and_chain, sign_of, whole_operands
from asyncbench.analysis.counting import FolderViews
from asyncbench.stats.proportions import Proportion
from asyncbench.store.schema import CELL

GROUP: Final = tuple(name for name in CELL if name != "length")
Group = tuple[str, ...]  # the values of GROUP

MOST_PROBLEMS: Final = 200_000  # whose carries are counted: the first of the sets, which are balanced

# where each bin of carries starts; it ends where the next one starts
CARRIES: Final = (0, 1, 2, 3, 5, 8, 12, 20)
CHAINS: Final = (0, 1, 2, 3, 4, 6, 10)


class CarryProblem(NamedTuple):
    """What the anatomy needs of a problem."""

    answer_type: str | None  # None: no problem file tells
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryBin:
    """The trials of additions or subtractions with so many carries."""

    first: int
    last: int | None  # None: there is no most
    right: Proportion  # of the trials with a reply


def problems_of(views: FolderViews, wanted: set[str]) -> dict[str, CarryProblem]:
    """Return the problems of these ids.

    Raises:
        ProblemSetError: one of the folders' copies of the problems is damaged.
    """
    columns = ["problem_id", "answer_type", "operands"]
    batches = views.problems(columns, pc.field("problem_id").isin(pa.array(wanted, pa.string())))
    return {
        problem_id: CarryProblem(answer_type, tuple(operands))
        for batch in batches
        for problem_id, answer_type, operands in zip(*map(pa.Array.to_pylist, batch.columns), strict=True)
    }


def carried_in(views: FolderViews) -> pa.Table:
    """Return carries and longest chain of sums by problem_id; raises as `problems_of` does."""
    carried: dict[str, tuple[int, int]] = {}
    for batch in views.problems(["problem_id", "task", "operands"]):
        for problem_id, task, operands in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
            if len(carried) < MOST_PROBLEMS and (found := carries_of(task, operands)):
                carried[problem_id] = found
    numbers = list(zip(*carried.values(), strict=True)) or [(), ()]
    return pa.table(
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
    return carries_and_chain(left, right if sign == "+" else -right)


_GROUP: Final = ", ".join(GROUP)
_SIZES: Final = f"""
SELECT {_GROUP}, carries, chain, count(*) FILTER (outcome = 'correct') AS correct, count(*) AS trials,
    max(repeat) + 1 AS times
FROM trials JOIN carried USING (problem_id) WHERE outcome <> 'failed'
GROUP BY GROUPING SETS (({_GROUP}, carries), ({_GROUP}, chain)) ORDER BY carries, chain
"""  # noqa: S608  made of our own words alone


def bins_by_group(views: FolderViews, carried: pa.Table) -> dict[Group, tuple[tuple[CarryBin, ...], ...]]:
    """Return the bins by carries and by longest chain of each group; trials without a reply are in none."""
    views.put("carried", carried)
    sizes = defaultdict[Group, tuple[list[Size], list[Size]]](lambda: ([], []))
    for row in views.rows(_SIZES):
        *group, carries, chain, correct, trials, times = row.values()
        by_carries, by_chain = sizes[tuple(group)]
        if chain is None:
            by_carries.append((carries, correct, trials, times))
        else:
            by_chain.append((chain, correct, trials, times))
    return {
        group: (tuple(_bins(by_carries, CARRIES)), tuple(_bins(by_chain, CHAINS)))
        for group, (by_carries, by_chain) in sizes.items()
    }


Size = tuple[int, int, int, int]  # carries or columns, right, trials, times that each problem was asked


def _bins(sizes: Iterable[Size], starts: Sequence[int]) -> Iterator[CarryBin]:
    right, trials, independent = Counter[int](), Counter[int](), defaultdict[int, float](float)
    for size, correct, count, times in sizes:
        first = max(start for start in starts if start <= size)
        right[first] += correct
        trials[first] += count
        independent[first] += count / times
    for first, after in (*pairwise(starts), (starts[-1], None)):
        if count := trials[first]:
            repeats = count / independent[first]
            share = Proportion(successes=right[first], trials=count, repeats=repeats)
            yield CarryBin(first=first, last=None if after is None else after - 1, right=share)
