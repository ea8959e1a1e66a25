"""A model with its trials, as a run hands it to the engine."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.budget import Account
from asyncbench.engine.limits import Counting
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ProviderError
from asyncbench.pricing import RatesAt
from asyncbench.records import Condition, Event, Grade, History, Model, Problem, Reply, Request, Trial

LONG_REPLY: Final = 20_000  # characters; grading more than that would hold up every other request in flight
Keep = Callable[[Event], None]
MostUsd = Callable[[Request, float], float | None]  # that a call may cost, sent then (UTC); None: unknown


@dataclass(slots=True, kw_only=True)
class ModelClient:
    """A model with its trials, and what a run does for the engine: names trials, asks, grades, keeps."""

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
