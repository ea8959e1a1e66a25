"""The charts of calls: rows and specifications of times, throughput, failures and the use of limits.

`asked` is the place of the entrant in `asked_in`; None where a row is of several entrants.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Final

import altair as alt

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, Entrant, short_names
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
from asyncbench.page.charts.styling import Row
from asyncbench.reports.minutes import TIMED, failed_calls, minutes_of, times_of_calls
from asyncbench.reports.quota import limits_over_time

LULL: Final = 1.5  # times a bin: who begins again later than that after the last one, paused
MOST_LINES: Final = 6  # that people follow in one panel
LEAST_POINTS: Final = 3  # of a line: fewer are no course of anything


def times_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return percentiles of how long answered calls took, seconds."""
    places = roster.entrant_places
    return [
        {
            "asked": places[times.entrant],
            "quantity": quantity,
            "panel": quantity,
            **dict(zip(("p50", "p90", "p95", "p99"), times.percentiles[quantity], strict=True)),
            "calls": times.known[quantity],
            "answered": times.answered,
        }
        for quantity in TIMED
        for times in sorted(times_of_calls(views), key=lambda times: places.get(times.entrant, -1))
        if quantity in times.percentiles and times.entrant in places
    ]


def minute_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return latency and throughput of answered calls over time; none where no latency is known.

    A recording knows when trials were finished, and nothing of calls.
    """
    places = roster.entrant_places
    minutes = [minute for minute in minutes_of(views) if minute.entrant in places]
    if not any(minute.p50_s is not None for minute in minutes):
        return []
    parts = _parts((minute.at, minute.seconds) for minute in minutes)
    panels = _panels(roster, {minute.entrant for minute in minutes})
    rows = [
        {
            "asked": places[minute.entrant],
            "panel": panels[minute.entrant],
            "at": minute.at,
            "seconds": minute.seconds,
            "part": parts[minute.at],
            "calls": minute.calls,
            "p50_s": minute.p50_s,
            "p95_s": minute.p95_s,
            "calls_per_minute": 60 * minute.calls / minute.seconds,
            "tokens_per_minute": None
            if minute.output_tokens is None
            else 60 * minute.output_tokens / minute.seconds,
        }
        for minute in minutes
    ]
    return _enough(rows, ("asked",))


def failure_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return calls without an answer over time, by how they ended."""
    places = roster.entrant_places
    failures = [failed for failed in failed_calls(views) if failed.entrant in places]
    panels = _panels(roster, {failed.entrant for failed in failures})
    rows = [
        {
            "asked": places[failed.entrant],
            "panel": panels[failed.entrant],
            "at": failed.at,
            "seconds": failed.seconds,
            "status": failed.status,
            "calls": failed.calls,
            "calls_per_minute": 60 * failed.calls / failed.seconds,
        }
        for failed in failures
    ]
    return rows if len({row["at"] for row in rows}) >= LEAST_POINTS else []


def limit_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return how much of each lane's limits was used over time, and what they are."""
    uses = list(limits_over_time(views))
    parts = _parts((at, seconds) for at, seconds, _ in uses)
    models = Counter(entrant.model for entrant in roster.entrants)
    alone = {who.model: n for n, who in enumerate(roster.entrants) if models[who.model] == 1}
    lanes = dict.fromkeys(use.lane for _, _, use in uses)
    ours = lanes.keys() <= alone.keys()
    shown = {lane: roster.entrants[alone[lane]].short for lane in lanes} if ours else short_names(lanes)
    rows = [
        {
            "asked": alone.get(use.lane),
            "panel": shown[use.lane],
            "lane": shown[use.lane],
            "limit": limit,
            "at": at,
            "seconds": seconds,
            "part": parts[at],
            "used": share,
            "per_minute": 60 * use.allowed[limit] / use.seconds if use.seconds else None,
            "refused": use.refused,
        }
        for at, seconds, use in uses
        for limit, share in use.shares.items()
    ]
    return _enough(rows, ("lane", "limit"))


def _panels(roster: Asked, entrants: Collection[Entrant]) -> dict[Entrant, str]:
    """Return in which panel each is: all in one, or where that is too many each in its own."""
    crowded = len(entrants) > MOST_LINES
    return {entrant.key: entrant.short if crowded else "" for entrant in roster.entrants}


def _enough(rows: Sequence[Row], keys: tuple[str, ...]) -> list[Row]:
    """Return the rows of lines with `LEAST_POINTS` or more."""
    points = Counter(tuple(row[key] for key in keys) for row in rows)
    return [row for row in rows if points[tuple(row[key] for key in keys)] >= LEAST_POINTS]


def _parts(times: Iterable[tuple[int, float]]) -> dict[int, int]:
    """Return which part of the work each time is in: where nobody did anything for a while, the next begins.

    Args:
        times: when each stretch begins, in milliseconds, and its length in seconds.
    """
    parts, part, end = dict[int, int](), 0, inf
    for at, seconds in sorted(set(times)):
        part += at > end
        parts[at], end = part, at + 1000 * LULL * seconds
    return parts


# ── specifications ───────────────────────────────────────────────────────────────────────────────
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
