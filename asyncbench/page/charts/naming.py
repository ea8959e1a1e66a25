"""Places of names beside points, chosen so that no name covers another."""

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import ceil, hypot
from typing import Final, NamedTuple

from asyncbench.page.charts.chart import Row, Spec, field, mark

POINT: Final = 5.0  # pixels from the middle of a point to its edge
LETTER: Final = 5.5  # of a name in the mean
LINE: Final = 11.0  # height of a name
ASIDE: Final = 8.0  # from a point to its name
BELOW: Final = 11.0  # the middle of a name that stands beside its point, lower or higher

LETTER_SIZE: Final = 11.0  # pixels of letters
# widths of Helvetica's letters, of their size; others are as wide as a digit
WIDTHS: Final = {
    **dict.fromkeys("ijl'|", 0.22),
    **dict.fromkeys(" ft.,:;/!I", 0.28),
    **dict.fromkeys("r-()", 0.34),
    **dict.fromkeys("*", 0.39),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZw", 0.74),
    **dict.fromkeys("mMW@…", 1.02),
}
DIGIT: Final = 0.56
KEY_BELOW: Final = 54.0  # pixels from points to their key
KEY_LINE: Final = 14.0  # height of a line of it

Spot = tuple[float, float]  # pixels from the left and from the top
Offset = tuple[str, float, float]  # the nearer end of a name, and its pixels right of a point and below it

NAMED: Final[Spec] = {  # options of texts whose rows have their offset
    "align": {"expr": "datum.offset[0]"},
    "dx": {"expr": "datum.offset[1]"},
    "dy": {"expr": "datum.offset[2]"},
}
HAS_NAME: Final[Spec] = {"filter": "isValid(datum.offset)"}
FAR: Final[Spec] = {"filter": f"isValid(datum.offset) && abs(datum.offset[2]) > {BELOW}"}
KEY: Final = mark(  # the lines of a key, whose rows have their places
    "text",
    {"align": "left", "x": {"expr": "datum.key_x"}, "y": {"expr": "datum.key_y"}},
    {"filter": "isValid(datum.key)"},
    text=field("key:N"),
)
LEADER: Final[Spec] = {"x2Offset": {"expr": "datum.offset[1]"}, "y2Offset": {"expr": "datum.offset[2]"}}


class Box(NamedTuple):
    """What a point or a name covers."""

    left: float
    right: float
    top: float
    bottom: float

    def meets(self, box: "Box") -> bool:
        """Return whether both cover the same spot."""
        across = self.left < box.right and box.left < self.right
        return across and self.top < box.bottom and box.top < self.bottom

    def fits(self, frame: "Box") -> bool:
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
        spots: where the points are.
        names: the name of each point; empty: it has none.
        order: the indices of the points in the order in which they are named.
        always: the indices of points whose names are shown in any case: if need be far from the point, or
            over other points.
        width, height: pixels of the drawing.
    """
    points = [Box(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in spots]
    offsets, taken = list[Offset | None]([None] * len(spots)), list[Box]()
    frame = Box(0, width, 0, height)
    for n in order:
        room = LETTER * len(names[n])
        free = [*_free_offsets(spots[n], room, frame, taken, far=n in always)] if names[n] else []
        others = [point for m, point in enumerate(points) if m != n]
        clear = (offset for offset in free if not any(map(box_of(spots[n], offset, room).meets, others)))
        offsets[n] = next(clear, free[0] if n in always and free else None)
        if offset := offsets[n]:
            taken.append(box_of(spots[n], offset, room))
    return offsets


def _free_offsets(
    spot: Spot, room: float, frame: Box, taken: Collection[Box], *, far: bool
) -> Iterator[Offset]:
    """Yield where a name is within the drawing and on no other name, the better places first.

    `far`: also far from the point. Such a point is on the line of the best, so above left of it is nothing
    that beats it: its name stands there first.
    """
    offsets = list(_NEAREST)
    if far:
        offsets.sort(key=lambda offset: offset[1:] != (-ASIDE, -BELOW))
        ends = -spot[0], frame.right - spot[0] - room  # where a name begins or ends with the drawing
        rows = range(1, int(frame.bottom / LINE))
        below = [sign * (BELOW + n * LINE) for n in rows for sign in (-1, 1)]
        near = ("right", -ASIDE), ("left", min(max(ASIDE, ends[0]), ends[1]))
        for sides in (near, tuple(("left", aside) for aside in ends)):
            offsets += [(end, aside, down) for down in below for end, aside in sides]

    for offset in offsets:
        box = box_of(spot, offset, room)
        if box.fits(frame) and not any(map(box.meets, taken)):
            yield offset


def labels_beside(
    spots: Sequence[Spot], names: Sequence[str], order: Sequence[int], *, width: float, height: float
) -> list[tuple[str, Offset]]:
    """Return the label of each point, and where it stands: its name, or a number where that has no room.

    No label covers a point or another label, and all stand within the drawing.

    Args:
        spots: where the points are.
        names: the name of each point.
        order: the indices of the points in the order in which they are labelled.
        width, height: pixels of the drawing.
    """
    points = [Box(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in spots]
    labels, taken, number = dict[int, tuple[str, Offset]](), list[Box](), 0
    frame = Box(0, width, 0, height)
    around = _offsets_around(frame)
    for n in order:
        label, room = names[n], text_width(names[n])
        offset = next(_clear_offsets(spots[n], room, frame, [*points, *taken], _NEAREST), None)
        if offset is None:
            number += 1
            label, room = str(number), text_width(str(number))
            offset = next(_clear_offsets(spots[n], room, frame, [*points, *taken], around), _NEAREST[0])
        labels[n] = label, offset
        taken.append(box_of(spots[n], offset, room))
    return [labels[n] for n in range(len(spots))]


def with_key(rows: Sequence[Row], *, width: float, height: float) -> list[Row]:
    """Return rows of points; each numbered one with its line of the key, and where that stands, in columns.

    Args:
        rows: with the `name` of each point, and the `text` that stands beside it: that name, or a number.
        width, height: pixels of the drawing, below which the key stands.
    """
    numbered = sorted((row for row in rows if row["text"] != row["name"]), key=lambda row: int(row["text"]))
    lines = {row["text"]: f"{row['text']} {row['name']}" for row in numbered}
    columns = max(1, int(width / (KEY_LINE + max(map(text_width, lines.values()), default=0))))
    keyed = [*rows]
    for n, row in enumerate(rows):
        if line := lines.get(row["text"]):
            column, down = divmod(int(row["text"]) - 1, ceil(len(lines) / columns))
            place = {"key_x": width * column / columns, "key_y": height + KEY_BELOW + KEY_LINE * down}
            keyed[n] = {**row, "key": line, **place}
    return keyed


def text_width(text: str) -> float:
    """Return the pixels that a name takes."""
    return LETTER_SIZE * sum(WIDTHS.get(letter, DIGIT) for letter in text)


def _clear_offsets(
    spot: Spot, room: float, frame: Box, taken: Collection[Box], offsets: Sequence[Offset]
) -> Iterator[Offset]:
    """Yield the offsets at which a label is within the drawing and covers nothing."""
    for offset in offsets:
        box = box_of(spot, offset, room)
        if box.fits(frame) and not any(map(box.meets, taken)):
            yield offset


def _offsets_around(frame: Box) -> Sequence[Offset]:
    """Return places all over the drawing, the nearest to the point first."""
    columns = range(-int(frame.right / ASIDE), int(frame.right / ASIDE) + 1)
    rows = range(-int(frame.bottom / LINE), int(frame.bottom / LINE) + 1)
    ends = (
        ("left" if column >= 0 else "right", column * ASIDE, row * LINE)
        for column, row in product(columns, rows)
    )
    return sorted(ends, key=lambda offset: hypot(offset[1], offset[2]))


_NEAREST: Final[Sequence[Offset]] = (
    *(("left", ASIDE, BELOW), ("right", -ASIDE, -BELOW)),
    *(("left", ASIDE, -BELOW), ("right", -ASIDE, BELOW)),
)


def box_of(spot: Spot, offset: Offset, room: float) -> Box:
    """Return the box that a name covers whose length is `room` pixels."""
    (x, y), (end, aside, below) = spot, offset
    start = x + aside - (room if end == "right" else 0)
    return Box(start, start + room, y + below - LINE / 2, y + below + LINE / 2)
