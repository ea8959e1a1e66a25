"""A queue in front of a number of slots: first come, first served.

`ServiceQueue` is pure: whoever asks says what time it is. `ServiceLine` asks it by the clock of an event
loop. All times are exact, however late the loop looks at them: a queue is no slower than the theory of it.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final


def _lognormal(random: Random, sigma: float) -> float:
    return math.exp(sigma * random.gauss(0, 1) - sigma**2 / 2)


# By name: a draw whose mean is 1. Only a lognormal has a sigma.
SERVICES: Mapping[str, Callable[[Random, float], float]] = {
    "fixed": lambda _random, _sigma: 1.0,
    "exponential": lambda random, _sigma: -math.log(1.0 - random.random()),
    "lognormal": _lognormal,
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
    left: bool = False  # before it was served


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
            job.left = True
        elif at_s < job.done_s and self._slots < math.inf:
            self._done_s.remove(job.done_s)
            job.done_s = max(at_s, job.started_s)
            self._done_s.append(job.done_s)
            heapify(self._done_s)

    @property
    def next_s(self) -> float | None:
        """The time at which the first that waits is served, as far as is known; None: nobody waits."""
        while self._waiting and self._waiting[0].left:
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
