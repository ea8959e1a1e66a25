"""What a run knows about itself: counters for the screen, and how late the event loop is."""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field

from asyncbench.records import Attempt, Outcome


@dataclass(slots=True, kw_only=True)
class Counters:
    """The running figures of one model; the screen samples them, the summary reads them at the end."""

    planned: int = 0
    done_before: int = 0  # closed by earlier runs
    failed_before: int = 0  # those of them that were closed without a reply
    outcomes: Counter[Outcome] = field(default_factory=Counter)  # of trials closed by this run
    attempts: int = 0
    in_flight: int = 0
    rate_limited: int = 0  # attempts answered by a 429
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0  # of attempts whose cost is known
    unpriced: int = 0  # attempts whose cost is not
    lost: int = 0  # those of them without a reply: billed or not, whatever the price
    grader_errors: int = 0  # replies that a grader stumbled over: kept, and counted as no answer
    suspended: str | None = None  # why this model was given up before its work was done
    client_bound: bool = False  # this machine, not the provider, held it back at some time

    @property
    def done(self) -> int:
        """Trials closed, by this run and before it."""
        return self.done_before + self.outcomes.total()

    @property
    def complete(self) -> bool:
        """Whether every planned trial is closed, and with a reply."""
        return self.done >= self.planned and not self.failed

    @property
    def failed(self) -> int:
        """Trials closed without a reply, by this run and before it."""
        return self.failed_before + self.outcomes[Outcome.FAILED]

    def count(self, attempt: Attempt) -> None:
        """Add an attempt that is over."""
        self.attempts += 1
        self.rate_limited += attempt.status == "rate_limited"
        if attempt.cost_usd is None:
            self.unpriced += 1
            self.lost += attempt.status != "ok"
        else:
            self.cost_usd += attempt.cost_usd
        if attempt.usage is not None:
            self.input_tokens += attempt.usage.input_tokens or 0
            self.output_tokens += attempt.usage.output_tokens or 0


class LoopLag:
    """How late the event loop wakes a sleeper: the client's own delay in every latency it measures."""

    LATE_S = 0.5  # calls in flight are kept waiting for so long that they may miss their deadlines

    def __init__(self, *, interval_s: float = 0.1) -> None:
        self.interval_s = interval_s  # between two readings
        self.now_s = 0.0  # the last reading
        self._late_at_s = -math.inf

    @property
    def late(self) -> bool:
        """Whether the loop has more to do than it can."""
        return self.now_s > self.LATE_S

    def late_since(self, at_s: float) -> bool:
        """Whether it was late at any time since `at_s`, on the loop's clock."""
        return self._late_at_s >= at_s

    async def measure(self) -> None:
        """Take readings until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + self.interval_s
            await asyncio.sleep(self.interval_s)
            self.now_s = max(0.0, loop.time() - due_s)
            if self.late:
                self._late_at_s = loop.time()
