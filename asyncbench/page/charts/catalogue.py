"""The catalogue of charts: title and purpose of each, and the columns of its rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The words and the layout of a chart, without its rows."""

    title: str
    purpose: str
    nothing: str = "Your selection has no data for this chart."  # where it has no rows
    columns: Mapping[str, str]  # of its rows → what they hold, with the unit; unknown is None
    panels: str = ""  # small multiples, one for each value of this column; empty: one view
    paired: bool = False  # each panel and the next stand side by side
    room: int = 400  # pixels of a page that a panel takes with its names: as many stand side by side
    metric: bool = False  # it shows whichever of METRICS is chosen
    load: bool = False  # it shows the steps of a load


_MODEL: Final = "the model as it is called, with run and condition where it has several"
_WHO: Final = {"asked": "place of the entrant", "model": "its short name", "colour": "its colour"}
_KIND: Final = {"kind": "place of the kind of question", "task": "what it is called"}
_LOW, _HIGH = "lower end of the 95 % interval, unit of value", "its upper end"
_AT: Final = "milliseconds since 1970, UTC"
_SHARE: Final = {"value": "accuracy over all trials, [0, 1]", "low": _LOW, "high": _HIGH, "trials": "count"}
_MAP: Final = {"value": "the metric, its unit", "trials": "what it was divided by: trials, answers or digits"}
_PLACE: Final = {"panel": "one of several pictures", "series": "one of its colours"}
_NO_CALLS: Final = "Your selection has no calls with a known latency. Runs record it; imported files do not."
_NO_COURSE: Final = f"{_NO_CALLS} A chart over time takes three points."
_BIN: Final = "how long a point is, seconds"
_PART: Final = "counts up where nothing was asked for a while: lines end there"
_LINE: Final = {
    **_WHO,
    "panel": "empty, or the model where they are many",
    "at": _AT,
    "seconds": _BIN,
    "part": _PART,
}
_NAMES_AT: Final = {
    "name_at": "side of the point that has room for its name, right or left; empty: neither",
    "name_at_narrow": "the same in a narrow drawing",
}
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
    "low": _LOW,
    "high": f"{_HIGH}; unknown where it falls on a call without an answer",
    "slo": "what the SLO promises, seconds; null: nothing",
}

ONLY_FIGURES: Final = frozenset({"pairs", "task_map", "length_map", "kinds"})  # tables on the page

CHARTS: Final[Mapping[str, Chart]] = {
    "dots": Chart(
        title="How the models compare",
        purpose="Which model is better on the problems that all were asked, and how certain that is. Models "
        "with the same rank are statistically tied with its best.",
        nothing="No models of your selection were ranked together.",
        columns={
            **_WHO,
            "place": "rank; shared by models that are tied with its best",
            "value": "accuracy on the problems of the ranking, [0, 1]",
            "low": _LOW,
            "high": _HIGH,
            "trials": "on these problems",
        },
    ),
    "pairs": Chart(
        title="Lead of the best model",
        purpose="Whether the best model is really better, on the problems that both models were asked.",
        nothing="No two models of your selection were ranked on the same problems.",
        columns={
            **_WHO,
            "pair": "first − second",
            "model": "the first: the best",
            "other": "the second, whose place and colour these are",
            "difference": "accuracy of the first less that of the second, [-1, 1]",
            "low": _LOW,
            "high": _HIGH,
            "p": "of the paired test, adjusted for all pairs",
            "tied": "whether it leaves open which is better",
            "problems": "that both were asked",
        },
    ),
    "curves": Chart(
        title="Where each model breaks",
        purpose="Accuracy against length, of the trials with a reply. The dashed line is at 50 %.",
        nothing="Your selection has no problems with a known length.",
        columns={
            **_WHO,
            **_KIND,
            "lit": "whether it has its colour; else its line is grey and has no name",
            "sort": "point (counted), line (fitted) or half (where the line crosses 50 %)",
            "length": "digits, depth or characters; of a point the mean",
            "value": "accuracy, [0, 1]",
            "low": _LOW,
            "high": _HIGH,
            "trials": "of a point, 8 or more; else 0",
            "label": "of a half: its length as text",
            "from": "of a point: its shortest length",
            "to": "of a point: its longest length",
        },
        panels="task",
        room=500,
    ),
    "halves": Chart(
        title="How far each model gets",
        purpose="The length up to which half of the answers are right, with 95 % CI. A triangle points "
        "beyond the lengths that were asked.",
        nothing="Your selection has no problems with a known length.",
        columns={
            **_WHO,
            **_KIND,
            "at": "the length; a bound at the end of what was asked, a step in its middle",
            "low": "lower end of its 95 % interval; unknown: below what was asked",
            "high": "upper end; unknown: beyond what was asked",
            "bound": "within, between two lengths, above or below all that were asked; unknown: see label",
            "shortest": "length that was asked",
            "longest": "length that was asked",
            "label": "the length as text",
            "trials": "with a reply",
        },
        panels="task",
    ),
    "task_map": Chart(
        title="Task by model",
        purpose="What each model can do. Colours differ most above 80 %.",
        columns={**_WHO, **_KIND, **_MAP},
        metric=True,
    ),
    "length_map": Chart(
        title="Task by length",
        purpose="Accuracy of each task by length, in percent.",
        nothing="Your selection has no problems with a known length.",
        columns={
            **_WHO,
            **_KIND,
            "length": "digits, depth or characters: the longest of its bin",
            "from": "the shortest of its bin",
            "to": "the longest of its bin",
            **_MAP,
        },
        panels="model",
    ),
    "frontier_cost": Chart(
        title="Accuracy against cost",
        purpose="What accuracy costs on the same kinds of questions, if not on the same problems. The line "
        "joins the models that no other model beats at their price.",
        nothing="Your selection has no known price. Set `price` in the sweep, or select other models.",
        columns={
            **_WHO,
            "x": "USD per 1,000 trials; what is free stands at a third of the least",
            "cost": "USD per 1,000 trials",
            **_SHARE,
            "front": "whether nobody is as good for less, or better for as little",
            **_NAMES_AT,
        },
    ),
    "frontier_reasoning": Chart(
        title="Accuracy against reasoning",
        purpose="Accuracy by reasoning tokens on the same kinds of questions, if not on the same problems. "
        "The line joins the models that no other model beats.",
        nothing="No model of your selection reported reasoning tokens.",
        columns={
            **_WHO,
            "x": "mean reasoning tokens a trial",
            **_SHARE,
            "front": "whether nobody is as good with less, or better with as little",
            **_NAMES_AT,
        },
    ),
    "outcomes": Chart(
        title="Outcomes of the trials",
        purpose="How many trials are right, how many are wrong, and how many were lost.",
        columns={
            **_WHO,
            "outcome": "correct, wrong, no_answer, truncated, refused or failed",
            "place": "its place in the stack, from 0",
            "trials": "count",
            "share": "of the model's trials, [0, 1]",
        },
    ),
    "digit_errors": Chart(
        title="Errors by digit position",
        purpose="Of the wrong answers, how many percent have a wrong digit at each place, from either end.",
        nothing="Your selection has too few wrong answers that can be compared digit by digit.",
        columns={
            **_WHO,
            **_KIND,
            "end": "first or last",
            "position": "place of the digit, 1 is the outermost",
            "errors": "wrong answers whose digit here is wrong",
            "answers": "wrong answers that have a digit here",
            "value": "errors over answers, [0, 1]",
            "low": _LOW,
            "high": _HIGH,
        },
        panels="task",
        room=620,
    ),
    "kinds": Chart(
        title="Kinds of errors",
        purpose="What goes wrong, in percent of each model's wrong answers. Their number stands in brackets.",
        nothing="Your selection has no wrong answer that was examined.",
        columns={
            **_WHO,
            "error": "kind of error; of many the rarer ones together, as others",
            "nth": "place of the kind of error, the commonest first",
            "wrong": "examined wrong answers of this kind",
            "value": "share of the model's examined wrong answers, [0, 1]",
        },
    ),
    "times": Chart(
        title="How long calls took",
        purpose="The median (dot), p95 and p99 (ticks) of each model's answered calls.",
        nothing=_NO_CALLS,
        columns={
            "panel": "TTFT, latency or queued (before it was sent)",
            **_WHO,
            **{
                f"p{share}": f"seconds that {share} % of the calls did not exceed"
                for share in (50, 90, 95, 99)
            },
            "calls": "answered calls whose time is known",
            "answered": "answered calls",
        },
        panels="panel",
        paired=True,
    ),
    "latency": Chart(
        title="Latency over time",
        purpose="Whether answers slowed down. Line: the median. One model alone is shaded up to its p95.",
        nothing=_NO_COURSE,
        columns={
            **_LINE,
            "p50_s": "seconds, of the calls that began then",
            "p95_s": "seconds",
            "calls": "answered calls",
        },
        panels="panel",
    ),
    "throughput": Chart(
        title="Throughput over time",
        purpose="How fast answers came, by the time at which their calls began.",
        nothing=_NO_COURSE,
        columns={**_LINE, "calls_per_minute": "answered calls a minute", "calls": "answered calls"},
        panels="panel",
    ),
    "tokens": Chart(
        title="Output tokens over time",
        purpose="How many output tokens came, by the time at which their calls began.",
        nothing=_NO_COURSE,
        columns={**_LINE, "tokens_per_minute": "output tokens a minute", "calls": "answered calls"},
        panels="panel",
    ),
    "failures": Chart(
        title="Failed calls over time",
        purpose="When calls ended without an answer, and how. Calls that were tried again are among them.",
        nothing="Your selection has too few failed calls for a chart.",
        columns={
            **_LINE,
            "status": "how they ended",
            "calls": "count",
            "calls_per_minute": "calls a minute",
        },
        panels="panel",
    ),
    "quota": Chart(
        title="Use of rate limits over time",
        purpose="How much of each rate limit was used. The dashed line is the whole limit.",
        nothing="No rate limits are known: the sweep sets none, and the provider reported none.",
        columns={
            "panel": "lane",
            "part": _PART,
            "limit": "requests, tokens, input_tokens or output_tokens a minute",
            "at": _AT,
            "seconds": _BIN,
            "used": "share of the limit, 1 is all",
            "per_minute": "the limit, a minute",
            "refused": "calls refused",
        },
        panels="panel",
    ),
    "load_times": Chart(
        title="Times over rate",
        purpose="Up to which rate calls come in time. Lines end where too many lack an answer. Dashed: SLO.",
        nothing=_NO_STEPS,
        columns=_PERCENTILE,
        panels="panel",
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
        panels="panel",
        load=True,
    ),
    "load_knee": Chart(
        title="Latency over throughput",
        purpose="How many answers a second can be had, and at which latency. Dashed: the SLO.",
        nothing=_NO_STEPS,
        columns=_PERCENTILE,
        panels="panel",
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
        panels="panel",
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
            "low": _LOW,
            "high": _HIGH,
            "trials": "answers",
        },
        load=True,
    ),
    "load_cost": Chart(
        title="Cost over rate",
        purpose="What 1,000 answers cost at each rate.",
        nothing=_NO_STEPS,
        columns={"series": _MODEL, **_STEP, "value": "USD"},
        load=True,
    ),
}
