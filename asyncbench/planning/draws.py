"""Forecasts by simulation: tokens, cost and time of the remaining trials, drawn many times."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.finished import SeenUse, StraightLine, TrialGroup
from asyncbench.planning.guesses import batch_rates_of, cached_prefix, rates_asked
from asyncbench.planning.modes import pace_of
from asyncbench.planning.records import Forecast, Needs, Range, TokensAndCost, total
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.planning.replies import Figures, Replies
from asyncbench.pricing import Rates, cost_usd
from asyncbench.providers.params import longest_reply_of
from asyncbench.records import Cell, Model, Usage
from asyncbench.suites.requests import characters_before_question

DRAWS: Final = 400
FEWEST_DRAWS: Final = 100
FEWEST_QUICK: Final = 40  # where a run waits: the 5th percentile is the second or third of so many
WORK: Final = 1_000_000  # cells times draws: about a second, where calls failed
MANY_TOKENS: Final = 1_000_000


class Prompt(NamedTuple):
    """Trials of a cell that are equally long."""

    cell: Cell
    characters: int  # of all that is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingTrials:
    """The remaining trials of a model that are asked alike."""

    seen: SeenUse
    prompts: Counter[Prompt]
    sent: Mapping[Cell, float]  # mean characters of the finished trials of a cell
    rates: Rates | None
    batch_rates: Rates | None  # of the same calls in a batch
    longest_reply: int | None  # tokens; None: nothing limits them
    cached_tokens: int = 0  # of each prompt: they are probably read from a cache


def draws_for(works: Sequence[int], *, quick: bool) -> list[int]:
    """Return how many times to draw each model, by the cells of it; `quick`: 0 where that takes seconds."""
    if not quick:
        return [max(FEWEST_DRAWS, min(DRAWS, WORK // max(1, work))) for work in works]
    draws = min(DRAWS, WORK // max(1, sum(works)))
    return [draws if draws >= FEWEST_QUICK else 0] * len(works)


def draws_of(rest: RemainingTrials, *, draws: int, seed: str) -> list[Needs]:
    """Return `draws` drawings of a rest's needs; the same seed gives the same drawings."""
    rng = np.random.default_rng(list(seed.encode()))
    cells = rest.seen.cells

    # the prompts: the tokens of each of its characters, and those of any prompt, as cells differ
    line = StraightLine.through(
        (rest.sent[cell], 1.0, use.input_tokens)
        for cell, use in cells.items()
        if use.input_tokens is not None and rest.sent.get(cell)
    ) or StraightLine(1 / CHARACTERS_PER_TOKEN, 0.0, 0.0)
    groups = _priced_prompts(rest, line)
    prompts = np.array([*groups.values()])

    # the replies: a cell's are drawn together, and belong to its groups by their numbers of trials
    wanted = Counter[Cell]()
    for group, (trials, *_) in groups.items():
        wanted[group.cell] += int(trials)
    column = {cell: i for i, cell in enumerate(wanted)}
    columns = [column[group.cell] for group in groups]
    shares = prompts[:, 0] / [wanted[group.cell] for group in groups]
    answered, output_tokens = (
        figures[:, columns] * shares
        for figures in Replies(cells, wanted, longest=rest.longest_reply).draw(rng, draws)
    )

    # tokens, dollars and seconds of each draw
    prompt_error = rng.lognormal(-(line.error**2) / 2, line.error, (draws, 1))
    _, input_tokens, prompt_usd, batch_prompt_usd = (prompt_error * answered / prompts[:, 0] @ prompts).T
    received = output_tokens.sum(axis=1)
    usd = _add_replies(prompt_usd, output_tokens, [group.token_usd for group in groups])
    batch_usd = _add_replies(batch_prompt_usd, output_tokens, [group.batch_token_usd for group in groups])
    if rest.rates is None:
        usd = _along(rest.seen.price, input_tokens, received, rng)
    latency_s = _along(rest.seen.latency, answered.sum(axis=1), received, rng)

    rows = (
        [None] * draws if figures is None else figures.tolist()
        for figures in (input_tokens, received, latency_s, usd, batch_usd)
    )
    return [Needs(rest.prompts.total(), *row) for row in zip(*rows, strict=True)]


class PricedGroup(NamedTuple):
    """Trials of a cell whose replies cost the same."""

    cell: Cell
    token_usd: float | None  # of each token of a reply; None: unknown
    batch_token_usd: float | None


def _priced_prompts(rest: RemainingTrials, line: StraightLine) -> dict[PricedGroup, npt.NDArray[np.float64]]:
    """Return the sent tokens by cell and price: a longer prompt may make every token dearer.

    Of each group four sums: trials, tokens, USD, USD in a batch.
    """
    groups: dict[PricedGroup, npt.NDArray[np.float64]] = {}
    for (cell, characters), count in rest.prompts.items():
        use, sent = rest.seen.cells.get(cell), rest.sent.get(cell)
        if use is None or use.input_tokens is None or not sent:
            tokens = line.first * characters + line.second
        else:  # as those of its cell, and more or fewer as its characters are
            tokens = max(1.0, use.input_tokens + line.first * (characters - sent))
        prompt_usd, token_usd = _prices(tokens, rest.cached_tokens, rest.rates)
        batch_prompt_usd, batch_token_usd = _prices(tokens, rest.cached_tokens, rest.batch_rates)
        group = PricedGroup(cell, token_usd, batch_token_usd)
        sums = count * np.array([1, tokens, prompt_usd, batch_prompt_usd])
        groups[group] = groups.get(group, 0) + sums
    return groups


def _prices(input_tokens: float, cached_tokens: int, rates: Rates | None) -> tuple[float, float | None]:
    """Return the USD of a prompt and of each token of its reply; the latter None where that is unknown."""
    sent = round(input_tokens)
    usage = Usage(input_tokens=sent, cached_input_tokens=min(sent, cached_tokens), output_tokens=0)
    prompt_usd = cost_usd(usage, rates)
    usd = cost_usd(replace(usage, output_tokens=MANY_TOKENS), rates)
    if prompt_usd is None or usd is None:
        return 0.0, None
    return prompt_usd, (usd - prompt_usd) / MANY_TOKENS


def _add_replies(
    prompt_usd: Figures, output_tokens: Figures, token_usd: Sequence[float | None]
) -> Figures | None:
    """Return the USD of prompts and replies, for each draw; None where a price is unknown."""
    prices = [usd for usd in token_usd if usd is not None]
    return prompt_usd + output_tokens @ prices if len(prices) == len(token_usd) else None


def _along(
    line: StraightLine | None, first: Figures, second: Figures, rng: np.random.Generator
) -> Figures | None:
    """Return the figures of a line for so many pieces, as unsure as the pieces seen leave it."""
    if line is None:
        return None
    error = rng.lognormal(-(line.error**2) / 2, line.error, len(first))
    return (first * line.first + second * line.second) * error


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
    uses, groups = rest.uses_of(model), rest.groups_left(model)
    if not uses or not draws or not all(map(rest.can_forecast, groups)):
        return None
    rests = [_remaining(rest, model, group) for group in groups]
    needs_by_group = [
        draws_of(trials, draws=draws, seed=f"{model.alias} {i}") for i, trials in enumerate(rests)
    ]
    drawn = [Needs.sum(needs) for needs in zip([Needs()] * draws, *needs_by_group, strict=True)]

    longest_s = max((trials.seen.longest_call_s for trials in rests), default=0.0)
    within_s = rest.switches_s(model)
    paces = [
        pace_of(model, rest.sweep.batch, needs, longest_s=longest_s, within_s=within_s) for needs in drawn
    ]
    seconds = [lane.seconds for lane in paces]
    spent = Needs.sum(use.used for use in uses)
    forecast = Forecast(
        replies=sum(use.replies for use in uses),
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


def _remaining(rest: Remainder, model: Model, group: TrialGroup) -> RemainingTrials:
    """Return the trials of a group that are left."""
    remaining, condition = rest.remaining[model.alias], rest.conditions_of(model)[group.condition]
    before, prefix = characters_before_question(model, condition), cached_prefix(model, condition)
    prompts = Counter[Prompt]()
    for shape, count in remaining.shapes.items():
        if (shape.condition, shape.cell.suite) == (group.condition, group.suite):
            prompts[Prompt(shape.cell, shape.question + before)] += count
    return RemainingTrials(
        seen=rest.seen[group],
        prompts=prompts,
        sent={
            cell: remaining.characters[name, cell] / trials + before
            for (name, cell), trials in remaining.finished.items()
            if name == group.condition
        },
        rates=rates_asked(model, condition, rest.at_s),
        batch_rates=batch_rates_of(model, rest.at_s),
        cached_tokens=0 if prefix is None else prefix.read,
        longest_reply=longest_reply_of(model, condition),
    )


def _ranges_of(draws: Sequence[Needs], spent: Needs = Needs()) -> TokensAndCost[Range]:  # noqa: B008  immutable
    """Return the ranges of what was spent and each draw together."""
    return TokensAndCost(
        input_tokens=Range.of(spent.input_tokens + needs.input_tokens for needs in draws),
        output_tokens=Range.of(spent.output_tokens + needs.output_tokens for needs in draws),
        cost_usd=Range.of_known(total((spent.cost_usd, needs.cost_usd)) for needs in draws),
    )


def sum_of(drawings: Sequence[Drawing]) -> tuple[TokensAndCost[Range], TokensAndCost[Range], Range]:
    """Return the needs of several models: of the rest, of the whole sweep, and for how long in seconds."""
    # some models are drawn more often than others: the draws that all have are added up
    needs = list(map(Needs.sum, zip(*(drawing.draws for drawing in drawings), strict=False)))
    spent = Needs.sum(drawing.spent for drawing in drawings)
    return _ranges_of(needs), _ranges_of(needs, spent), seconds_of(drawings)


def seconds_of(drawings: Sequence[Drawing]) -> Range:
    """Return how long several models take together: as long as the slowest lane, draw by draw."""
    seconds_by_lane = defaultdict[str, list[Sequence[float]]](list)
    for drawing in drawings:
        seconds_by_lane[drawing.lane].append(drawing.seconds)
    lanes = [map(sum, zip(*models, strict=False)) for models in seconds_by_lane.values()]  # they take turns
    return Range.of(map(max, zip(*lanes, strict=False)))
