"""The charts of a load: times, throughput, accuracy and dollars by rate.

A percentile that falls on a call without an answer has no end: there is no row for it, so lines have a gap.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isinf
from operator import itemgetter
from typing import Final

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import short_names
from asyncbench.config.loading import CLOSED
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, base_in
from asyncbench.page.charts.chart import (
    HIGH,
    LOW,
    SERIES,
    SHARE_TIPS,
    Chart,
    Row,
    Spec,
    accuracy_axis,
    field,
    mark,
    panels,
    tooltips,
    view,
)
from asyncbench.reports.load.accuracy import StepAnswers, answers_by_step
from asyncbench.reports.load.steps import PERCENTILES, StepFigures, steps_in
from asyncbench.stats.proportions import Proportion

QUANTITIES: Final = {"ttft": "TTFT", "latency": "latency"}
ANSWERS: Final = "answers per second"
GOODPUT: Final = "calls per second that kept the SLO"
TOKENS: Final = "output tokens per second"
MOST_SERIES: Final = 8  # colours that people tell apart
MOST_POINTS: Final = 120  # of the curve of one step
BEYOND: Final = 1.15  # curves of a panel go on to its slowest time × this, and begin at its fastest ÷ this
ASIDE: Final = 1.03  # models stand apart by this factor of a rate, as their intervals would hide each other
UNCOUNTED: Final = (INCOMPLETE, CLIENT_BOUND)


def rows_of_loads(steps: Sequence[StepFigures], answers: Sequence[StepAnswers]) -> dict[str, list[Row]]:
    """Return the rows of each chart of a load."""
    times = load_times_rows(steps)
    return {
        "load_times": times,
        "load_rates": load_rate_rows(steps),
        "load_knee": [row for row in times if row["quantity"] == QUANTITIES["latency"]],
        "load_cdf": load_cdf_rows(steps),
        "load_accuracy": load_accuracy_rows(answers),
        "load_cost": load_cost_rows(steps),
    }


def loads_in(views: FolderViews) -> tuple[Sequence[StepFigures], dict[str, list[Row]]]:
    """Return the steps of a folder's loads and the rows of their charts; of views that hold answers to loads.

    Both are empty where only some calls count, as of these alone no rate is known.
    """
    if views.chosen.partly or not (steps := steps_in(views)):
        return (), {}
    return steps, rows_of_loads(steps, answers_by_step(views))


def uncounted_note(steps: Iterable[StepFigures]) -> str | None:
    """Return the rates that are left out, and why, or None if all are drawn."""
    stopped, bound = (
        [f"{step.model} {step.step}" for step in steps if step.verdict == verdict] for verdict in UNCOUNTED
    )
    reasons = [
        *([f"stopped early: {', '.join(stopped)}"] if stopped else []),
        *([f"this computer was too slow: {', '.join(bound)}"] if bound else []),
    ]
    return f"Left out: {'; '.join(reasons)}." if reasons else None


def load_times_rows(steps: Iterable[StepFigures]) -> list[Row]:
    """Return percentiles of TTFT and latency by rate.

    Of one model, a panel has a colour for each percentile; of several, a panel is of one percentile.
    """
    named = list(_named(steps))
    alone = len({model for model, _ in named}) == 1
    return [
        {
            "panel": quantity if alone else f"{quantity} {name}",
            "series": name if alone else model,
            "model": model,
            "quantity": quantity,
            **row,
        }
        for name in PERCENTILES
        for kind, quantity in QUANTITIES.items()
        for model, group in groupby(named, key=itemgetter(0))
        for row in _percentiles([step for _, step in group], kind, name)
    ]


def _percentiles(steps: Sequence[StepFigures], kind: str, name: str) -> Iterator[Row]:
    """Yield a percentile of each rate; `part` counts up where rates between have none."""
    gaps = 0
    for step in steps:
        percentile = step.times[kind].percentile(name)
        if percentile is None or isinf(percentile.value):
            gaps += 1
            continue
        bounded = not isinf(percentile.high)
        yield {
            **_rate(step),
            "per_s": step.answered_per_s,
            "part": gaps,
            "value": percentile.value,
            "low": percentile.low if bounded else None,
            "high": percentile.high if bounded else None,
            "slo": (step.slo or {}).get(kind),
        }


def load_rate_rows(steps: Iterable[StepFigures]) -> list[Row]:
    """Return the answers, the calls that kept the SLO and the tokens of a second, by rate.

    Two rows are the ends of a line on which every call that was due is answered.
    """
    by_panel: dict[str, list[Row]] = {ANSWERS: [], GOODPUT: [], TOKENS: []}
    highest: dict[str, float] = defaultdict(float)
    for model, step in _named(steps):
        per_s = (step.answered_per_s, step.goodput_per_s, step.tokens_per_s)
        for panel, value in zip(by_panel, per_s, strict=True):
            if value is not None:
                row = {"panel": panel, "series": model, **_rate(step), "value": value, "kind": "measured"}
                by_panel[panel].append(row)
                if panel != TOKENS and step.arrivals != CLOSED:
                    highest[panel] = max(highest[panel], step.offered_per_s)
    for panel, last in highest.items():
        for rate in (0.0, last):
            end = {"offered": rate, "rate": rate, "value": rate}
            by_panel[panel].append({**by_panel[panel][0], **end, "kind": "all"})
    return [row for rows in by_panel.values() for row in rows]


def load_cdf_rows(steps: Iterable[StepFigures]) -> list[Row]:
    """Return the share of a rate's calls that had their first token, or answer, within so many seconds.

    A panel is of one model and TTFT or latency, from a little before its fastest call to a little after its
    slowest. Of many rates the lowest, the highest and some between are shown. Calls without an answer count:
    their curve ends below 100 %.
    """
    rows = []
    for model, group in groupby(_named(steps), key=itemgetter(0)):
        shown = [step for _, step in group]
        if len(shown) > MOST_SERIES:
            shown = [shown[round(n * (len(shown) - 1) / (MOST_SERIES - 1))] for n in range(MOST_SERIES)]
        for kind, quantity in QUANTITIES.items():
            told_s = [time for step in shown for time in step.times[kind].told_s]
            for step in shown:
                about = {"panel": f"{model}: {quantity}", "series": step.step, "calls": step.offered}
                rows += [{**about, **point} for point in _cumulated(step, kind, told_s)]
    return rows


def _cumulated(step: StepFigures, kind: str, all_s: Sequence[float]) -> Iterator[Row]:
    """Yield the points of a curve that begins before the fastest of all times and ends after the slowest."""
    times = step.times[kind]
    calls, told_s = len(times.told_s) + times.endless, times.told_s
    if not told_s:
        return
    slo = step.slo or {}
    promised = {"slo": slo[kind], "share": slo["share"]} if kind in slo else {"slo": None, "share": None}
    yield {"seconds": min(all_s) / BEYOND, "value": 0.0, **promised}
    ranks = sorted({round(n * len(told_s) / MOST_POINTS) for n in range(1, MOST_POINTS + 1)} - {0})
    for rank in ranks:
        yield {"seconds": told_s[rank - 1], "value": rank / calls}
    yield {"seconds": max(all_s) * BEYOND, "value": len(told_s) / calls}


def load_accuracy_rows(steps: Iterable[StepAnswers]) -> list[Row]:
    """Return the accuracy of answers by rate, with its interval; rounds of a rate count together."""
    counted = (step for step in steps if step.accuracy.trials and step.verdict not in UNCOUNTED)
    groups = rows_by(counted, lambda step: (step.model, base_in(step.load)))
    names = short_names(dict.fromkeys(model for model, _ in groups))
    rows: list[Row] = []
    for (model, name), rounds in groups.items():
        trials = sum(step.accuracy.trials for step in rounds)
        problems = max(step.accuracy.trials / step.accuracy.repeats for step in rounds)
        correct = sum(step.accuracy.successes for step in rounds)
        whole = Proportion(successes=correct, trials=trials, repeats=trials / problems)
        low, high = whole.interval or (None, None)
        about = {"series": names[model], "step": name, "rate": rounds[0].rate}
        rows.append({**about, "value": whole.share, "low": low, "high": high, "trials": trials})
    models = sorted({str(row["series"]) for row in rows})
    aside = {name: ASIDE ** (n - (len(models) - 1) / 2) for n, name in enumerate(models)}
    rows.sort(key=lambda row: (row["series"], row["rate"]))
    return [{**row, "x": row["rate"] * aside[row["series"]]} for row in rows]


def load_cost_rows(steps: Iterable[StepFigures]) -> list[Row]:
    """Return dollars for a thousand answers by rate."""
    return [
        {"series": model, **_rate(step), "value": step.usd_per_1000}
        for model, step in _named(steps)
        if step.usd_per_1000 is not None
    ]


def _named(steps: Iterable[StepFigures]) -> Iterator[tuple[str, StepFigures]]:
    """Yield the steps that count, each with its model's name; at most `MOST_SERIES` models."""
    counted = [step for step in steps if step.verdict not in UNCOUNTED and step.offered]
    models = dict.fromkeys(step.model for step in counted)
    names = short_names(models)
    drawn = set(list(models)[:MOST_SERIES])
    return ((names[step.model], step) for step in counted if step.model in drawn)


def _rate(step: StepFigures) -> Row:
    """Return the columns of a row that tell at which rate it was measured."""
    offered = step.rate if step.arrivals == CLOSED else step.offered_per_s
    return {"step": step.step, "rate": step.rate, "offered": offered, "calls": step.offered}


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


def _zero_based(column: str, title: str, form: str = ",~r") -> Spec:
    return field(f"{column}:Q", title=title, axis={"format": form, "tickCount": 5}, scale={"zero": True})


def _slo(**position: Spec) -> Spec:
    """Return the dashed line of what the SLO promises."""
    tips = tooltips("slo:Q|,.3~r|SLO, seconds")
    return mark("rule", {"style": "reference"}, {"filter": "isValid(datum.slo)"}, tooltip=tips, **position)


def _percentile_lines(x: Spec) -> Spec:
    """Return lines of percentiles with their intervals, and a gap where a rate has no percentile."""
    tips = tooltips(
        *("model:N", *_STEP_TIPS, "value:Q|,.3~r|seconds", "low:Q|,.3~r", "high:Q|,.3~r"),
        "per_s:Q|,.3~r|answers within the step, per second",
    )
    in_order = {"detail": field("part:N"), "order": field("rate:Q")}
    has_interval = {"filter": "isValid(datum.low)"}
    return panels(
        mark("point", _DOT, x=x, y=_seconds("value"), color=SERIES, tooltip=tips),
        mark("line", _LINE, x=x, y=_seconds("value"), color=SERIES, **in_order),
        mark("rule", {"opacity": 0.5}, has_interval, x=x, y=_seconds("low"), y2=field("high"), color=SERIES),
        _slo(y=_seconds("slo")),
        height=HEIGHT,
    )


_OVER_OFFERED: Final = {
    "x": _zero_based("offered", "calls per second that were due"),
    "y": _zero_based("value", "per second"),
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
    "y": _zero_based("value", "USD per 1,000 answers", "$,~g"),
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
    ),
    "load_knee": Chart(
        title="Latency over throughput",
        purpose="How many answers a second can be had, and at which latency. Dashed: the SLO.",
        nothing=_NO_STEPS,
        columns=_PERCENTILE,
        spec=_RATES_ASKED
        | _percentile_lines(_log("per_s", "answers within the step, per second (log scale)")),
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
    ),
    "load_cost": Chart(
        title="Cost over rate",
        purpose="What 1,000 answers cost at each rate.",
        nothing=_NO_STEPS,
        columns={"series": _MODEL, **_STEP, "value": "USD"},
        spec=_RATES_ASKED | _COST,
    ),
}
