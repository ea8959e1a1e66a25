"""NUPA's figures, counted from a results folder: by length, by range, and how many digits a task holds.

As published, all of them are means over answers; a trial without a reply is none. They are added up exactly:
a length that is right nine times in ten is well learned, whatever binary floats say.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.results import Asked, Graded, NothingToShowError, graders_of, in_order
from asyncbench.store import ENTRANT, Manifest, planned, read_grades, read_trials
from asyncbench.suites.nupa import (
    GRADERS,
    TASKS,
    THRESHOLDS,
    Number,
    NupaTask,
    PassedLengths,
    Sum,
    by_range,
    digits,
    task_of,
)

SUITE = "nupa"
FIGURES = ("exact_match", "digit_match", "dlength", "dlength_total")
FORM_POINTS = Fraction(1, 100)  # further apart, and the two graders tell of replies in another form

OF_NO_LENGTH = 0  # a set of one's own may leave lengths out; no range holds it

TRIALS = ("trial_id", *ENTRANT, "style", "provider", "outcome")
GRADES = (
    *("trial_id", "task", "variant", "representation", "length", "grader", "grader_version", "reason"),
    *("exact_match", "digits_right", "digits_total", "length_error", "length_error_total"),
)
STYLED = (*ENTRANT, "style")
KIND = ("task", "variant", "representation")
ADDED_UP = ("exact_match", "digits_right", "length_error", "length_error_total")


class LengthTally(NamedTuple):
    """The answers to problems of one length, added up."""

    answers: int = 0
    exact_match: int = 0
    digit_match: Fraction = Fraction(0)  # of each answer, the share of the truth's digits that are right
    dlength: int = 0  # digits too many or too few, part by part
    dlength_total: int = 0  # of all parts as one

    def plus(self, other: "LengthTally") -> "LengthTally":
        """Return both together."""
        return LengthTally(
            answers=self.answers + other.answers,
            exact_match=self.exact_match + other.exact_match,
            digit_match=self.digit_match + other.digit_match,
            dlength=self.dlength + other.dlength,
            dlength_total=self.dlength_total + other.dlength_total,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a task: means over answers, None where there is none."""

    mean: Number | None  # over all answers, those beyond all ranges included
    ranges: Mapping[str, Number | None]  # S, M, L, XL, in_domain, out_domain
    digits: PassedLengths | None  # None: no threshold is published for it


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFindings:
    """What one grader found in the answers to one task."""

    by_length: Mapping[int, LengthTally]
    figures: Mapping[str, Figure]

    @property
    def exact_match(self) -> Number | None:
        """The share of answers that are exactly right."""
        return self.figures["exact_match"].mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """The figures of one run × model × condition in one task."""

    run: str
    model: str
    condition: str
    style: str
    task: NupaTask
    trials: int
    failed: int  # without a reply
    ungraded: int  # with a reply that a grader stumbled over
    by_grader: Mapping[str, TaskFindings]

    @property
    def asked(self) -> Asked:
        """Who was asked, and how."""
        return self.run, self.model, self.condition

    @property
    def answers(self) -> int:
        """How many answers its figures are means of."""
        return self.trials - self.failed - self.ungraded

    @property
    def other_form(self) -> bool:
        """Whether replies were not in the form asked for: both graders are more than a point apart."""
        strict, search = (self.by_grader[grader].exact_match for grader in GRADERS)
        return (
            strict is not None
            and search is not None
            and abs(Fraction(search) - Fraction(strict)) > FORM_POINTS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a results folder holds of NUPA."""

    trials: pa.Table  # one row a trial and grader
    providers: frozenset[str]
    runs: frozenset[str]
    graders: tuple[Graded, ...]
    empty: int  # replies without any text


def read_graded(folder: Path | str) -> Found:
    """Return the trials of NUPA with their grades.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of NUPA.
        StoreError: its results cannot be read.
    """
    ours = pc.field("suite") == SUITE
    trials = read_trials(folder, TRIALS, ours)
    if not len(trials):
        raise NothingToShowError.of_suites(folder, [SUITE])
    grades = read_grades(folder, GRADES, ours)
    headline = grades.filter(pc.field("grader") == next(iter(GRADERS)))
    return Found(
        trials=grades.join(trials, "trial_id", use_threads=False),
        providers=frozenset(map(str, trials["provider"].unique().to_pylist())),
        runs=frozenset(map(str, trials["run"].unique().to_pylist())),
        graders=graders_of(grades.append_column("suite", pa.array([SUITE] * len(grades)))),
        empty=headline.filter(pc.field("reason") == "empty").num_rows,
    )


# ── figures ──────────────────────────────────────────────────────────────────────────────────


def lines_of(trials: pa.Table, manifest: Manifest) -> tuple[TaskLine, ...]:
    """Return a line for each who was asked and each task, in the order of the manifest and of the tasks."""
    replied = trials.filter(pc.field("outcome") != Outcome.FAILED.value)
    graded = replied.filter(~pc.field("digits_total").is_null())
    tallies = _tallies(graded)
    counts, answered, read = (_counts(one) for one in (trials, replied, graded))
    tasks = {key: _task(*key[len(STYLED) :]) for key in counts}
    asked = in_order({(run, model, condition) for run, model, condition, *_ in counts}, manifest)
    places = {name: place for place, name in enumerate(TASKS)}
    lines = [
        TaskLine(
            run=run,
            model=model,
            condition=condition,
            style=style,
            task=tasks[key],
            trials=count,
            failed=count - answered.get(key, 0),
            ungraded=answered.get(key, 0) - read.get(key, 0),
            by_grader={grader: findings(tallies.get((*key, grader), {}), tasks[key]) for grader in GRADERS},
        )
        for key, count in counts.items()
        for run, model, condition, style in [key[: len(STYLED)]]
    ]
    return tuple(sorted(lines, key=lambda line: (asked.index(line.asked), places[line.task.name])))


def _task(task: str, variant: str, representation: str) -> NupaTask:
    try:
        return task_of(task, variant, representation)
    except ValueError as error:  # a set of one's own may call anything a task of the suite
        raise ConfigError(f"these results are not NUPA's: {error}") from None


def _counts(trials: pa.Table) -> dict[tuple[str, ...], int]:
    """Return how many trials there are of each who was asked and each task."""
    headline = trials.filter(pc.field("grader") == next(iter(GRADERS)))
    keys = [*STYLED, *KIND]
    rows = headline.group_by(keys, use_threads=False).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[key] for key in keys): row["count_all"] for row in rows}


def _tallies(graded: pa.Table) -> dict[tuple[str, ...], dict[int, LengthTally]]:
    """Return what is added up, by who was asked, task and grader, then by length."""
    keys = [*STYLED, *KIND, "grader"]
    # Answers whose truths have as many digits share a denominator: their digits right can be added first.
    sums = graded.group_by([*keys, "length", "digits_total"], use_threads=False).aggregate(
        [([], "count_all"), *((name, "sum") for name in ADDED_UP)]
    )
    found: defaultdict[tuple[str, ...], dict[int, LengthTally]] = defaultdict(dict)
    for row in sums.to_pylist():
        by_length, length = found[tuple(row[key] for key in keys)], row["length"] or OF_NO_LENGTH
        by_length[length] = by_length.get(length, LengthTally()).plus(
            LengthTally(
                answers=row["count_all"],
                exact_match=row["exact_match_sum"],
                digit_match=Fraction(row["digits_right_sum"], row["digits_total"]),
                dlength=row["length_error_sum"],
                dlength_total=row["length_error_total_sum"],
            )
        )
    return found


def findings(by_length: Mapping[int, LengthTally], task: NupaTask) -> TaskFindings:
    """Return what follows from the answers to one task."""
    figures = {name: _figure(by_length, name, task.length_class) for name in FIGURES}
    return TaskFindings(by_length=dict(sorted(by_length.items())), figures=figures)


def _figure(by_length: Mapping[int, LengthTally], name: str, length_class: int) -> Figure:
    sums = {length: Sum(getattr(one, name), one.answers) for length, one in by_length.items()}
    answers = sum(one.answers for one in sums.values())
    return Figure(
        mean=Sum(sum(one.total for one in sums.values()), answers).mean if answers else None,
        ranges=by_range(sums, length_class),
        digits=digits(sums, name, length_class) if name in THRESHOLDS else None,
    )


def by_asked(lines: Iterable[TaskLine]) -> dict[Asked, list[TaskLine]]:
    """Return the lines of each who was asked."""
    found: dict[Asked, list[TaskLine]] = {}
    for line in lines:
        found.setdefault(line.asked, []).append(line)
    return found


def macro(figures: Sequence[Figure]) -> dict[str, Number | None]:
    """Return the mean over tasks of their means, in all and by range; a task without answers counts for none.

    Ours: the paper publishes no average over tasks.
    """
    by_name = {"mean": [one.mean for one in figures]}
    by_name |= {
        name: [one.ranges[name] for one in figures] for name in (figures[0].ranges if figures else ())
    }
    return {name: _mean(values) for name, values in by_name.items()}


def _mean(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def planned_of(manifest: Manifest) -> Iterator[tuple[Asked, int]]:
    """Yield how many trials of NUPA were planned, by who was asked."""
    for asked, suites in planned(manifest).items():
        if SUITE in suites:
            yield asked, sum(suites[SUITE].values())
