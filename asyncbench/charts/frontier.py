"""Accuracy against what it takes: the rows of a frontier, over what it compares, and which names have room.

The page's script places names alike, for the width that it has.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import log, sqrt
from typing import Any, Final, NamedTuple

from asyncbench.charts.rows import Cells, Row, models_of
from asyncbench.results import METRICS, summed
from asyncbench.stats import undominated

UNLIKE: Final = "No task was asked of all models, so they are compared on different problems"
MOST_TASKS: Final = 3  # that a note names
MOST_LEFT_OUT: Final = 4  # models that a note names
FREE: Final = 1 / 3  # of the least cost: where what costs nothing stands on a scale of logs

WIDTH: Final = 640.0  # pixels of the drawing
HEIGHT: Final = 380.0
POINT: Final = 5.0  # from the middle of a point to its edge
LETTER: Final = 5.6  # of a name in the mean
LINE: Final = 10.0  # height of a name
ASIDE: Final = 8.0  # from a point to its name
BELOW: Final = 11.0  # the middle of a name on the right; on the left it stands above by as much
PADDING: Final = {"log": 60.0, "sqrt": 0.0}  # at both ends of the axis below, by its scale
MARGIN: Final = 14.0  # above and below

_SCALES: Final[Mapping[str, Callable[[float], float]]] = {"log": log, "sqrt": sqrt}


def frontier_cost(cells: Cells) -> list[Row]:
    """Return accuracy against USD per 1,000 trials, of the models whose cost is known.

    All are compared over the tasks that all of them were asked, where there are any; who was asked less than
    half of what others were asked is left out, where that leaves most: `frontier_note` tells.
    """
    rows = _frontier(cells, "cost")
    positive = [row["x"] for row in rows if row["x"] > 0]
    least = min(positive, default=1.0) * FREE
    return _with_names([{**row, "cost": row["x"], "x": row["x"] or least} for row in rows], "log")


def frontier_reasoning(cells: Cells) -> list[Row]:
    """Return accuracy against mean reasoning tokens a trial, of the models that tell them; likewise.

    None where nobody reasoned.
    """
    rows = _frontier(cells, "reasoning_tokens")
    return _with_names(rows, "sqrt") if any(row["x"] for row in rows) else []


def _with_names(rows: list[Row], scale: str) -> list[Row]:
    return [{**row, "name_at": side} for row, side in zip(rows, named_at(rows, scale=scale), strict=True)]


def frontier_note(cells: Cells, against: str) -> str | None:
    """Return over what the models of a frontier are compared; None: over all that any was asked.

    Args:
        cells: as for the frontier.
        against: its metric, `cost` or `reasoning_tokens`.
    """
    every = _placed(cells, against)
    placed = _asked_much(every)
    if not _asked_by_all(placed):
        return UNLIKE if placed else None
    compared, tasks = (dict.fromkeys(map(_task, those)) for those in (_in_common(placed), every))
    left_out = sorted(set(models_of(every)) - set(models_of(placed)))
    if len(compared) == len(tasks) and not left_out:
        return None
    more = f" and {len(left_out) - MOST_LEFT_OUT:,} more" if len(left_out) > MOST_LEFT_OUT else ""
    without = f"; without {', '.join(left_out[:MOST_LEFT_OUT])}{more}, asked less than half of the tasks"
    without = without if left_out else ""
    if len(compared) == len(tasks):
        return f"On all {len(tasks):,} tasks{without}"
    suites = ", ".join(sorted({suite for suite, _ in compared}))
    few = f": {', '.join(sorted(task for _, task in compared))}" if len(compared) <= MOST_TASKS else ""
    asked = f"On the {len(compared):,} of {len(tasks):,} tasks that all models were asked"
    return f"{asked} ({suites}{few}){without}"


def _frontier(cells: Cells, against: str) -> list[Row]:
    rows = []
    for (model,), sums in summed(_in_common(_asked_much(_placed(cells, against))), ("model",)).items():
        x, seen = METRICS[against].of(sums).value, METRICS["accuracy"].of(sums)
        if x is not None:
            shown = {"value": seen.value, "low": seen.low, "high": seen.high, "trials": seen.trials}
            rows.append({"model": model, "x": x, **shown})
    ahead = undominated([(row["x"], row["value"]) for row in rows])
    return [{**row, "front": one} for row, one in zip(rows, ahead, strict=True)]


def _placed(cells: Cells, against: str) -> Cells:
    """Return the cells of the models that have a place on a frontier: they replied, at a known price."""
    groups = summed(cells, ("model",))
    models = {
        model
        for (model,), sums in groups.items()
        if sums["trials"] > sums["failed"] and METRICS[against].of(sums).value is not None
    }
    return [cell for cell in cells if cell["model"] in models]


def _asked_much(cells: Cells) -> Cells:
    """Return the cells of the models that were asked half of all the tasks or more, where most were."""
    tasks, models = _tasks_by_model(cells), models_of(cells)
    all_tasks = set[tuple[str, str]]().union(*tasks.values())
    kept = {model for model in models if 2 * len(tasks[model]) >= len(all_tasks)}
    return [cell for cell in cells if cell["model"] in kept] if 2 * len(kept) > len(models) else cells


def _in_common(cells: Cells) -> Cells:
    """Return the cells of the tasks that all were asked; all cells where there is no such task."""
    common = _asked_by_all(cells)
    return [cell for cell in cells if _task(cell) in common] if common else cells


def _asked_by_all(cells: Cells) -> set[tuple[str, str]]:
    tasks = _tasks_by_model(cells)
    return set.intersection(*tasks.values()) if tasks else set()


def _tasks_by_model(cells: Cells) -> Mapping[str, set[tuple[str, str]]]:
    tasks = defaultdict[str, set[tuple[str, str]]](set)
    for cell in cells:
        tasks[cell["model"]].add(_task(cell))
    return tasks


def _task(cell: Mapping[str, Any]) -> tuple[str, str]:
    return cell["suite"], cell["task"]


# ── names ────────────────────────────────────────────────────────────────────────────────────


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def named_at(rows: Sequence[Mapping[str, Any]], *, scale: str) -> list[str]:
    """Return for each row `right`, `left`, or nothing where its name would cover something.

    Whom nobody beats are named first, then the most accurate ones.

    Args:
        rows: with model, x, value, low, high and front, as a frontier has them.
        scale: of x: `log` or `sqrt`.
    """
    spots = _spots(rows, scale)
    points = [_Box(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in spots]
    found, taken = [""] * len(rows), list[_Box]()
    for n in sorted(range(len(rows)), key=lambda n: (not rows[n]["front"], -rows[n]["value"], n)):
        others = [*taken, *(point for m, point in enumerate(points) if m != n)]
        for side, box in _sides(spots[n], LETTER * len(rows[n]["model"]), above=rows[n]["front"]):
            if box.left >= 0 and box.right <= WIDTH and not any(map(box.meets, others)):
                found[n] = side
                taken.append(box)
                break
    return found


def _spots(rows: Sequence[Mapping[str, Any]], scale: str) -> list[tuple[float, float]]:
    """Return where the points are, in pixels from the left and from the top."""
    along = [_SCALES[scale](row["x"]) for row in rows]
    least, most = min(along, default=0.0) if scale == "log" else 0.0, max(along, default=0.0)
    low, high = (
        min((row["low"] for row in rows), default=0.0),
        max((row["high"] for row in rows), default=1.0),
    )
    room, padding = WIDTH - 2 * PADDING[scale], PADDING[scale]
    return [
        (
            padding + room * ((at - least) / (most - least) if most > least else 0.5),
            MARGIN + (HEIGHT - 2 * MARGIN) * ((high - row["value"]) / (high - low) if high > low else 0.5),
        )
        for at, row in zip(along, rows, strict=True)
    ]


def _sides(spot: tuple[float, float], width: float, *, above: bool) -> list[tuple[str, _Box]]:
    """Return the places of a name, the better first: above left nothing can be that beats a point."""
    x, y = spot
    right, left = y + BELOW, y - BELOW
    sides = [
        ("right", _Box(x + ASIDE, x + ASIDE + width, right - LINE / 2, right + LINE / 2)),
        ("left", _Box(x - ASIDE - width, x - ASIDE, left - LINE / 2, left + LINE / 2)),
    ]
    return sides[::-1] if above else sides
