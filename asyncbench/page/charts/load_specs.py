"""The charts of a load as Vega-Lite specifications: times, throughput, accuracy and dollars over rate."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Final

import altair as alt

from asyncbench.page.charts.specs import (
    PANEL_WIDTH,
    WIDTH,
    Drawn,
    Options,
    Spec,
    accuracy_axis,
    chart,
    panels,
    series_colour,
    tooltips,
)

ASKED: Final = "asked"  # the parameter with the rates that were asked: whoever draws rows fills it in
HEIGHT: Final = 220  # pixels of a panel
RATE: Final = "rate asked for, calls per second (log scale)"
SECONDS: Final = "seconds since a call was due (log scale)"
_STEP: Final = ("step:N", "calls:Q|,|calls due")
_ENDS: Final = ("value:Q|,.3~r|seconds", "low:Q|,.3~r", "high:Q|,.3~r")


def load_spec(name: str) -> Spec:
    """Return the specification of a chart of a load."""
    return deepcopy(_built(name))


@cache
def _built(name: str) -> Spec:
    spec: Spec = _DRAWN[name]().to_dict()
    spec.pop("config", None)  # altair's own theme
    return spec | {"params": [{"name": ASKED, "value": []}]}


def _log(field: str, title: str) -> alt.X:
    ticks: Options = {"values": alt.ExprRef(expr=ASKED)} if title == RATE else {"tickCount": 5}
    axis = alt.Axis(format=",~g", grid=False, labelOverlap="greedy", **ticks)
    return alt.X(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(type="log", nice=False, padding=10))


def _percentile_lines(x: alt.X) -> Drawn:
    """Return lines of percentiles with their intervals; what is no percentile is a gap."""
    base = chart().encode(x=x, color=series_colour())
    axis = alt.Axis(format=",~g", tickCount=5)
    scale = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y("value:Q", title=SECONDS, axis=axis, scale=scale)
    tips = tooltips("model:N", *_STEP, *_ENDS, "per_s:Q|,.3~r|answers within the step, per second")
    points = base.mark_point(filled=True, size=42, opacity=1).encode(y=y, tooltip=tips)
    lines = base.mark_line(strokeWidth=2).encode(y=y, detail="part:N", order=alt.Order("rate:Q"))
    known = base.transform_filter("isValid(datum.low)")
    low = alt.Y("low:Q", title=SECONDS, axis=axis, scale=scale)
    intervals = known.mark_rule(opacity=0.5).encode(y=low, y2="high:Q")
    slo = _slo(alt.Y("slo:Q", title=SECONDS, axis=axis, scale=scale))
    return panels(
        alt.layer(points, lines, intervals, slo).properties(width=PANEL_WIDTH, height=HEIGHT), columns=2
    )


def _slo(place: alt.X | alt.Y) -> alt.Chart:
    """Return the dashed line of what the SLO promises."""
    known = chart().transform_filter("isValid(datum.slo)").mark_rule(style="reference")
    line: alt.Chart = known.encode(place, tooltip=tooltips("slo:Q|,.3~r|SLO, seconds"))
    return line


def _times() -> Drawn:
    return _percentile_lines(_log("rate", RATE))


def _knee() -> Drawn:
    return _percentile_lines(_log("per_s", "answers within the step, per second (log scale)"))


def _rates() -> Drawn:
    """Return answers over offered rate; the dashed line is where every call that was due is answered."""
    axis = alt.Axis(format=",~r", tickCount=5)
    x = alt.X("offered:Q", title="calls per second that were due", axis=axis, scale=alt.Scale(zero=True))
    y = alt.Y("value:Q", title="per second", axis=axis, scale=alt.Scale(zero=True))
    tips = tooltips("series:N", *_STEP, "offered:Q|,.3~r|due per second", "value:Q|,.4~r|per second")
    base = chart().transform_filter("datum.kind == 'measured'").encode(x=x, y=y, color=series_colour())
    points = base.mark_point(filled=True, size=42, opacity=1).encode(tooltip=tips)
    lines = base.mark_line(strokeWidth=2).encode(order=alt.Order("offered:Q"))
    both = chart().transform_filter("datum.kind == 'all'")
    diagonal = both.mark_line(style="reference").encode(x=x, y=y)
    layers = alt.layer(points, lines, diagonal).properties(width=PANEL_WIDTH, height=HEIGHT)
    apart: Drawn = panels(layers, columns=2).resolve_scale(y="independent")  # of calls, or of tokens
    return apart


def _cdf() -> Drawn:
    lines = (
        chart()
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(
            x=_log("seconds", SECONDS),
            y=accuracy_axis(title="share of all calls that were due"),
            color=series_colour(),
            tooltip=tooltips("series:N||step", "seconds:Q|,.3~r", "value:Q|.1%|share", "calls:Q|,|calls due"),
        )
    )
    promised = _slo(_log("slo", SECONDS))
    share = _slo(accuracy_axis("share", "share of all calls that were due"))
    layers = alt.layer(lines, promised, share).properties(width=PANEL_WIDTH, height=HEIGHT)
    apart: Drawn = panels(layers, columns=2).resolve_scale(x="independent")
    return apart


def _accuracy() -> Drawn:
    base = chart().encode(x=_log("x", RATE), color=series_colour())
    span = {"zero": False, "nice": True}
    tips = tooltips(
        "series:N", "step:N", "value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,|answers"
    )
    y = accuracy_axis("value", "accuracy of answers", **span)
    points = base.mark_point(filled=True, size=55, opacity=1).encode(y=y, tooltip=tips)
    lines = base.mark_line(strokeWidth=2, opacity=0.7).encode(y=y)
    intervals = base.mark_rule(opacity=0.55).encode(
        y=accuracy_axis("low", "accuracy of answers", **span), y2="high:Q"
    )
    return alt.layer(points, lines, intervals).properties(width=WIDTH, height=HEIGHT)


def _cost() -> Drawn:
    axis = alt.Axis(format="$,~g", tickCount=5)
    y = alt.Y("value:Q", title="USD per 1,000 answers", axis=axis, scale=alt.Scale(zero=True))
    base = chart().encode(x=_log("rate", RATE), y=y, color=series_colour())
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        tooltip=tooltips("series:N", *_STEP, "value:Q|$,.4~g|USD per 1,000 answers")
    )
    return alt.layer(points, base.mark_line(strokeWidth=2)).properties(width=WIDTH, height=HEIGHT)


_DRAWN: Final[Mapping[str, Callable[[], Drawn]]] = {
    "load_times": _times,
    "load_rates": _rates,
    "load_knee": _knee,
    "load_cdf": _cdf,
    "load_accuracy": _accuracy,
    "load_cost": _cost,
}
