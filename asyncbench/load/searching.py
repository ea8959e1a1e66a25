"""The highest rate that keeps an SLO: up a ladder by twos, then halving what is left, on a log scale.

A rate keeps the SLO if a whole step meets it, so that a backlog has its time to grow, and calls in flight do
not grow. It misses it as soon as that is certain: the interval may be looked at after every call. In the end
the rate that was found is measured once more, for the best of many tries is often a lucky one.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from math import ceil, log, sqrt
from typing import Final

from asyncbench.config import Find, Load
from asyncbench.engine import always_valid_interval
from asyncbench.load.steps import CLIENT_BOUND, MET, MISSED, LoadStep, Steps, StepsBefore
from asyncbench.records import StepResult

MOST_PROBES: Final = 40  # of a server whose answers contradict each other
DIGITS: Final = 4  # of a rate
SPARE: Final = 1.3  # times the calls that a verdict needs: fewer may be due, by chance, and some may be bad
DEFAULT_SHARE: Final = 0.95

Probe = Generator[LoadStep, StepResult, bool]


class _ClientBoundError(Exception):
    """A search cannot go on: what it would find is what this computer can do."""


@dataclass(slots=True, kw_only=True)
class RateSearch:
    """The search of one model."""

    load: Load
    find: Find
    before: StepsBefore
    kept: list[float] = field(default_factory=list)  # rates that kept the SLO, rising
    failed: float | None = None  # the lowest rate above these that did not
    missed: bool = False  # whether that is certain, not only unresolved
    bound_at: float | None = None  # the rate at which this computer was the bottleneck
    told: bool = False  # whether the search came to its end
    _probes: Counter[float] = field(default_factory=Counter)  # by rate

    def steps(self) -> Steps:
        """Yield the steps of the search, each by what the one before came to."""
        with suppress(_ClientBoundError):
            yield from self._climb()
            while self.kept and self._probes.total() < MOST_PROBES:
                yield from self._narrow()
                rate = self.kept[-1]
                if self._probes[rate] > 1 or (yield from self._keeps(rate)):
                    break
                self.kept.pop()
                self.failed = rate
            self.told = True

    @property
    def is_over(self) -> bool:
        """Whether earlier runs have measured all that it needs; works it out, so that `steps` has none."""
        return next(self.steps(), None) is None

    @property
    def text(self) -> str:
        """What was found."""
        if self.bound_at is not None:
            return f"The search ended at {self.bound_at:g}/s: this computer was the bottleneck."
        if not self.told:
            return "The search for the highest rate is not over."
        if not self.kept:
            return f"{self.find.lowest:g}/s did not keep the SLO. Set a lower `lowest`."
        kept = f"Kept the SLO up to {self.kept[-1]:g}/s"
        if self.failed is None:
            return f"{kept}, the highest rate that was tried."
        return f"{kept}. {self.failed:g}/s {'missed it' if self.missed else 'is unresolved'}."

    def _climb(self) -> Generator[LoadStep, StepResult, None]:
        rate = self.find.lowest
        while (yield from self._keeps(rate)):
            self.kept.append(rate)
            if rate >= self.find.highest:
                return
            rate = min(2 * rate, self.find.highest)
        self.failed = rate

    def _narrow(self) -> Generator[LoadStep, StepResult, None]:
        while self.failed is not None and self.failed > self.kept[-1] * (1 + self.find.tolerance):
            rate = tidy(sqrt(self.kept[-1] * self.failed))
            if rate in (self.kept[-1], self.failed) or self._probes.total() >= MOST_PROBES:
                return
            if (yield from self._keeps(rate)):
                self.kept.append(rate)
            else:
                self.failed = rate

    def _keeps(self, rate: float) -> Probe:
        """Return whether a rate keeps the SLO, by a step of earlier runs or a new one."""
        seconds = probe_s(self.load, rate)
        known, nth = self.before.of(self.load, rate, seconds), self._probes[rate]
        self._probes[rate] += 1
        found: Mapping[str, object]
        if nth < len(known):
            found = known[nth]
        else:
            number = self.before.next_round(self.load, rate)
            step = LoadStep(load=self.load, rate=rate, round=number, seconds=seconds, gives_up=True)
            found = asdict((yield step))
        if found["verdict"] == CLIENT_BOUND:
            self.bound_at = rate
            raise _ClientBoundError
        if found["verdict"] == MET and not found["saturated"]:
            return True
        self.missed = found["verdict"] in (MISSED, MET)  # met while a backlog grew
        return False


def probe_s(load: Load, rate: float) -> float:
    """Return how long a probe lasts: at low rates until enough calls were due for a verdict."""
    share = DEFAULT_SHARE if load.slo is None else load.slo.share
    return max(load.duration, float(ceil(SPARE * all_good_needed(share) / rate)))


@cache
def all_good_needed(share: float) -> int:
    """Return how many calls it takes until it is certain that more than a share is good, if all are."""
    few, enough = 0, 1
    while always_valid_interval(enough, enough).low < share:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if always_valid_interval(middle, middle).low < share else (few, middle)
    return enough


def tidy(rate: float) -> float:
    """Return a rate with few digits."""
    return float(f"{rate:.{DIGITS}g}")


def most_calls(load: Load, find: Find) -> tuple[int, float, float]:
    """Return how many steps, calls and seconds a search takes at most, if nothing contradicts."""
    rungs = [find.lowest]
    while rungs[-1] < find.highest:
        rungs.append(min(2 * rungs[-1], find.highest))
    halvings = ceil(log(log(2) / log(1 + find.tolerance), 2)) if find.tolerance < 1 else 0
    rates = [*rungs, *[find.highest] * (halvings + 1)]
    lengths = [load.warmup + probe_s(load, rate) for rate in rates]
    calls = sum(length_s * rate for length_s, rate in zip(lengths, rates, strict=True))
    return len(rates), calls, sum(lengths) + len(rates) * load.rest
