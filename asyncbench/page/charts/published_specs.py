"""The pictures of published benchmarks as Vega-Lite specifications: one for each kind, whatever it shows."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import altair as alt

from asyncbench.page.charts.specs import (
    CELL,
    HEIGHT,
    PANEL_WIDTH,
    PERCENT,
    QUARTERS,
    ROW,
    Drawn,
    Options,
    Spec,
    chart,
    panels,
    reference_line,
)
from asyncbench.page.charts.themes import STRONG
from asyncbench.published.reports import PublishedPicture

DOUBLINGS: Final = [2**n - 1 for n in range(60)]  # 0, 1, 3, 7 …: whole steps of log2(digits + 1)

_SCALES: Final[Mapping[str, tuple[Options, Options]]] = {  # → options of a scale, options of its axis
    "share": ({"domain": [0, 1]}, {"format": PERCENT, "values": QUARTERS}),
    "digits": ({"type": "symlog", "constant": 1, "domainMin": 0}, {"format": ",~r"}),
    "number": ({"zero": True, "nice": True}, {"format": ",~r", "tickCount": 5}),
    "difference": ({"zero": True, "nice": True}, {"format": "+.0%", "tickCount": 5}),
    "log": ({"type": "log", "nice": True}, {"format": ",~g", "tickCount": 6}),
    "usd": ({"type": "log", "nice": True}, {"format": "$,~g", "tickCount": 6}),
}


def published_spec(picture: PublishedPicture) -> Spec:
    """Return the specification of a picture over data named `rows`, without title or theme."""
    layers = _DRAWN[picture.kind](picture)
    if picture.panel:  # tasks have other lengths
        layers = panels(layers, columns=2).resolve_scale(x="independent", xOffset="independent")
    spec: Spec = layers.to_dict()
    spec.pop("config", None)  # altair's own theme
    return spec


def _along(channel: type[alt.X | alt.Y], field: str, picture: PublishedPicture) -> Any:  # Any: X or Y
    """Return an axis of a picture for a field of its drawn rows, called as its column is."""
    of_x, of_y = field == "x", field == "y"
    scale = picture.x_scale if of_x else "category" if of_y else picture.scale
    column = picture.x if of_x else picture.value
    title = "" if of_y else column.replace("_", " ")
    if scale == "category":
        axis = alt.Axis(grid=False, labelAngle=0 if of_x else alt.Undefined)
        return channel(f"{field}:N", sort=None, title=title or None, axis=axis)
    options, ticks = _scaled(scale, picture, column)
    return channel(f"{field}:Q", title=title, scale=alt.Scale(**options), axis=alt.Axis(**ticks))


def _scaled(scale: str, picture: PublishedPicture, column: str) -> tuple[Options, Options]:
    """Return the options of a scale and of its axis; one of digits ends at the step above the most."""
    options, ticks = _SCALES[scale]
    if scale != "digits":
        return options, ticks
    most = max([0.5, *(row[column] or 0 for row in picture.rows)])
    steps = [step for step in DOUBLINGS if step < 2 * most + 1]
    return {**options, "domainMax": steps[-1]}, {**ticks, "values": steps}


def _colour(picture: PublishedPicture) -> Any:  # Any: a colour, or none
    return alt.Color("series:N", sort=None) if picture.series else alt.Undefined


def _series(picture: PublishedPicture) -> Drawn:
    """Return bars or lines over an axis of names or numbers, with intervals and a line to compare with."""
    apart = picture.kind == "bars" and picture.series
    placed: Options = {"xOffset": alt.XOffset("series:N", sort=None)} if apart else {}
    base = chart().encode(x=_along(alt.X, "x", picture), **placed)
    y = _along(alt.Y, "value", picture)
    mark = base.mark_bar() if picture.kind == "bars" else base.mark_line(point={"size": 30})
    layers = [mark.encode(y=y.stack(None), color=_colour(picture))]
    if any("low" in row for row in picture.rows):
        low = _along(alt.Y, "low", picture)
        known = base.transform_filter("isValid(datum.low)")
        layers.append(known.mark_rule(style="interval").encode(y=low, y2="high:Q"))
    if picture.text:
        layers.append(base.mark_text(dy=-10, style="note").encode(y=y, text="text:N"))
    if picture.guide:
        height = _along(alt.Y, "mean(guide)", picture)
        known = chart().transform_filter("isValid(datum.guide)")
        layers.append(known.mark_rule(style="reference").encode(y=height))
    return alt.layer(*layers).properties(width=PANEL_WIDTH, height=HEIGHT // 2)


def _stack(picture: PublishedPicture) -> Drawn:
    """Return bars from left to right, each cut into its series."""
    x = _along(alt.X, "value", picture).stack("zero")
    bars = chart().transform_window(place="row_number()").mark_bar()
    drawn = bars.encode(x=x, y=_along(alt.Y, "y", picture), color=_colour(picture), order="place:Q")
    return alt.layer(drawn).properties(width=PANEL_WIDTH, height=alt.Step(ROW))


def _map(picture: PublishedPicture) -> Drawn:
    """Return shaded cells, which hold their text or their value."""
    across = alt.Axis(orient="top", labelAngle=-60, labelAlign="left", labelLimit=200, grid=False)
    x = alt.X("x:N", sort=[*picture.x_order] or None, title=None, axis=across)
    base = chart().encode(x=x, y=_along(alt.Y, "y", picture))
    options, ticks = _scaled(picture.scale, picture, picture.value)
    legend = alt.Legend(
        title=picture.value.replace("_", " "), titleLimit=300, gradientLength=160, **_of_legend(ticks)
    )
    cells = base.mark_rect(cornerRadius=1).encode(
        color=alt.Color("value:Q", scale=alt.Scale(**options), legend=legend)
    )
    form = "format(100 * datum.value, '.0f')" if picture.scale == "share" else "format(datum.value, '.3~g')"
    most = "1" if picture.scale == "share" else "max(datum.most, 1e-12)"
    alike: list[str | alt.FieldName] = ["panel"] if picture.panel else []
    written = (
        base.transform_joinaggregate(most="max(value)", groupby=alike)
        .transform_filter("isValid(datum.value)")
        .transform_calculate(
            said="datum.text" if picture.text else form, strength=f"abs(datum.value) / {most}"
        )
    )
    weak = written.transform_filter(f"datum.strength < {STRONG}").mark_text(style="weak")
    strong = written.transform_filter(f"datum.strength >= {STRONG}").mark_text(style="strong")
    layers = alt.layer(cells, weak.encode(text="said:N"), strong.encode(text="said:N"))
    return layers.properties(height=alt.Step(CELL), width=alt.Step(_wide_enough(picture)))


def _wide_enough(picture: PublishedPicture) -> int:
    """Return the pixels of a cell in which its longest text has room."""
    return max(CELL, 8 + 7 * max((len(str(row.get(picture.text, "100"))) for row in picture.rows), default=0))


def _of_legend(ticks: Options) -> Options:
    return {name: ticks[name] for name in ("format", "values") if name in ticks}


def _points(picture: PublishedPicture) -> Drawn:
    """Return a point a row, with its text."""
    x = _along(alt.X, "x", picture)
    base = chart().encode(x=x, y=_along(alt.Y, "value", picture))
    layers = [base.mark_point(filled=True, size=50, opacity=0.8).encode(color=_colour(picture))]
    if picture.text:
        layers.append(base.mark_text(align="left", dx=6, style="note").encode(text="text:N"))
    return alt.layer(*layers).properties(width=PANEL_WIDTH, height=HEIGHT)


def _dots(picture: PublishedPicture) -> Drawn:
    """Return points from left to right, those of a name on one line that joins them, with intervals."""
    base = chart().encode(y=_along(alt.Y, "y", picture))
    x = _along(alt.X, "value", picture)
    layers = [base.mark_line(style="reference", order=False).encode(x=x, detail="y:N")]
    if any("low" in row for row in picture.rows):
        low = _along(alt.X, "low", picture)
        layers.append(base.mark_rule(style="interval").encode(x=low, x2="high:Q"))
    layers.append(base.mark_point(filled=True, size=70, opacity=1).encode(x=x, color=_colour(picture)))
    if picture.scale == "difference":
        layers.append(reference_line().encode(x=alt.datum(0)))
    return alt.layer(*layers).properties(width=PANEL_WIDTH, height=alt.Step(ROW))


_DRAWN: Final[Mapping[str, Callable[[PublishedPicture], Drawn]]] = {
    "bars": _series,
    "lines": _series,
    "stack": _stack,
    "map": _map,
    "points": _points,
    "dots": _dots,
}
