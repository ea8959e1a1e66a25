"""Choice of the pictures of a published benchmark, and their distribution over pages."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from textwrap import wrap
from typing import Final

from asyncbench.analysis.entrants import LONGEST_NAME
from asyncbench.errors import ConfigError
from asyncbench.page.charts.catalogue import cell_size, published_drawn
from asyncbench.page.charts.chart import HEIGHT, Spec
from asyncbench.page.charts.print_size import (
    CLOSE,
    INCHES,
    LETTER,
    NARROW,
    POINTS_PER_PIXEL,
    SHORT,
    draw_to_width,
    folded,
    panel_spec,
    size_of,
    svg_of,
    transposed,
    widened,
)
from asyncbench.published.reports import PublishedPicture
from asyncbench.tables.numbers import number_of

HIGHEST: Final = 9.2 * 72 / POINTS_PER_PIXEL  # pixels of a page of a paper, without the caption
ABOVE: Final = 180.0  # pixels of title, notes, legend and axis of a picture, about
BESIDE: Final = 160.0  # of names beside a map
BESIDE_AXIS: Final = 84.0  # of ticks beside an axis of numbers
MOST_BARS: Final = 16  # of a panel of which three stand side by side: each has room for a sign at its foot
TITLE_LETTER: Final = 7.4  # pixels, in the mean
TITLE_SIZE: Final = 13  # pixels of letters: 8.5 points


FEW_PANELS: Final = 4  # that stand in twos, whatever is in them
MANY_PAGES: Final = 60
GAP: Final = 36.0  # between two small pictures
MEGABYTES: Final[Mapping[str, float]] = {"one": 0.5, "two": 1.0}  # of a page: its files, in the mean
PANEL: Final = HEIGHT / 2 + 55.0  # pixels of the height of a small picture, with its title and its axis


# ── which pictures, and how large ────────────────────────────────────────────────────────────────


def named_pictures(
    pictures: Sequence[PublishedPicture], names: Iterable[str], style: str
) -> list[PublishedPicture]:
    """Return the pictures that are asked for, in their own order.

    Args:
        pictures: all of the style.
        names: of each a name, how several begin, or the number of a figure: `table-7`, `figure-5`, `5`.
        style: whose pictures these are.

    Raises:
        ConfigError: there is none of a name, or none of them has data.
    """
    chosen = set[str]()
    for name in names:
        pattern = re.compile(rf"((figure|l)-(?=\d))?{re.escape(name)}(-.+)?")
        matching = [
            picture
            for picture in pictures
            if name
            and (pattern.fullmatch(picture.name) or pattern.fullmatch(picture.name.removeprefix(f"{style}-")))
        ]
        drawable = {picture.name for picture in matching if picture.drawable}
        if not drawable:
            there = ", ".join(picture.name for picture in pictures if picture.drawable) or "none"
            problem = "has no data here" if matching else "does not exist"
            raise ConfigError(f"picture {style}:{name} {problem}. Choose from: {there}.")
        chosen |= drawable
    return [picture for picture in pictures if picture.name in chosen]


def size_note(pages: Sequence[int], width: str, style: str = "") -> str:
    """Return how many pictures there will be, on how many pages and how large.

    Args:
        pages: of each picture.
        width: of `INCHES`.
        style: a benchmark's, whose pictures can be chosen by name.
    """
    count = sum(pages)
    on_pages = f" on about {count:,} pages" if count > len(pages) else ""
    note = f"{number_of(len(pages), 'picture')}{on_pages}, about {max(1, count * MEGABYTES[width]):,.0f} MB."
    way_out = f" Choose some with --figures {style}:5." if style and count > MANY_PAGES else ""
    return f"Drawing {note}{way_out}"


def about_pages(picture: PublishedPicture, width: str) -> int:
    """Return about how many pages a picture has: what its drawing will tell, told from its rows."""
    whole, height = INCHES[width] * 72 / POINTS_PER_PIXEL, HIGHEST - ABOVE
    pages = 0
    for shown in picture.parted():
        panels = len({row.get(shown.panel) for row in shown.rows})
        if shown.kind == "map":
            step, line = cell_size(shown)
            wide = step * len(shown.x_order or {row[shown.x] for row in shown.rows})
            high: float = line * len(shown.y_order or {row[shown.y] for row in shown.rows})
            names = LETTER * max(len(str(row[shown.y])) for row in shown.rows)
            beside = 1
            if panels > 1:
                title = TITLE_LETTER * max(len(str(row[shown.panel])) for row in shown.rows)
                beside = max(1, int((whole - names) / (max(wide, title) + GAP)))
                high += GAP + 2 * LETTER
            pages += max(ceil(wide / (whole - names)), ceil(ceil(panels / beside) * high / height))
        elif shown.panel:
            beside = 1 if whole < NARROW else 2 if panels <= FEW_PANELS else _most_beside(shown)
            pages += ceil(ceil(panels / beside) * PANEL / height)
        else:
            pages += 1
    return pages


# ── the drawings ─────────────────────────────────────────────────────────────────────────────────


def fitting_pages(
    picture: PublishedPicture, width: str, draw: Callable[[Spec], str] = svg_of
) -> Iterator[tuple[PublishedPicture, str]]:
    """Yield a picture with its drawing, or several where one is wider than a paper's columns, or too high."""
    whole = INCHES[width] * 72 / POINTS_PER_PIXEL
    svg = _published_svg(picture, whole, draw)
    wide, high = size_of(svg)

    # What stands above and beside the cells, such as names and notes, is on every page again.
    pages = 1
    if wide > whole + CLOSE and (column := picture.column_across):
        cells = cell_size(picture)[0] * len({row[column] for row in picture.rows})
        beside = BESIDE if picture.panel else min(wide - cells, whole / 2)
        pages = ceil((wide - beside) / (whole - beside))
    elif high > HIGHEST:
        column, pages = picture.column_down, ceil((high - ABOVE) / (HIGHEST - ABOVE))
    parts = [*picture.split(column, max(2, pages))] if pages > 1 and column else [picture]
    if len(parts) == 1:
        yield picture, svg
        return
    for split in parts:
        yield from fitting_pages(split, width, draw)


def _published_svg(picture: PublishedPicture, whole: float, draw: Callable[[Spec], str]) -> str:
    notes = [note.replace("`", "") for note in (*picture.notes, picture.shading) if note]
    maps = picture.kind == "map" and picture.panel == "model"  # names stand over them, side by side
    longest = SHORT if whole < NARROW or maps else LONGEST_NAME
    spec = published_drawn(picture, notes=notes, width=whole - BESIDE_AXIS, longest=longest)
    spec["title"] |= {
        "text": wrap(picture.title, int(whole / TITLE_LETTER)),
        "fontSize": TITLE_SIZE,
        "subtitle": folded(spec["title"]["subtitle"], int(whole / LETTER)),
    }
    rows, step = spec["data"]["values"], panel_spec(spec)["width"]
    if not isinstance(step, dict):
        return draw_to_width(spec, rows, whole, draw, most_columns=_most_beside(picture), in_twos=FEW_PANELS)

    # A map has a width for each of its columns. One that fits neither as it is nor transposed is shared out.
    if "facet" not in spec:
        for tried in (spec, transposed(spec)):
            wide, high = size_of(svg := draw(tried))
            if wide <= whole and high <= HIGHEST:
                return widened(svg, tried, rows, whole, draw)
        if picture.crowded and not picture.bare:
            return _published_svg(replace(picture, bare=True), whole, draw)
        return draw(spec)

    # Of maps as many stand side by side as have room. Columns that all share are named once, at the top.
    spec["resolve"] = {"scale": spec.get("resolve", {}).get("scale", {})}
    cells = step["step"] * len({row["x"] for row in rows})
    gap = spec["spacing"]["column"]
    beside = LETTER * max(len(str(row["y"])) for row in rows) + 2 * spec["padding"]
    columns = max(1, int((whole - beside + gap) / (cells + gap)))
    while size_of(svg := draw(spec | {"columns": columns}))[0] > whole and columns > 1:
        columns -= 1  # long names of panels push them apart
    return svg


def _most_beside(picture: PublishedPicture) -> int:
    """Return how many small pictures of many stand side by side, where a drawing is wide."""
    if picture.kind != "bars":
        return 3
    return (
        3 if len({(row.get(picture.x), row.get(picture.series)) for row in picture.rows}) <= MOST_BARS else 2
    )
