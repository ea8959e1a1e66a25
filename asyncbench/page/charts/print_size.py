"""A drawing as wide as it is printed, as SVG, PNG and PDF: its letters are then 7 to 9 points high."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from math import sqrt
from textwrap import wrap
from typing import Any, Final

from asyncbench.analysis.entrants import distinct_names
from asyncbench.errors import ConfigError
from asyncbench.page.charts.chart import Spec

INSTALL: Final = "the extra `report`: pip install 'asyncbench[report]'"
PER_INCH: Final = 300  # pixels of a PNG
SERIF: Final = "'Times New Roman', Times, 'Liberation Serif', 'Nimbus Roman', serif"  # of most papers' text
MOST_PIXELS: Final = 40_000_000  # of one PNG; larger drawings get fewer for each of theirs

Rows = Sequence[Mapping[str, Any]]  # Any: of the chart

INCHES: Final[Mapping[str, float]] = {"one": 3.35, "two": 7.0}  # of a paper's columns
POINTS_PER_PIXEL: Final = 0.65  # a letter of 12 pixels is 7.8 points high
NARROW: Final = 480.0  # pixels: a narrower drawing has one panel a row, and shorter names
SHORT: Final = 24  # characters of these, the number that tells two apart beside them
LEAST: Final = 90.0  # pixels of a panel, whatever the names beside it take
CLOSE: Final = 1.0  # pixels: a drawing that is so near its width is done
TRIES: Final = 6
LETTER: Final = 6.4  # pixels, in the mean
WIDEST_CELL: Final = 72.0  # of a map that has room
BESIDE_SYMBOL: Final = 25  # pixels of a legend's entry beside its symbol and its name
MOST_BESIDE: Final = 12  # panels that stand in twos; more stand in threes
_SIZE: Final = re.compile(r'(<svg[^>]*?) width="([\d.]+)" height="([\d.]+)"')


def svg_of(spec: Spec) -> str:
    svg: str = vega().vegalite_to_svg(spec)
    return svg


def png_of(svg: str, inches: float) -> bytes:
    """Return a drawing that is so wide on paper, or as wide as its letters need, with 300 pixels an inch.

    One that would have more than `MOST_PIXELS` has fewer. The file says how many.
    """
    width, height = size_of(svg)
    points = min(POINTS_PER_PIXEL, 72 * inches / width)
    most = 72 / points * sqrt(MOST_PIXELS / (width * height))
    png: bytes = vega().svg_to_png(svg, scale=points, ppi=min(PER_INCH, most))
    return png


class Drawings:
    """Drawings as SVG, each of which can be had as PDF too."""

    def __init__(self) -> None:
        self._specs: dict[str, Spec] = {}  # by SVG

    def draw(self, spec: Spec) -> str:
        """Return a specification as SVG."""
        svg = svg_of(spec)
        self._specs[svg] = spec
        return svg

    def pdf(self, svg: str, inches: float, title: str = "") -> tuple[bytes, tuple[float, float]]:
        """Return a drawing for LaTeX, and how wide and high it is in inches.

        Its letters are those of most papers. Its title and notes are left out: they are in the caption.

        Args:
            svg: as `draw` returned it.
            inches: the width of a paper's columns; a wider drawing is made smaller.
            title: what stands above it all the same.
        """
        spec = {name: value for name, value in self._specs[svg].items() if name != "title"}
        spec["config"] = {**spec["config"], "font": SERIF}
        if title:
            spec["title"] = {"text": title, "fontSize": 11}
        drawn = svg_of(spec)
        width, height = size_of(drawn)
        points = min(POINTS_PER_PIXEL, 72 * inches / width)
        wide, high = width * points, height * points
        pdf: bytes = vega().svg_to_pdf(
            _SIZE.sub(rf'\1 width="{wide:.2f}" height="{high:.2f}"', drawn, count=1)
        )
        return pdf, (wide / 72, high / 72)


def vega() -> Any:  # Any: a module whose types are not its own
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ConfigError(f"pictures need {INSTALL}") from error
    return vl_convert


def folded(notes: Iterable[str], letters: int) -> list[str]:
    return [line for note in notes for line in wrap(note, letters, break_on_hyphens=False)]


def draw_to_width(
    spec: Spec,
    rows: Rows,
    whole: float,
    draw: Callable[[Spec], str],
    *,
    most_columns: int = 2,
    in_twos: int = MOST_BESIDE,
) -> str:
    """Return a chart as SVG with a given width, which includes all that stands beside its panels.

    Args:
        spec: the specification of a chart that stands alone.
        rows: the rows that it shows.
        whole: the width of the drawing, in pixels.
        draw: makes SVG of a specification.
        most_columns: how many panels stand side by side at most, where a drawing is wide.
        in_twos: up to so many panels stand two side by side.
    """
    fixed = _sort_axes(deepcopy(spec), rows)
    columns = 1
    if "facet" in fixed and whole >= NARROW:
        panels = len({row[fixed["facet"]["field"]] for row in rows})
        columns = min(panels, most_columns, 2 if panels <= in_twos else most_columns)

    # A map has a width for each of its columns: as it is or transposed, whichever has room.
    if isinstance(panel_spec(fixed).get("width"), dict):
        drawings = {
            size_of(svg)[0]: (svg, tried) for tried in (fixed, transposed(fixed)) for svg in (draw(tried),)
        }
        fitting = [drawing for width, drawing in drawings.items() if width <= whole]
        if fitting:
            return widened(*fitting[0], rows, whole, draw)
        fixed = drawings[min(drawings)][1]

    # What stands beside the panels is known only once it is drawn.
    beside = 60.0 * columns
    for _ in range(TRIES):
        svg = draw(_sized(fixed, rows, columns, max(LEAST, (whole - beside) / columns), whole))
        over = size_of(svg)[0] - whole
        if abs(over) <= CLOSE or (whole - beside) / columns < LEAST:
            break
        beside += over
    return svg


def widened(svg: str, spec: Spec, rows: Rows, whole: float, draw: Callable[[Spec], str]) -> str:
    """Return a map whose cells have the width that is left, up to a limit."""
    field = next(encoding["x"]["field"] for encoding in _encodings(spec) if "x" in encoding)
    columns = len({row.get(field, row.get("model")) for row in rows})
    step = min(WIDEST_CELL, spec["width"]["step"] + (whole - size_of(svg)[0]) / columns)
    wider = draw(spec | {"width": {"step": step}})
    return wider if size_of(wider)[0] <= whole + CLOSE else svg


def size_of(svg: str) -> tuple[float, float]:
    """Return how wide and how high a drawing is, pixels."""
    _, width, height = _SIZE.findall(svg)[0]
    return float(width), float(height)


def printed(svg: str, inches: float) -> str:
    """Return a drawing with its width on paper; a wider drawing is made smaller as a whole."""
    width, height = size_of(svg)
    whole = min(inches, width * POINTS_PER_PIXEL / 72)
    size = f'width="{whole:.3f}in" height="{whole * height / width:.3f}in"'
    return _SIZE.sub(rf"\1 {size}", svg, count=1)


def panel_spec(spec: Spec) -> Spec:
    panel: Spec = spec["spec"] if "facet" in spec else spec
    return panel


def _sized(spec: Spec, rows: Rows, columns: int, width: float, whole: float) -> Spec:
    copy = deepcopy(spec)
    panel_spec(copy)["width"] = width
    if "facet" in copy:
        copy["columns"] = columns
        panels = len({row[spec["facet"]["field"]] for row in rows})
        resolve = copy.get("resolve", {})
        if panels % columns:  # a shared axis would stand at the foot of empty places too
            copy["resolve"] = resolve | {"axis": {"x": "independent"}}

    folded = set[str]()
    for encoding in _encodings(copy):
        # A long title of x is put on several lines in the first layer that has it: layers join their titles.
        title = encoding.get("x", {}).get("title")
        if isinstance(title, str) and LETTER * len(title) > width:
            lines = wrap(title, int(width / LETTER), break_long_words=False, break_on_hyphens=False)
            encoding["x"]["title"] = "" if title in folded else lines
            folded.add(title)

        # A legend of colours has as many columns as its longest name leaves room for.
        colour = encoding.get("color") or {}
        if colour.get("type") == "nominal" and colour.get("legend", {}) is not None:
            legend = colour.setdefault("legend", {})
            longest = max((len(str(row.get(colour["field"], ""))) for row in rows), default=1)
            symbol = sqrt(legend.get("symbolSize", spec["config"]["legend"]["symbolSize"]))
            entry = LETTER * longest + symbol + BESIDE_SYMBOL
            fitting = max(1, int((whole if columns > 1 else width) / entry))
            legend["columns"] = min(legend.get("columns") or 4, fitting)
    return copy


def _nodes(node: object) -> Iterator[Spec]:
    """Yield each part of a specification, the outer first."""
    if isinstance(node, dict):
        yield node
        for name, value in node.items():
            if name not in ("data", "config"):
                yield from _nodes(value)
    if isinstance(node, list):
        for element in node:
            yield from _nodes(element)


def _encodings(spec: Spec) -> Iterator[Spec]:
    return (node["encoding"] for node in _nodes(spec) if "encoding" in node)


def _sort_axes(spec: Spec, rows: Rows) -> Spec:
    """Put axes of models into the order of the rows and axes of tasks into that of their kinds."""
    models = [*dict.fromkeys(row["model"] for row in rows if "model" in row)]
    kinds = sorted({(row["kind"], row["task"]) for row in rows if "task" in row})
    orders = {"task": [task for _, task in kinds]} | ({} if "facet" in spec else {"model": models})
    for encoding in _encodings(spec):
        for channel in encoding.keys() & {"x", "y"}:
            axis = encoding[channel]
            if orders.get(axis.get("field")):
                axis["sort"] = orders[axis["field"]]
    return spec


def short_named(rows: Rows, letters: int) -> Rows:
    """Return rows whose models have names of at most so many characters, which still tell them apart."""
    names = distinct_names((row["model"] for row in rows if "model" in row), longest=letters)
    names |= distinct_names((row["other"] for row in rows if "other" in row), longest=letters)
    return [
        {**row, **{column: names[row[column]] for column in ("model", "other") if column in row}}
        for row in rows
    ]


def transposed(spec: Spec) -> Spec:
    """Return a map of names whose rows are columns."""
    copy = deepcopy(spec)
    for encoding in _encodings(copy):
        if "x" in encoding and "y" in encoding:
            x, y = encoding["x"], encoding["y"]
            encoding["x"], encoding["y"] = _moved(y, x["axis"]), _moved(x, y["axis"])
    return copy


def _moved(channel: Spec, axis: Spec) -> Spec:
    """Return a channel on another's axis; the expression that writes its own labels stays."""
    shared = {name: value for name, value in axis.items() if name != "labelExpr"}
    labels = {name: value for name, value in channel["axis"].items() if name == "labelExpr"}
    return {**channel, "axis": {**shared, **labels}}
