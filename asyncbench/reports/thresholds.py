"""Thresholds for the figures of a folder, by which the checks of another program pass or fail."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import counted
from asyncbench.errors import ConfigError
from asyncbench.reports.gates import GateResult, GateStatus
from asyncbench.reports.overview import OverviewLine, overview_of

Number = float | None  # None: unknown
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
METRICS: Final[Mapping[str, Callable[[OverviewLine], Number]]] = {
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
_FORM: Final = re.compile(r"(?:(?P<model>.+):\s+)?(?P<metric>\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>\S+)")
_EXAMPLE: Final = '--fail-under "gpt-5-mini: accuracy >= 0.9"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportThreshold:
    """A bound that a figure of a model must keep, in each suite that it was asked."""

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
        if form["metric"] not in METRICS:
            metrics = ", ".join(METRICS)
            raise ConfigError(
                f"--fail-under {text!r}: unknown metric {form['metric']!r}. Choose from {metrics}"
            )
        try:
            limit = float(form["limit"])
        except ValueError:
            limit = inf
        if not isfinite(limit) or (form["metric"].startswith("accuracy") and limit > 1):
            raise ConfigError(f"--fail-under {text!r}: {form['limit']}: write a number, and 0.9 for 90 %")
        return cls(text=text, model=form["model"], metric=form["metric"], sign=form["sign"], limit=limit)

    def results(self, lines: Sequence[OverviewLine]) -> Iterator[GateResult]:
        """Yield for each line whether it keeps the threshold.

        Raises:
            ConfigError: no line is of the threshold's model.
        """
        matching = [line for line in lines if self.model in (None, line.name, line.model)]
        if not matching:
            names = ", ".join(sorted({line.name for line in lines})) or "no trial at all"
            raise ConfigError(f"--fail-under {self.text!r}: no trials of this model. There is {names}")
        for line in matching:
            value = METRICS[self.metric](line)
            kept = value is not None and _SIGNS[self.sign](value, self.limit)
            figure = "unknown" if value is None else f"{value:.6g}"
            subject = f"{line.name}, {line.suite}"
            form = self.sign if kept else f"not {self.sign}"
            yield GateResult(
                gate=self.text,
                subject=subject,
                status=GateStatus.PASSED if kept else GateStatus.FAILED,
                sentence=f"{subject}: {self.metric} is {figure}, {form} {self.limit:g}",
            )


def threshold_results(folder: Folders, thresholds: Sequence[ReportThreshold]) -> list[GateResult]:
    """Return for each figure of a folder whether it keeps its thresholds.

    Args:
        folder: the results folder, or several, or some of their trials.
        thresholds: the thresholds.

    Raises:
        ConfigError: `folder` is not a results folder, or has no trials of a threshold's model.
        StoreError: the folder cannot be read.
    """
    lines = counted(folder, overview_of).suites
    return [result for threshold in thresholds for result in threshold.results(lines)]
