"""Limits of a model: rates with the allowance that remains, and a queue in front of a number of slots.

The caller says what time it is, so all but `ServiceLine` is pure. `LIMIT_MODELS` names the kinds of limits.
"""

import asyncio
import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final

MINUTE_S = 60.0
SECOND_S = 1.0
BURST_S = 1.0  # what a bucket holds unless told otherwise
_ROUNDING = 1e-9  # a bucket refilled in many small steps ends a little below the exact sum
_INSTANT_S = 1e-6  # a call at the very moment it was told comes a little early: sums of floats are rounded
_FORGET = 1024  # entries of a sliding window that have left before they are cleared away


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAllowance:
    """A limit as a provider's headers tell it."""

    per_minute: float
    remaining: float  # what would be admitted now
    reset_s: float  # seconds until `remaining` is back at its maximum


class TokenBucket:
    """`per_minute` a minute, refilled continuously, at most `burst_s` seconds' worth (or 1) saved up.

    Starts full. An amount larger than the bucket is admitted when it is full and leaves a debt. The generic
    cell rate algorithm (ITU-T I.371) is the same, kept as one moment in time.
    """

    def __init__(self, per_minute: float, *, burst_s: float, at_s: float) -> None:
        self._per_minute, self._per_s = per_minute, per_minute / 60
        self._capacity = max(1.0, self._per_s * burst_s)
        self._level, self._filled_at_s = self._capacity, at_s

    def wait_s(self, amount: float, at_s: float) -> float:
        """Return how long until `amount` is admitted; 0: now."""
        missing = min(amount, self._capacity) - self._fill(at_s)
        return missing / self._per_s if missing > _ROUNDING else 0.0

    def take(self, amount: float, at_s: float) -> None:
        """Charge an amount that was admitted."""
        self._level = self._fill(at_s) - amount

    def allowance(self, at_s: float) -> ToldAllowance:
        """Return the rest of the limit."""
        level = self._fill(at_s)
        return ToldAllowance(
            per_minute=self._per_minute,
            remaining=max(0.0, level),
            reset_s=(self._capacity - level) / self._per_s,
        )

    def _fill(self, at_s: float) -> float:
        grown = self._level + (at_s - self._filled_at_s) * self._per_s
        self._level, self._filled_at_s = min(self._capacity, grown), at_s
        return self._level


class FixedWindow:
    """`per_minute`, counted anew in each window of `window_s` seconds, of which one begins at `at_s`.

    A window admits whole amounts, and fractions are carried into the next: 90 a minute are 1 and 2 by turns
    in windows of one second. Where a window would admit less than 1 it is longer instead, so that it admits
    1. An amount that no window is sure to hold is admitted to an untouched one and leaves a debt.
    """

    def __init__(self, per_minute: float, *, at_s: float, window_s: float = MINUTE_S) -> None:
        self._per_minute, self._began_s = per_minute, at_s
        self._window_s = max(window_s, MINUTE_S / per_minute)
        self._each = max(1.0, per_minute * window_s / MINUTE_S)
        self._sure = float(math.floor(self._each))  # the least that a window admits
        self._taken = -math.inf  # since `at_s`, with all that went unused

    def wait_s(self, amount: float, at_s: float) -> float:
        need, window = min(amount, self._sure), self._window(at_s)
        reached = max(self._taken, self._due(window)) + need
        if reached <= self._due(window + 1):
            return 0.0
        # The first window by whose end so much is due: it holds `need` even if untouched until then.
        return self._begins_s(self._until(reached) - 1) - at_s

    def take(self, amount: float, at_s: float) -> None:
        self._taken = max(self._taken, self._due(self._window(at_s))) + amount

    def allowance(self, at_s: float) -> ToldAllowance:
        window = self._window(at_s)
        untouched = self._taken <= self._due(window)
        return ToldAllowance(
            per_minute=self._per_minute,
            remaining=max(0.0, self._due(window + 1) - max(self._taken, self._due(window))),
            reset_s=0.0 if untouched else self._begins_s(self._until(self._taken)) - at_s,
        )

    def _window(self, at_s: float) -> int:
        return math.floor((at_s - self._began_s + _INSTANT_S) / self._window_s)

    def _begins_s(self, window: int) -> float:
        return self._began_s + window * self._window_s

    def _due(self, windows: int) -> float:
        """Return the amount that so many windows admit together."""
        return math.floor(windows * self._each + _INSTANT_S)

    def _until(self, amount: float) -> int:
        """Return how many windows admit so much together."""
        return math.ceil((math.ceil(amount - _INSTANT_S) - _INSTANT_S) / self._each)


class SlidingWindow:
    """`per_minute` in any 60 seconds: what was admitted counts until a minute later.

    An amount larger than the limit is admitted when nothing else counts, and counts for longer in
    proportion. Admitting takes a constant time on average, waiting a logarithm of what is in the window.
    """

    def __init__(self, per_minute: float) -> None:
        self._per_minute = per_minute
        self._window_s = max(MINUTE_S, MINUTE_S / per_minute)
        self._most = max(1.0, per_minute)
        self._leaves_s = [-math.inf]  # ascending: when each amount stops counting
        self._sums = [0.0]  # of the amounts up to and with each

    def wait_s(self, amount: float, at_s: float) -> float:
        over = self._counted(at_s) + min(amount, self._most) - self._most
        if over <= _ROUNDING:
            return 0.0
        gone = self._sums[self._left(at_s) - 1] + over
        return self._leaves_s[bisect_left(self._sums, gone - _ROUNDING)] - at_s

    def take(self, amount: float, at_s: float) -> None:
        # Amounts that left are forgotten rarely, and half of all at least: a list moves all that stays.
        rest = self._left(at_s) - 1
        if rest >= max(_FORGET, len(self._sums) // 2):
            gone = self._sums[rest]
            self._leaves_s = self._leaves_s[rest:]
            self._sums = [total - gone for total in self._sums[rest:]]
        self._leaves_s.append(at_s + self._window_s * max(1.0, amount / self._most))
        self._sums.append(self._sums[-1] + amount)

    def allowance(self, at_s: float) -> ToldAllowance:
        counted = self._counted(at_s)
        return ToldAllowance(
            per_minute=self._per_minute,
            remaining=max(0.0, self._most - counted),
            reset_s=self._leaves_s[-1] - at_s if counted else 0.0,
        )

    def _counted(self, at_s: float) -> float:
        return self._sums[-1] - self._sums[self._left(at_s) - 1]

    def _left(self, at_s: float) -> int:
        """Return how many amounts count no more; at least one, since nothing is admitted at the start."""
        return bisect_right(self._leaves_s, at_s + _INSTANT_S)


# ── by name ──────────────────────────────────────────────────────────────────────────────────

Limiter = TokenBucket | FixedWindow | SlidingWindow  # one limit on one quantity, by a clock in seconds
Made = Callable[[float, float, float], Limiter]  # a minute's limit, the burst and the time, seconds


def _bucket(per_minute: float, burst_s: float, at_s: float) -> Limiter:
    return TokenBucket(per_minute, burst_s=burst_s, at_s=at_s)


WITH_BURST: Mapping[str, Made] = {"token_bucket": _bucket, "gcra": _bucket}
# Windows begin when the clock says so, whoever comes. Quanta are a sixtieth of the limit in each second, as
# providers say they may enforce it.
LIMIT_MODELS: Mapping[str, Made] = {
    **WITH_BURST,
    "fixed_window": lambda per_minute, _burst_s, _at_s: FixedWindow(per_minute, at_s=0.0),
    "sliding_window": lambda per_minute, _burst_s, _at_s: SlidingWindow(per_minute),
    "quanta": lambda per_minute, _burst_s, _at_s: FixedWindow(per_minute, at_s=0.0, window_s=SECOND_S),
}


# ── together ─────────────────────────────────────────────────────────────────────────────────


class ServedLimits:
    """All limits of one model, by what they count: a request passes all of them or is charged to none."""

    def __init__(self, limiters: Mapping[str, Limiter]) -> None:
        self._limiters = limiters

    def admit(self, cost: Mapping[str, float], at_s: float) -> float:
        """Charge a request that costs `cost` of each quantity, or return the seconds to wait; 0: admitted."""
        waits_s = (limiter.wait_s(cost[what], at_s) for what, limiter in self._limiters.items())
        wait_s = max(waits_s, default=0.0)
        if wait_s == 0:
            for what, limiter in self._limiters.items():
                limiter.take(cost[what], at_s)
        return wait_s

    def allowances(self, at_s: float) -> dict[str, ToldAllowance]:
        """Return the rest of each quantity."""
        return {what: limiter.allowance(at_s) for what, limiter in self._limiters.items()}


# ── first come, first served. Times are those of the theory of queues, however late the event loop is ────


# By name: a draw whose mean is 1. Only a lognormal has a sigma.
SERVICES: Mapping[str, Callable[[Random, float], float]] = {
    "fixed": lambda _random, _sigma: 1.0,
    "exponential": lambda random, _sigma: -math.log(1.0 - random.random()),
    "lognormal": lambda random, sigma: math.exp(sigma * random.gauss(0, 1) - sigma**2 / 2),
}


@dataclass(frozen=True, slots=True)
class Freeze:
    """A time in which a server stands still: nothing begins, and nothing goes on."""

    from_s: float = math.inf
    seconds: float = 0.0

    def begun_s(self, at_s: float) -> float:
        """Return when work begins that could begin at a time."""
        return max(at_s, self.from_s + self.seconds) if at_s >= self.from_s else at_s

    def since(self, at_s: float) -> "Freeze":
        """Return the same by a clock that begins at a time."""
        return Freeze(self.from_s - at_s, self.seconds)

    def done_s(self, begun_s: float, work_s: float) -> float:
        """Return when work ends that begins at a time and takes so long."""
        stands = begun_s < self.from_s < begun_s + work_s
        return begun_s + work_s + (self.seconds if stands else 0.0)


NEVER: Final = Freeze()


@dataclass(slots=True, eq=False)
class Job:
    """One call in a queue."""

    arrived_s: float
    service_s: float
    started_s: float | None = None  # None: it waits
    done_s: float = math.inf
    abandoned: bool = False  # before it was served


class ServiceQueue:
    """Jobs and the slots that serve them. Times are seconds of a clock that never goes back."""

    def __init__(self, slots: int | None, freeze: Freeze) -> None:
        self._slots = math.inf if slots is None else slots
        self._freeze = freeze
        self._waiting: deque[Job] = deque()
        self._done_s: list[float] = []  # a heap: when each slot is free that was ever used

    def arrive(self, service_s: float, at_s: float) -> Job:
        """Return a job that is the last in the queue; `begin` may serve it at once."""
        job = Job(at_s, service_s)
        self._waiting.append(job)
        return job

    def leave(self, job: Job, at_s: float) -> None:
        """Let go of a job that nobody waits for any more; its slot is free for the next."""
        if job.started_s is None:
            job.abandoned = True
        elif at_s < job.done_s and self._slots < math.inf:
            self._done_s.remove(job.done_s)
            job.done_s = max(at_s, job.started_s)
            self._done_s.append(job.done_s)
            heapify(self._done_s)

    @property
    def next_s(self) -> float | None:
        """The time at which the first waiting call is served, as far as is known, or None if nobody waits."""
        while self._waiting and self._waiting[0].abandoned:
            self._waiting.popleft()
        if not self._waiting:
            return None
        free_s = self._done_s[0] if len(self._done_s) >= self._slots else -math.inf
        return self._freeze.begun_s(max(self._waiting[0].arrived_s, free_s))

    def begin(self, at_s: float) -> list[Job]:
        """Serve whoever is served by a time; return them in order."""
        begun = []
        while (started_s := self.next_s) is not None and started_s <= at_s:
            job = self._waiting.popleft()
            job.started_s, job.done_s = started_s, self._freeze.done_s(started_s, job.service_s)
            if len(self._done_s) >= self._slots:
                heappop(self._done_s)
            if self._slots < math.inf:
                heappush(self._done_s, job.done_s)
            begun.append(job)
        return begun


class ServiceLine:
    """A queue on an event loop. What is frozen counts from now."""

    def __init__(self, slots: int | None, *, freeze_at_s: float = 0.0, freeze_s: float = 0.0) -> None:
        self._loop = asyncio.get_running_loop()
        self.freeze = Freeze(self._loop.time() + freeze_at_s, freeze_s) if freeze_s else NEVER
        self._queue = ServiceQueue(slots, self.freeze)
        self._waits: dict[Job, asyncio.Future[float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, service_s: float) -> Job:
        """Return a job that came now."""
        job = self._queue.arrive(service_s, self._loop.time())
        self._look()
        return job

    async def begun_s(self, job: Job) -> float:
        """Wait until a job is served; return since when it is."""
        if job.started_s is not None:
            return job.started_s
        self._waits[job] = self._loop.create_future()
        try:
            return await self._waits[job]
        finally:
            del self._waits[job]

    def leave(self, job: Job) -> None:
        """Let go of a job whose client is gone."""
        self._queue.leave(job, self._loop.time())
        self._look()

    def _look(self) -> None:
        for job in self._queue.begin(self._loop.time()):
            if (wait := self._waits.get(job)) is not None and not wait.done():
                wait.set_result(self._loop.time() if job.started_s is None else job.started_s)
        next_s = self._queue.next_s
        if self._timer is not None and self._timer.when() != next_s:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and next_s is not None:
            self._timer = self._loop.call_at(next_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self._look()
