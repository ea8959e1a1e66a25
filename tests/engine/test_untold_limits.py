"""Limits of 60 to 60,000 requests a minute that nobody tells: how much of them is used, and at what price.

The whole lane, on a virtual clock, against a provider that says nothing but no. `make soak` plays all cases
and prints a line for each, `make test` some of the slow ones: a fast one takes a minute.
"""

import asyncio
import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import MOST_IN_FLIGHT, Event, History, Limits, Reply, Request, RetryPolicy, Usage
from asyncbench.simulator.limits import LIMIT_MODELS
from tests.tiers import shared_out
from tests.world.clock import virtually
from tests.world.night import MODEL, Night, requests

MINUTES: Final = 8
WINDOWS: Final = ("token_bucket", "fixed_window", "sliding_window")
LATENCIES_S: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
# Longer latencies keep the slots for a fast limit from being found at once; and until the first answer
# shows that the key is good, only four calls are in flight.
SLOW_S: Final = 4.0
REFUSAL_S: Final = 0.01
WAY_S: Final = 0.02  # to the provider, at most
PATIENT: Final = RetryPolicy(attempts=10_000, total_s=1e9)
ANSWER: Final = Reply(text="4", usage=Usage(input_tokens=10, output_tokens=5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """A limit that nobody tells, and who asks."""

    rpm: int
    window: str
    retry_after: bool
    latency_s: float
    concurrency: int | None

    def __str__(self) -> str:
        told = "told" if self.retry_after else "untold"
        return f"{self.rpm}-{self.window}-{told}-{self.latency_s:g}s-{self.concurrency}"


class Provider:
    """Admits as many as it does, and refuses the rest without a word of why."""

    def __init__(self, plan: Untold) -> None:
        self.plan = plan
        self.admitted, self.refused = Counter[int](), Counter[int]()  # by minute
        self._rng = random.Random(str(plan))
        self._phase_s = self._rng.uniform(0, 60)
        self._limiter = LIMIT_MODELS[plan.window](float(plan.rpm), 1.0, 0.0)

    async def ask(self, _: Request) -> Reply:
        """Make one call."""
        await asyncio.sleep(REFUSAL_S / 10 + WAY_S * self._rng.random())
        at_s = asyncio.get_running_loop().time()
        wait_s = self._limiter.wait_s(1.0, at_s + self._phase_s)
        if wait_s > 0:
            self.refused[int(at_s // 60)] += 1
            await asyncio.sleep(REFUSAL_S)
            told_s = wait_s if self.plan.retry_after else None
            raise ProviderError(ErrorKind.RATE_LIMITED, "no", http_status=429, retry_after_s=told_s)
        self._limiter.take(1.0, at_s + self._phase_s)
        self.admitted[int(at_s // 60)] += 1
        await asyncio.sleep(self.plan.latency_s * self._rng.lognormvariate(0, 0.3))
        return ANSWER

    def used(self, first: int, end: int) -> float:
        """Return the share of the limit, or of what so many calls in flight can use, in some minutes."""
        most = 0.95 * (self.plan.concurrency or MOST_IN_FLIGHT) / self.plan.latency_s * 60
        taken = sum(self.admitted[minute] for minute in range(first, end))
        return taken / (end - first) / min(self.plan.rpm, most)

    def refused_later(self) -> tuple[int, float]:
        """Return how many calls were refused after the first minute, and their share."""
        refused, admitted = (
            sum(counts[minute] for minute in range(1, MINUTES)) for counts in (self.refused, self.admitted)
        )
        return refused, refused / (refused + admitted)


class Forgetful(Night):
    """A night of which nothing is kept: it has half a million calls."""

    def keep(self, event: Event) -> None:
        assert event is not None


def played(plan: Untold) -> Provider:
    """Ask for eight minutes."""
    provider = Provider(plan)

    async def night() -> None:
        model = replace(MODEL, limits=Limits(concurrency=plan.concurrency), retry=PATIENT)
        (request,) = requests(1, model)
        lanes, calls = Forgetful(), plan.rpm * (MINUTES + 3) + 5_000
        client = lanes.lane(provider.ask, [(request, History())], model)
        client.feed.trials, client.counters.planned = iter([request.trial] * calls), calls
        await lanes.live(stop_s=MINUTES * 60.0)

    virtually(night())
    return provider


def drawn(number: int, least: int, most: int) -> list[Untold]:
    """Draw so many cases; all windows and both answers come by turns."""
    cases = []
    for n in range(number):
        rng = random.Random(f"{least} {n}")
        rpm = round(math.exp(rng.uniform(math.log(least), math.log(most))))
        case = Untold(
            rpm=rpm,
            window=WINDOWS[n % 3],
            retry_after=n // 3 % 2 == 0,
            latency_s=rng.choice([s for s in LATENCIES_S if rpm * s / 60 < 0.8 * MOST_IN_FLIGHT]),
            concurrency=rng.choice([None, None, 300]),
        )
        cases.append(case)
    return cases


def check(plan: Untold) -> None:
    provider = played(plan)
    early, late = provider.used(0, 2), provider.used(5, MINUTES)
    refused, share = provider.refused_later()
    print(f"\n{plan!s:<42} minutes 0-2 {early:4.0%}  5-8 {late:4.0%}  429 {share:.2%}", end="", flush=True)
    assert early >= (0.65 if plan.latency_s > SLOW_S else 0.8)
    assert late >= 0.95
    assert refused <= MINUTES - 1 or share <= 0.01


@pytest.mark.parametrize("plan", shared_out(drawn(60, 60, 1_500), long=12), ids=str)
def test_a_slow_limit_that_nobody_tells_is_found_and_kept(plan):
    check(plan)


@pytest.mark.long
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rpm", [3_000, 6_000, 10_000])
def test_slow_answers_do_not_keep_a_fast_limit_from_being_found(rpm, window):
    check(Untold(rpm=rpm, window=window, retry_after=False, latency_s=8.0, concurrency=None))


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("plan", drawn(24, 1_500, 60_000), ids=str)
def test_a_fast_limit_that_nobody_tells_is_found_and_kept(plan):
    check(plan)
