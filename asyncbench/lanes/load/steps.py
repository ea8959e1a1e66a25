"""The steps of a `load` block, named and in order, without those that earlier runs measured."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import erfc, exp, floor, log, sqrt
from random import Random
from statistics import fmean
from typing import Any, Final

import orjson

from asyncbench.config.loading import Load
from asyncbench.problems.traces import Trace
from asyncbench.records import StepResult
from asyncbench.tables.numbers import count, rounded

# ── Due times of calls: a pure function of the seed, the same list on every machine
# Draws come from `random.Random` seeded with a text, whose `random()` is the same everywhere, and from
# `log` and `exp`, whose last bit may differ between libraries of C. So times are rounded to whole
# microseconds: two machines could differ by one of these in one time of some ten billion.
# A gap is drawn for each call and is not rescaled: how many calls are due within a time is chance, as it
# is for users. Whoever shares the work takes a slice of the list, never a generator of its own.


CONSTANT, POISSON, GAMMA = "constant", "poisson", "gamma"
MICRO: Final = 1_000_000
FEWEST_GAPS: Final = 20  # of which a test says anything
WINDOW_GAPS: Final = 10  # mean gaps in a window whose calls are counted
FEWEST_WINDOWS: Final = 10


def due_times(
    pattern: str,
    rate: float,
    seconds: float,
    *,
    seed: int,
    model: str,
    round_: int,
    burstiness: float = 1.0,
) -> "array[float]":
    """Return the seconds from the start of a step at which calls are due, rising, all below `seconds`.

    Args:
        pattern: constant, poisson or gamma.
        rate: calls a second, in the mean.
        seconds: the length of the step.
        seed, model, round_: others give another list; of `constant` there is one. Models of one server that
            had the same would load it in pairs.
        burstiness: the shape of gamma's gaps; 1 is an exponential one.
    """
    random = Random(f"{seed} {model} {round_} {pattern} {rate!r} {burstiness!r}")  # noqa: S311  guards nothing
    due, exact_s = array("d"), 0.0
    while True:
        if pattern == CONSTANT:
            exact_s = len(due) / rate
        elif pattern == POISSON:
            exact_s -= log(1.0 - random.random()) / rate  # of (0, 1]
        else:
            exact_s += random.gammavariate(burstiness, 1.0 / (burstiness * rate))
        due_s = round(exact_s * MICRO) / MICRO
        if due_s >= seconds:
            return due
        due.append(due_s)


# ── Tests of Poisson arrivals ────────────────────────────────────────────────────────────────────


def ks_p(times: Sequence[float], rate: float) -> float | None:
    """Return how probable gaps as unlike an exponential's of this rate would be (Kolmogorov and Smirnov).

    It sees no dependence between gaps: see `dispersion_p`. None: there are too few.
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    if (n := len(gaps)) < FEWEST_GAPS:
        return None
    shares = [1.0 - exp(-rate * gap) for gap in gaps]
    distance = max(max((i + 1) / n - share, share - i / n) for i, share in enumerate(shares))
    scaled = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * distance
    terms = ((-1) ** (k - 1) * exp(-2.0 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2.0 * sum(terms))) if scaled > _SURE else 1.0


_SURE: Final = 0.2  # below it the series converges slowly, and the probability is 1 but for 1e-10


def dispersion_p(times: Sequence[float], rate: float, begin_s: float, end_s: float) -> float | None:
    """Return how probable counts as uneven, or as even, would be: their index of dispersion is χ².

    Args:
        times: when calls came, rising.
        rate: calls a second, by which the windows are cut: of ten mean gaps each.
        begin_s, end_s: the time that is cut.

    Returns:
        The probability on both sides, by Wilson and Hilferty's cube root; None: there are too few windows.
    """
    windows = int((end_s - begin_s) * rate / WINDOW_GAPS)
    if windows < FEWEST_WINDOWS:
        return None
    counts = [0] * windows
    for at_s in times:
        if 0 <= (window := int((at_s - begin_s) * rate / WINDOW_GAPS)) < windows:
            counts[window] += 1
    if not (mean := fmean(counts)):
        return None
    free = windows - 1
    ratio = sum((number - mean) ** 2 for number in counts) / mean / free
    spread = 2.0 / (9.0 * free)
    return erfc(abs(ratio ** (1 / 3) - (1.0 - spread)) / sqrt(2.0 * spread))


# ── Steps


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
    rate: float  # calls a second; closed: callers; trace: speed
    round: int  # number of the step among all of this rate, from 1
    seconds: float  # in which its calls count
    trace: Trace | None = None  # that is replayed
    questions_digest: str | None = None  # `StepResult.asked`
    gives_up: bool = False  # ends as soon as it is certain that it misses the SLO

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{base_of(self.load, self.rate)}{_ROUND}{self.round}"

    @property
    def calls(self) -> int:
        """The number of calls that are due, in the mean; 0 of callers, for nobody knows it."""
        if self.trace is not None:
            return bisect_left(self.trace.at_s, (self.load.warmup + self.seconds) * self.rate)
        return 0 if self.load.closed else round(self.rate * (self.load.warmup + self.seconds))

    @property
    def calls_per_s(self) -> float | None:
        """The calls a second that are due, in the mean; None: of callers, for nobody knows it."""
        if self.trace is not None:
            return self.calls / (self.load.warmup + self.seconds)
        return None if self.load.closed else self.rate

    def due(self) -> "array[float]":
        """Return when its calls are due, seconds from its start; closed: nobody knows."""
        load = self.load
        if self.trace is not None:
            return array("d", (at_s / self.rate for at_s in self.trace.at_s[: self.calls]))
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
    """Return the common name of all steps of a rate."""
    if load.closed or load.replays:
        return f"{load.arrivals} {rate:g}{'x' * load.replays}"
    shape = f"({load.burstiness:g})" if load.arrivals == GAMMA else ""
    return f"{load.arrivals}{shape} {rate:g}/s"


def base_in(name: str) -> str:
    """Return the part of a step's name that all steps of its rate share."""
    return name.rpartition(_ROUND)[0]


def slo_of(load: Load) -> dict[str, float] | None:
    """Return the promises of a load, by name, or None without promises."""
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

    def measured_as_now(self, load: Load, rate: float, seconds: float) -> list[Mapping[str, Any]]:
        """Return results of complete steps of a rate that were measured as they would be now.

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


def steps_to_measure(
    load: Load, repeats: int, measured: StepsBefore, *, trace: Trace | None = None
) -> list[LoadStep]:
    """Return the steps of the rates that a load lists, as often as it repeats them, in its order.

    Args:
        load: the load.
        repeats: how often each rate is measured.
        measured: the steps that earlier runs began.
        trace: whose calls are replayed, at the rates as speeds.
    """
    lengths_s = {rate: _seconds(load, rate, trace) for rate in load.rates}
    done = {rate: len(measured.measured_as_now(load, rate, lengths_s[rate])) for rate in load.rates}
    order = ((n, rate) for n in range(repeats) for rate in ordered(load, n))
    return [
        LoadStep(
            load=load,
            model=measured.model,
            rate=rate,
            round=measured.next_round(load, rate),
            seconds=lengths_s[rate],
            trace=trace,
            questions_digest=measured.questions_digest,
        )
        for n, rate in order
        if n >= done[rate]
    ]


def _seconds(load: Load, rate: float, trace: Trace | None) -> float:
    """Return how long the calls of a step count: of a trace no longer than until its last one is due."""
    if trace is None:
        return load.duration
    last_s = trace.at_s[-1] / rate - load.warmup
    return min(load.duration, floor(last_s) + 1.0)  # so that the last one is due within it


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
        parts.append(f"{rounded(100 * step.met / step.offered, 1)} % kept the SLO")
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
