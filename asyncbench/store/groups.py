"""The rows of a table, group by group."""

from collections.abc import Iterator, Sequence
from typing import Literal

import pyarrow as pa


def groups_of(table: pa.Table, keys: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """Yield the values of the keys and the rows that have them, which keep their order; groups by their keys.

    Args:
        table: any rows.
        keys: columns of text without NULLs.
    """
    order: list[tuple[str, Literal["ascending", "descending"]]] = [(key, "ascending") for key in keys]
    rows = table.sort_by(order)  # stable
    # Sorted again: group_by promises no order, and that of first occurrence only seems to be it.
    groups = table.group_by(list(keys)).aggregate([([], "count_all")]).sort_by(order)
    start = 0
    for group in groups.to_pylist():
        count = group.pop("count_all")
        yield group, rows.slice(start, count)
        start += count
