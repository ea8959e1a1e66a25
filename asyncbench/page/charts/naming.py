"""Places of names beside points, so that none covers another."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from asyncbench.page.charts.chart import Spec

POINT: Final = 5.0  # pixels from the middle of a point to its edge
LETTER: Final = 5.5  # of a name in the mean
LINE: Final = 11.0  # height of a name
ASIDE: Final = 8.0  # from a point to its name
BELOW: Final = 11.0  # the middle of a name that stands beside its point, lower or higher

Spot = tuple[float, float]  # pixels from the left and from the top
Offset = tuple[
    str, float, float
]  # which end of a name is so many pixels to the right of a point, and below it

NAMED: Final[Spec] = {  # options of texts whose rows have their offset
    "align": {"expr": "datum.offset[0]"},
    "dx": {"expr": "datum.offset[1]"},
    "dy": {"expr": "datum.offset[2]"},
}
HAS_NAME: Final[Spec] = {"filter": "isValid(datum.offset)"}
FAR: Final[Spec] = {"filter": f"isValid(datum.offset) && abs(datum.offset[2]) > {BELOW}"}
LEADER: Final[Spec] = {"x2Offset": {"expr": "datum.offset[1]"}, "y2Offset": {"expr": "datum.offset[2]"}}


class Box(NamedTuple):
    """What a point or a name covers."""

    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Return whether both cover a place."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def within(self, frame: "Box") -> bool:
        """Return whether the other covers all of it."""
        across = frame.left <= self.left and self.right <= frame.right
        return across and frame.top <= self.top and self.bottom <= frame.bottom


def name_offsets(
    spots: Sequence[Spot],
    names: Sequence[str],
    order: Sequence[int],
    *,
    always: Collection[int],
    width: float,
    height: float,
) -> list[Offset | None]:
    """Return for each point where its name stands, or None where it would cover something.

    Args:
        spots: of the points.
        names: of each; empty: it has none.
        order: their places, in which they are named.
        always: of whom the name is shown in any case: far from its point, or over others, if need be.
        width, height: pixels of the drawing.
    """
    points = [Box(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in spots]
    offsets, taken = list[Offset | None]([None] * len(spots)), list[Box]()
    frame = Box(0, width, 0, height)
    for n in order:
        room = LETTER * len(names[n])
        free = [*_offsets(spots[n], room, frame, taken, far=n in always)] if names[n] else []
        others = [point for m, point in enumerate(points) if m != n]
        clear = (one for one in free if not any(map(box_of(spots[n], one, room).meets, others)))
        offsets[n] = next(clear, free[0] if n in always and free else None)
        if offset := offsets[n]:
            taken.append(box_of(spots[n], offset, room))
    return offsets


def _offsets(spot: Spot, room: float, frame: Box, taken: Collection[Box], *, far: bool) -> Iterator[Offset]:
    """Yield where a name is within the drawing and on no other name, the better places first."""
    for offset in _places(spot[0], room, frame, far=far):
        box = box_of(spot, offset, room)
        if box.within(frame) and not any(map(box.meets, taken)):
            yield offset


def _places(x: float, room: float, frame: Box, *, far: bool) -> Iterator[Offset]:
    """Yield the places of a name, the better first: above left nothing can be that beats a point."""
    yield from sorted(_NEAREST, key=lambda one: one[1:] != (-ASIDE, -BELOW)) if far else _NEAREST
    if far:
        ends = -x, frame.right - x - room  # where a name begins or ends with the drawing
        below = [way * (BELOW + n * LINE) for n in range(1, int(frame.bottom / LINE)) for way in (-1, 1)]
        near = ("right", -ASIDE), ("left", min(max(ASIDE, ends[0]), ends[1]))
        for sides in (near, tuple(("left", aside) for aside in ends)):
            yield from ((end, aside, down) for down in below for end, aside in sides)


_NEAREST: Final[Sequence[Offset]] = (
    *(("left", ASIDE, BELOW), ("right", -ASIDE, -BELOW)),
    *(("left", ASIDE, -BELOW), ("right", -ASIDE, BELOW)),
)


def box_of(spot: Spot, offset: Offset, room: float) -> Box:
    """Return what a name covers that is so many pixels long."""
    (x, y), (end, aside, below) = spot, offset
    start = x + aside - (room if end == "right" else 0)
    return Box(start, start + room, y + below - LINE / 2, y + below + LINE / 2)
