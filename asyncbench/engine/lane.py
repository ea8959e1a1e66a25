"""One queue and its limits: when the trials of one rate-limit group are asked."""

import asyncio
import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from aiolimiter import AsyncLimiter

from asyncbench.engine import minutes
from asyncbench.engine.asker import Asker, Keep
from asyncbench.engine.limits import Gate, Wait
from asyncbench.engine.minutes import Minutes
from asyncbench.engine.slots import Slots
from asyncbench.engine.telemetry import LoopLag
from asyncbench.engine.throttle import Throttle
from asyncbench.engine.turn import Turn
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Limits, Reply

GROWTH: Final = 16  # more calls in flight than before, started in one turn of the event loop
RAMP_PER_S: Final = 1_000  # more calls in flight than before, each probably on a connection of its own
SHALLOWEST: Final = 32  # trials that wait in a queue, however few may be in flight
REMEMBERED: Final = 64  # starts of calls, to know how many a minute there are
FEW: Final = 4
SHARE_GROWS_S: Final = 1.0  # until a share of the slots may be one more
LONGEST_PAUSE_S: Final = 25 * 3600.0  # a day's limit is back by then; what takes longer is for another run
LONG_WAIT_S: Final = 600.0  # of a Retry-After: it is about the lane
WORTH_TELLING_S: Final = 60.0  # of a pause

_ONE_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
_BROKEN: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.SERVER_ERROR})


@dataclass(slots=True, kw_only=True)
class Lane:
    """The queue and limits of one model, or of all models of one group.

    `_dispatch` is the only one to acquire the lane's limits, so they are served first come first served. A
    failed attempt that is worth another try waits in a heap by its due time, holding no slot.
    """

    name: str
    askers: list[Asker]
    limits: Limits
    keep: Keep
    say: Callable[[str], None]  # to a person, once
    lag: LoopLag
    epoch_s: float  # UTC at zero of the loop's clock
    _retries: list[tuple[float, int, Asker, Turn]] = field(default_factory=list)  # a heap by due time
    _ties: Iterator[int] = field(default_factory=itertools.count)  # equal due times stay in order
    _throttle: Throttle = field(default_factory=Throttle)
    _in_flight: int = 0
    _highest: int = 0  # in flight so far
    _stopped: bool = False
    _starts: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))  # of the latest calls
    _answered: deque[float] = field(default_factory=lambda: deque(maxlen=4 * REMEMBERED))  # the latest
    _told_client_bound: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _admission: list[asyncio.Task[None]] = field(default_factory=list)
    _turns: deque[Asker] = field(init=False)  # whose turn it is
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock
    _gate: Gate = field(init=False)
    _slots: Slots = field(init=False)
    _ramp: AsyncLimiter = field(init=False)
    _minutes: Minutes = field(init=False)

    async def run(self) -> None:
        """Feed and dispatch until the sources are dry and every trial is closed, or until stopped."""
        self._get_ready()
        try:
            await self._work()
        finally:  # whatever ends it: what it did up to here is told
            self._close_minute()
        if not self._stopped:
            for asker in self.askers:
                asker.accept()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as in_flight:
            feeding = [
                in_flight.create_task(asker.feed(self._depth, self._changed.set), name=f"feed {self.name}")
                for asker in self.askers
            ]
            dispatching = in_flight.create_task(self._dispatch(in_flight), name=f"dispatch {self.name}")
            self._admission = [*feeding, dispatching]
            if self._stopped:
                self.stop()

    def stop(self) -> None:
        """Admit nothing more; what is in flight goes on to its end."""
        self._stopped = True
        for task in self._admission:
            task.cancel()

    def _get_ready(self) -> None:
        self._now_s = asyncio.get_running_loop().time
        self._gate = Gate(self.limits, at_s=self._now_s())
        self._slots = Slots(fixed=self.limits.concurrency)
        self._ramp = AsyncLimiter(RAMP_PER_S / 10, 0.1)
        self._turns = deque(self.askers)
        self._minutes = Minutes(self.name, epoch_s=self.epoch_s, at_s=self._now_s(), keep=self.keep)
        for asker in self.askers:
            asker.begin()

    def _depth(self) -> int:
        """Return how many trials of a model may wait: two rounds, so that none waits for the file."""
        return max(SHALLOWEST, 2 * self._slots.ceiling(limited=self._gate.limited, share=1.0))

    # ── dispatching ──────────────────────────────────────────────────────────────────────────

    async def _dispatch(self, in_flight: asyncio.TaskGroup) -> None:
        """Start attempts in order."""
        grown_to = GROWTH
        while found := await self._next_turn():
            asker, turn = found
            paid_for = turn.history.ended  # by a run that did not live to grade it
            if paid_for and paid_for.reply:
                await asker.close(turn, paid_for.attempt, paid_for.reply)
                asker.accept()
                continue
            await self._admit(asker, turn)
            if asker.suspended:
                continue
            self._start(asker, turn)
            in_flight.create_task(self._attempt(asker, turn))
            if self._in_flight >= grown_to:
                # Thousands started in one turn would hold up all else, and their answers come together too.
                grown_to = self._in_flight + GROWTH
                await asyncio.sleep(0)

    async def _next_turn(self) -> tuple[Asker, Turn] | None:
        """Return a retry that is due, else a fresh trial; None when every trial is closed."""
        while True:
            if self._throttle.closed and (fresh := self._fresh()):
                return fresh  # as a scout: what failed before shall not be used up
            due_in_s = self._retries[0][0] - self._now_s() if self._retries else None
            if due_in_s is not None and due_in_s <= 0:
                _, _, asker, turn = heapq.heappop(self._retries)
                if asker.suspended:
                    continue
                return asker, turn
            if fresh := self._fresh():
                return fresh
            if not self._in_flight and not self._retries and all(asker.exhausted for asker in self.askers):
                return None
            await self._change(minutes.WORK, within_s=due_in_s)

    def _fresh(self) -> tuple[Asker, Turn] | None:
        """Return the next trial that was not asked yet; the models of a group take turns."""
        depth = self._depth()
        if len(self._retries) >= 2 * depth:
            return None  # when most calls fail, fresh trials would only lengthen the queue of the failed
        for _ in self.askers:
            asker = self._turns[0]
            self._turns.rotate(-1)
            if asker.ready:
                return asker, asker.take(depth)
        return None

    async def _admit(self, asker: Asker, turn: Turn) -> None:
        """Wait until a call may be made, by every limit at once."""
        turn.reserved = asker.amounts(turn)
        while not asker.suspended and (wait := self._obstacle(turn)):
            await self._change(wait.limit, within_s=wait.seconds)
        self._gate.take(turn.reserved, self._now_s())
        if self._in_flight >= self._highest:
            self._highest += 1
            if not self._ramp.has_capacity():
                began_s = self._now_s()
                await self._ramp.acquire()
                self._minutes.waited(minutes.RAMP, self._now_s() - began_s)
            else:
                await self._ramp.acquire()

    def _obstacle(self, turn: Turn) -> Wait | None:
        """Return what keeps a call from starting now, and for how long at most; None: nothing."""
        at_s = self._now_s()
        if not self._throttle.admits(at_s):
            return Wait(self._throttle.wait_s(at_s), minutes.PAUSE)
        if self.lag.late:
            self._client_bound()
            return Wait(self.lag.interval_s, minutes.CLIENT)
        share = self._throttle.share(at_s)
        if self._in_flight >= self._slots.ceiling(limited=self._gate.limited, share=share):
            self._slots.full()
            return Wait(math.inf if share == 1.0 else SHARE_GROWS_S, minutes.CONCURRENCY)
        self._gate.use(share, at_s)
        if self._gate.guessed and self._throttle.recovered(at_s):
            self._gate.doubt_guess(at_s)
            self._throttle.start_over(at_s)
        return self._gate.wait(turn.reserved, at_s)

    def _client_bound(self) -> None:
        for asker in self.askers:
            asker.counters.client_bound = True
        if not self._told_client_bound:
            self._told_client_bound = True
            self.say(
                f"{self.name}: client-bound: this machine is late by {self.lag.now_s:.1f} s, so fewer calls "
                "are started; a lower concurrency, or fewer models at once, would be no slower"
            )

    def _start(self, asker: Asker, turn: Turn) -> None:
        self._in_flight += 1
        asker.counters.in_flight += 1
        turn.in_flight = self._in_flight
        self._starts.append(self._now_s())
        turn.scouts = self._throttle.scouting = self._throttle.closed
        self._minutes.admitted(self._in_flight)

    async def _change(self, cause: str, *, within_s: float | None) -> None:
        """Wait for news, and no longer than `within_s`; put the time down to `cause`."""
        began_s = self._now_s()
        left_s = self._minutes.left_s(began_s)
        self._changed.clear()
        try:
            async with asyncio.timeout(left_s if within_s is None else min(within_s, left_s)):
                await self._changed.wait()
        except TimeoutError:
            pass  # it is time to look again
        at_s = self._now_s()
        self._minutes.waited(cause, at_s - began_s)
        if at_s >= began_s + left_s:
            self._close_minute()

    def _close_minute(self) -> None:
        at_s = self._now_s()
        self._minutes.close(
            at_s, self._gate.in_force(), self._throttle.share(at_s), in_flight=self._in_flight
        )

    # ── one attempt ──────────────────────────────────────────────────────────────────────────

    async def _attempt(self, asker: Asker, turn: Turn) -> None:
        """Make one call; a retry goes to the heap, anything else closes the trial."""
        try:
            attempt, ended = await asker.call(turn)
        finally:
            self._in_flight -= 1
            asker.counters.in_flight -= 1
            self._changed.set()
        self._settle(asker, turn, ended)
        if isinstance(ended, Reply):
            self._slots.answered(attempt.latency_s or 0.0)
            await asker.close(turn, attempt, ended)
        else:
            self._fail(asker, turn, ended)

    def _settle(self, asker: Asker, turn: Turn, ended: Reply | ProviderError) -> None:
        """Put the limits right by what a call used, what its response told, and whether it was refused."""
        at_s = self._now_s()
        used = asker.used(turn, ended)
        self._gate.settle(turn.reserved, used, at_s)
        self._minutes.settled(used)
        for allowance in ended.allowances:
            if news := self._gate.follow(allowance, at_s):
                self.say(f"{self.name}: {news}")
        self._judge(turn, ended, at_s)
        if not self._minutes.left_s(at_s):
            self._close_minute()

    def _judge(self, turn: Turn, ended: Reply | ProviderError, at_s: float) -> None:
        """Take in whether a call was one too many, came to nothing, or was answered, be it with a refusal."""
        throttle = self._throttle
        kind = ended.kind if isinstance(ended, ProviderError) else None
        wait_s = ended.retry_after_s if isinstance(ended, ProviderError) else None
        if kind in _ONE_TOO_MANY:
            self._minutes.refused()
            self._slow_down(at_s)
        if turn.scouts and kind in _ONE_TOO_MANY | _BROKEN:
            throttle.scouted_in_vain(at_s, wait_s=wait_s)
        elif turn.scouts:
            throttle.scouted(at_s)
            self._highest = self._in_flight
        elif kind in _ONE_TOO_MANY and (wait_s or 0.0) > LONG_WAIT_S:
            self._paused(throttle.close(at_s, wait_s=wait_s), ended, at_s)  # nobody means one call by that
        elif kind in _ONE_TOO_MANY:
            per_s = self._per_s(at_s)
            self._paused(throttle.refused(turn.sent_s, at_s, wait_s=wait_s, per_s=per_s), ended, at_s)
        elif kind in _BROKEN:
            self._paused(throttle.broke(turn.sent_s, at_s, wait_s=wait_s), ended, at_s)
        else:
            throttle.answered(turn.sent_s, at_s)
        if kind not in _ONE_TOO_MANY | _BROKEN:
            self._answered.append(at_s)
        turn.scouts = False

    def _slow_down(self, at_s: float) -> None:
        """Where no limit is known, take the rate of the latest calls for one: a share of it can be taken."""
        if not self._gate.limited and not self._gate.guessed and len(self._starts) > FEW:
            self._gate.guess(self._per_s(at_s) * 60, at_s)

    def _guess_again(self, at_s: float) -> None:
        """Where even a small share of a guessed limit ended in a pause, guess by what was answered lately."""
        answered = sum(1 for answered_s in self._answered if answered_s > at_s - minutes.MINUTE_S)
        self._gate.guess(max(1.0, float(answered)), at_s)
        self._throttle.start_over(at_s)

    def _per_s(self, at_s: float) -> float:
        """Return how many calls a second started lately."""
        return len(self._starts) / max(at_s - self._starts[0], 1.0) if self._starts else 0.0

    def _paused(self, begins: bool, error: Reply | ProviderError, at_s: float) -> None:
        """Tell of a long pause; give up where it is longer than a run should wait."""
        if not begins or not isinstance(error, ProviderError):
            return
        if self._gate.guessed:
            self._guess_again(at_s)
        told_s = error.retry_after_s or 0.0
        if told_s > LONGEST_PAUSE_S:
            for asker in self.askers:
                asker.suspend(f"{error.kind.value}: to wait {told_s / 3600:,.0f} hours; {error.message}")
                self._forget(asker)
        elif told_s >= WORTH_TELLING_S:
            self.say(
                f"{self.name}: paused: the provider asks to wait {told_s:,.0f} s ({error.message}); one call "
                f"sees in {self._throttle.scout_s - at_s:,.0f} s whether it is over"
            )

    def _fail(self, asker: Asker, turn: Turn, error: ProviderError) -> None:
        wait_s = asker.failed(turn, error, paused=self._throttle.closed)
        if wait_s is not None:
            heapq.heappush(self._retries, (self._now_s() + wait_s, next(self._ties), asker, turn))
        if asker.suspended:
            self._forget(asker)
        self._changed.set()

    def _forget(self, asker: Asker) -> None:
        """Leave what a suspended model was to be asked again for a later run."""
        self._retries = [entry for entry in self._retries if entry[2] is not asker]
        heapq.heapify(self._retries)
