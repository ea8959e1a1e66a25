"""The tokens of replies to come, from a stratified sample (Cochran 1977, chapter 5): each cell is a stratum.

A pilot of two trials a cell saw replies of 80 and 120 tokens. A trial to come of that cell takes 100 tokens
on average. How wrong this is, the replies themselves say: their variance over their number is that of the
mean, and each reply to come has it once more. All cells together are as unsure as a variance from so few
replies is: it has the degrees of freedom of Satterthwaite (1946).

A cell of fewer than two replies has no variance of its own. Its mean is its only reply, or else lies on the
line between the nearest lengths of its task. How wrong such a line is, the other cells say: each is left out
once, and compared with the line between its neighbours.

Two figures cannot come from the sample: `HOUR` and `UNLIKE`. docs/explanation/statistics.md gives the reason
for each, and the error that was measured on recorded runs.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asyncbench.planning.finished import SeenCell
from asyncbench.records import Cell

HOUR: Final = 0.04  # what is asked at another hour is answered at another length: one standard deviation
UNLIKE: Final = 0.5  # so wrong at least is a task's mean that only other tasks tell: one standard deviation

Figures = npt.NDArray[np.float64]
Task = tuple[str, str, str, str]  # a cell without its length


class Estimate(NamedTuple):
    """The length of a cell's replies: a mean in tokens, and variances in squared tokens."""

    mean: float
    variance: float  # of a reply
    mean_variance: float = 0.0  # of the mean, as the cell's own replies tell
    freedom: float = math.inf  # degrees of freedom of these two
    shared_error: float = 0.0  # of the mean, which cells without replies share: a variance, as a part of 1


class Replies:
    """The replies to come of trials that are asked alike."""

    def __init__(
        self, seen: Mapping[Cell, SeenCell], wanted: Mapping[Cell, int], *, longest: int | None = None
    ) -> None:
        """Learn from finished trials, of which at least one was replied to.

        Args:
            seen: the finished trials.
            wanted: how many trials of each cell are to come.
            longest: tokens that no reply exceeds; None: nothing limits them.
        """
        limit = math.inf if longest is None else longest
        outputs = {cell: [min(tokens, limit) for tokens in use.outputs] for cell, use in seen.items()}
        self._estimates = estimates(outputs, wanted)
        self._answers = answer_counts(seen, wanted)
        self._tasks = [cell[:4] for cell in wanted]
        self._trials, self._limit = np.array([*wanted.values()]), limit

    def draw(self, rng: np.random.Generator, draws: int) -> tuple[Figures, Figures]:
        """Return how many calls are answered, and the tokens of all their replies.

        Each is an array with a row for each draw and a column for each cell that is wanted.
        """
        means = np.array([estimate.mean for estimate in self._estimates])
        variances = np.array([estimate.variance for estimate in self._estimates])
        mean_variances = np.array([estimate.mean_variance for estimate in self._estimates])
        freedoms = np.array([estimate.freedom for estimate in self._estimates])
        shared_errors = [estimate.shared_error for estimate in self._estimates]

        # the calls that are answered
        replied, failed = np.array(self._answers).T
        chance = np.where(failed > 0, rng.beta(replied, np.maximum(failed, 0.5), (draws, len(means))), 1.0)
        answered = rng.binomial(self._trials, chance).astype(np.float64)

        # the variances themselves: the sample knows them as a chi-square of its degrees of freedom does
        sampled = self._trials**2 * mean_variances + self._trials * variances
        doubt = float((sampled**2 / freedoms).sum())
        freedom = float(sampled.sum()) ** 2 / doubt if doubt else math.inf
        stretch = rng.chisquare(freedom, (draws, 1)) / freedom if doubt else np.ones((draws, 1))

        # the errors that cells without replies share: one for all of a task
        levels = np.tile(means, (draws, 1))
        factors: dict[Task, Figures] = {}
        for column, (task, error) in enumerate(zip(self._tasks, shared_errors, strict=True)):
            if error:
                if task not in factors:
                    factors[task] = _lognormal(rng, np.ones(draws), np.full(draws, error))
                levels[:, column] *= factors[task]

        # the tokens
        spread = (answered**2 * mean_variances + answered * variances) / stretch
        tokens = _lognormal(rng, answered * levels, spread) * rng.lognormal(-(HOUR**2) / 2, HOUR, (draws, 1))
        return answered, np.minimum(tokens, self._limit * answered) if self._limit < math.inf else tokens


def estimates(outputs: Mapping[Cell, Sequence[float]], wanted: Iterable[Cell]) -> list[Estimate]:
    """Return the length of each cell's replies, by those that were seen: tokens by cell, of at least one."""
    means = defaultdict[Task, dict[int, float]](dict)  # of the cells of a task, by length
    for cell in sorted(outputs, key=_length):
        if outputs[cell]:
            means[cell[:4]][_length(cell)] = statistics.fmean(outputs[cell])

    # how wrong the mean of a cell is that other lengths tell, and that of a task that other tasks tell
    misses = [miss for by_length in means.values() for miss in _misses(by_length)]
    line_error = statistics.fmean(miss**2 for miss in misses) if misses else UNLIKE**2
    task_means = [statistics.fmean(by_length.values()) for by_length in means.values()]
    task_mean = statistics.fmean(task_means)
    task_error = UNLIKE**2
    if len(task_means) > 1 and task_mean > 0:
        task_error = max(task_error, statistics.variance(task_means) / task_mean**2)

    by_cell: list[Estimate] = []
    for cell in wanted:
        replies, by_length = outputs.get(cell, ()), means.get(cell[:4])
        if len(replies) > 1:
            mean, variance = statistics.fmean(replies), statistics.variance(replies)
            by_cell.append(Estimate(mean, variance, variance / len(replies), len(replies) - 1))
        elif replies:
            variance = line_error * replies[0] ** 2
            by_cell.append(Estimate(replies[0], variance, variance, max(1, len(misses))))
        elif by_length:
            mean = float(np.interp(_length(cell), [*by_length], [*by_length.values()]))
            by_cell.append(Estimate(mean, line_error * mean**2, shared_error=line_error))
        else:
            by_cell.append(Estimate(task_mean, task_error * task_mean**2, shared_error=task_error))
    return by_cell


def answer_counts(seen: Mapping[Cell, SeenCell], wanted: Iterable[Cell]) -> list[tuple[float, float]]:
    """Return how many calls of each cell were answered, and how many failed, for a beta distribution.

    Each cell has one call more, which is answered as the calls of its task are: with half a call added on
    either side, as in Jeffreys's prior. Where no call of a task failed, none is expected to.
    """
    trials, replied = Counter[Task](), Counter[Task]()
    for cell, use in seen.items():
        trials[cell[:4]] += use.trials
        replied[cell[:4]] += use.replied

    counts: list[tuple[float, float]] = []
    for cell in wanted:
        task = cell[:4]
        if replied[task] == trials[task]:
            counts.append((1.0, 0.0))
            continue
        share = (replied[task] + 0.5) / (trials[task] + 1)
        cell_trials, cell_replied = (seen[cell].trials, seen[cell].replied) if cell in seen else (0, 0)
        counts.append((cell_replied + share, cell_trials - cell_replied + 1 - share))
    return counts


def _length(cell: Cell) -> int:
    return -1 if cell.length is None else cell.length


def _misses(by_length: Mapping[int, float]) -> list[float]:
    """Return how far each mean of a task lies from the line between its neighbours: a logarithm."""
    lengths, means = [*by_length], [*by_length.values()]
    misses: list[float] = []
    for i, (length, mean) in enumerate(by_length.items()):
        neighbours = [j for j in (i - 1, i + 1) if 0 <= j < len(lengths)]
        if neighbours:
            line = np.interp(length, [lengths[j] for j in neighbours], [means[j] for j in neighbours])
            if line > 0 and mean > 0:
                misses.append(math.log(mean / line))
    return misses


def _lognormal(rng: np.random.Generator, means: Figures, variances: Figures) -> Figures:
    """Draw figures of these means and variances from lognormal distributions: none is below zero."""
    shares = np.divide(variances, means**2, out=np.zeros_like(means), where=means > 0)
    squares = np.log1p(shares)
    return means * rng.lognormal(-squares / 2, np.sqrt(squares))
