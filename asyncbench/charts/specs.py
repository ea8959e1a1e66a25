"""The charts as Vega-Lite specifications over data named `rows`; the columns of each are told in `catalogue`.

They hold no title, no data and no theme, so that the page and pictures can share them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import altair as alt

from asyncbench.charts.frontier import ASIDE, BELOW, HEIGHT as HIGH, MARGIN, PADDING
from asyncbench.charts.themes import OUTCOME_COLOURS, STRONG
from asyncbench.results import Metric

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


TITLE: Final = "{title}"  # where the title of a metric stands

ROWS: Final = alt.NamedData(name="rows")  # one object: facets are of layers over the same data


def chart() -> alt.Chart:
    return alt.Chart(ROWS)


def once() -> alt.Chart:
    """Return a line of reference, drawn once however many rows there are."""
    line: alt.Chart = chart().transform_aggregate(rows="count()").mark_rule(style="reference")
    return line


def panels(layers: Drawn, *, columns: int, field: str = "panel") -> Drawn:
    """Return small multiples, one for each value of a field, in the order of the rows."""
    by_row = alt.EncodingSortField(field="row", op="min")
    return layers.facet(
        facet=alt.Facet(f"{field}:N", sort=by_row, title=None, header=alt.Header(title=None)),
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


def _across(field: str, **axis: Any) -> alt.X:  # Any: of alt.Axis
    """Return an axis of names above a heatmap."""
    drawn = alt.Axis(orient="top", labelAngle=-60, labelAlign="left", labelLimit=140, grid=False, **axis)
    return alt.X(f"{field}:N", sort=None, title=None, axis=drawn)


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


OTHER_CHARTS: Final[Mapping[str, Callable[[Metric], Drawn]]] = {
    "frontier_cost": _frontier_cost,
    "frontier_reasoning": _frontier_reasoning,
    "latency": _latency,
    "throughput": _throughput,
    "quota": _quota,
    "outcomes": _outcomes,
    "digit_errors": _digit_errors,
    "kinds": _kinds,
}
