"""The catalogue of charts, and specifications: for the page, and whole ones for pictures."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf, log10
from typing import Any, Final

from asyncbench.analysis.cells import METRICS, check_metric, rows_by
from asyncbench.analysis.entrants import LONGEST_NAME, distinct_names
from asyncbench.errors import ConfigError
from asyncbench.page.charts.accuracy_charts import ACCURACY_CHARTS
from asyncbench.page.charts.chart import (
    HEIGHT,
    PANEL_WIDTH,
    PERCENT,
    QUARTERS,
    ROW,
    SERIES,
    THEMES,
    Chart,
    Spec,
    calculated,
    field,
    grouped,
    legible,
    mark,
    panels,
    reference_line,
    running,
    view,
)
from asyncbench.page.charts.errors import ERROR_CHARTS
from asyncbench.page.charts.frontier import FRONTIER_CHARTS
from asyncbench.page.charts.loads import LOAD_CHARTS
from asyncbench.page.charts.naming import (
    FAR,
    HAS_NAME,
    KEY,
    LEADER,
    NAMED,
    labels_beside,
    name_offsets,
    with_key,
)
from asyncbench.page.charts.times import CALL_CHARTS
from asyncbench.published.reports import EXAMPLE, MARK, PublishedPicture, unmarked

COLUMNS: Final = ((4, 2), (12, 3), (inf, 4))  # at most so many panels → how many stand side by side
ALONE: Final = 640  # pixels of a panel that is the only one
_ROWS_SPEC: Final[Spec] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json",
    "data": {"name": "rows"},
}

CHARTS: Final[Mapping[str, Chart]] = {
    **ACCURACY_CHARTS,
    **FRONTIER_CHARTS,
    **ERROR_CHARTS,
    **CALL_CHARTS,
    **LOAD_CHARTS,
}


def spec_of(name: str, metric: str = "accuracy") -> Spec:
    """Return the Vega-Lite specification of a chart over data named `rows`, without title or theme.

    Args:
        name: of `CHARTS`.
        metric: of `METRICS`, for charts that show one of several.

    Raises:
        ConfigError: there is no such chart or metric.
    """
    if name not in CHARTS:
        raise ConfigError(f"no chart {name!r}. Choose one of: {', '.join(CHARTS)}")
    check_metric(metric)
    spec = CHARTS[name].spec
    return _copied_spec(spec(METRICS[metric]) if callable(spec) else spec)


def panel_of(name: str) -> str:
    """Return the column of which each value has a panel; empty: the chart is one."""
    spec = CHARTS[name].spec
    return "" if callable(spec) else str(spec.get("facet", {}).get("field", ""))


def _copied_spec(spec: Spec) -> Spec:
    """Return a specification over `rows` as a copy that may be changed: no two parts of it are one object."""
    copy: Spec = json.loads(json.dumps(_ROWS_SPEC | spec))
    return copy


def drawn(
    name: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    metric: str = "accuracy",
    theme: str = "light",
    notes: Sequence[str] = (),
) -> Spec:
    """Return a chart that stands alone: rows, title and theme within it.

    Args:
        name: of `CHARTS`.
        rows: with the columns that `CHARTS` tells.
        metric: of `METRICS`.
        theme: of `THEMES`.
        notes: lines under the title.

    Raises:
        ConfigError: as `spec_of` does.
    """
    chart = CHARTS[name]
    return _self_contained(
        spec_of(name, metric), list(rows), chart.title, notes, theme=theme, paired=chart.paired
    )


def published_drawn(
    picture: PublishedPicture,
    *,
    theme: str = "light",
    notes: Sequence[str] = (),
    width: float = ALONE,
    longest: int = LONGEST_NAME,
) -> Spec:
    """Return a picture of a published benchmark that stands alone, as `drawn` does a chart.

    Args:
        picture: what is drawn.
        theme: of `THEMES`.
        notes: lines under the title.
        width: pixels between its axes, for which names are placed.
        longest: characters of the names of models.
    """
    short = _short_named(picture, longest)
    rows = place_names(short, width=width)
    signs = [" ".join(f"{sign} {words}." for sign, words in picture.signs().items())]
    spec = _copied_spec(published_spec(short))
    if picture.palette:
        _set_colours(spec, picture, rows, THEMES[theme])
    return _self_contained(spec, rows, picture.title, [*notes, *filter(None, signs)], theme=theme)


def _set_colours(
    spec: Spec, picture: PublishedPicture, rows: Sequence[Mapping[str, Any]], theme: Mapping[str, Any]
) -> None:
    """Give each series its colour in all pictures of a run; a dash or a tint where colours run out."""
    colours, ground = theme["range"]["category"], theme["background"]
    places = {name: place for place, name in enumerate(picture.palette)}
    full = [row["series"] for row in picture.drawn_rows()]
    short = {name: row["series"] for row, name in zip(rows, full, strict=True)}
    names = [name for name in picture.series_order or short if name in short]
    shown = {short[name]: divmod(places[unmarked(name)], len(colours)) for name in names}
    whole = [colours[place] for _, place in shown.values()]
    turns = [turn for turn, _ in shown.values()]

    # Legends have no opacity for each symbol: a tint is a colour of its own.
    fills = whole
    if picture.kind == "bars":
        fills = [
            _tinted(colour, ground, TINTS[turn % len(TINTS)])
            for colour, turn in zip(whole, turns, strict=True)
        ]
    dashes = [DASHES[turn % len(DASHES)] for turn in turns]
    for layer in (spec["spec"] if "facet" in spec else spec)["layer"]:
        encoding = layer["encoding"]
        if encoding.get("color", {}).get("field") != "series":
            continue
        encoding["color"]["scale"] = {"domain": [*shown], "range": fills}
        if picture.kind in LINED:  # the symbol of a legend is a line, long enough for its dash
            encoding["color"]["legend"] = {**LINE_SYMBOL}
        if any(turns) and picture.kind == "bars":
            encoding["stroke"] = {**SERIES, "scale": {"domain": [*shown], "range": whole}}
        if any(turns) and layer["mark"]["type"] == "line":
            scale = {"type": "ordinal", "domain": [*shown], "range": dashes}
            encoding["strokeDash"] = {**SERIES, "scale": scale, "legend": {**LINE_SYMBOL}}


def _tinted(colour: str, ground: str, share: float) -> str:
    """Return a colour of which a share is left on a ground."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return f"#{bytes(round(share * part + (1 - share) * under) for part, under in pairs).hex()}"


def _self_contained(
    spec: Spec,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    notes: Sequence[str],
    *,
    theme: str,
    paired: bool = False,
) -> Spec:
    """Return a specification with rows, title and theme, and its panels side by side where it has any."""
    if "facet" in spec:
        by = spec["facet"]["field"]
        panels = len({row[by] for row in rows})
        columns = next(columns for most_panels, columns in COLUMNS if panels <= most_panels)
        spec["columns"] = columns = columns - columns % 2 * paired
        if panels % columns:  # a shared axis would stand at the foot of empty places too
            spec["resolve"] = spec.get("resolve", {}) | {"axis": {"x": "independent"}}
        if panels == 1 and isinstance(spec["spec"]["width"], int):  # else it is as wide as its columns
            spec["spec"]["width"] = ALONE
    for parameter in spec.get("params", ()):
        parameter["value"] = sorted({row["rate"] for row in rows if "rate" in row})
    alone = {"data": {"name": "rows", "values": rows}, "config": THEMES[theme], "padding": 12}
    return {**spec, "title": {"text": title, "subtitle": list(notes)}, **alone}


# ── pictures of published benchmarks: a specification for each kind of picture ───────────────────


MOST_UPRIGHT: Final = 3  # characters of labels that stand upright above a map's columns
CELL: Final = 24  # pixels of a row of a heatmap, and of a column at least
LOW_CELL: Final = 16  # of a row of one with more than `MANY_ROWS`, so that a page has room for it
MANY_ROWS: Final = 30
LEAST_CELL: Final = 12, 14  # of a map without figures: names have room above and beside it
DOUBLINGS: Final = [2**n - 1 for n in range(60)]  # 0, 1, 3, 7 …: whole steps of log2(digits + 1)

_SCALES: Final[Mapping[str, tuple[Spec, Spec]]] = {  # → options of a scale, options of its axis
    "share": ({"domain": [0, 1]}, {"format": PERCENT, "values": QUARTERS}),
    "right": ({"domain": [0, 1]}, {}),
    "digits": ({"type": "symlog", "constant": 1, "domainMin": 0}, {"format": ",d"}),
    "length": (
        {"zero": False, "nice": False, "padding": 6},
        {"format": "d", "tickMinStep": 1, "tickCount": 6, "grid": False},
    ),
    "number": ({"zero": True, "nice": True}, {"format": ",~r", "tickCount": 5}),
    "difference": ({"zero": True, "nice": True}, {"format": "+.0%", "tickCount": 5}),
    "log": ({"type": "log", "nice": True}, {"format": ",~g", "tickCount": 6}),
    "usd": ({"type": "log", "nice": True}, {"format": "$,~g", "tickCount": 6}),
}


def published_spec(picture: PublishedPicture) -> Spec:
    """Return the specification of a picture over data named `rows`, without title or theme."""
    drawn = _DRAWN[picture.kind](picture)
    if not picture.panel:
        return drawn
    places = rows_by(picture.rows, lambda row: row[picture.panel]).values() if picture.x else ()
    alike = len({frozenset(row[picture.x] for row in rows) for rows in places}) == 1
    apart = () if alike else ("x", "xOffset")  # some tasks have other lengths
    spec = panels(*drawn["layer"], height=drawn["height"], width=drawn["width"], apart=apart)
    if picture.panel == EXAMPLE:
        spec["facet"]["header"]["labelExpr"] = r"split(datum.label, '\n')"
    return spec


_OF_MODELS: Final = {"model", EXAMPLE}  # columns of pictures that name models
_MARKS: Final = re.compile(rf"( {re.escape(MARK)}| \*| †)+$")  # behind a name
TINTS: Final = (1, 0.5, 0.25, 0.1, 0)  # of bars, once all colours were used
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])  # of lines, likewise
BANDS: Final = 0.45  # opacity of all bands together
DOTS: Final = 500.0  # square pixels of all points of a line over lengths
LINED: Final = {"lines", "curves"}  # kinds of pictures whose series are lines
LINE_SYMBOL: Final = {"symbolType": "stroke", "symbolSize": 900, "symbolStrokeWidth": 2}  # of a legend
INTERVAL_GROUND: Final = {"style": "halo", "strokeWidth": 2.6}
_LACKING: Final[Spec] = {"filter": "isValid(datum.lacking)"}
_NAMES: Final = field("y:N", sort=None, title=None, axis={"grid": False, "labelLimit": 420})


def place_names(
    picture: PublishedPicture, *, width: float = ALONE
) -> list[dict[str, Any]]:  # Any: as in its rows
    """Return its drawn rows; of points and lines with names also where each name stands."""
    rows = picture.drawn_rows()
    if not picture.text or picture.kind not in ("points", "lines"):
        return rows
    height = _height(picture)
    exponents = [log10(row["x"]) for row in rows]
    low, high = floor(min(exponents)), ceil(max(exponents))
    span = max(high - low, 1)
    spots = [
        (width * (exponent - low) / span, height * (1 - row["value"]))
        for exponent, row in zip(exponents, rows, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda n: (-rows[n]["value"], n))
    names = [str(row["text"]) for row in rows]
    if picture.kind == "lines":
        offsets = name_offsets(spots, names, order, always=order, width=width, height=height)
        return [{**row, "offset": offset} for row, offset in zip(rows, offsets, strict=True)]

    # Of points the best are named first. A key below tells whose the numbers are.
    short = distinct_names(names, longest=LONGEST_NAME)
    names = [short[name] for name in names]
    order.sort(key=lambda n: not rows[n].get("first"))
    labels = labels_beside(spots, names, order, width=width, height=height)
    labelled = [
        {**row, "text": label, "name": name, "offset": offset}
        for row, name, (label, offset) in zip(rows, names, labels, strict=True)
    ]
    return with_key(labelled, width=width, height=height)


def _short_named(picture: PublishedPicture, longest: int) -> PublishedPicture:
    """Return a picture in which long names of models are cut; what stands around them stays whole."""
    rows, orders = picture.rows, dict[str, Any]()  # Any: of a picture
    for channel in ("x", "y", "series", "panel"):
        column = getattr(picture, channel)
        if column not in _OF_MODELS:
            continue
        names = dict.fromkeys(row[column] for row in rows if column in row)
        around = {name: _around_model(name, with_task=column == EXAMPLE) for name in names}
        short = distinct_names((model for _, model, _ in around.values()), longest=longest)
        shown = {
            name: f"{task}:\n{short[model]}{marks}" if task else short[model] + marks
            for name, (task, model, marks) in around.items()
        }
        rows = [{**row, column: shown[row[column]]} if column in row else row for row in rows]
        if channel != "panel":
            order = f"{channel}_order"
            orders[order] = [shown[name] for name in getattr(picture, order) if name in shown]
    return replace(picture, rows=rows, **orders)


def _around_model(name: str, *, with_task: bool) -> tuple[str, str, str]:
    """Return the task before the name of a model, if it has one; the model; and the marks behind it."""
    task, _, rest = name.partition(": ") if with_task else ("", "", name)
    model = _MARKS.sub("", rest)
    return task, model, rest[len(model) :]


def _height(picture: PublishedPicture) -> int:
    """Return the pixels of a picture with two quantities."""
    return {"points": 400}.get(picture.kind, HEIGHT) if not picture.panel else HEIGHT // 2


def _wide(picture: PublishedPicture) -> int:
    return PANEL_WIDTH if picture.panel else ALONE


def _across(picture: PublishedPicture) -> Spec:
    """Return the axis of a picture's `x`."""
    if picture.x_scale == "category":
        title = None if picture.panel else _words(picture.x)  # small pictures would all repeat it
        return field("x:N", sort=None, title=title or None, axis={"grid": False, "labelAngle": 0})
    return _measured("x", picture, picture.x_scale, picture.x)


def _values(picture: PublishedPicture, column: str = "value") -> Spec:
    """Return the axis of a picture's values, for one of its drawn columns."""
    return _measured(column, picture, picture.scale, picture.value)


def _measured(column: str, picture: PublishedPicture, scale: str, title: str) -> Spec:
    options, ticks = _scaled(scale, picture)
    done: Any = ["log2(dlength + 1);", "ticks: dlength"] if scale == "digits" else _words(title)
    return field(f"{column}:Q", title=done, scale=options, axis=ticks)


def _words(column: str) -> str:
    return column.replace("_", " ")


def _scaled(scale: str, picture: PublishedPicture) -> tuple[Spec, Spec]:
    """Return the options of a scale and of its axis; one of digits ends at the step above the most."""
    options, ticks = _SCALES[scale]
    if scale != "digits":
        return options, ticks
    steps = [step for step in DOUBLINGS if step < 2 * max(0.5, picture.largest) + 1]
    return {**options, "domainMax": steps[-1]}, {**ticks, "values": steps}


def _series_of(picture: PublishedPicture) -> Spec:
    return {**SERIES, "sort": [*picture.series_order] or None}


def _coloured(picture: PublishedPicture) -> Spec:
    return {"color": _series_of(picture)} if picture.series else {}


def _named(axes: Spec, colour: Spec) -> list[Spec]:
    """Return names beside points, each on a border in the colour of the ground, with a line to a far one."""
    text = {**axes, "text": field("text:N")}
    ends = {"x2": field("x"), "y2": field("value")}
    return [
        mark("rule", {"opacity": 0.45, **LEADER}, FAR, **axes, **ends, **colour),
        mark("text", {**NAMED, "style": "halo"}, HAS_NAME, **text),
        mark("text", NAMED, HAS_NAME, **text, **colour),
    ]


def _series(picture: PublishedPicture) -> Spec:
    """Return bars or lines over an axis of names or numbers, with intervals and a line to compare with."""
    bars = picture.kind == "bars"
    axes = {"x": _across(picture), **({"xOffset": _series_of(picture)} if bars and picture.series else {})}
    shape, options = ("bar", {}) if bars else ("line", {"point": {"size": 30}})
    y = _values(picture)
    layers = [mark(shape, options, **axes, y={**y, "stack": None}, **_coloured(picture))]
    if bars:  # so that a bar of no height differs from none
        zero, foot = {"filter": "datum.value === 0"}, {"style": "note", "dy": -5}
        layers.append(mark("tick", {"thickness": 3}, zero, **axes, y=y, **_coloured(picture)))
        layers.append(mark("text", foot, _LACKING, **axes, y={"value": "height"}, text=field("lacking:N")))
    if any("low" in row for row in picture.rows):
        has_interval = {"filter": "isValid(datum.low)"}
        low, high = _values(picture, "low"), field("high")
        for style in (INTERVAL_GROUND, {"style": "interval"}):  # so that it can be read on a dark bar
            layers.append(mark("rule", style, has_interval, **axes, y=low, y2=high))
    if picture.text:
        layers += _named({**axes, "y": y}, _coloured(picture))
    if picture.guide:
        has_guide, mean = {"filter": "isValid(datum.guide)"}, {"aggregate": "mean"}
        layers.append(mark("rule", {"style": "reference"}, has_guide, y=_values(picture, "guide") | mean))
    return view(*layers, width=_wide(picture), height=_height(picture))


def _curves(picture: PublishedPicture) -> Spec:
    """Return lines over lengths with bands, broken where there is none, and a mark at training lengths."""
    x, y, colour = _across(picture), _values(picture), _coloured(picture)
    ends = {"x": x, "y": _values(picture, "low"), "y2": field("high"), **colour}
    has_value, stretch = {"filter": "isValid(datum.value)"}, {"detail": field("stretch:N")}
    points = grouped(("series", "stretch"), points="count()")
    single, several = {"filter": "datum.points === 1"}, {"filter": "datum.points > 1"}

    band = {"opacity": BANDS / max(3, len({row[picture.series] for row in picture.rows}))}
    layers = [
        mark("area", band, has_value, points, several, **ends, **stretch),
        mark("rule", {"strokeWidth": 1, "opacity": 0.45}, has_value, points, single, **ends),
        mark("line", {"strokeJoin": "round"}, has_value, x=x, y=y, **colour, **stretch),
    ]
    # Points of many lengths are small, so that they do not hide the line.
    lengths = (grouped((), lengths="distinct(x)"), *calculated(dot=f"clamp({DOTS} / datum.lengths, 4, 26)"))
    size = field("dot:Q", scale=None, legend=None)
    for few, style in (("!", {"filled": True}), ("", {"filled": False, "style": "hollow"})):
        drawn_points = (has_value, *lengths, {"filter": f"{few}datum.few"})
        layers.append(mark("point", {"opacity": 1, **style}, *drawn_points, x=x, y=y, size=size, **colour))
    return view(*_trained(picture, x), *layers, width=_wide(picture), height=_height(picture))


def _trained(picture: PublishedPicture, x: Spec) -> list[Spec]:
    """Return the ground up to the length that all models of a panel were trained on, and a line at each."""
    lengths = {(row.get(picture.panel), row.get("training_length")) for row in picture.rows}
    lengths = {(panel, length) for panel, length in lengths if length is not None}
    if not lengths:
        return []
    has_length = {"filter": "isValid(datum.training_length)"}
    shortest = {"aggregate": [{"op": "min", "field": "training_length", "as": "trained"}]}
    at = {**x, "field": "trained"}
    shade = mark("rect", {"style": "stripe"}, has_length, shortest, x=at, x2={"value": 0})

    # A line is of one model only where models of a panel differ.
    differ = len(lengths) > len({panel for panel, _ in lengths})
    by = ["series", "training_length"] if differ and picture.series else ["training_length"]
    each = {"aggregate": [{"op": "min", "field": "training_length", "as": "trained"}], "groupby": by}
    style = {"strokeDash": [5, 3], "strokeWidth": 1.4} if differ else {"style": "training"}
    return [shade, mark("rule", style, has_length, each, x=at, **(_coloured(picture) if differ else {}))]


def _stack(picture: PublishedPicture) -> Spec:
    """Return bars from left to right, each cut into its series."""
    row_numbers, x = running((), place="row_number()"), {**_values(picture), "stack": "zero"}
    bars = mark("bar", {}, row_numbers, x=x, y=_NAMES, order=field("place:Q"), **_coloured(picture))
    return view(bars, width=_wide(picture), height={"step": ROW})


def _map(picture: PublishedPicture) -> Spec:
    """Return shaded cells, which hold their text or their value; a dash stands where there is none."""
    angle = -90 if picture.bare else -60  # columns of a bare map are as wide as a line is high
    across = {"orient": "top", "labelAngle": angle, "labelAlign": "left", "labelLimit": 320, "grid": False}
    title = None
    if all(len(str(row[picture.x])) <= MOST_UPRIGHT for row in picture.rows):
        across |= {"labelAngle": 0, "labelAlign": "center"}
        title = _words(picture.x)
    x = field("x:N", sort=[*picture.x_order] or None, title=title, axis=across)
    axes = {"x": x, "y": {**_NAMES, "sort": [*picture.y_order] or None}}
    options, ticks = _scaled(picture.scale, picture)

    # All panels and pages share one scale. Colours of cells and of their texts are by the same place on it.
    share, doubling = picture.scale in ("share", "right"), picture.scale == "digits"
    top = options["domainMax"] if doubling else 1 if share else picture.largest or 1
    strength = f"log(1 + datum.value) / log(1 + {top})" if doubling else f"datum.value / {top}"
    scale = {name: options[name] for name in ("type", "constant") if name in options}
    shown: Spec = {name: ticks[name] for name in ("format", "values") if name in ticks}
    legend = {"title": _words(picture.value), "titleLimit": 300, "gradientLength": 160, **shown}
    if picture.scale == "right":  # two swatches: nothing is between right and wrong
        labels = "datum.value == 1 ? 'right' : 'wrong or missing'"
        legend = {"type": "symbol", "symbolType": "square", "values": [1, 0], "labelExpr": labels}
    colour = field("value:Q", scale={**scale, "domain": [0, top]}, legend=legend)

    has_value = {"filter": "isValid(datum.value)"}
    percent, precision = _precision(picture)
    form = f"format({percent} * datum.value, '{precision.replace('g', '~g')}')"
    said = f"isValid(datum.text) ? datum.text : {form}" if picture.text else form
    written = (has_value, *calculated(said=said, strength=strength))
    width, height = cell_size(picture)

    cells = mark("rect", {"cornerRadius": 1}, has_value, color=colour, **axes)
    dashes = mark("text", {"style": "note"}, _LACKING, text=field("lacking:N"), **axes)
    named = () if picture.bare else legible(*written, text=field("said:N"), room={}, **axes)
    return view(cells, dashes, *named, width={"step": width}, height={"step": height})


def cell_size(picture: PublishedPicture) -> tuple[int, int]:
    """Return how wide and how high a cell of a map is, pixels: a column has room for its longest text."""
    if picture.bare:
        return LEAST_CELL
    percent, precision = _precision(picture)
    texts = [
        str(row[picture.text]) for row in picture.rows if picture.text and row.get(picture.text) is not None
    ]
    if not picture.text:
        values = (row[picture.value] for row in picture.rows)
        texts = [format(percent * value, precision) for value in values if value is not None]
    many = len({row[picture.y] for row in picture.rows}) > MANY_ROWS
    return max(CELL, 8 + 7 * max(map(len, texts), default=0)), LOW_CELL if many else CELL


def _precision(picture: PublishedPicture) -> tuple[int, str]:
    """Return by how much the values of a map are multiplied in its cells, and how they are written."""
    return (100, ".0f") if picture.scale in ("share", "right") else (1, ".3g")


def _points(picture: PublishedPicture) -> Spec:
    """Return a point a row, with its text."""
    axes = {"x": _across(picture), "y": _values(picture)}
    points = mark("point", {"filled": True, "size": 50, "opacity": 0.8}, **axes, **_coloured(picture))
    names = _named(axes, _coloured(picture)) if picture.text else []
    if picture.text:
        names.append(KEY)
    return view(points, *names, width=_wide(picture), height=_height(picture))


def _dots(picture: PublishedPicture) -> Spec:
    """Return points from left to right, those of a name on one line that joins them, with intervals."""
    axes = {"y": _NAMES, "x": _values(picture)}
    layers = [mark("line", {"style": "reference", "order": False}, **axes, detail=field("y:N"))]
    if any("low" in row for row in picture.rows):
        ends = {"x": _values(picture, "low"), "x2": field("high")}
        layers.append(mark("rule", {"style": "interval"}, **axes | ends))
    layers.append(mark("point", {"filled": True, "size": 70, "opacity": 1}, **axes, **_coloured(picture)))
    if picture.scale == "difference":
        layers.append(reference_line(x={"datum": 0}))
    return view(*layers, width=_wide(picture), height={"step": ROW})


_DRAWN: Final[Mapping[str, Callable[[PublishedPicture], Spec]]] = {
    "bars": _series,
    "lines": _series,
    "curves": _curves,
    "stack": _stack,
    "map": _map,
    "points": _points,
    "dots": _dots,
}
