"""A drawing at the width at which it is printed: as wide as one or two columns of a paper.

A drawing is made as wide as a page would be, and printed smaller: its letters are then 7 to 9 points high.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from asyncbench.analysis.entrants import distinct_names

Spec = dict[str, Any]  # Any: a part of a specification of Vega-Lite
Rows = Sequence[Mapping[str, Any]]  # Any: of the chart

INCHES: Final[Mapping[str, float]] = {"one": 3.35, "two": 7.0}  # of a paper's columns
POINTS_PER_PIXEL: Final = 0.65  # a letter of 12 pixels is 7.8 points high
NARROW: Final = 480.0  # pixels: a narrower drawing has one panel a row, and shorter names
SHORT: Final = 17  # characters of these, the number that tells two apart beside them
LEAST: Final = 90.0  # pixels of a panel, whatever the names beside it take
CLOSE: Final = 1.0  # pixels: a drawing that is so near its width is done
TRIES: Final = 6
LETTER: Final = 6.4  # pixels, in the mean
SYMBOL: Final = 34  # pixels of a legend's entry beside its name
MOST_BESIDE: Final = 12  # panels that stand in twos; more stand in threes


def pixels_of(width: str) -> float:
    """Return how wide a drawing is made for so many columns."""
    return INCHES[width] * 72 / POINTS_PER_PIXEL


def drawn_at(spec: Spec, rows: Rows, whole: float, draw: Callable[[Spec], str], *, most: int = 2) -> str:
    """Return a chart as SVG, that many pixels wide with all that stands beside its panels.

    Args:
        spec: of a chart that stands alone.
        rows: that it shows.
        whole: pixels.
        draw: a specification → SVG.
        most: panels side by side, where a drawing is wide.
    """
    fixed = _in_order(deepcopy(spec), rows)
    columns = _columns(fixed, rows, whole, most)
    if isinstance(_panel(fixed).get("width"), dict):  # so much for each of its columns
        ways = {width_of(svg): (svg, tried) for tried in (fixed, transposed(fixed)) for svg in (draw(tried),)}
        fitting = [svg for width, (svg, _) in ways.items() if width <= whole]
        if fitting:
            return fitting[0]
        fixed = ways[min(ways)][1]
    beside = 60.0 * columns
    for _ in range(TRIES):
        svg = draw(_sized(fixed, rows, columns, max(LEAST, (whole - beside) / columns), whole))
        over = width_of(svg) - whole
        if abs(over) <= CLOSE or (whole - beside) / columns < LEAST:
            break
        beside += over
    return svg


def width_of(svg: str) -> float:
    """Return how wide a drawing is, pixels."""
    match = re.search(r'<svg[^>]*? width="([\d.]+)"', svg)
    return float(match[1]) if match else 0.0


def printed(svg: str, inches: float) -> str:
    """Return a drawing that is so wide on paper; one that is wider is made smaller as a whole."""
    match = re.search(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)
    if not match:
        return svg
    width, height = float(match[1]), float(match[2])
    whole = min(inches, width * POINTS_PER_PIXEL / 72)
    size = f'width="{whole:.3f}in" height="{whole * height / width:.3f}in"'
    return svg.replace(f'width="{match[1]}" height="{match[2]}"', size, 1)


def _panel(spec: Spec) -> Spec:
    panel: Spec = spec["spec"] if "facet" in spec else spec
    return panel


def _columns(spec: Spec, rows: Rows, whole: float, most: int) -> int:
    """Return how many panels stand side by side."""
    if "facet" not in spec:
        return 1
    panels = len({row[spec["facet"]["field"]] for row in rows})
    return 1 if whole < NARROW else min(panels, most, 2 if panels <= MOST_BESIDE else most)


def _sized(spec: Spec, rows: Rows, columns: int, width: float, whole: float) -> Spec:
    copy = deepcopy(spec)
    _panel(copy)["width"] = width
    if "facet" in copy:
        copy["columns"] = columns
        panels = len({row[spec["facet"]["field"]] for row in rows})
        resolve = copy.get("resolve", {})
        if panels % columns:  # a shared axis would stand at the foot of empty places too
            copy["resolve"] = resolve | {"axis": {"x": "independent"}}
    for channel, title in _long_titles(copy, width):
        _fold(copy, channel, title, width)
    for legend, names in _legends(copy, rows):
        longest = max(map(len, names), default=1)
        most = max(1, int((whole if columns > 1 else width) / (LETTER * longest + SYMBOL)))
        legend["columns"] = min(legend.get("columns") or 4, most)
    return copy


def _nodes(node: object) -> Iterator[Spec]:
    """Yield each part of a specification, the outer first."""
    if isinstance(node, dict):
        yield node
        for name, part in node.items():
            if name not in ("data", "config"):
                yield from _nodes(part)
    if isinstance(node, list):
        for part in node:
            yield from _nodes(part)


def _encodings(spec: Spec) -> Iterator[Spec]:
    return (node["encoding"] for node in _nodes(spec) if "encoding" in node)


def _long_titles(spec: Spec, width: float) -> set[tuple[str, str]]:
    titles = ((x, encoding[x].get("title")) for encoding in _encodings(spec) for x in ("x",) if x in encoding)
    return {
        (channel, title)
        for channel, title in titles
        if isinstance(title, str) and LETTER * len(title) > width
    }


def _fold(spec: Spec, channel: str, title: str, width: float) -> None:
    """Put a title on several lines, in the first layer that has it alone: layers join theirs."""
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and LETTER * len(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    own = [encoding[channel] for encoding in _encodings(spec) if channel in encoding]
    own = [part for part in own if part.get("title") == title]
    for n, part in enumerate(own):
        part["title"] = "" if n else lines


def _legends(spec: Spec, rows: Rows) -> Iterator[tuple[Spec, list[str]]]:
    """Yield each legend of colours with the names in it."""
    for encoding in _encodings(spec):
        colour = encoding.get("color") or {}
        if colour.get("type") == "nominal" and colour.get("legend", {}) is not None:
            legend = colour.setdefault("legend", {})
            yield legend, [str(row.get(colour["field"], "")) for row in rows]


def _in_order(spec: Spec, rows: Rows) -> Spec:
    """Return a specification whose axes of models and tasks are in the order of the rows and of the kinds."""
    models = [*dict.fromkeys(row["model"] for row in rows if "model" in row)]
    kinds = sorted({(row["kind"], row["task"]) for row in rows if "task" in row})
    orders = {"task": [task for _, task in kinds]} | ({} if "facet" in spec else {"model": models})
    for encoding in _encodings(spec):
        for channel in encoding.keys() & {"x", "y"}:
            part = encoding[channel]
            if orders.get(part.get("field")):
                part["sort"] = orders[part["field"]]
    return spec


def short_named(rows: Rows, most: int) -> Rows:
    """Return rows whose models have names of so many characters at most, which still tell them apart."""
    names = distinct_names((row["model"] for row in rows if "model" in row), most=most)
    ours = [column for column in ("model", "other") if any(column in row for row in rows)]
    names |= distinct_names((row["other"] for row in rows if "other" in row), most=most)
    return [{**row, **{column: names[row[column]] for column in ours if column in row}} for row in rows]


def transposed(spec: Spec) -> Spec:
    """Return a map of names whose rows are columns."""
    copy = deepcopy(spec)
    for encoding in _encodings(copy):
        if "x" in encoding and "y" in encoding:
            x, y = encoding["x"], encoding["y"]
            encoding["x"], encoding["y"] = _with_axis(y, x["axis"]), _with_axis(x, y["axis"])
    return copy


def _with_axis(channel: Spec, axis: Spec) -> Spec:
    """Return a channel on another's axis; how its own labels are written stays."""
    own = {name: value for name, value in channel["axis"].items() if name == "labelExpr"}
    return {
        **channel,
        "axis": {**{name: value for name, value in axis.items() if name != "labelExpr"}, **own},
    }
