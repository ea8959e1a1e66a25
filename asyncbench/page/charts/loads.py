"""Rows of the charts of a load: times, throughput, accuracy and dollars by rate.

A percentile that falls on a call without an answer has no end: there is no row for it, so lines have a gap.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isinf
from typing import Final

from asyncbench.analysis.entrants import short_names, shortened
from asyncbench.config.loading import CLOSED
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, base_in
from asyncbench.page.charts.styling import Row
from asyncbench.reports.load.accuracy import StepAnswers
from asyncbench.reports.load.steps import PERCENTILES, StepFigures
from asyncbench.stats.proportions import Proportion

QUANTITIES: Final = {"ttft": "TTFT", "latency": "latency"}
ANSWERS: Final = "answers per second"
GOODPUT: Final = "calls per second that kept the SLO"
TOKENS: Final = "output tokens per second"
MOST_SERIES: Final = 8  # colours that people tell apart
MOST_POINTS: Final = 120  # of the curve of one step
BEYOND: Final = 1.15  # times the slowest call of a panel, or below the fastest: so far go its curves
ASIDE: Final = 1.03  # times a rate: so far apart stand models, whose intervals would hide each other
UNCOUNTED: Final = (INCOMPLETE, CLIENT_BOUND)
Shown = Mapping[str, str] | None


def rows_of_loads(
    steps: Sequence[StepFigures], answers: Sequence[StepAnswers], shown: Shown = None
) -> dict[str, list[Row]]:
    """Return the rows of each chart of a load; `shown` as for `pair_rows`."""
    return {
        "load_times": load_times_rows(steps, shown),
        "load_rates": load_rate_rows(steps, shown),
        "load_knee": load_knee_rows(steps, shown),
        "load_cdf": load_cdf_rows(steps, shown),
        "load_accuracy": load_accuracy_rows(answers, shown),
        "load_cost": load_cost_rows(steps, shown),
    }


def uncounted_note(steps: Iterable[StepFigures]) -> str | None:
    """Return which rates are left out, and why; None: none are."""
    stopped, bound = (
        [f"{step.model} {step.step}" for step in steps if step.verdict == verdict] for verdict in UNCOUNTED
    )
    reasons = [
        *([f"stopped early: {', '.join(stopped)}"] if stopped else []),
        *([f"this computer was too slow: {', '.join(bound)}"] if bound else []),
    ]
    return f"Left out: {'; '.join(reasons)}." if reasons else None


def load_times_rows(steps: Iterable[StepFigures], shown: Shown = None) -> list[Row]:
    """Return percentiles of TTFT and latency by rate; `shown` as for `pair_rows`.

    Of one model, a panel has a colour for each percentile; of several, a panel is of one percentile.
    """
    named = list(_named(steps, shown))
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
        for model, those in groupby(named, key=lambda one: one[0])
        for row in _percentiles([step for _, step in those], kind, name)
    ]


def load_knee_rows(steps: Iterable[StepFigures], shown: Shown = None) -> list[Row]:
    """Return percentiles of the latency by the answers that came within the step, a second; likewise."""
    return [row for row in load_times_rows(steps, shown) if row["quantity"] == QUANTITIES["latency"]]


def _percentiles(steps: Sequence[StepFigures], kind: str, name: str) -> Iterator[Row]:
    """Yield a percentile of each rate; `part` counts up where rates between have none."""
    part = 0
    for step in steps:
        percentile = step.times[kind].at(name)
        if percentile is None or isinf(percentile.value):
            part += 1
            continue
        bounded = not isinf(percentile.high)
        yield {
            **_at(step),
            "per_s": step.answered_per_s,
            "part": part,
            "value": percentile.value,
            "low": percentile.low if bounded else None,
            "high": percentile.high if bounded else None,
            "slo": (step.slo or {}).get(kind),
        }


def load_rate_rows(steps: Iterable[StepFigures], shown: Shown = None) -> list[Row]:
    """Return the answers, the calls that kept the SLO and the tokens of a second, by rate.

    Two rows are the ends of a line on which every call that was due is answered.
    """
    by_panel: dict[str, list[Row]] = {ANSWERS: [], GOODPUT: [], TOKENS: []}
    most: dict[str, float] = defaultdict(float)
    for model, step in _named(steps, shown):
        per_s = (step.answered_per_s, step.goodput_per_s, step.tokens_per_s)
        for panel, value in zip(by_panel, per_s, strict=True):
            if value is not None:
                row = {"panel": panel, "series": model, **_at(step), "value": value, "kind": "measured"}
                by_panel[panel].append(row)
                if panel != TOKENS and step.arrivals != CLOSED:
                    most[panel] = max(most[panel], step.offered_per_s)
    for panel, end in most.items():
        ends = ({"offered": at, "rate": at, "value": at} for at in (0.0, end))
        by_panel[panel] += [{**by_panel[panel][0], **at, "kind": "all"} for at in ends]
    return [row for rows in by_panel.values() for row in rows]


def load_cdf_rows(steps: Iterable[StepFigures], shown: Shown = None) -> list[Row]:
    """Return which share of the calls of a rate had their first token, or answer, within how long.

    A panel is of one model and TTFT or latency, from a little before its fastest call to a little after its
    slowest. Of many rates the lowest, the highest and some between are
    shown. Calls without an answer count: their curve ends below 100 %.
    """
    named = list(_named(steps, shown))
    rows = []
    for model, those in groupby(named, key=lambda one: one[0]):
        some = _some([step for _, step in those])
        for kind, quantity in QUANTITIES.items():
            told_s = [time for step in some for time in step.times[kind].told_s]
            for step in some:
                place = {"panel": f"{model}: {quantity}", "series": step.step, "calls": step.offered}
                rows += [{**place, **point} for point in _curve(step, kind, told_s)]
    return rows


def _some(steps: Sequence[StepFigures]) -> list[StepFigures]:
    if len(steps) <= MOST_SERIES:
        return list(steps)
    return [steps[round(n * (len(steps) - 1) / (MOST_SERIES - 1))] for n in range(MOST_SERIES)]


def _curve(step: StepFigures, kind: str, all_s: Sequence[float]) -> Iterator[Row]:
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


def load_accuracy_rows(steps: Iterable[StepAnswers], shown: Shown = None) -> list[Row]:
    """Return the accuracy of answers by rate, with its interval; rounds of a rate count together."""
    groups = defaultdict[tuple[str, str], list[StepAnswers]](list)
    for step in steps:
        if step.accuracy.trials and step.verdict not in UNCOUNTED:
            groups[step.model, base_in(step.load)].append(step)
    names = shown or short_names(dict.fromkeys(model for model, _ in groups))
    rows: list[Row] = []
    for (model, name), those in groups.items():
        trials = sum(step.accuracy.trials for step in those)
        problems = max(step.accuracy.trials / step.accuracy.repeats for step in those)
        correct = sum(step.accuracy.successes for step in those)
        whole = Proportion(successes=correct, trials=trials, repeats=trials / problems)
        low, high = whole.interval or (None, None)
        place = {"series": names.get(model, shortened(model)), "step": name, "rate": those[0].rate}
        rows.append({**place, "value": whole.share, "low": low, "high": high, "trials": trials})
    models = sorted({str(row["series"]) for row in rows})
    aside = {name: ASIDE ** (n - (len(models) - 1) / 2) for n, name in enumerate(models)}
    rows.sort(key=lambda row: (row["series"], row["rate"]))
    return [{**row, "x": row["rate"] * aside[row["series"]]} for row in rows]


def load_cost_rows(steps: Iterable[StepFigures], shown: Shown = None) -> list[Row]:
    """Return dollars for a thousand answers by rate."""
    return [
        {"series": model, **_at(step), "value": step.usd_per_1000}
        for model, step in _named(steps, shown)
        if step.usd_per_1000 is not None
    ]


def _named(steps: Iterable[StepFigures], shown: Shown) -> Iterator[tuple[str, StepFigures]]:
    """Yield the steps that count, each with its model's name; at most `MOST_SERIES` models."""
    counted = [step for step in steps if step.verdict not in UNCOUNTED and step.offered]
    models = dict.fromkeys(step.model for step in counted)
    names = short_names(models) if shown is None else shown
    drawn = set(list(models)[:MOST_SERIES])
    return ((names.get(step.model, shortened(step.model)), step) for step in counted if step.model in drawn)


def _at(step: StepFigures) -> Row:
    return {"step": step.step, "rate": step.rate, "offered": _offered(step), "calls": step.offered}


def _offered(step: StepFigures) -> float:
    return step.rate if step.arrivals == CLOSED else step.offered_per_s
