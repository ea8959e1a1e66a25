"""Search for the highest rate that keeps an SLO: up a ladder by twos, then by halving on a log scale.

A rate keeps the SLO if its calls surely do, and calls in flight do not grow. Where nothing is certain
the rate is measured again: the interval may be looked at after every step. In the end the rate that was found
is measured once more, for the best of many tries is often a lucky one. A rate that stays unresolved counts as
one that does not keep it: rather is the rate found too low than too high.
"""

from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from math import ceil, log, sqrt
from typing import Any, Final

from asyncbench.config.loading import Find, Load
from asyncbench.lanes.load.steps import (
    CLIENT_BOUND,
    MET,
    MISSED,
    UNRESOLVED,
    LoadStep,
    Steps,
    StepsBefore,
    measured_whole,
)
from asyncbench.records import StepResult
from asyncbench.stats.always_valid import always_valid_interval, fewest_answers
from asyncbench.tables.numbers import percent

MOST_STEPS: Final = 40  # of a server whose answers contradict each other
MOST_OF_A_RATE: Final = 3  # steps, until a rate is left unresolved
MOST_BOUND: Final = 3  # steps of a rate in which this computer is the bottleneck, until a search ends
DIGITS: Final = 4  # of a rate
SPARE: Final = 1.3  # times the calls that a verdict needs: fewer may be due, by chance, and some may be bad
DEFAULT_SHARE: Final = 0.95
_LOST: Final = {"refused": "were refused", "dropped": "were dropped (`max_in_flight`)", "failed": "failed"}


class _ClientBoundError(Exception):
    """A search cannot go on: what it would find is what this computer can do."""


@dataclass(slots=True)
class RateTried:
    """All steps of one rate, together."""

    share: float  # of calls that the SLO is promised to
    steps: list[Mapping[str, Any]] = field(default_factory=list)  # rows of `steps`

    @property
    def verdict(self) -> str:
        """Whether it is certain that its calls keep the SLO, or that they do not."""
        low, high = always_valid_interval(self._sum("met"), self._sum("offered"))
        if high < self.share or self._saturated:
            return MISSED
        return MET if low >= self.share else UNRESOLVED

    @property
    def text(self) -> str:
        """A phrase on the rate and its SLO, with the shares that speak against it."""
        offered = max(1, self._sum("offered"))
        shares = {phrase: self._sum(name) / offered for name, phrase in _LOST.items()}
        why = [
            f"{percent(share)} of its calls {phrase}"
            for phrase, share in shares.items()
            if share > 1 - self.share
        ]
        if not why:
            kept = percent(self._sum("met") / offered)
            why = [f"{kept} of its calls kept it, {100 * self.share:.4g}% are promised"]
        if self._saturated:
            why.append("calls in flight kept growing")
        return f"{'missed it' if self.verdict == MISSED else 'is unresolved'}: {', '.join(why)}"

    @property
    def _saturated(self) -> bool:
        return any(step["saturated"] for step in self.steps)

    def _sum(self, name: str) -> int:
        return sum(step[name] or 0 for step in self.steps)


@dataclass(slots=True, kw_only=True)
class RateSearch:
    """The search of one model."""

    load: Load
    find: Find
    before: StepsBefore
    kept: list[float] = field(default_factory=list)  # rates that kept the SLO, rising
    failed: float | None = None  # the lowest rate above these that did not
    finished: bool = False  # whether the search came to its end
    bound_at: float | None = None  # the rate at which this computer was the bottleneck
    _tried: dict[float, RateTried] = field(default_factory=dict)

    def steps(self) -> Steps:
        """Yield the steps of the search, each by what the one before came to."""
        with suppress(_ClientBoundError):
            # Go up until a rate certainly misses the SLO.
            rate, highest = self.find.lowest, self.find.highest
            while True:
                if (yield from self._keeps(rate)):
                    self.kept.append(rate)
                    self.failed = None
                else:
                    self.failed = self.failed or rate
                if rate >= highest or self.missed is not None or not self.kept:
                    break
                rate = min(2 * rate, highest)

            # Then narrow down what is between, until the highest rate that was kept is kept again.
            while self.kept and not self._lost_its_way:
                # Halve what is left, to half the tolerance: the other half is for chance.
                while self.failed is not None and self.failed > self.kept[-1] * (1 + self.find.tolerance / 2):
                    rate = tidy(sqrt(self.kept[-1] * self.failed))
                    if rate in (self.kept[-1], self.failed) or self._lost_its_way:
                        break
                    if (yield from self._keeps(rate)):
                        self.kept.append(rate)
                    else:
                        self.failed = rate
                if (yield from self._keeps(self.kept[-1], again=True)):
                    break
                self.failed = self.kept.pop()
            self.finished = not self._lost_its_way

    @property
    def is_over(self) -> bool:
        """Whether earlier runs have measured all that it needs; works it out, so that `steps` has none."""
        return next(self.steps(), None) is None

    @property
    def missed(self) -> float | None:
        """The lowest rate above those that kept the SLO of which it is certain that it did not."""
        lowest = self.kept[-1] if self.kept else 0.0
        missed = (rate for rate, tried in self._tried.items() if rate > lowest and tried.verdict == MISSED)
        return min(missed, default=None)

    @property
    def text(self) -> str:
        """Sentences on the result of the search, and on its end."""
        sentences = [f"Kept the SLO up to {self.kept[-1]:g}/s"] if self.kept else []
        if self.finished and self.failed is None:
            limit = "" if self.find == self.load.find else ", which is its `rpm`"
            return f"{sentences[0]}, the highest rate that was tried{limit}."
        for rate in sorted({rate for rate in (self.failed, self.missed) if rate is not None}):
            sentences.append(f"{rate:g}/s {self._tried[rate].text}")
        if self.bound_at is not None:
            sentences.append(
                f"The search ended at {self.bound_at:g}/s: "
                f"this computer was the bottleneck {MOST_BOUND} times"
            )
        elif self._lost_its_way:
            sentences.append(f"The search ended after {MOST_STEPS} steps, which contradict each other")
        elif not self.finished:
            sentences.append("The search for the highest rate is not over")
        elif not self.kept:
            sentences.append("Set a lower `lowest`")
        elif self.failed != self.missed:
            sentences.append("A longer `duration` tells more of what is unresolved")
        return f"{'. '.join(sentences)}."

    @property
    def _lost_its_way(self) -> bool:
        return sum(len(tried.steps) for tried in self._tried.values()) >= MOST_STEPS

    def _keeps(self, rate: float, *, again: bool = False) -> Generator[LoadStep, StepResult, bool]:
        """Measure a rate until it is certain whether it keeps the SLO, but not for ever; return whether."""
        tried = self._tried.setdefault(rate, RateTried(share_of(self.load)))
        seconds, bound = probe_s(self.load, rate), 0
        while again or not tried.steps or (tried.verdict == UNRESOLVED and len(tried.steps) < MOST_OF_A_RATE):
            # A step of earlier runs counts, if it was measured as it would be now.
            measured = self.before.measured_as_now(self.load, rate, seconds)
            if len(tried.steps) < len(measured):
                row = measured[len(tried.steps)]
            else:
                step = LoadStep(
                    load=self.load,
                    model=self.before.model,
                    rate=rate,
                    round=self.before.next_round(self.load, rate),
                    seconds=seconds,
                    gives_up=True,
                    questions_digest=self.before.questions_digest,
                )
                row = asdict((yield from measured_whole(step, self.before)))
            if row["verdict"] != CLIENT_BOUND:
                tried.steps.append(row)
                again = False
            elif (bound := bound + 1) == MOST_BOUND:  # a busy moment passes, a slow computer does not
                self.bound_at = rate
                raise _ClientBoundError
        return tried.verdict == MET


def share_of(load: Load) -> float:
    """Return the share of calls that its SLO is promised to."""
    return DEFAULT_SHARE if load.slo is None else load.slo.share


def probe_s(load: Load, rate: float) -> float:
    """Return how long a probe lasts: at low rates until enough calls were due for a verdict."""
    return max(load.duration, float(ceil(SPARE * all_good_needed(share_of(load)) / rate)))


@cache
def all_good_needed(share: float) -> int:
    """Return how many calls it takes until it is certain that more than a share is good, if all are."""
    return fewest_answers(lambda calls: always_valid_interval(calls, calls).low >= share)


def tidy(rate: float) -> float:
    """Return a rate with few digits."""
    return float(f"{rate:.{DIGITS}g}")


def most_calls(load: Load, find: Find) -> tuple[int, float, float]:
    """Return how many steps, calls and seconds a search takes at most, if one rate stays unresolved."""
    rungs = [find.lowest]
    while rungs[-1] < find.highest:
        rungs.append(min(2 * rungs[-1], find.highest))
    halvings = ceil(log(log(2) / log(1 + find.tolerance / 2), 2)) if find.tolerance < 2 else 0
    rates = [*rungs, *[find.highest] * (halvings + MOST_OF_A_RATE)]
    lengths = [load.warmup + probe_s(load, rate) for rate in rates]
    calls = sum(length_s * rate for length_s, rate in zip(lengths, rates, strict=True))
    return len(rates), calls, sum(lengths) + len(rates) * load.rest
