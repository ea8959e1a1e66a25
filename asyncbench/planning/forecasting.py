"""What is left of a model, forecast from what its folder holds, where that is enough."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from asyncbench.planning.batch_plan import pace_of
from asyncbench.planning.draws import Prompt, RemainingTrials, draws_of
from asyncbench.planning.estimates import Needs, Range, TokensAndCost, total
from asyncbench.planning.finished import Way
from asyncbench.planning.guesses import batch_rates_of, rates_asked
from asyncbench.planning.records import Forecast
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.providers.params import longest_reply_of
from asyncbench.records import Model
from asyncbench.suites.requests import said_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A model's forecast, and what it was made from: those of several models add up draw by draw."""

    lane: str  # whose queue it is in: models of one lane take turns, lanes run side by side
    forecast: Forecast
    spent: Needs
    draws: Sequence[Needs]
    seconds: Sequence[float]  # of each draw


def drawing_of(rest: Remainder, model: Model, *, draws: int) -> Drawing | None:
    """Return a model's forecast, drawn so often; None where too little is known of some of its trials."""
    known, ways = rest.uses_of(model), rest.ways_left(model)
    if not known or not draws or not all(map(rest.is_known, ways)):
        return None
    rests = [_remaining(rest, model, way) for way in ways]
    each = [draws_of(trials, draws=draws, seed=f"{model.alias} {i}") for i, trials in enumerate(rests)]
    drawn = [Needs.of_all(needs) for needs in zip([Needs()] * draws, *each, strict=True)]
    longest_s = max((trials.seen.longest_call_s for trials in rests), default=0.0)
    within_s = rest.switches_s(model)
    paces = [
        pace_of(model, rest.sweep.batch, needs, longest_s=longest_s, within_s=within_s) for needs in drawn
    ]
    seconds = [lane.seconds for lane in paces]
    spent = Needs.of_all(use.used for use in known)
    forecast = Forecast(
        replies=sum(use.replies for use in known),
        spent=TokensAndCost(
            input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd
        ),
        left=_ranges_of(drawn),
        batch_usd=Range.of_known(needs.batch_usd for needs in drawn),
        total=_ranges_of(drawn, spent),
        seconds=Range.of(seconds),
        bound_by=Counter(lane.bound_by for lane in paces).most_common(1)[0][0],
    )
    lane = model.limits.group or model.turn or model.alias
    return Drawing(lane=lane, forecast=forecast, spent=spent, draws=drawn, seconds=seconds)


def _remaining(rest: Remainder, model: Model, way: Way) -> RemainingTrials:
    """Return what is left of a model of one way of asking."""
    left, condition = rest.left[model.alias], rest.conditions_of(model)[way.condition]
    before = said_before(model, condition)
    prompts = Counter[Prompt]()
    for shape, count in left.shapes.items():
        if (shape.condition, shape.cell.suite) == (way.condition, way.suite):
            prompts[Prompt(shape.cell, shape.question + before)] += count
    return RemainingTrials(
        seen=rest.seen[way],
        prompts=prompts,
        sent={
            cell: left.characters[name, cell] / trials + before
            for (name, cell), trials in left.finished.items()
            if name == way.condition
        },
        rates=rates_asked(model, condition, rest.at_s),
        batch_rates=batch_rates_of(model, rest.at_s),
        most=longest_reply_of(model, condition),
    )


def _ranges_of(draws: Sequence[Needs], spent: Needs = Needs()) -> TokensAndCost[Range]:  # noqa: B008  immutable
    """Return the ranges of what was spent and each draw together."""
    return TokensAndCost(
        input_tokens=Range.of(spent.input_tokens + needs.input_tokens for needs in draws),
        output_tokens=Range.of(spent.output_tokens + needs.output_tokens for needs in draws),
        cost_usd=Range.of_known(total((spent.cost_usd, needs.cost_usd)) for needs in draws),
    )


def sum_of(drawings: Sequence[Drawing]) -> tuple[TokensAndCost[Range], TokensAndCost[Range], Range]:
    """Return what several models take together: what is left, the whole sweep, and for how long (seconds)."""
    several = zip(*(drawing.draws for drawing in drawings), strict=False)  # some are drawn more often
    left = list(map(Needs.of_all, several))
    spent = Needs.of_all(drawing.spent for drawing in drawings)
    return _ranges_of(left), _ranges_of(left, spent), seconds_of(drawings)


def seconds_of(drawings: Sequence[Drawing]) -> Range:
    """Return how long several models take together: as long as the slowest lane, draw by draw."""
    lanes = defaultdict[str, list[Sequence[float]]](list)
    for drawing in drawings:
        lanes[drawing.lane].append(drawing.seconds)
    each = [[sum(seconds) for seconds in zip(*of_models, strict=False)] for of_models in lanes.values()]
    return Range.of(map(max, zip(*each, strict=False)))
