"""What is left of a model, forecast from what its folder holds, where that is enough."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from asyncbench.config import Sweep
from asyncbench.planning import pace as pacing
from asyncbench.planning.forecast.ranges import Range
from asyncbench.planning.forecast.remaining_cost import (
    Drawn,
    Prompt,
    RemainingTrials,
    draws_of,
    forecastable,
    longest_call_s,
)
from asyncbench.planning.forecast.seen_use import SeenUse, Way
from asyncbench.planning.prices import batch_rates_of, rates_asked
from asyncbench.planning.remaining_trials import Left, Shape
from asyncbench.prompting import said_before
from asyncbench.providers import longest_reply_of
from asyncbench.records import Condition, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedUse:
    """What the finished trials of a model used."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None  # of the calls that gave their answers; None: that of one is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialNeeds:
    """What trials will take."""

    input_tokens: Range
    output_tokens: Range
    cost_usd: Range | None  # None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a model's trials will take, as its finished ones tell."""

    replies: int  # it was made from
    spent: FinishedUse
    left: TrialNeeds
    batch_usd: Range | None  # of what is left, asked in a batch; None: no such price is known
    total: TrialNeeds  # of the whole sweep: spent and left
    seconds: Range
    bound_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A model's forecast, and what it was made from: those of several models add up draw by draw."""

    lane: str  # whose queue it is in: models of one lane take turns, lanes run side by side
    forecast: Forecast
    draws: Sequence[Drawn]
    seconds: Sequence[float]  # of each draw


def drawing_of(
    sweep: Sweep, model: Model, left: Left, seen: Mapping[Way, SeenUse], at_s: float, *, draws: int
) -> Drawing | None:
    """Return a model's forecast; None where too little is known of how some of its trials are asked.

    Args:
        sweep: how problems are asked.
        model: who is asked.
        left: what is still to be asked.
        seen: what finished trials used, by their way of asking.
        at_s: when it will be asked, for prices: UTC, seconds since 1970.
        draws: how often it is drawn; 0: it is not.
    """
    conditions = {condition.name: condition for condition in sweep.conditions}
    rests = _rests(model, conditions, left, seen, at_s)
    known = [one for way, one in seen.items() if way.model == model.alias]
    if rests is None or not known or not draws:
        return None
    drawn = _together(model.alias, rests, draws)
    spent = FinishedUse(
        input_tokens=sum(one.input_tokens for one in known),
        output_tokens=sum(one.output_tokens for one in known),
        cost_usd=_sum([one.cost_usd for one in known]),
    )
    paces = [_pace(model, one, rests) for one in drawn]
    seconds = [one.seconds for one in paces]
    forecast = Forecast(
        replies=sum(one.replies for one in known),
        spent=spent,
        left=figures_of(drawn),
        batch_usd=_range([one.batch_usd for one in drawn]),
        total=figures_of([_with(spent, one) for one in drawn]),
        seconds=Range.of(seconds),
        bound_by=Counter(one.bound_by for one in paces).most_common(1)[0][0],
    )
    return Drawing(lane=model.limits.group or model.alias, forecast=forecast, draws=drawn, seconds=seconds)


def _rests(
    model: Model,
    conditions: Mapping[str, Condition],
    left: Left,
    seen: Mapping[Way, SeenUse],
    at_s: float,
) -> list[RemainingTrials] | None:
    """Return what is left by way of asking; None where one is not known well enough."""
    rests: list[RemainingTrials] = []
    for (name, suite), shapes in groupby(sorted(left.shapes, key=_asked), key=_asked):
        condition = conditions[name]
        one = seen.get(Way(model.alias, name, suite))
        if one is None or not forecastable(one):
            return None
        before = said_before(model, condition)
        rests.append(
            RemainingTrials(
                seen=one,
                prompts=_prompts(left, shapes, before),
                sent={
                    cell: asking.characters / asking.trials + before
                    for (of, cell), asking in left.finished.items()
                    if of == name
                },
                rates=rates_asked(model, condition, at_s),
                batch_rates=batch_rates_of(model, at_s),
                most=longest_reply_of(model, condition),
            )
        )
    return rests


def _asked(shape: Shape) -> tuple[str, str]:
    return shape.condition, shape.cell.suite


def _prompts(left: Left, shapes: Iterable[Shape], before: int) -> Counter[Prompt]:
    prompts = Counter[Prompt]()
    for shape in shapes:
        prompts[Prompt(shape.cell, shape.question + before)] += left.shapes[shape]
    return prompts


NOTHING = Drawn(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _together(alias: str, rests: Sequence[RemainingTrials], draws: int) -> list[Drawn]:
    """Return draws of all that is left of a model."""
    sums = [NOTHING] * draws
    for i, rest in enumerate(rests):
        more = draws_of(rest, draws=draws, seed=f"{alias} {i}")
        sums = [a + b for a, b in zip(sums, more, strict=True)]
    return sums


def sum_of(drawings: Sequence[Drawing]) -> tuple[TrialNeeds, TrialNeeds]:
    """Return what several models will take together: of what is left, and of the whole sweep."""
    left = [_added(many) for many in zip(*(one.draws for one in drawings), strict=False)]
    spent = FinishedUse(
        input_tokens=sum(one.forecast.spent.input_tokens for one in drawings),
        output_tokens=sum(one.forecast.spent.output_tokens for one in drawings),
        cost_usd=_sum([one.forecast.spent.cost_usd for one in drawings]),
    )
    return figures_of(left), figures_of([_with(spent, one) for one in left])


def seconds_of(drawings: Sequence[Drawing]) -> Range:
    """Return how long several models take together: as long as the slowest lane, draw by draw."""
    lanes = dict.fromkeys(one.lane for one in drawings)
    in_lanes = [[one.seconds for one in drawings if one.lane == lane] for lane in lanes]
    each = [[sum(many) for many in zip(*some, strict=False)] for some in in_lanes]
    return Range.of(map(max, zip(*each, strict=False)))


def _added(many: Iterable[Drawn]) -> Drawn:
    whole = NOTHING
    for one in many:
        whole = whole + one
    return whole


def _with(spent: FinishedUse, one: Drawn) -> Drawn:
    usd = None if one.cost_usd is None or spent.cost_usd is None else one.cost_usd + spent.cost_usd
    return replace(
        one,
        input_tokens=one.input_tokens + spent.input_tokens,
        output_tokens=one.output_tokens + spent.output_tokens,
        cost_usd=usd,
    )


def figures_of(draws: Sequence[Drawn]) -> TrialNeeds:
    """Return the ranges of draws."""
    return TrialNeeds(
        input_tokens=Range.of(one.input_tokens for one in draws),
        output_tokens=Range.of(one.output_tokens for one in draws),
        cost_usd=_range([one.cost_usd for one in draws]),
    )


def _range(values: Sequence[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    return Range.of(known) if len(known) == len(values) else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _pace(model: Model, one: Drawn, rests: Sequence[RemainingTrials]) -> pacing.LanePace:
    guessed_s = one.trials * pacing.latency_of(one.output_tokens / max(1, one.trials))
    latency_s = guessed_s if one.latency_s is None else one.latency_s
    longest_s = max((longest_call_s(rest.seen.latency, rest.seen) for rest in rests), default=0.0)
    return pacing.pace(
        model.limits,
        trials=one.trials,
        input_tokens=round(one.input_tokens),
        output_tokens=round(one.output_tokens),
        latency_s=latency_s,
        longest_s=longest_s,
    )
