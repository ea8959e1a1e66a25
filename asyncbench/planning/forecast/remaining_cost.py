"""What the rest of a model's trials takes: drawn again and again, each request priced by itself."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from asyncbench.engine import CHARACTERS_PER_TOKEN
from asyncbench.planning.forecast.replies import Replies
from asyncbench.planning.forecast.seen_use import SeenUse
from asyncbench.planning.forecast.straight_line import StraightLine
from asyncbench.pricing import Rates, cost_usd
from asyncbench.records import Usage
from asyncbench.sweeps import Cell

DRAWS: Final = 400
FEWEST_DRAWS: Final = 100
FEWEST_QUICK: Final = 40  # where a run waits: the 5th percentile is the second or third of so many
AS_A_CELL: Final = 16  # replies that take as long to weigh as a cell takes to draw
WORK: Final = 60_000  # cells times draws: about a second
ENOUGH: Final = 2  # replies, before anything can be said
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


@dataclass(frozen=True, slots=True)
class Drawn:
    """One forecast of a rest."""

    trials: int
    input_tokens: float
    output_tokens: float
    latency_s: float | None  # of all calls, one after the other; None: no trial tells
    cost_usd: float | None  # None: no price is known
    batch_usd: float | None

    def __add__(self, other: Self) -> "Drawn":
        return Drawn(
            self.trials + other.trials,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _both(self.latency_s, other.latency_s),
            _both(self.cost_usd, other.cost_usd),
            _both(self.batch_usd, other.batch_usd),
        )


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def forecastable(seen: SeenUse | None) -> bool:
    """Whether enough was seen to say what more of it will take."""
    return seen is not None and seen.replies >= ENOUGH


def work_of(cells: int, replies: int) -> int:
    """Return how much work it is to draw once, in cells, from so many replies."""
    return cells + replies // AS_A_CELL


def draws_for(works: Sequence[int], *, quick: bool) -> list[int]:
    """Return how many times to draw each of several models.

    Args:
        works: what it is to draw each of them once.
        quick: whether somebody waits for all of them; 0 where that would take longer than a second or two.
    """
    if not quick:
        return [max(FEWEST_DRAWS, min(DRAWS, WORK // max(1, one))) for one in works]
    draws = min(DRAWS, WORK // max(1, sum(works)))
    return [draws if draws >= FEWEST_QUICK else 0] * len(works)


def draws_of(rest: RemainingTrials, *, draws: int, seed: str) -> list[Drawn]:
    """Return what a rest may take, `draws` times; the same seed gives the same."""
    rng = random.Random(seed)  # noqa: S311  repeatable, and guards nothing
    line = _prompt_line(rest)
    groups = _groups(rest, line)
    wanted = [(cell, bill.trials) for (cell, _, _), bill in groups.items()]
    replies = Replies(rest.seen.cells, wanted)
    return [_drawn(rest, groups, replies, line.error, rng) for _ in range(draws)]


@dataclass(slots=True)
class _Bill:
    """Trials of a cell whose replies are priced alike: what is sent with them."""

    trials: int = 0
    input_tokens: float = 0.0
    input_usd: float = 0.0
    batch_input_usd: float = 0.0


_Group = tuple[Cell, float | None, float | None]  # and USD of a token of a reply: as it comes, in a batch


def _groups(rest: RemainingTrials, line: StraightLine) -> dict[_Group, _Bill]:
    """Return what is sent, by cell and by price: a longer prompt may make every token dearer."""
    groups = defaultdict[_Group, _Bill](_Bill)
    for prompt, count in rest.prompts.items():
        tokens = _input_tokens(rest, prompt, line)
        sent, per_token = _priced(tokens, rest.rates)
        batch_sent, batch_per_token = _priced(tokens, rest.batch_rates)
        bill = groups[prompt.cell, per_token, batch_per_token]
        bill.trials += count
        bill.input_tokens += count * tokens
        bill.input_usd += count * sent
        bill.batch_input_usd += count * batch_sent
    return dict(groups)


def _prompt_line(rest: RemainingTrials) -> StraightLine:
    """Return the tokens of each character of a prompt, and those of any prompt: as cells differ."""
    told = (
        (rest.sent[cell], 1.0, one.input_tokens)
        for cell, one in rest.seen.cells.items()
        if one.input_tokens is not None and rest.sent.get(cell)
    )
    return StraightLine.through(told) or StraightLine(first=1 / CHARACTERS_PER_TOKEN, second=0.0, error=0.0)


def _input_tokens(rest: RemainingTrials, prompt: Prompt, line: StraightLine) -> float:
    """Return the tokens of a prompt: as those of its cell, and more or fewer as its characters are."""
    one = rest.seen.cells.get(prompt.cell)
    if one is None or one.input_tokens is None or not rest.sent.get(prompt.cell):
        return line.first * prompt.characters + line.second
    return max(1.0, one.input_tokens + line.first * (prompt.characters - rest.sent[prompt.cell]))


def _priced(input_tokens: float, rates: Rates | None) -> tuple[float, float | None]:
    """Return the USD of a prompt and of each token of its reply; the latter None where that is unknown."""
    sent = round(input_tokens)
    prompt = cost_usd(Usage(input_tokens=sent, output_tokens=0), rates)
    much = cost_usd(Usage(input_tokens=sent, output_tokens=MANY_TOKENS), rates)
    if prompt is None or much is None:
        return 0.0, None
    return prompt, (much - prompt) / MANY_TOKENS


def _drawn(
    rest: RemainingTrials, groups: Mapping[_Group, _Bill], replies: Replies, unsure: float, rng: random.Random
) -> Drawn:
    trials = answered_all = 0
    input_tokens = output_tokens = 0.0
    usd: float | None = 0.0
    batch: float | None = 0.0
    stretched = rng.lognormvariate(-(unsure**2) / 2, unsure)  # prompts, against those seen
    drawn = replies.draw(rng, most=rest.most)
    for ((_, each, batch_each), bill), (answered, tokens) in zip(groups.items(), drawn, strict=True):
        share = stretched * answered / bill.trials
        trials += bill.trials
        answered_all += answered
        input_tokens += share * bill.input_tokens
        output_tokens += tokens
        usd = _plus(usd, share * bill.input_usd, tokens, each)
        batch = _plus(batch, share * bill.batch_input_usd, tokens, batch_each)
    if rest.rates is None:
        usd = _of(rest.seen.price, input_tokens, output_tokens, rng)
    latency_s = _of(rest.seen.latency, answered_all, output_tokens, rng)
    return Drawn(trials, input_tokens, output_tokens, latency_s, usd, batch)


def _plus(before: float | None, sent: float, tokens: float, each: float | None) -> float | None:
    return None if before is None or each is None else before + sent + tokens * each


def _of(line: StraightLine | None, first: float, second: float, rng: random.Random) -> float | None:
    """Return what so many pieces take, as unsure as the pieces seen leave it."""
    if line is None:
        return None
    error = line.error
    return (first * line.first + second * line.second) * rng.lognormvariate(-(error**2) / 2, error)


def longest_call_s(latency: StraightLine | None, replies: SeenUse) -> float:
    """Return the seconds of the longest call seen; 0 where no trial tells."""
    longest = max((length for cell in replies.cells.values() for length in cell.outputs), default=0.0)
    return 0.0 if latency is None else latency.first + latency.second * longest
