"""Tables of a plan by named columns: each has a heading, the text of its cells, and the cell below them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from asyncbench.tables.report import Sheet

Row = TypeVar("Row")
Whole = TypeVar("Whole")


@dataclass(frozen=True, slots=True)
class PlanColumn(Generic[Row, Whole]):
    """A column of a table whose rows are records."""

    heading: str
    cell: Callable[[Row], str]
    together: Callable[[Whole], str] | None = None  # its cell in the row of all together; None: it is empty


def sheet_of(
    title: str, columns: Sequence[PlanColumn[Row, Whole]], rows: Iterable[Row], *, whole: Whole | None = None
) -> Sheet:
    """Return a table of records, a row each; `whole`: what a last row is about, which sums up all others."""
    cells = [[column.cell(row) for column in columns] for row in rows]
    if whole is not None:
        cells.append(["" if column.together is None else column.together(whole) for column in columns])
    return Sheet(title=title, head=[column.heading for column in columns], rows=cells)
