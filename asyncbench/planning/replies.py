"""The lengths of future replies by cell: a bootstrap over those seen, in which similar cells help each other.

Of each cell a few replies are known, two after a pilot. A reply to come is one of these again, or a
neighbour's, stretched by how much longer its own cell's replies are. How long those of a cell are is read
from a smooth curve over the lengths of its task. So no shape of a distribution is assumed, no mean grows
with a spread that had to be guessed, and a reply that was cut at max_tokens stays one that is.

What is not known is drawn anew each time: how much each seen reply weighs (a Bayesian bootstrap, Rubin
1981, whose spread is that of n - 1 degrees of freedom for n replies of a cell), what share of calls is
answered, and how replies at another hour differ. The longest replies are few: a long one that is borrowed
from any cell gets a length from a Pareto tail (Hill 1975).
"""

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Final

from asyncbench.planning.finished import SeenCell
from asyncbench.records import Cell

PLACES: Final = 12  # lengths of a task that are told apart; of more, neighbours are taken together
NEIGHBOURS: Final = 2.0  # replies of a task's other lengths that a cell's own are helped by
ANYWHERE: Final = 0.25  # replies of any cell
ENOUGH: Final = 32  # own replies, before others are of no more help
NEAR: Final = 1.0  # places at which a neighbour's help is exp(-1/2)
FAR: Final = 3  # places beyond which none helps, where there is a nearer one
SMOOTH: Final = 1.5  # the same for the curve of levels
FLAT: Final = 0.5  # how strongly a curve is held level, in squared places of one reply
WIDEST: Final = 0.1  # no reply's weight varies more than with this shape of a gamma distribution
TAIL: Final = 0.1  # the share of replies from which on lengths are a tail
HEAVIEST: Final = 0.5  # of tails: beyond it, a variance is not finite
DRIFT: Final = 0.04  # what is asked at another hour is answered at another length: one standard deviation
SINGLY: Final = 64  # replies that are drawn one by one; of more, the sum is
UNLIKE: Final = 0.5  # of the logarithm of a level that nothing tells but other tasks: at least

Wanted = Sequence[tuple[Cell, int]]  # trials of cells
_Task = tuple[str, str, str, str]
_Spot = tuple[_Task, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Donors:
    """The replies that one of a cell may be like."""

    spot: _Spot
    trials: int
    lengths: Sequence[float]  # tokens, as they would be in this cell
    weights: Sequence[float]
    of: Sequence[int]  # which reply each is
    anywhere: float  # the share of replies that any cell's may be like
    unsure: float  # of the logarithm of the cell's level, beyond what its replies tell


class Replies:
    """The replies of one way of asking."""

    def __init__(self, seen: Mapping[Cell, SeenCell], wanted: Wanted) -> None:
        """Learn from what was seen; some reply has to be among it."""
        self._spots = _spots([*seen, *(cell for cell, _ in wanted)])
        self._replies = [
            (self._spots[cell], max(length, 0.5)) for cell, use in seen.items() for length in use.outputs
        ]
        self._levels, self._unsure = _levels(self._spots, self._replies)
        self._ratios = [length / self._levels[spot] for spot, length in self._replies]
        self._tail = _tail(self._ratios)
        self._answer_counts = _answer_counts(seen, self._spots)
        by_task = defaultdict[_Task, list[int]](list)
        for i, (spot, _) in enumerate(self._replies):
            by_task[spot[0]].append(i)
        self._donors = [
            self._donors_of(self._spots[cell], count, by_task[self._spots[cell][0]]) for cell, count in wanted
        ]
        each = len(self._replies) / max(1, len({spot for spot, _ in self._replies}))
        self._shape = (each - 1) / (each + NEIGHBOURS)
        self._freedom = _freedom(seen, wanted)

    def _donors_of(self, spot: _Spot, trials: int, of_task: Sequence[int]) -> _Donors:
        away = {i: self._replies[i][0][1] - spot[1] for i in of_task}
        own = [i for i, places in away.items() if not places]
        weights = dict.fromkeys(own, 1.0)
        if helped := len(own) < ENOUGH:
            reach = max(FAR, min(map(abs, away.values()), default=0))
            near = {i: _nearness(places, NEAR) for i, places in away.items() if abs(places) <= reach}
            whole = sum(near.values())
            weights |= {i: weights.get(i, 0.0) + NEIGHBOURS * part / whole for i, part in near.items()}
        anywhere = ANYWHERE / (len(own) + NEIGHBOURS + ANYWHERE) if helped else 0.0
        return _Donors(
            spot=spot,
            trials=trials,
            lengths=[self._ratios[i] * self._levels[spot] for i in weights],
            weights=list(weights.values()),
            of=list(weights),
            anywhere=anywhere if weights else 1.0,
            unsure=0.0 if own else self._unsure[spot],
        )

    def draw(self, rng: random.Random, *, most: int | None) -> list[tuple[int, float]]:
        """Return, for each that was wanted, how many calls are answered and the tokens of all those replies.

        No reply has more tokens than `most`.
        """
        # the spread itself is known as a variance of so many degrees of freedom is
        surely = rng.gammavariate(self._freedom / 2, 2 / self._freedom)
        shape = max(WIDEST, self._shape * surely)
        of_reply = [rng.gammavariate(shape, 1 / shape) for _ in self._replies]
        anywhere = list(accumulate(of_reply))
        hour = rng.lognormvariate(0, DRIFT)
        unlike: dict[_Task, float] = defaultdict(lambda: rng.gauss(0, 1))  # one a task: its cells err alike
        drawn: list[tuple[int, float]] = []
        for donors in self._donors:
            answered = self._answered(rng, donors)
            borrowed = _binomial(rng, answered, donors.anywhere)
            weights = list(map(mul, donors.weights, map(of_reply.__getitem__, donors.of)))
            tokens = _sum(rng, donors.lengths, weights, answered - borrowed, most)
            if borrowed:
                tokens += self._borrowed(rng, borrowed, self._levels[donors.spot], anywhere, most)
            if donors.unsure:
                tokens *= math.exp(donors.unsure * unlike[donors.spot[0]] - donors.unsure**2 / 2)
            tokens *= hour
            drawn.append((answered, tokens if most is None else min(tokens, float(most * answered))))
        return drawn

    def _answered(self, rng: random.Random, cell: _Donors) -> int:
        """Return how many of a cell's calls are answered, given how many of it and of its task were."""
        counts = self._answer_counts.get(cell.spot[0])
        if counts is None:
            return cell.trials
        replied, failed = counts.get(cell.spot[1], (0, 0))
        share = (sum(yes for yes, _ in counts.values()) + 0.5) / (sum(map(sum, counts.values())) + 1)
        chance = rng.betavariate(replied + share, failed + 1 - share)
        return _binomial(rng, cell.trials, chance)

    def _borrowed(
        self, rng: random.Random, count: int, level: float, weights: Sequence[float], most: int | None
    ) -> float:
        """Return the tokens of replies that are like those of any cell."""
        longest, heaviness = self._tail
        singly = min(count, SINGLY)
        ratios = rng.choices(self._ratios, cum_weights=weights, k=singly)
        lengths = (
            level * (longest * (1 - rng.random()) ** -heaviness if ratio > longest else ratio)
            for ratio in ratios
        )
        return sum(lengths if most is None else (min(length, most) for length in lengths)) * count / singly


# ── neighbours of cells, and their levels


def _spots(cells: Iterable[Cell]) -> dict[Cell, _Spot]:
    """Return the task of each cell, and its place among that task's lengths."""
    tasks = defaultdict[_Task, set[Cell]](set)
    for cell in cells:
        tasks[cell[:4]].add(cell)
    spots: dict[Cell, _Spot] = {}
    for task, of_task in tasks.items():
        ordered = sorted(of_task, key=lambda cell: -1 if cell.length is None else cell.length)
        together = max(1.0, len(ordered) / PLACES)
        spots |= {cell: (task, int(i / together)) for i, cell in enumerate(ordered)}
    return spots


def _nearness(places: float, width: float) -> float:
    return math.exp(-0.5 * (places / width) ** 2) + 1e-9


def _levels(
    spots: Mapping[Cell, _Spot], replies: Sequence[tuple[_Spot, float]]
) -> tuple[dict[_Spot, float], dict[_Spot, float]]:
    """Return the level of each cell, and how unsure it is where no reply is of it."""
    sums = defaultdict[_Task, dict[int, list[float]]](dict)  # task → place → replies, logarithms, tokens
    for (task, place), length in replies:
        tally = sums[task].setdefault(place, [0.0, 0.0, 0.0])
        tally[:] = tally[0] + 1, tally[1] + math.log(length), tally[2] + length
    levels: dict[_Spot, float] = {}
    unsure: dict[_Spot, float] = {}
    steps = _step(sums)
    for task, place in set(spots.values()):
        if by_place := sums.get(task):
            levels[task, place] = _curve(by_place, place) * _lift(by_place)
            unsure[task, place] = steps * math.sqrt(min(abs(place - other) for other in by_place))
    between = [
        math.log(
            sum(tokens for _, _, tokens in tallies.values()) / sum(count for count, _, _ in tallies.values())
        )
        for tallies in sums.values()
    ]
    middle = sum(between) / len(between)
    spread = math.sqrt(sum((level - middle) ** 2 for level in between) / max(1, len(between) - 1))
    for spot in set(spots.values()) - levels.keys():
        levels[spot] = sum(map(math.exp, between)) / len(between)
        unsure[spot] = max(UNLIKE, spread)
    return levels, unsure


def _curve(by_place: Mapping[int, Sequence[float]], place: int) -> float:
    """Return the level of a place before it is lifted: a line through near logarithms, held level."""
    points = [(_nearness(at - place, SMOOTH) * n, at, logs / n) for at, (n, logs, _) in by_place.items()]
    whole = sum(weight for weight, _, _ in points)
    x = sum(weight * at for weight, at, _ in points) / whole
    y = sum(weight * value for weight, _, value in points) / whole
    spread = sum(weight * (at - x) ** 2 for weight, at, _ in points)
    slope = sum(weight * (at - x) * (value - y) for weight, at, value in points) / (spread + FLAT)
    return math.exp(y + slope * (place - x))


def _lift(by_place: Mapping[int, Sequence[float]]) -> float:
    """Return what a curve through logarithms is multiplied with, so that it keeps the sum of all tokens."""
    tokens = sum(tokens for _, _, tokens in by_place.values())
    return tokens / sum(count * _curve(by_place, at) for at, (count, _, _) in by_place.items())


def _step(sums: Mapping[_Task, Mapping[int, Sequence[float]]]) -> float:
    """Return how much the logarithm of a level changes from a place to the next."""
    changes = [
        (math.log(tallies[at + 1][2] / tallies[at + 1][0]) - math.log(tallies[at][2] / tallies[at][0])) ** 2
        for tallies in sums.values()
        for at in tallies
        if at + 1 in tallies
    ]
    return math.sqrt(sum(changes) / len(changes)) if changes else UNLIKE


def _tail(ratios: Sequence[float]) -> tuple[float, float]:
    """Return where the tail of lengths begins, and how heavy it is; a few replies have none."""
    ordered = sorted(ratios)
    beyond = int(len(ordered) * TAIL)
    if beyond < 3:
        return math.inf, 0.0
    begin = ordered[-beyond - 1]
    hill = sum(math.log(ratio / begin) for ratio in ordered[-beyond:]) / beyond
    return begin, min(HEAVIEST, hill)


def _freedom(seen: Mapping[Cell, SeenCell], wanted: Wanted) -> float:
    """Return the degrees of freedom of the spread of what is wanted (Satterthwaite 1946).

    Few cells may make up most of it; then it is known no better than theirs.
    """
    whole, squares = 0.0, 0.0
    for cell, trials in wanted:
        outputs = seen[cell].outputs if cell in seen else ()
        if len(outputs) > 1:
            part = trials**2 * statistics.variance(outputs) / len(outputs)
            whole, squares = whole + part, squares + part**2 / (len(outputs) - 1)
    return whole**2 / squares if squares else 1.0


def _answer_counts(
    seen: Mapping[Cell, SeenCell], spots: Mapping[Cell, _Spot]
) -> dict[_Task, dict[int, tuple[int, int]]]:
    """Return the calls that were answered and that failed, by task and place; of tasks where any failed."""
    counts = defaultdict[_Task, dict[int, tuple[int, int]]](dict)
    for cell, calls in seen.items():
        task, place = spots[cell]
        replied, failed = counts[task].get(place, (0, 0))
        counts[task][place] = replied + calls.replied, failed + calls.trials - calls.replied
    return {task: places for task, places in counts.items() if any(failed for _, failed in places.values())}


# ── sums of draws


def _sum(
    rng: random.Random, values: Sequence[float], weights: Sequence[float], count: int, most: int | None
) -> float:
    """Return the sum of `count` values, drawn by weight; of many, as a normal distribution has it."""
    if not count:
        return 0.0
    capped = values if most is None else [min(value, most) for value in values]
    if count <= SINGLY:
        return sum(rng.choices(capped, cum_weights=list(accumulate(weights)), k=count))
    whole = sum(weights)
    mean = sum(weight * value for weight, value in zip(weights, capped, strict=True)) / whole
    spread = sum(weight * (value - mean) ** 2 for weight, value in zip(weights, capped, strict=True)) / whole
    return max(0.0, rng.gauss(count * mean, math.sqrt(count * spread)))


def _binomial(rng: random.Random, count: int, chance: float) -> int:
    """Return how many of `count` come true."""
    if not 0 < chance < 1:
        return round(count * chance)
    if count > SINGLY:
        drawn = round(rng.gauss(count * chance, math.sqrt(count * chance * (1 - chance))))
        return min(count, max(0, drawn))
    true, rest = 0, rng.random()
    share = (1 - chance) ** count
    while rest > share and true < count:
        rest -= share
        true += 1
        share *= (count - true + 1) / true * chance / (1 - chance)
    return true
