"""What is left of a model, forecast from what its folder holds, where that is enough."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asyncbench.config import Sweep
from asyncbench.planning.draws import Prompt, RemainingTrials, draws_of
from asyncbench.planning.estimates import Needs, Range, TokensAndCost, total
from asyncbench.planning.finished import SeenUse, Way
from asyncbench.planning.guesses import batch_rates_of, pace, rates_asked
from asyncbench.planning.records import Forecast
from asyncbench.planning.remaining_trials import Left
from asyncbench.prompting import said_before
from asyncbench.providers import longest_reply_of
from asyncbench.records import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A model's forecast, and what it was made from: those of several models add up draw by draw."""

    lane: str  # whose queue it is in: models of one lane take turns, lanes run side by side
    forecast: Forecast
    spent: Needs
    draws: Sequence[Needs]
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
    rests = _rests(sweep, model, left, seen, at_s)
    known = [use for way, use in seen.items() if way.model == model.alias]
    if rests is None or not known or not draws:
        return None
    each = [draws_of(rest, draws=draws, seed=f"{model.alias} {i}") for i, rest in enumerate(rests)]
    drawn = [Needs.of_all(needs) for needs in zip([Needs()] * draws, *each, strict=True)]
    longest_s = max((rest.seen.longest_call_s for rest in rests), default=0.0)
    paces = [pace(model.limits, needs, longest_s=longest_s) for needs in drawn]
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
    lane = model.limits.group or model.alias
    return Drawing(lane=lane, forecast=forecast, spent=spent, draws=drawn, seconds=seconds)


def _rests(
    sweep: Sweep, model: Model, left: Left, seen: Mapping[Way, SeenUse], at_s: float
) -> list[RemainingTrials] | None:
    """Return what is left by way of asking; None where one is not known well enough."""
    conditions = {condition.name: condition for condition in sweep.conditions}
    before = {name: said_before(model, condition) for name, condition in conditions.items()}
    prompts = defaultdict[tuple[str, str], Counter[Prompt]](Counter[Prompt])
    for shape, count in left.shapes.items():
        prompt = Prompt(shape.cell, shape.question + before[shape.condition])
        prompts[shape.condition, shape.cell.suite][prompt] += count
    rests: list[RemainingTrials] = []
    for name, suite in sorted(prompts):
        use = seen.get(Way(model.alias, name, suite))
        if use is None or not use.enough:
            return None
        rests.append(
            RemainingTrials(
                seen=use,
                prompts=prompts[name, suite],
                sent={
                    cell: left.characters[of, cell] / trials + before[name]
                    for (of, cell), trials in left.finished.items()
                    if of == name
                },
                rates=rates_asked(model, conditions[name], at_s),
                batch_rates=batch_rates_of(model, at_s),
                most=longest_reply_of(model, conditions[name]),
            )
        )
    return rests


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
