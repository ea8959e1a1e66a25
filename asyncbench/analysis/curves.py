"""Logistic curves of accuracy by length, and the length at which they cross a share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, partial
from math import log, sqrt
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

from asyncbench.analysis.cells import Sums, rows_by
from asyncbench.stats.logistic import (
    Fit,
    Point,
    best_through,
    fitted,
    log_likelihood,
    saturated,
    share_of,
)
from asyncbench.stats.proportions import Z_95, Proportion
from asyncbench.store.schema import ENTRANT

# The band around the curve is Wald's on the scale of logits. The interval of a length is the set of
# lengths that a likelihood-ratio test does not refuse (profile likelihood), given that accuracy never
# rises with length: unlike the delta method and Fieller's it holds where the curve is steep, which is the
# usual case, and where every length is all right or all wrong, so that no steepest curve exists.


_HALVINGS = 12  # a length is found to a four-thousandth of the range asked
_HELD = 4096  # lengths: of two thousand curves
_FARTHEST = 30.0  # logits: a share that no number of trials tells from 0 or 1
_REFUSED = Z_95**2  # 95 % point of chi-squared with one degree of freedom

At: TypeAlias = tuple[float | None, float, float]  # share, low, high
UNKNOWN: Final = (0.0, 1.0)  # an interval that says nothing


class CurveState(StrEnum):
    """What the counts allow to say of a curve."""

    FITTED = "fitted"
    ALL_RIGHT = "all right"
    ALL_WRONG = "all wrong"
    SEPARATED = "separated"  # right up to some length, wrong beyond: no steepest curve exists
    RISING_STEP = "rising step"  # the other way round
    ONE_LENGTH = "one length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The length up to which at least some share is right, as far as the counts tell; in units of length."""

    value: float | None = None  # where the curve crosses the share; None: see `bound`, `between` or `why`
    low: float | None = None  # 95 % limits; None: not within the lengths that were asked
    high: float | None = None
    bound: Literal["above", "below"] | None = None  # of all lengths that were asked
    between: tuple[float, float] | None = None  # neighbouring lengths, right and wrong
    why: str | None = None  # there is neither a value nor a bound
    shortest: float  # that was asked
    longest: float

    def __str__(self) -> str:
        """Return `12.3 (11.8 to 12.9)`, `> 20`, `< 3`, `6 to 7` or `-`."""
        if self.bound == "above":
            return f"> {self.longest:g}" + (
                f" ({self._low()} to > {self.longest:g})" if self._unsure() else ""
            )
        if self.bound == "below":
            return f"< {self.shortest:g}" + (
                f" (< {self.shortest:g} to {self._high()})" if self._unsure() else ""
            )
        if self.value is None and self.between is None:
            return "-"
        limits = f"({self._low()} to {self._high()})"
        if self.value is None and self.between is not None:
            return f"{self.between[0]:g} to {self.between[1]:g} {limits}"
        return f"{self.value:.1f} {limits}"

    def _unsure(self) -> bool:
        """Whether the interval reaches into the lengths that were asked."""
        if self.bound == "above":
            return self.low is None or self.low < self.longest
        return self.high is None or self.high > self.shortest

    def _low(self) -> str:
        return f"< {self.shortest:g}" if self.low is None else f"{self.low:.1f}"

    def _high(self) -> str:
        return f"> {self.longest:g}" if self.high is None else f"{self.high:.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Accuracy by length of one group of trials."""

    points: tuple[Point, ...]  # length, correct, trials: by length, each once
    state: CurveState
    line: Fit | None  # of logits; None where no curve of greatest likelihood exists

    @property
    def shortest(self) -> float:
        """The shortest length that was asked."""
        return self.points[0][0]

    @property
    def longest(self) -> float:
        """The longest length that was asked."""
        return self.points[-1][0]

    def share_at(self, length: float) -> At:
        """Return the share right at a length with its 95 % interval, or None if the counts leave it open."""
        if self.line is not None:
            logit, half = self.line.logit(length), Z_95 * sqrt(self.line.variance(length))
            return share_of(logit), share_of(logit - half), share_of(logit + half)
        if self.state == CurveState.ONE_LENGTH:
            seen = self._observed()
            return (seen.share, *(seen.interval or UNKNOWN)) if length == self.shortest else (None, *UNKNOWN)
        if self.state == CurveState.RISING_STEP:
            mirrored = tuple((-x, right, trials) for x, right, trials in reversed(self.points))
            return Curve(points=mirrored, state=CurveState.SEPARATED, line=None).share_at(-length)
        return self._share_at_step(length)

    def length_at(self, share: float, *, limits: bool = True) -> Length:
        """Return the length up to which at least this share, in (0, 1), is right.

        It is told as a number only within the lengths that were asked; beyond them it is a bound. Without
        `limits`, which take nearly all of the time, `low` and `high` are None.
        """
        return _length_at(self, share, limits)

    def _length_at(self, share: float, limits: bool) -> Length:
        if self.state == CurveState.ONE_LENGTH:
            return self._length(why="only one length was asked")
        if self.state == CurveState.RISING_STEP:
            return self._length(why="accuracy rises with length")
        logit = log(share / (1 - share))
        low = high = None
        if limits:  # the least and the greatest length that may have this logit; None: beyond those asked
            refused, inside = self._refused(), self._likeliest(logit)
            low = _edge(lambda length: refused(length, logit), inside=inside, outside=self.shortest)
            high = _edge(lambda length: refused(length, logit), inside=inside, outside=self.longest)
        if self.line is None:
            return self._length_at_step(share, low, high)
        at_ends = [self.line.logit(x) >= logit for x in (self.shortest, self.longest)]
        if all(at_ends):
            return self._length(low=low, high=None, bound="above")
        if not any(at_ends):
            return self._length(low=None, high=high, bound="below")
        if self.line.slope >= 0:
            return self._length(why="accuracy rises with length")
        return self._length(value=(logit - self.line.intercept) / self.line.slope, low=low, high=high)

    def crossing(self, share: float) -> float | None:
        """Return the length at which the line has this share, or None if no length that was asked has it."""
        if self.line is None or not self.line.slope:
            return None
        length = (log(share / (1 - share)) - self.line.intercept) / self.line.slope
        return length if self.shortest <= length <= self.longest else None

    @property
    def _length(self) -> Callable[..., Length]:
        return partial(Length, shortest=self.shortest, longest=self.longest)

    def _observed(self) -> Proportion:
        return Proportion(
            successes=sum(right for _, right, _ in self.points), trials=sum(n for _, _, n in self.points)
        )

    # ── curves without a steepest fit ────────────────────────────────────────────────────────────

    def _share_at_step(self, length: float) -> At:
        """Return the share at a step, with the limits that a likelihood-ratio test does not refuse."""
        # 1 before the step, 0 behind it, what was seen at it; None between two lengths.
        last_right = max((x for x, right, _ in self.points if right), default=None)
        first_wrong = min((x for x, right, trials in self.points if right < trials), default=None)
        share: float | None
        if first_wrong is None or (length < first_wrong and last_right is not None and length <= last_right):
            share = 1.0
        elif last_right is None or (length > last_right and length >= first_wrong):
            share = 0.0
        else:
            share = next((right / trials for x, right, trials in self.points if x == length), None)

        refused = partial(self._refused(), length)
        middle = 0.0 if share is None else min(max(log(max(share, 1e-13) / max(1 - share, 1e-13)), -30), 30)
        low = _edge(refused, inside=middle, outside=-_FARTHEST)
        high = _edge(refused, inside=middle, outside=_FARTHEST)
        return share, 0.0 if low is None else share_of(low), 1.0 if high is None else share_of(high)

    def _length_at_step(self, share: float, low: float | None, high: float | None) -> Length:
        enough = [x for x, right, trials in self.points if right >= share * trials]
        too_few = [x for x, right, trials in self.points if right < share * trials]
        if not too_few:
            return self._length(low=low, bound="above")
        if not enough:
            return self._length(high=high, bound="below")
        between = (max(enough), min(too_few))
        # the test need not refuse what the step itself allows
        low = None if low is None else min(low, between[0])
        return self._length(low=low, high=None if high is None else max(high, between[1]), between=between)

    # ── limits by likelihood ratio ───────────────────────────────────────────────────────────

    def _likeliest(self, logit: float) -> float:
        """Return the length within those asked that most likely has this logit."""
        if self.line is not None and self.line.slope < 0:
            crossing = (logit - self.line.intercept) / self.line.slope
        elif self.line is not None:
            crossing = self.longest if self._reference_logit() >= logit else self.shortest
        else:
            share = share_of(logit)
            enough = [x for x, right, trials in self.points if right >= share * trials]
            too_few = [x for x, right, trials in self.points if right < share * trials]
            crossing = (max(enough, default=self.shortest) + min(too_few, default=self.longest)) / 2
            crossing = self.longest if not too_few else self.shortest if not enough else crossing
        return min(max(crossing, self.shortest), self.longest)

    def _reference_logit(self) -> float:
        seen = self._observed()
        return log(seen.successes / (seen.trials - seen.successes))

    def _refused(self) -> Callable[[float, float], bool]:
        """Return the test: whether the best curve through a length and logit loses too much likelihood."""
        if self.line is None:
            greatest = saturated(self.points)
        elif self.line.slope < 0:
            greatest = log_likelihood(self.points, self.line.intercept, self.line.slope)
        else:  # of the curves that never rise
            greatest = log_likelihood(self.points, self._reference_logit(), 0.0)
        return lambda length, logit: 2 * (greatest - best_through(self.points, length, logit)) > _REFUSED


@lru_cache(_HELD)
def _length_at(curve: Curve, share: float, limits: bool) -> Length:
    """Return the length at a share of a curve, as tables, charts and sentences need it."""
    return curve._length_at(share, limits)


def _edge(refused: Callable[[float], bool], *, inside: float, outside: float) -> float | None:
    """Return where values begin to be refused between `inside` and `outside`, or None if none is."""
    if not refused(outside):
        return None
    if refused(inside):
        return inside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if refused(middle) else (middle, outside)
    return (inside + outside) / 2


def fit(points: Iterable[Point]) -> Curve | None:
    """Return the curve through (length, correct, trials); None where there is no trial.

    Lengths may come several times: their counts are added. Trials are taken as independent of each other,
    so repeats of the same problem make the intervals narrower than they are.
    """
    counts = defaultdict[float, list[int]](lambda: [0, 0])
    for length, correct, trials in points:
        counts[length][0] += correct
        counts[length][1] += trials
    merged = tuple((x, right, trials) for x, (right, trials) in sorted(counts.items()) if trials)
    if not merged:
        return None

    # A fit exists where right and wrong lengths overlap both ways.
    right = [x for x, correct, _ in merged if correct]
    wrong = [x for x, correct, trials in merged if correct < trials]
    if len(merged) == 1:
        state = CurveState.ONE_LENGTH
    elif not wrong:
        state = CurveState.ALL_RIGHT
    elif not right:
        state = CurveState.ALL_WRONG
    elif max(right) <= min(wrong):
        state = CurveState.SEPARATED
    elif max(wrong) <= min(right):
        state = CurveState.RISING_STEP
    else:
        return Curve(points=merged, state=CurveState.FITTED, line=fitted(merged))
    return Curve(points=merged, state=state, line=None)


# ── Number of digits up to which 90 % and 50 % are right, for every model and task


TASK: Final = (*ENTRANT, "suite", "task")
GROUP: Final = (*TASK, "variant", "representation")  # unlike numbers have no curve in common


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardest:
    """The length up to which a share is right in the task where that is least."""

    task: str
    length: Length
    tasks: int  # among how many

    def __str__(self) -> str:
        """Return the length and, where others are longer, whose it is: `4.7 (4.2 to 5.1) int_mul`."""
        return f"{self.length}{self._task()}"

    def brief(self) -> str:
        """Return the length without its limits: `4.7 digits (int_mul)`, `10 digits or more`."""
        if self.length.bound == "above":
            return f"{self.length.longest:g} digits or more"
        task = self._task().strip()
        return f"{str(self.length).partition(' (')[0]} digits" + (f" ({task})" if task else "")

    def _task(self) -> str:
        return f" {self.task}" if self.tasks > 1 and self.length.bound != "above" else ""


def hardest(lengths: Mapping[str, Length]) -> Hardest | None:
    """Return the least of these lengths, by task; None where none is known. Of equals the first by name."""
    # A length below all that was asked stands first, one above them last.
    ranks = dict[str, tuple[int, float]]()
    for task, length in lengths.items():
        if length.bound is not None:
            ranks[task] = (0, length.shortest) if length.bound == "below" else (2, length.longest)
        elif length.value is not None:
            ranks[task] = (1, length.value)
        elif length.between is not None:
            ranks[task] = (1, length.between[0])

    if not ranks:
        return None
    task = min(ranks, key=lambda task: (ranks[task], task))
    return Hardest(task=task, length=lengths[task], tasks=len(lengths))


def hardest_at(share: float, curves: Mapping[str, Curve]) -> Hardest | None:
    """Return the task whose curve reaches a share at the least length.

    Limits take time, so they are computed for this task alone.
    """
    least = hardest({task: curve.length_at(share, limits=False) for task, curve in curves.items()})
    return least and replace(least, length=curves[least.task].length_at(share))


def curves_by(cells: Iterable[Mapping[str, Any]], by: Sequence[str] = TASK) -> dict[tuple[str, ...], Curve]:
    """Return the curve of each group of cells by its values, in the order of these.

    Groups of which no length is known are left out.

    Args:
        cells: rows of the view `cells`; the columns of `by`, length, correct, trials and failed are used.
        by: the columns that tell the groups; add variant and representation where a task has several.
    """
    groups = rows_by((cell for cell in cells if cell["length"] is not None), itemgetter(*by))
    return {key: curve for key, group in sorted(groups.items()) if (curve := curve_of(group))}


def curve_of(cells: Iterable[Sums]) -> Curve | None:
    """Return the curve of the trials with a reply; a call that failed says nothing of length."""
    return fit((cell["length"], cell["correct"], cell["trials"] - cell["failed"]) for cell in cells)
