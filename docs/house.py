"""Draw the rooms of asyncbench from its code: `python -m docs.house` writes docs/images/house.svg.

One box is one folder of `asyncbench/`. An arrow points from a room to a room that it imports. It is left out
where other arrows lead there.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOUSE: Final = ROOT / "asyncbench"
PICTURE: Final = ROOT / "docs" / "images" / "house.svg"
GROUND: Final = ("records", "tables", "stats")  # which import no other room

WIDTH, BOX, HIGH, GAP, STEP = 940, 270, 64, 30, 100  # pixels
SHIFT: Final = 90  # pixels
LARGE: Final = (450, 60)  # lines of a module, and of a function


def rooms() -> list[str]:
    """Return the folders of `asyncbench/` that hold code, by name."""
    return sorted(door.parent.name for door in HOUSE.glob("*/__init__.py"))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, in functions too; `from a import b` names a.b as well."""
    modules = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


def needs() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    names = set(rooms())
    return {
        room: {
            parts[1]
            for path in (HOUSE / room).rglob("*.py")
            for module in imports_of(path)
            for parts in [module.split(".")]
            if parts[0] == "asyncbench" and len(parts) > 1 and parts[1] in names - {room}
        }
        for room in sorted(names)
    }


def floors(below: Mapping[str, set[str]]) -> dict[str, int]:
    """Return how many rooms stand under each room, one on the other; 0: the ground."""
    known: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in known:
            known[room] = max((floor(other) + 1 for other in below[room]), default=0)
        return known[room]

    return {room: floor(room) for room in sorted(below)}


def arrows(below: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the imports that no way of other imports stands for."""

    @cache
    def reach(room: str) -> frozenset[str]:
        return frozenset(below[room]).union(*(reach(other) for other in below[room]))

    for room, others in sorted(below.items()):
        for other in sorted(others):
            if not any(other in reach(between) for between in others - {other}):
                yield room, other


def purpose(room: str) -> str:
    """Return the first sentence that the room's `__init__` says of it, without the name before a colon."""
    text = ast.get_docstring(ast.parse((HOUSE / room / "__init__.py").read_text("utf-8"))) or ""
    sentence = text.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".").replace("`", "")
    name, _, rest = sentence.partition(": ")
    return rest if rest and len(name.split()) < 4 else sentence


def large() -> Iterator[str]:
    """Yield the modules and functions that are longer than most: would two read better?"""
    module, function = LARGE
    for path in sorted(HOUSE.rglob("*.py")):
        text = path.read_text("utf-8")
        if (lines := text.count("\n")) > module:
            yield f"{path.relative_to(ROOT)}: {lines} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > function:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {lines} lines"


def places(below: Mapping[str, set[str]]) -> dict[str, tuple[float, float]]:
    """Return the upper left corner of each room's box: a floor is a row, near what it imports."""
    rows: dict[int, list[str]] = {}
    for room, floor in floors(below).items():
        rows.setdefault(floor, []).append(room)
    top = max(rows)
    corners: dict[str, tuple[float, float]] = {}
    for floor in sorted(rows):
        row = rows[floor]
        middle = {
            room: sum(corners[other][0] for other in below[room]) / len(below[room]) if below[room] else 0.0
            for room in row
        }
        row.sort(key=lambda room: (middle[room], room))
        left = (WIDTH - len(row) * BOX - (len(row) - 1) * GAP) / 2
        if len(row) == 1:  # aside, or a long arrow would run behind it
            left += SHIFT * (1 if floor % 2 else -1)
        for place, room in enumerate(row):
            corners[room] = (left + place * (BOX + GAP), 20.0 + (top - floor) * STEP)
    return corners


def svg() -> str:
    """Return the picture: boxes on their floors, and arrows that all point down."""
    below = needs()
    corners = places(below)
    high = max(y for _, y in corners.values()) + HIGH + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high:.0f}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The rooms of asyncbench, each above the rooms that it imports</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#8a8f98"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{high:.0f}" fill="#fff"/>',
    ]
    for room, other in arrows(below):
        (x, y), (to_x, to_y) = corners[room], corners[other]
        start, end = (x + BOX / 2, y + HIGH), (to_x + BOX / 2, to_y)
        bend = (end[1] - start[1]) / 2
        lines.append(
            f'<path d="M{start[0]:.0f} {start[1]:.0f}C{start[0]:.0f} {start[1] + bend:.0f} '
            f'{end[0]:.0f} {end[1] - bend:.0f} {end[0]:.0f} {end[1] - 2:.0f}" fill="none" stroke="#8a8f98" '
            'marker-end="url(#tip)"/>'
        )
    for room, (x, y) in sorted(corners.items()):
        fill = "#eef3e6" if room in GROUND else "#eaf1fb"
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HIGH}" rx="6" '
            f'fill="{fill}" stroke="#5b7aa6"/>'
        )
        lines.append(
            f'<text x="{x + BOX / 2:.0f}" y="{y + 20:.0f}" text-anchor="middle" font-size="15" '
            f'font-weight="600" fill="#1b2430">{room}</text>'
        )
        for row, words in enumerate(wrap(purpose(room), 45)[:2]):
            lines.append(
                f'<text x="{x + BOX / 2:.0f}" y="{y + 37 + 14 * row:.0f}" text-anchor="middle" '
                f'font-size="10.5" fill="#46505e">{escape(words)}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(svg(), "utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {len(rooms())} rooms")
    print("\n".join(large()))
