"""The core report: run × model × condition × suite/task, from a results folder, with pyarrow alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.results import (
    ATTEMPT_COLUMNS,
    SERVED_COLUMNS,
    STOPPED_COLUMNS,
    STOPPED_MARK,
    TRIAL_COLUMNS,
    Asked,
    Graded,
    StoppedCell,
    Unpriced,
    any_simulated,
    graded_by,
    graders_of,
    in_order,
    lapsed_note,
    lost_notes,
    mixtures,
    names_of,
    no_trials,
    repriced,
    skips_in,
    stopped_cells_of,
    stopped_note,
    stopped_sheet,
)
from asyncbench.shown import SIMULATED, Report, Sheet, count, dollars, percent, seconds
from asyncbench.stats import quantile, wilson
from asyncbench.store import (
    ENTRANT,
    Manifest,
    planned,
    read_attempts,
    read_grades,
    read_manifest,
    read_trials,
)

COLUMNS = (
    *(*ENTRANT, "provider", "suite", "task", "repeat", "outcome", "input_tokens", "output_tokens"),
    *("reasoning_tokens", "effort", "cost_usd", "ttft_s", "latency_s", *SERVED_COLUMNS),
)
GRADES = ("suite", "grader", "grader_version", "reason")
REPEATED = (
    "Problems were asked several times: in the intervals each counts once, however often it was asked. "
    "`--style standings` has the exact ones."
)
Row = tuple[str, ...]
Key = tuple[str, ...]  # a run, model, condition and suite, perhaps a task


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
    repeats: int  # times that its problems were asked at most
    skipped: int  # not asked, for enough is known of their cells by the rule in force
    planned: int | None  # of the whole sweep; None where no run has planned it
    open: int | None  # planned, neither asked nor skipped
    outcomes: dict[str, int]
    accuracy: float | None  # correct over all trials
    accuracy_interval: tuple[float, float] | None  # 95 %, in which a problem counts once
    accuracy_of_answered: float | None  # correct over trials in whose reply an answer was read
    accuracy_of_answered_interval: tuple[float, float] | None
    input_tokens: int | None  # of the trials whose tokens are known; None when none are
    output_tokens: int | None
    reasoning_tokens: int | None  # a part of the output
    efforts: tuple[str, ...]  # asked for by name
    cost_usd: float | None  # of the priced trials; None when none is
    priced_trials: int
    ttft_p50_s: float | None  # of streamed answers
    ttft_p95_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """What one model cost, every attempt counted: those of trials that are still open too.

    All its conditions and runs together: a call that closed no trial is of none.
    """

    model: str
    attempts: int
    priced_attempts: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(Report):
    """A folder's figures, and how they are shown."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]  # whose grades are the headline
    empty: int  # replies without any text
    suites: tuple[OverviewLine, ...]  # a line per run × model × condition × suite
    tasks: tuple[OverviewLine, ...]  # a line per run × model × condition × suite × task
    spending: tuple[ModelCost, ...]
    mixtures: tuple[str, ...] = ()  # aliases that were answered by several models, builds or upstreams
    prices: str | None = None  # whose and when, where costs are not those of the run
    unpriced: tuple[Unpriced, ...] = ()  # then: what has none of these prices
    stopped: tuple[StoppedCell, ...] = ()
    lapsed: int = 0  # trials skipped before, but not by the rule in force: open

    def _data(self) -> dict[str, object]:
        return asdict(self) | {"nothing": None if self.suites else no_trials(self.folder)}

    def _notes(self) -> Iterator[str]:
        simulated = [SIMULATED] if self.simulated else []
        prices = [f"Costs are not those of the run: {self.prices}."] if self.prices else []
        outcomes = [graded_by(self.graders), self._outcomes()] if self.suites else [no_trials(self.folder)]
        repeats = [REPEATED] if any(line.repeats > 1 for line in self.suites) else []
        skipped = [stopped_note(self.stopped)] if self.stopped else []
        skipped += [lapsed_note(self.lapsed)] if self.lapsed else []
        lost = lost_notes(self._by_name())
        yield from (*simulated, *prices, *outcomes, *lost, *skipped, *repeats, *self.mixtures)

    def _by_name(self) -> dict[str, Counter[str]]:
        """Return what became of everybody's trials."""
        found: dict[str, Counter[str]] = {}
        for line in self.suites:
            found.setdefault(line.name, Counter()).update(line.outcomes)
        return found

    @property
    def _several(self) -> bool:
        """Whether a model has several conditions or runs."""
        return len({line.name for line in self.suites}) > len({line.model for line in self.suites})

    def _outcomes(self) -> str:
        counts, asked = Counter[str](), len({line.name for line in self.suites})
        for line in self.suites:
            counts.update(line.outcomes)
        together = f" of the {asked:,} below together" if self._several else ""
        trials, correct, wrong = counts.total(), counts[Outcome.CORRECT], counts[Outcome.WRONG]
        answered = f"{correct / (correct + wrong):.2%}" if correct + wrong else "-"
        return (
            f"{trials:,} trials{together}: {counts[Outcome.FAILED]:,} failed, "
            f"{self.empty:,} replied without text, {counts[Outcome.TRUNCATED]:,} truncated; "
            f"accuracy {correct / trials:.2%} over all, {answered} over the {correct + wrong:,} answered."
        )

    def _sheets(self) -> Iterator[Sheet]:
        return (sheet for sheet in self._tables() if sheet.rows)

    def _tables(self) -> Iterator[Sheet]:
        counted = bool(self.stopped or self.lapsed)
        yield _accuracy_sheet("Accuracy by suite, with 95 % intervals", self.suites, counted=counted)
        if by_task := [line for line in self.tasks if line.task != line.suite]:
            yield _accuracy_sheet("Accuracy by task", by_task, counted=counted)
        if self.stopped:
            yield stopped_sheet(self.stopped)
        yield _sheet("Tokens, cost and latency of the answers", COST_HEAD, map(_cost_row, self.suites))
        spent = "What all calls would cost" if self.prices else "Spent in all, every attempt counted"
        spent += TOGETHER if self._several else ""
        yield _sheet(spent, SPENT_HEAD, map(_spent_row, self.spending), labels=1)
        if self.unpriced:
            yield _sheet("Cannot be priced again", UNPRICED_HEAD, map(_unpriced_row, self.unpriced))


def report_on(folder: Path | str, *, prices_at: datetime | None = None) -> Overview:
    """Return the figures of a results folder.

    Args:
        folder: the results folder; nothing is written to it.
        prices_at: costs are what the same calls would cost on this day; None: what they did cost.

    Raises:
        ConfigError: it is not a results folder, or, for other prices, its sweep.yaml cannot be read.
        StoreError: what it holds cannot be read.
    """
    if prices_at is not None:
        return _priced_again(Path(folder), prices_at)
    trials = read_trials(folder, columns=list(COLUMNS))
    return _report(folder, trials, read_attempts(folder, columns=["model", "cost_usd"]))


def _priced_again(folder: Path, at: datetime) -> Overview:
    columns = sorted({*COLUMNS, *TRIAL_COLUMNS})
    attempts = read_attempts(folder, columns=list(ATTEMPT_COLUMNS))
    again = repriced(folder, read_trials(folder, columns=columns), attempts, now=at)
    report = _report(folder, again.trials, again.attempts)
    told_by = ", ".join(again.sources) or "nobody"
    prices = f"they are what the same tokens would cost on {at:%Y-%m-%d}, by {told_by}"
    return replace(report, prices=prices, unpriced=again.unpriced)


def _report(folder: Path | str, trials: pa.Table, attempts: pa.Table) -> Overview:
    grades, skips = (
        read_grades(folder, GRADES, pc.field("headline")),
        skips_in(folder, STOPPED_COLUMNS),
    )
    cells, manifest = stopped_cells_of(folder, skips), read_manifest(Path(folder))
    plan, asked = _plan(manifest), trials.group_by(list(ENTRANT)).aggregate([]).to_pylist()
    names = names_of(in_order(((row["run"], row["model"], row["condition"]) for row in asked), manifest))
    return Overview(
        folder=str(folder),
        simulated=any_simulated(trials),
        graders=graders_of(grades),
        empty=grades.filter(pc.field("reason") == "empty").num_rows,
        suites=_lines(trials, (*ENTRANT, "suite"), names, cells, plan),
        tasks=_lines(trials, (*ENTRANT, "suite", "task"), names, cells, plan),
        spending=_spending(attempts),
        mixtures=mixtures(trials),
        stopped=cells,
        lapsed=skips.lapsed,
    )


def _plan(manifest: Manifest) -> Counter[Key]:
    """Return how many trials were planned of everybody by suite, and by suite and task."""
    found = Counter[Key]()
    for asked, suites in planned(manifest).items():
        for suite, tasks in suites.items():
            for task, trials in tasks.items():
                found.update({(*asked, suite): trials, (*asked, suite, task): trials})
    return found


def _lines(
    trials: pa.Table,
    keys: Key,
    names: Mapping[Asked, str],
    stopped: Iterable[StoppedCell],
    plan: Mapping[Key, int],
) -> tuple[OverviewLine, ...]:
    """Return a line for each group by some keys: by model's name, then as planned, then by suite and task."""
    skipped = Counter[Key]()
    for cell in stopped:
        skipped[tuple(getattr(cell, key) for key in keys)] += cell.skipped
    by_outcome = trials.group_by([*keys, "outcome"]).aggregate([([], "count_all")])
    outcomes: dict[Key, dict[str, int]] = {}
    for row in by_outcome.to_pylist():
        outcomes.setdefault(tuple(row[key] for key in keys), {})[row["outcome"]] = row["count_all"]
    sums = trials.group_by(list(keys)).aggregate(
        [
            ("repeat", "max"),
            ("input_tokens", "sum"),
            ("output_tokens", "sum"),
            ("reasoning_tokens", "sum"),
            ("effort", "distinct"),
            ("cost_usd", "sum"),
            ("cost_usd", "count"),
            ("ttft_s", "list"),
            ("latency_s", "list"),
        ]
    )
    rows = {tuple(row[key] for key in keys): row for row in sums.to_pylist()}
    lines = (
        _line(names, key, outcomes[key], row, skipped=skipped[key], planned=plan.get(key))
        for key, row in rows.items()
    )
    places = {name: place for place, name in enumerate(names.values())}
    return tuple(sorted(lines, key=lambda one: (one.model, places[one.name], one.suite, one.task or "")))


def _line(
    names: Mapping[Asked, str],
    key: Key,
    outcomes: dict[str, int],
    sums: dict[str, Any],  # Any: sums of both kinds
    *,
    skipped: int,
    planned: int | None,
) -> OverviewLine:
    run, model, condition, suite, *task = key
    counts = {outcome.value: outcomes.get(outcome, 0) for outcome in Outcome}
    trials, correct = sum(counts.values()), counts[Outcome.CORRECT]
    answered = correct + counts[Outcome.WRONG]
    repeats = sums["repeat_max"] + 1  # conditions and runs are lines of their own
    first_tokens, latencies = (_ascending(sums[f"{name}_list"]) for name in ("ttft_s", "latency_s"))
    return OverviewLine(
        name=names[run, model, condition],
        run=run,
        model=model,
        condition=condition,
        suite=suite,
        task=task[0] if task else None,
        trials=trials,
        repeats=repeats,
        skipped=skipped,
        planned=planned,
        open=None if planned is None else max(0, planned - trials - skipped),
        outcomes=counts,
        accuracy=correct / trials,
        accuracy_interval=wilson(correct / trials, trials / repeats),
        accuracy_of_answered=correct / answered if answered else None,
        accuracy_of_answered_interval=wilson(correct / answered, answered / repeats) if answered else None,
        input_tokens=sums["input_tokens_sum"],
        output_tokens=sums["output_tokens_sum"],
        reasoning_tokens=sums["reasoning_tokens_sum"],
        efforts=tuple(sorted(filter(None, sums["effort_distinct"]))),
        cost_usd=sums["cost_usd_sum"] if sums["cost_usd_count"] else None,
        priced_trials=sums["cost_usd_count"],
        ttft_p50_s=quantile(first_tokens, 0.5),
        ttft_p95_s=quantile(first_tokens, 0.95),
        latency_p50_s=quantile(latencies, 0.5),
        latency_p95_s=quantile(latencies, 0.95),
    )


def _ascending(values: list[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


def _spending(attempts: pa.Table) -> tuple[ModelCost, ...]:
    sums = attempts.group_by("model").aggregate(
        [([], "count_all"), ("cost_usd", "sum"), ("cost_usd", "count")]
    )
    return tuple(
        ModelCost(
            model=row["model"],
            attempts=row["count_all"],
            priced_attempts=row["cost_usd_count"],
            cost_usd=row["cost_usd_sum"] if row["cost_usd_count"] else None,
        )
        for row in sums.sort_by("model").to_pylist()
    )


# ── how figures are written ──────────────────────────────────────────────────────────────────

ACCURACY_HEAD = (
    *("model", "suite/task", "trials", "accuracy", "of answered"),
    *(outcome.value for outcome in Outcome),
)
COST_HEAD = (
    *("model", "suite", "effort", "input tok.", "output tok.", "reasoning", "cost", "priced"),
    *("TTFT p50", "p95", "latency p50", "p95"),
)
TOGETHER = "; a model's conditions and runs together"
SPENT_HEAD = ("model", "attempts", "priced", "cost")
UNPRICED_HEAD = ("model", "why", "calls")


def _sheet(title: str, head: Row, rows: Iterable[Row], *, labels: int = 2) -> Sheet:
    return Sheet(title=title, head=head, rows=list(rows), labels=labels)


def _accuracy_sheet(title: str, lines: Sequence[OverviewLine], *, counted: bool) -> Sheet:
    """Return a table of accuracies; `counted`: what was planned, skipped and is open stands in it, too."""
    if not counted:
        return _sheet(title, ACCURACY_HEAD, map(_accuracy_row, lines))
    names, (trials, *others) = ACCURACY_HEAD[:2], ACCURACY_HEAD[2:]
    rows = (
        (*row[:2], *_counts(line), *row[3:])
        for line, row in zip(lines, map(_accuracy_row, lines), strict=True)
    )
    return _sheet(title, (*names, "planned", trials, "skipped", "open", *others), rows)


def _counts(line: OverviewLine) -> Row:
    """Return how many trials were planned, asked, skipped, and are open."""
    return tuple(count(one) for one in (line.planned, line.trials, line.skipped, line.open))


def _accuracy_row(line: OverviewLine) -> Row:
    answered = percent(line.accuracy_of_answered, line.accuracy_of_answered_interval)
    mark = STOPPED_MARK if line.skipped else ""
    return (
        line.name,
        _suite_and_task(line),
        f"{line.trials:,}",
        percent(line.accuracy, line.accuracy_interval) + mark,
        answered if line.accuracy_of_answered is None else answered + mark,
        *(f"{line.outcomes[outcome]:,}" for outcome in Outcome),
    )


def _suite_and_task(line: OverviewLine) -> str:
    return line.suite if line.task in (None, line.suite) else f"{line.suite}/{line.task}"


def _cost_row(line: OverviewLine) -> tuple[str, ...]:
    return (
        line.name,
        line.suite,
        ", ".join(line.efforts) or "-",
        count(line.input_tokens),
        count(line.output_tokens),
        count(line.reasoning_tokens),
        dollars(line.cost_usd),
        f"{line.priced_trials:,} of {line.trials:,}",
        seconds(line.ttft_p50_s),
        seconds(line.ttft_p95_s),
        seconds(line.latency_p50_s),
        seconds(line.latency_p95_s),
    )


def _spent_row(one: ModelCost) -> tuple[str, ...]:
    return one.model, f"{one.attempts:,}", f"{one.priced_attempts:,}", dollars(one.cost_usd)


def _unpriced_row(one: Unpriced) -> tuple[str, ...]:
    return one.model, one.why, f"{one.calls:,}"
