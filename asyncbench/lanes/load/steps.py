"""The steps of a `load` block, named and in order, without those that earlier runs measured."""

from array import array
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any, Final

import orjson

from asyncbench.config.loading import Load
from asyncbench.lanes.load.arrivals import GAMMA, due_times
from asyncbench.records import StepResult
from asyncbench.tables.numbers import count

FEW_PROBLEMS: Final = 100  # fewer make intervals of accuracy wide, however often each is asked
INCOMPLETE, CLIENT_BOUND = "incomplete", "client_bound"  # verdicts on steps that are measured again
MET, MISSED, UNRESOLVED = "met", "missed", "unresolved"
SHUFFLED: Final = "shuffled"
_ROUND: Final = " #"  # in the name of a step, before its number
CLOSED_LOOP: Final = (
    "callers wait for their answers (`arrivals: closed`): a slow server slows them, so latencies look better "
    "than for users who do not wait"
)
Steps = Generator["LoadStep", StepResult, None]  # is sent what each step came to


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """One rate, held for a time."""

    load: Load
    model: str  # its alias
    rate: float  # calls a second; closed: callers
    round: int  # number of the step among all of this rate, from 1
    seconds: float  # in which its calls count
    questions_digest: str | None = None  # `StepResult.asked`
    gives_up: bool = False  # ends as soon as it is certain that it misses the SLO

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{base_of(self.load, self.rate)}{_ROUND}{self.round}"

    @property
    def calls(self) -> int:
        """The number of calls that are due, in the mean; 0 of callers, for nobody knows it."""
        load = self.load
        return 0 if load.closed else round(self.rate * (load.warmup + self.seconds))

    def due(self) -> "array[float]":
        """Return when its calls are due, seconds from its start; closed: nobody knows."""
        load = self.load
        return due_times(
            load.arrivals,
            self.rate,
            load.warmup + self.seconds,
            seed=load.seed,
            model=self.model,
            round_=self.round,
            burstiness=load.burstiness,
        )


def base_of(load: Load, rate: float) -> str:
    """Return what all steps of a rate are called."""
    if load.closed:
        return f"{load.arrivals} {rate:g}"
    shape = f"({load.burstiness:g})" if load.arrivals == GAMMA else ""
    return f"{load.arrivals}{shape} {rate:g}/s"


def base_in(name: str) -> str:
    """Return what the name of a step has in common with those of its rate."""
    return name.rpartition(_ROUND)[0]


def slo_of(load: Load) -> dict[str, float] | None:
    """Return what a load promises, by name; None: nothing."""
    return None if load.slo is None else {k: v for k, v in asdict(load.slo).items() if v is not None}


@dataclass(slots=True, kw_only=True)
class StepsBefore:
    """The steps of one model that earlier runs began."""

    model: str = ""  # its alias
    names: Collection[str] = ()  # of all of them, those that were never finished, too
    results: Sequence[Mapping[str, Any]] = ()  # rows of `steps`
    calls: int = 0
    questions_digest: str | None = None  # of what steps ask now: `StepResult.asked`
    _rounds: Counter[str] = field(default_factory=Counter)  # the highest number, by base

    def __post_init__(self) -> None:
        for name in self.names:
            base, _, number = name.rpartition(_ROUND)
            self._rounds[base] = max(self._rounds[base], int(number))

    def next_round(self, load: Load, rate: float) -> int:
        """Return a number that no step of a rate has."""
        self._rounds[base_of(load, rate)] += 1
        return self._rounds[base_of(load, rate)]

    def of(self, load: Load, rate: float, seconds: float) -> list[Mapping[str, Any]]:
        """Return what complete steps of a rate came to that were measured as they would be now.

        A search ends a step as soon as it surely misses: such a step is shorter.
        """
        early = load.find is not None
        return [
            row
            for row in self.results
            if base_in(row["load"]) == base_of(load, rate)
            and row["verdict"] not in (INCOMPLETE, CLIENT_BOUND)
            and row["offered"]  # by chance, no call of a short step may be due
            and (row["warmup_s"], row["asked"]) == (load.warmup, self.questions_digest)
            and (None if row["slo"] is None else orjson.loads(row["slo"])) == slo_of(load)
            and (
                row["seconds"] == seconds or (early and row["verdict"] == MISSED and row["seconds"] < seconds)
            )
        ]


def listed(steps: Iterable[LoadStep], before: StepsBefore) -> Steps:
    """Yield steps one after the other, whatever they come to, but none that was interrupted."""
    for step in steps:
        yield from measured_whole(step, before)


def measured_whole(step: LoadStep, before: StepsBefore) -> Generator[LoadStep, StepResult, StepResult]:
    """Yield a step, and under a new number again as long as it was interrupted; return what it came to."""
    while (result := (yield step)).verdict == INCOMPLETE:
        step = replace(step, round=before.next_round(step.load, step.rate))
    return result


def to_measure(load: Load, repeats: int, measured: StepsBefore) -> list[LoadStep]:
    """Return the steps of the rates that a load lists, as often as it repeats them, in its order."""
    done = {rate: len(measured.of(load, rate, load.duration)) for rate in load.rates}
    order = ((n, rate) for n in range(repeats) for rate in ordered(load, n))
    return [
        LoadStep(
            load=load,
            model=measured.model,
            rate=rate,
            round=measured.next_round(load, rate),
            seconds=load.duration,
            questions_digest=measured.questions_digest,
        )
        for n, rate in order
        if n >= done[rate]
    ]


def ordered(load: Load, repeat: int) -> list[float]:
    """Return the rates in the order of one repeat: the same for all models."""
    rates = sorted(load.rates)
    if load.order == SHUFFLED:
        Random(f"{load.seed} order {repeat}").shuffle(rates)  # noqa: S311  guards nothing
    return rates


def step_text(step: StepResult, *, planned_s: float | None = None) -> str:
    """Return a line on a step, for whoever has just measured it; `planned_s`: as long as it was to be."""
    lost = {"dropped": step.dropped, "refused": step.refused, "failed": step.failed}
    lost |= {"unfinished": step.unfinished}
    parts = [
        f"{count(step.answered)} of {count(step.offered)} calls due in {step.seconds:.3g} s were answered",
        *(f"{count(number)} {name}" for name, number in lost.items() if number),
    ]
    if step.met is not None and step.offered:
        parts.append(f"{100 * step.met / step.offered:.1f} % kept the SLO")
    if step.saturated:
        parts.append("calls in flight kept growing")
    if step.verdict == MISSED and planned_s is not None and step.seconds < planned_s:
        parts.append(f"cut short of {planned_s:g} s, for it surely misses the SLO")
    verdict = (step.verdict or "").replace("_", " ")
    return f"{step.model}, {step.load}: {', '.join(parts)}{f': {verdict}' if verdict else ''}"


def few_problems(problems: int, *, calls: float) -> str:
    """Return that so few problems say little of accuracy; empty: they are enough, or asked once."""
    if not 0 < problems < min(FEW_PROBLEMS, calls):
        return ""
    return (
        f"{problems:,} problem{'s' * (problems != 1)}, each asked about {calls / problems:,.0f} times: a "
        "problem counts once, so intervals of accuracy stay wide. "
        f"Ask {FEW_PROBLEMS} or more: raise `trials` or `tries`."
    )
