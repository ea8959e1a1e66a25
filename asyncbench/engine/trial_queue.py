"""The trials of one model that wait to be asked: read ahead, put back, passed over, given up."""

import asyncio
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

from asyncbench.engine.budget import NOTHING, Account, Hold
from asyncbench.engine.limits import Amounts, Counting, respected_wait_s
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import WORTH_ANOTHER_TRY, ProviderError
from asyncbench.pricing import RatesAt
from asyncbench.records import (
    Condition,
    Event,
    Grade,
    History,
    Model,
    Problem,
    Reply,
    Request,
    RetryPolicy,
    Stop,
    Trial,
)

# ── A trial on its way through a lane, and its back-off


_NUMBERS: Final = re.compile(r"[0-9a-fA-F-]{8,}|\d+")  # ids of requests, times: no two errors have the same
ONE_CALL: Final = Amounts()
ExtraColumns = Callable[
    ["PendingTrial", Reply | ProviderError | None], Mapping[str, Any]
]  # Any: fields of `Attempt`


@dataclass(slots=True, kw_only=True)
class PendingTrial:
    """A trial between its problem set and its result; times are the loop's clock."""

    request: Request
    history: History  # what earlier runs know of it
    characters: int  # that are sent
    longest: int | None = None  # the most tokens of its reply; None: nothing limits it
    taken_s: float  # when it was read
    tries: int = 0  # attempts of this run
    attempts: int = 0  # all attempts, those of earlier runs included
    cost_usd: float | None = 0.0  # of all attempts; None if that of any is unknown
    since_s: float = 0.0  # its time runs from here: the first attempt, or the end of its lane's last pause
    sent_s: float = 0.0  # the latest attempt
    number: int = 0  # of the latest attempt among the calls of the lane, from 1
    in_flight: int = 0  # of the lane, when the latest attempt was sent
    reserved: Amounts = field(default=ONE_CALL)
    hold: Hold = NOTHING  # of money, for the latest attempt
    reserved_usd: float | None = None  # the same in USD; None: no budget holds it
    most_usd: float | None = None  # the latest attempt may cost; None: unknown
    price_source: str | None = None  # who says what the latest attempt cost
    priced_s: float = 0.0  # when `hold` was worked out
    terms: int = 0  # of the account then
    is_probe: bool = False  # the one call that a paused lane makes to see whether the pause is over
    last_words: str | None = None  # of the error it met last
    same_words: int = 0  # how often in a row
    counts_then: tuple[int, int] = (0, 0)  # answers and failures of its model, when it first met them
    rounds: int = 0  # parts of batches that it was in
    extra_columns: "ExtraColumns" = lambda _pending, _ended: {}  # further columns of its `Attempt`

    @property
    def answered(self) -> bool:
        """Whether it only needs to be graded: an earlier run paid for its answer, and did not live to."""
        return self.history.ended is not None and self.history.ended.reply is not None

    def charge(self, cost: float | None) -> None:
        """Add what an attempt cost; an unknown cost makes the whole unknown."""
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost

    def note_failure(self, words: str, *, counts: tuple[int, int]) -> None:
        """Note how an attempt failed; `counts` are the answers and failures of its model so far."""
        words = _NUMBERS.sub("#", words)
        if words != self.last_words:
            self.last_words, self.same_words, self.counts_then = words, 0, counts
        self.same_words += 1


def wait_before_retry(
    error: ProviderError,
    *,
    attempt: int,
    elapsed_s: float,
    policy: RetryPolicy,
    jitter: float,
) -> float | None:
    """Return the seconds until the next attempt, or None to give up.

    A provider's own Retry-After is never undercut; without one, or where it was too short again and again,
    the wait doubles from `first_s` to `longest_s`, half of it fixed and half of it jitter.

    Args:
        error: how the attempt ended.
        attempt: which attempt of this run it was, from 1.
        elapsed_s: since the first attempt of this run was sent.
        policy: the caps.
        jitter: in [0, 1), drawn by the caller.
    """
    if error.kind not in WORTH_ANOTHER_TRY or attempt >= policy.attempts:
        return None
    # Spread over a little more than was asked for, or all who were sent away return at once.
    named_s = None if error.retry_after_s is None else error.retry_after_s * (1 + jitter / 10)
    wait_s = respected_wait_s(named_s, _back_off(attempt, policy, jitter), times=attempt)
    return wait_s if elapsed_s + wait_s <= policy.total_s else None


def _back_off(attempt: int, policy: RetryPolicy, jitter: float) -> float:
    doubled_s = policy.first_s * 2.0 ** min(attempt - 1, 30)  # bounded: attempt may be any number
    return min(policy.longest_s, doubled_s) * (0.5 + jitter / 2)


# ── A model with its trials, handed to the engine by a run


LONG_REPLY: Final = 20_000  # characters; grading more than that would hold up every other request in flight
Keep = Callable[[Event], None]
MostUsd = Callable[[Request, float], float | None]  # that a call may cost, sent then (UTC); None: unknown


@dataclass(slots=True, kw_only=True)
class ModelClient:
    """A model with its trials, and the ways to ask, grade and keep them: source, call and keep."""

    model: Model
    counters: Counters
    worker: str | None = None  # of a cluster, in whose process this is; None: it is the run's own

    # Source: which trials there are, and what each asks.
    trials: Iterator[Trial]  # is read in another thread
    read: Callable[[], Awaitable[Sequence[Trial]]] | None = None  # the next trials, instead of `trials`
    on_read: Callable[[], None] = lambda: None  # is called, on the event loop, when trials were read
    history_of: Callable[[Trial], History | None]  # what earlier runs know; None: it need not be asked
    request_for: Callable[[Trial], Request]
    stopping: Stopping | None = None  # of its cells; None: no rule stops any

    # Call: how one is made, what it takes of limits and money, and when.
    ask: Callable[[Request], Awaitable[Reply]]
    times_calls: bool = True  # False: worker processes do, in time in which they are not stopped
    characters: Callable[[Request], int]  # what is sent, for token estimates
    longest: Callable[[Request], int | None]  # the most tokens of a reply; None: nothing limits it
    counting: Counting = Counting.USED
    rates: RatesAt  # what it costs, by tier served and time
    account: Account | None = None  # of the sweep's budget; None: none holds this model
    most_usd: MostUsd = lambda _, __: None  # without one
    lag: LoopLag
    epoch_s: float  # UTC at zero of the loop's clock
    now_s: Callable[[], float] = field(init=False)  # that clock, as soon as the lane runs
    jitter: random.Random

    # Keep: what becomes of a reply, and who hears of failures.
    grade: Callable[[Problem, Reply | None, Condition], tuple[Grade, ...]]
    slow: Callable[[Problem], bool] = lambda _: False  # whether grading its replies may take long
    grading: asyncio.Lock = field(default_factory=asyncio.Lock)  # what is slow is graded one by one
    keep: Keep
    on_failure: Callable[[ProviderError], None] = lambda _: None  # is called until the first reply
    on_suspension: Callable[[str], None] = lambda _: None  # is called once, with the reason
    on_fault: Callable[[Exception], None] = lambda _: None  # is called with what no adapter foresaw

    def grades_long(self, problem: Problem, reply: Reply) -> bool:
        """Whether grading may take long, so that another thread does it."""
        return len(reply.text) > LONG_REPLY or self.slow(problem)

    def suspend(self, reason: str) -> None:
        """Ask nothing more of this model; the first proof is kept as the reason."""
        if self.counters.suspended is None:
            self.counters.suspended = reason
            self.on_suspension(reason)

    @property
    def answered_before(self) -> bool:
        """Whether earlier runs got replies from this model."""
        return self.counters.done_before > self.counters.failed_before


# ── The queue of a model


BATCH: Final = 256  # trials read at a time


class TrialQueue:
    """The next trials of one model, in the planned order; those that have to be tried again come first."""

    def __init__(self, client: ModelClient) -> None:
        self.pending = deque[PendingTrial]()
        self.hungry = asyncio.Event()  # it may be read on
        self.dry = False  # nothing more comes
        self._client, self._counters, self._stopping = client, client.counters, client.stopping
        self._changed: Callable[[], None] = lambda: None  # wakes its lane
        if self._stopping is not None:
            self._stopping.on_stop = self._pass_over

    async def feed(self, depth: Callable[[], int], changed: Callable[[], None]) -> None:
        """Keep up to `depth()` trials waiting: memory does not grow with the set."""
        client, counters = self._client, self._counters
        read = client.read or partial(asyncio.to_thread, lambda: [*islice(client.trials, BATCH)])
        self._changed = changed
        while not counters.over and (batch := await read()):
            client.on_read()
            for trial in batch:
                if counters.over:
                    break
                if (history := client.history_of(trial)) is None:
                    continue
                request = client.request_for(trial)
                self.pending.append(
                    PendingTrial(
                        request=request,
                        history=history,
                        characters=client.characters(request),
                        longest=client.longest(request),
                        taken_s=client.now_s(),
                        attempts=history.attempts,
                        cost_usd=history.cost_usd,
                    )
                )
                changed()
                if len(self.pending) >= depth():
                    self.hungry.clear()
                    await self.hungry.wait()
        client.on_read()
        self.dry = True
        self._tell_others()

    def take(self, depth: int) -> PendingTrial:
        """Take the next trial; more are read as soon as half of `depth` or fewer wait."""
        pending = self.pending.popleft()
        if len(self.pending) <= depth // 2:
            self.hungry.set()
        return pending

    def put_back(self, pending: PendingTrial) -> None:
        """Let a trial be the next again; of a model that is over it stays open."""
        if not self._counters.over:
            self.pending.appendleft(pending)

    def suspend(self, reason: str) -> None:
        """Give up what is not asked yet."""
        self._client.suspend(reason)
        self.pending.clear()
        self.hungry.set()

    def stop_for_money(self) -> None:
        """Ask nothing more; what was answered before is still closed."""
        self._counters.budget_stopped = True
        self.pending = deque(pending for pending in self.pending if pending.answered)
        self.hungry.set()

    # ── Needless trials ──────────────────────────────────────────────────────────────────────────

    def gives_up(self, pending: PendingTrial) -> bool:
        """Whether a trial that waits for its limits is not asked after all."""
        return self._counters.suspended is not None or self._stop_of(pending) is not None

    def skip(self, pending: PendingTrial) -> bool:
        """Write down that a trial is needless, if it is; return whether it is."""
        stop = self._stop_of(pending)
        if stop is None or self._stopping is None:
            return False
        self._stopping.skip(pending.request.trial, stop)
        return True

    def _stop_of(self, pending: PendingTrial) -> Stop | None:
        """Return what is known of a trial's cell, where the trial is neither begun nor answered."""
        if self._stopping is None or pending.tries or pending.answered:
            return None
        return self._stopping.stop_of(pending.request.trial)

    def _pass_over(self) -> None:
        """Leave out what waits and is needless now that a cell was stopped."""
        self.pending = deque(pending for pending in self.pending if not self.skip(pending))
        self.hungry.set()
        self._tell_others()

    def _tell_others(self) -> None:
        self._changed()
        if self._client.account is not None:
            self._client.account.ledger.changed()
