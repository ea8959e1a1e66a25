"""The charts of a load: times, throughput, accuracy and dollars over rate."""

from collections.abc import Mapping
from typing import Final

from asyncbench.page.charts.chart import (
    HIGH,
    LOW,
    SERIES,
    SHARE_TIPS,
    Chart,
    Spec,
    accuracy_axis,
    field,
    mark,
    panels,
    tooltips,
    view,
)

HEIGHT: Final = 220  # pixels of a panel
ASKED: Final = "asked"  # the parameter with the rates that were asked: whoever draws rows fills it in
RATE: Final = "rate asked for, calls per second (log scale)"
SECONDS: Final = "seconds since a call was due (log scale)"

_RATES_ASKED: Final[Spec] = {"params": [{"name": ASKED, "value": []}]}
_STEP_TIPS: Final = ("step:N", "calls:Q|,|calls due")
_LINE: Final = {"strokeWidth": 2}
_DOT: Final = {"filled": True, "size": 42, "opacity": 1}
_LARGE_DOT: Final = {"filled": True, "size": 55, "opacity": 1}


def _log(column: str, title: str) -> Spec:
    ticks: Spec = {"values": {"expr": ASKED}} if title == RATE else {"tickCount": 5}
    axis = {"format": ",~g", "grid": False, "labelOverlap": "greedy", **ticks}
    return field(f"{column}:Q", title=title, axis=axis, scale={"type": "log", "nice": False, "padding": 10})


def _seconds(column: str) -> Spec:
    axis = {"format": ",~g", "tickCount": 5}
    return field(f"{column}:Q", title=SECONDS, axis=axis, scale={"type": "log", "nice": False, "padding": 8})


def _from_zero(column: str, title: str, form: str = ",~r") -> Spec:
    return field(f"{column}:Q", title=title, axis={"format": form, "tickCount": 5}, scale={"zero": True})


def _slo(**place: Spec) -> Spec:
    """Return the dashed line of what the SLO promises."""
    tips = tooltips("slo:Q|,.3~r|SLO, seconds")
    return mark("rule", {"style": "reference"}, {"filter": "isValid(datum.slo)"}, tooltip=tips, **place)


def _percentile_lines(x: Spec) -> Spec:
    """Return lines of percentiles with their intervals; what is no percentile is a gap."""
    tips = tooltips(
        *("model:N", *_STEP_TIPS, "value:Q|,.3~r|seconds", "low:Q|,.3~r", "high:Q|,.3~r"),
        "per_s:Q|,.3~r|answers within the step, per second",
    )
    in_order = {"detail": field("part:N"), "order": field("rate:Q")}
    known = {"filter": "isValid(datum.low)"}
    return panels(
        mark("point", _DOT, x=x, y=_seconds("value"), color=SERIES, tooltip=tips),
        mark("line", _LINE, x=x, y=_seconds("value"), color=SERIES, **in_order),
        mark("rule", {"opacity": 0.5}, known, x=x, y=_seconds("low"), y2=field("high"), color=SERIES),
        _slo(y=_seconds("slo")),
        height=HEIGHT,
    )


_OVER_OFFERED: Final = {
    "x": _from_zero("offered", "calls per second that were due"),
    "y": _from_zero("value", "per second"),
}
_MEASURED: Final = {"filter": "datum.kind == 'measured'"}

# On the dashed line every call that was due is answered.
_RATES: Final = panels(
    mark(
        "point",
        _DOT,
        _MEASURED,
        color=SERIES,
        tooltip=tooltips(
            *("series:N", *_STEP_TIPS, "offered:Q|,.3~r|due per second", "value:Q|,.4~r|per second")
        ),
        **_OVER_OFFERED,
    ),
    mark("line", _LINE, _MEASURED, color=SERIES, order=field("offered:Q"), **_OVER_OFFERED),
    mark("line", {"style": "reference"}, {"filter": "datum.kind == 'all'"}, **_OVER_OFFERED),
    height=HEIGHT,
    apart=("y",),  # of calls, or of tokens
)

_OF_ALL: Final = "share of all calls that were due"
_CDF: Final = panels(
    mark(
        "line",
        {**_LINE, "interpolate": "step-after"},
        x=_log("seconds", SECONDS),
        y=accuracy_axis(title=_OF_ALL),
        color=SERIES,
        tooltip=tooltips("series:N||step", "seconds:Q|,.3~r", "value:Q|.1%|share", "calls:Q|,|calls due"),
    ),
    _slo(x=_log("slo", SECONDS)),
    _slo(y=accuracy_axis("share", _OF_ALL)),
    height=HEIGHT,
    apart=("x",),
)


def _accuracy(column: str) -> Spec:
    return accuracy_axis(column, "accuracy of answers", zero=False, nice=True)


_AT_RATES: Final = {"x": _log("x", RATE), "color": SERIES}
_ACCURACY: Final = view(
    mark(
        "point",
        _LARGE_DOT,
        y=_accuracy("value"),
        tooltip=tooltips("series:N", "step:N", *SHARE_TIPS[:-1], "trials:Q|,|answers"),
        **_AT_RATES,
    ),
    mark("line", {**_LINE, "opacity": 0.7}, y=_accuracy("value"), **_AT_RATES),
    mark("rule", {"opacity": 0.55}, y=_accuracy("low"), y2=field("high"), **_AT_RATES),
    height=HEIGHT,
)

_OF_COST: Final = {
    "x": _log("rate", RATE),
    "y": _from_zero("value", "USD per 1,000 answers", "$,~g"),
    "color": SERIES,
}
_COST_TIPS: Final = tooltips("series:N", *_STEP_TIPS, "value:Q|$,.4~g|USD per 1,000 answers")
_COST: Final = view(
    mark("point", _LARGE_DOT, tooltip=_COST_TIPS, **_OF_COST),
    mark("line", _LINE, **_OF_COST),
    height=HEIGHT,
)


_MODEL: Final = "the model as it is called, with run and condition where it has several"
_PLACE: Final = {"panel": "one of several pictures", "series": "one of its colours"}
_NO_STEPS: Final = "No step of a load counts here. `asyncbench load` measures them."
_STEP: Final = {
    "step": "the rate with its pattern",
    "rate": "calls a second that were asked for; closed: callers",
    "offered": "calls a second that were due; closed: callers",
    "calls": "calls that were due",
}
_PERCENTILE: Final = {
    **_PLACE,
    "model": _MODEL,
    "quantity": "TTFT or latency",
    **_STEP,
    "per_s": "answers that came within the step, a second",
    "part": "counts up where the percentile of a rate falls on a call without an answer: lines end there",
    "value": "the percentile, seconds from when calls were due",
    "low": LOW,
    "high": f"{HIGH}; unknown where it falls on a call without an answer",
    "slo": "what the SLO promises, seconds; null: nothing",
}

LOAD_CHARTS: Final[Mapping[str, Chart]] = {
    "load_times": Chart(
        title="Times over rate",
        purpose="Up to which rate calls come in time. Lines end where too many lack an answer. Dashed: SLO.",
        nothing=_NO_STEPS,
        columns=_PERCENTILE,
        spec=_RATES_ASKED | _percentile_lines(_log("rate", RATE)),
        paired=True,
        load=True,
    ),
    "load_rates": Chart(
        title="Answers over rate",
        purpose="How much of a rate is answered. On the dashed line, every call that was due is.",
        nothing=_NO_STEPS,
        columns={
            **_PLACE,
            **_STEP,
            "value": "a second",
            "kind": "measured, or all: an end of the dashed line",
        },
        spec=_RATES_ASKED | _RATES,
        load=True,
    ),
    "load_knee": Chart(
        title="Latency over throughput",
        purpose="How many answers a second can be had, and at which latency. Dashed: the SLO.",
        nothing=_NO_STEPS,
        columns=_PERCENTILE,
        spec=_RATES_ASKED
        | _percentile_lines(_log("per_s", "answers within the step, per second (log scale)")),
        load=True,
    ),
    "load_cdf": Chart(
        title="How long calls took",
        purpose="Which share of the calls was answered within which time. Unanswered: never. Dashed: SLO.",
        nothing=_NO_STEPS,
        columns={
            **_PLACE,
            "calls": "calls that were due",
            "seconds": "from when they were due",
            "value": "share of all calls, [0, 1]",
            "slo": "what the SLO promises, seconds; in the first row of a curve",
            "share": "of the calls, as the SLO promises; likewise",
        },
        spec=_RATES_ASKED | _CDF,
        paired=True,
        load=True,
    ),
    "load_accuracy": Chart(
        title="Accuracy over rate",
        purpose="Whether answers stay right under load. Lines: 95 % CI.",
        nothing=_NO_STEPS,
        columns={
            "series": _MODEL,
            "step": _STEP["step"],
            "rate": _STEP["rate"],
            "x": "the rate, a little aside for each model",
            "value": "accuracy of the answers, [0, 1]",
            "low": LOW,
            "high": HIGH,
            "trials": "answers",
        },
        spec=_RATES_ASKED | _ACCURACY,
        load=True,
    ),
    "load_cost": Chart(
        title="Cost over rate",
        purpose="What 1,000 answers cost at each rate.",
        nothing=_NO_STEPS,
        columns={"series": _MODEL, **_STEP, "value": "USD"},
        spec=_RATES_ASKED | _COST,
        load=True,
    ),
}
