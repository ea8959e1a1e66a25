"""The figures that llm_arithmetic publishes: counted per cell by DuckDB, then summed from the cells.

A row of its tables is one run × model, × condition where a run's model was asked under several. A cell is a
row's trials of one task and one depth (our `length`, which others' problem sets may leave out).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, Self

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, names_of, sort_entrants
from asyncbench.analysis.graders import Graded
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import USD_STEPS, counts_by
from asyncbench.errors import ConfigError
from asyncbench.published.llm_arithmetic.names import Facets, distinct_facets, facets_of
from asyncbench.published.reports import counted_of
from asyncbench.store.manifest import Manifest, planned
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.llm_arithmetic import ARITHMETIC_GRADERS, ARITHMETIC_TASKS, SUITE
from asyncbench.suites.numbers import fixed

HEADLINE = next(iter(ARITHMETIC_GRADERS))
RECORDED = "recorded"  # the price_source of a cost that an imported file states

Plan = Mapping[str, int]  # trials by task
ErrorSizes = Mapping[Entrant, tuple[int, Sequence[float]]]
EntrantPair = tuple[Entrant, Entrant]
# pair → (times right of the first less those of the second, times asked) of a problem → problems
PairedCounts = Mapping[EntrantPair, Mapping[tuple[int, int], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSums:
    """Sums over some trials; those of two groups add up to those of both."""

    trials: int = 0
    correct: int = 0
    deviate: int = 0
    rel_errors: float = 0.0  # of Deviate; infinite when one is
    abs_errors: Fraction = Fraction(0)  # of Deviate; exact, for they have up to thousands of digits
    replies: int = 0
    bare: int = 0  # of the replies: nothing but the number
    truncated: int = 0  # of the replies: cut, as the provider says
    input_tokens: int = 0  # of the trials whose tokens are known
    output_tokens: int = 0
    uncounted: int = 0  # replies whose tokens are unknown
    cost_usd: Fraction = Fraction(0)  # of the priced trials; exact, for sums of cells have to be
    priced: int = 0
    recorded_free: int = 0  # an imported file says $0 though tokens were used: no price was known

    def __add__(self, other: Self) -> "TrialSums":
        """Return the figures of both groups together."""
        return TrialSums(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )

    @property
    def nan(self) -> int:
        """Trials in whose reply no number was read, or without a reply."""
        return self.trials - self.correct - self.deviate

    @property
    def accuracy(self) -> float | None:
        """Correct over all trials; None without trials."""
        return self.correct / self.trials if self.trials else None

    def share(self, name: str, whole_name: str = "trials") -> float | None:
        """Return one of its counts as a share of another; None where that is 0."""
        whole = getattr(self, whole_name)
        return getattr(self, name) / whole if whole else None

    @property
    def abs_error_of_deviate(self) -> str:
        """The mean absolute error over Deviate to two decimals; 0.00 without any, as published."""
        return fixed(round(100 * self.abs_errors / max(self.deviate, 1)), 2)

    @property
    def error_of_deviate(self) -> float:
        """The mean relative error over Deviate; 0 without any, as published."""
        return self.rel_errors / self.deviate if self.deviate else 0.0

    @property
    def error_of_read(self) -> float:
        """The mean relative error over Deviate and Correct, whose error is 0; 0 without any, as published."""
        read = self.deviate + self.correct
        return self.rel_errors / read if read else 0.0


DEEPEST: Final = 2**31 - 1  # of a column of depths
Cell = tuple[str, int | None]  # task, depth
Cells = Mapping[Cell, TrialSums]


def total(cells: Cells, *, depths: range | None = None, task: str | None = None) -> TrialSums:
    """Return the figures of the cells of these depths, of one task or of all.

    Args:
        cells: of a row, or of several.
        depths: None: all, unknown ones too.
        task: None: all.
    """
    chosen = (
        figures
        for (of_task, depth), figures in cells.items()
        if (depths is None or (depth is not None and depth in depths)) and (task is None or task == of_task)
    )
    return sum(chosen, TrialSums())


def tasks_of(cells: Iterable[Cell]) -> list[str]:
    """Return the tasks that there are: those of the suite in its order, then others by name."""
    tasks = {task for task, _ in cells}
    return [*(task for task in ARITHMETIC_TASKS if task in tasks), *sorted(tasks - ARITHMETIC_TASKS.keys())]


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
    began: datetime  # its first call, UTC
    asked: Entrant
    name: str  # no other row has it
    label: str  # as tables of the benchmark have it: without its run
    facets: Facets
    planned: Plan | None  # of this row; None: no plan is known
    complete: bool  # over all depths as many trials as planned; without a plan, as the fullest row has

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
        """True if every task has its planned trials; without a plan, if all have equally many."""
        if self.planned is None:
            return len(set(self.counts.values())) == 1
        return self.counts == dict(self.planned)


# What became of all trials, at all depths: `failed` without a reply, `empty` replied without text,
# `truncated` as the provider says, `ungraded` without a grade by this grader.
OUTCOMES: Final = (
    *("trials", "failed", "empty", "truncated", "correct", "wrong", "ungraded", "of_unknown_depth"),
)


# Left outer: a trial that this grader never saw is still a trial. `fsum` would make no number of two infinite
# errors. Absolute errors are added up by DuckDB where they have no more digits than its decimals.
_GRADED: Final = """(
    SELECT trial_id, run, model, condition, task, length, provider, input_tokens, output_tokens, cost_usd,
        price_source, model_id, effort, params, condition_params,
        epoch(finished_at) - coalesce(latency_s, 0) AS began
    FROM trials WHERE suite = $suite
) LEFT JOIN (
    SELECT trial_id, grader_version, classification, reason, outcome, format_ok,
        CASE WHEN classification = 'Deviate' THEN rel_error END AS error,
        CASE WHEN classification = 'Deviate' THEN abs_error END AS abs_error,
        TRY_CAST(CASE WHEN classification = 'Deviate' THEN abs_error END AS DECIMAL(29, 4)) AS small_error
    FROM grades WHERE suite = $suite AND grader = $grader
) USING (trial_id)"""
_COUNTS: Final = counts_by(
    _GRADED,
    (*ENTRANT, "task", "length"),
    only=("trials", "failed", "truncated", "wrong", "priced"),
    more=[
        "count(*) FILTER (classification = 'Correct') AS correct",
        "count(*) FILTER (classification = 'Deviate') AS deviate",
        "CASE WHEN bool_or(error = 'inf') THEN 'inf' ELSE coalesce(fsum(error), 0) END::DOUBLE AS rel_errors",
        "coalesce(sum(small_error), 0) AS abs_errors",
        "list(abs_error) FILTER (abs_error IS NOT NULL AND small_error IS NULL) AS large_errors",
        "count(*) FILTER (outcome IS DISTINCT FROM 'failed') AS replies, count(*) FILTER (format_ok) AS bare",
        "coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens",
        "coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens",
        "count(*) FILTER (outcome IS DISTINCT FROM 'failed' AND output_tokens IS NULL) AS uncounted",
        "coalesce(sum((cost_usd * $usd_steps)::HUGEINT) FILTER (abs(cost_usd) <= 1e9), 0) AS cost_usd",
        "count(*) FILTER (cost_usd = 0 AND price_source = $recorded AND output_tokens > 0) AS recorded_free",
        "count(*) FILTER (reason = 'empty') AS empty, count(*) FILTER (outcome = 'correct') AS right",
        "count(*) - count(classification) AS ungraded, count(*) - count(length) AS of_unknown_depth",
        "min(began) AS began, any_value(model_id) AS model_id, any_value(effort) AS effort",
        "any_value(params) AS params, any_value(condition_params) AS condition_params",
        "list(DISTINCT provider) AS providers",
        "list(DISTINCT grader_version) FILTER (classification IS NOT NULL) AS versions",
    ],
)


def figures_of(folder: Folders, grader: str, manifest: Manifest) -> dict[str, Any]:  # Any: fields of a report
    """Return one grader's figures of the suite's trials in a results folder.

    Returns:
        `rows` in the order of the manifest's runs, models and conditions, the `tally` of `OUTCOMES`,
        `graders` and `simulated_note`.

    Raises:
        ConfigError: no such grader, no such folder, or (`NothingToShowError`) no trials of this suite in it.
        StoreError: the folder cannot be read.
    """
    if grader not in ARITHMETIC_GRADERS:
        raise ConfigError(f"{SUITE.name} has no grader {grader!r}; it has: {', '.join(ARITHMETIC_GRADERS)}")
    return counted_of(folder, [SUITE.name], lambda views: figures_in(views, grader, manifest))


def figures_in(views: FolderViews, grader: str, manifest: Manifest) -> dict[str, Any]:  # Any: as of a folder
    """Return the figures of `figures_of` from views that hold a trial of the suite."""
    parameters = {"suite": SUITE.name, "grader": grader, "recorded": RECORDED, "usd_steps": float(USD_STEPS)}
    counts = views.rows(f"{_COUNTS} ORDER BY ALL", parameters)
    tally = {name: sum(row[name] for row in counts) for name in OUTCOMES}
    versions = {version for row in counts for version in row["versions"] or ()}
    return {
        "rows": _rows(counts, {model: label for (label, _), model in views.names.items()}, manifest),
        "tally": tally | {"correct": sum(row["right"] for row in counts)},
        "graders": (Graded(suite=SUITE.name, grader=grader, versions=tuple(sorted(versions))),),
        "simulated_note": note_of_simulated(views),
    }


def _rows(
    counts: Iterable[dict[str, Any]], folders: Mapping[str, str], manifest: Manifest
) -> tuple[PublishedRow, ...]:
    by_entrant = rows_by(counts, lambda row: (row["run"], row["model"], row["condition"]))
    cells = {entrant: dict(map(_cell, rows)) for entrant, rows in by_entrant.items()}
    facets = distinct_facets(
        {entrant: facets_of(row["model_id"], row) for entrant, (row, *_) in by_entrant.items()},
        {
            entrant: (" ".join(sorted(row["providers"])), folders.get(row["model"], ""), *entrant)
            for entrant, (*_, row) in by_entrant.items()
        },
    )
    plans, conditions = planned(manifest), Counter(entrant[:2] for entrant in cells)
    fullest = max(total(of_row).trials for of_row in cells.values())
    names = names_of(cells.keys())
    labels = names_of({("", model, condition) for _, model, condition in cells})
    rows = []
    for entrant in sort_entrants(cells, manifest):
        run, model, condition = entrant
        plan = plans.get(entrant, {}).get(SUITE.name)
        enough = fullest if plan is None else sum(plan.values())
        rows.append(
            PublishedRow(
                run=run,
                model=model,
                condition=condition if conditions[run, model] > 1 else None,
                cells=cells[entrant],
                began=datetime.fromtimestamp(min(row["began"] for row in by_entrant[entrant]), UTC),
                asked=entrant,
                name=names[entrant],
                label=labels["", model, condition],
                facets=facets[entrant],
                planned=plan,
                complete=total(cells[entrant]).trials >= enough,
            )
        )
    return tuple(rows)


def _cell(row: dict[str, Any]) -> tuple[Cell, TrialSums]:
    row["cost_usd"] = Fraction(row["cost_usd"], USD_STEPS)
    row["abs_errors"] = sum(map(Fraction, row["large_errors"] or ()), Fraction(row["abs_errors"]))
    return (row["task"], row["length"]), TrialSums(**{name: row[name] for name in TrialSums.__slots__})


_ERRORS = """
SELECT run, model, condition, count(*) AS wrong, quantile_disc(rel_error, $shares) AS errors
FROM (FROM trials WHERE suite = $suite AND length >= $least) JOIN (
    SELECT trial_id, coalesce(rel_error, 0) AS rel_error FROM grades
    WHERE suite = $suite AND grader = $grader AND classification = 'Deviate'
) USING (trial_id) GROUP BY ALL
"""


def error_sizes(folder: Folders, grader: str, depths: range, shares: Sequence[float]) -> ErrorSizes:
    """Return how many answers are Deviate, and their relative error at these shares of them.

    Raises:
        ConfigError, StoreError: as `figures_of`.
    """
    parameters = {"suite": SUITE.name, "grader": grader, "least": depths.start, "shares": list(shares)}
    rows = counted_of(folder, [SUITE.name], lambda views: views.rows(_ERRORS, parameters))
    return {(row["run"], row["model"], row["condition"]): (row["wrong"], row["errors"]) for row in rows}


_PAIRED = """
WITH answers AS (
    SELECT [run, model, condition] AS entrant, problem_id, repeat, coalesce(correct, 0) AS correct
    FROM (FROM trials WHERE suite = $suite AND length >= $least) LEFT JOIN (
        SELECT trial_id, (classification = 'Correct')::INTEGER AS correct FROM grades
        WHERE suite = $suite AND grader = $grader
    ) USING (trial_id)
)
SELECT difference, asked, count(*) AS problems FROM (
    SELECT sum(one.correct - other.correct)::INTEGER AS difference, count(*) AS asked
    FROM (FROM answers WHERE entrant = $one) AS one JOIN (FROM answers WHERE entrant = $other) AS other
    USING (problem_id, repeat) GROUP BY problem_id
) GROUP BY ALL ORDER BY ALL
"""


def paired(folder: Folders, grader: str, depths: range, pairs: Iterable[EntrantPair]) -> PairedCounts:
    """Return how pairs compare on the problems that both were asked: pairs without any are left out.

    Raises:
        ConfigError, StoreError: as `figures_of`.
    """
    parameters = {"suite": SUITE.name, "grader": grader, "least": depths.start}

    def look(views: FolderViews) -> PairedCounts:
        rows_of = {
            (first, second): views.rows(_PAIRED, parameters | {"one": list(first), "other": list(second)})
            for first, second in wanted
        }
        return {
            pair: {(row["difference"], row["asked"]): row["problems"] for row in rows}
            for pair, rows in rows_of.items()
            if rows
        }

    return counted_of(folder, [SUITE.name], look) if (wanted := list(pairs)) else {}


def ranked(rows: Iterable[PublishedRow], depths: range) -> tuple[PublishedRow, ...]:
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
