"""What is not asked, for enough is known of its cell: a run's trials beside what earlier runs found out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from asyncbench.engine.stopping import Cell, Stopping, stop_at
from asyncbench.engine.telemetry import Counters
from asyncbench.records import Event, History, Outcome, Skipped, StopWhen, Trial
from asyncbench.store.catalog import failed_ids, read_skipped, right_ids
from asyncbench.sweep import Cell as ProblemCell

Said = tuple[str, int, int]  # rule, asked, correct
_FAILED = 2  # beside 0, not right, and 1, right
_COLUMNS = ("trial_id", "rule", "asked", "correct")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What earlier runs left in a results folder."""

    right: frozenset[str]  # trials
    failed: frozenset[str] = frozenset()  # trials, which tell nothing of the model
    again: Mapping[str, Outcome]  # how trials were closed that are asked again
    skipped: Mapping[str, Said]  # by trial

    @classmethod
    def of(cls, folder: Path, *, again: Mapping[str, Outcome]) -> "Before":
        """Look through a folder; raises as `read_trials` does."""
        rows = read_skipped(folder, _COLUMNS)
        ids, *said = (cast("list[Any]", rows[name].to_pylist()) for name in _COLUMNS)  # Any: text or count
        skipped: dict[str, Said] = dict(zip(ids, zip(*said, strict=True), strict=True))
        return cls(right=right_ids(folder), failed=failed_ids(folder), again=again, skipped=skipped)

    def answer_of(self, trial_id: str) -> bool | None:
        """Return whether a closed trial is right; None: it failed."""
        return None if trial_id in self.failed else trial_id in self.right


def still_skipped(folder: Path, when: StopWhen) -> frozenset[str]:
    """Return the trials written down as skipped that a rule skips still; raises as `read_trials` does."""
    rows = read_skipped(folder, ("trial_id", "asked", "correct")).to_pylist()
    known = {(row["correct"], row["asked"]) for row in rows}
    holds = {one for one in known if stop_at(when, *one) is not None}
    return frozenset(row["trial_id"] for row in rows if (row["correct"], row["asked"]) in holds)


def stopping_of(
    when: StopWhen,
    before: Before,
    keep: Callable[[Event], None],
    counters: Counters,
    now: Callable[[], float],
) -> Stopping:
    """Return the rule over the cells of one model; what is written down already is not written again."""

    def keep_new(one: Skipped) -> None:
        stop = one.stop
        if before.skipped.get(one.trial.trial_id) != (stop.rule, stop.asked, stop.correct):
            keep(one)

    return Stopping(when=when, keep=keep_new, counters=counters, now=now)


@dataclass(slots=True, kw_only=True)
class Needed:
    """Tells of one model's trials, in the planned order, which have to be asked.

    `following` and `left_out` are called where trials are made, be it in another thread; `holds` where they
    are asked.
    """

    before: Before
    stopping: Stopping
    _told: dict[Cell, bytearray] = field(default_factory=dict)  # right, not or failed, since the last trial
    _ahead_of: dict[str, Mapping[Cell, bytearray]] = field(default_factory=dict)  # by the trial after them

    def left_out(self, condition: str, cell: ProblemCell, trial_id: str) -> None:
        """Note a trial that earlier runs closed."""
        answer = self.before.answer_of(trial_id)
        told = self._told.setdefault(Cell(condition, *cell), bytearray())
        told.append(_FAILED if answer is None else answer)

    def following(self, trials: Iterator[Trial]) -> Iterator[Trial]:
        """Yield the trials that are not closed, and note what stands before each."""
        for trial in trials:
            if self._told:
                self._ahead_of[trial.trial_id], self._told = self._told, {}
            yield trial

    def holds(self, trial: Trial, history: History) -> bool:
        """Whether a trial has to be asked, or graded; that it need not be is written down."""
        for cell, answers in self._ahead_of.pop(trial.trial_id, {}).items():
            self.stopping.known(cell, (None if one == _FAILED else bool(one) for one in answers))
        if trial.trial_id in self.before.again:
            self.stopping.ask_again(trial, right=self.before.answer_of(trial.trial_id))
            return True
        stop = self.stopping.stop_of(trial)
        answered = history.ended is not None and history.ended.reply is not None
        if stop is not None and not answered:
            self.stopping.skip(trial, stop)
            return False
        self.stopping.plan(trial)
        return True
