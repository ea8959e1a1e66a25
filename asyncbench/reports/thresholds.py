"""Thresholds for the figures of a folder, by which the checks of another program pass or fail."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, isinf
from typing import Final

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE
from asyncbench.reports.load.steps import PERCENTILES, TIME_KINDS, StepFigures, steps_in
from asyncbench.reports.overview import OverviewLine, overview_of
from asyncbench.tables.gates import GateResult, GateStatus

Number = float | None  # None: unknown
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
METRICS: Final[Mapping[str, Callable[[OverviewLine], Number]]] = {  # of a model in a suite
    "accuracy": lambda line: line.accuracy,
    "accuracy_low": lambda line: line.accuracy_interval and line.accuracy_interval[0],
    "accuracy_of_answered": lambda line: line.accuracy_of_answered,
    "cost_usd": lambda line: line.cost_usd,
    "latency_p50_s": lambda line: line.latency_p50_s,
    "latency_p95_s": lambda line: line.latency_p95_s,
    "ttft_p50_s": lambda line: line.ttft_p50_s,
    "ttft_p95_s": lambda line: line.ttft_p95_s,
    "open": lambda line: line.open,
}
TOTAL: Final = "total_cost_usd"  # of all models, every attempt


_PERCENTILES: Final = {  # metric of a load → the kind of its times, and the percentile
    **{f"{name}_s": ("latency", name) for name in PERCENTILES},
    **{f"{kind}_{name}_s": (kind, name) for kind in TIME_KINDS for name in PERCENTILES},
}


def _percentile_in(step: StepFigures, kind: str, name: str) -> Number:
    percentile = step.times[kind].percentile(name)
    return percentile and percentile.value


LOAD_METRICS: Final[Mapping[str, Callable[[StepFigures], Number]]] = {  # of a model at a rate
    **{
        metric: partial(_percentile_in, kind=kind, name=name) for metric, (kind, name) in _PERCENTILES.items()
    },
    "answered_per_s": lambda step: step.answered_per_s,
    "goodput_per_s": lambda step: step.goodput_per_s,
    "tokens_per_s": lambda step: step.tokens_per_s,
    "tokens_per_s_per_user": lambda step: step.tokens_per_s_per_user,
    "tokens_per_s_per_gpu": lambda step: step.tokens_per_s_per_gpu,
    "kept_share": lambda step: step.kept_share,
}
_ALL_METRICS: Final = tuple(dict.fromkeys([*METRICS, TOTAL, *LOAD_METRICS]))
_FORM: Final = re.compile(r"(?:(?P<model>.+):\s+)?(?P<metric>\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>\S+)")
_EXAMPLE: Final = '--fail-under "gpt-5-mini: accuracy >= 0.9"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportThreshold:
    """A bound that a figure must keep: of a model in each suite, or under each rate of a load."""

    text: str
    model: str | None  # its alias or its name in reports; None: every model
    metric: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> "ReportThreshold":
        """Read a threshold as it is typed, such as `gpt-5-mini: accuracy >= 0.9`.

        Raises:
            ConfigError: it is not a threshold; the message says what is wrong, and how to write one.
        """
        form = _FORM.fullmatch(text.strip())
        if form is None:
            raise ConfigError(f"--fail-under {text!r}: not a threshold. Write one, such as {_EXAMPLE}")
        if form["metric"] not in _ALL_METRICS:
            metrics = ", ".join(_ALL_METRICS)
            raise ConfigError(
                f"--fail-under {text!r}: unknown metric {form['metric']!r}. Choose from {metrics}"
            )
        try:
            limit = float(form["limit"])
        except ValueError:
            limit = inf
        if not isfinite(limit) or (form["metric"].startswith("accuracy") and limit > 1):
            raise ConfigError(f"--fail-under {text!r}: {form['limit']}: write a number, and 0.9 for 90 %")
        if form["metric"] == TOTAL and form["model"]:
            raise ConfigError(
                f"--fail-under {text!r}: {TOTAL} is of all models. For one, write `{form['model']}: cost_usd`"
            )
        return cls(text=text, model=form["model"], metric=form["metric"], sign=form["sign"], limit=limit)

    def results(self, figures: Iterable["_GateFigure"]) -> Iterator["ThresholdResult"]:
        """Yield for each figure of the threshold's metric whether it keeps the threshold.

        Raises:
            ConfigError: no figure is of the threshold's model.
        """
        of_metric = [figure for figure in figures if figure.metric == self.metric]
        matching = [figure for figure in of_metric if self.model is None or self.model in figure.names]
        if not matching:
            names = ", ".join(sorted({figure.names[0] for figure in of_metric})) or "no trial at all"
            kind = "steps of a load" if self.metric in LOAD_METRICS.keys() - METRICS.keys() else "trials"
            of_model = f"{kind} of this model" if self.model else kind
            raise ConfigError(f"--fail-under {self.text!r}: no {of_model}. There is {names}")
        for figure in matching:
            value = figure.value
            kept = value is not None and _SIGNS[self.sign](value, self.limit)
            status = GateStatus.PASSED if kept else GateStatus.FAILED
            form = self.sign if kept else f"not {self.sign}"
            number = "unknown" if value is None else "endless" if isinf(value) else f"{value:.6g}"
            sentence = f"{figure.subject}: {self.metric} is {number}, {form} {self.limit:g}"
            if figure.undecided is not None:
                status, sentence = GateStatus.UNDECIDED, f"{figure.subject}: {figure.undecided}"
            yield ThresholdResult(
                gate=self.text,
                subject=figure.subject,
                status=status,
                sentence=sentence,
                metric=self.metric,
                value=None if value is None or isinf(value) else value,
                sign=self.sign,
                limit=self.limit,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdResult(GateResult):
    """The answer of a threshold."""

    sign: str
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _GateFigure:
    """A figure that a threshold may be for."""

    metric: str
    subject: str  # whose it is
    names: tuple[str, ...]  # by which a threshold may name its model
    value: Number
    undecided: str | None = None  # why the figure says nothing; None: it does


def threshold_results(folder: Folders, typed: str | Sequence[str]) -> list[ThresholdResult]:
    """Return for each figure of a folder whether it keeps its thresholds.

    Args:
        folder: the results folder, or several, or some of their trials.
        typed: a threshold as it is typed, or several.

    Raises:
        ConfigError: it is no threshold, `folder` is not a results folder, or has no trials of the model.
        StoreError: the folder cannot be read.
    """
    thresholds = [ReportThreshold.parse(text) for text in ([typed] if isinstance(typed, str) else typed)]
    if not thresholds:
        return []
    figures = counted(folder, lambda views: [*_figures_in(views)])
    return [result for threshold in thresholds for result in threshold.results(figures)]


def _figures_in(views: FolderViews) -> Iterator[_GateFigure]:
    """Yield all figures of folders that a threshold may be for."""
    overview = overview_of(views)
    for line in overview.suites:
        subject, names = f"{line.name}, {line.suite}", (line.name, line.model)
        for metric, value_in in METRICS.items():
            yield _GateFigure(metric=metric, subject=subject, names=names, value=value_in(line))

    # What all attempts cost: those of a load, of open trials and of failed ones, too.
    spent = {row["model"]: row["cost_usd"] for row in overview.spending}
    whole = all(row["priced_attempts"] == row["attempts"] for row in overview.spending)
    total = sum(spent.values()) if whole else None
    yield _GateFigure(metric=TOTAL, subject="all models", names=("all models",), value=total)

    # A step is measured whole, so filters leave none.
    steps = () if views.chosen.partly else steps_in(views)
    for step in steps:
        subject, names = f"{step.model} at {step.asked}", (step.model, f"{step.model} at {step.asked}")
        undecided = None
        if step.verdict in (CLIENT_BOUND, INCOMPLETE):
            undecided = f"the step is {step.verdict.replace('_', ' ')}. Measure it again"
        for metric, value_of in LOAD_METRICS.items():
            value, why = value_of(step), undecided
            if value is None and why is None and metric in _PERCENTILES:
                kind, name = _PERCENTILES[metric]
                why = f"{metric} is unknown: {step.times[kind].why(name)}"
            yield _GateFigure(metric=metric, subject=subject, names=names, value=value, undecided=why)
    for model in dict.fromkeys(step.model for step in steps):
        yield _GateFigure(metric="cost_usd", subject=f"{model}, load", names=(model,), value=spent.get(model))
