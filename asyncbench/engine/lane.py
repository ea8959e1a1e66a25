"""A lane: the queue and limits of one model or group, and the loop that starts its calls.

The way of a trial is `TrialQueue.feed`, `Lane._dispatch`, `Lane._attempt`: read, taken in its turn, asked.
"""

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from aiolimiter import AsyncLimiter

from asyncbench.engine.admission import Admission
from asyncbench.engine.budget import Account
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.limits import Amounts
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.telemetry import Minutes
from asyncbench.errors import LostCallError, ProviderError, UnsentError, UnwrittenError
from asyncbench.records import Limits, Reply, waits

GROWTH: Final = 16  # more calls in flight than before, started in one turn of the event loop
RAMP_PER_S: Final = 1_000  # more calls in flight than before, each probably on a connection of its own
MOST_WAITING: Final = 1_000  # trials of a model that wait to be tried again
WORTH_BLAMING_S: Final = 5.0  # lost to our own event loop
OF_LIMITS: Final = {*Amounts._fields, waits.CONCURRENCY}  # of which a share may be used after refusals
AWAY_S: Final = 60.0  # of a wait: others who share a budget go on without this lane


@dataclass(slots=True, kw_only=True)
class Lane:
    """The queue and limits of one model, or of all models of one group.

    `_dispatch` alone takes of the lane's limits, so calls are served in the order in which they come. A
    failed attempt that is worth another try waits in a heap by its due time, and holds no slot.
    """

    name: str
    clients: list[ModelClient]
    limits: Limits
    notify: Callable[[str], None]  # to a person, once
    serial_group: str | None = None  # lanes of the same one run in turn; None: it waits for no other
    taken_until_s: list[float] = field(default_factory=list)  # slots, by calls of a process that died
    held_s: Callable[[], float] = float  # for how long nothing may start: nobody is there to make a call
    # A heap by due time.
    _retries: list[tuple[float, int, LaneModel, PendingTrial]] = field(default_factory=list)
    _ties: Iterator[int] = field(default_factory=itertools.count)  # equal due times stay in order
    _stopped: bool = False
    _client_s: float = 0.0  # lost to our own event loop
    _short: list[Account] = field(default_factory=list)  # for whose next trials money has to come back
    _away: bool = False  # waits for long
    runs: bool = False  # it has an `admission`
    _paused_s: float = 0.0  # when it was paused
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _intake: list[asyncio.Task[None]] = field(default_factory=list)
    _models: list[LaneModel] = field(init=False)
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock
    admission: Admission = field(init=False)
    _ramp: AsyncLimiter = field(init=False)
    _minutes: Minutes = field(init=False)

    async def run(self) -> None:
        """Feed and dispatch until the sources are dry and every trial is closed, or until stopped."""
        self._now_s = asyncio.get_running_loop().time
        self._paused_s, self.runs = self._now_s(), True
        self._ramp = AsyncLimiter(RAMP_PER_S / 10, 0.1)
        self._models = [LaneModel(client) for client in self.clients]
        client = self.clients[0]
        self._minutes = Minutes(
            self.name, epoch_s=client.epoch_s, at_s=self._now_s(), keep=client.records.keep
        )
        self.admission = Admission(
            name=self.name,
            models=self._models,
            limits=self.limits,
            lag=client.lag,
            minutes=self._minutes,
            notify=self.notify,
            now_s=self._now_s,
            held_s=self.held_s,
            taken_until_s=self.taken_until_s,
        )

        try:
            async with asyncio.TaskGroup() as tasks:
                for model in self._models:
                    feeding = model.queue.feed(self.admission.depth, self._changed.set)
                    self._intake.append(tasks.create_task(feeding, name=f"feed {self.name}"))
                dispatching = self._dispatch(tasks)
                self._intake.append(tasks.create_task(dispatching, name=f"dispatch {self.name}"))
                if self._stopped:
                    self.stop()
        finally:  # however it ends, its last minute is written down
            self.runs = False
            self.admission.close_minute()
        if not self._stopped:
            for model in self._models:
                model.closing.accept()

    def stop(self) -> None:
        """Admit nothing more; what is in flight goes on to its end."""
        self._stopped = True
        for task in self._intake:
            task.cancel()

    @property
    def steered(self) -> Self:
        """Its limits can be set."""
        return self

    def note(self, change: str) -> None:
        """Write down what a person changes, before it is."""
        self._minutes.changes.append(change)
        self.admission.close_minute()

    def limits_in_force(self) -> Mapping[str, float]:
        """Return its limits a minute: as set or told, and the fraction of it."""
        if self.runs:
            return self.admission.gate.limits_in_force()
        per_minute = self.limits.per_minute.items()
        return {what: limit * self.limits.fraction for what, limit in per_minute if limit}

    def set_limits(self, limits: Limits) -> None:
        """Set other limits."""
        self.limits = limits
        if self.runs:
            self.admission.set_limits(limits)
            self._changed.set()

    def apply_pause(self) -> None:
        """Apply `Counters.paused` of its models, which has changed."""
        if not self.runs:
            return
        at_s = self._now_s()
        sat_out_s, self._paused_s = at_s - self._paused_s, at_s
        if not self.clients[0].counters.paused:
            self.admission.sit_out(sat_out_s)
            waiting = (pending for *_, pending in self._retries)
            for pending in itertools.chain(waiting, *(model.queue.pending for model in self._models)):
                pending.since_s += sat_out_s  # the time for its retries stood still
        self._changed.set()

    # ── Calls ────────────────────────────────────────────────────────────────────────────────────

    async def _dispatch(self, in_flight: asyncio.TaskGroup) -> None:
        """Start attempts in order."""
        grown_to = GROWTH
        while model := await self._next():
            pending = model.queue.pending.popleft()
            paid_for = pending.history.ended  # by a run that did not live to grade it
            if paid_for and paid_for.reply:
                await model.closing.close(pending, paid_for.attempt, paid_for.reply)
                continue
            if not await self._admit(model, pending):
                if model.counters.suspended is None:
                    model.queue.skip(pending)
                continue
            self.admission.start(model, pending)
            in_flight.create_task(self._attempt(model, pending))
            if self.admission.in_flight >= grown_to:
                # Thousands started in one turn would hold up all else, and their answers come together too.
                grown_to = self.admission.in_flight + GROWTH
                await asyncio.sleep(0)

    async def _attempt(self, model: LaneModel, pending: PendingTrial) -> None:
        """Make one call; a retry goes to the heap, anything else closes the trial."""
        attempts = model.attempts
        ended: Reply | ProviderError
        try:
            attempts.begin(pending)
            try:
                async with asyncio.timeout(attempts.within_s):
                    ended = await model.client.calls.ask(pending.request)
            except asyncio.CancelledError:
                attempts.end(pending, None)
                raise
            except (LostCallError, UnsentError):
                raise
            except Exception as error:  # it concerns this reply alone: the other calls go on
                ended = attempts.failure(pending, error)
            attempt = attempts.end(pending, ended)
        except (LostCallError, UnsentError) as lost:
            if pending.is_probe:
                self.admission.throttle.lose_probe(self._now_s())
            model.lose(pending, lost)
            return
        except UnwrittenError:
            return  # the trial stays open; whoever keeps the events has stopped the lanes
        finally:
            self.admission.in_flight -= 1
            model.counters.in_flight -= 1
            self._changed.set()
        self.admission.settle(model, pending, attempt, ended)
        if isinstance(ended, Reply):
            await model.closing.close(pending, attempt, ended)
            return
        wait_s = model.closing.failed(pending, ended, paused=self.admission.throttle.closed)
        if wait_s is not None:
            model.waiting += 1
            heapq.heappush(self._retries, (self._now_s() + wait_s, next(self._ties), model, pending))
        for lane_model in self._models:
            if lane_model.counters.over and lane_model.waiting:
                self._forget(lane_model)
        self._changed.set()

    # ── The next trial ───────────────────────────────────────────────────────────────────────────

    async def _next(self) -> LaneModel | None:
        """Return the model whose next trial is to be asked; None when every trial is closed."""
        while True:
            if self.admission.throttle.closed and (fresh := self._next_fresh()):
                return fresh  # as a probe: what failed before shall not be used up
            due_in_s = self._retries[0][0] - self._now_s() if self._retries else math.inf
            if due_in_s <= 0:
                _, _, model, pending = heapq.heappop(self._retries)
                model.waiting -= 1
                model.queue.put_back(pending)  # it is the next of its model, as soon as that may be asked
                if not model.counters.over and not model.narrow and self._affords(model, pending):
                    return model
                continue
            if fresh := self._next_fresh():
                return fresh
            idle = not self.admission.in_flight and not self._retries
            if idle and all(model.exhausted for model in self._models):
                return None

            # There is nothing to ask now. Where money is short, whoever settles wakes this lane.
            for account in self._short:
                account.ledger.wake_on_change(self._changed.set)
            waiting = [model for model in self._models if model.queue.pending]
            if self._short:
                cause = waits.BUDGET
            elif any(model.narrow for model in waiting):
                cause = waits.FIRST_ANSWER
            else:
                cause = waits.RETRIES if waiting else waits.WORK
            await self._wait_for_change(cause, within_s=min(due_in_s, self._ready_in_s()))

    def _next_fresh(self) -> LaneModel | None:
        """Return a model that may be asked a trial that was not asked yet; those of a group take turns."""
        self._short.clear()
        depth = self.admission.depth()
        most_waiting = max(MOST_WAITING, 2 * depth)  # more would only lengthen the queue of the failed
        asking = [model for model in self._models if model.ready and model.waiting < most_waiting]

        # Each is asked in proportion to what it has left. While several ask, none has more than an even share
        # of the calls in flight: the calls of one may take a hundred times as long.
        in_turn = asking
        if len(asking) > 1:
            share = self.admission.slots.ceiling(limited=self.admission.limited, share=1.0) / len(asking)
            free = [model for model in asking if model.counters.in_flight < share]
            in_turn = sorted(free or asking, key=lambda model: model.credit + model.left, reverse=True)

        for model in in_turn:
            queue = model.queue
            if self._affords(model, queue.pending[0]) or (model.counters.over and queue.pending):
                if len(queue.pending) <= depth // 2 + 1:
                    queue.hungry.set()
                if len(asking) > 1:  # it pays for its turn what all of them get
                    model.credit -= sum(asking_model.left for asking_model in asking)
                    for asking_model in asking:
                        asking_model.credit += asking_model.left
                return model
        return None

    def _affords(self, model: LaneModel, pending: PendingTrial) -> bool:
        """Whether there is money for a call; where there never will be, the model's retries are left."""
        if model.client.account is None:
            return True
        affords = model.money.affords(pending)
        if model.counters.over:
            self._forget(model)
        elif not affords:
            self._short.append(model.client.account)
        return affords

    def _forget(self, model: LaneModel) -> None:
        """Leave retries of a model that is over to a later run."""
        self._retries = [entry for entry in self._retries if entry[2] is not model]
        heapq.heapify(self._retries)
        model.waiting = 0

    def _ready_in_s(self) -> float:
        """Return the seconds until a model may be asked again that has to wait by itself; inf: none has."""
        at_s = self._now_s()
        named = [
            time_s for model in self._models for time_s in (model.not_before_s, model.closing.same.next_s)
        ]
        holds = [time_s for time_s in named if time_s > at_s]
        holds += [
            model.warm_up.wider_s(at_s) for model in self._models if model.queue.pending and model.narrow
        ]
        return min(holds, default=math.inf) - at_s

    # ── Waits ────────────────────────────────────────────────────────────────────────────────────

    async def _admit(self, model: LaneModel, pending: PendingTrial) -> bool:
        """Wait until a call may be made, by every limit at once; return whether it is to be made."""
        admission, queue = self.admission, model.queue
        while not queue.gives_up(pending) and (wait := admission.obstacle(model, pending)):
            self._set_away(away=AWAY_S < wait.seconds < math.inf)
            began_s = self._now_s()
            await self._wait_for_change(wait.limit, within_s=wait.seconds)
            if wait.limit == waits.RESUME:
                pending.since_s += self._now_s() - began_s
        self._set_away(away=False)
        if not queue.gives_up(pending) and admission.in_flight >= admission.highest:
            admission.highest += 1
            began_s = self._now_s()
            _show_wait(waits.RAMP, admission)
            await self._ramp.acquire()
            self._minutes.waited(waits.RAMP, self._now_s() - began_s)
            if model.counters.paused:  # meanwhile
                return await self._admit(model, pending)
        if queue.gives_up(pending) or not model.money.reserve(pending):
            return False  # and takes nothing of what the others of its group may use
        admission.gate.take(pending.reserved, self._now_s())
        return True

    def _set_away(self, *, away: bool) -> None:
        """Note whether the lane waits for long: then others that share a budget do not wait for it."""
        if away == self._away:
            return
        self._away = away
        for model in self._models:
            model.away = away
            if model.client.account is not None:
                model.client.account.ledger.changed()

    async def _wait_for_change(self, cause: str, *, within_s: float) -> None:
        """Wait for a change, no longer than `within_s`, and count the time as a wait for `cause`."""
        began_s = self._now_s()
        left_s = self._minutes.left_s(began_s)
        late = self.admission.lag.late  # else others are who keeps the client waiting
        self._changed.clear()
        _show_wait(cause, self.admission)
        try:
            async with asyncio.timeout(min(within_s, left_s)):
                await self._changed.wait()
        except TimeoutError:
            pass  # it is time to try again
        finally:
            at_s = self._now_s()
            _show_wait(None, self.admission)
            self._minutes.waited(cause, at_s - began_s)
            if cause == waits.CLIENT and late:
                self._note_client_bound(at_s - began_s)
        if at_s >= began_s + left_s:
            self.admission.close_minute()

    def _note_client_bound(self, seconds: float) -> None:
        """Notify once, as soon as it has cost enough, that this machine holds the lane back."""
        before_s, self._client_s = self._client_s, self._client_s + seconds
        if before_s < WORTH_BLAMING_S <= self._client_s:
            for model in self._models:
                model.counters.client_bound = True
            if self.admission.lag.notified:
                return
            self.admission.lag.notified = True  # it is the same for every lane
            others = self.admission.lag.others()
            more_cores = "" if others else " With `--workers auto`, other cores make the calls."
            late_ms = 1000 * self.admission.lag.worst_since(self._now_s() - WORTH_BLAMING_S)
            self.notify(
                f"This computer, not the provider, limits the speed (event loop up to {late_ms:,.0f} ms "
                f"behind). Fewer models at once, or a lower concurrency, are not slower.{more_cores}"
            )


def _show_wait(cause: str | None, admission: Admission) -> None:
    """Show on the screen what a lane waits for. None clears it."""
    if cause == waits.CONCURRENCY and admission.finds_slots:
        cause = waits.SERVER
    elif cause == waits.PAUSE and not admission.throttle.for_refusals:
        cause = waits.NO_REPLY
    elif cause in OF_LIMITS and admission.limits_are_guessed:
        cause = waits.BACK_OFF
    for model in admission.models:
        ahead = cause == waits.BUDGET and model.client.account is not None and model.client.account.ahead()
        model.counters.waits_for = waits.OTHERS if ahead else cause
