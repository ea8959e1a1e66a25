"""The charts of calls as Vega-Lite specifications: times, throughput, failures, limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import altair as alt

from asyncbench.page.charts.specs import (
    PANEL_WIDTH,
    ROW,
    Drawn,
    Options,
    chart,
    panels,
    reference_line,
    tooltips,
)

# Lines have their names at their ends, one under the other where they would meet.


HEIGHT: Final = 200  # pixels of a panel
LINE: Final = 13  # of a name at the end of a line
GAP: Final = 6  # from the end of a line to its name
MARGIN: Final = 10  # above and below on a scale of logs
MOST_DOTS: Final = 60  # of a line: more hide it
ENTRANT_COLOUR: Final = alt.Color("colour:N", scale=None, legend=None)
_CALLS: Final = "calls:Q|,|answered calls"


def _times() -> Drawn:
    """Return a row for each entrant: a line from p50 to p99, and dots at p50, p95 and p99."""
    x = {name: _seconds(name) for name in ("p50", "p90", "p95", "p99")}
    named = alt.Y("model:N", sort=None, title=None, axis=alt.Axis(grid=False, minExtent=40))
    base = chart().encode(y=named, color=ENTRANT_COLOUR)
    tips = tooltips(
        "model:N", "panel:N||time", *(f"{name}:Q|,.3~r|{name}, s" for name in x), "calls:Q|,", "answered:Q|,"
    )
    line = base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=x["p50"], x2="p99:Q", tooltip=tips)
    median = base.mark_point(filled=True, size=75, opacity=1).encode(x=x["p50"], tooltip=tips)
    later = [
        base.mark_tick(thickness=2, size=size, opacity=1).encode(x=x[name], tooltip=tips)
        for name, size in (("p95", 9), ("p99", 14))
    ]
    layers = alt.layer(line, *later, median).properties(width=PANEL_WIDTH, height=alt.Step(ROW))
    apart: Drawn = panels(layers, columns=2).resolve_scale(x="independent")
    return apart


def _seconds(field: str) -> alt.X:
    axis = alt.Axis(format=",~g", tickCount=5, labelOverlap="greedy")
    title = "seconds (log scale)"
    scale = alt.Scale(type="symlog", constant=0.001, nice=False, zero=False, padding=8)
    return alt.X(f"{field}:Q", title=title, axis=axis, scale=scale)


def time_axis() -> alt.X:
    """Return the axis of time, UTC, whose labels are as fine as the span."""
    clock, day = "%H:%M", "%d %b"
    forms = dict.fromkeys(("hours", "minutes"), clock) | dict.fromkeys(("day", "date", "month"), day)
    forms |= dict.fromkeys(("seconds", "milliseconds"), "%H:%M:%S")
    axis = alt.Axis(grid=False, labelOverlap="greedy", labelSeparation=8, tickCount=6, format=forms)
    return alt.X("at:T", title="time (UTC)", axis=axis, scale=alt.Scale(type="utc"))


def _latency() -> Drawn:
    """Return medians over time; up to the 95th percentile is shaded where a panel has one line."""
    base = chart().encode(x=time_axis(), color=ENTRANT_COLOUR, detail=["model:N", "part:N"])
    axis = alt.Axis(format=",~g", tickCount=5)
    scale = alt.Scale(type="log", nice=False, padding=MARGIN)
    y = alt.Y("p50_s:Q", title="latency, seconds (log scale)", axis=axis, scale=scale)
    tips = tooltips("model:N", "at:T|%d %b %H:%M:%S", "p50_s:Q|,.3~r", "p95_s:Q|,.3~r", _CALLS)
    band = base.transform_filter("datum.lines == 1").mark_area(opacity=0.18).encode(y=y, y2="upper:Q")
    along = "log(datum.most / datum.p50_s) / log(datum.most / datum.least)"
    inner = HEIGHT - 2 * MARGIN
    place = f"{MARGIN} + {inner} * (datum.most > datum.least ? {along} : 0.5)"
    return (
        _lines(base, y, tips, place, under=[band])
        .transform_calculate(upper="datum.lines > 1 ? datum.p50_s : datum.p95_s")
        .transform_joinaggregate(least="min(p50_s)", most="max(upper)")
    )


def _lines(
    base: alt.Chart, y: alt.Y, tips: list[alt.Tooltip], place: str, under: Sequence[alt.Chart] = ()
) -> Drawn:
    """Return a panel of lines with their names at their ends, and dots where these are few or alone."""
    lines = base.mark_line(strokeWidth=1.6).encode(y=y)
    dots = base.mark_point(
        filled=True,
        size=22,
        shape="circle",
        opacity=alt.ExprRef(expr=f"datum.points > {MOST_DOTS} && datum.alone > 1 ? 0 : 1"),
    ).encode(y=y, tooltip=tips)
    layers = alt.layer(*under, lines, dots, end_names(place, by="at"))
    small = panels(layers.properties(width=PANEL_WIDTH, height=HEIGHT), columns=2)
    return (
        small.transform_joinaggregate(lines="distinct(model)", groupby=["panel"])
        .transform_joinaggregate(points="count()", groupby=["panel", "model"])
        .transform_joinaggregate(alone="count()", groupby=["panel", "model", "part"])
    )


def _throughput() -> Drawn:
    tips = tooltips("model:N", "at:T|%d %b %H:%M:%S", "calls_per_minute:Q|,.1f", _CALLS)
    return _from_zero("calls_per_minute", "answered calls per minute", tips)


def _tokens() -> Drawn:
    tips = tooltips("model:N", "at:T|%d %b %H:%M:%S", "tokens_per_minute:Q|,.0f", _CALLS)
    return _from_zero("tokens_per_minute", "output tokens per minute", tips)


def _from_zero(field: str, title: str, tips: list[alt.Tooltip]) -> Drawn:
    y = alt.Y(
        f"{field}:Q",
        title=title,
        axis=alt.Axis(format=",~s", tickCount=5),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    base = chart().encode(x=time_axis(), color=ENTRANT_COLOUR, detail=["model:N", "part:N"])
    place = f"datum.most ? {HEIGHT} * (1 - datum.{field} / datum.most) : {HEIGHT}"
    return _lines(base, y, tips, place).transform_joinaggregate(most=f"max({field})")


def _failures() -> Drawn:
    y = alt.Y("from:Q", title="without an answer, per minute", axis=alt.Axis(format=",~r", tickCount=5))
    by_status: list[alt.SortField | dict[str, str]] = [alt.SortField("status")]
    bars = (
        chart()
        .mark_rect()
        .transform_stack(
            stack="calls_per_minute", as_=["from", "to"], groupby=["panel", "at"], sort=by_status
        )
        .transform_calculate(until="datum.at + 1000 * datum.seconds")
        .encode(
            x=time_axis(),
            x2="until:T",
            y=y,
            y2="to:Q",
            color=alt.Color("status:N", sort="ascending", legend=alt.Legend(labelExpr=_WORDS)),
            tooltip=tooltips("model:N", "status:N", "at:T|%d %b %H:%M:%S", "calls:Q|,"),
        )
    )
    return panels(alt.layer(bars).properties(width=PANEL_WIDTH, height=HEIGHT), columns=2)


_WORDS: Final = "replace(datum.label, regexp('_', 'g'), ' ')"


def _quota() -> Drawn:
    names = alt.Color("limit:N", sort=None, legend=alt.Legend(labelExpr=_WORDS))
    base = chart().encode(x=time_axis(), color=names, detail=["limit:N", "part:N"])
    tips = tooltips(
        *("panel:N||lane", "limit:N", "at:T|%d %b %H:%M", "used:Q|.1%"),
        *("per_minute:Q|,.0f|limit, a minute", "refused:Q|,|calls refused"),
    )
    axis = alt.Axis(format=".0%", tickCount=5)
    scale: Options = {"domainMin": 0, "nice": True}
    y = alt.Y("used:Q", title="share of the limit used", axis=axis, scale=alt.Scale(**scale))
    lines = base.mark_line(strokeWidth=2, point={"size": 16}).encode(y=y, tooltip=tips)
    layers = alt.layer(reference_line().encode(y=alt.datum(1)), lines)
    return panels(layers.properties(width=PANEL_WIDTH, height=HEIGHT), columns=2)


def end_names(place: str, *, by: str, height: int = HEIGHT) -> alt.Chart:
    """Return the names of lines at their ends, where a panel has several; below each other, never on another.

    Args:
        place: an expression of the pixels from the top at which a line ends, of its last row's columns.
        by: the column along which lines run.
        height: pixels of a panel.
    """
    ends: alt.Chart = (
        chart()
        .transform_joinaggregate(own=f"max({by})", groupby=["panel", "model"])
        .transform_filter(f"datum.{by} == datum.own && datum.lines > 1")
        .transform_calculate(place=place)
        .transform_window(
            nth="row_number()", sort=[alt.SortField("place")], groupby=["panel"], ignorePeers=True
        )
    )
    ends = _pushed(ends, "datum.place", "max", [None, 0])
    ends = _pushed(ends, f"min(datum.place, {height})", "min", [0, None])
    names: alt.Chart = ends.mark_text(align="left", baseline="middle", dx=GAP, clip=False).encode(
        x=alt.value("width"),
        y=alt.Y("place:Q", scale=None, axis=None),
        color=ENTRANT_COLOUR,
        text="model:N",
    )
    return names


def _pushed(ends: alt.Chart, place: str, op: str, frame: list[int | None]) -> alt.Chart:
    """Return names moved apart: each below those above it, or up again above those below it.

    A running maximum of `place - n × LINE` is what the names above push name n down to; likewise upwards.
    """
    free: alt.Chart = (
        ends.transform_calculate(pushed=f"{place} - {LINE} * datum.nth")
        .transform_window(
            free=f"{op}(pushed)",
            sort=[alt.SortField("nth")],
            groupby=["panel"],
            frame=frame,
            ignorePeers=True,
        )
        .transform_calculate(place=f"datum.free + {LINE} * datum.nth")
    )
    return free


TIME_CHARTS: Final[Mapping[str, Callable[[], Drawn]]] = {
    "times": _times,
    "latency": _latency,
    "throughput": _throughput,
    "tokens": _tokens,
    "failures": _failures,
    "quota": _quota,
}
