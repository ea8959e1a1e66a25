"""Which charts there are, what each is for, and the columns of its rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart before it has rows."""

    title: str
    purpose: str
    nothing: str = "Nothing is known of this for what is chosen."  # where it has no rows
    columns: Mapping[str, str]  # of its rows → what they hold, with the unit; unknown is None
    panels: bool = False  # small multiples, one for each value of `panel`; else one view
    metric: bool = False  # it shows whichever of METRICS is chosen


_MODEL: Final = "the model as it is called, with run and condition where it has several"
_LOW, _HIGH = "lower end of the 95 % interval, unit of value", "its upper end"
_AT: Final = "milliseconds since 1970, UTC"
_PART: Final = "counts up where nothing was asked for a while: lines end there"
_SHARE: Final = {"value": "accuracy over all trials, [0, 1]", "low": _LOW, "high": _HIGH, "trials": "count"}
_MAP: Final = {"value": "the metric, its unit", "trials": "what it was divided by: trials, answers or digits"}
_PLACE: Final = {"panel": "one of several pictures", "series": "one of its colours"}
_NO_CALLS: Final = "No call of what is chosen has a known latency: runs tell it, imported files do not."
_NAME_AT: Final = "side of the point that has room for its name, right or left; empty: neither"
_LENGTHS: Final = {"panel": _MODEL, "task": "task", "length": "digits, depth or characters", **_MAP}

CHARTS: Final[Mapping[str, Chart]] = {
    "bars": Chart(
        title="How the models compare",
        purpose="Which is better, by how much, and how sure that is.",
        columns={
            "panel": "suite or task; empty: all together",
            "model": _MODEL,
            "value": "the metric, its unit",
            "low": _LOW,
            "high": _HIGH,
            "trials": "what it was divided by: trials, answers or digits",
            "label": "the value as text",
        },
        panels=True,
        metric=True,
    ),
    "pairs": Chart(
        title="Paired differences",
        purpose="Whether the leader is really better, on the problems that both were asked.",
        nothing="No two models that are chosen were ranked on the same problems: there is nothing to pair.",
        columns={
            "pair": "first − second",
            "model": "the first",
            "other": "the second",
            "difference": "accuracy of the first less that of the second, [-1, 1]",
            "low": _LOW,
            "high": _HIGH,
            "p": "of the paired test, adjusted for all pairs",
            "tied": "whether it leaves open which is better",
            "problems": "that both were asked",
        },
    ),
    "task_map": Chart(
        title="Model by task",
        purpose="Who can do what.",
        columns={"model": _MODEL, "task": "task", **_MAP},
        metric=True,
    ),
    "length_map": Chart(
        title="Task by length",
        purpose="Where a model breaks.",
        nothing="No length is known of what is chosen.",
        columns=_LENGTHS,
        panels=True,
        metric=True,
    ),
    "depth_map": Chart(
        title="llm_arithmetic: variant by depth",
        purpose="The benchmark's own heatmap.",
        nothing="No length is known of what is chosen.",
        columns=_LENGTHS,
        panels=True,
        metric=True,
    ),
    "curves": Chart(
        title="Accuracy against length",
        purpose="How many digits a model can do; marked is where half of the answers are right.",
        nothing="No length is known of what is chosen.",
        columns={
            **_PLACE,
            "kind": "point (counted), line (fitted) or half (where the line crosses 50 %)",
            "length": "digits, depth or characters; of a point the mean of up to a twentieth of the lengths",
            "value": "accuracy of the trials with a reply, [0, 1]",
            "low": _LOW,
            "high": _HIGH,
            "trials": "with a reply; 0 but for points",
            "label": "of a half: its length as text",
        },
        panels=True,
    ),
    "frontier_cost": Chart(
        title="Accuracy against cost",
        purpose="What accuracy costs; the line joins the models that none beats at their price.",
        nothing="No price is known of what is chosen: give `price` in the sweep, or choose other models.",
        columns={
            "model": _MODEL,
            "x": "USD per 1,000 trials; what is free stands at a third of the least",
            "cost": "USD per 1,000 trials",
            **_SHARE,
            "front": "whether nobody is as good for less, or better for as little",
            "name_at": _NAME_AT,
        },
    ),
    "frontier_reasoning": Chart(
        title="Accuracy against reasoning",
        purpose="What accuracy takes in reasoning tokens; the line joins the models that none beats.",
        nothing="No model that is chosen told of any reasoning tokens.",
        columns={
            "model": _MODEL,
            "x": "mean reasoning tokens a trial",
            **_SHARE,
            "front": "whether nobody is as good with less, or better with as little",
            "name_at": _NAME_AT,
        },
    ),
    "outcomes": Chart(
        title="What became of the trials",
        purpose="How much of what is not right is wrong, and how much is lost.",
        columns={
            "model": _MODEL,
            "outcome": "correct, wrong, no_answer, truncated, refused or failed",
            "place": "its place in the stack, from 0",
            "trials": "count",
            "share": "of the model's trials, [0, 1]",
        },
    ),
    "digit_errors": Chart(
        title="Errors by digit position",
        purpose="Whether the first digits fail, the last, or those between.",
        nothing="Nothing that is chosen has a wrong answer that could be laid beside the right one.",
        columns={
            "panel": "from the first digit, or from the last; with many models the model",
            "series": "the model; with many of them the end",
            "position": "place of the digit, 1 is the outermost",
            "errors": "wrong answers whose digit here is wrong",
            "answers": "wrong answers that have a digit here",
            "value": "errors over answers, [0, 1]",
            "low": _LOW,
            "high": _HIGH,
        },
        panels=True,
    ),
    "kinds": Chart(
        title="Kinds of errors",
        purpose="What goes wrong in wrong answers; each row sums to 100 %.",
        nothing="Nothing that is chosen has a wrong answer that was examined.",
        columns={
            "model": _MODEL,
            "kind": "kind of error; with many of them the rarer ones together, as others",
            "wrong": "examined wrong answers of this kind",
            "value": "share of the model's examined wrong answers, [0, 1]",
        },
    ),
    "latency": Chart(
        title="Latency over time",
        purpose="Whether answers slowed down: the median, and in shade up to the 95th percentile.",
        nothing=_NO_CALLS,
        columns={
            **_PLACE,
            "at": _AT,
            "part": _PART,
            "p50_s": "seconds, of the calls that began then",
            "p95_s": "seconds",
            "calls": "count",
        },
        panels=True,
    ),
    "throughput": Chart(
        title="Throughput over time",
        purpose="How fast answers came, by when their calls began.",
        nothing=_NO_CALLS,
        columns={
            **_PLACE,
            "at": _AT,
            "part": _PART,
            "calls_per_minute": "answered calls a minute",
            "tokens_per_minute": "output tokens a minute",
        },
        panels=True,
    ),
    "quota": Chart(
        title="Use of the limits over time",
        purpose="How much of what is paid for was used; the dashed line is all of it.",
        nothing="No limit was set for a lane and none was told by a provider, so there is none to use.",
        columns={
            "panel": "lane",
            "series": "requests, tokens, input_tokens or output_tokens a minute",
            "at": _AT,
            "part": _PART,
            "used": "share of the limit, 1 is all",
            "refused": "calls refused",
        },
        panels=True,
    ),
}
