"""The client of one model, as a run or a worker of a cluster hands it to the engine.

Three objects answer whatever the engine asks. `TrialFeed` has the trials and what earlier runs know of them.
`ModelCalls` makes a call and says what it takes of limits and money. `TrialRecords` grades replies, keeps
events, and hears of failures.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from asyncbench.engine.budget import Account
from asyncbench.engine.limits import Counting
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ProviderError
from asyncbench.pricing import Rates
from asyncbench.records import Condition, Event, Grade, History, Model, Problem, Reply, Request, Trial

READ_AT_ONCE: Final = 256  # trials
LONG_REPLY: Final = 20_000  # characters; grading more than that would hold up every other request in flight
UNKNOWN: Final = History()  # of a trial that no earlier run knows
MostUsd = Callable[[Request, float], float | None]  # that a call may cost, sent then (UTC); None: unknown


@dataclass(slots=True, kw_only=True)
class TrialFeed:
    """The trials of one model, in the planned order."""

    trials: Iterator[Trial] = field(default_factory=lambda: iter(()))  # is read in another thread
    histories: Mapping[str, History] = field(default_factory=dict)  # what earlier runs know, by trial

    def read(self) -> Awaitable[Sequence[Trial]]:
        """Return the next trials; empty: there are no more."""
        return asyncio.to_thread(list, islice(self.trials, READ_AT_ONCE))

    def note_read(self) -> None:
        """Do, on the event loop, what is to be done when trials were read."""

    def history_of(self, trial: Trial) -> History | None:
        """Return a trial's history in earlier runs, or None if it need not be asked."""
        return self.histories.get(trial.trial_id, UNKNOWN)


class ModelCalls(Protocol):
    """Makes the calls of one model, and says what they take."""

    # Whether calls are timed in this process. Workers time theirs, while they are not stopped.
    timed_here: bool

    def request_for(self, trial: Trial, /) -> Request:
        """Return the request of a trial."""

    def characters(self, request: Request, /) -> int:
        """Return how many characters are sent, for token estimates."""

    def longest(self, request: Request, /) -> int | None:
        """Return the most tokens of a reply, or None without a limit."""

    def rates(self, tier: str | None, sent_at: float, /) -> Rates | None:
        """Return the prices of a call by the tier that served it and its time in UTC, or None."""

    def most_usd(self, request: Request, sent_at: float, /) -> float | None:
        """Return the most that a call without a budget may cost, sent at a time in UTC, or None."""

    def ask(self, request: Request, /) -> Awaitable[Reply]:
        """Make one call; raises ProviderError where it fails."""


class TrialRecords(Protocol):
    """Grades the replies of one model, keeps its events, and hears of its failures."""

    def grade(self, problem: Problem, reply: Reply | None, condition: Condition, /) -> tuple[Grade, ...]:
        """Return the grades of a reply, the one that counts first, or None without a reply."""

    def is_slow(self, problem: Problem, /) -> bool:
        """Return whether grading a reply to a problem may take long."""

    def keep(self, event: Event, /) -> None:
        """Write an event down; raises UnwrittenError where it cannot."""

    def note_failure(self, error: ProviderError, /) -> None:
        """Hear of a call that failed; only until the model's first reply."""

    def note_suspension(self, reason: str, /) -> None:
        """Hear, once, why the model is asked no more."""

    def note_fault(self, error: Exception, /) -> None:
        """Hear of an error that no adapter foresaw."""


@dataclass(slots=True, kw_only=True)
class ModelClient:
    """A model with its trials, its calls and its records, and what its lane shares with them."""

    model: Model
    counters: Counters
    feed: TrialFeed
    calls: ModelCalls
    records: TrialRecords
    stopping: Stopping | None = None  # of its cells; None: no rule stops any
    account: Account | None = None  # of the sweep's budget; None: none holds this model
    counting: Counting = Counting.USED
    lag: LoopLag
    worker: str | None = None  # of a cluster, in whose process this is; None: it is the run's own
    grading: asyncio.Lock = field(default_factory=asyncio.Lock)  # slow graders run one at a time
    jitter: random.Random
    epoch_s: float  # UTC at zero of the loop's clock
    now_s: Callable[[], float] = field(init=False)  # that clock, as soon as the lane runs

    def grades_long(self, problem: Problem, reply: Reply) -> bool:
        """Return whether grading may take long, so that another thread does it."""
        return len(reply.text) > LONG_REPLY or self.records.is_slow(problem)

    def suspend(self, reason: str) -> None:
        """Ask nothing more of this model; the first proof is kept as the reason."""
        if self.counters.suspended is None:
            self.counters.suspended = reason
            self.records.note_suspension(reason)

    @property
    def answered_before(self) -> bool:
        """Whether earlier runs got replies from this model."""
        return self.counters.done_before > self.counters.failed_before
