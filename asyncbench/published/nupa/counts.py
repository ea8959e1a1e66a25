"""NUPA's figures, counted from a results folder: by length, by range, and how many digits a task holds.

As published, all of them are means over answers; a trial without a reply is none. They are added up exactly:
a length that is right nine times in ten is well learned, whatever binary floats say.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, sort_entrants
from asyncbench.analysis.graders import Graded
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.published.reports import counted_of
from asyncbench.records import Outcome
from asyncbench.stats.proportions import averaged_interval, mean_interval
from asyncbench.store.manifest import Manifest
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.nupa.grading import GRADERS
from asyncbench.suites.nupa.tasks import (
    TASKS,
    THRESHOLDS,
    Number,
    NupaTask,
    PassedLengths,
    Sum,
    digits,
    pooled,
    range_means,
    range_sums,
    summed,
    task_of,
)
from asyncbench.suites.suite import Kind

SUITE = "nupa"
FIGURES = ("exact_match", "digit_match", "dlength", "dlength_total")
RANGES = ("S", "M", "L", "XL")
FORM_POINTS = Fraction(1, 100)  # further apart, and the two graders tell of replies in another form

OF_NO_LENGTH = 0  # a set of one's own may leave lengths out; no range holds it

STYLED = (*ENTRANT, "style")
KIND = ("task", "variant", "representation")
KEYS = (*STYLED, *KIND)


Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a task: means over answers, None where there is none."""

    by_length: Mapping[int, Sum]  # ascending
    mean: Number | None  # over all answers, those beyond all ranges included
    ranges: Mapping[str, Number | None]  # S, M, L, XL, in_domain, out_domain
    intervals: Mapping[str, Interval | None]  # of the mean and of each range: 95 %
    digits: PassedLengths | None  # None: no threshold is published for it

    def mean_in(self, name: str) -> Number | None:
        """Return the mean over all answers (`mean`), or over those of a range; None where there is none."""
        return self.mean if name == "mean" else self.ranges[name]


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
    lengths: frozenset[int]  # that were asked
    by_grader: Mapping[str, Mapping[str, Figure]]  # by the name of the figure

    @property
    def asked(self) -> Entrant:
        """The run, the model and the condition."""
        return self.run, self.model, self.condition

    @property
    def answers(self) -> int:
        """The number of answers that its figures are means of."""
        return self.trials - self.failed - self.ungraded

    @property
    def other_form(self) -> bool:
        """True if replies were not in the form asked for: both graders are more than a point apart."""
        strict, search = (self.by_grader[grader]["exact_match"].mean for grader in GRADERS)
        return (
            strict is not None
            and search is not None
            and abs(Fraction(search) - Fraction(strict)) > FORM_POINTS
        )


# `read`: with a reply that the grader did not stumble over. Answers whose truths have as many digits share a
# denominator: their digits right can be added first.
_COUNTS = f"""
SELECT {", ".join(KEYS)}, grader, coalesce(length, {OF_NO_LENGTH}) AS of_length, digits_total,
    outcome <> '{Outcome.FAILED}' AS replied, count(*) AS trials,
    count(*) FILTER (reason = 'empty') AS empty,
    sum(exact_match::INT)::BIGINT AS exact_match,
    sum(digits_right)::BIGINT AS digits_right, sum(length_error)::BIGINT AS dlength,
    sum(length_error_total)::BIGINT AS dlength_total,
    sum(digits_right ** 2) AS digits_right_squares,
    sum(length_error ** 2) AS dlength_squares, max(length_error) AS dlength_largest,
    sum(length_error_total ** 2) AS dlength_total_squares, max(length_error_total) AS dlength_total_largest,
    count(*) / (max(repeat) + 1) AS independent,
    list(DISTINCT grader_version) AS versions
FROM (
    SELECT trial_id, task, variant, representation, length, grader, grader_version, reason, exact_match,
        digits_right, digits_total, length_error, length_error_total
    FROM grades WHERE suite = '{SUITE}' AND grader IN {tuple(GRADERS)}
) JOIN (SELECT trial_id, {", ".join(STYLED)}, outcome, repeat FROM trials) USING (trial_id)
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def counts_of(folder: Folders, manifest: Manifest) -> dict[str, Any]:  # Any: fields of a report
    """Return NUPA's figures: a line for each who was asked and each task, in the order of both.

    Returns:
        `lines`, `graders`, `simulated_note` and `empty`: replies without any text.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of NUPA.
        StoreError: its results cannot be read.
    """
    return counted_of(folder, [SUITE], lambda views: counts_in(views, manifest))


def counts_in(views: FolderViews, manifest: Manifest) -> dict[str, Any]:  # Any: fields of a report
    """Return the figures of `counts_of` from views that hold a trial of NUPA; it raises the same errors."""
    rows = views.rows(_COUNTS)
    versions = defaultdict[str, set[int]](set)
    for row in rows:
        versions[row["grader"]].update(row["versions"])
    headline = [row for row in rows if row["grader"] == next(iter(GRADERS))]
    return {
        "lines": tuple(_lines(rows, headline, manifest)),
        "graders": tuple(
            Graded(suite=SUITE, grader=grader, versions=tuple(sorted(versions[grader])))
            for grader in sorted(versions)
        ),
        "simulated_note": note_of_simulated(views),
        "empty": sum(row["empty"] for row in headline),
    }


def _lines(
    rows: Iterable[Mapping[str, Any]], headline: Iterable[Mapping[str, Any]], manifest: Manifest
) -> list[TaskLine]:
    sums = defaultdict[tuple[str, ...], dict[str, dict[int, Sum]]](lambda: {name: {} for name in FIGURES})
    for row in rows:
        if row["replied"] and row["digits_total"] is not None:
            for name, by_length in sums[*_key(row), row["grader"]].items():
                earlier = by_length.get(row["of_length"], Sum())
                by_length[row["of_length"]] = earlier.plus(_added(name, row))
    trials, failed, unread = (Counter[tuple[str, ...]]() for _ in range(3))
    lengths = defaultdict[tuple[str, ...], set[int]](set)
    for row in headline:
        trials[_key(row)] += row["trials"]
        lengths[_key(row)].add(row["of_length"])
        failed[_key(row)] += 0 if row["replied"] else row["trials"]
        unread[_key(row)] += row["trials"] if row["replied"] and row["digits_total"] is None else 0
    entrants = sort_entrants({(run, model, condition) for run, model, condition, *_ in trials}, manifest)
    ranks = {name: rank for rank, name in enumerate(TASKS)}
    lines = []
    for key, count in trials.items():
        try:
            task = task_of(*key[len(STYLED) :])
        except ValueError as error:  # a set of one's own may call anything a task of the suite
            raise ConfigError(f"These results are not from NUPA: {error}") from None
        lines.append(
            TaskLine(
                **dict(zip(STYLED, key, strict=False)),
                task=task,
                trials=count,
                failed=failed[key],
                ungraded=unread[key],
                lengths=frozenset(lengths[key]),
                by_grader={
                    grader: {
                        name: _figure(name, by_length, task.length_class)
                        for name, by_length in sums[*key, grader].items()
                    }
                    for grader in GRADERS
                },
            )
        )
    return sorted(lines, key=lambda line: (entrants.index(line.asked), ranks[line.task.name]))


def _added(figure: str, row: Mapping[str, Any]) -> Sum:
    """Return a figure of the answers of a counted row; a reply without a number may lack every digit."""
    if figure == "exact_match":
        total, squares, largest = row[figure], row[figure], 1
    elif figure == "digit_match":  # of each answer, the share of the truth's digits that are right
        total, largest = Fraction(row["digits_right"], row["digits_total"]), 1
        squares = row["digits_right_squares"] / row["digits_total"] ** 2
    else:
        total, squares = row[figure], row[f"{figure}_squares"]
        largest = max(row["digits_total"], row[f"{figure}_largest"])
    return Sum(total, row["trials"], squares, largest, row["independent"])


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in KEYS)


def _figure(name: str, by_length: Mapping[int, Sum], length_class: int) -> Figure:
    return Figure(
        by_length=by_length,
        mean=pooled(by_length.values()),
        ranges=range_means(by_length, length_class),
        intervals={
            "mean": interval_of(summed(by_length.values())),
            **{name: interval_of(added) for name, added in range_sums(by_length, length_class).items()},
        },
        digits=digits(by_length, name, length_class) if name in THRESHOLDS else None,
    )


def interval_of(added: Sum) -> Interval | None:
    """Return the 95 % interval of the mean of a figure, by `mean_interval`; None: there is no answer.

    A problem counts once, however often it was asked. Digits too many or too few are taken as a share of the
    most that an answer could have: those of the truth, which a reply without a number lacks, or more.
    """
    if not added.answers:
        return None
    low, high = mean_interval(
        float(added.mean) / added.largest,
        float(added.squares) / added.largest**2,
        added.answers,
        repeats=added.answers / added.independent,
    )
    return added.largest * low, added.largest * high


def entrant_lines(lines: Iterable[TaskLine]) -> dict[Entrant, list[TaskLine]]:
    """Return the lines of each who was asked."""
    return rows_by(lines, attrgetter("asked"))


def macro(figures: Sequence[Figure]) -> dict[str, Number | None]:
    """Return the mean over tasks of their means, in all and by range; a task without answers counts for none.

    Ours: the paper publishes no average over tasks.
    """
    means = dict[str, Number | None]()
    for name in ("mean", *(figures[0].ranges if figures else ())):
        numbers = [value for figure in figures if (value := figure.mean_in(name)) is not None]
        means[name] = sum(numbers) / len(numbers) if numbers else None
    return means


def macro_intervals(figures: Sequence[Figure]) -> dict[str, Interval | None]:
    """Return the 95 % intervals of `macro`: of these tasks, had other problems of them been asked."""
    intervals = dict[str, Interval | None]()
    for name in ("mean", *(figures[0].ranges if figures else ())):
        tasks = [
            (float(value), interval)
            for figure in figures
            if (value := figure.mean_in(name)) is not None and (interval := figure.intervals[name])
        ]
        intervals[name] = averaged_interval(*zip(*tasks, strict=True)) if tasks else None
    return intervals


def task_name(task: NupaTask) -> str:
    """Return the name of a task: `multiply easy, float`."""
    return f"{task.task}{' ' if task.variant else ''}{task.variant}, {task.representation}"


# ── what the paper prints, to stand beside

DIGITS: Final[Mapping[str, tuple[str, str]]] = {  # table → a figure, and what it is called
    "nupa_table_7": ("exact_match", "exact match"),
    "nupa_table_8": ("digit_match", "digit match"),
    "nupa_table_9": ("dlength", "dlength"),
}


def is_misprint(row: Mapping[str, Any]) -> bool:  # Any: text or number, by column
    """Whether a row of a table of digits has those of other tasks, which the paper prints by mistake."""
    return row.get("repeats_block_1") == "yes"


def printed_digits(table: pa.Table) -> dict[str, dict[Kind, tuple[int, int]]]:
    """Return the well-learned and the preserved digits that a table prints, by model and task.

    Cells that repeat those of other tasks by mistake are left out.
    """
    printed: dict[str, dict[Kind, tuple[int, int]]] = {}
    for row in table.to_pylist():
        of_model = printed.setdefault(row["model"], {})
        if not is_misprint(row):
            digits = (row["well_learned_digits"], row["performance_preserving_digits"])
            of_model[row["task"], row["variant"], row["representation"]] = digits
    return printed
