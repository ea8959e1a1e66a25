"""The figures that llm_arithmetic publishes: counted per cell by Arrow, then summed from the cells.

A row of its tables is one run × model, × condition where a run's model was asked under several. A cell is a
row's trials of one task and one depth (our `length`, which others' problem sets may leave out).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.results import Asked, Graded, NothingToShowError, in_order
from asyncbench.store import ENTRANT, Manifest, planned, read_grades, read_trials
from asyncbench.suites import ARITHMETIC_GRADERS, ARITHMETIC_TASKS, SUITE

HEADLINE = next(iter(ARITHMETIC_GRADERS))
RECORDED = "recorded"  # the price_source of a cost that an imported file states

_KEYS = (*ENTRANT, "task", "length")
_OF_TRIALS = ("trial_id", *_KEYS, "provider", "input_tokens", "output_tokens", "cost_usd", "price_source")
_OF_GRADES = ("trial_id", "grader_version", "classification", "reason", "rel_error", "outcome")

Plan = Mapping[str, int]  # trials by task


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSums:
    """Sums over some trials; those of two groups add up to those of both."""

    trials: int = 0
    correct: int = 0
    deviate: int = 0
    rel_errors: float = 0.0  # of Deviate; infinite when one is
    input_tokens: int = 0  # of the trials whose tokens are known
    output_tokens: int = 0
    uncounted: int = 0  # replies whose tokens are unknown
    cost_usd: float = 0.0  # of the priced trials
    priced: int = 0
    recorded_free: int = 0  # an imported file says $0 though tokens were used: no price was known

    def __add__(self, other: Self) -> "TrialSums":
        """Return the figures of both groups together."""
        return TrialSums(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )

    @property
    def nan(self) -> int:
        """Trials in whose reply no number was read, or without a reply."""
        return self.trials - self.correct - self.deviate

    @property
    def accuracy(self) -> float | None:
        """Correct over all trials; None of none."""
        return self.correct / self.trials if self.trials else None

    @property
    def deviate_rate(self) -> float | None:
        """Deviate over all trials; None of none."""
        return self.deviate / self.trials if self.trials else None

    @property
    def nan_rate(self) -> float | None:
        """NaN over all trials; None of none."""
        return self.nan / self.trials if self.trials else None

    @property
    def error_of_deviate(self) -> float:
        """The mean relative error over Deviate; 0 without any, as published."""
        return self.rel_errors / self.deviate if self.deviate else 0.0

    @property
    def error_of_read(self) -> float:
        """The mean relative error over Deviate and Correct, whose error is 0; 0 without any, as published."""
        read = self.deviate + self.correct
        return self.rel_errors / read if read else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """Depths from the first to the last, both included; an unknown depth is not among them."""

    first: int
    last: int | None = None  # None: there is none

    def __contains__(self, depth: int | None) -> bool:
        """Whether a depth is one of these."""
        return depth is not None and self.first <= depth and (self.last is None or depth <= self.last)


Cell = tuple[str, int | None]  # task, depth
Cells = Mapping[Cell, TrialSums]


def total(cells: Cells, *, depths: Depths | None = None, task: str | None = None) -> TrialSums:
    """Return the figures of the cells of these depths, of one task or of all.

    Args:
        cells: of a row, or of several.
        depths: None: all, unknown ones too.
        task: None: all.
    """
    chosen = (
        figures
        for (of_task, depth), figures in cells.items()
        if (depths is None or depth in depths) and (task is None or task == of_task)
    )
    return sum(chosen, TrialSums())


def tasks_of(cells: Iterable[Cell]) -> list[str]:
    """Return the tasks that there are: those of the suite in its order, then others by name."""
    found = {task for task, _ in cells}
    return [*(task for task in ARITHMETIC_TASKS if task in found), *sorted(found - ARITHMETIC_TASKS.keys())]


def depths_of(cells: Iterable[Cell]) -> list[int | None]:
    """Return the depths that there are, ascending; an unknown one last."""
    return sorted({depth for _, depth in cells}, key=lambda depth: (depth is None, depth or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One row of the published tables."""

    run: str
    model: str
    condition: str | None  # None: the run asked this model under one only
    cells: Cells
    planned: Plan | None  # of this row; None: no plan is known
    complete: bool  # over all depths as many trials as planned; without a plan, as the fullest row has

    @property
    def label(self) -> str:
        """The name that tables show."""
        return self.model if self.condition is None else f"{self.model} ({self.condition})"

    @property
    def trials(self) -> int:
        """Trials over all depths."""
        return total(self.cells).trials

    @property
    def counts(self) -> dict[str, int]:
        """Trials over all depths by task; 0 for a planned task without any."""
        tasks = {task for task, _ in self.cells} | set(self.planned or ())
        return {task: total(self.cells, task=task).trials for task in sorted(tasks)}

    @property
    def valid(self) -> bool:
        """Whether every task has its planned trials; without a plan, whether all have equally many."""
        if self.planned is None:
            return len(set(self.counts.values())) == 1
        return self.counts == dict(self.planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTally:
    """What became of all trials, at all depths."""

    trials: int
    failed: int  # no reply
    empty: int  # replied without text
    truncated: int  # the provider says that the reply was cut
    correct: int
    wrong: int
    ungraded: int  # the grader has no grade of them
    of_unknown_depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedTrials:
    """A folder's trials of the suite, with what one grader says of them."""

    grader: str
    trials: pa.Table  # a row a trial: columns of `trials` and of `grades`

    @property
    def providers(self) -> list[str]:
        """Who was asked."""
        return [str(name) for name in self.trials["provider"].unique().to_pylist()]

    @property
    def graded(self) -> Graded:
        """Who graded them, in which versions."""
        versions = self.trials["grader_version"].filter(pc.is_valid(self.trials["classification"]))
        found = cast("list[int]", versions.unique().to_pylist())
        return Graded(suite=SUITE.name, grader=self.grader, versions=tuple(sorted(found)))

    def tally(self) -> OutcomeTally:
        """Count what became of the trials."""
        outcome, reason = self.trials["outcome"], self.trials["reason"]
        return OutcomeTally(
            trials=self.trials.num_rows,
            failed=_count(outcome, Outcome.FAILED),
            empty=_count(reason, "empty"),
            truncated=_count(outcome, Outcome.TRUNCATED),
            correct=_count(outcome, Outcome.CORRECT),
            wrong=_count(outcome, Outcome.WRONG),
            ungraded=self.trials["classification"].null_count,
            of_unknown_depth=self.trials["length"].null_count,
        )


def _count(column: "pa.ChunkedArray[Any]", word: str) -> int:
    return len(column.filter(_equal(column, word)))


def read_graded(folder: Path | str, grader: str) -> GradedTrials:
    """Return the trials of the suite in a results folder with the grades of one grader.

    Raises:
        ConfigError: no such grader, no such folder, or (`NothingToShowError`) no trials of this suite in it.
        StoreError: the folder cannot be read.
    """
    if grader not in ARITHMETIC_GRADERS:
        raise ConfigError(f"{SUITE.name} has no grader {grader!r}; it has: {', '.join(ARITHMETIC_GRADERS)}")
    of_suite = pc.field("suite") == SUITE.name
    trials = read_trials(folder, _OF_TRIALS, of_suite)
    if not trials.num_rows:
        raise NothingToShowError.of_suites(folder, [SUITE.name])
    grades = read_grades(folder, _OF_GRADES, of_suite & (pc.field("grader") == grader))
    # Left outer: a trial that this grader never saw is still a trial.
    return GradedTrials(grader=grader, trials=trials.join(grades, "trial_id", use_threads=False))


def rows_of(trials: pa.Table, manifest: Manifest) -> tuple[PublishedRow, ...]:
    """Return the rows in the order of the manifest's runs, models and conditions."""
    cells, plans = _cells(trials), planned(manifest)
    fullest = max(total(of_row).trials for of_row in cells.values())
    return tuple(
        _row(asked, cells[asked], plans.get(asked, {}).get(SUITE.name), fullest, alone=_alone(asked, cells))
        for asked in in_order(cells, manifest)
    )


def ranked(rows: Iterable[PublishedRow], depths: Depths) -> tuple[PublishedRow, ...]:
    """Return rows as tables list them: complete ones first, then by accuracy; ties keep their order."""

    def place(row: PublishedRow) -> tuple[bool, float]:
        accuracy = total(row.cells, depths=depths).accuracy
        return not row.complete, 1.0 if accuracy is None else -accuracy

    return tuple(sorted(rows, key=place))


def merged(rows: Sequence[PublishedRow]) -> tuple[Cells, tuple[PublishedRow, ...]]:
    """Return the cells of all rows that have as many as the fullest row, added up, and the other rows."""
    every = max(rows, key=lambda row: len(row.cells)).cells.keys()
    full = [row for row in rows if row.cells.keys() == every]
    cells = {cell: sum((row.cells[cell] for row in full), TrialSums()) for cell in every}
    return cells, tuple(row for row in rows if row not in full)


def _row(asked: Asked, cells: Cells, plan: Plan | None, fullest: int, *, alone: bool) -> PublishedRow:
    run, model, condition = asked
    enough = fullest if plan is None else sum(plan.values())
    return PublishedRow(
        run=run,
        model=model,
        condition=None if alone else condition,
        cells=cells,
        planned=plan,
        complete=total(cells).trials >= enough,
    )


def _alone(asked: Asked, among: Iterable[Asked]) -> bool:
    return sum(other[:2] == asked[:2] for other in among) == 1


# ── counting ─────────────────────────────────────────────────────────────────────────────────


def _cells(trials: pa.Table) -> dict[Asked, dict[Cell, TrialSums]]:
    """Return each row's cells, by task and depth."""
    none_is_zero = pc.ScalarAggregateOptions(min_count=0)
    countable = _countable(trials)
    sums = (
        countable.group_by(list(_KEYS), use_threads=False)
        .aggregate([(name, "sum", none_is_zero) for name in _SUMMED])
        .sort_by([(key, "ascending") for key in _KEYS])  # so that sums of floats are always the same
    )
    found: dict[Asked, dict[Cell, TrialSums]] = {}
    for cell in sums.to_pylist():
        figures = TrialSums(**{name: cell[f"{name}_sum"] for name in _SUMMED})
        row = found.setdefault((cell["run"], cell["model"], cell["condition"]), {})
        row[cell["task"], cell["length"]] = figures
    return found


_SUMMED = tuple(one.name for one in fields(TrialSums))


def _countable(trials: pa.Table) -> pa.Table:
    """Return what each trial adds to the figures of its cell."""
    deviate = _equal(trials["classification"], "Deviate")
    free = pc.and_(_equal(trials["cost_usd"], 0.0), _equal(trials["price_source"], RECORDED))
    used = pc.greater(pc.fill_null(trials["output_tokens"], pa.scalar(0)), pa.scalar(0))
    replied = pc.invert(_equal(trials["outcome"], Outcome.FAILED))
    zero = pa.scalar(0.0)
    columns = {
        "trials": pa.repeat(1, trials.num_rows),
        "correct": _equal(trials["classification"], "Correct"),
        "deviate": deviate,
        "rel_errors": pc.if_else(deviate, pc.fill_null(trials["rel_error"], zero), zero),
        "input_tokens": trials["input_tokens"],
        "output_tokens": trials["output_tokens"],
        "uncounted": pc.and_(replied, pc.is_null(trials["output_tokens"])),
        "cost_usd": trials["cost_usd"],
        "priced": pc.is_valid(trials["cost_usd"]),
        "recorded_free": pc.and_(free, used),
    }
    return pa.table({key: trials[key] for key in _KEYS} | columns)


def _equal(column: "pa.ChunkedArray[Any]", value: str | float) -> "pa.BooleanArray":
    """Return where a column has this value; not where it is NULL."""
    return pc.fill_null(pc.equal(column, pa.scalar(value)), pa.scalar(False))  # type: ignore[return-value]  # as long as the column
