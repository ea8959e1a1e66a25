"""`report --style providers`: models side by side as providers of one: answers, price, times, limits."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from math import isinf
from operator import and_, or_
from typing import Final

import orjson

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError
from asyncbench.analysis.pairing import (
    ANSWERS,
    Bits,
    Marked,
    Marks,
    ModelPair,
    difference_interval,
    marked,
    marks_in,
    pair,
)
from asyncbench.analysis.served import mixtures, note_of_simulated
from asyncbench.config.loading import CLOSED, TRACE
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.steps import MET
from asyncbench.records import Outcome, waits
from asyncbench.reports.endpoints.counts import EndpointFigures, HourFigures, endpoints_in
from asyncbench.reports.load.report import ENDLESS, spent_models
from asyncbench.reports.load.steps import CallTimes, HighestRate, highest_rates, rate_text, steps_in
from asyncbench.reports.standings.rankings import share_of
from asyncbench.stats.paired import holm, sign_flip
from asyncbench.store.schema import LIMITS
from asyncbench.tables.data import INSIDE, in_data
from asyncbench.tables.headings import PER_CORRECT
from asyncbench.tables.numbers import MISSING, count, dollars, per_correct, per_correct_text, percent, points
from asyncbench.tables.report import Columns, Sheet, filled

# ── Fairness of a comparison: the same problems, in the same minutes, with the same parameters


NEARBY: Final = 2  # calls that are no more minutes apart met the same state of the network
TOGETHER: Final = 0.9  # models were asked at the same time if this share of calls is near calls to all others

_PARAMS: Final = "SELECT DISTINCT model, params, effort FROM provider_trials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """How similarly the models of a folder were asked."""

    models: int
    problems: int  # problems that any model was asked
    common_problems: int  # problems that all models were asked
    together: Mapping[
        str, float
    ]  # model → the share of its calls within `NEARBY` minutes of calls to all others
    parameters: Sequence[str]  # names of the parameters that differ
    timed: Mapping[str, str | None]  # model → the step that its times are of; None: of all calls
    all_kept: bool  # all models kept their SLO in that step

    @property
    @in_data("notes")
    def notes(self) -> Iterator[str]:
        """The sentences that a reader needs before comparing."""
        if self.models < 2:
            return
        if self.common_problems == self.problems:
            yield f"All were asked the same {self.problems:,} problems."
        else:
            yield (
                f"NOT the same problems: {self.common_problems:,} of {self.problems:,} were asked of all. "
                "Differences in accuracy count the problems in common; prices and times count all."
            )
        apart = {model: share for model, share in self.together.items() if share < TOGETHER}
        if apart:
            shares = ", ".join(
                f"{model} {percent(share, decimals=0)}" for model, share in sorted(apart.items())
            )
            yield f"NOT in the same minutes: calls within {NEARBY} minutes of calls to all others: {shares}."
        else:
            yield "All were asked in the same minutes."
        if self.parameters:
            yield f"Parameters differ: {', '.join(self.parameters)}."

        # the steps of a load that times are of
        steps = set(self.timed.values())
        if steps == {None}:
            return
        if None in steps:
            yield "NOT the same load: some were asked in a load, others in a sweep."
        if len(steps - {None}) > 1:
            rates = ", ".join(f"{model} {step}" for model, step in self.timed.items() if step is not None)
            yield f"NOT the same rate: no rate was measured of all. Times are of {rates}."
        else:
            kept = (
                "highest one at which all kept their SLO"
                if self.all_kept
                else "lowest one that all were asked at"
            )
            yield f"Times are of {', '.join(filter(None, steps))}, the {kept}."


def fairness_of(views: FolderViews, figures: Sequence[EndpointFigures], marks: Marked) -> Fairness:
    """Return how similarly models were asked, given the figures that `endpoints_in` made of these views."""
    problems_by_model = dict.fromkeys((provider.model for provider in figures), 0)
    for (_, model, _), answers in marks.marks.items():
        if model in problems_by_model:
            problems_by_model[model] |= answers.problems
    timed = [provider.step for provider in figures if provider.step is not None]

    # the share of each model's calls that were near in time to calls of all others
    calls: dict[str, Counter[int]] = {}
    for row in views.rows("FROM provider_minutes"):
        calls.setdefault(row["model"], Counter())[row["minute"]] = row["calls"]
    near = {
        model: {minute + n for minute in minutes for n in range(-NEARBY, NEARBY + 1)}
        for model, minutes in calls.items()
    }
    common = set.intersection(*near.values()) if near else set()
    together = {
        model: sum(count for minute, count in minutes.items() if minute in common) / minutes.total()
        for model, minutes in sorted(calls.items())
    }

    # The parameters that not all models were asked with, or not with the same values.
    values: dict[str, dict[str, set[bytes]]] = {}  # parameter → model → values
    rows = views.rows(_PARAMS)
    models = {row["model"] for row in rows}
    for row in rows:
        for name, value in {**orjson.loads(row["params"] or "{}"), "effort": row["effort"]}.items():
            values.setdefault(name, {}).setdefault(row["model"], set()).add(orjson.dumps(value))
    differing = sorted(
        name
        for name, by_model in values.items()
        if len({frozenset(by_model.get(model, ())) for model in models}) > 1
    )

    return Fairness(
        models=len(figures),
        problems=reduce(or_, problems_by_model.values()).bit_count(),
        common_problems=reduce(and_, problems_by_model.values()).bit_count(),
        together=together,
        parameters=differing,
        timed={provider.model: provider.timed_step for provider in figures},
        all_kept=bool(timed) and all(step.verdict == MET for step in timed),
    )


# ── The report


TIMES: Final = ("p50", "p95", "p99")
MEANING: Final = (
    "Accuracy is of the calls that were answered; `beside the best` is on the problems that both answered. "
    "Times are seconds; where a load was run they count from when a call was due."
)

# The reasons for which it stays open whether a rate keeps its SLO, in words.
_UNKNOWN: Final = {
    "client": "this computer was the bottleneck",
    "budget": "budget",
    "stopped": "stopped early",
    "too_few_calls": "too few calls",
}

# ── Answers as repeats of their problems: those of two models under one condition and step are paired


# For folders with a load: each step of a condition is a condition of its own.
_ANSWERS: Final = """
SELECT run, model, concat_ws(chr(0), condition, load) AS condition, suite, task, problem_id, outcome, repeat
FROM provider_trials
"""


def _answers_by_model(marks: Marked) -> dict[str, Marks]:
    """Return by model the marks of its answered trials, over all conditions, repeats and runs.

    Runs of different models are matched by number: the first run of one with the first of the other.
    """
    by_model = defaultdict[str, dict[tuple[str, int, str], tuple[Bits, Bits]]](dict)
    for (run, model, condition), ended in marks.ended.items():
        answered = (turns for outcome, turns in ended.items() if outcome != Outcome.FAILED)
        answered_turns = [reduce(or_, bits) for bits in zip(*answered, strict=True)]
        for n, bits in enumerate(answered_turns):
            if bits:
                by_model[model][condition, n, run] = bits, ended[Outcome.CORRECT][n]
    numbered = dict[str, dict[tuple[str, int, int], tuple[Bits, Bits]]]()
    for model, turns_by_run in by_model.items():
        runs = sorted({run for _, _, run in turns_by_run})
        numbered[model] = {
            (condition, n, runs.index(run)): bits for (condition, n, run), bits in turns_by_run.items()
        }
    order = sorted({turn for turns in numbered.values() for turn in turns})
    return {
        model: Marks(
            asked=tuple(turns.get(turn, (0, 0))[0] for turn in order),
            right=tuple(turns.get(turn, (0, 0))[1] for turn in order),
        )
        for model, turns in numbered.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideBest:
    """A model compared with the most accurate one, on the problems that both answered."""

    best: str
    interval: tuple[float, float]  # of the difference, 95 %
    p: float
    p_holm: float
    counts: ModelPair = field(metadata=INSIDE)  # a is this model, b the best


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLine:
    """One model of a folder."""

    figures: EndpointFigures = field(metadata=INSIDE)
    accuracy: float | None  # of answered trials
    accuracy_interval: tuple[float, float] | None
    answers: int
    beside_best: BesideBest | None  # None: this is the best model, or both have no problem in common
    highest_rate: HighestRate | None  # None: there was no load with an SLO

    @property
    @in_data("usd_per_1000_answers")
    def usd_per_1000(self) -> float | None:
        """Dollars for a thousand answers, with the cost of calls without an answer."""
        cost, answers = self.figures.cost_usd, self.figures.priced_replies
        return 1000 * cost / answers if cost is not None and answers else None

    @property
    @in_data("usd_per_correct")
    def usd_per_correct(self) -> float | None:
        return per_correct(self.figures.cost_usd, self.figures.priced_correct)

    @property
    def hours(self) -> tuple[HourFigures, HourFigures] | None:
        """The fastest and the slowest hour by median latency, or None if fewer than two hours have one."""
        timed_hours = [hour for hour in self.figures.hours if hour.latency.percentile("p50") is not None]
        medians = {id(hour): hour.latency.percentile("p50") or () for hour in timed_hours}
        ordered = sorted(timed_hours, key=lambda hour: medians[id(hour)])
        return (ordered[0], ordered[-1]) if len(ordered) > 1 else None

    @property
    def highest_text(self) -> str:
        """The highest rate that kept the SLO."""
        if self.highest_rate is None:
            return MISSING
        kept = self.highest_rate.kept
        if kept is None:  # unknown, unless a rate surely missed the SLO
            return "unknown" if self.highest_rate.stopped_by in _UNKNOWN else "none"
        arrivals = self.highest_rate.arrivals
        return rate_text(arrivals, kept) if arrivals in (CLOSED, TRACE) else _rpm(60 * kept)

    @property
    def stopped_by_text(self) -> str:
        """The reason why no higher rate counts."""
        cause = (self.highest_rate and self.highest_rate.stopped_by) or MISSING
        return _UNKNOWN.get(cause, cause.replace("slo", "SLO"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers(FolderReport):
    """The models of a folder, the most accurate first."""

    fairness: Fairness
    mixtures: tuple[str, ...]
    absent: tuple[str, ...]  # models of which no call counts
    providers: tuple[ProviderLine, ...]

    def remarks(self) -> Iterator[str]:
        yield MEANING
        yield from self.fairness.notes
        yield from self.mixtures
        if self.absent:
            yield f"Without a line, for no call of theirs counts: {', '.join(self.absent)}."
        for line in self.providers:
            if line.figures.asked_by == "load" and line.figures.step is None:
                yield (
                    f"{line.figures.model} has no times: in each of its steps this computer was the "
                    "bottleneck, or it was stopped early."
                )

    def sheets(self) -> Iterator[Sheet]:
        for title, columns in _SHEETS.items():
            names: Columns[ProviderLine] = {"model": lambda line: line.figures.model}
            sheet = filled(Sheet.of(title, {**names, **columns}, self.providers))
            if len(sheet.head) > 1:
                yield sheet


def providers_of(views: FolderViews) -> Providers:
    """Compare the models of results folders as providers of one; views have the answers to a load.

    Raises:
        ConfigError: a filter splits steps of a load.
        NothingToShowError: the folders have no calls in real time.
    """
    if (steps := steps_in(views)) and views.chosen.partly:
        raise ConfigError("--style providers measures whole steps of a load. Filter by --models alone.")
    figures = endpoints_in(views, steps)
    if not figures:
        message = (
            f"{views.chosen} has no calls in real time. Run a sweep or a load first, or name another folder."
        )
        raise NothingToShowError(views.chosen, message)

    # the marks of all trials, of sweeps and of loads
    loaded = views.rows("SELECT 1 FROM provider_trials WHERE load IS NOT NULL LIMIT 1")
    marks = marked(views, trials=_ANSWERS) if loaded else marks_in(views)
    views.drop(ANSWERS)  # what is counted next needs the room
    highest = {rate.model: rate for rate in reversed(highest_rates(steps, spent=spent_models(views)))}
    lines = tuple(_lines(figures, _answers_by_model(marks), highest))
    report = Providers(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        providers=lines,
        fairness=fairness_of(views, [line.figures for line in lines], marks),
        mixtures=mixtures(views),
        absent=tuple(sorted({step.model for step in steps} - {line.figures.model for line in lines})),
    )
    views.drop("provider_minutes", "timed_steps", "warmed", "provider_trials")
    return report


def _lines(
    figures: Sequence[EndpointFigures], answers: Mapping[str, Marks], highest: Mapping[str, HighestRate]
) -> Iterator[ProviderLine]:
    """Yield a line for each model, the most accurate first, compared with the first."""
    shares = {model: marks.correct / marks.trials for model, marks in answers.items()}
    best_first = sorted(figures, key=lambda provider: (-shares.get(provider.model, -1.0), provider.model))

    best = best_first[0].model
    others = [provider.model for provider in best_first[1:] if provider.model in answers]
    pairs = {model: pair(answers[model], answers[best]) for model in others}
    pairs = {model: counts for model, counts in pairs.items() if counts.trials}
    chances = [sign_flip(counts.differences) for counts in pairs.values()]
    comparisons = {
        model: BesideBest(best=best, counts=counts, interval=difference_interval(counts), p=p, p_holm=p_holm)
        for (model, counts), p, p_holm in zip(pairs.items(), chances, holm(chances), strict=True)
    }

    for provider in best_first:
        marks = answers.get(provider.model)
        accuracy, interval = (None, None) if marks is None else share_of(marks)
        yield ProviderLine(
            figures=provider,
            accuracy=accuracy,
            accuracy_interval=interval,
            answers=0 if marks is None else marks.trials,
            beside_best=comparisons.get(provider.model),
            highest_rate=highest.get(provider.model),
        )


# ── as tables ────────────────────────────────────────────────────────────────────────────────


def _seconds_of(line: ProviderLine, *, kind: str, name: str) -> str:
    """Return a percentile in seconds, or `ENDLESS` where it falls on a call without an answer."""
    times: CallTimes = getattr(line.figures, kind)
    percentile = times.percentile(name)
    if percentile is None:
        return "-"
    return ENDLESS if isinf(percentile.value) else f"{percentile.value:.3f}"


def _rpm(calls: float | None) -> str:
    return "-" if calls is None else f"{calls:,.0f} RPM"


def _served(line: ProviderLine, *, column: str) -> str:
    values = line.figures.served[column]
    if len(values) < 2:
        return values[0]["value"] if values else "-"
    return f"{len(values):,} ({sum(value['changes'] for value in values):,} changes)"


def _limits(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{limits[name]:,.0f} {waits.WORDS[name]}" for name in LIMITS if name in limits) or "-"


def _hour(line: ProviderLine, *, which: int) -> str:
    if line.hours is None:
        return "-"
    hour = line.hours[which]
    median = hour.latency.percentile("p50")
    if median is None or isinf(median.value):
        return f"{ENDLESS} ({hour.hour:%d %b %H}h)"
    high = ENDLESS if isinf(median.high) else f"{median.high:.2f}"
    return f"{median.value:.2f} ({median.low:.2f}-{high}), {hour.hour:%d %b %H}h"


_PRICES: Final[Columns[ProviderLine]] = {
    "accuracy of answers (95 % CI)": lambda line: percent(line.accuracy, line.accuracy_interval),
    "beside the best (95 % CI)": lambda line: (
        MISSING
        if line.beside_best is None
        else points(line.beside_best.counts.difference, line.beside_best.interval)
    ),
    "cost per 1,000 answers": lambda line: dollars(line.usd_per_1000),
    PER_CORRECT: lambda line: per_correct_text(line.figures.cost_usd, line.usd_per_correct),
    "truncated": lambda line: count(line.figures.truncated),
    "declined": lambda line: count(line.figures.declined),
}
_TIMES: Final[Columns[ProviderLine]] = {
    **{f"TTFT {name}": partial(_seconds_of, kind="ttft", name=name) for name in TIMES},
    **{f"latency {name}": partial(_seconds_of, kind="latency", name=name) for name in TIMES},
    "tokens/s of a call": lambda line: (
        "-" if line.figures.tokens_per_s is None else f"{line.figures.tokens_per_s:,.1f}"
    ),
    "connecting": lambda line: (
        "-" if line.figures.connect_p50_s is None else f"{line.figures.connect_p50_s:.3f}"
    ),
}
_CAPACITY: Final[Columns[ProviderLine]] = {
    "calls": lambda line: count(line.figures.calls),
    "availability (95 % CI)": lambda line: percent(*line.figures.availability.values()),
    "refused": lambda line: percent(line.figures.refused / line.figures.calls),
    "Retry-After": lambda line: (
        MISSING
        if line.figures.retry_after["median_s"] is None
        else f"{line.figures.retry_after['median_s']:.3g} s"
    ),
    "went through after it": lambda line: (
        f"{line.figures.retry_after['admitted']:,} of {line.figures.retry_after['obeyed']:,}"
        if line.figures.retry_after["obeyed"]
        else MISSING
    ),
    "highest rate": lambda line: line.highest_text,
    "stopped by": lambda line: line.stopped_by_text,
    "limit promised": lambda line: _limits(line.figures.limits["promised"]),
    "limit in force": lambda line: _limits(line.figures.limits["told"]),
    "limit found": lambda line: _rpm(line.figures.limits["found"]),
    "most answered": lambda line: _rpm(line.figures.limits["most"]),
}
_WHO: Final[Columns[ProviderLine]] = {
    "served model": partial(_served, column="model_served"),
    "fingerprint": partial(_served, column="fingerprint"),
    "upstream": partial(_served, column="upstream"),
    "fastest hour (95 % CI)": partial(_hour, which=0),
    "slowest hour (95 % CI)": partial(_hour, which=1),
}
_SHEETS: Final[Mapping[str, Columns[ProviderLine]]] = {
    "Answers and price": _PRICES,
    "Times, in seconds": _TIMES,
    "Limits and refusals": _CAPACITY,
    "Who answered, and when": _WHO,
}
