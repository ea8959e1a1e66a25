"""The blocks of a page by name: plain values, each made from the views of a folder and nothing else.

The file to mail holds all of them; the server of `asyncbench view` makes each when it is asked for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.page.charts.breaks import break_rows, half_rows, heat_rows, kind_curves, length_rows
from asyncbench.page.charts.styling import columnar
from asyncbench.page.head import head_block
from asyncbench.page.measures import cost_block, errors_block, loads_block, time_block
from asyncbench.page.ranked import standings_block

Values = dict[str, Any]  # Any: whatever JSON can hold


def breaks_block(views: FolderViews) -> Values:
    """Return where each breaks: points and lines of accuracy against length, and where half is right."""
    curves = kind_curves(views)
    return {"rows": columnar(break_rows(curves)), "halves": half_rows(curves)}


def heat_block(views: FolderViews) -> Values:
    """Return what each can do: every metric by entrant and kind, and accuracy by length."""
    return {"rows": heat_rows(views), "lengths": columnar(length_rows(views))}


BLOCKS: Final[Mapping[str, Callable[[FolderViews], Values]]] = {
    "head": head_block,
    "standings": standings_block,
    "breaks": breaks_block,
    "heat": heat_block,
    "time": time_block,
    "cost": cost_block,
    "errors": errors_block,
    "loads": loads_block,
}
