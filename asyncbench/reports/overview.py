"""The core report: run × model × condition × suite/task."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.batch_use import OTHER_LATENCY, BatchUse, batch_notes, batch_uses
from asyncbench.analysis.cells import (
    STOPPED_MARK,
    Value,
    add_known_costs,
    cells_in,
    has_scores,
    keep_skips,
    lapsed_notes,
    mean_score,
    outcomes_of,
    score_text,
    stopped_cells_in,
    stopped_note,
    stopped_sheet,
    summed,
)
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, entrant_of, names_of, sort_entrants
from asyncbench.analysis.folder_report import FolderReport, no_trials
from asyncbench.analysis.graders import Graded, graded_by, headline_graders
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.analysis.served import mixtures, note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.records import Outcome
from asyncbench.reports.outgraded import outgraded_in
from asyncbench.reports.variants import ByModel, crossed_in, variants_of
from asyncbench.stats.proportions import Proportion
from asyncbench.store.manifest import planned
from asyncbench.store.schema import ENTRANT
from asyncbench.tables import headings
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import at_least, count, dollars, number_of, percent, seconds
from asyncbench.tables.report import Columns, Sheet, filled

REPEATED = (
    "Each problem was asked several times, but counts once in the intervals. `--style standings` has the "
    "exact intervals."
)
Key = tuple[str | None, ...]  # run, model, condition, suite and task; None: all tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewLine:
    """The figures of one group of trials: of one run, model and condition."""

    name: str  # as it is shown: with the condition and run where the model has several
    run: str
    model: str
    condition: str
    suite: str
    task: str | None  # None: all tasks of the suite together
    trials: int
    repeats: int  # how often a problem was asked, at most
    skipped: int  # trials that the `stop_when` in force leaves out: enough is known of their cells
    planned: int | None  # trials of the whole sweep; None: no run has planned it
    open: int | None  # planned trials that were neither asked nor skipped
    outcomes: dict[str, int]
    accuracy: float | None  # correct over all trials
    accuracy_interval: tuple[float, float] | None  # 95 %, in which a problem counts once
    accuracy_of_answered: float | None  # correct over trials in whose reply an answer was read
    accuracy_of_answered_interval: tuple[float, float] | None
    score: Value | None  # the mean of scores by a user's own grader; trials without a reply count as 0
    input_tokens: int | None  # of the trials whose tokens are known; None when none are
    output_tokens: int | None
    reasoning_tokens: int | None  # a part of the output
    efforts: tuple[str, ...]  # the reasoning efforts that were asked for, by name
    cost_usd: float | None  # sum of the known costs of calls; None: no call has a known cost
    priced_trials: int
    ttft_p50_s: float | None  # None: no answer was streamed
    ttft_p95_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(FolderReport):
    """A folder's figures, with their tables."""

    graders: tuple[Graded, ...]  # the headline graders
    empty: int  # replies without any text
    by_model: ByModel | None  # None: models and settings were not crossed
    suites: tuple[OverviewLine, ...]  # a line per run × model × condition × suite
    tasks: tuple[OverviewLine, ...]  # a line per run × model × condition × suite × task
    spending: Sequence[Mapping[str, Any]]  # the rows of `_SPENDING`
    batches: Sequence[BatchUse] = ()
    outgraded: tuple[str, ...] = ()  # trials that the sweep's grader of today did not grade, as sentences
    mixtures: tuple[str, ...] = ()  # aliases that were answered by several models, builds or upstreams
    stopped: Sequence[Mapping[str, Any]] = ()  # the rows of `stopped_cells_in`
    lapsed: int = 0  # open trials that an earlier `stop_when` left out, but the present rule does not

    @property
    @in_data("nothing")
    def nothing(self) -> str | None:
        """The sentence that a folder without trials gets instead of tables."""
        return None if self.suites else no_trials(self.folder)

    def remarks(self) -> Iterator[str]:
        yield from self.by_model.remarks() if self.by_model else ()
        yield graded_by(self.graders)
        yield from self.outgraded
        by_name: dict[str, Counter[str]] = {}
        for line in self.suites:
            by_name.setdefault(line.name, Counter()).update(line.outcomes)

        counts = sum(by_name.values(), Counter[str]())
        trials, correct = counts.total(), counts[Outcome.CORRECT]
        answers = correct + counts[Outcome.WRONG]
        share = percent(correct / trials, decimals=2)
        share_of_answers = percent(correct / answers if answers else None, decimals=2)
        together = f" (all {len(by_name):,} rows of models together)" if self._several else ""
        yield (
            f"{number_of(trials, 'trial')}{together}: {counts[Outcome.FAILED]:,} failed, "
            f"{self.empty:,} empty replies, {counts[Outcome.TRUNCATED]:,} truncated. "
            f"Accuracy: {share} of all trials, {share_of_answers} of the {answers:,} answered ones."
        )

        if not correct and any(line.score and line.score.value for line in self.suites):
            yield headings.SCORED_ONLY
        yield from lost_notes(by_name)
        yield from batch_notes(self.batches, OTHER_LATENCY)
        if self.stopped:
            yield stopped_note(self.stopped)
        yield from lapsed_notes(self.lapsed)
        if any(line.repeats > 1 for line in self.suites):
            yield REPEATED
        yield from self.mixtures

    @property
    def _several(self) -> bool:
        """True if a model has several conditions or runs."""
        return len({line.name for line in self.suites}) > len({line.model for line in self.suites})

    def sheets(self) -> Iterator[Sheet]:
        yield from self.by_model.sheets() if self.by_model else ()
        yield self._accuracy("Accuracy by suite", self.suites)
        yield self._accuracy("Accuracy by task", [line for line in self.tasks if line.task != line.suite])
        yield stopped_sheet(self.stopped)
        yield filled(Sheet.of("Tokens, cost and latency of the trials", COSTS, self.suites, labels=2))
        spent = "Total cost of all attempts"
        spent += " (a model's conditions and runs together)" if self._several else ""
        yield Sheet.of(spent, SPENDING, self.spending)

    def _accuracy(self, title: str, lines: Sequence[OverviewLine]) -> Sheet:
        """Return a table of accuracies, with planned, skipped and open trials where trials were skipped."""
        hidden = [] if self.stopped or self.lapsed else ["planned", "skipped", "open"]
        hidden += [headings.MEAN_SCORE] * all(line.score is None for line in lines)
        columns = {name: cell for name, cell in ACCURACIES.items() if name not in hidden}
        return Sheet.of(title, columns, lines, labels=2)


def overview_of(views: FolderViews) -> Overview:
    """Return the figures of results folders.

    Raises:
        StoreError: a folder cannot be read.
    """
    skips, manifest = keep_skips(views), views.manifest
    stopped = stopped_cells_in(views, skips)
    skipped, plan = Counter[Key](), Counter[Key]()
    for cell in stopped:
        key = (*(cell[name] for name in ENTRANT), cell["suite"])
        skipped.update({(*key, None): cell["skipped"], (*key, cell["task"]): cell["skipped"]})
    # How many of the planned trials a filter leaves is unknown.
    planned_trials = {} if views.chosen.where else planned(manifest)
    for entrant, suites in planned_trials.items():
        for suite, tasks in suites.items():
            for task, trials in tasks.items():
                plan.update({(*entrant, suite, None): trials, (*entrant, suite, task): trials})
    rows = add_known_costs(views, views.rows(_LINES), (*ENTRANT, "suite"), (*ENTRANT, "suite", "task"))
    names = names_of(sort_entrants({*map(entrant_of, rows)}, manifest))
    positions = {name: position for position, name in enumerate(names.values())}

    # Mean scores by entrant, suite and task; none where no grader gave a score.
    scores = dict[Key, Value | None]()
    if has_scores(views):
        by_task = summed(cells_in(views), (*ENTRANT, "suite", "task"))
        by_suite = summed(cells_in(views), (*ENTRANT, "suite"))
        sums = {**by_task, **{(*key, None): of_suite for key, of_suite in by_suite.items()}}
        scores = {key: mean_score(of_key) for key, of_key in sums.items()}

    lines = sorted(
        (_line(row, names, skipped, plan, scores) for row in rows),
        key=lambda line: (line.model, positions[line.name], line.suite, line.task or ""),
    )
    empty = views.rows("SELECT count(*) AS empty FROM grades WHERE headline AND reason = 'empty'")
    return Overview(
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views),
        graders=headline_graders(views),
        by_model=variants_of(views) if crossed_in(views) else None,
        empty=empty[0]["empty"],
        suites=tuple(line for line in lines if line.task is None),
        tasks=tuple(line for line in lines if line.task is not None),
        spending=tuple(views.rows(_SPENDING)),
        batches=batch_uses(views),
        outgraded=outgraded_in(views),
        mixtures=mixtures(views),
        stopped=stopped,
        lapsed=skips.lapsed,
    )


# Lines of suites (their task is NULL) and lines of tasks.
_LINES: Final = counts_by(
    "trials",
    (*ENTRANT, "suite"),
    (*ENTRANT, "suite", "task"),
    more=[
        "max(repeat) + 1 AS repeats",
        "list(DISTINCT effort) AS efforts",
        *(
            f"quantile_cont({name}_s, {share}) AS {name}_p{round(100 * share)}_s"
            for name in ("ttft", "latency")
            for share in (0.5, 0.95)
        ),
    ],
)
# What a model cost, every attempt counted: those of open trials too, which are of no condition or run.
_SPENDING: Final = """
SELECT model, count(*) AS attempts, count(cost_usd) AS priced_attempts, spent_usd(cost_usd) AS cost_usd
FROM attempts GROUP BY model ORDER BY model
"""


def _line(
    row: dict[str, Any],  # Any: names, counts and sums
    names: Mapping[Entrant, str],
    skipped: Counter[Key],
    plan: Mapping[Key, int],
    scores: Mapping[Key, Value | None],
) -> OverviewLine:
    key = (*(entrant := entrant_of(row)), row["suite"], row["task"])
    outcomes, columns = outcomes_of(row), {name: row[name] for name in OverviewLine.__slots__ if name in row}
    correct, answered = outcomes[Outcome.CORRECT], outcomes[Outcome.CORRECT] + outcomes[Outcome.WRONG]
    over_all, of_answered = (
        Proportion(successes=correct, trials=trials, repeats=row["repeats"])
        for trials in (row["trials"], answered)
    )
    all_planned = plan.get(key)
    return OverviewLine(
        **columns | {"efforts": tuple(sorted(filter(None, row["efforts"])))},
        name=names[entrant],
        skipped=skipped[key],
        planned=all_planned,
        open=None if all_planned is None else max(0, all_planned - row["trials"] - skipped[key]),
        outcomes=outcomes,
        priced_trials=row["priced"],
        score=scores.get(key),
        accuracy=over_all.share,
        accuracy_interval=over_all.interval,
        accuracy_of_answered=of_answered.share,
        accuracy_of_answered_interval=of_answered.interval,
    )


# ── columns of tables ────────────────────────────────────────────────────────────────────────


def _marked(line: OverviewLine, share: float | None, interval: tuple[float, float] | None) -> str:
    """Return an accuracy, with a mark where some of its cells were stopped."""
    return percent(share, interval) + (STOPPED_MARK if line.skipped and share is not None else "")


def _ended(outcome: Outcome) -> Callable[[OverviewLine], str]:
    return lambda line: count(line.outcomes[outcome])


ACCURACIES: Final[Columns[OverviewLine]] = {
    "model": lambda line: line.name,
    "suite/task": lambda line: line.suite if line.task in (None, line.suite) else f"{line.suite}/{line.task}",
    "planned": lambda line: count(line.planned),
    "trials": lambda line: count(line.trials),
    "skipped": lambda line: count(line.skipped),
    "open": lambda line: count(line.open),
    headings.ACCURACY: lambda line: _marked(line, line.accuracy, line.accuracy_interval),
    headings.ANSWERED: lambda line: _marked(
        line, line.accuracy_of_answered, line.accuracy_of_answered_interval
    ),
    headings.MEAN_SCORE: lambda line: score_text(line.score),
    **{outcome: _ended(outcome) for outcome in Outcome},
}
COSTS: Final[Columns[OverviewLine]] = {
    "model": lambda line: line.name,
    "suite": lambda line: line.suite,
    "effort": lambda line: ", ".join(line.efforts) or "-",
    "input tokens": lambda line: count(line.input_tokens),
    "output tokens": lambda line: count(line.output_tokens),
    "reasoning tokens": lambda line: count(line.reasoning_tokens),
    "cost": lambda line: at_least(dollars(line.cost_usd), partial=line.priced_trials < line.trials),
    headings.COST_KNOWN: lambda line: f"{line.priced_trials:,} of {line.trials:,}",
    headings.MEDIAN_TTFT: lambda line: seconds(line.ttft_p50_s),
    headings.P95_TTFT: lambda line: seconds(line.ttft_p95_s),
    headings.MEDIAN_LATENCY: lambda line: seconds(line.latency_p50_s),
    headings.P95_LATENCY: lambda line: seconds(line.latency_p95_s),
}
SPENDING: Final[Columns[Mapping[str, Any]]] = {
    "model": lambda row: row["model"],
    "attempts": lambda row: count(row["attempts"]),
    headings.COST_KNOWN: lambda row: count(row["priced_attempts"]),
    "cost": lambda row: at_least(dollars(row["cost_usd"]), partial=row["priced_attempts"] < row["attempts"]),
}
