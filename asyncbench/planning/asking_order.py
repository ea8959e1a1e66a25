"""The order in which the problems of a set are asked: every beginning is balanced, whatever its file does.

add 2, sub 8, mul 5, div 3, add 6, sub 4, …        and not        add 2, add 3, add 4, …
"""

from collections.abc import Sequence
from math import gcd
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from asyncbench.planning.trial_columns import ROWS, numbered
from asyncbench.problems.problem_set import ProblemSet

Rows = npt.NDArray[np.int32]
OPERATION: Final = ("suite", "task", "variant", "representation")
_GOLDEN: Final = 0.618  # of all lengths: leaps of about so many meet short and long ones in turn


class _CellPlace(NamedTuple):
    """Where a cell stands: its operation among all, and its length among those of the operation."""

    operation: int
    length: int


def balanced_rows(problems: ProblemSet) -> Rows:
    """Return the rows of a set in the order in which a sweep asks them.

    The operations take turns until each has no more problems, and so do the lengths of each operation. One
    begins at another length than the next and goes on by leaps, so that already a few problems are short
    and long. Those of one operation and length keep their order.
    """
    columns = [*OPERATION, "length"]
    cells = pa.Table.from_batches(problems.batches(ROWS, columns=columns))
    codes, firsts = numbered(cells, columns)
    places = np.array(_places(firsts.to_pylist()), np.int32)
    cell = codes.to_numpy()
    operation, length = places[cell].T
    turn = _counted(cell, np.argsort(cell, kind="stable"))
    turn_of_operation = _counted(operation, np.lexsort((length, turn, operation)))
    return np.lexsort((operation, turn_of_operation)).astype(np.int32)


def _places(cells: Sequence[dict[str, Any]]) -> list[_CellPlace]:
    """Return the place of each cell; operations stand as they first appear."""
    lengths: dict[tuple[str, ...], list[int]] = {}
    for i, cell in enumerate(cells):
        lengths.setdefault(tuple(cell[name] for name in OPERATION), []).append(i)
    places = [_CellPlace(0, 0)] * len(cells)
    for operation, those in enumerate(lengths.values()):
        those.sort(key=lambda i: (cells[i]["length"] is None, cells[i]["length"]))
        for place, leap in enumerate(_leaps(len(those), operation, len(lengths))):
            places[those[leap]] = _CellPlace(operation, place)
    return places


def _leaps(lengths: int, operation: int, operations: int) -> list[int]:
    """Return which length an operation asks first, second, and so on: each once.

    Where all operations have the same lengths, those asked in turn are as different as can be.
    """
    leap = next(step for step in range(round(_GOLDEN * lengths), 0, -1) if gcd(step, lengths) == 1)
    around = lengths // gcd(operations, lengths)  # turns after which it would come back to where it began
    return [(i * operations + operation + i // around) * leap % lengths for i in range(lengths)]


def _counted(groups: Rows, order: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Return how many of its group stand before each row, in an order that has the groups one by one."""
    sizes = np.bincount(groups)
    counted = np.empty(len(groups), np.int64)
    counted[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return counted
