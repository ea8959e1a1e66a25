"""Figures of the steps of a load, by model and rate, for reports and charts.

Steps of one rate are pooled call by call: percentiles are never averaged. A call belongs to the step in which
it was due. A call without an answer took infinitely long. Times count from when a call was due.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import fsum, inf, isinf
from typing import Any, Final

import orjson

from asyncbench.analysis.counting import FolderViews
from asyncbench.config.loading import CLOSED, TRACE
from asyncbench.lanes.load.measuring import LAG_S, MEASURED, why_client_bound
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, MET, MISSED, UNRESOLVED, base_in
from asyncbench.stats.always_valid import Interval, always_valid_interval
from asyncbench.stats.percentiles import (
    Percentile,
    added_histograms,
    fewest_for,
    histogram_percentile,
    percentile,
    rank_of,
)
from asyncbench.store.manifest import LOADS
from asyncbench.tables.data import HIDDEN, INSIDE, in_data
from asyncbench.tables.numbers import complete_sum, percent, rounded

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
TIME_KINDS: Final = ("ttft", "ttfo", "tpot", "latency")
COUNTS: Final = ("offered", "dropped", "sent", "answered", "refused", "failed", "unfinished")
_SUMMED: Final = (
    *(
        "seconds",
        "ended",
        "ended_tokens",
        "good",
        "output_tokens",
        "output_chars",
        "cost_usd",
        "unpriced",
        "priced_answers",
        "met",
        "resent",
        "lost",
    ),
    *COUNTS,
)
NO_TIMES: Final = {
    "ttft": "no reply was streamed",
    "ttfo": "no reply was streamed",
    "tpot": "no reply tells two output tokens",
    "latency": "no call was answered",
}

# A row for each step, with the ascending seconds of its answered calls.
_CALLS: Final = f"""
WITH calls AS (
    SELECT attempts.*, status = 'ok' AS answered,
        late_s + latency_s AS due_latency_s, late_s - coalesce(connect_s, 0) AS own_late_s,
        output_tokens - if(ttfo_s = ttft_s, coalesce(reasoning_tokens, 0), 0) AS shown_tokens  -- see TPOT
    FROM attempts WHERE phase = '{MEASURED}'
)
SELECT model, load,
    list(late_s + ttft_s ORDER BY late_s + ttft_s) FILTER (answered AND ttft_s IS NOT NULL) AS ttft,
    list(late_s + ttfo_s ORDER BY late_s + ttfo_s) FILTER (answered AND ttfo_s IS NOT NULL) AS ttfo,
    list((latency_s - ttft_s) / (shown_tokens - 1) ORDER BY (latency_s - ttft_s) / (shown_tokens - 1))
        FILTER (answered AND ttft_s IS NOT NULL AND shown_tokens > 1) AS tpot,
    list(due_latency_s ORDER BY due_latency_s) FILTER (answered AND due_latency_s IS NOT NULL) AS latency,
    list(own_late_s ORDER BY own_late_s) FILTER (own_late_s IS NOT NULL) AS late,
    coalesce(fsum(own_late_s) FILTER (answered), 0) AS late_s,
    list(gap_counts) FILTER (answered AND gap_counts IS NOT NULL) AS gap_counts,
    list(DISTINCT http_status ORDER BY http_status) FILTER (http_status IN (429, 503, 529)) AS refused_with,
    coalesce(sum(output_tokens) FILTER (answered), 0)::BIGINT AS output_tokens,
    count(output_tokens) FILTER (answered) AS told_tokens,
    coalesce(sum(output_chars) FILTER (answered), 0)::BIGINT AS output_chars,
    coalesce(sum_usd(cost_usd), 0) AS cost_usd, count(cost_usd) AS priced,
    count(cost_usd) FILTER (answered) AS priced_answers,
    count(*) FILTER (kept_connection = 'resent') AS resent, count(*) FILTER (kept_connection = 'lost') AS lost
FROM calls GROUP BY ALL
"""  # noqa: S608  made of our own words alone

# Answers that came while its calls were due, also those to calls of the warm-up: what a server did in a time.
# `good`: those that kept the SLO, as `keeps` has it.
_KEPT: Final = " AND ".join(
    f"(slo->>'{kind}' IS NULL OR coalesce({kind} <= (slo->>'{kind}')::DOUBLE, false))" for kind in TIME_KINDS
)
_ENDED: Final = f"""
WITH answers AS (
    SELECT model, load, output_tokens, slo,
        late_s + ttft_s AS ttft, late_s + ttfo_s AS ttfo, late_s + latency_s AS latency,
        output_tokens - if(ttfo_s = ttft_s, coalesce(reasoning_tokens, 0), 0) AS shown_tokens,
        if(shown_tokens > 1, (latency_s - ttft_s) / (shown_tokens - 1), 0 * shown_tokens * ttft_s) AS tpot,
        epoch_us(due_at) / 1e6 + late_s + latency_s - (epoch_us(began_at) / 1e6 + warmup_s) AS end_s
    FROM attempts JOIN steps USING (model, load)
    WHERE status = 'ok' AND end_s >= 0 AND end_s < seconds
)
SELECT model, load, count(*) AS ended,
    if(count(output_tokens) = count(*), sum(output_tokens), NULL)::BIGINT AS ended_tokens,
    count(*) FILTER ({_KEPT}) AS good
FROM answers GROUP BY ALL
"""  # noqa: S608  made of our own words alone
_NONE_ENDED: Final = {"ended": 0, "ended_tokens": 0, "good": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """The times of one kind, in seconds, of the calls of a step."""

    kind: str = field(metadata=HIDDEN)
    told_s: Sequence[float] = field(metadata=HIDDEN)  # ascending
    endless: int = field(metadata=HIDDEN)  # calls without an end, which took longer than all of `told_s`
    short: int = field(default=0, metadata=HIDDEN)  # calls whose answer is too short for such a time

    def percentile(self, name: str) -> Percentile | None:
        """Return the percentile `p50`, `p95` or `p99`, or None, and `why` gives the reason."""
        return percentile(self.told_s, PERCENTILES[name], endless=self.endless) if self.told_s else None

    @property
    def calls(self) -> int:
        return len(self.told_s) + self.endless

    def too_few(self, name: str) -> bool:
        """Return whether there are too few calls for an interval of this percentile."""
        return bool(self.told_s) and self.calls < fewest_for(PERCENTILES[name])

    def why(self, name: str) -> str:
        """Return why there is no such percentile; empty where there is one."""
        if not self.told_s:
            return NO_TIMES[self.kind]
        if self.too_few(name):
            return f"{self.calls:,} calls, and {name} takes {fewest_for(PERCENTILES[name])}"
        percentile = self.percentile(name)
        if percentile is not None and isinf(percentile.value):
            which = "calls, those answered with one token left out," if self.short else "calls"
            return f"{rounded(100 * self.endless / self.calls, 1)} % of {which} have no answer"
        return ""

    @property
    @in_data(None)
    def percentiles(self) -> Mapping[str, object]:
        """All percentiles with their intervals, with None for one that is unknown or infinite."""
        percentiles = dict[str, object]()
        for name in PERCENTILES:
            ends = self.percentile(name) or (inf, inf, inf)
            seconds = (None if isinf(end) else end for end in ends)
            data: dict[str, object] = dict(zip(("s", "low_s", "high_s"), seconds, strict=True))
            percentiles[name] = data | {"why": self.why(name) or None}
        return percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """The figures of one rate of one model: of a step, or of several steps of the same rate."""

    model: str
    step: str  # such as `poisson 8/s`
    loads: tuple[str, ...] = field(metadata=HIDDEN)  # the steps that count, such as `poisson 8/s #2`
    gpus: int | None  # of the server; None: nobody told
    arrivals: str
    rate: float  # calls per second; in a closed loop: the number of callers; of a trace: its speed
    slo: Mapping[str, float] | None
    seconds: float  # the time in which calls were due
    offered: int
    dropped: int
    sent: int
    answered: int
    refused: int
    failed: int
    unfinished: int
    ended: int  # answers that came within these seconds, whenever their calls were due
    ended_tokens: int | None = field(metadata=HIDDEN)  # output tokens of `ended`; None: some are not reported
    good: int | None = field(metadata=HIDDEN)  # answers of `ended` that kept the SLO
    in_flight_mean: float | None
    in_flight_max: int
    times: Mapping[str, CallTimes] = field(metadata=INSIDE)  # by kind: ttft, ttfo, tpot, latency
    late_s: Sequence[float] = field(metadata=HIDDEN)  # how late this computer sent each call, ascending
    late_share: float | None  # the share of the latency by which this computer was late
    output_tokens: int | None  # of answers; None: some are not reported
    output_chars: int
    cost_usd: float | None  # sum of the known costs of calls; None: no call has a known cost
    unpriced: int  # calls whose cost is not known
    priced_answers: int = field(metadata=HIDDEN)
    resent: int  # calls made again at once: the server had closed their kept connection, and read nothing
    lost: int  # failed calls on such a connection, which the server may have read
    met: int | None  # calls that kept the SLO
    # times between the pieces of all answers, in bins as in `histogram_text`
    gaps: Counter[int] = field(metadata=HIDDEN)
    saturated: bool | None  # True: the number of calls in flight grew until the end
    verdict: str | None
    refused_with: tuple[int, ...] = field(default=(), metadata=HIDDEN)  # HTTP statuses of refused calls
    # why this computer was the bottleneck; None: it was not
    bound_by: str | None = field(default=None, metadata=HIDDEN)
    left_out: tuple[str, ...] = ()  # verdicts of other steps of this rate, which do not count
    repeats: tuple["StepFigures", ...] = ()  # the figures of each step, where there are several

    @property
    def asked(self) -> str:
        """The rate that was asked for, in words."""
        return rate_text(self.arrivals, self.rate)

    @property
    @in_data("offered_per_s")
    def offered_per_s(self) -> float:
        """Calls per second that were due."""
        return self.offered / self.seconds if self.seconds else 0.0

    @property
    @in_data("answered_per_s")
    def answered_per_s(self) -> float:
        """Answers per second that came within the step: never more than the server can do."""
        return self.ended / self.seconds if self.seconds else 0.0

    @property
    @in_data("tokens_per_s")
    def tokens_per_s(self) -> float | None:
        """Output tokens per second of the answers that came within the step."""
        return None if self.ended_tokens is None or not self.seconds else self.ended_tokens / self.seconds

    @property
    @in_data("tokens_per_s_per_user")
    def tokens_per_s_per_user(self) -> float | None:
        """Output tokens per second that a caller gets; at a rate: that a call in flight gets.

        None: some answers do not report their tokens, or no caller had an answer.
        """
        if self.arrivals == CLOSED:
            return None if self.tokens_per_s is None or not self.answered else self.tokens_per_s / self.rate
        latency_s = fsum(self.times["latency"].told_s)
        return self.output_tokens / latency_s if self.output_tokens is not None and latency_s else None

    @property
    @in_data("tokens_per_s_per_gpu")
    def tokens_per_s_per_gpu(self) -> float | None:
        """Output tokens per second and GPU of the server; None: nobody told how many these are."""
        return None if self.tokens_per_s is None or self.gpus is None else self.tokens_per_s / self.gpus

    @property
    @in_data("goodput_per_s")
    def goodput_per_s(self) -> float | None:
        """Answers per second that came within the step and kept the SLO."""
        return None if self.good is None or not self.seconds else self.good / self.seconds

    @property
    @in_data("kept_share")
    def kept_share(self) -> float | None:
        """The share of all calls that kept the SLO."""
        return None if self.met is None or not self.offered else self.met / self.offered

    @property
    @in_data("kept_interval")
    def kept_interval(self) -> Interval | None:
        """The 95 % interval of `kept_share`, which decides the verdict and may be looked at any time."""
        return None if self.met is None else always_valid_interval(self.met, self.offered)

    @property
    @in_data("late_p99_s")
    def late_p99_s(self) -> float | None:
        """99 % of the calls were sent no later than this. It is shown for any number of calls, because it
        describes this computer and not a server.
        """
        return self.late_percentile(0.99)

    def late_percentile(self, share: float) -> float | None:
        """Return the lateness below or at which so many of the calls are, or None if no call was sent."""
        return self.late_s[rank_of(len(self.late_s), share) - 1] if self.late_s else None

    @property
    @in_data("latency_mean_s")
    def latency_mean_s(self) -> float | None:
        """The mean latency, or None if some calls have no answer."""
        times = self.times["latency"]
        return fsum(times.told_s) / len(times.told_s) if times.told_s and not times.endless else None

    def itl_s(self, name: str) -> float | None:
        """Return a percentile of the gaps between the pieces of all answers, or None if too few are told."""
        return histogram_percentile(self.gaps, PERCENTILES[name])

    @property
    @in_data("usd_per_1000_answers")
    def usd_per_1000(self) -> float | None:
        """Dollars for a thousand answers, with the cost of calls without an answer."""
        if self.cost_usd is None or not self.priced_answers:
            return None
        return 1000 * self.cost_usd / self.priced_answers

    @property
    @in_data(None)
    def itl(self) -> Mapping[str, object]:
        """The percentiles of the gaps between pieces of answers."""
        percentiles = {name: self.itl_s(name) for name in PERCENTILES}
        return {"itl": percentiles | {"gaps": self.gaps.total()}, "ended_per_s": self.answered_per_s}


def rate_text(arrivals: str, rate: float) -> str:
    """Return a rate in words: calls a second, or what stands for it with these arrivals."""
    if arrivals == CLOSED:
        return f"{rate:g} caller{'s' * (rate != 1)}"
    return f"speed {rate:g}" if arrivals == TRACE else f"{rate:g}/s"


def steps_in(views: FolderViews) -> tuple[StepFigures, ...]:
    """Return the figures of the steps of a load, by model, pattern and rate.

    The views hold all calls of a model: no rate can be measured on a part of them.
    """
    calls, ended = (
        {(row["model"], row["load"]): row for row in views.rows(query)} for query in (_CALLS, _ENDED)
    )
    loads, figures = views.manifest.get(LOADS, {}), []
    for row in views.table("FROM steps ORDER BY began_at").to_pylist():
        key, began_s = (row["model"], row["load"]), row["began_at"].timestamp()
        settings = loads.get(row["model"], [])
        load = next((load for load in reversed(settings) if load["since"] <= began_s), dict[str, Any]())
        if "gpus" not in load:  # a later load of the same model may tell them
            load = next(({**load, "gpus": later["gpus"]} for later in settings if "gpus" in later), load)
        figures.append(_figures(row, calls.get(key, {}), ended.get(key, _NONE_ENDED), load))
    # The SLO of a killed step is unknown. Once its rate was measured, the step is not shown.
    whole = {(step.model, step.step) for step in figures if step.verdict != INCOMPLETE}
    figures.sort(key=_pool_key)
    pooled = (_pooled([*steps]) for _, steps in groupby(figures, key=_pool_key))
    return tuple(
        step for step in pooled if step.verdict != INCOMPLETE or (step.model, step.step) not in whole
    )


def _pool_key(step: StepFigures) -> tuple[str, str, float, str, int]:
    """Return the key that pooled steps share; steps are shown in the order of this key."""
    slo = sorted((step.slo or {}).items())
    return step.model, step.arrivals, step.rate, f"{step.step} {slo}", step.gpus or 0


def _figures(
    step: Mapping[str, Any], calls: Mapping[str, Any], ended: Mapping[str, Any], load: Mapping[str, Any]
) -> StepFigures:  # Any: of the views, and of the manifest
    """Return the figures of one step; `load`: what the manifest tells of its load as a whole."""
    times_s = {kind: calls.get(kind) or [] for kind in TIME_KINDS}
    answered = step["answered"]
    # A reply without a first token counts as endless; a reply of a single token has no time per token.
    lacking = {
        kind: step["offered"] - (answered if kind == "tpot" else len(times_s[kind])) for kind in TIME_KINDS
    }
    # Where no call was answered, that is the reason why there are no times of any kind.
    shown_as = {kind: kind if answered else "latency" for kind in TIME_KINDS}
    latency_s = fsum(times_s["latency"])
    return StepFigures(
        **{name: step[name] for name in ("model", "arrivals", "rate", "seconds", *COUNTS)},
        **{name: step[name] for name in ("in_flight_mean", "in_flight_max", "met", "saturated", "verdict")},
        step=base_in(step["load"]),
        loads=(step["load"],),
        gpus=load.get("gpus"),
        slo=None if step["slo"] is None else orjson.loads(step["slo"]),
        times={
            kind: CallTimes(
                kind=shown_as[kind],
                told_s=times_s[kind],
                endless=lacking[kind],
                short=step["offered"] - lacking[kind] - len(times_s[kind]),
            )
            for kind in TIME_KINDS
        },
        late_s=calls.get("late") or (),
        refused_with=tuple(calls.get("refused_with") or ()),
        bound_by=_bound_by(step, load.get("max_lag", LAG_S)) if step["client_bound"] else None,
        late_share=calls["late_s"] / latency_s if latency_s else None,
        ended=ended["ended"],
        ended_tokens=ended["ended_tokens"],
        good=None if step["met"] is None else ended["good"],
        output_tokens=calls["output_tokens"] if calls.get("told_tokens", -1) == answered else None,
        output_chars=calls.get("output_chars", 0),
        cost_usd=calls["cost_usd"] if calls.get("priced") else None,
        unpriced=step["sent"] - calls.get("priced", 0),
        priced_answers=calls.get("priced_answers", 0),
        resent=calls.get("resent", 0),
        lost=calls.get("lost", 0),
        gaps=added_histograms(calls.get("gap_counts") or ()),
    )


def _bound_by(step: Mapping[str, Any], max_lag_s: float) -> str:  # Any: of the views
    """Return why this computer was the bottleneck of a step; its limit may be another by now."""
    late_p99_s, lag_p99_s = step["late_p99_s"], step["loop_lag_p99_s"]
    rate = None if step["arrivals"] == CLOSED else step["rate"]
    if step["arrivals"] == TRACE:
        rate = step["offered"] / step["seconds"] if step["offered"] and step["seconds"] else None
    why = why_client_bound(rate, late_p99_s=late_p99_s, lag_p99_s=lag_p99_s, max_lag_s=max_lag_s)
    return why or f"late p99 {late_p99_s or 0:.3g} s, the event loop's lag p99 {lag_p99_s or 0:.3g} s"


def _pooled(steps: Sequence[StepFigures]) -> StepFigures:
    """Return the figures of all steps of a rate that count, with these steps as its `repeats`.

    Steps in which this computer was the bottleneck, or that were stopped, count where there are no others.
    """
    for verdicts in ((CLIENT_BOUND, INCOMPLETE), (INCOMPLETE,), ()):
        counting = [step for step in steps if step.verdict not in verdicts]
        if counting:
            break
    left_out = tuple(step.verdict for step in steps if step not in counting and step.verdict)
    if len(counting) == 1:
        return replace(counting[0], left_out=left_out)

    times = dict[str, CallTimes]()
    for kind in TIME_KINDS:
        kind_times = [step.times[kind] for step in counting]
        times[kind] = CallTimes(
            kind=kind,
            told_s=sorted(seconds for step_times in kind_times for seconds in step_times.told_s),
            endless=sum(step_times.endless for step_times in kind_times),
            short=sum(step_times.short for step_times in kind_times),
        )

    # The verdict is that of all calls together, as a search for a rate decides it.
    slo, verdict = counting[0].slo, counting[0].verdict
    if slo is not None and verdict not in (CLIENT_BOUND, INCOMPLETE):
        met, offered = sum(step.met or 0 for step in counting), sum(step.offered for step in counting)
        low, high = always_valid_interval(met, offered)
        verdict = MET if low >= slo["share"] else MISSED if high < slo["share"] else UNRESOLVED

    # Any: as of each field
    sums: dict[str, Any] = {name: complete_sum(getattr(step, name) for step in counting) for name in _SUMMED}
    return replace(
        counting[0],
        **sums,
        loads=tuple(load for step in counting for load in step.loads),
        times=times,
        late_s=sorted(late_s for step in counting for late_s in step.late_s),
        gaps=sum((step.gaps for step in counting), Counter()),
        late_share=_mean(counting, "late_share", "answered"),
        in_flight_mean=_mean(counting, "in_flight_mean", "seconds"),
        in_flight_max=max(step.in_flight_max for step in counting),
        saturated=max((step.saturated for step in counting if step.saturated is not None), default=None),
        verdict=verdict,
        refused_with=tuple(sorted({status for step in counting for status in step.refused_with})),
        repeats=tuple(counting),
        left_out=left_out,
    )


def _mean(steps: Sequence[StepFigures], name: str, weight: str) -> float | None:
    """Return the mean of a figure over the steps that have it, weighted by another figure."""
    weighted = [
        (getattr(step, name), getattr(step, weight)) for step in steps if getattr(step, name) is not None
    ]
    weights = fsum(weight for _, weight in weighted)
    return fsum(value * weight for value, weight in weighted) / weights if weights else None


# ── The highest rate that kept an SLO, as far as steps show, and what stopped the next one


# The causes that can stop a rate from keeping the SLO.
SLOW, REFUSED, FAILED, BACKLOG = "slo", "429", "failed", "backlog"
CLIENT, BUDGET, STOPPED, TOO_FEW = "client", "budget", "stopped", "too_few_calls"
MOSTLY: Final = 0.5  # a cause of more than this share of the calls that missed the SLO is named


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestRate:
    """The highest rate of a model that keeps an SLO lies between `kept` and `not_kept`."""

    model: str
    arrivals: str
    slo: Mapping[str, float]
    kept: float | None  # surely kept the SLO, and no lower rate surely missed it; None: no rate did
    not_kept: float | None  # the lowest rate above `kept`; None: no higher rate was asked
    stopped_by: str | None  # what stopped the rate `not_kept`; None: no higher rate was asked
    why: str  # the same in words

    @property
    @in_data("text")
    def text(self) -> str:
        """The result as a sentence."""
        if self.kept is None:
            return f"{self.model}: no rate is sure to keep the SLO. {self.why}"
        kept = f"{self.model}: kept the SLO up to {rate_text(self.arrivals, self.kept)}"
        return f"{kept}, the highest rate that was asked." if self.not_kept is None else f"{kept}. {self.why}"


def highest_rates(steps: Sequence[StepFigures], *, spent: Collection[str] = ()) -> tuple[HighestRate, ...]:
    """Return the highest rate that kept each SLO, by model and pattern.

    Args:
        steps: as `steps_in` returns them.
        spent: models whose budget is too small for another call.
    """
    highest = list[HighestRate]()
    with_slo = sorted((step for step in steps if step.slo is not None), key=_pattern)
    for _, group in groupby(with_slo, key=_pattern):
        rates = list(group)  # steps of one pattern, by rising rate
        missed = [step.rate for step in rates if step.verdict == MISSED or _piled_up(step)]
        lowest_missed = min(missed, default=inf)
        kept = [step.rate for step in rates if step.verdict == MET and step.rate < lowest_missed]
        above = next((step for step in rates if not kept or step.rate > kept[-1]), None)
        cause, why = (None, "") if above is None else _obstacle(above, spent)
        rate = HighestRate(
            model=rates[0].model,
            arrivals=rates[0].arrivals,
            slo=rates[0].slo or {},
            kept=kept[-1] if kept else None,
            not_kept=None if above is None else above.rate,
            stopped_by=cause,
            why=why,
        )
        highest.append(rate)
    return tuple(highest)


def _pattern(step: StepFigures) -> tuple[str, str, str]:
    shape = step.step.partition(" ")[0]  # such as `gamma(0.5)`
    return step.model, shape, str(sorted((step.slo or {}).items()))


def _piled_up(step: StepFigures) -> bool:
    return step.verdict == MET and bool(step.saturated)


def _obstacle(step: StepFigures, spent: Collection[str]) -> tuple[str, str]:
    """Return why a step is not sure to keep the SLO: the cause, and a sentence that begins with its rate."""
    decisive = MOSTLY * (step.offered - (step.met or 0))
    if step.verdict == CLIENT_BOUND:
        cause = CLIENT
    elif step.verdict == INCOMPLETE:
        cause = BUDGET if step.model in spent else STOPPED
    elif _piled_up(step):
        cause = BACKLOG
    elif step.refused > decisive:
        cause = REFUSED
    elif step.failed > decisive:
        cause = FAILED
    else:
        cause = SLOW if step.verdict == MISSED else TOO_FEW

    slo, share = step.slo or {}, percent(step.kept_share, step.kept_interval)
    verdict = "missed it" if step.verdict == MISSED or _piled_up(step) else "is unresolved"
    if cause in (CLIENT, BUDGET, STOPPED):
        verdict = "has no verdict"
    words = {
        SLOW: f"{share} of the calls kept it, not {100 * slo.get('share', 0):.4g}%",
        REFUSED: f"{percent(step.refused / max(1, step.offered))} of the calls were refused",
        FAILED: f"{percent(step.failed / max(1, step.offered))} of the calls failed",
        BACKLOG: f"calls in flight kept growing, and {step.answered_per_s:.3g} answers a second came",
        CLIENT: "this computer was the bottleneck",
        BUDGET: "the budget ended it",
        STOPPED: "it was stopped before its end",
        TOO_FEW: f"{share} of the calls kept it, too few to be sure. Raise `duration` or `repeats`",
    }
    asked = f"{step.asked[:1].upper()}{step.asked[1:]}"
    return cause, f"{asked} {verdict}: {words[cause]}."
