"""Trials that are skipped because enough is known of their cell, also from earlier runs."""

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from asyncbench.config.sweep import Sweep
from asyncbench.engine.stopping import ConditionCell, Stopping, still_stopped
from asyncbench.engine.telemetry import Counters
from asyncbench.planning.trials import TrialSource, trials_of
from asyncbench.records import Cell, History, Model, Outcome, Skipped, Stop, StopWhen, Trial
from asyncbench.stats.always_valid import always_valid_interval
from asyncbench.store.catalog import failed_ids, known_trials, read_skipped, right_ids
from asyncbench.store.salvage import Salvage

StopFigures = tuple[str, int, int]  # rule, asked, correct
_FAILED = 2  # beside 0, not right, and 1, right
_COLUMNS = ("trial_id", "rule", "asked", "correct")
_BATCH = 4096  # trials looked at, off the event loop, between two writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The results of earlier runs in a folder."""

    right: frozenset[str]  # trials
    failed: frozenset[str] = frozenset()  # trials, which tell nothing of the model
    again: Mapping[str, Outcome]  # how trials were closed that are asked again
    skipped: Mapping[str, StopFigures]  # by trial

    @classmethod
    def read(cls, folder: Path, *, again: Mapping[str, Outcome]) -> "Before":
        """Look through a folder; raises as `read_trials` does."""
        rows = read_skipped(folder, _COLUMNS)
        ids, *columns = (cast("list[Any]", rows[name].to_pylist()) for name in _COLUMNS)  # Any: text or count
        skipped: dict[str, StopFigures] = dict(zip(ids, zip(*columns, strict=True), strict=True))
        return cls(right=right_ids(folder), failed=failed_ids(folder), again=again, skipped=skipped)

    def answer_of(self, trial_id: str) -> bool | None:
        """Return whether a closed trial is right, or None if it failed."""
        return None if trial_id in self.failed else trial_id in self.right


_NOTHING_BEFORE = Before(right=frozenset(), again={}, skipped={})


def still_skipped(folder: Path, when: StopWhen) -> frozenset[str]:
    """Return the trials written down as skipped that a rule skips still; raises as `read_trials` does."""
    rows = read_skipped(folder, ("trial_id", "asked", "correct")).to_pylist()
    holds = still_stopped(when, ((row["correct"], row["asked"]) for row in rows))
    return frozenset(row["trial_id"] for row in rows if (row["correct"], row["asked"]) in holds)


def stopping_of(
    when: StopWhen,
    before: Before,
    keep: Callable[[Skipped], None],
    counters: Counters,
    now: Callable[[], float],
) -> Stopping:
    """Return the rule over the cells of one model; what is written down already is not written again."""

    def keep_new(skipped: Skipped) -> None:
        stop = skipped.stop
        if before.skipped.get(skipped.trial.trial_id) != (stop.rule, stop.asked, stop.correct):
            keep(skipped)

    return Stopping(when=when, keep=keep_new, counters=counters, now=now)


@dataclass(slots=True, kw_only=True)
class Needed:
    """Tells of one model's trials, in the planned order, which have to be asked.

    `passes` and `left_out` are called where trials are made, be it in another thread; `holds` where they
    are asked.
    """

    before: Before
    stopping: Stopping
    # Right, not right or failed: since the last trial, and by the trial after them.
    _answers: dict[ConditionCell, bytearray] = field(default_factory=dict)
    _ahead_of: dict[str, Mapping[ConditionCell, bytearray]] = field(default_factory=dict)

    def left_out(self, condition: str, cell: Cell, trial_id: str) -> None:
        """Note a trial that earlier runs closed."""
        answer = self.before.answer_of(trial_id)
        answers = self._answers.setdefault((condition, cell), bytearray())
        answers.append(_FAILED if answer is None else answer)

    def passes(self, closed: Callable[[str], bool], trial_id: str) -> bool:
        """Return whether a trial is closed; note what stands before one that is not."""
        if closed(trial_id):
            return True
        if self._answers:
            self._ahead_of[trial_id], self._answers = self._answers, {}
        return False

    def holds(self, trial: Trial, history: History) -> bool:
        """Return whether a trial has to be asked, or graded; that it need not be is written down."""
        for cell, answers in self._ahead_of.pop(trial.trial_id, {}).items():
            self.stopping.take_known(
                cell, (None if answer == _FAILED else bool(answer) for answer in answers)
            )
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

    def forget(self) -> None:
        """Let go of what tells which trials to ask, for nothing more is asked."""
        self.before = _NOTHING_BEFORE
        self.stopping.forget()


# ── trials that a run did not reach


def unsettled(stopping: Stopping) -> bool:
    """Return whether a run left trials open whose cells may be known, or skipped some that are open again."""
    counters = stopping.counters
    incomplete = counters.open > 0 and (bool(stopping.stops()) or stopping.changed)
    return incomplete or (counters.skipped > 0 and stopping.changed)


async def settle(
    sweep: Sweep,
    models: Mapping[str, tuple[Model, Stopping]],
    sets: Mapping[str, Sequence[TrialSource]],
    *,
    limit: int | None,
    per_cell: int | None,
    folder: Path,
    salvage: Salvage,
) -> int:
    """Write down what a run that is over leaves to be skipped; return how many trials are open again.

    A run that ends before its trials do, be it for want of money, has not come to all trials of the cells
    that it knows. And a run that asked again knows only now by which answers it should have skipped.

    Args:
        sweep, sets, limit, per_cell: as the run had them.
        models: each with the rule of its run, by alias; the counters there are put right.
        folder: the results folder.
        salvage: keeps what is written.

    Raises:
        ConfigError, StoreError: as `read_trials` does.
    """
    rest = await asyncio.to_thread(SettledTrials.read, folder)
    reopened = 0
    async with salvage.tended():
        for alias, (model, stopping) in models.items():
            batches = rest.new_skips(sweep, model, sets[alias], stopping, limit=limit, per_cell=per_cell)
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                for skipped in batch:
                    salvage.keep(skipped)
                if salvage.error is not None:
                    raise salvage.error
                cells = [(skipped.stop.correct, skipped.stop.asked) for skipped in batch]
                holds = still_stopped(stopping.when, cells)
                reopened += sum(cell not in holds for cell in cells)
    return reopened


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledTrials:
    """The trials of a results folder when none is in flight any more."""

    before: Before
    finished: Container[str]
    histories: Mapping[str, History]

    @classmethod
    def read(cls, folder: Path) -> "SettledTrials":
        """Look through a folder; raises as `read_trials` does."""
        trials = known_trials(folder)
        return cls(before=Before.read(folder, again={}), finished=trials.finished, histories=trials.histories)

    def new_skips(
        self,
        sweep: Sweep,
        model: Model,
        sets: Sequence[TrialSource],
        run: Stopping,
        *,
        limit: int | None,
        per_cell: int | None,
    ) -> Iterator[list[Skipped]]:
        """Yield new skips of a model to be written, part by part; then put the counters of its run right."""
        skips, counters = list[Skipped](), Counters()
        stopping = stopping_of(run.when, self.before, skips.append, counters, run.now)
        needed = Needed(before=self.before, stopping=stopping)
        trials = trials_of(
            sweep,
            model,
            sets,
            limit=limit,
            per_cell=per_cell,
            skip=partial(needed.passes, self.finished.__contains__),
            left_out=needed.left_out,
        )
        stops = self.before.skipped
        holds = still_stopped(run.when, ((correct, total) for _, total, correct in stops.values()))
        while batch := list(islice(trials, _BATCH)):
            for trial in batch:
                needs = needed.holds(trial, self.histories.get(trial.trial_id, History()))
                rule, total, correct = stops.get(trial.trial_id, ("", 0, 0))
                if needs and rule and (correct, total) in holds:
                    # Its cell is stopped no more: the present counts take the place of those that did it.
                    correct, total = stopping.figures_of(trial)
                    low, high = always_valid_interval(correct, total)
                    stop = Stop(rule=rule, asked=total, correct=correct, low=low, high=high)
                    skips.append(Skipped(trial=trial, stop=stop, skipped_at=stopping.now()))
            yield skips
            skips.clear()
        run.counters.skipped = counters.skipped
