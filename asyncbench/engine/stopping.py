"""Stopping rules: the rest of a cell need not be asked once its accuracy is known well enough.

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

from asyncbench.engine.telemetry import Counters
from asyncbench.records import Cell, Outcome, Skipped, Stop, StopWhen, Trial
from asyncbench.stats.always_valid import alike_needed, always_valid_interval

CellCounts = tuple[int, int]  # correct, asked
ConditionCell = tuple[str, Cell]  # condition and cell: what trials of one model share that share an accuracy


def cell_of(trial: Trial) -> ConditionCell:
    """Return the cell of a trial."""
    problem = trial.problem
    cell = Cell(problem.suite, problem.task, problem.variant, problem.representation, problem.length)
    return trial.condition.name, cell


def right_of(outcome: Outcome) -> bool | None:
    """Return whether an answer is right, or None if the trial failed, which says nothing of its model."""
    return None if outcome is Outcome.FAILED else outcome is Outcome.CORRECT


def stop_at(when: StopWhen, correct: int, answers: int) -> Stop | None:
    """Return why a cell with so many answers is asked no further, or None if it goes on."""
    low, high = interval = always_valid_interval(correct, answers)
    if (
        when.saturated is not None
        and answers
        and correct in (0, answers)
        and interval.width <= when.saturated
    ):
        rule = f"saturated {when.saturated:g}"
    elif when.ci_width is not None and interval.width <= when.ci_width:
        rule = f"ci_width {when.ci_width:g}"
    else:
        return None
    return Stop(rule=rule, asked=answers, correct=correct, low=low, high=high)


def still_stopped(when: StopWhen | None, cells: Iterable[CellCounts]) -> frozenset[CellCounts]:
    """Return those counts (correct, asked) by which a rule stops a cell; without a rule none does."""
    if when is None:
        return frozenset()
    return frozenset(counts for counts in set(cells) if stop_at(when, *counts) is not None)


def next_check(when: StopWhen, correct: int, answers: int) -> float:
    """Return after how many answers in all a rule may hold, where it does not hold yet; inf: never.

    The interval never narrows faster than the answers grow in number, and no answers make it narrower than
    those that are all alike.
    """
    checks = [inf]
    if when.saturated is not None and correct in (0, answers):
        checks.append(alike_needed(when.saturated))
    if when.ci_width is not None:
        grown = answers * always_valid_interval(correct, answers).width / when.ci_width
        checks.append(max(alike_needed(when.ci_width), ceil(grown)))
    return max(min(checks), answers + 1)


@dataclass(slots=True)
class _CellAnswers:
    """The answers of one cell, in the planned order."""

    when: StopWhen
    check_at: float
    planned: int = 0  # trials that were given an index
    closed: int = 0  # trials from the first on that are closed without a gap
    answers: int = 0  # of these, those that did not fail
    correct: int = 0
    early: dict[int, bool | None] = field(default_factory=dict)  # by index: closed before an earlier one was
    stop: Stop | None = None

    def add(self, index: int, right: bool | None) -> None:
        """Count an answer, and all that waited for it."""
        if self.stop is not None:
            return
        self.early[index] = right
        while self.stop is None and self.closed in self.early:
            answer = self.early.pop(self.closed)
            self.closed += 1
            if answer is None:
                continue
            self.correct += answer
            self.answers += 1
            if self.answers >= self.check_at:
                self.stop = stop_at(self.when, self.correct, self.answers)
                self.check_at = next_check(self.when, self.correct, self.answers)
        if self.stop is not None:
            self.early.clear()


@dataclass(slots=True, kw_only=True)
class Stopping:
    """The cells of one model while a run lasts.

    Each first answer that is planned is told in order, by `take_known` or by `plan`. A trial that was begun
    is brought to its end, with its retries, whatever becomes of its cell. One that earlier runs closed and
    this run asks again counts as it was closed before, and `changed` tells that it counts otherwise then.
    """

    when: StopWhen
    keep: Callable[[Skipped], None]
    counters: Counters
    now: Callable[[], float]  # UTC, seconds since 1970
    changed: bool = False  # whether one that was asked again counts otherwise from now on
    on_stop: Callable[[], None] = lambda: None  # is called when an answer stops a cell
    anyway: set[str] = field(default_factory=set)  # trials that are asked whatever is known of their cells
    _cells: dict[ConditionCell, _CellAnswers] = field(default_factory=dict)
    _indices: dict[str, tuple[_CellAnswers, int]] = field(default_factory=dict)  # of trials not closed yet
    _counted_as: dict[str, bool | None] = field(default_factory=dict)  # of those, how the first answers count

    def figures_of(self, trial: Trial) -> CellCounts:
        """Return how many answers of a trial's cell count so far, as (correct, asked)."""
        cell = self._cells.get(cell_of(trial))
        return (0, 0) if cell is None else (cell.correct, cell.answers)

    def stop_of(self, trial: Trial) -> Stop | None:
        """Return why a trial need not be asked, or None if it has to be."""
        cell = self._cells.get(cell_of(trial))
        return None if cell is None or trial.trial_id in self.anyway else cell.stop

    def stops(self) -> dict[ConditionCell, Stop]:
        """Return the cells of which enough is known."""
        return {cell: answers.stop for cell, answers in self._cells.items() if answers.stop is not None}

    def stop_cell(self, cell: ConditionCell, stop: Stop) -> None:
        """Stop a cell, as another process has decided."""
        self._answers(cell).stop = stop
        self.on_stop()

    def skipped(self, trial: Trial) -> None:
        """Take in that another process has written down that a trial is not asked."""
        self._indices.pop(trial.trial_id, None)

    def take_known(self, cell: ConditionCell, answers: Iterable[bool | None]) -> None:
        """Take in answers of earlier runs, None where one failed, that come next in the order of a cell."""
        cell_answers = self._answers(cell)
        for right in answers:
            cell_answers.add(cell_answers.planned, right)
            cell_answers.planned += 1

    def plan(self, trial: Trial) -> None:
        """Give a trial its index: the next of its cell."""
        if not trial.repeat:
            cell = self._answers(cell_of(trial))
            self._indices[trial.trial_id] = cell, cell.planned
            cell.planned += 1

    def ask_again(self, trial: Trial, *, right: bool | None) -> None:
        """Take in how the next trial was closed; it is asked again, whatever is known of its cell."""
        self.anyway.add(trial.trial_id)
        if not trial.repeat:
            self.take_known(cell_of(trial), [right])
            self._counted_as[trial.trial_id] = right

    def close(self, trial_id: str, *, right: bool | None) -> None:
        """Take in the answer of a trial, None where it failed; one without an index does not count."""
        if right is not None and self._counted_as.get(trial_id, right) != right:
            self.changed = True  # one that fails keeps the answer that it has
        cell, index = self._indices.pop(trial_id, (None, 0))
        if cell is not None and cell.stop is None:
            cell.add(index, right)
            if cell.stop is not None:
                self.on_stop()

    def skip(self, trial: Trial, stop: Stop) -> None:
        """Write down that a trial is not asked."""
        self._indices.pop(trial.trial_id, None)
        self.counters.skipped += 1
        self.keep(Skipped(trial=trial, stop=stop, skipped_at=self.now()))

    def forget(self) -> None:
        """Free the memory of all cells: nothing more is asked. The counters stay."""
        self.keep = lambda _: None
        for memory in (self._cells, self._indices, self.anyway, self._counted_as):
            memory.clear()

    def _answers(self, cell: ConditionCell) -> _CellAnswers:
        if cell not in self._cells:
            self._cells[cell] = _CellAnswers(self.when, next_check(self.when, 0, 0))
        return self._cells[cell]
