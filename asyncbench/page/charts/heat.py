"""What each can do: every metric by entrant and kind, and accuracy by length in bins that kinds share.

There are as many rows as entrants times kinds; by length times `MOST_BINS` at most, for a longer one is in
the bin of its first digit: 11 to 20, 201 to 300.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from asyncbench.analysis.asked import Asked, asked_in, kind_of
from asyncbench.analysis.cells import METRICS, cells_in, summed
from asyncbench.analysis.counting import FolderViews
from asyncbench.page.charts.styling import Row
from asyncbench.suites.nupa.ranges import range_of
from asyncbench.suites.nupa.tasks import TASKS

Sums = Mapping[str, Any]  # Any: a row of the view `cells`

MOST_LENGTHS: Final = 24  # columns; more are put into bins
MOST_BINS: Final = 64  # of a range, of lengths below ten million: ten, then nine for each further digit

_CLASSES: Final = {
    (task.task, task.variant, task.representation): task.length_class for task in TASKS.values()
}


def heat_rows(views: FolderViews) -> list[Row]:
    """Return each entrant and kind with [value, low, high, trials] of every metric that is known of it."""
    return [
        {"kind": kind, "asked": asked, "trials": sums["trials"], "values": _values(sums)}
        for (kind, asked), sums in sorted(summed(placed_cells(views), ("kind", "asked")).items())
    ]


def _values(sums: Sums) -> dict[str, list[float | int | None]]:
    found = {name: metric.of(sums) for name, metric in METRICS.items()}
    return {
        name: [measured.value, measured.low, measured.high, measured.trials]
        for name, measured in found.items()
        if measured.value is not None
    }


def length_rows(views: FolderViews) -> list[Row]:
    """Return the accuracy of each entrant and kind by length, in bins where these are many."""
    cells = [{**cell} for cell in placed_cells(views) if cell["length"] is not None]
    kinds = asked_in(views).kinds
    for cell in cells:
        about = kinds[cell["kind"]]
        named = (about.suite, about.task, about.variant, about.representation)
        cell["range"] = range_in(*named, cell["length"])
    bins = length_bins((cell["range"], cell["length"]) for cell in cells)
    for cell in cells:
        cell["bin"] = bins[cell["range"], cell["length"]]
    rows = []
    by_bin = summed(cells, ("kind", "asked", "bin", "range"))
    for (kind, asked, span, in_range), sums in sorted(by_bin.items()):
        found = METRICS["accuracy"].of(sums)
        rows.append(
            {
                "kind": kind,
                "asked": asked,
                "length": span[1],
                "from": span[0],
                "to": span[1],
                "range": in_range,
                "value": found.value,
                "trials": found.trials,
            }
        )
    return rows


def placed_cells(views: FolderViews) -> list[dict[str, Any]]:
    """Return the cells of a folder with the places of their entrant and kind."""
    return views.once("placed_cells", lambda: _with_places(cells_in(views), asked_in(views)))


def _with_places(cells: Iterable[Sums], asked: Asked) -> list[dict[str, Any]]:
    entrants, kinds = asked.entrant_places, asked.kind_places
    return [
        {**cell, "asked": entrants[who], "kind": kinds[kind_of(cell)]}
        for cell in cells
        if (who := (cell["run"], cell["model"], cell["condition"])) in entrants
    ]


def length_bins(lengths: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the bin of each length of a range, first and last: itself where there are few lengths.

    Bins end on round lengths, and none is of two of NUPA's ranges, which differ by task.
    """
    found = sorted(set(lengths))
    if len({length for _, length in found}) <= MOST_LENGTHS:
        return {(of, length): (length, length) for of, length in found}
    together = defaultdict[tuple[str, int], list[int]](list)
    for of, length in found:
        together[of, _rounded_up(length)].append(length)
    return {(of, n): (those[0], those[-1]) for (of, _), those in together.items() for n in those}


def _rounded_up(length: int) -> int:
    """Return a length rounded up to one significant digit: 10, 20, …, 100, 200, …"""
    if length <= 10:
        return length
    unit: int = 10 ** (len(str(length)) - 1)
    return -(-length // unit) * unit


def range_in(suite: str, task: str, variant: str, representation: str, length: int | None) -> str:
    """Return the range of a length in its task, S, M, L or XL; empty where there is none."""
    length_class = _CLASSES.get((task, variant, representation)) if suite == "nupa" else None
    return "" if length_class is None or length is None else range_of(length, length_class) or ""
