"""Switch a model from batches to real time before a deadline that its batches would miss.

No trial is asked in both ways at once: what a batch has not answered is asked when that batch has ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncbench.engine.trial_queue import ModelClient
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.ledger import BatchPart
from asyncbench.lanes.batches.polling import WAIT_S, Polling
from asyncbench.pricing import dollars_of
from asyncbench.records import BATCH
from asyncbench.tables.numbers import dollars

LEAST_S: Final = 7200.0  # before a deadline, in which no batch is begun
SPARE: Final = 1.3  # times what real time takes by its forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A deadline, and what real time takes until then."""

    ends_at: float  # UTC, seconds since 1970
    trials: int  # that are left, those in batches too
    trial_s: float  # that one of them takes in real time, beside others
    trial_usd: float | None  # that it costs there; None: no price is known


def switch_s(realtime_s: float, *, real_s: float = 1.0) -> float:
    """Return how long before its deadline a run leaves batches for what takes so long in real time."""
    return SPARE * realtime_s + WAIT_S * real_s


class Switching:
    """Whether the batches of one model still come in time."""

    def __init__(
        self,
        context: BatchContext,
        switch: Switch | None,
        polling: Polling,
        client: ModelClient,
        *,
        ends: bool = False,
        leaves: bool = False,
    ) -> None:
        """`ends`: somebody cancels all of them. `leaves`: none is waited for."""
        self._context, self._switch, self._polling, self._client = context, switch, polling, client
        self._ends = ends
        self.collects = client.model.mode != BATCH and not leaves  # what earlier runs left, and begins none
        self._switched_at: float | None = None
        self._notified = False

    @property
    def begins_none(self) -> bool:
        """Whether no batch is begun, as it is too late for one or the sweep does not want any more."""
        over = self._ends or self.collects or self._switched_at is not None
        return over or self._left_s < LEAST_S * self._context.clock.real_s

    def late(self) -> Iterator[BatchPart]:
        """Yield the parts that are to be cancelled now, those that are furthest from done first."""
        if not self._ends and (self._switch is None or not self._is_time(self._switch)):
            return
        running = [part for part in self._context.ledger.of(self._context.alias) if part.submitted]
        for part in sorted(running, key=lambda part: self._done(part) / part.requests):
            if part.cancelled_at is None and not self._ends_soon(part):
                yield part

    @property
    def _left_s(self) -> float:
        return float("inf") if self._switch is None else self._switch.ends_at - self._context.clock.now()

    def _is_time(self, switch: Switch) -> bool:
        """Whether the batches are left now; what the budget cannot pay in real time stays in them."""
        if self._switched_at is not None:
            return True
        counters, context = self._client.counters, self._context
        open_trials = switch.trials - counters.outcomes.total() - counters.skipped
        unfinished = open_trials - sum(batch.done or 0 for batch in self._polling.latest.values())
        if self._left_s > switch_s(unfinished * switch.trial_s, real_s=context.clock.real_s):
            return False
        if not self._affords(open_trials, switch.trial_usd):
            return False
        self._switched_at = context.clock.now()
        if any(part.submitted for part in context.ledger.of(context.alias)):
            context.notify(
                f"the deadline is near. asyncbench cancels batches that may not end in time, "
                f"and asks what they leave in real time, about {unfinished:,} trials. What a batch has done "
                "is billed, and collected."
            )
        return True

    def _affords(self, trials: int, trial_usd: float | None) -> bool:
        account = self._client.account
        if account is None or trial_usd is None:
            return True
        room = min(cap.limit - cap.spent - cap.reserved for cap in account.caps) + account.reserved
        if trials * trial_usd <= dollars_of(max(0, room)):
            return True
        if not self._notified:
            self._notified = True
            self._context.notify(
                f"it would be time to leave batches for real time, but "
                f"{trials:,} trials would cost about {dollars(trials * trial_usd)} there, and the budget has "
                f"{dollars(dollars_of(max(0, room)))} left. The batches go on: what does not end by the "
                f"deadline will be missing, up to {trials:,} trials. A later run collects it."
            )
        return False

    def _done(self, part: BatchPart) -> int:
        batch = self._polling.latest.get(part.batch_id or "")
        return (batch and batch.done) or 0

    def _ends_soon(self, part: BatchPart) -> bool:
        """Whether a part, at its pace so far, ends while others are being cancelled."""
        now, done = self._context.clock.now(), self._done(part)
        if self._ends or not done or part.created_at is None or self._switched_at is None:
            return False
        ends_at = part.created_at + (now - part.created_at) * part.requests / done
        return max(now, ends_at) < self._switched_at + WAIT_S * self._context.clock.real_s
