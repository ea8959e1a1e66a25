"""What the rest of a model's trials takes: drawn again and again, each request priced by itself."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.estimates import Needs, StraightLine
from asyncbench.planning.finished import SeenUse
from asyncbench.planning.replies import Replies
from asyncbench.planning.trials import Cell
from asyncbench.pricing import Rates, cost_usd
from asyncbench.records import Usage

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
    """What is left of one model's trials that are asked one way."""

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
        (rest.sent[cell], 1.0, told.input_tokens)
        for cell, told in cells.items()
        if told.input_tokens is not None and rest.sent.get(cell)
    ) or StraightLine(1 / CHARACTERS_PER_TOKEN, 0.0, 0.0)
    bills = _bills(rest, line)
    replies = Replies(cells, [(cell, bill.trials) for (cell, _, _), bill in bills.items()])
    return [_drawn(rest, bills, replies, line.error, rng) for _ in range(draws)]


@dataclass(slots=True)
class _Bill:
    """Trials of a cell whose replies are priced alike: what is sent with them."""

    trials: int = 0
    input_tokens: float = 0.0
    input_usd: float = 0.0
    batch_input_usd: float = 0.0


_Group = tuple[Cell, float | None, float | None]  # and USD of a token of a reply: as it comes, in a batch


def _bills(rest: RemainingTrials, line: StraightLine) -> dict[_Group, _Bill]:
    """Return what is sent, by cell and by price: a longer prompt may make every token dearer."""
    bills = defaultdict[_Group, _Bill](_Bill)
    for (cell, characters), count in rest.prompts.items():
        told, sent = rest.seen.cells.get(cell), rest.sent.get(cell)
        if told is None or told.input_tokens is None or not sent:
            tokens = line.first * characters + line.second
        else:  # as those of its cell, and more or fewer as its characters are
            tokens = max(1.0, told.input_tokens + line.first * (characters - sent))
        prompt_usd, token_usd = _priced(tokens, rest.rates)
        batch_prompt_usd, batch_token_usd = _priced(tokens, rest.batch_rates)
        bill = bills[cell, token_usd, batch_token_usd]
        bill.trials += count
        bill.input_tokens += count * tokens
        bill.input_usd += count * prompt_usd
        bill.batch_input_usd += count * batch_prompt_usd
    return dict(bills)


def _priced(input_tokens: float, rates: Rates | None) -> tuple[float, float | None]:
    """Return the USD of a prompt and of each token of its reply; the latter None where that is unknown."""
    sent = round(input_tokens)
    prompt = cost_usd(Usage(input_tokens=sent, output_tokens=0), rates)
    much = cost_usd(Usage(input_tokens=sent, output_tokens=MANY_TOKENS), rates)
    if prompt is None or much is None:
        return 0.0, None
    return prompt, (much - prompt) / MANY_TOKENS


def _drawn(
    rest: RemainingTrials, bills: Mapping[_Group, _Bill], replies: Replies, unsure: float, rng: random.Random
) -> Needs:
    trials = answered_all = 0
    input_tokens = output_tokens = 0.0
    usd: float | None = 0.0
    batch: float | None = 0.0
    stretched = rng.lognormvariate(-(unsure**2) / 2, unsure)  # prompts, against those seen
    drawn = replies.draw(rng, most=rest.most)
    for ((_, each, batch_each), bill), (answered, tokens) in zip(bills.items(), drawn, strict=True):
        share = stretched * answered / bill.trials
        trials += bill.trials
        answered_all += answered
        input_tokens += share * bill.input_tokens
        output_tokens += tokens
        usd = _plus(usd, share * bill.input_usd, tokens, each)
        batch = _plus(batch, share * bill.batch_input_usd, tokens, batch_each)
    if rest.rates is None:
        usd = _along(rest.seen.price, input_tokens, output_tokens, rng)
    latency_s = _along(rest.seen.latency, answered_all, output_tokens, rng)
    return Needs(trials, input_tokens, output_tokens, latency_s, usd, batch)


def _plus(before: float | None, sent: float, tokens: float, each: float | None) -> float | None:
    return None if before is None or each is None else before + sent + tokens * each


def _along(line: StraightLine | None, first: float, second: float, rng: random.Random) -> float | None:
    """Return what so many pieces take, as unsure as the pieces seen leave it."""
    if line is None:
        return None
    error = line.error
    return (first * line.first + second * line.second) * rng.lognormvariate(-(error**2) / 2, error)
