"""One model of a lane: makes its calls, writes down what came of each, grades replies and closes trials."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from typing import Final

from asyncbench.engine.budget import Account, Hold
from asyncbench.engine.expected import Expected, cell_of
from asyncbench.engine.limits import Amounts, Counting, counted, demanded
from asyncbench.engine.probation import Probation
from asyncbench.engine.retry import wait_before_retry
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.engine.turn import Turn
from asyncbench.errors import FINAL_FOR_LANE, AsyncbenchError, ErrorKind, ProviderError, UnwrittenError
from asyncbench.pricing import Charge, RatesAt, charge, dollars_of, usd_text
from asyncbench.records import (
    Attempt,
    Ended,
    Event,
    Grade,
    History,
    Model,
    Outcome,
    Problem,
    Reply,
    Request,
    Result,
    Sent,
    Stop,
    Trial,
)

Ask = Callable[[Request], Awaitable[Reply]]
GradeReply = Callable[[Problem, Reply | None, str], tuple[Grade, ...]]
Keep = Callable[[Event], None]
MostUsd = Callable[[Request, float], float | None]  # that a call may cost, sent then (UTC); None: unknown
HistoryOf = Callable[[Trial], History | None]  # what earlier runs know of it; None: it need not be asked
RequestFor = Callable[[Trial], Request]

BATCH: Final = 256  # trials made at a time
INTERRUPTED: Final = "the run was stopped before the call ended"
GRADER_ERROR: Final = "grader_error"  # the reason of a grade that is none: its grader raised
LONG_REPLY: Final = 20_000  # characters; grading more than that would hold up every other request in flight
SAME_WORDS: Final = 4  # failures in a row of a trial while others do well: it does so for good
WELL: Final = 20  # answers of others, and for each so many no more than one failure
PRICED_FOR_S: Final = 60.0  # what a call may cost holds so long, as far as the clock is concerned
GRACE_S: Final = 30.0  # beyond timeouts.total, for an adapter that does not keep it
_OF_THE_TRIAL: Final = frozenset({ErrorKind.SERVER_ERROR, ErrorKind.BAD_REPLY, ErrorKind.TIMEOUT})


def _nobody(_: object) -> None:
    """Tell nobody."""


def _nothing_known(_: Request, __: float) -> None:
    """Know nothing of what a call may cost."""


@dataclass(slots=True, kw_only=True)
class Asker:
    """The trials of one model, from its source to their results."""

    model: Model
    trials: Iterator[Trial]  # is read in another thread
    history_of: HistoryOf
    request_for: RequestFor
    ask: Ask
    grade: GradeReply
    keep: Keep
    characters: Callable[[Request], int]  # what is sent, for token estimates
    longest: Callable[[Request], int | None]  # the most tokens of a reply; None: nothing limits it
    rates: RatesAt  # what it costs, by tier served and time
    counters: Counters
    lag: LoopLag
    epoch_s: float  # UTC at zero of the loop's clock
    jitter: random.Random
    counting: Counting = Counting.USED
    tell_read: Callable[[], None] = lambda: None  # is called, on the event loop, when trials were read
    tell_suspended: Callable[[str], None] = _nobody  # is called once, with the reason
    tell_fault: Callable[[Exception], None] = _nobody  # is called with what no adapter foresaw
    account: Account | None = None  # of the sweep's budget; None: none holds this model
    most_usd: MostUsd = _nothing_known  # without one
    stopping: Stopping | None = None  # of its cells; None: no rule stops any
    queue: deque[Turn] = field(default_factory=deque)
    _expected: Expected = field(init=False)
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock
    probation: Probation = field(init=False)
    waiting: int = 0  # trials to be tried again
    away: bool = False  # its lane waits for long: other models need not wait for this one
    not_before_s: float = -inf  # the loop's clock: a provider's word about this model of a group
    _answers: int = 0  # of this run
    _failures: int = 0  # likewise, of the kinds that may be a trial's own
    _billed_more: Charge | None = None  # the latest: the vendor's own bill was above the sweep's price
    _told_more: bool = False
    _fed: bool = False
    _hungry: asyncio.Event = field(default_factory=asyncio.Event)
    _wake: Callable[[], None] = field(default=lambda: None)  # its lane

    def begin(self) -> None:
        """Get ready, on the running loop."""
        self._now_s = asyncio.get_running_loop().time
        self._expected = Expected()
        self.probation = Probation(answered_before=self.answered_before, accepted=self.answered_before)
        if self.account is not None:
            self.account.join(self.counters, asks=self._asks, now_s=self._now_s)
        if self.stopping is not None:
            self.stopping.on_stop(self._pass_over)

    @property
    def suspended(self) -> bool:
        """Whether no further call can succeed."""
        return self.counters.suspended is not None

    @property
    def over(self) -> bool:
        """Whether no further call will be made: none can succeed, or there is no money for it."""
        return self.suspended or self.counters.budget_stopped

    @property
    def answered_before(self) -> bool:
        """Whether earlier runs got replies from this model."""
        return self.counters.done_before > self.counters.failed_before

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        waits = self.probation.suspicious and self.counters.in_flight  # for one of them to be answered
        held = waits or self.narrow or self._now_s() < self.not_before_s
        return bool(self.queue) and not self.suspended and not held

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer."""
        return self.counters.in_flight >= self.probation.most(self._now_s())

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return self.suspended or ((self._fed or self.over) and not self.queue)

    def suspend(self, reason: str) -> None:
        """Give up what is not asked yet; the first proof is kept as the reason."""
        if self.counters.suspended is None:
            self.counters.suspended = reason
            self.tell_suspended(reason)
        self.queue.clear()
        self._hungry.set()

    # ── money ────────────────────────────────────────────────────────────────────────────────

    def affords(self, turn: Turn) -> bool:
        """Whether there is money for a call now; where there never will be, stop asking."""
        if self.account is None or is_answered(turn):
            return True
        self._price(turn)
        if self.account.fits(turn.hold):
            begins_paid = not turn.tries and turn.hold.amount > 0
            return not (begins_paid and self.account.ahead())
        if not self.account.ever_fits(turn.hold):
            self._stop_for_money(self.account, turn.hold)
        return False

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        held = self.away or self._now_s() < self.not_before_s
        return bool(self.queue or not self._fed) and not self.over and not held

    def reserve(self, turn: Turn) -> bool:
        """Set money aside for a call that is made now; where there is none, the trial waits again."""
        if self.account is None:
            return True
        if self.account.terms != turn.terms or self._now_s() > turn.priced_s + PRICED_FOR_S:
            self._price(turn)
        reserved = self.account.reserve(turn.hold)
        if not reserved:
            self.put_back(turn)
        return reserved

    def _price(self, turn: Turn) -> None:
        """Work out what has to be set aside for a trial's next call."""
        if self.account is not None:
            turn.priced_s, turn.terms = self._now_s(), self.account.terms
            turn.hold = self.account.hold(turn.request, self.epoch_s + turn.priced_s)

    def put_back(self, turn: Turn) -> None:
        """Let a trial be the next again; of a model that is over it stays open."""
        if not self.over:
            self.queue.appendleft(turn)

    def _stop_for_money(self, account: Account, hold: Hold) -> None:
        """Ask nothing more; what was answered before is still closed."""
        self.counters.budget_stopped = True
        self.queue = deque(filter(is_answered, self.queue))
        self._hungry.set()
        account.stop(hold)

    # ── feeding ──────────────────────────────────────────────────────────────────────────────

    async def feed(self, depth: Callable[[], int], changed: Callable[[], None]) -> None:
        """Keep up to `depth()` trials in the queue: memory does not grow with the set."""
        self._wake = changed
        while batch := await asyncio.to_thread(lambda: list(islice(self.trials, BATCH))):
            self.tell_read()
            for trial in batch:
                if self.over:
                    break
                if (history := self.history_of(trial)) is None:
                    continue
                self.queue.append(self._turn(self.request_for(trial), history))
                changed()
                if len(self.queue) >= depth():
                    self._hungry.clear()
                    await self._hungry.wait()
            if self.over:
                break
        self.tell_read()
        self._fed = True
        changed()
        if self.account is not None:
            self.account.ledger.changed()

    def take(self, depth: int) -> Turn:
        """Return the next fresh trial."""
        turn = self.queue.popleft()
        if len(self.queue) <= depth // 2:
            self._hungry.set()
        return turn

    def _turn(self, request: Request, history: History) -> Turn:
        return Turn(
            request=request,
            history=history,
            characters=self.characters(request),
            taken_s=self._now_s(),
            attempts=history.attempts,
            cost_usd=history.cost_usd,
        )

    # ── what need not be asked ───────────────────────────────────────────────────────────────

    def needless(self, turn: Turn) -> bool:
        """Whether enough is known of a trial's cell, and the trial is neither begun nor answered."""
        return self._stop_of(turn) is not None

    def skip(self, turn: Turn) -> bool:
        """Write down that a trial is needless, if it is; return whether it is."""
        stop = self._stop_of(turn)
        if stop is None or self.stopping is None:
            return False
        self.stopping.skip(turn.request.trial, stop)
        return True

    def _stop_of(self, turn: Turn) -> Stop | None:
        if self.stopping is None or turn.tries or is_answered(turn):
            return None
        return self.stopping.stop_of(turn.request.trial)

    def _pass_over(self) -> None:
        """Leave out what waits and is needless now that a cell was stopped."""
        self.queue = deque(turn for turn in self.queue if not self.skip(turn))
        self._hungry.set()
        self._wake()
        if self.account is not None:
            self.account.ledger.changed()

    # ── tokens ───────────────────────────────────────────────────────────────────────────────

    def amounts(self, turn: Turn) -> Amounts:
        """Return what to set aside for a call."""
        taken = self._expected.input_tokens(turn.characters)
        longest = self.longest(turn.request)
        given = self._expected.output_tokens(cell_of(turn.request.trial), longest)
        if self.counting is Counting.DEMANDED:
            return Amounts(1.0, demanded(turn.characters, longest), taken, given)
        return Amounts(1.0, taken + given, taken, given)

    def guesses(self, turn: Turn) -> bool:
        """Whether nothing says how many tokens a call may use: neither replies seen nor a longest one."""
        return not self._expected.taught and self.longest(turn.request) is None

    def used(self, turn: Turn, ended: Reply | ProviderError) -> Amounts:
        """Return what a call was counted for, as far as that is known."""
        if isinstance(ended, Reply):
            self._expected.learn(cell_of(turn.request.trial), turn.characters, ended.usage)
            return counted(ended.usage, turn.reserved, self.counting)
        if ended.may_have_been_billed or ended.kind is ErrorKind.SERVER_ERROR:
            return turn.reserved
        return Amounts(turn.reserved.requests)

    # ── one attempt ──────────────────────────────────────────────────────────────────────────

    async def call(self, turn: Turn) -> tuple[Attempt, Reply | ProviderError]:
        """Make one call and write it down, before anything is made of it."""
        try:
            sent_s = self._begin(turn)
        except UnwrittenError:
            self._settle(turn, 0.0)  # it was not made
            raise
        ended: Reply | ProviderError
        try:
            async with asyncio.timeout(self.model.timeouts.total + GRACE_S):
                ended = await self.ask(turn.request)
        except ProviderError as error:
            ended = error.with_traceback(None)  # which leads back to it: a cycle of a failed call's size
        except TimeoutError:
            ended = ProviderError(ErrorKind.TIMEOUT, "no reply within timeouts.total, nor after it")
        except asyncio.CancelledError:
            self._end(turn, sent_s, "lost", None)
            raise
        except AsyncbenchError:
            raise
        except Exception as error:  # whatever it is, it is about one reply: the others go on
            ended = self._stumbled(error)
        self.probation.ended(ended, self._now_s())
        if isinstance(ended, ProviderError):
            self._mark(ended, sent_s)
            return self._end(turn, sent_s, ended.kind.value, ended), ended
        self._answers += 1
        self.accept()
        return self._end(turn, sent_s, "ok", ended), ended

    def _stumbled(self, error: Exception) -> ProviderError:
        """Take a reply that nobody could read for a bad one; its text is not repeated, it may hold a key."""
        self.counters.faults += 1
        self.tell_fault(error)
        name = type(error).__name__
        return ProviderError(ErrorKind.BAD_REPLY, f"asyncbench stumbled over the reply ({name})")

    def _mark(self, error: ProviderError, sent_s: float) -> None:
        """Say of a timeout whether it may have been our own."""
        if error.kind is ErrorKind.TIMEOUT and self.lag.worst_since(sent_s) > self.lag.LATE_S:
            error.message += "; meanwhile our own event loop was late: this may be no fault of the provider's"
            error.args = (error.message,)

    def _begin(self, turn: Turn) -> float:
        """Write down that a call is about to be made; return when, on the loop's clock."""
        turn.sent_s = self._now_s()
        turn.tries += 1
        turn.attempts += 1
        if turn.tries == 1:
            turn.since_s = turn.sent_s
        turn.most_usd = self._most_usd(turn)
        self.keep(
            Sent(
                trial_id=turn.request.trial.trial_id,
                attempt=turn.attempts,
                model=self.model.alias,
                provider=self.model.provider,
                started_at=self.epoch_s + turn.sent_s,
                max_tokens=self.longest(turn.request),
                reserved_usd=self._reserved_usd(turn),
                most_usd=turn.most_usd,
            )
        )
        return turn.sent_s

    def _reserved_usd(self, turn: Turn) -> float | None:
        return None if self.account is None else dollars_of(turn.hold.amount)

    def _most_usd(self, turn: Turn) -> float | None:
        """Return what a call that is made now may cost: a budget that is set later counts it with that."""
        if self.account is not None:
            return dollars_of(turn.hold.most)
        return self.most_usd(turn.request, self.epoch_s + turn.sent_s)

    def _settle(self, turn: Turn, cost_usd: float | None) -> None:
        """Charge a call, and give back what it did not use."""
        if self.account is not None:
            self.account.settle(turn.hold, cost_usd)

    def _end(self, turn: Turn, sent_s: float, status: str, ended: Reply | ProviderError | None) -> Attempt:
        """Write down how a call ended."""
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
            loop_lag_s=self.lag.worst_since(sent_s),
            raw_usage=reply.raw_usage if reply else None,
            note=reply.note if reply else None,
            max_tokens=self.longest(turn.request),
            reserved_usd=self._reserved_usd(turn),
            most_usd=turn.most_usd,
            error=error.message if error else None if reply else INTERRUPTED,
        )
        self.keep(Ended(attempt=attempt, reply=reply))
        turn.charge(attempt.cost_usd)
        self._settle(turn, attempt.cost_usd)
        self.counters.count(attempt)
        return attempt

    def _cost(self, ended: Reply | ProviderError | None, at_s: float) -> float | None:
        """Return what an attempt cost, USD; 0 when it was refused before any work, None when unknown."""
        if isinstance(ended, Reply):
            charged = self._charge(ended, at_s)
            if charged.instead_of_usd is not None:
                self._billed_more = charged
            return charged.usd
        return None if ended is None or ended.may_have_been_billed else 0.0

    def news(self) -> Iterator[str]:
        """Yield what a person should hear, each once."""
        of_account = self.account.news() if self.account else None
        yield from filter(None, (of_account, self._bill_news(), self.probation.news()))

    def _bill_news(self) -> str | None:
        """Tell of a bill that is higher than by the price in the sweep."""
        billed = self._billed_more
        if self._told_more or billed is None or billed.usd is None or billed.instead_of_usd is None:
            return None
        self._told_more = True
        return (
            f"{billed.source} says that a call cost {usd_text(billed.usd)}; by the `price` in the sweep it "
            f"would be {usd_text(billed.instead_of_usd)}. The larger of the two counts, of every call"
        )

    def _charge(self, reply: Reply, at_s: float) -> Charge:
        return charge(reply, self.rates, at_s=at_s, provider=self.model.provider)

    # ── what follows ─────────────────────────────────────────────────────────────────────────

    def failed(self, turn: Turn, error: ProviderError, *, paused: bool) -> float | None:
        """Suspend the model, close the trial as failed, or return the seconds until it is tried again.

        Args:
            paused: the lane is. What the provider says to wait then is about the lane, not the trial's time.
        """
        wait_s = None
        if error.kind in FINAL_FOR_LANE:
            self._suspend_for(error)
        elif self.probation.suspects(error):
            self.probation.refused.append((turn, error))
        elif self.probation.hopeless(self._now_s()):
            self.suspend(f"{error.kind.value}: no call was ever admitted; {error.message}")
        else:
            wait_s = self._wait_s(turn, error, paused=paused)
            if wait_s is None:
                self._close_failed(turn, error)
        self._judge()
        return None if self.suspended else wait_s

    def _wait_s(self, turn: Turn, error: ProviderError, *, paused: bool) -> float | None:
        if self._fails_for_good(turn, error):
            return None
        now_s, policy = self._now_s(), self.model.retry
        excused = paused and error.retry_after_s is not None
        wait_s = wait_before_retry(
            error,
            attempt=turn.tries,
            elapsed_s=now_s - turn.since_s,
            policy=replace(policy, total_s=inf) if excused else policy,
            jitter=self.jitter.random(),
        )
        if excused and wait_s is not None:
            turn.since_s = now_s + wait_s
        return wait_s

    def _fails_for_good(self, turn: Turn, error: ProviderError) -> bool:
        """Whether a trial met the same error again and again while hardly any other did."""
        turn.hears(f"{error.kind} {error.message}", heard=(self._answers, self._failures))
        if error.kind not in _OF_THE_TRIAL:
            return False
        self._failures += 1
        answers, failures = self._answers - turn.heard_then[0], self._failures - turn.heard_then[1]
        others = failures - turn.same_words
        return turn.same_words >= SAME_WORDS and answers >= WELL * max(1, others)

    def _suspend_for(self, error: ProviderError) -> None:
        """Stop; what was refused like this stays open: a later run asks it again."""
        self.suspend(f"{error.kind.value}: {error.message}")

    def _close_failed(self, turn: Turn, error: ProviderError) -> None:
        grades = self.grade(turn.request.trial.problem, None, turn.request.trial.condition.style)
        self._write_result(turn, None, error, grades)

    def _judge(self) -> None:
        """Decide whether refusals are about their trials or about whatever this model would be asked."""
        refused = self.probation.refused
        if len({error.message for _, error in refused}) > 1:
            self.accept()
        elif self.probation.suspicious and not self.counters.in_flight:
            self._suspend_for(refused[0][1])

    def accept(self) -> None:
        """Close the refused trials: each is alone in it. Of a suspended model they stay open."""
        self.probation.accepted = True
        if not self.suspended:
            for turn, error in self.probation.refused:
                self._close_failed(turn, error)
        self.probation.refused.clear()

    async def close(self, turn: Turn, attempt: Attempt, reply: Reply) -> None:
        """Grade a reply and close its trial."""
        problem, style = turn.request.trial.problem, turn.request.trial.condition.style
        reply = replace(reply, max_tokens=attempt.max_tokens)
        if len(reply.text) > LONG_REPLY:
            grades = await asyncio.to_thread(self.grade, problem, reply, style)
        else:
            grades = self.grade(problem, reply, style)
        self._write_result(turn, attempt, reply, grades)

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
        if self.stopping is not None:
            failed = grades[0].outcome is Outcome.FAILED
            right = None if failed else grades[0].exact_match
            self.stopping.close(turn.request.trial.trial_id, right=right)


def is_answered(turn: Turn) -> bool:
    """Whether a trial only needs to be graded: an earlier run paid for its answer, and did not live to."""
    return turn.history.ended is not None and turn.history.ended.reply is not None
