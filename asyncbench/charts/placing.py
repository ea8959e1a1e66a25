"""Which points of a frontier have room for their name beside them, and on which side.

The page's script places them alike, for the width that it has.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log, sqrt
from typing import Any, Final, NamedTuple

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
