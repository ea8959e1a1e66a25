"""What a run knows about itself: counters for the screen, and how late the event loop is."""

import asyncio
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
    suspended: str | None = None  # why this lane stopped before its work was done

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

    INTERVAL_S = 0.1

    def __init__(self) -> None:
        self.now_s = 0.0  # the last reading

    async def measure(self) -> None:
        """Take readings until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + self.INTERVAL_S
            await asyncio.sleep(self.INTERVAL_S)
            self.now_s = max(0.0, loop.time() - due_s)
