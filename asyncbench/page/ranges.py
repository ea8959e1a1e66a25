"""NUPA's ranges of lengths, S, M, L and XL, beside each cell that has one."""

from typing import Final

import pyarrow as pa

from asyncbench.suites.nupa import TASKS, range_of

_CLASSES: Final = {(one.task, one.variant, one.representation): one.length_class for one in TASKS.values()}
_KEYS: Final = ("suite", "task", "variant", "representation", "length")


def with_ranges(cells: pa.Table) -> pa.Table:
    """Return cells with a column `range`; empty where the suite is another one, or the length beyond all."""
    rows = zip(*(cells[name].to_pylist() for name in _KEYS), strict=True)
    return cells.append_column("range", pa.array([range_in(*row) for row in rows], pa.string()))


def range_in(suite: str, task: str, variant: str, representation: str, length: int | None) -> str:
    """Return the range of a length in its task; empty where there is none."""
    length_class = _CLASSES.get((task, variant, representation)) if suite == "nupa" else None
    return "" if length_class is None or length is None else range_of(length, length_class) or ""
