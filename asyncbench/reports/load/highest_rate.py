"""The highest rate that kept an SLO, as far as steps tell, and what stopped the next one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Final

from asyncbench.config.loading import CLOSED
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, MET, MISSED
from asyncbench.reports.load.steps import StepFigures
from asyncbench.tables.numbers import percent

# What stopped a rate from keeping the SLO.
SLOW, REFUSED, FAILED, BACKLOG = "slo", "429", "failed", "backlog"
CLIENT, BUDGET, STOPPED, TOO_FEW = "client", "budget", "stopped", "too_few_calls"
MOSTLY: Final = 0.5  # of the calls that did not keep it


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestRate:
    """Of one model, pattern and SLO: the highest rate lies between `kept` and `not_kept`."""

    model: str
    arrivals: str
    slo: Mapping[str, float]
    kept: float | None  # surely kept it, and no lower rate surely did not; None: none did
    not_kept: float | None  # the lowest rate above; None: no higher one was asked
    stopped_by: str | None  # what stopped that one; None: likewise
    why: str  # the same in words

    @property
    def text(self) -> str:
        """What was found."""
        unit = "/s" if self.arrivals != CLOSED else " caller" if self.kept == 1 else " callers"
        if self.kept is None:
            return f"{self.model}: no rate is sure to keep the SLO. {self.why}"
        if self.not_kept is None:
            return f"{self.model}: kept the SLO up to {self.kept:g}{unit}, the highest rate that was asked."
        return f"{self.model}: kept the SLO up to {self.kept:g}{unit}. {self.why}"


def highest_rates(steps: Sequence[StepFigures], *, spent: Collection[str] = ()) -> tuple[HighestRate, ...]:
    """Return what steps with an SLO tell, by model and pattern.

    Args:
        steps: as `steps_in` returns them.
        spent: models whose budget holds no other call.
    """
    promised = sorted((step for step in steps if step.slo is not None), key=_pattern)
    return tuple(_highest([*alike], spent) for _, alike in groupby(promised, key=_pattern))


def _pattern(step: StepFigures) -> tuple[str, str, str]:
    shape = step.step.partition(" ")[0]  # such as `gamma(0.5)`
    return step.model, shape, str(sorted((step.slo or {}).items()))


def _highest(steps: Sequence[StepFigures], spent: Collection[str]) -> HighestRate:
    """Return what the steps of one pattern tell; they come by rising rate."""
    surely_not = [step.rate for step in steps if step.verdict == MISSED or _piled_up(step)]
    below = min(surely_not, default=inf)
    kept = [step.rate for step in steps if step.verdict == MET and step.rate < below]
    above = next((step for step in steps if not kept or step.rate > kept[-1]), None)
    stopped_by = None if above is None else _stopped_by(above, spent)
    return HighestRate(
        model=steps[0].model,
        arrivals=steps[0].arrivals,
        slo=steps[0].slo or {},
        kept=kept[-1] if kept else None,
        not_kept=None if above is None else above.rate,
        stopped_by=stopped_by,
        why="" if above is None or stopped_by is None else f"{above.asked} {_words(above, stopped_by)}.",
    )


def _piled_up(step: StepFigures) -> bool:
    return step.verdict == MET and bool(step.saturated)


def _stopped_by(step: StepFigures, spent: Collection[str]) -> str:
    if step.verdict == CLIENT_BOUND:
        return CLIENT
    if step.verdict == INCOMPLETE:
        return BUDGET if step.model in spent else STOPPED
    if _piled_up(step):
        return BACKLOG
    most = MOSTLY * (step.offered - (step.met or 0))
    if step.refused > most:
        return REFUSED
    if step.failed > most:
        return FAILED
    return SLOW if step.verdict == MISSED else TOO_FEW


def _words(step: StepFigures, stopped_by: str) -> str:
    slo, share = step.slo or {}, percent(step.kept_share, step.kept_interval)
    verdict = "missed it" if step.verdict == MISSED or _piled_up(step) else "is unresolved"
    if stopped_by in (CLIENT, BUDGET, STOPPED):
        verdict = "has no verdict"
    why = {
        SLOW: f"{share} of the calls kept it, not {100 * slo.get('share', 0):.4g}%",
        REFUSED: f"{percent(step.refused / max(1, step.offered))} of the calls were refused",
        FAILED: f"{percent(step.failed / max(1, step.offered))} of the calls failed",
        BACKLOG: f"calls in flight kept growing, and {step.answered_per_s:.3g} answers a second came",
        CLIENT: "this computer was the bottleneck",
        BUDGET: "the budget ended it",
        STOPPED: "it was stopped before its end",
        TOO_FEW: f"{share} of the calls kept it, too few to be sure. Raise `duration` or `repeats`",
    }
    return f"{verdict}: {why[stopped_by]}"
