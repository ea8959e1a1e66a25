"""A lane that is split: the run's own process paces it, and workers make its calls.

It is a lane as any other: its gate, throttle, slots, retries, money and stopping rules see every call. When a
call may go, it waits on a desk until a worker fetches it, as a permit for this very call. A permit that is
not used soon dies: its trial is the next again, and the rate that it took is lost. A worker writes its calls
and replies into its own journal, grades them, and tells the rest.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

from asyncbench.cluster.leases import Leases
from asyncbench.cluster.messages import CallOrder, ClosedTrial, EndedCall, JournalNews
from asyncbench.engine import Asker, Lane, Turn
from asyncbench.errors import LostCallError, ProviderError, UnsentError
from asyncbench.records import Condition, Ended, Event, Grade, Problem, Reply, Result, Sent

LATE: Final = 1.5  # horizons since anybody fetched calls: then nothing starts


@dataclass(slots=True, kw_only=True)
class GradedReply(Reply):
    """A reply that a worker has written down and graded."""

    grade: Grade


@dataclass(slots=True, kw_only=True)
class _Call:
    """A call that a worker is to make."""

    number: int
    turn: Turn
    since_s: float  # it may go
    ended: "asyncio.Future[Reply]"

    @property
    def alias(self) -> str:
        return self.turn.request.trial.model.alias


@dataclass(slots=True, kw_only=True)
class CallDesk:
    """The calls of one lane that may be made now. Times are the coordinator's clock."""

    leases: Leases
    number_of: Callable[[], int]
    now_s: Callable[[], float]
    horizon_s: float  # a call waits about half as long until somebody fetches it
    lives_s: float  # of a permit
    workers: Callable[[], int]  # that fetch calls
    lane: Lane = field(init=False)  # as soon as there is one
    in_flight: dict[str, dict[int, _Call]] = field(default_factory=dict)  # by worker
    _waiting: deque[_Call] = field(default_factory=deque)
    _fetched_s: float = -inf  # when anybody last did

    async def hand_over(self, turn: Turn) -> Reply:
        """Have a worker make a call.

        Raises:
            ProviderError: as it ended.
            LostCallError: nobody knows how it ended.
            UnsentError: it was not made.
        """
        ended: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(number=self.number_of(), turn=turn, since_s=self.now_s(), ended=ended))
        return await ended

    def held_s(self) -> float:
        """Return for how long nothing may start: nobody is there to make calls."""
        late = self.now_s() - self._fetched_s > LATE * self.horizon_s
        many = len(self._waiting) >= max(1.0, self._rate() * self.horizon_s)
        return self.horizon_s / 4 if late or many or not self.workers() else 0.0

    def fetch(self, worker: str) -> list[CallOrder]:
        """Return the calls that a worker is to make: as many as put it level with the others."""
        self._fetched_s = at_s = self.now_s()
        self._drop(lambda call: call.ended.done() or at_s - call.since_s > self.lives_s)
        own = self.in_flight.setdefault(worker, {})
        total = len(self._waiting) + sum(map(len, self.in_flight.values()))
        level = ceil(total / max(1, self.workers())) - len(own)
        orders: list[CallOrder] = []
        most = max(1.0, self._rate() * self.horizon_s / max(1, self.workers()))  # a slice, all together
        while self._waiting and len(orders) < most:
            if len(orders) >= level and at_s - self._waiting[0].since_s <= self.horizon_s / 2:
                break  # others will fetch it
            call = self._waiting.popleft()
            own[call.number] = call
            self.leases.hand(worker, call.alias, call.turn.hold)
            orders.append(_order_of(call, at_s))
        return orders

    def _rate(self) -> float:
        """Return how many calls a second the limits let; inf: none limits them."""
        return self.lane.in_force().get("requests", inf) / 60

    def stop(self) -> None:
        """Hand out nothing more."""
        self._drop(lambda _: True)

    def _drop(self, drops: Callable[[_Call], bool]) -> None:
        for call in [call for call in self._waiting if drops(call)]:
            self._waiting.remove(call)
            _fail(call, UnsentError("no worker came in time"))

    # ── what came of them ────────────────────────────────────────────────────────────────────

    def unsent(self, worker: str, number: int) -> bool:
        """Take in that a call was not made; return whether it is one of this lane."""
        if (call := self.in_flight.get(worker, {}).pop(number, None)) is None:
            return False
        self._settle(worker, call, 0.0)
        _fail(call, UnsentError("its permit came too late"))
        return True

    def end(self, worker: str, number: int, ended: EndedCall) -> bool:
        """Take in how a call ended; return whether it is one of this lane."""
        if (call := self.in_flight.get(worker, {}).pop(number, None)) is None:
            return False
        self._settle(worker, call, ended.cost_usd)
        if isinstance(ended.ended, ProviderError):
            _fail(call, ended.ended)
        elif ended.ended is None or ended.grade is None:
            _fail(call, LostCallError(f"worker {worker} does not know how the call ended", worker))
        elif not call.ended.done():
            call.ended.set_result(_graded(ended.ended, ended.grade))
        return True

    def lose(self, worker: str, news: JournalNews | None) -> list[float]:
        """Take in that a worker died; return since when calls may still be in flight at their server."""
        left = []
        for call in self.in_flight.pop(worker, {}).values():
            trial = call.turn.request.trial
            if news is not None and (closed := news.closed.get(trial.trial_id)) is not None:
                self._settle(worker, call, None)
                if not call.ended.done():
                    call.ended.set_result(_graded(Reply(text=""), _grade_of(closed)))
                continue
            known = None if news is None else news.histories.get(trial.trial_id)
            if known is not None and known.ended is not None and known.ended.reply is not None:
                self._settle(worker, call, known.ended.attempt.cost_usd)
                if not call.ended.done():
                    call.ended.set_result(known.ended.reply)
                continue
            if news is not None and (known is None or known.attempts < call.turn.attempts):
                self._settle(worker, call, 0.0)
                _fail(call, UnsentError("it is not in the journal of the worker"))
                continue
            left.append(call.since_s)
            self._settle(worker, call, None)
            _fail(call, LostCallError(f"worker {worker} died during the call", worker))
        return left

    def _settle(self, worker: str, call: _Call, cost_usd: float | None) -> None:
        self.leases.settle(worker, call.alias, call.turn.hold, cost_usd)


@dataclass(slots=True, kw_only=True)
class SplitLane(Lane):
    """A lane whose calls workers make."""

    desk: CallDesk

    def stop(self) -> None:
        """Admit nothing more, hand out nothing more; what is in flight goes on to its end."""
        Lane.stop(self)
        self.desk.stop()


def handed_over(asker: Asker, desk: CallDesk) -> Asker:
    """Return an asker whose calls workers make, write down and grade."""
    keep, grade = asker.keep, asker.grade

    def keep_own(event: Event) -> None:
        made_elsewhere = isinstance(event, Sent | Ended)
        if not (made_elsewhere or (isinstance(event, Result) and isinstance(event.reply, GradedReply))):
            keep(event)

    def graded(problem: Problem, reply: Reply | None, condition: Condition) -> tuple[Grade, ...]:
        return (reply.grade,) if isinstance(reply, GradedReply) else grade(problem, reply, condition)

    asker.keep, asker.grade, asker.hand_over, asker.grace_s = keep_own, graded, desk.hand_over, inf
    return asker


def _order_of(call: _Call, at_s: float) -> CallOrder:
    turn = call.turn
    return CallOrder(
        number=call.number,
        trial=turn.request.trial,
        attempts=turn.attempts - 1,
        cost_usd=turn.cost_usd,
        waited_s=turn.sent_s - turn.taken_s + at_s - call.since_s,
        in_flight=turn.in_flight,
        reserved_usd=turn.reserved_usd,
    )


def _fail(call: _Call, error: Exception) -> None:
    if not call.ended.done():
        call.ended.set_exception(error)


def _graded(reply: Reply, grade: Grade) -> GradedReply:
    told = {name: getattr(reply, name) for name in Reply.__slots__}
    return GradedReply(**told, grade=grade)


def _grade_of(closed: ClosedTrial) -> Grade:
    return Grade(
        grader="",
        grader_version=0,
        headline=True,
        answer=None,
        classification=None,
        outcome=closed.outcome,
        exact_match=bool(closed.right),
    )
