"""Calls of split lanes at a worker: each is made once, while its permit lives, and written down here."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from asyncbench.cluster.messages import CallOrder, EndedCall
from asyncbench.engine import LaneModel, Turn
from asyncbench.errors import LostCallError, ProviderError, UnwrittenError
from asyncbench.records import Grade, History, Reply, Result


@dataclass(slots=True, kw_only=True)
class PermittedCalls:
    """Makes calls, and keeps what is to be told of them."""

    now_s: Callable[[], float]  # a clock that goes on while the machine sleeps
    ended: dict[int, EndedCall] = field(default_factory=dict)  # since the report before
    unsent: list[int] = field(default_factory=list)  # likewise
    in_flight: int = 0
    grades: dict[str, Grade] = field(default_factory=dict)  # of trials that were just closed

    def note(self, event: object) -> None:
        """Take in what was written down."""
        if isinstance(event, Result):
            self.grades[event.trial.trial_id] = event.grades[0]

    def over(self, number: int, task: "asyncio.Task[None]") -> None:
        """Take in that the task of a call is over: one that never began made none."""
        if task.cancelled() and number not in self.ended:
            self.unsent.append(number)

    async def make(self, model: LaneModel, order: CallOrder, until_s: float) -> None:
        """Make a call, unless its permit is over."""
        turn = _turn_of(model, order)
        if self.now_s() >= until_s:
            self.unsent.append(order.number)
            return
        try:
            model.attempts.begin(turn)
        except UnwrittenError:
            self.unsent.append(order.number)
            return
        self.in_flight += 1
        ended = EndedCall(ended=None)  # if it is given up
        try:
            ended = await self._made(model, turn)
        finally:
            self.in_flight -= 1
            self.ended[order.number] = ended

    async def _made(self, model: LaneModel, turn: Turn) -> EndedCall:
        attempts = model.attempts
        ended: Reply | ProviderError
        try:
            async with asyncio.timeout(attempts.within_s):
                ended = await model.asker.ask(turn.request)
        except asyncio.CancelledError:
            attempts.end(turn, None)
            raise
        except LostCallError as lost:
            return EndedCall(ended=None, cost_usd=attempts.lose(turn, lost).cost_usd)
        except Exception as error:  # whatever it is, it is about one reply: the others go on
            ended = attempts.failure(turn, error)
        attempt = attempts.end(turn, ended)
        if isinstance(ended, ProviderError):
            return EndedCall(ended=ended, cost_usd=attempt.cost_usd)
        await model.closing.close(turn, attempt, ended)
        told = replace(ended, text="", reasoning=None, raw_usage=None, times=None)
        return EndedCall(
            ended=told, grade=self.grades.pop(turn.request.trial.trial_id), cost_usd=attempt.cost_usd
        )


def _turn_of(model: LaneModel, order: CallOrder) -> Turn:
    asker = model.asker
    request = asker.request_for(order.trial)
    return Turn(
        request=request,
        history=History(attempts=order.attempts, cost_usd=order.cost_usd),
        characters=0,
        longest=asker.longest(request),
        taken_s=asker.now_s() - order.waited_s,
        attempts=order.attempts,
        cost_usd=order.cost_usd,
        in_flight=order.in_flight,
        reserved_usd=order.reserved_usd,
    )
