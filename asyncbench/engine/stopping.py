"""When enough is known of a cell, so that the rest of it need not be asked.

A cell is what accuracy is told by at its finest: of one model, a condition, suite, task, variant,
representation and length.

Replies do not end in the order in which they were asked: a long one, which is more often wrong, ends
later. So a cell's answers count in the planned order alone, as far as all earlier ones are closed. Which
those are does not depend on what they say, nor on what was in flight, and another run over the same answers
stops at the same place.

A reply without the right answer is not right, be it truncated or refused. A trial that failed tells nothing
of the model: its place is left out.
Of repeats the first counts: another answer to the same question is no other problem.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final, NamedTuple

from asyncbench.engine.always_valid import Interval, alike_needed, always_valid_interval
from asyncbench.engine.telemetry import Counters
from asyncbench.records import Skipped, Stop, StopWhen, Trial

CI_WIDTH: Final = "ci_width"
SATURATED: Final = "saturated"
CellCounts = tuple[int, int]  # correct, asked


class ConditionCell(NamedTuple):
    """What is alike in the trials of one model that an accuracy is told of."""

    condition: str
    suite: str
    task: str
    variant: str
    representation: str
    length: int | None


def cell_of(trial: Trial) -> ConditionCell:
    """Return the cell of a trial."""
    problem = trial.problem
    kind = (problem.suite, problem.task, problem.variant, problem.representation, problem.length)
    return ConditionCell(trial.condition.name, *kind)


def stop_at(when: StopWhen, correct: int, asked: int) -> Stop | None:
    """Return why a cell with so many answers is asked no further; None: it goes on."""
    interval = always_valid_interval(correct, asked)
    rule = _rule(when, correct, asked, interval)
    if rule is None:
        return None
    return Stop(rule=rule, asked=asked, correct=correct, low=interval.low, high=interval.high)


def _rule(when: StopWhen, correct: int, asked: int, interval: Interval) -> str | None:
    alike = asked > 0 and correct in (0, asked)
    if when.saturated is not None and alike and interval.width <= when.saturated:
        return f"{SATURATED} {when.saturated:g}"
    if when.ci_width is not None and interval.width <= when.ci_width:
        return f"{CI_WIDTH} {when.ci_width:g}"
    return None


def still_stopped(when: StopWhen | None, known: Iterable[CellCounts]) -> frozenset[CellCounts]:
    """Return those (correct, asked) by which a rule stops a cell; without a rule none does."""
    return frozenset(one for one in set(known) if when is not None and stop_at(when, *one) is not None)


def next_look(when: StopWhen, correct: int, asked: int) -> float:
    """Return after how many answers in all a rule may hold, where it does not hold yet; inf: never.

    The interval never narrows faster than the answers grow in number, and no answers make it narrower than
    those that are all alike.
    """
    looks = [inf]
    if when.saturated is not None and correct in (0, asked):
        looks.append(alike_needed(when.saturated))
    if when.ci_width is not None:
        grown = asked * always_valid_interval(correct, asked).width / when.ci_width
        looks.append(max(alike_needed(when.ci_width), ceil(grown)))
    return max(min(looks), asked + 1)


def _nowhere(_: Skipped) -> None:
    """Keep nothing."""


@dataclass(slots=True)
class _Known:
    """The answers of one cell, in the planned order."""

    look_at: float
    planned: int = 0  # trials given a place
    closed: int = 0  # of them, those up to which all are closed
    asked: int = 0  # of these, those that did not fail
    correct: int = 0
    early: dict[int, bool | None] = field(default_factory=dict)  # closed before one that is planned earlier
    stop: Stop | None = None


@dataclass(slots=True, kw_only=True)
class Stopping:
    """The cells of one model while a run lasts.

    Every first answer planned has to be told in order, by `known` or by `plan`. A trial that was begun is
    brought to its end, with its retries, whatever becomes of its cell. One that earlier runs closed and this
    run asks again counts as it was closed before, and `changed` tells that it counts otherwise from now on.
    """

    when: StopWhen
    keep: Callable[[Skipped], None]
    counters: Counters
    now: Callable[[], float]  # UTC, seconds since 1970
    _cells: dict[ConditionCell, _Known] = field(default_factory=dict)
    _places: dict[str, tuple[ConditionCell, int]] = field(
        default_factory=dict
    )  # of trials that are not closed
    _anyway: set[str] = field(default_factory=set)  # trials that are asked whatever is known
    _counted_as: dict[str, bool | None] = field(default_factory=dict)  # of those, how the first answers count
    changed: bool = False  # whether one that was asked again counts otherwise from now on
    _stopped: Callable[[], None] = lambda: None

    def on_stop(self, call: Callable[[], None]) -> None:
        """Call this whenever a cell is stopped by an answer."""
        self._stopped = call

    @property
    def stopped_any(self) -> bool:
        """Whether enough is known of a cell."""
        return any(one.stop is not None for one in self._cells.values())

    def figures_of(self, trial: Trial) -> CellCounts:
        """Return how many answers of a trial's cell count so far, as (correct, asked)."""
        known = self._cells.get(cell_of(trial))
        return (0, 0) if known is None else (known.correct, known.asked)

    def stop_of(self, trial: Trial) -> Stop | None:
        """Return why a trial need not be asked; None: it has to be."""
        known = self._cells.get(cell_of(trial))
        return None if known is None or trial.trial_id in self._anyway else known.stop

    def known(self, cell: ConditionCell, answers: Iterable[bool | None]) -> None:
        """Take in answers of earlier runs, None where one failed, that come next in the order of a cell."""
        one = self._cell(cell)
        for right in answers:
            self._add(one, one.planned, right)
            one.planned += 1

    def plan(self, trial: Trial) -> None:
        """Give a trial its place: the next of its cell."""
        if not trial.repeat:
            cell = cell_of(trial)
            one = self._cell(cell)
            self._places[trial.trial_id] = cell, one.planned
            one.planned += 1

    def ask_again(self, trial: Trial, *, right: bool | None) -> None:
        """Take in how the next trial was closed; it is asked again, whatever is known of its cell."""
        self._anyway.add(trial.trial_id)
        if not trial.repeat:
            self.known(cell_of(trial), [right])
            self._counted_as[trial.trial_id] = right

    def close(self, trial_id: str, *, right: bool | None) -> None:
        """Take in the answer of a trial, None where it failed; one without a place does not count."""
        if right is not None and self._counted_as.get(trial_id, right) != right:
            self.changed = True  # one that fails keeps the answer that it has
        cell, place = self._places.pop(trial_id, (None, 0))
        if cell is None:
            return
        one = self._cells[cell]
        went_on = one.stop is None
        self._add(one, place, right)
        if went_on and one.stop is not None:
            self._stopped()

    def skip(self, trial: Trial, stop: Stop) -> None:
        """Write down that a trial is not asked."""
        self._places.pop(trial.trial_id, None)
        self.counters.skipped += 1
        self.keep(Skipped(trial=trial, stop=stop, skipped_at=self.now()))

    def forget(self) -> None:
        """Let go of all that tells what to ask, for nothing more is asked; the counters stay."""
        self.keep = _nowhere
        for known in (self._cells, self._places, self._anyway, self._counted_as):
            known.clear()

    def _cell(self, cell: ConditionCell) -> _Known:
        if cell not in self._cells:
            self._cells[cell] = _Known(next_look(self.when, 0, 0))
        return self._cells[cell]

    def _add(self, one: _Known, place: int, right: bool | None) -> None:
        """Count an answer, and all that waited for it."""
        if one.stop is not None:
            return
        one.early[place] = right
        while one.stop is None and one.closed in one.early:
            answer = one.early.pop(one.closed)
            one.closed += 1
            if answer is None:
                continue
            one.correct += answer
            one.asked += 1
            if one.asked >= one.look_at:
                self._look(one)
        if one.stop is not None:
            one.early.clear()

    def _look(self, one: _Known) -> None:
        one.stop = stop_at(self.when, one.correct, one.asked)
        one.look_at = next_look(self.when, one.correct, one.asked)
