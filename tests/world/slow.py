"""Servers that think from a tenth of a second to two minutes, and how long a lane takes beside the ideal.

    python -m tests.world.slow

prints a line for each server, latency and number of calls. Time is virtual: it takes a minute or two.
"""

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from asyncbench.engine.lane import RAMP_PER_S
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import MOST_IN_FLIGHT, History, Limits, Reply, Request, RetryPolicy
from tests.world.clock import virtually
from tests.world.night import MODEL, RIGHT, Night, requests

LATENCIES_S: Final = (0.1, 1.0, 5.0, 20.0, 60.0, 120.0)
CALLS: Final = (200, 5_000)
WAY_S: Final = 0.05  # to the server and back: a refusal takes no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A server, and what the sweep says of it."""

    latency_s: float
    calls: int
    told: Limits = field(default_factory=Limits)
    at_once: int | None = None  # calls; it refuses more
    queues: bool = False  # more than `at_once` wait inside, instead
    rpm: float | None = None  # it refuses more
    burst: float = 10.0  # calls that it admits at once, of `rpm`
    refusal: ErrorKind = ErrorKind.RATE_LIMITED
    refused_after_s: float = 0.0

    @property
    def ideal_s(self) -> float:
        """How long it takes with the pace of all limits, and every slot in use."""
        per_s = min(self.told.rpm or 1e9, self.rpm or 1e9) / 60
        slots = min(self.told.concurrency or MOST_IN_FLIGHT, self.at_once or MOST_IN_FLIGHT)
        starts: list[float] = []
        for n in range(self.calls):
            freed_s = starts[n - slots] + self.latency_s + WAY_S if n >= slots else 0.0
            starts.append(max(n / per_s, min(n, slots) / RAMP_PER_S, freed_s))
        return starts[-1] + self.latency_s + WAY_S


class Server:
    """Answers after its latency, or says no."""

    def __init__(self, case: Case) -> None:
        self.case, self.in_flight, self.most, self.sent = case, 0, 0, 0
        self._left, self._at_s = case.burst, 0.0
        self._working = asyncio.Semaphore(case.at_once or 10**9)

    async def ask(self, _: Request) -> Reply:
        """Make one call."""
        case, self.sent = self.case, self.sent + 1
        await asyncio.sleep(WAY_S / 2)
        if not self._admits():
            await asyncio.sleep(WAY_S / 2 + case.refused_after_s)
            raise ProviderError(case.refusal, "no")
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            async with self._working:
                await asyncio.sleep(case.latency_s)
        finally:
            self.in_flight -= 1
        await asyncio.sleep(WAY_S / 2)
        return RIGHT

    def _admits(self) -> bool:
        case, at_s = self.case, asyncio.get_running_loop().time()
        if case.at_once is not None and not case.queues:
            return self.in_flight < case.at_once
        if case.rpm is None:
            return True
        self._left = min(case.burst, self._left + (at_s - self._at_s) * case.rpm / 60)
        self._at_s = at_s
        admits = self._left >= 1
        self._left -= admits
        return admits


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a night."""

    case: Case
    seconds: float
    refused: int
    most: int  # in flight at the server

    @property
    def of_ideal(self) -> float:
        """The share of the ideal speed."""
        return self.case.ideal_s / self.seconds


def played(case: Case) -> Outcome:
    """Ask until all is answered."""

    async def night() -> Outcome:
        server, lanes = Server(case), Night()
        model = replace(MODEL, limits=case.told, retry=RetryPolicy(attempts=10_000, total_s=1e9))
        lanes.lane(server.ask, [(one, History()) for one in requests(case.calls, model)], model)
        await lanes.live()
        assert len(lanes.results) == case.calls
        return Outcome(case=case, seconds=lanes.seconds, refused=server.sent - case.calls, most=server.most)

    return virtually(night())


def cases() -> Iterable[tuple[str, Case]]:
    """Return all of them, by the name of their server."""
    told = Limits(rpm=6_000)
    for calls, latency_s in itertools.product(CALLS, LATENCIES_S):
        case = Case(latency_s=latency_s, calls=calls)
        yield "told 6,000 rpm", replace(case, told=told)
        yield "told 200 at once", replace(case, told=Limits(concurrency=200))
        yield "told nothing", case
        yield "refuses above 50 at once", replace(case, at_once=50)
        yield "refuses above 600 rpm", replace(case, rpm=600.0)
        yield "refuses connections above 50", replace(case, at_once=50, refusal=ErrorKind.UNREACHABLE)
        yield "queues above 50", replace(case, at_once=50, queues=True)


if __name__ == "__main__":
    import sys

    print(
        f"{'server':<30}{'latency':>9}{'calls':>7}{'ideal':>9}{'took':>9}{'share':>8}{'refused':>9}{'most':>7}"
    )
    for name, case in sorted(cases(), key=lambda one: one[0]):
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        one = played(case)
        print(
            f"{name:<30}{case.latency_s:>7g} s{case.calls:>7,}{case.ideal_s:>8,.1f}s{one.seconds:>8,.1f}s"
            f"{one.of_ideal:>8.1%}{one.refused:>9,}{one.most:>7,}",
            flush=True,
        )
