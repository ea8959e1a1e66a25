"""One model of a lane: what a run hands to it, and the parts that are made of that.

    Turn  ←  TrialQueue  ←  Money  ←  Attempts  ←  Closing
             (waits)        (costs)   (journal)    (grades, retries)

Each part knows those to its left alone; the lane calls all of them.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from asyncbench.engine.attempts import Attempts, Keep
from asyncbench.engine.budget import Account
from asyncbench.engine.closing import Closing, GradeReply
from asyncbench.engine.expected import Expected
from asyncbench.engine.limits import Counting
from asyncbench.engine.money import Money, MostUsd
from asyncbench.engine.probation import Probation
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.engine.trial_queue import HistoryOf, TrialQueue
from asyncbench.pricing import RatesAt
from asyncbench.records import Model, Reply, Request, Trial


@dataclass(slots=True, kw_only=True)
class Asker:
    """The trials of one model, from its problem sets to their results."""

    model: Model
    trials: Iterator[Trial]  # is read in another thread
    history_of: HistoryOf
    request_for: Callable[[Trial], Request]
    ask: Callable[[Request], Awaitable[Reply]]
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
    tell_suspended: Callable[[str], None] = lambda _: None  # is called once, with the reason
    tell_fault: Callable[[Exception], None] = lambda _: None  # is called with what no adapter foresaw
    account: Account | None = None  # of the sweep's budget; None: none holds this model
    most_usd: MostUsd = lambda _, __: None  # without one
    stopping: Stopping | None = None  # of its cells; None: no rule stops any
    waiting: int = 0  # trials to be tried again
    away: bool = False  # its lane waits for long: other models need not wait for this one
    not_before_s: float = -inf  # the loop's clock: a provider's word about this model of a group
    queue: TrialQueue = field(init=False)
    money: Money = field(init=False)
    expected: Expected = field(init=False)
    probation: Probation = field(init=False)
    attempts: Attempts = field(init=False)
    closing: Closing = field(init=False)
    _now_s: Callable[[], float] = field(init=False)  # the loop's clock

    def begin(self) -> None:
        """Get ready, on the running loop."""
        self._now_s = asyncio.get_running_loop().time
        self.expected = Expected(self.counting)
        self.probation = Probation(answered_before=self.answered_before, accepted=self.answered_before)
        self.queue = TrialQueue(
            trials=self.trials,
            history_of=self.history_of,
            request_for=self.request_for,
            characters=self.characters,
            longest=self.longest,
            tell_read=self.tell_read,
            tell_suspended=self.tell_suspended,
            counters=self.counters,
            account=self.account,
            stopping=self.stopping,
            now_s=self._now_s,
        )
        self.money = Money(
            model=self.model,
            rates=self.rates,
            account=self.account,
            most_usd=self.most_usd,
            queue=self.queue,
            epoch_s=self.epoch_s,
            now_s=self._now_s,
        )
        self.attempts = Attempts(
            model=self.model,
            keep=self.keep,
            money=self.money,
            counters=self.counters,
            lag=self.lag,
            tell_fault=self.tell_fault,
            epoch_s=self.epoch_s,
            now_s=self._now_s,
        )
        self.closing = Closing(
            grade=self.grade,
            keep=self.keep,
            money=self.money,
            queue=self.queue,
            probation=self.probation,
            counters=self.counters,
            policy=self.model.retry,
            jitter=self.jitter,
            epoch_s=self.epoch_s,
            now_s=self._now_s,
        )
        if self.account is not None:
            self.account.join(self.counters, asks=self._asks, now_s=self._now_s)

    @property
    def answered_before(self) -> bool:
        """Whether earlier runs got replies from this model."""
        return self.counters.done_before > self.counters.failed_before

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        waits = self.probation.suspicious and self.counters.in_flight  # for one of them to be answered
        held = waits or self.narrow or self._now_s() < self.not_before_s
        return bool(self.queue.turns) and not held

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer."""
        return self.counters.in_flight >= self.probation.most(self._now_s())

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return (self.queue.dry or self.counters.over) and not self.queue.turns

    def news(self) -> Iterator[str]:
        """Yield what a person should hear, each once."""
        of_account = None if self.account is None else self.account.news()
        return filter(None, (of_account, self.money.news(), self.probation.news()))

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        held = self.away or self._now_s() < self.not_before_s
        return bool(self.queue.turns or not self.queue.dry) and not self.counters.over and not held
