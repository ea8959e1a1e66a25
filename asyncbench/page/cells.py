"""The cells of a page: with NUPA's ranges of lengths, and fewer where the page would grow too large."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.results import COUNTS, SUMS
from asyncbench.store import CELL
from asyncbench.suites.nupa import TASKS, range_of

MOST_CELLS: Final = 40_000

_CLASSES: Final = {
    (task.task, task.variant, task.representation): task.length_class for task in TASKS.values()
}


def with_ranges(cells: pa.Table) -> pa.Table:
    """Return cells with a column `range`; empty where the suite is another one, or the length beyond all."""
    names = ("suite", "task", "variant", "representation", "length")
    rows = zip(*(cells[name].to_pylist() for name in names), strict=True)
    return cells.append_column("range", pa.array([range_in(*row) for row in rows], pa.string()))


def range_in(suite: str, task: str, variant: str, representation: str, length: int | None) -> str:
    """Return the range of a length in its task, S, M, L or XL; empty where there is none."""
    length_class = _CLASSES.get((task, variant, representation)) if suite == "nupa" else None
    return "" if length_class is None or length is None else range_of(length, length_class) or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCells:
    """Cells that a page can hold."""

    cells: pa.Table
    rules: tuple[str, ...]  # what was done, for people; none where nothing was


def merged(cells: pa.Table, *, most: int = MOST_CELLS) -> MergedCells:
    """Return cells, `most` of them if that can be: merged over variants, then lengths, then over all lengths.

    No trial is lost by it: every count and sum is that of the cells it stands for. Columns beyond those of
    the view `cells` keep cells apart.
    """
    rules: list[str] = []
    for rule, name, change in _STEPS:
        if len(cells) <= most:
            break
        field = cells.schema.field(name)
        changed = pa.array([change(value) for value in cells[name].to_pylist()], field.type)
        cells = _summed(cells.set_column(cells.column_names.index(name), field, changed))
        rules.append(rule)
    return MergedCells(cells=cells, rules=tuple(rules))


def _rounded_up(length: int | None) -> int | None:
    """Return a length rounded up to one significant digit: 10, 20, …, 100, 200, …

    Up, and not to the nearest, so that whole ranges stay whole: S, M, L and XL end on such lengths.
    """
    if length is None or length <= 10:
        return length
    unit: int = 10 ** (len(str(length)) - 1)
    return -(-length // unit) * unit


_STEPS: Final[Sequence[tuple[str, str, Callable[[Any], object]]]] = (  # Any: a value of the column
    ("Variants are merged.", "variant", lambda _: ""),
    ("Lengths above 10 are rounded up to one significant digit.", "length", _rounded_up),
    ("All lengths are merged.", "length", lambda _: None),
)


def _summed(cells: pa.Table) -> pa.Table:
    some = pc.ScalarAggregateOptions(min_count=1)  # the sum of nothing is NULL, not 0
    keys = [name for name in cells.column_names if name not in (*COUNTS, *SUMS)]
    sums = cells.group_by(keys).aggregate([(name, "sum", some) for name in (*COUNTS, *SUMS)])
    named = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
    return named.select(cells.column_names).cast(cells.schema).sort_by([(name, "ascending") for name in CELL])
