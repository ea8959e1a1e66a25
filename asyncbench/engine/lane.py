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
from asyncbench.engine.budget import Account
from asyncbench.engine.holds import Pause, Wait
from asyncbench.engine.limits import Gate
from asyncbench.engine.minutes import Minutes
from asyncbench.engine.pressure import BROKEN_OFF, ONE_TOO_MANY, Pressure
from asyncbench.engine.slots import FIRST, Slots
from asyncbench.engine.telemetry import LoopLag
from asyncbench.engine.throttle import Throttle
from asyncbench.engine.turn import ONE_CALL, Turn
from asyncbench.errors import ErrorKind, ProviderError, UnwrittenError
from asyncbench.records import Limits, Reply

GROWTH: Final = 16  # more calls in flight than before, started in one turn of the event loop
RAMP_PER_S: Final = 1_000  # more calls in flight than before, each probably on a connection of its own
SHALLOWEST: Final = 32  # trials that wait in a queue, however few may be in flight
MOST_WAITING: Final = 1_000  # trials of a model that wait to be tried again
SHARE_GROWS_S: Final = 1.0  # until a share of the slots may be one more
WORTH_BLAMING_S: Final = 5.0  # lost to our own event loop
TOLD_FOR_S: Final = 600.0  # pauses of one cause: a person need not hear of each
AWAY_S: Final = 60.0  # of a wait: others who share a budget go on without this lane


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
    _client_s: float = 0.0  # lost to our own event loop
    _short: list[Account] = field(default_factory=list)  # for whose next trials money has to come back
    _away: bool = False  # waits for long
    _told_s: dict[str, float] = field(default_factory=dict)  # by the cause of a pause: when it was told last
    _told_strain: bool = False  # that answers break off
    _bound: bool = False  # by a limit a minute, at any time
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _admission: list[asyncio.Task[None]] = field(default_factory=list)
    _turns: deque[Asker] = field(init=False)  # whose turn it is
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock
    _gate: Gate = field(init=False)
    _pressure: Pressure = field(init=False)
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
        self._pressure = Pressure(
            askers=self.askers, gate=self._gate, throttle=self._throttle, tell=self._tell_pause
        )
        self._slots = Slots(fixed=self.limits.concurrency, most=self.limits.most)
        self._ramp = AsyncLimiter(RAMP_PER_S / 10, 0.1)
        self._turns = deque(self.askers)
        self._minutes = Minutes(self.name, epoch_s=self.epoch_s, at_s=self._now_s(), keep=self.keep)
        for asker in self.askers:
            asker.begin()

    def _depth(self) -> int:
        """Return how many trials of a model may wait: two rounds, so that none waits for the file."""
        return max(SHALLOWEST, 2 * self._slots.ceiling(limited=self._limited, share=1.0))

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
            if not await self._admit(asker, turn):
                if not asker.suspended:
                    asker.skip(turn)
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
                asker.waiting -= 1
                if not asker.narrow and self._affords(asker, turn):
                    return asker, turn
                asker.put_back(turn)  # it is the next of its model when it may be asked
                continue
            if fresh := self._fresh():
                return fresh
            if not self._in_flight and not self._retries and all(asker.exhausted for asker in self.askers):
                return None
            await self._change(self._nothing_due(), within_s=self._look_again_s(due_in_s))

    def _nothing_due(self) -> str:
        """Return why there is nothing to ask now; where it is money, whoever settles wakes this lane."""
        for account in self._short:
            account.ledger.wake_on_change(self._changed.set)
        if self._short:
            return minutes.BUDGET
        held = [asker for asker in self.askers if asker.queue and not asker.suspended]
        if any(asker.narrow for asker in held):
            return minutes.FIRST_ANSWER
        return minutes.RETRIES if held else minutes.WORK

    def _affords(self, asker: Asker, turn: Turn) -> bool:
        """Whether there is money for a call; where there never will be, the model's retries are left."""
        if asker.account is None:
            return True
        affords = asker.affords(turn)
        if asker.over:
            self._forget(asker)
        elif not affords:
            self._short.append(asker.account)
        return affords

    def _look_again_s(self, due_in_s: float | None) -> float | None:
        """Return the seconds until a retry is due, or a model of a group may be asked again."""
        at_s = self._now_s()
        holds = [asker.not_before_s - at_s for asker in self.askers if asker.not_before_s > at_s]
        holds += [
            asker.probation.wider_s(at_s) - at_s for asker in self.askers if asker.queue and asker.narrow
        ]
        return min([*holds, *([] if due_in_s is None else [due_in_s])], default=None)

    def _fresh(self) -> tuple[Asker, Turn] | None:
        """Return the next trial that was not asked yet; the models of a group take turns."""
        self._short.clear()
        depth = self._depth()
        most_waiting = max(MOST_WAITING, 2 * depth)  # more would only lengthen the queue of the failed
        for _ in self.askers:
            asker = self._turns[0]
            self._turns.rotate(-1)
            if not asker.ready or asker.waiting >= most_waiting:
                continue
            if self._affords(asker, asker.queue[0]) or (asker.over and asker.queue):
                return asker, asker.take(depth)
        return None

    async def _admit(self, asker: Asker, turn: Turn) -> bool:
        """Wait until a call may be made, by every limit at once; return whether it is to be made."""
        while not _given_up(asker, turn) and (wait := self._obstacle(asker, turn)):
            self._leave(away=AWAY_S < wait.seconds < math.inf)
            await self._change(wait.limit, within_s=wait.seconds)
        self._leave(away=False)
        if not _given_up(asker, turn) and self._in_flight >= self._highest:
            self._highest += 1
            began_s = self._now_s()
            await self._ramp.acquire()
            self._minutes.waited(minutes.RAMP, self._now_s() - began_s)
        if _given_up(asker, turn) or not asker.reserve(turn):
            return False  # and takes nothing of what the others of its group may use
        self._gate.take(turn.reserved, self._now_s())
        return True

    def _leave(self, *, away: bool) -> None:
        """Tell those who share a budget whether they should wait for the models of this lane."""
        if away == self._away:
            return
        self._away = away
        for asker in self.askers:
            asker.away = away
            if asker.account is not None:
                asker.account.ledger.changed()

    def _obstacle(self, asker: Asker, turn: Turn) -> Wait | None:
        """Return what keeps a call from starting now, and for how long at most; None: nothing."""
        at_s = self._now_s()
        if not self._throttle.admits(at_s):
            return Wait(self._throttle.wait_s(at_s), minutes.PAUSE)
        if self.lag.late:
            return Wait(self.lag.interval_s, minutes.CLIENT)
        share = self._throttle.share(at_s)
        if self._in_flight >= self._slots.ceiling(limited=self._limited, share=share):
            self._slots.full()
            return Wait(math.inf if share == 1.0 else SHARE_GROWS_S, minutes.CONCURRENCY)
        if self._in_flight >= FIRST and self._gate.counts_tokens and asker.guesses(turn):
            return Wait(math.inf, minutes.CONCURRENCY)  # replies may be a hundred times as long as guessed
        self._gate.use(share, at_s)
        self._pressure.raise_guess(share, at_s)
        # Looked at again at every wait: a limit of tokens may have been told in the meantime.
        turn.reserved = asker.amounts(turn) if self._gate.counts_tokens else ONE_CALL
        wait = self._gate.wait(turn.reserved, at_s)
        self._bound |= wait is not None
        return wait

    @property
    def _limited(self) -> bool:
        """Whether limits a minute say how much may be asked: the sweep's own, or told ones that were felt."""
        return self._gate.configured or (self._gate.limited and self._bound)

    def _client_bound(self, seconds: float) -> None:
        """Say, once it has cost enough, that this machine is what holds the lane back."""
        before_s, self._client_s = self._client_s, self._client_s + seconds
        if before_s < WORTH_BLAMING_S <= self._client_s:
            for asker in self.askers:
                asker.counters.client_bound = True
            self.say(
                f"{self.name}: client-bound: this machine is late by {self.lag.now_s:.1f} s, so fewer calls "
                "are started; a lower concurrency, or fewer models at once, would be no slower"
            )

    def _start(self, asker: Asker, turn: Turn) -> None:
        self._in_flight += 1
        asker.counters.in_flight += 1
        turn.in_flight = self._in_flight
        self._pressure.started(self._now_s())
        asker.probation.started(self._now_s())
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
        finally:
            at_s = self._now_s()
            self._minutes.waited(cause, at_s - began_s)
            if cause == minutes.CLIENT:
                self._client_bound(at_s - began_s)
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
        except UnwrittenError:
            return  # the trial stays open; whoever keeps the events has stopped the lanes
        finally:
            self._in_flight -= 1
            asker.counters.in_flight -= 1
            self._changed.set()
        self._settle(asker, turn, ended)
        if isinstance(ended, Reply):
            if self._slots.strain.bound == math.inf:
                self._slots.answered(attempt.latency_s or 0.0)
            await asker.close(turn, attempt, ended)
        else:
            self._fail(asker, turn, ended)

    def _settle(self, asker: Asker, turn: Turn, ended: Reply | ProviderError) -> None:
        """Put the limits right by what a call used, what its response told, and whether it was refused."""
        at_s = self._now_s()
        if isinstance(ended, ProviderError) and ended.kind is ErrorKind.RATE_LIMITED:
            self._gate.refuse(turn.reserved, at_s)
        else:
            used = asker.used(turn, ended)
            self._gate.settle(turn.reserved, used, at_s)
            self._minutes.settled(used)
        self._follow(turn, ended, at_s)
        for news in asker.news():
            self.say(f"{asker.model.alias}: {news}")
        if isinstance(ended, ProviderError) and ended.kind in ONE_TOO_MANY:
            self._minutes.refused()
            self._pressure.heed(asker, ended, at_s)
        paused = self._throttle.closed
        if not paused:
            self._strain(turn, ended, at_s)
        self._pressure.judge(turn, ended, at_s, in_flight=self._in_flight)
        if paused and not self._throttle.closed:
            self._highest = self._in_flight
        if not self._minutes.left_s(at_s):
            self._close_minute()

    def _strain(self, turn: Turn, ended: Reply | ProviderError, at_s: float) -> None:
        """Take in whether an answer broke off: with fewer calls in flight it may not."""
        kind, strain = ended.kind if isinstance(ended, ProviderError) else None, self._slots.strain
        if kind in ONE_TOO_MANY:
            return
        strain.ended(turn.sent_s, at_s, in_flight=turn.in_flight, broke=kind in BROKEN_OFF)
        if strain.bound < math.inf and not self._told_strain:
            self._told_strain = True
            self.say(
                f"{self.name}: answers break off with {turn.in_flight:,} calls in flight; fewer are tried, "
                "and more again if that does not help or is not needed any more"
            )

    def _follow(self, turn: Turn, ended: Reply | ProviderError, at_s: float) -> None:
        """Follow what a response told of the provider's limits."""
        if isinstance(ended, Reply):
            self._gate.admitted(turn.sent_s)
        retry_after_s = ended.retry_after_s if isinstance(ended, ProviderError) else None
        for told in ended.allowances:
            if pause := self._gate.hold(told, at_s, sent_s=turn.sent_s, retry_after_s=retry_after_s):
                self._tell_pause(pause)
            if news := self._gate.follow(told, at_s):
                self.say(f"{self.name}: {news}")

    def _tell_pause(self, pause: Pause) -> None:
        """Write a long pause down; tell a person of it, unless that was done lately."""
        at_s = self._now_s()
        self._minutes.paused(pause.why)
        if at_s >= self._told_s.get(pause.cause, -math.inf) + TOLD_FOR_S:
            self._told_s[pause.cause] = at_s
            self.say(f"{self.name}: paused: {pause.why}")

    def _fail(self, asker: Asker, turn: Turn, error: ProviderError) -> None:
        wait_s = asker.failed(turn, error, paused=self._throttle.closed)
        if wait_s is not None:
            asker.waiting += 1
            heapq.heappush(self._retries, (self._now_s() + wait_s, next(self._ties), asker, turn))
        for left in self.askers:
            if left.over and left.waiting:
                self._forget(left)
        self._changed.set()

    def _forget(self, asker: Asker) -> None:
        """Leave what a suspended model was to be asked again for a later run."""
        self._retries = [entry for entry in self._retries if entry[2] is not asker]
        heapq.heapify(self._retries)
        asker.waiting = 0


def _given_up(asker: Asker, turn: Turn) -> bool:
    """Whether a call that waits for its limits will not be made any more."""
    return asker.suspended or asker.needless(turn)
