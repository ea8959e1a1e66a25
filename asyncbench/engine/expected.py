"""What a call will probably use: learnt from what calls like it used."""

import math
from collections import deque
from typing import Final

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.records import Trial, Usage

QUANTILE: Final = 0.95  # few replies are longer than was set aside for them
REMEMBERED: Final = 64  # replies of a cell
MOST_CELLS: Final = 1_000  # a set of the user's own may have a length for each row
ENOUGH: Final = 5  # replies of a cell, before all the model's replies tell less than they do
UNSEEN_OUTPUT_TOKENS: Final = 256  # before any reply was seen and where no max_tokens is set

Cell = tuple[str, str, int | None, str]  # task, variant, length, condition


def cell_of(trial: Trial) -> Cell:
    """Return the calls that are like this trial's."""
    return (trial.problem.task, trial.problem.variant, trial.problem.length, trial.condition.name)


class Expected:
    """The input and output tokens to expect of one model's calls."""

    def __init__(self) -> None:
        self._cells: dict[Cell, _Seen] = {}
        self._all = _Seen()
        self._per_character = 1 / CHARACTERS_PER_TOKEN
        self._learnt = 0

    def input_tokens(self, characters: int) -> float:
        """Return what a prompt of so many characters will probably be counted as."""
        return characters * self._per_character

    def output_tokens(self, cell: Cell, longest: int | None) -> float:
        """Return what few replies to such a trial exceed; before any was seen, the longest allowed."""
        seen = self._cells.get(cell)
        if seen is None or seen.count < ENOUGH:
            seen = self._all
        return seen.quantile if seen.count else float(longest or UNSEEN_OUTPUT_TOKENS)

    def learn(self, cell: Cell, characters: int, usage: Usage | None) -> None:
        """Take in what a call used; an unknown usage teaches nothing."""
        if usage is None:
            return
        if usage.output_tokens is not None:
            self._of(cell).add(usage.output_tokens)
            self._all.add(usage.output_tokens)
        if usage.input_tokens and characters:
            self._learnt += 1
            ratio = usage.input_tokens / characters
            self._per_character += (ratio - self._per_character) / min(self._learnt, 50)

    @property
    def taught(self) -> bool:
        """Whether enough replies were seen to expect others like them."""
        return self._all.count >= ENOUGH

    def _of(self, cell: Cell) -> "_Seen":
        seen = self._cells.pop(cell, None) or _Seen()
        self._cells[cell] = seen  # the latest last
        if len(self._cells) > MOST_CELLS:
            del self._cells[next(iter(self._cells))]
        return seen


class _Seen:
    """The latest replies' lengths; their quantile is looked for when somebody asks."""

    __slots__ = ("_latest", "_quantile", "count")

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[int] = deque(maxlen=REMEMBERED)
        self._quantile: float | None = None

    def add(self, tokens: int) -> None:
        self.count += 1
        self._latest.append(tokens)
        self._quantile = None

    @property
    def quantile(self) -> float:
        if self._quantile is None:
            ordered = sorted(self._latest)
            self._quantile = float(ordered[math.ceil(QUANTILE * len(ordered)) - 1])
        return self._quantile
