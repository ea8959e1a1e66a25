"""Fewer cells where a page would grow too large: what is told apart less, by a rule that the page states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.results import COUNTS, SUMS
from asyncbench.store import CELL

MOST_CELLS: Final = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCells:
    """Cells that a page can hold."""

    cells: pa.Table
    rules: tuple[str, ...]  # what was done, for people; none where nothing was


def merged(cells: pa.Table, *, most: int = MOST_CELLS) -> MergedCells:
    """Return cells, `most` of them if that can be: merged over variants, then lengths, then over all lengths.

    No trial is lost by it: every count and sum is that of the cells it stands for. Columns beyond those of
    `cells_of` keep cells apart.
    """
    rules: list[str] = []
    for rule, step in _STEPS:
        if len(cells) <= most:
            break
        cells = _summed(step(cells))
        rules.append(rule)
    return MergedCells(cells=cells, rules=tuple(rules))


def _over_variants(cells: pa.Table) -> pa.Table:
    return _replaced(cells, "variant", [""] * len(cells))


def _over_near_lengths(cells: pa.Table) -> pa.Table:
    return _replaced(cells, "length", [_rounded_up(n) for n in cells["length"].to_pylist()])


def _over_lengths(cells: pa.Table) -> pa.Table:
    return _replaced(cells, "length", [None] * len(cells))


_STEPS: Final[tuple[tuple[str, Callable[[pa.Table], pa.Table]], ...]] = (
    ("Variants are taken together.", _over_variants),
    ("Lengths above 10 are rounded up to one significant digit.", _over_near_lengths),
    ("All lengths are taken together.", _over_lengths),
)


def _rounded_up(length: int | None) -> int | None:
    """Return a length rounded up to one significant digit: 10, 20, …, 100, 200, …

    Up, and not to the nearest, so that whole ranges stay whole: S, M, L and XL end on such lengths.
    """
    if length is None or length <= 10:
        return length
    unit: int = 10 ** (len(str(length)) - 1)
    return -(-length // unit) * unit


def _replaced(cells: pa.Table, name: str, values: Sequence[object]) -> pa.Table:
    place = cells.column_names.index(name)
    return cells.set_column(place, cells.schema.field(name), pa.array(values, cells.schema.field(name).type))


def _summed(cells: pa.Table) -> pa.Table:
    some = pc.ScalarAggregateOptions(min_count=1)  # the sum of nothing is NULL, not 0
    keys = [name for name in cells.column_names if name not in (*COUNTS, *SUMS)]
    sums = cells.group_by(keys).aggregate([(name, "sum", some) for name in (*COUNTS, *SUMS)])
    named = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
    return named.select(cells.column_names).cast(cells.schema).sort_by([(name, "ascending") for name in CELL])
