"""The charts as Vega-Lite specifications over data named `rows`; the columns of each are told in `catalogue`.

They hold no title, no data and no theme, so that the page and pictures can share them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, Final

import altair as alt

from asyncbench.charts.frontier import ASIDE, BELOW, HEIGHT as HIGH, MARGIN, PADDING
from asyncbench.charts.themes import OUTCOME_COLOURS, STRONG
from asyncbench.results import METRICS, Metric

Spec = dict[str, Any]  # Any: a specification of Vega-Lite
Options = dict[str, Any]  # Any: of a part of one
Drawn = alt.LayerChart | alt.FacetChart

WIDTH: Final = 640  # pixels of a chart that is one view
PANEL_WIDTH: Final = 300  # of one of several
ROW: Final = 20  # pixels of height a bar
CELL: Final = 24  # a row of a heatmap
HEIGHT: Final = 260  # of a panel with two quantities
PERCENT: Final = ".0%"
QUARTERS: Final = [0, 0.25, 0.5, 0.75, 1]
MOST_TEXTS: Final = 14  # columns of a heatmap whose cells still have room for a figure
MOST_FIGURES: Final = 4  # curves of a panel whose lengths at 50 % are written beside them


def spec(name: str, metric: str) -> Spec:
    """Return the specification of a chart; `metric` counts for those that show one of several."""
    wanted = METRICS[metric]
    alike = Metric(title=_TITLE, unit=wanted.unit.partition(" ")[0], over=(), under=(), share=wanted.share)
    title = f"{wanted.title}, {wanted.unit}" if wanted.unit == "seconds" else wanted.title
    found: Spec = _titled(_built(name, alike), title)
    return found


_TITLE: Final = "{title}"


@cache
def _built(name: str, metric: Metric) -> Spec:
    """Return a chart of metrics that differ in nothing but their title: altair takes its time for each."""
    found: Spec = _DRAWN[name](metric).to_dict()
    found.pop("config", None)  # altair's own theme
    return found


def _titled(node: Any, title: str) -> Any:  # Any: a part of a specification
    """Return a copy with the title in its place."""
    if isinstance(node, dict):
        return {name: _titled(value, title) for name, value in node.items()}
    if isinstance(node, list):
        return [_titled(value, title) for value in node]
    return title if node == _TITLE else node


ROWS: Final = alt.NamedData(name="rows")  # one object: facets are of layers over the same data


def chart() -> alt.Chart:
    return alt.Chart(ROWS)


def once() -> alt.Chart:
    """Return a line of reference, drawn once however many rows there are."""
    line: alt.Chart = chart().transform_aggregate(rows="count()").mark_rule(style="reference")
    return line


def panels(layers: Drawn, *, columns: int) -> Drawn:
    """Return small multiples, one for each value of `panel`, in the order of the rows."""
    by_row = alt.EncodingSortField(field="row", op="min")
    return layers.facet(
        facet=alt.Facet("panel:N", sort=by_row, title=None, header=alt.Header(title=None)),
        columns=columns,
        spacing={"row": 28, "column": 36},
    ).transform_window(row="row_number()")


def _names(field: str = "model") -> alt.Y:
    return alt.Y(f"{field}:N", sort=None, title=None, axis=alt.Axis(grid=False, minExtent=40))


def _measure(metric: Metric, field: str = "value") -> alt.X:
    """Return the axis of a metric; shares from 0 to 100 %."""
    if metric.share:
        axis = alt.Axis(format=PERCENT, values=QUARTERS)
        return alt.X(f"{field}:Q", title=metric.title, axis=axis, scale=alt.Scale(domain=[0, 1]))
    axis = alt.Axis(format="$,~r" if metric.format.startswith("$") else ",~r", tickCount=4)
    return alt.X(f"{field}:Q", title=metric.title, axis=axis)


def accuracy_axis(field: str = "value", title: str = "accuracy", **scale: Any) -> alt.Y:  # Any: of alt.Scale
    scale = scale or {"domain": [0, 1]}
    return alt.Y(
        f"{field}:Q", title=title, axis=alt.Axis(format=PERCENT, tickCount=5), scale=alt.Scale(**scale)
    )


def pointed_at(*fields: str) -> list[alt.Tooltip]:
    """Return what is told of a mark that is pointed at: `field`, `field|format` or `field|format|name`."""
    tips = []
    for told in fields:
        field, form, name = (*told.split("|"), "", "")[:3]
        shown: Options = {"format": form} if form else {}
        plain = field.partition(":")[0]
        tips.append(alt.Tooltip(field, title=name or _TIPS.get(plain, plain.replace("_", " ")), **shown))
    return tips


# What columns are called where a mark is pointed at, if not by their name.
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
_SHARE_TIPS: Final = ("value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,")


# ── one metric, compared ─────────────────────────────────────────────────────────────────────


def _bars(metric: Metric) -> Drawn:
    base = chart().encode(y=_names())
    tips = pointed_at(
        "model:N", f"value:Q|{metric.format}|{_TITLE}", *(_SHARE_TIPS[1:] if metric.share else ["trials:Q|,"])
    )
    bars = base.mark_bar(height={"band": 0.72}, cornerRadiusEnd=2).encode(x=_measure(metric), tooltip=tips)
    intervals = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(style="interval")
        .encode(x=_measure(metric, "low"), x2="high:Q", tooltip=tips)
    )
    labels = base.mark_text(align="left", dx=6).encode(x=alt.value("width"), text="label:N")
    layers = alt.layer(bars, intervals, labels).properties(width=PANEL_WIDTH, height=alt.Step(ROW))
    return panels(layers, columns=2)


def _heat(
    metric: Metric, *, x: alt.X, y: str, tips: list[alt.Tooltip], field: str, within: Sequence[str] = ()
) -> Drawn:
    """Return a heatmap whose cells hold their figure, where there is room for it."""
    domain = alt.Scale(domain=[0, 1]) if metric.share else alt.Scale(zero=True)
    most = "1" if metric.share else "max(datum.most, 1e-12)"
    base = (
        chart()
        .transform_joinaggregate(most="max(value)", columns=f"distinct({field})", groupby=list(within))
        .transform_calculate(strength=f"datum.value / {most}")
        .encode(x=x, y=alt.Y(f"{y}:N", sort=None, title=None, axis=alt.Axis(grid=False)))
    )
    legend = alt.Legend(
        format=PERCENT if metric.share else "~s", title=metric.title, titleLimit=300, gradientLength=160
    )
    cells = base.mark_rect(cornerRadius=1).encode(
        color=alt.Color("value:Q", scale=domain, legend=legend), tooltip=tips
    )
    form = "format(100 * datum.value, '.0f')" if metric.share else "format(datum.value, '.2~s')"
    written = base.transform_filter(
        f"isValid(datum.value) && datum.columns <= {MOST_TEXTS}"
    ).transform_calculate(text=form)
    weak = written.transform_filter(f"datum.strength < {STRONG}").mark_text(style="weak")
    strong = written.transform_filter(f"datum.strength >= {STRONG}").mark_text(style="strong")
    texts = alt.Text("text:N")
    return alt.layer(cells, weak.encode(text=texts), strong.encode(text=texts))


def _lengths(metric: Metric, *, title: str) -> Drawn:
    x = alt.X("length:O", title=title, axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=False))
    tips = pointed_at(
        "panel:N||model", "task:N", "length:Q", f"value:Q|{metric.format}|{_TITLE}", "trials:Q|,"
    )
    layers = _heat(metric, x=x, y="task", tips=tips, field="length", within=["panel"])
    return panels(layers.properties(width=PANEL_WIDTH, height=alt.Step(CELL)), columns=2)


def _across(field: str, **axis: Any) -> alt.X:  # Any: of alt.Axis
    """Return an axis of names above a heatmap."""
    drawn = alt.Axis(orient="top", labelAngle=-60, labelAlign="left", labelLimit=140, grid=False, **axis)
    return alt.X(f"{field}:N", sort=None, title=None, axis=drawn)


def _task_map(metric: Metric) -> Drawn:
    tips = pointed_at("model:N", "task:N", f"value:Q|{metric.format}|{_TITLE}", "trials:Q|,")
    layers = _heat(metric, x=_across("task"), y="model", tips=tips, field="task")
    return layers.properties(width=WIDTH, height=alt.Step(CELL))


def _kinds(_: Metric) -> Drawn:
    shares = Metric(title="Share of the examined wrong answers", unit="share", over=(), under=(), share=True)
    tips = pointed_at("model:N", "kind:N", "value:Q|.1%|share", "wrong:Q|,|answers")
    layers = _heat(shares, x=_across("kind"), y="model", tips=tips, field="kind")
    return layers.properties(width=WIDTH, height=alt.Step(CELL))


def _outcomes(_: Metric) -> Drawn:
    colours = alt.Scale(domain=list(OUTCOME_COLOURS), range=list(OUTCOME_COLOURS.values()))
    legend = alt.Legend(columns=6, labelExpr="replace(datum.label, '_', ' ')", symbolType="square")
    base = chart().encode(y=_names(), order=alt.Order("place:Q"))
    share = alt.X(
        "share:Q",
        stack="zero",
        title="share of trials",
        axis=alt.Axis(format=PERCENT, values=QUARTERS),
        scale={"domain": [0, 1]},
    )
    bars = base.mark_bar(height={"band": 0.78}).encode(
        x=share,
        color=alt.Color("outcome:N", scale=colours, legend=legend),
        tooltip=pointed_at("model:N", "outcome:N", "share:Q|.2%", "trials:Q|,"),
    )
    return alt.layer(bars).properties(width=WIDTH, height=alt.Step(ROW))


# ── accuracy against something ───────────────────────────────────────────────────────────────


def series_colour() -> alt.Color:
    return alt.Color("series:N", sort=None)


def _curves(_: Metric) -> Drawn:
    base = chart().encode(color=series_colour())
    axis = alt.Axis(format=",~r", tickMinStep=1, tickCount=8)
    x = alt.X("length:Q", title="length", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
    lines = base.transform_filter("datum.kind == 'line'")
    band = lines.mark_area(opacity=0.14).encode(x=x, y=accuracy_axis("low"), y2="high:Q")
    fitted = lines.mark_line(strokeWidth=2).encode(x=x, y=accuracy_axis())
    points = base.transform_filter("datum.kind == 'point'")
    tips = pointed_at("series:N", "length:Q", *_SHARE_TIPS)
    intervals = points.mark_rule(opacity=0.55).encode(x=x, y=accuracy_axis("low"), y2="high:Q")
    dots = points.mark_point(filled=True, size=42, opacity=1).encode(x=x, y=accuracy_axis(), tooltip=tips)
    # points first: colours and their legend follow the first layer, and every curve has points
    layers = alt.layer(intervals, band, fitted, dots, *_halves(base, x))
    small = panels(layers.properties(width=PANEL_WIDTH, height=HEIGHT), columns=2)
    apart: Drawn = small.resolve_scale(x="independent")  # one task has 8 lengths, another 600
    return apart


def _halves(base: alt.Chart, x: alt.X) -> Iterator[alt.Chart]:
    """Yield the marks where curves cross 50 %: a line down to the axis, and the length beside it."""
    by_length: list[alt.SortField | dict[str, str]] = [alt.SortField("length")]
    halves = (
        base.transform_filter("datum.kind == 'half'")
        .transform_window(sort=by_length, place="row_number()", groupby=["panel"], ignorePeers=True)
        .transform_joinaggregate(halves="count()", groupby=["panel"])
        .transform_calculate(at="0.04 + 0.07 * (datum.place - 1)", foot="0")
        .encode(x=x)
    )
    yield halves.mark_rule(strokeDash=[3, 3], opacity=0.8).encode(y=accuracy_axis("foot"), y2="value:Q")
    # twice: first a border in the colour of the ground, so that lines do not run through the figures
    figures = halves.transform_filter(f"datum.halves <= {MOST_FIGURES}").encode(
        y=accuracy_axis("at"), text="label:N"
    )
    yield figures.mark_text(align="left", dx=4, style="halo").encode(color=alt.Undefined)
    yield figures.mark_text(align="left", dx=4)


def _frontier(x: alt.X, tips: list[alt.Tooltip]) -> Drawn:
    base = chart().encode(x=x)
    span: Options = {"zero": False, "nice": False, "padding": MARGIN}
    y = accuracy_axis(**span)
    front = base.transform_filter("datum.front")
    line = front.mark_line(interpolate="step-after", strokeWidth=1.5, opacity=0.6).encode(y=y)
    intervals = base.mark_rule(style="interval", opacity=0.4).encode(
        y=accuracy_axis("low", **span), y2="high:Q"
    )
    others = base.transform_filter("!datum.front").mark_point(filled=True, size=60, opacity=1, style="plain")
    best = front.mark_point(filled=True, size=90, opacity=1, style="accent")
    points = (mark.encode(y=y, tooltip=tips) for mark in (others, best))
    return alt.layer(intervals, line, *points, *_frontier_names(base, y)).properties(width=WIDTH, height=HIGH)


def _frontier_names(base: alt.Chart, y: alt.Y) -> Iterator[alt.Chart]:
    """Yield the names of the points that have room for it, on its side: `frontier`.

    Each twice: first a border in the colour of the ground, so that intervals of others do not run through it.
    """
    sides: Mapping[str, Options] = {
        "right": {"align": "left", "dx": ASIDE, "dy": BELOW},
        "left": {"align": "right", "dx": -ASIDE, "dy": -BELOW},
    }
    kinds: Sequence[tuple[str, Options]] = (
        ("datum.front", {"fontWeight": "bold", "style": "halo"}),
        ("!datum.front", {"style": "halo"}),
        ("datum.front", {"fontWeight": "bold"}),
        ("!datum.front", {"style": "note"}),
    )
    for (which, look), (side, place) in product(kinds, sides.items()):
        text = alt.MarkDef(type="text", **place, **look)
        there = base.transform_filter(f"{which} && datum.name_at == '{side}'")
        yield there.properties(mark=text).encode(y=y, text="model:N")


def _frontier_cost(_: Metric) -> Drawn:
    axis = alt.Axis(format="$,~g", tickCount=6, grid=False)
    scale = alt.Scale(type="log", nice=False, padding=PADDING["log"])
    x = alt.X("x:Q", title="cost per 1,000 trials, USD (log scale)", axis=axis, scale=scale)
    return _frontier(x, pointed_at("model:N", "cost:Q|$,.4~g|cost per 1,000 trials", *_SHARE_TIPS))


def _frontier_reasoning(_: Metric) -> Drawn:
    axis = alt.Axis(format=",~r", tickCount=6, grid=False)
    scale = alt.Scale(type="sqrt", zero=True)
    x = alt.X("x:Q", title="reasoning tokens per trial (square-root scale)", axis=axis, scale=scale)
    return _frontier(x, pointed_at("model:N", "x:Q|,.0f|reasoning tokens per trial", *_SHARE_TIPS))


def _digit_errors(_: Metric) -> Drawn:
    x = alt.X("position:O", title="position of the digit", axis=alt.Axis(labelAngle=0, labelOverlap=True))
    base = chart().encode(x=x, color=series_colour())
    y: Options = {"title": "share of wrong answers with a wrong digit here"}
    tips = pointed_at("series:N", "position:Q", "value:Q|.1%|share wrong here", "errors:Q|,", "answers:Q|,")
    lines = base.mark_line(strokeWidth=1.5, opacity=0.7).encode(y=accuracy_axis(**y))
    intervals = base.mark_rule(opacity=0.45).encode(y=accuracy_axis("low", **y), y2="high:Q")
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(y=accuracy_axis(**y), tooltip=tips)
    layers = alt.layer(lines, intervals, dots).properties(width=PANEL_WIDTH, height=HEIGHT)
    return panels(layers, columns=2)


def _pairs(_: Metric) -> Drawn:
    points = "datum.value ? format(100 * datum.value, '+.3~r') : '0'"
    axis = alt.Axis(labelExpr=points, tickCount=5)
    title = "lead of the best model in accuracy, percentage points (same problems)"
    base = chart()
    line, under = (_names("other").bandPosition(place) for place in (0.3, 0.72))
    x = alt.X("difference:Q", title=title, axis=axis, scale=alt.Scale(zero=True, nice=True))
    tips = pointed_at(
        *("pair:N", "difference:Q|+.2%", "low:Q|+.2%", "high:Q|+.2%"), "p:Q|.2~g", "tied:N", "problems:Q|,"
    )
    zero = once().encode(x=alt.datum(0))
    tied, apart = base.transform_filter("datum.tied"), base.transform_filter("!datum.tied")
    layers = [
        mark
        for which, style in ((tied, "plain"), (apart, "accent"))
        for mark in (
            which.mark_rule(style=style, strokeWidth=2).encode(
                x=alt.X("low:Q", title=title), x2="high:Q", y=line
            ),
            which.mark_point(filled=True, size=70, opacity=1, style=style).encode(x=x, y=line, tooltip=tips),
        )
    ]
    said = base.transform_calculate(
        text="format(100 * datum.difference, '+.1f') + (datum.tied ? ' points, tied' : ' points')"
    )
    # under the line and from the left: beside it there is no room where names are long
    placed = said.encode(x=alt.value(0), y=under, text="text:N")
    labels = (placed.mark_text(align="left", dx=4, style="halo"), placed.mark_text(align="left", dx=4))
    return alt.layer(zero, *layers, *labels).properties(width=WIDTH, height=alt.Step(2 * ROW))


# ── over time ────────────────────────────────────────────────────────────────────────────────


def _time() -> alt.X:
    clock, day = "%H:%M", "%d %b"
    forms = dict.fromkeys(("hours", "minutes"), clock) | dict.fromkeys(("day", "date", "month"), day)
    forms |= dict.fromkeys(("seconds", "milliseconds"), "%H:%M:%S")
    axis = alt.Axis(grid=False, labelOverlap="greedy", labelSeparation=8, tickCount=6, format=forms)
    return alt.X("at:T", title="time (UTC)", axis=axis, scale=alt.Scale(type="utc"))


def _latency(_: Metric) -> Drawn:
    base = chart().encode(x=_time(), color=series_colour(), detail="part:N")
    axis = alt.Axis(format=",~g", tickCount=5)
    scale = alt.Scale(type="log", nice=True)
    low = alt.Y(
        "p50_s:Q", title="latency, seconds (log scale): median, shaded to p95", axis=axis, scale=scale
    )
    high = alt.Y("p95_s:Q", axis=axis, scale=scale)
    tips = pointed_at("series:N", "at:T|%H:%M", "p50_s:Q|,.3~r", "p95_s:Q|,.3~r", "calls:Q|,")
    band = base.mark_area(opacity=0.13).encode(y=low, y2="p95_s:Q")
    tails = base.mark_line(strokeWidth=1, opacity=0.6).encode(y=high)
    medians = base.mark_line(strokeWidth=2, point={"size": 16}).encode(y=low, tooltip=tips)
    return panels(alt.layer(band, tails, medians).properties(width=PANEL_WIDTH, height=200), columns=2)


def _throughput(_: Metric) -> Drawn:
    axis = alt.Axis(format=",~r", tickCount=5)
    tips = pointed_at("series:N", "at:T|%H:%M", "calls_per_minute:Q|,.1f", "tokens_per_minute:Q|,.0f")
    lines = (
        chart()
        .mark_line(strokeWidth=2, point={"size": 16})
        .encode(
            x=_time(),
            y=alt.Y("calls_per_minute:Q", title="answered calls per minute", axis=axis),
            color=series_colour(),
            detail="part:N",
            tooltip=tips,
        )
    )
    return panels(alt.layer(lines).properties(width=PANEL_WIDTH, height=200), columns=2)


def _quota(_: Metric) -> Drawn:
    scale: Options = {"domainMin": 0, "nice": True}
    labels = alt.Legend(labelExpr="replace(datum.label, '_', ' ')")
    base = chart().encode(x=_time(), color=alt.Color("series:N", sort=None, legend=labels), detail="part:N")
    tips = pointed_at("series:N", "at:T|%H:%M", "used:Q|.1%", "refused:Q|,")
    lines = base.mark_line(strokeWidth=2, point={"size": 16}).encode(
        y=accuracy_axis("used", "share of the limit used", **scale), tooltip=tips
    )
    layers = alt.layer(once().encode(y=alt.datum(1)), lines)
    return panels(layers.properties(width=PANEL_WIDTH, height=180), columns=2)


_DRAWN: Final[Mapping[str, Callable[[Metric], Drawn]]] = {
    "bars": _bars,
    "length_map": partial(_lengths, title="length"),
    "task_map": _task_map,
    "depth_map": partial(_lengths, title="depth (digits of each operand)"),
    "curves": _curves,
    "frontier_cost": _frontier_cost,
    "frontier_reasoning": _frontier_reasoning,
    "latency": _latency,
    "throughput": _throughput,
    "quota": _quota,
    "outcomes": _outcomes,
    "digit_errors": _digit_errors,
    "kinds": _kinds,
    "pairs": _pairs,
}
