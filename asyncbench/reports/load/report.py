"""`report --style load`: the outcome of each rate of a load, and the highest rate that kept the SLO."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import FolderReport, NothingToShowError, note_of_simulated
from asyncbench.config.loading import CLOSED
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE, MET, MISSED, few_problems
from asyncbench.reports.cost.report import budgets_in
from asyncbench.reports.load.accuracy import StepAnswers, answers_by_step, notes_under_load
from asyncbench.reports.load.sheets import load_sheets, what_is_lacking
from asyncbench.reports.load.steps import StepFigures, steps_in
from asyncbench.tables.data import data_of, in_data
from asyncbench.tables.numbers import percent
from asyncbench.tables.report import Sheet

# ── The highest rate that kept an SLO, as far as steps tell, and what stopped the next one


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
    @in_data("text")
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


# ── The report


LATE: Final = 0.01  # of the latency: where this computer was later than that, it is said
BEHIND: Final = 0.98  # of the calls that were due: fewer answers came within a step, and it is said
MOST_NAMED: Final = 8  # steps in a note
# Each with the words of headings under one of which it is shown.
FORMULAS: Final = (
    (
        "Times are seconds from when a call was due. Late: to its written request, without connecting. TTFT: "
        "to the first token, thinking included; TTFO: to the first token of the answer. Latency: to its end; "
        "its mean stands where every call was answered.",
        {"late", "TTFT", "latency"},
    ),
    (
        "TPOT: (latency − TTFT) / (output tokens − 1), without tokens of thinking that is not shown.",
        {"TPOT"},
    ),
    (
        "ITL: between two pieces of a streamed answer, over all gaps of all answers, to within 1.1 %.",
        {"ITL"},
    ),
    (
        "p95: the least time that 95 % of the calls did not exceed; calls without an answer exceed all.",
        {"TTFT", "TPOT", "latency"},
    ),
    (
        "In brackets: 95 % intervals. Those of times (order statistics) are too narrow where calls wait in "
        "one queue: repeat steps. That of `kept the SLO` decides the verdict, and holds whenever you look.",
        {"latency", "kept"},
    ),
    (
        "Per second: answers that came within the step, over its seconds; those of its `drain` do not count. "
        "Goodput: those that kept the SLO.",
        {"due"},
    ),
    (
        "Sent again: the server had closed the kept connection before any of the request reached it, so the "
        "call was made again at once, and its time goes on. Connection lost: it may have read the request.",
        {"again", "connection"},
    ),
    ("Cost per 1,000 answers: dollars of all these calls, over their answers.", {"cost"}),
)
CLOSED_LOOP: Final = (
    "Callers waited for their answers (`closed`). A slow server slows them, so these latencies look better "
    "than for users who do not wait."
)
_PROMISES: Final = {"ttft": "TTFT", "ttfo": "first token of the answer", "tpot": "TPOT", "latency": "latency"}
_DEAREST: Final = """
SELECT model, any_value(provider) AS provider, max(coalesce(reserved_usd, most_usd)) AS usd
FROM attempts GROUP BY model
"""
_PROBLEMS: Final = """
SELECT count(DISTINCT problem_id) AS problems, count(*) AS graded FROM loaded WHERE outcome <> 'failed'
"""
_CUT: Final = """
SELECT DISTINCT model, load FROM attempts ANTI JOIN steps USING (model, load) WHERE load IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport(FolderReport):
    """The steps of a folder's load."""

    steps: tuple[StepFigures, ...]
    answers: tuple[StepAnswers, ...]
    highest: tuple[HighestRate, ...]
    problems: int  # that were answered
    graded: int  # answers to them
    cut: int  # steps that a killed run began: the next run measures them again

    def _data(self) -> dict[str, Any]:  # Any: JSON
        return {
            "folder": self.folder,
            "simulated": self.simulated,
            "steps": data_of(self.steps),
            "highest": data_of(self.highest),
            "answers": [_answers(step) for step in self.answers],
            "notes": [*self._warnings()],
            "formulas": [text for text, _ in FORMULAS],
        }

    def _parts(self) -> Iterator[str | Sheet]:
        yield from self._simulated()
        yield from (one.text for one in self.highest)
        yield from notes_under_load(self.answers)
        yield from self._arrivals()
        yield from self._warnings()
        sheets = list(load_sheets(self.steps, self.answers))
        yield from sheets
        yield from what_is_lacking(self.steps)
        heads = {word for sheet in sheets for column in sheet.head for word in column.split()}
        yield from (text for text, words in FORMULAS if words & heads)

    def _arrivals(self) -> Iterator[str]:
        """Yield how calls came, and what was promised."""
        arrivals = ", ".join(dict.fromkeys(step.step.partition(" ")[0] for step in self.steps))
        slos = defaultdict[str, dict[str, None]](dict)
        for step in self.steps:
            if step.slo is not None:
                slos[_promised(step.slo)][step.model] = None
        whose = (f" of {', '.join(models)}" if len(slos) > 1 else "" for models in slos.values())
        promises = (f"SLO{of}: {slo}." for of, slo in zip(whose, slos, strict=True))
        yield " ".join([f"Arrivals: {arrivals}.", *promises])
        if any(step.arrivals == CLOSED for step in self.steps):
            yield CLOSED_LOOP

    def _warnings(self) -> Iterator[str]:
        """Yield what makes figures less than they seem."""
        bound = [step for step in self.steps if step.verdict == CLIENT_BOUND]
        if bound:
            yield (
                f"This computer was the bottleneck at {_named(bound)}: the figures are its own, and there is "
                "no verdict. The next run measures these steps again, and pays for them."
            )
        if stopped := [step for step in self.steps if step.verdict == INCOMPLETE]:
            yield (
                f"Stopped before the end: {_named(stopped)}. The next run measures these steps again, and "
                "pays for them."
            )
        if self.cut:
            steps = "1 step" if self.cut == 1 else f"{self.cut:,} steps"
            yield f"Cut off by a crash, and left out: {steps}. The next run writes what is known of it."
        if late := [step for step in self.steps if (step.late_share or 0.0) > LATE and step not in bound]:
            least, most = (pick(step.late_share or 0.0 for step in late) for pick in (min, max))
            shares = (
                percent(most) if percent(least) == percent(most) else f"{percent(least)} to {percent(most)}"
            )
            yield f"This computer was late by more than 1 % of the latency at {_named(late)}: by {shares}."
        for step in self.steps:
            yield from _shortfall(step)
        if warning := few_problems(self.problems, calls=self.graded):
            yield warning


def _shortfall(step: StepFigures) -> Iterator[str]:
    """Yield why fewer answers came than were asked for."""
    where = f"{step.model} at {step.asked}"
    if step.refused:
        by = f" ({', '.join(map(str, step.refused_with))})" if step.refused_with else ""
        yield (
            f"{where}: {percent(step.refused / step.offered)} of the calls were refused{by}; "
            f"{step.answered_per_s:.3g} answers a second came through."
        )
    if step.dropped:
        yield f"{where}: {percent(step.dropped / step.offered)} of the calls were not sent (`max_in_flight`)."
    if step.saturated and step.arrivals != CLOSED and step.ended < BEHIND * step.answered:
        yield (
            f"{where}: calls in flight kept growing. Only {step.answered_per_s:.3g} answers a second came "
            "before the step ended."
        )


def _promised(slo: Mapping[str, float]) -> str:
    times = ", ".join(f"{words} up to {slo[name]:g} s" for name, words in _PROMISES.items() if name in slo)
    return f"{times} for {100 * slo['share']:.4g} % of the calls"


def _named(steps: Sequence[StepFigures]) -> str:
    """Return steps by model and rate."""
    by_model = groupby(steps[:MOST_NAMED], key=lambda step: step.model)
    named = "; ".join(f"{model} {', '.join(map(_place, own))}" for model, own in by_model)
    return f"{named} and {len(steps) - MOST_NAMED} more" if len(steps) > MOST_NAMED else named


def _place(step: StepFigures) -> str:
    why = step.bound_by if step.verdict == CLIENT_BOUND else None
    return step.asked if why is None else f"{step.asked} ({why})"


def _answers(step: StepAnswers) -> dict[str, object]:
    """Return what a step answered, for JSON."""
    beside = step.beside
    own = {name: getattr(step, name) for name in ("run", "model", "load", "rate", "round", "outcomes")}
    accuracy = {
        "accuracy": step.accuracy.share,
        "accuracy_interval": step.accuracy.interval,
        "answers": step.accuracy.trials,
        "beside": None
        if beside is None
        else {
            "lightest": beside.lightest,
            "problems": beside.moves.problems,
            "difference": beside.moves.difference,
            "interval": beside.interval,
            "p": beside.p,
            "p_holm": beside.p_holm,
        },
    }
    more = ("compared", "changed", "output_tokens", "reasoning_tokens", "cached_share", "served")
    return own | accuracy | {name: getattr(step, name) for name in more}


def load_report_of(views: FolderViews) -> LoadReport:
    """Return what the load of results folders came to, given views with the answers to it.

    Raises:
        ConfigError: a filter takes parts of steps.
        NothingToShowError: there are no steps.
    """
    if views.chosen.partly:
        raise ConfigError("--style load measures whole steps. Filter by --models alone.")
    steps, of = steps_in(views), views.chosen
    if not steps:
        raise NothingToShowError(of, f"{of} has no steps of a load. `asyncbench load` measures them.")
    known = bool(views.manifest.get("simulated"))
    answers = tuple(one for one in answers_by_step(views) if one.load)
    (counts,) = views.rows(_PROBLEMS)
    return LoadReport(
        folder=str(of),
        simulated_note=note_of_simulated(views, known=known),
        steps=steps,
        answers=answers,
        **counts,
        highest=highest_rates(steps, spent=spent_models(views)),
        cut=len(views.rows(_CUT)),
    )


def spent_models(views: FolderViews) -> set[str]:
    """Return the models of which a budget holds no other call."""
    remaining_usd = {
        (cap.kind, cap.of): cap.limit_usd - cap.spent_usd - cap.reserved_usd for cap in budgets_in(views)
    }
    return {
        row["model"]
        for row in views.rows(_DEAREST)
        for (kind, of), usd in remaining_usd.items()
        if of == row.get(kind, of) and row["usd"] is not None and usd < row["usd"]
    }
