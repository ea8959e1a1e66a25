"""One queue, one dispatcher, its attempts in flight: what happens to the trials of one rate-limit group."""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

from aiolimiter import AsyncLimiter

from asyncbench.engine.limits import ExpectedTokens, TokenBucket, request_pacer
from asyncbench.engine.retry import wait_before_retry
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import FINAL_FOR_LANE, ErrorKind, ProviderError
from asyncbench.pricing import Charge, RatesAt, charge
from asyncbench.records import (
    Attempt,
    Ended,
    Event,
    Grade,
    History,
    Model,
    Problem,
    Reply,
    Request,
    Result,
    Sent,
)

Ask = Callable[[Request], Awaitable[Reply]]
GradeReply = Callable[[Problem, Reply | None, str], tuple[Grade, ...]]
Keep = Callable[[Event], None]
Source = AsyncGenerator[tuple[Request, History], None]

GRADER_ERROR = "grader_error"  # the reason of a grade that is none: its grader raised
GROWTH = 16  # more calls in flight than before, started in one turn of the event loop
PROOF = 3  # trials of a lane without success, refused in the same words: it is not their questions
LONG_REPLY = 20_000  # characters; grading more than that would hold up every other request in flight


@dataclass(slots=True, kw_only=True)
class Turn:
    """A trial on its way through a lane; the one mutable thing about it."""

    request: Request
    history: History  # what earlier runs know of it
    characters: int
    taken_s: float  # when it was taken from the source
    tries: int = 0  # attempts of this run
    attempts: int = 0  # all attempts, those of earlier runs included
    cost_usd: float | None = 0.0  # of all attempts; None if that of any is unknown
    first_sent_s: float = 0.0  # the first attempt of this run
    in_flight: int = 0  # of the lane, when the latest attempt was sent
    reserved: float = 0.0  # tokens

    def charge(self, cost: float | None) -> None:
        """Add what an attempt cost; an unknown cost makes the whole unknown."""
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost


@dataclass(slots=True, kw_only=True)
class Lane:
    """The queue and limits of one model.

    `dispatch` is the only one to acquire the lane's limits, so they are served first come first
    served. A failed attempt that is worth another try waits in `retries`, holding no slot.
    """

    name: str
    model: Model
    source: Source
    ask: Ask
    grade: GradeReply
    keep: Keep
    characters: Callable[[Request], int]  # what is sent, for token estimates
    rates: RatesAt  # what it costs, by tier served and time
    counters: Counters
    lag: LoopLag
    epoch_s: float  # UTC at zero of the loop's clock
    jitter: random.Random
    queue: deque[Turn] = field(default_factory=deque)
    retries: list[tuple[float, int, Turn]] = field(default_factory=list)  # a heap by due time
    _ties: Iterator[int] = field(default_factory=itertools.count)  # equal due times stay in order
    _refused: list[tuple[Turn, ProviderError]] = field(default_factory=list)  # and it is not known why
    _accepted: bool = False  # requests as such: refusals are each about a trial of its own
    _fed: bool = False
    _stopped: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _hungry: asyncio.Event = field(default_factory=asyncio.Event)
    _admission: list[asyncio.Task[None]] = field(default_factory=list)
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock
    _slots: asyncio.Semaphore = field(init=False)
    _pacer: AsyncLimiter | None = field(init=False)
    _tokens: TokenBucket | None = field(init=False)
    _expected: ExpectedTokens = field(init=False)

    async def run(self) -> None:
        """Feed and dispatch until the source is dry and every trial is closed, or until stopped."""
        limits = self.model.limits
        self._now_s = asyncio.get_running_loop().time
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._pacer = request_pacer(limits.rpm) if limits.rpm else None
        self._tokens = TokenBucket(limits.tpm, capacity=limits.tpm / 60) if limits.tpm else None
        self._expected = ExpectedTokens(self.model.max_tokens)
        self._accepted = self.counters.done_before > self.counters.failed_before
        async with asyncio.TaskGroup() as in_flight:
            self._admission = [
                in_flight.create_task(self._feed(), name=f"feed {self.name}"),
                in_flight.create_task(self._dispatch(in_flight), name=f"dispatch {self.name}"),
            ]
            if self._stopped:
                self.stop()
        if not self._stopped:
            self._accept()

    def stop(self) -> None:
        """Admit nothing more; what is in flight goes on to its end."""
        self._stopped = True
        for task in self._admission:
            task.cancel()

    def suspend(self, reason: str) -> None:
        """Stop because no further call can succeed; the first proof is kept as the reason."""
        if self.counters.suspended is None:
            self.counters.suspended = reason
        self.stop()

    # ── feeding ──────────────────────────────────────────────────────────────────────────────

    async def _feed(self) -> None:
        """Keep the queue between one and two rounds of `concurrency`: memory does not grow with the set."""
        full = 2 * self.model.limits.concurrency
        async with aclosing(self.source) as source:
            async for request, history in source:
                self.queue.append(self._turn(request, history))
                self._changed.set()
                if len(self.queue) >= full:
                    self._hungry.clear()
                    await self._hungry.wait()
        self._fed = True
        self._changed.set()

    def _turn(self, request: Request, history: History) -> Turn:
        return Turn(
            request=request,
            history=history,
            characters=self.characters(request),
            taken_s=self._now_s(),
            attempts=history.attempts,
            cost_usd=history.cost_usd,
        )

    # ── dispatching ──────────────────────────────────────────────────────────────────────────

    async def _dispatch(self, in_flight: asyncio.TaskGroup) -> None:
        """Start attempts in order."""
        grown_to = GROWTH
        while turn := await self._next_turn():
            if turn.history.ended and turn.history.ended.reply:
                await self._take_over(turn, turn.history.ended)
                continue
            await self._slots.acquire()
            await self._reserve(turn)
            self.counters.in_flight += 1
            turn.in_flight = self.counters.in_flight
            in_flight.create_task(self._attempt(turn))
            if self.counters.in_flight >= grown_to:
                # Thousands started in one turn would hold up all else, and their answers come together too.
                grown_to = self.counters.in_flight + GROWTH
                await asyncio.sleep(0)

    async def _next_turn(self) -> Turn | None:
        """Return a retry that is due, else a fresh trial; None when every trial is closed."""
        while True:
            while self._suspicious and self.counters.in_flight:
                await self._change(within_s=None)  # no more before one of those in flight was answered
            due_in_s = self.retries[0][0] - self._now_s() if self.retries else None
            if due_in_s is not None and due_in_s <= 0:
                return heapq.heappop(self.retries)[2]
            if self.queue and len(self.retries) < self._most_waiting:
                return self._pop()
            if self._fed and not self.queue and not self.retries and not self.counters.in_flight:
                return None
            await self._change(within_s=due_in_s)

    @property
    def _most_waiting(self) -> int:
        # When most calls fail, fresh trials would only lengthen the queue of the failed.
        return 4 * self.model.limits.concurrency

    def _pop(self) -> Turn:
        turn = self.queue.popleft()
        if len(self.queue) <= self.model.limits.concurrency:
            self._hungry.set()
        return turn

    async def _change(self, *, within_s: float | None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._changed.wait()
        except TimeoutError:
            return  # a retry is due

    async def _reserve(self, turn: Turn) -> None:
        if self._tokens is not None:
            turn.reserved = self._expected.of(turn.characters)
            await self._tokens.reserve(turn.reserved)
        if self._pacer is not None:
            await self._pacer.acquire()

    # ── one attempt ──────────────────────────────────────────────────────────────────────────

    async def _attempt(self, turn: Turn) -> None:
        """Make one call and write it down; a retry goes to the heap, anything else closes the trial."""
        ended: Reply | ProviderError
        try:
            sent_s = self._begin(turn)
            ended = await self.ask(turn.request)
        except ProviderError as error:
            ended = error.with_traceback(None)  # which leads back to it: a cycle of a failed call's size
        except asyncio.CancelledError:
            self._end(turn, sent_s, "lost", None)
            raise
        finally:
            self.counters.in_flight -= 1
            self._slots.release()
            self._changed.set()
        if isinstance(ended, ProviderError):
            self._end(turn, sent_s, ended.kind.value, ended)
            self._settle(turn, ended)
            self._fail(turn, ended)
        else:
            attempt = self._end(turn, sent_s, "ok", ended)
            self._settle(turn, ended)
            self._accept()
            await self._close(turn, attempt, ended)

    def _begin(self, turn: Turn) -> float:
        """Write down that a call is about to be made; return when, on the loop's clock."""
        sent_s = self._now_s()
        turn.tries += 1
        turn.attempts += 1
        if turn.tries == 1:
            turn.first_sent_s = sent_s
        self.keep(
            Sent(
                trial_id=turn.request.trial.trial_id,
                attempt=turn.attempts,
                model=self.model.alias,
                provider=self.model.provider,
                started_at=self.epoch_s + sent_s,
            )
        )
        return sent_s

    def _end(self, turn: Turn, sent_s: float, status: str, ended: Reply | ProviderError | None) -> Attempt:
        """Write down how a call ended, before anything is made of it."""
        reply = ended if isinstance(ended, Reply) else None
        error = ended if isinstance(ended, ProviderError) else None
        attempt = Attempt(
            trial_id=turn.request.trial.trial_id,
            attempt=turn.attempts,
            model=self.model.alias,
            provider=self.model.provider,
            started_at=self.epoch_s + sent_s,
            queued_s=sent_s - turn.taken_s,
            ttft_s=reply.ttft_s if reply else None,
            latency_s=self._now_s() - sent_s if reply is None or reply.latency_s is None else reply.latency_s,
            status=status,
            http_status=ended.http_status if ended else None,
            retry_after_s=error.retry_after_s if error else None,
            request_id=ended.request_id if ended else None,
            usage=reply.usage if reply else None,
            cost_usd=self._cost(ended, self.epoch_s + sent_s),
            in_flight=turn.in_flight,
            loop_lag_s=self.lag.now_s,
            raw_usage=reply.raw_usage if reply else None,
        )
        self.keep(Ended(attempt=attempt, reply=reply))
        turn.charge(attempt.cost_usd)
        self.counters.count(attempt)
        return attempt

    def _cost(self, ended: Reply | ProviderError | None, at_s: float) -> float | None:
        """Return what an attempt cost, USD; 0 when it was refused before any work, None when unknown."""
        if isinstance(ended, Reply):
            return self._charge(ended, at_s).usd
        return None if ended is None or ended.may_have_been_billed else 0.0

    def _charge(self, reply: Reply, at_s: float) -> Charge:
        return charge(reply, self.rates, at_s=at_s, provider=self.model.provider)

    def _settle(self, turn: Turn, ended: Reply | ProviderError) -> None:
        if isinstance(ended, Reply):
            self._expected.learn(ended.usage)
        if self._tokens is not None:
            self._tokens.settle(reserved=turn.reserved, used=_tokens_used(ended, turn.reserved))

    # ── what follows ─────────────────────────────────────────────────────────────────────────

    def _fail(self, turn: Turn, error: ProviderError) -> None:
        """Suspend the lane, try again later, or close the trial as failed."""
        if error.kind in FINAL_FOR_LANE:
            self._suspend_for(error)
        elif not self._accepted and _may_be_about_all(error):
            self._refused.append((turn, error))
        else:
            self._fail_alone(turn, error)
        self._judge()

    def _fail_alone(self, turn: Turn, error: ProviderError) -> None:
        """Try again later, or close the trial as failed."""
        wait_s = wait_before_retry(
            error,
            attempt=turn.tries,
            elapsed_s=self._now_s() - turn.first_sent_s,
            policy=self.model.retry,
            jitter=self.jitter.random(),
        )
        if wait_s is None:
            self._close_failed(turn, error)
        else:
            heapq.heappush(self.retries, (self._now_s() + wait_s, next(self._ties), turn))
            self._changed.set()

    def _suspend_for(self, error: ProviderError) -> None:
        """Stop; what was refused like this stays open: a later run asks it again."""
        self.suspend(f"{error.kind.value}: {error.message}")

    def _close_failed(self, turn: Turn, error: ProviderError) -> None:
        grades = self.grade(turn.request.trial.problem, None, turn.request.trial.condition.style)
        self._write_result(turn, None, error, grades)

    @property
    def _suspicious(self) -> bool:
        """Whether what was refused so far looks as if anything would be."""
        return len(self._refused) >= PROOF

    def _judge(self) -> None:
        """Decide whether refusals are about their trials or about whatever this lane would ask."""
        if len({error.message for _, error in self._refused}) > 1:
            self._accept()
        elif self._suspicious and not self.counters.in_flight:
            self._suspend_for(self._refused[0][1])

    def _accept(self) -> None:
        """Close the refused trials: each is alone in it. Of a suspended lane they stay open."""
        self._accepted = True
        if self.counters.suspended is None:
            for turn, error in self._refused:
                self._close_failed(turn, error)
        self._refused.clear()

    async def _close(self, turn: Turn, attempt: Attempt, reply: Reply) -> None:
        """Grade a reply and close its trial."""
        problem, style = turn.request.trial.problem, turn.request.trial.condition.style
        if len(reply.text) > LONG_REPLY:
            grades = await asyncio.to_thread(self.grade, problem, reply, style)
        else:
            grades = self.grade(problem, reply, style)
        self._write_result(turn, attempt, reply, grades)

    async def _take_over(self, turn: Turn, ended: Ended) -> None:
        """Close a trial whose answer was paid for by an earlier run that did not live to grade it."""
        if ended.reply is not None:
            await self._close(turn, ended.attempt, ended.reply)

    def _write_result(
        self, turn: Turn, answered: Attempt | None, ended: Reply | ProviderError, grades: tuple[Grade, ...]
    ) -> None:
        """Close a trial; its times are those of the attempt that was answered."""
        reply = ended if isinstance(ended, Reply) else None
        self.keep(
            Result(
                trial=turn.request.trial,
                reply=reply,
                error=ended if isinstance(ended, ProviderError) else None,
                grades=grades,
                attempts=turn.attempts,
                cost_usd=turn.cost_usd,
                price_source=self._charge(reply, answered.started_at).source if reply and answered else None,
                queued_s=answered.queued_s if answered else None,
                ttft_s=answered.ttft_s if answered else None,
                latency_s=answered.latency_s if answered else None,
                finished_at=self.epoch_s + self._now_s(),
            )
        )
        self.counters.outcomes[grades[0].outcome] += 1
        self.counters.grader_errors += grades[0].reason == GRADER_ERROR


def _may_be_about_all(error: ProviderError) -> bool:
    """Whether a refusal may be about what every request of a lane has, such as a parameter."""
    # Another status, such as the 404 for a question that our simulator does not know, is about the question.
    return error.kind is ErrorKind.BAD_REQUEST and error.http_status in (None, 400, 422)


def _tokens_used(ended: Reply | ProviderError, reserved: float) -> float:
    """Return what a call took of the tokens a minute; what is unknown counts as reserved."""
    if isinstance(ended, ProviderError):
        return reserved if ended.may_have_been_billed or ended.kind is ErrorKind.SERVER_ERROR else 0.0
    usage = ended.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return reserved
    return usage.input_tokens + usage.output_tokens
