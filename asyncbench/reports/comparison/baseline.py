"""Gates against a baseline: `compare A results/main results/pr --fail-if worse --margin 2`."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.graders import headline_graders
from asyncbench.analysis.served import simulated_by
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.reports.comparison.pair import ComparedSide, condition_numbers, sides_of, trials_of_side
from asyncbench.stats.noninferiority import PairedValues, Verdict, judge, problems_to_judge, relative_change
from asyncbench.stats.paired import bootstrap_difference
from asyncbench.stats.percentiles import fewest_for
from asyncbench.tables.data import HIDDEN, in_data
from asyncbench.tables.gates import GateResult, GateStatus
from asyncbench.tables.numbers import number_of, percent, points, rounded

SEED: Final = 8  # of the bootstrap

# metric → the column of its trials, and the percentile; None: the mean
RELATIVE: Final[Mapping[str, tuple[str, float | None]]] = {
    "cost_usd": ("cost_usd", None),
    "latency_p50_s": ("latency_s", 0.5),
    "latency_p95_s": ("latency_s", 0.95),
    "ttft_p50_s": ("ttft_s", 0.5),
    "ttft_p95_s": ("ttft_s", 0.95),
}
METRICS: Final = ("accuracy", *RELATIVE)
_FORM: Final = re.compile(
    r"(?:(?P<metric>\w+)\s+)?worse(?:\s+by\s+(?P<margin>[^\s%]+)\s*(?P<unit>%|points?)?)?"
)
_EXAMPLE: Final = '--fail-if worse --margin 2, or --fail-if "latency_p95_s worse by 10 %"'
_COLUMNS: Final = (
    *("condition", "repeat", "suite", "task", "problem_id", "outcome", "provider", "upstream"),
    *("cost_usd", "latency_s", "ttft_s"),
)
_PAIRED_BY: Final = ("suite", "task", "problem_id", "turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineGate:
    """A figure that B must keep, compared with that of A."""

    text: str
    metric: str
    margin: float  # the loss that is accepted: 0.02 is 2 points of accuracy, or 2 % of another figure

    @classmethod
    def parse(cls, text: str, margin: float | None) -> "BaselineGate":
        """Read a gate as it is typed, such as `worse`, or `latency_p95_s worse by 10 %`.

        Args:
            text: what was typed.
            margin: in points or percent, for a gate that names none.

        Raises:
            ConfigError: it is not a gate; the message says what is wrong, and how to write one.
        """
        form = _FORM.fullmatch(text.strip())
        if form is None:
            raise ConfigError(f"--fail-if {text!r}: not a gate. Write one, such as {_EXAMPLE}")
        metric, unit = form["metric"] or "accuracy", (form["unit"] or "").rstrip("s")
        if metric not in METRICS:
            metrics = ", ".join(METRICS)
            raise ConfigError(f"--fail-if {text!r}: unknown metric {metric!r}. Choose from {metrics}")
        own_unit = "point" if metric == "accuracy" else "%"
        if unit not in ("", own_unit):
            raise ConfigError(f"--fail-if {text!r}: the margin of {metric} is in {_unit(metric)}")

        # A margin of 0 could never be kept by an equal model.
        if form["margin"] is None and margin is None:
            raise ConfigError(
                f"--fail-if {text!r}: how large a loss do you accept? Add --margin N, in {_unit(metric)}"
            )
        try:
            size = float(form["margin"]) if form["margin"] is not None else float(margin or 0)
        except ValueError:
            size = 0.0
        if not 0 < size < (100 if metric == "accuracy" else inf):
            raise ConfigError(
                f"--fail-if {text!r}: a margin of {form['margin'] or format(margin, 'g')} cannot be tested. "
                f"Write the loss that you accept, in {_unit(metric)} and above 0. At 0, no equal model passes"
            )
        return cls(text=text, metric=metric, margin=size / 100)

    @property
    def margin_text(self) -> str:
        size = f"{100 * self.margin:g}"
        return f"{size} %" if self.metric != "accuracy" else f"{size} point{'s' * (size != '1')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedFigure:
    """A figure of A and of B on the trials that both answered, and how it changed."""

    a: float
    b: float
    change: float  # of accuracy b − a; of another figure its share of a: 0.1 is 10 % more
    interval: tuple[float, float] = field(metadata=HIDDEN)  # 95 %, of the change
    problems: int
    text: str = field(metadata=HIDDEN)  # the same in words
    gain: bool = field(metadata=HIDDEN)  # is more of it better?

    @property
    @in_data("interval")
    def finite_interval(self) -> tuple[float | None, float | None]:
        """The interval for JSON, which knows no infinity: None is no end."""
        low, high = (end if isfinite(end) else None for end in self.interval)
        return low, high

    @property
    def loss(self) -> float:
        """What B lost: above 0 where B is worse."""
        return -self.change if self.gain else self.change

    @property
    def loss_interval(self) -> tuple[float, float]:
        """The 95 % interval of the loss."""
        low, high = self.interval
        return (-high, -low) if self.gain else (low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult(GateResult):
    """The answer of a gate against a baseline. Its value is that of B."""

    margin: float  # as in `BaselineGate`
    measured: PairedFigure | None  # None: it cannot be measured, and the sentence says why
    problems_needed: int | None  # about so many would decide; None: it is decided, or nobody knows
    failed_calls: int  # of B, on questions that A answered

    @property
    @in_data("verdict")
    def verdict(self) -> Verdict:
        """What the gate found."""
        return _VERDICTS[self.status]


_VERDICTS: Final = {
    GateStatus.FAILED: Verdict.WORSE,
    GateStatus.PASSED: Verdict.NOT_WORSE,
    GateStatus.UNDECIDED: Verdict.UNDECIDED,
}


def gates_from(typed: str | Sequence[str], margin: float | None) -> list[BaselineGate]:
    """Return gates as they are typed.

    Raises:
        ConfigError: one of them is no gate, or a margin is given for none.
    """
    texts = [typed] if isinstance(typed, str) else typed
    if margin is not None and not texts:
        raise ConfigError("--margin is for --fail-if. Add --fail-if worse, or leave --margin out")
    return [BaselineGate.parse(text, margin) for text in texts]


def _unit(metric: str) -> str:
    return "points" if metric == "accuracy" else "percent"


def gate_results(
    a: str,
    b: str,
    folder: Folders,
    gates: Sequence[BaselineGate],
    *,
    suite: str | None = None,
    task: str | None = None,
    where: str | None = None,
) -> list[BaselineResult]:
    """Return whether B is worse than A by each gate, on the trials that both were asked.

    Args:
        a: the model that is the baseline, named as in `compare_on`.
        b: the model that is tested.
        folder: the results folder, or several. Of two, `a` is in the first and `b` in the second.
        gates: the gates.
        suite: only problems of this suite; None: of all.
        task: only problems of this task; None: of all.
        where: only trials for which this SQL condition over the columns of `trials` is true; None: all.

    Raises:
        ConfigError: a name is unknown; the two cannot be compared.
        StoreError: a folder cannot be read.
    """
    sides = sides_of(a, b, chosen(folder, where=where))
    _check_graders(sides)
    numbers = condition_numbers(*sides)
    tables = [trials_of_side(side, numbers, _COLUMNS) for side in sides]
    _check_simulated(sides, tables)
    trials = _paired(*tables, suite=suite, task=task)
    side, one_folder = sides[1], sides[0].folder == sides[1].folder
    subject = side.name if one_folder else f"{side.name} in {Path(side.folder).name}"
    return [_result(gate, trials, subject) for gate in gates]


# ── what may be compared ─────────────────────────────────────────────────────────────────────


def _check_graders(sides: Sequence[ComparedSide]) -> None:
    """Refuse two sides of which a suite was graded by different graders or versions."""
    graders = list[dict[str, set[str]]]()
    for side in sides:
        by_suite: dict[str, set[str]] = {}
        for graded in counted(side.source, headline_graders):
            by_suite.setdefault(graded.suite, set()).update(f"{graded.grader} v{n}" for n in graded.versions)
        graders.append(by_suite)
    before, after = graders
    for suite in sorted(before.keys() & after.keys()):
        if before[suite] != after[suite]:
            names = [", ".join(sorted(by_suite[suite])) for by_suite in graders]
            raise ConfigError(
                f"{suite} was graded by {names[0]} in {sides[0].folder}, and by {names[1]} in "
                f"{sides[1].folder}. Grade both alike: asyncbench regrade"
            )


def _check_simulated(sides: Sequence[ComparedSide], tables: Sequence[pa.Table]) -> None:
    """Refuse to compare what a simulator answered with what a real server answered."""

    def simulated(side: ComparedSide, table: pa.Table) -> bool:
        def by_simulator(views: FolderViews) -> bool:
            views.put("side", table)
            return simulated_by(views, "side") is not None

        return counted(side.source, by_simulator)

    answers = [simulated(side, table) for side, table in zip(sides, tables, strict=True)]
    if answers[0] != answers[1]:
        which = sides[0 if answers[0] else 1]
        raise ConfigError(
            f"the results of {which.name} in {which.folder} are simulated, the others are not. A gate "
            "between them says nothing. Compare real results with real ones"
        )


# ── the figures ──────────────────────────────────────────────────────────────────────────────


def _paired(a: pa.Table, b: pa.Table, *, suite: str | None, task: str | None) -> pa.Table:
    """Return a row per trial that both were asked, with `_a` and `_b` behind the names of their columns.

    A trial of A that failed says nothing of the baseline, so it is left out.
    """
    columns = ("outcome", "cost_usd", "latency_s", "ttft_s")
    first = a.select([*_PAIRED_BY, *columns]).filter(pc.field("outcome") != Outcome.FAILED)
    second = b.select([*_PAIRED_BY, *columns])
    paired = first.join(
        second, list(_PAIRED_BY), join_type="inner", left_suffix="_a", right_suffix="_b", use_threads=False
    ).sort_by([(key, "ascending") for key in _PAIRED_BY])
    for column, value in (("suite", suite), ("task", task)):
        if value is not None:
            paired = paired.filter(pc.field(column) == value)
    return paired


def _problem_numbers(trials: pa.Table) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(str(problem), len(numbers)) for problem in trials["problem_id"].to_pylist()]


def _result(gate: BaselineGate, trials: pa.Table, subject: str) -> BaselineResult:
    """Answer a gate.

    A trial of B that failed counts against it where B would pass, and not at all where B would be worse. So a
    failed call is never taken for a wrong answer, and no model passes because its hard questions failed.
    """
    answered = trials.filter(pc.field("outcome_b") != Outcome.FAILED)
    failed = len(trials) - len(answered)
    measure = _measured_accuracy if gate.metric == "accuracy" else partial(_measured_change, gate.metric)
    answer = partial(_answer, gate, subject, failed)
    seen = measure(answered)
    if isinstance(seen, str):
        return answer(GateStatus.UNDECIDED, seen)

    left_out = f"; {number_of(failed, 'failed call')} left out" if failed else ""
    verdict = judge(seen.loss_interval, gate.margin)
    if verdict is Verdict.WORSE:
        return answer(GateStatus.FAILED, f"worse: {seen.text}{left_out}", seen)
    if verdict is Verdict.UNDECIDED:
        needed = problems_to_judge(seen.loss, seen.loss_interval, gate.margin, seen.problems)
        # Two digits count: 1,947 is about 1,900.
        needed = needed and round(needed, min(0, 2 - len(str(needed))))
        number = f"about {needed:,}" if needed else "more"
        sentence = f"this needs {number} problems, {seen.problems:,} were asked: {seen.text}{left_out}"
        return answer(GateStatus.UNDECIDED, sentence, seen, needed)

    strict = measure(trials) if failed else seen
    if isinstance(strict, str) or judge(strict.loss_interval, gate.margin) is not Verdict.NOT_WORSE:
        sentence = f"{number_of(failed, 'failed call')} could change this. Ask again with --retry failed"
        return answer(GateStatus.UNDECIDED, f"{sentence}: {seen.text}", seen)
    sentence = f"shown not to be worse by {gate.margin_text}: {seen.text}{left_out}"
    return answer(GateStatus.PASSED, sentence, seen)


def _answer(
    gate: BaselineGate,
    subject: str,
    failed: int,
    status: GateStatus,
    sentence: str,
    seen: PairedFigure | None = None,
    needed: int | None = None,
) -> BaselineResult:
    return BaselineResult(
        gate=gate.text,
        subject=subject,
        status=status,
        sentence=f"{subject}, {sentence}",
        metric=gate.metric,
        value=seen.b if seen else None,
        margin=gate.margin,
        measured=seen,
        problems_needed=needed,
        failed_calls=failed,
    )


def _measured_accuracy(trials: pa.Table) -> PairedFigure | str:
    """Return how the accuracy changed from A to B, or why that is unknown."""
    if not len(trials):
        return NOTHING_SHARED
    gained, asked = Counter[int](), Counter[int]()
    right = [(trials[f"outcome_{side}"].to_pylist()) for side in ("a", "b")]
    for problem, of_a, of_b in zip(_problem_numbers(trials), *right, strict=True):
        gained[problem] += (of_b == Outcome.CORRECT) - (of_a == Outcome.CORRECT)
        asked[problem] += 1
    low, high = bootstrap_difference(Counter((gained[n], asked[n]) for n in asked), seed=SEED)
    shares = [outcomes.count(Outcome.CORRECT) / len(outcomes) for outcomes in right]
    difference = shares[1] - shares[0]
    text = (
        f"accuracy {percent(shares[1])} after {percent(shares[0])}, {points(difference)} points "
        f"(95 % CI {points(low)} to {points(high)}) on {number_of(len(asked), 'problem')}"
    )
    return PairedFigure(
        a=shares[0],
        b=shares[1],
        change=difference,
        interval=(low, high),
        problems=len(asked),
        text=text,
        gain=True,
    )


NOTHING_SHARED: Final = "undecidable: no trial was answered by both. Ask both the same problems"


def _measured_change(metric: str, trials: pa.Table) -> PairedFigure | str:
    """Return by what part a cost or a time grew, or why that is unknown. A failed trial never ended."""
    column, share = RELATIVE[metric]
    rows = [
        (problem, before, inf if outcome == Outcome.FAILED else after)
        for problem, before, after, outcome in zip(
            _problem_numbers(trials),
            trials[f"{column}_a"].to_pylist(),
            trials[f"{column}_b"].to_pylist(),
            trials["outcome_b"].to_pylist(),
            strict=True,
        )
        # what a failed call would have cost is unknown
        if before is not None and (after is not None or outcome == Outcome.FAILED)
        if share is not None or outcome != Outcome.FAILED
    ]
    least = 1 if share is None else fewest_for(share)
    if len(rows) < least:
        return (
            f"{metric} cannot be compared: {column} is known on both sides of {len(rows):,} of "
            f"{number_of(len(trials), 'trial')}, and this needs {least:,}"
        )
    problems, before, after = zip(*rows, strict=True)
    numbers = {problem: number for number, problem in enumerate(dict.fromkeys(problems))}
    values = PairedValues(a=before, b=after, problems=[numbers[problem] for problem in problems])
    if (found := relative_change(values, share, seed=SEED)) is None:
        return f"undecidable: {metric} of the baseline is 0, so no percentage can be given"
    low, high = (_percent_change(end) for end in found.interval)
    known = f", known of {len(rows):,} of {len(trials):,} trials" if len(rows) < len(trials) else ""
    text = (
        f"{metric} {found.b:.4g} after {found.a:.4g}, {_percent_change(found.change)} "
        f"(95 % CI {low} to {high}) on {number_of(values.clusters, 'problem')}{known}"
    )
    return PairedFigure(
        a=found.a,
        b=found.b,
        change=found.change,
        interval=found.interval,
        problems=values.clusters,
        text=text,
        gain=False,
    )


def _percent_change(change: float) -> str:
    return f"{rounded(100 * change, 1, sign='+')} %" if isfinite(change) else "no end"
