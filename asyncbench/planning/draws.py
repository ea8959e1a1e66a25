"""Forecasts by simulation: tokens, cost and time of the remaining trials, drawn many times."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.finished import SeenUse, StraightLine, Way
from asyncbench.planning.guesses import batch_rates_of, rates_asked
from asyncbench.planning.modes import pace_of
from asyncbench.planning.records import Forecast, Needs, Range, TokensAndCost, total
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.planning.replies import Replies
from asyncbench.pricing import Rates, cost_usd
from asyncbench.providers.params import longest_reply_of
from asyncbench.records import Cell, Model, Usage
from asyncbench.suites.requests import characters_before_question

DRAWS: Final = 400
FEWEST_DRAWS: Final = 100
FEWEST_QUICK: Final = 40  # where a run waits: the 5th percentile is the second or third of so many
WORK: Final = 60_000  # cells times draws: about a second
MANY_TOKENS: Final = 1_000_000


class Prompt(NamedTuple):
    """Trials of a cell that are equally long."""

    cell: Cell
    characters: int  # of all that is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingTrials:
    """The remaining trials of a model that are asked one way."""

    seen: SeenUse
    prompts: Counter[Prompt]
    sent: Mapping[Cell, float]  # mean characters of the finished trials of a cell
    rates: Rates | None
    batch_rates: Rates | None  # of the same calls in a batch
    most: int | None  # tokens of a reply


def draws_for(works: Sequence[int], *, quick: bool) -> list[int]:
    """Return how many times to draw each model, by the cells of it; `quick`: 0 where that takes seconds."""
    if not quick:
        return [max(FEWEST_DRAWS, min(DRAWS, WORK // max(1, work))) for work in works]
    draws = min(DRAWS, WORK // max(1, sum(works)))
    return [draws if draws >= FEWEST_QUICK else 0] * len(works)


def draws_of(rest: RemainingTrials, *, draws: int, seed: str) -> list[Needs]:
    """Return what a rest may take, `draws` times; the same seed gives the same."""
    rng = random.Random(seed)  # noqa: S311  repeatable, and guards nothing
    cells = rest.seen.cells
    # The tokens of each character of a prompt, and those of any prompt: as cells differ.
    line = StraightLine.through(
        (rest.sent[cell], 1.0, use.input_tokens)
        for cell, use in cells.items()
        if use.input_tokens is not None and rest.sent.get(cell)
    ) or StraightLine(1 / CHARACTERS_PER_TOKEN, 0.0, 0.0)
    bills = _bills(rest, line)
    replies = Replies(cells, [(cell, int(bill[0])) for (cell, _, _), bill in bills.items()])
    _, *each_usd = zip(*bills, strict=True)
    sent = np.array([*bills.values()])
    return [_drawn(rest, sent, each_usd, replies, line.error, rng) for _ in range(draws)]


_Group = tuple[Cell, float | None, float | None]  # and USD of a token of a reply: as it comes, in a batch
_Bill = npt.NDArray[np.float64]  # trials, and what is sent with all: tokens, USD as they come, USD in a batch


def _bills(rest: RemainingTrials, line: StraightLine) -> dict[_Group, _Bill]:
    """Return what is sent, by cell and by price: a longer prompt may make every token dearer."""
    bills = dict[_Group, _Bill]()
    for (cell, characters), count in rest.prompts.items():
        use, sent = rest.seen.cells.get(cell), rest.sent.get(cell)
        if use is None or use.input_tokens is None or not sent:
            tokens = line.first * characters + line.second
        else:  # as those of its cell, and more or fewer as its characters are
            tokens = max(1.0, use.input_tokens + line.first * (characters - sent))
        prompt_usd, token_usd = _priced(tokens, rest.rates)
        batch_prompt_usd, batch_token_usd = _priced(tokens, rest.batch_rates)
        group = cell, token_usd, batch_token_usd
        bills[group] = bills.get(group, 0) + count * np.array([1, tokens, prompt_usd, batch_prompt_usd])
    return bills


def _priced(input_tokens: float, rates: Rates | None) -> tuple[float, float | None]:
    """Return the USD of a prompt and of each token of its reply; the latter None where that is unknown."""
    sent = round(input_tokens)
    prompt = cost_usd(Usage(input_tokens=sent, output_tokens=0), rates)
    much = cost_usd(Usage(input_tokens=sent, output_tokens=MANY_TOKENS), rates)
    if prompt is None or much is None:
        return 0.0, None
    return prompt, (much - prompt) / MANY_TOKENS


def _drawn(
    rest: RemainingTrials,
    sent: _Bill,
    each_usd: Sequence[Sequence[float | None]],
    replies: Replies,
    unsure: float,
    rng: random.Random,
) -> Needs:
    """Return what a rest may take; `sent`: a row for each group, `each_usd`: of a token of its replies."""
    stretched = rng.lognormvariate(-(unsure**2) / 2, unsure)  # prompts, against those seen
    answered, output_tokens = np.array(replies.draw(rng, most=rest.most)).T
    _, input_tokens, *prompts_usd = map(float, (stretched * answered / sent[:, 0]) @ sent)
    usd, batch_usd = (
        None if None in each else prompt_usd + float(output_tokens @ each)
        for prompt_usd, each in zip(prompts_usd, each_usd, strict=True)
    )
    received = float(output_tokens.sum())
    if rest.rates is None:
        usd = _along(rest.seen.price, input_tokens, received, rng)
    latency_s = _along(rest.seen.latency, float(answered.sum()), received, rng)
    return Needs(rest.prompts.total(), input_tokens, received, latency_s, usd, batch_usd)


def _along(line: StraightLine | None, first: float, second: float, rng: random.Random) -> float | None:
    """Return what so many pieces take, as unsure as the pieces seen leave it."""
    if line is None:
        return None
    error = line.error
    return (first * line.first + second * line.second) * rng.lognormvariate(-(error**2) / 2, error)


# ── the forecast of a model, from the results in its folder


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
    remaining, condition = rest.remaining[model.alias], rest.conditions_of(model)[way.condition]
    before = characters_before_question(model, condition)
    prompts = Counter[Prompt]()
    for shape, count in remaining.shapes.items():
        if (shape.condition, shape.cell.suite) == (way.condition, way.suite):
            prompts[Prompt(shape.cell, shape.question + before)] += count
    return RemainingTrials(
        seen=rest.seen[way],
        prompts=prompts,
        sent={
            cell: remaining.characters[name, cell] / trials + before
            for (name, cell), trials in remaining.finished.items()
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
    needs = list(map(Needs.of_all, several))
    spent = Needs.of_all(drawing.spent for drawing in drawings)
    return _ranges_of(needs), _ranges_of(needs, spent), seconds_of(drawings)


def seconds_of(drawings: Sequence[Drawing]) -> Range:
    """Return how long several models take together: as long as the slowest lane, draw by draw."""
    lanes = defaultdict[str, list[Sequence[float]]](list)
    for drawing in drawings:
        lanes[drawing.lane].append(drawing.seconds)
    each = [[sum(seconds) for seconds in zip(*of_models, strict=False)] for of_models in lanes.values()]
    return Range.of(map(max, zip(*each, strict=False)))
