"""A chart: its words, the columns of its rows, its specification and the parts of these, names and colours.

A specification is Vega-Lite over data named `rows`. It holds no title, no data and no theme, so that the page
and pictures can share it. Each row brings the colour of its entrant, so a filter changes no colour.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from asyncbench.analysis.cells import Metric
from asyncbench.analysis.entrants import Asked

Spec = dict[str, Any]  # Any: a specification of Vega-Lite, or a part of one

WIDTH: Final = 640  # pixels of a chart that is one view
PANEL_WIDTH: Final = 300  # of one of several
ROW: Final = 20  # pixels of height a bar
HEIGHT: Final = 260  # of a panel with two quantities
PERCENT: Final = ".0%"
QUARTERS: Final = [0, 0.25, 0.5, 0.75, 1]
LEAST_LETTERS: Final = 4.5  # pixels of the height of a cell's text: less cannot be read
STRONG: Final = 0.55  # of the scale: from here on a cell's ground is so strong that its text changes colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The words and the drawing of a chart, without its rows."""

    title: str
    purpose: str
    nothing: str = "Your selection has no data for this chart."  # where it has no rows
    columns: Mapping[str, str]  # of its rows → what they hold, with the unit; unknown is None
    paired: bool = False  # each panel and the next stand side by side
    room: int = 400  # pixels of a page that a panel takes with its names: as many stand side by side
    spec: Spec | Callable[[Metric], Spec]  # of Vega-Lite; a function: it shows whichever of METRICS is chosen
    on_page: bool = True  # False: the page has a table instead

    def words(self) -> dict[str, object]:
        """Return all that a page is told of it beside its specification."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "spec"}


# ── words of several charts ──────────────────────────────────────────────────────────────────────

WHO: Final = {"asked": "place of the entrant", "model": "its short name", "colour": "its colour"}
KIND: Final = {"kind": "place of the kind of question", "task": "what it is called"}
LOW, HIGH = "lower end of the 95 % interval, unit of value", "its upper end"
SHARE: Final = {"value": "accuracy over all trials, [0, 1]", "low": LOW, "high": HIGH, "trials": "count"}

# Names of columns in tooltips, where these are not the column's own.
_TIPS: Final[Mapping[str, str]] = {
    "series": "model or limit",
    "low": "95 % CI from",
    "high": "to",
    "p": "p (Holm)",
    "at": "time (UTC)",
    "p50_s": "median latency, s",
    "p95_s": "p95 latency, s",
    "errors": "wrong here",
    "answers": "wrong answers",
    "used": "used of the limit",
    "tied": "statistically tied",
}
SHARE_TIPS: Final = ("value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,")

# ── parts of specifications ──────────────────────────────────────────────────────────────────────

_KINDS: Final = {"Q": "quantitative", "N": "nominal", "O": "ordinal", "T": "temporal"}


def field(column: str, **options: Any) -> Spec:  # Any: of Vega-Lite
    """Return a channel that shows a column: `length:Q`; the end of a range, such as x2, has no type."""
    name, _, kind = column.partition(":")
    return {"field": name, **({"type": _KINDS[kind]} if kind else {}), **options}


def mark(kind: str, options: Spec, *transform: Spec, **encoding: Any) -> Spec:  # Any: channels
    """Return a layer: what it draws of each row, after which transforms, and what its channels show."""
    layer = {"mark": {"type": kind, **options}, "encoding": encoding}
    return {**layer, "transform": [*transform]} if transform else layer


def view(*layers: Spec, height: float | Spec, width: float | Spec = WIDTH) -> Spec:
    """Return layers one over the other."""
    return {"layer": [*layers], "width": width, "height": height}


def panels(
    *layers: Spec,
    height: float | Spec,
    by: str = "panel",
    transform: Sequence[Spec] = (),
    apart: Sequence[str] = (),
    width: float | Spec = PANEL_WIDTH,
) -> Spec:
    """Return small multiples, one for each value of a column, in the order of the rows.

    Args:
        layers: of each.
        height, width: of each.
        by: the column.
        transform: of the rows of all.
        apart: channels that have a scale in each.
    """
    header = {"title": None, "header": {"title": None}, "sort": {"field": "row", "op": "min"}}
    return {
        "facet": field(f"{by}:N", **header),
        "spec": view(*layers, height=height, width=width),
        "columns": 2,
        "spacing": {"row": 28, "column": 36},
        "transform": [running((), row="row_number()"), *transform],
        **({"resolve": {"scale": dict.fromkeys(apart, "independent")}} if apart else {}),
    }


def calculated(**expressions: str) -> list[Spec]:
    """Return transforms that add columns, one after the other."""
    return [{"calculate": expression, "as": name} for name, expression in expressions.items()]


def grouped(by: Sequence[str], **figures: str) -> Spec:
    """Return a transform that adds figures of its group to each row: `most="max(value)"`."""
    return {"joinaggregate": _figures(figures), "groupby": [*by]}


def running(by: Sequence[str], options: Spec | None = None, **figures: str) -> Spec:
    """Return a transform that adds figures of the rows before each in its group: `place="row_number()"`."""
    return {"window": _figures(figures), **({"groupby": [*by]} if by else {}), **(options or {})}


def _figures(figures: Mapping[str, str]) -> list[Spec]:
    parts = ((name, *figure.rstrip(")").split("(")) for name, figure in figures.items())
    return [{"op": op, **({"field": column} if column else {}), "as": name} for name, op, column in parts]


def reference_line(**position: Spec) -> Spec:
    """Return a line of reference, drawn once however many rows there are."""
    return mark("rule", {"style": "reference"}, {"aggregate": [{"op": "count", "as": "rows"}]}, **position)


def accuracy_axis(column: str = "value", title: str = "accuracy", **scale: Any) -> Spec:  # Any: of a scale
    """Return an axis of shares, from nothing to all unless its scale has another span."""
    axis = {"format": PERCENT, "tickCount": 5}
    return field(f"{column}:Q", title=title, axis=axis, scale=scale or {"domain": [0, 1]})


def names(column: str = "model") -> Spec:
    """Return an axis of names, in the order of the rows."""
    return field(f"{column}:N", sort=None, title=None, axis={"grid": False, "minExtent": 40})


_FITTING: Final = "min(11, (bandwidth('x') - 2) / (0.58 * max(length(datum.text), 2)))"  # pixels of letters
IN_CELL: Final[Spec] = {  # of texts that have to fit; not of charts that a page draws as several
    "fontSize": {"expr": _FITTING},
    "opacity": {"expr": f"{_FITTING} < {LEAST_LETTERS} ? 0 : 1"},
}


def heat_map(*transform: Spec, tips: list[Spec], room: Spec | None = None, **position: Spec) -> list[Spec]:
    """Return cells shaded by their `strength`, which hold their `text`; `room`: options of the latter."""
    shade = field("strength:Q", scale={"domain": [0, 1]}, legend=None)
    cell = {"cornerRadius": 2, "cursor": "pointer"}
    cells = mark("rect", cell, *transform, color=shade, tooltip=tips, **position)
    return [cells, *legible(*transform, text=field("text:N"), room=room or {}, **position)]


def legible(*transform: Spec, room: Spec, **encoding: Spec) -> list[Spec]:
    """Return the texts of cells, in a colour that can be read on their `strength`."""
    return [
        mark("text", {"style": style, **room}, *transform, {"filter": f"datum.strength {limit}"}, **encoding)
        for style, limit in (("weak", f"< {STRONG}"), ("strong", f">= {STRONG}"))
    ]


def tooltips(*columns: str) -> list[Spec]:
    """Return tooltips of a mark: each argument is `column`, `column|format` or `column|format|name`."""
    tips = []
    for definition in columns:
        column, form, name = (*definition.split("|"), "", "")[:3]
        plain = column.partition(":")[0]
        title = name or _TIPS.get(plain, plain.replace("_", " "))
        tips.append(field(column, title=title, **({"format": form} if form else {})))
    return tips


MOST_LETTERS: Final = 17  # of a model's name in a narrow panel


def model_name(narrow: str) -> Spec:
    """Return the text of a mark: the model's name, without its middle where `narrow` is true of the panel."""
    half, rest = MOST_LETTERS // 2, MOST_LETTERS // 2 + 1 - MOST_LETTERS
    ends = f"slice(datum.model, 0, {half}) + '…' + slice(datum.model, {rest})"
    return {"text": {"expr": f"{narrow} && length(datum.model) > {MOST_LETTERS} ? {ends} : datum.model"}}


COLOUR: Final = field("colour:N", scale=None, legend=None)  # of the entrant
SERIES: Final = field("series:N", sort=None)
UNDERSCORED: Final = "replace(datum.label, regexp('_', 'g'), ' ')"  # labels without their underscores


# ── names, colours and themes, for white and for dark ground ─────────────────────────────────────
# Colours of series are as far apart for people with deuteranopia as eight can be that also differ in grey;
# a test computes both. Shades go from little to much in one hue. The page's script gives rows their names and
# colours as `style_rows` does.


# Helvetica's family, and what looks like it where it is not installed; text in SVG stays text.
FONT: Final = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

LABEL_LIMIT: Final = 260  # pixels of a name on an axis


_SIZES: Final = {"labelFontSize": 12, "labelLimit": LABEL_LIMIT, "titleFontWeight": "normal"}
_SYMBOLS: Final = (
    *("circle", "square", "triangle-up", "diamond"),
    *("cross", "triangle-down", "wedge", "stroke"),
)
_LEGEND: Final = {
    **_SIZES,
    "orient": "top",
    "direction": "horizontal",
    "columns": 3,
    "title": None,
    "symbolSize": 80,
    "symbolOpacity": 1,
}
_HEADER: Final = {
    "labelFontSize": 13,
    "labelFontWeight": "bold",
    "labelAnchor": "start",
    "labelLimit": 320,
    "title": None,
}
_TITLE: Final = {
    "fontSize": 16,
    "fontWeight": "bold",
    "anchor": "start",
    "frame": "bounds",
    "offset": 14,
    "subtitleFontSize": 12,
    "subtitlePadding": 5,
}


def _config(
    *,
    ground: str,
    ink: str,
    muted: str,
    grid: str,
    faint: str,
    bar: str,
    series: list[str],
    shades: list[str],
    on_weak: str,
    on_strong: str,
) -> dict[str, Any]:  # Any: a configuration of Vega-Lite
    words = {"labelColor": ink, "titleColor": muted}
    lines = {"gridColor": grid, "domainColor": muted, "tickColor": muted}
    ramps = dict.fromkeys(("ramp", "heatmap", "ordinal"), shades)
    return {
        "background": ground,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**_SIZES, **words, **lines, "titleFontSize": 12, "tickSize": 4, "labelPadding": 4},
        "axisBand": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {**_LEGEND, **words},
        "header": {**_HEADER, "labelColor": ink},
        "title": {**_TITLE, "color": ink, "subtitleColor": muted},
        "range": {"category": series, **ramps, "symbol": list(_SYMBOLS)},
        "mark": {"color": series[0]},
        "bar": {"color": bar},  # lighter or darker than lines, so that an interval stands out on it
        "rule": {"color": ink},
        "text": {"color": ink, "fontSize": 11},
        "line": {"strokeWidth": 2},
        "style": {
            "interval": {"color": ink, "strokeWidth": 1.4, "opacity": 0.85},
            "reference": {"color": muted, "strokeWidth": 1, "strokeDash": [4, 3]},
            "note": {"color": muted, "fontSize": 11},
            "tick": {"color": ink, "fontSize": 12},
            "weak": {"color": on_weak, "fontSize": 11},
            "strong": {"color": on_strong, "fontSize": 11},
            "halo": {"color": ground, "stroke": ground, "strokeWidth": 4, "fontSize": 11},
            "plain": {"color": muted},
            "hollow": {"fill": ground, "strokeWidth": 1.3},
            "training": {"color": ink, "strokeWidth": 1.2, "opacity": 0.8},
            "faint": {"color": faint, "strokeWidth": 1},
            "stripe": {"color": grid, "opacity": 0.45},
            "accent": {"color": series[0]},
        },
    }


THEMES: Final[Mapping[str, dict[str, Any]]] = {
    "light": _config(
        ground="#ffffff",
        ink="#1b1f24",
        muted="#59616b",
        grid="#e6e9ed",
        faint="#c3c9d0",
        bar="#5fa8d6",
        series=["#3541f7", "#eb7d4c", "#012753", "#407e5e", "#82b3f8", "#681a42", "#ba6e9c", "#723e00"],
        shades=["#e2ecf6", "#bdd5ea", "#84b4d8", "#3d84bb", "#0b5590", "#06305c"],
        on_weak="#1b1f24",
        on_strong="#ffffff",
    ),
    "dark": _config(
        ground="#14171c",
        ink="#e8eaed",
        muted="#a3abb5",
        grid="#2b3138",
        faint="#454d57",
        bar="#2c78ad",
        series=["#7ca6fd", "#eab611", "#007934", "#c0836d", "#7be4e9", "#355587", "#e0f2b8", "#9a6e9a"],
        shades=["#232f3c", "#1f415f", "#23618f", "#3d8ec7", "#82bfec", "#d3ebfc"],
        on_weak="#e8eaed",
        on_strong="#0c1117",
    ),
}

# What became of trials, in the order in which it is stacked; both grounds.
OUTCOME_COLOURS: Final[Mapping[str, str]] = {
    "correct": "#3a87c8",
    "wrong": "#e0763a",
    "no_answer": "#a9afb6",
    "truncated": "#e3bd3f",
    "refused": "#9a77c7",
    "failed": "#6b7178",
}

# Of entrants: the same in every chart, a lighter or darker one on the other ground. Twelve that people with
# any colour vision tell apart as far as twelve can be, then others between them; a contrast of 3 : 1 or more.
LIGHT: Final = (
    *("#0b63ce", "#d55e00", "#079f86", "#a8409b", "#5a12a0", "#7b3801"),
    *("#1f93f5", "#64041c", "#857000", "#0d196e", "#3f6b47", "#4a4a4a"),
    *("#7f8eb5", "#bf7b67", "#1a8279", "#743b7b", "#372544", "#a63c08"),
    *("#153b68", "#c13361", "#a08f3c", "#6a6fe8", "#2b984a", "#80747a"),
    *("#4f6191", "#351e07", "#133b2f", "#c372db", "#6c48b8", "#795d46"),
    *("#1c3ea5", "#e96491", "#484402", "#4a80bd", "#487c17", "#938f85"),
)
DARK: Final = (
    *("#3fb8ff", "#ff9a2e", "#12cb8b", "#e66fbb", "#9a80ff", "#b58c14"),
    *("#aee9ff", "#dd4a48", "#ffdf33", "#4f7fe8", "#9af5a0", "#8a8f96"),
    *("#3978a0", "#a25f13", "#269669", "#daafc8", "#7457d1", "#fac36f"),
    *("#4ad2eb", "#ce6e77", "#c6ab6a", "#879cd7", "#b6d9b7", "#717171"),
    *("#2c9dc1", "#fedec3", "#17772d", "#a14580", "#c99cfb", "#877f44"),
    *("#86b4bb", "#e89081", "#c0c823", "#b2c6fc", "#72ac26", "#cdd1db"),
)


def colours_of(entrant: int) -> tuple[str, str]:
    """Return an entrant's colours on light and on dark ground; the 37th has those of the first."""
    return LIGHT[entrant % len(LIGHT)], DARK[entrant % len(DARK)]


Row = dict[str, Any]  # Any: text, number, bool or None, by column

MOST_LIT: Final = 8  # lines of a panel that people tell apart


def style_rows(
    rows: Iterable[Mapping[str, Any]],  # Any: likewise
    roster: Asked,
    *,
    theme: str = "light",
    lit: Collection[int] | None = None,
) -> list[Row]:
    """Return rows with the names and colours that their places stand for.

    `asked` gives `model` and `colour`, `kind` gives `task`. Of a pair `a` gives `model`, `b` all else.

    Args:
        rows: of a block.
        roster: the entrants and kinds that have the places.
        theme: `light` or `dark`.
        lit: the places of the entrants that keep their colour where lines are many; None: all do.
    """
    styled = list[Row]()
    for row in rows:
        style: Row = {}
        if "a" in row:
            first, second = (roster.entrants[row[end]].short for end in "ab")
            style = {
                "pair": f"{first} − {second}",
                "model": first,
                "other": second,
                "colour": colours_of(row["b"])[theme == "dark"],
                "asked": row["b"],
            }
        elif (entrant := row["asked"]) is not None:
            style = {
                "model": roster.entrants[entrant].short,
                "colour": colours_of(entrant)[theme == "dark"],
                "lit": lit is None or entrant in lit,
            }
            if row.get("kind") is not None:
                style["task"] = roster.kinds[row["kind"]].called
        styled.append({**row, **style})
    return styled


def columnar(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:  # Any: likewise; JSON
    """Return rows column by column, which is shorter; all of them have the columns of the first."""
    all_rows = list(rows)
    names = [*all_rows[0]] if all_rows else []
    return {"columns": {name: [row[name] for row in all_rows] for name in names}}
