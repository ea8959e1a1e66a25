"""Leave batches before they end: before a deadline, at somebody's word, or to let them go on alone.

Before a deadline a model changes from batches to real time. No trial is asked in both ways at once: what a
batch has not answered is asked when that batch has ended.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncbench.engine.model_client import ModelClient
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.ledger import BatchPart
from asyncbench.lanes.batches.polling import Polling
from asyncbench.pricing import dollars_of
from asyncbench.records import BATCH
from asyncbench.tables.numbers import dollars

CANCEL_S: Final = 1800.0  # until cancelled batches have ended; 25 minutes were seen
LEAST_S: Final = 7200.0  # before a deadline, in which no batch is begun
SPARE: Final = 1.3  # times what real time takes by its forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A deadline, and what real time takes until then."""

    ends_at: float  # UTC, seconds since 1970
    trials: int  # that are left, those in batches too
    trial_s: float  # that one of them takes in real time, beside others
    trial_usd: float | None  # that it costs there; None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnding:
    """How a run leaves batches that have not ended."""

    cancels: bool = False  # it cancels all of them, and asks nothing
    detaches: bool = False  # it waits for none: it ends as soon as all are sent that can be
    switch: Switch | None = None  # to real time, before a deadline; None: batches have their time


def switch_s(realtime_s: float, *, real_s: float = 1.0) -> float:
    """Return how long before its deadline a run leaves batches for what takes so long in real time."""
    return SPARE * realtime_s + CANCEL_S * real_s


class Switching:
    """Whether the batches of one model still come in time, and which of them are to be cancelled."""

    def __init__(
        self, context: BatchContext, ending: BatchEnding, polling: Polling, client: ModelClient
    ) -> None:
        self.ending = ending
        # What earlier runs left is collected, and no batch is begun.
        self.collects = client.model.mode != BATCH and not ending.detaches
        self._context, self._polling, self._client = context, polling, client
        self._gives_up_at = math.inf  # UTC
        self._switched_at: float | None = None  # UTC
        self._notified = False

    @property
    def begins_none(self) -> bool:
        """Whether no batch is begun, as it is too late for one or the sweep does not want any more."""
        over = self.ending.cancels or self.collects or self._switched_at is not None
        return over or self._remaining_s < LEAST_S * self._context.clock.real_s

    @property
    def gives_up(self) -> bool:
        """Whether cancelled batches have had their time to end: they are waited for no longer."""
        return self._context.clock.now() > self._gives_up_at

    def late_parts(self) -> Iterator[BatchPart]:
        """Yield the parts that are to be cancelled now, those that are furthest from done first."""
        switch = self.ending.switch
        if not self.ending.cancels and (switch is None or not self._is_time(switch)):
            return
        clock = self._context.clock
        if self.ending.cancels and self._gives_up_at == math.inf:
            self._gives_up_at = clock.now() + CANCEL_S * clock.real_s
        parts = self._context.ledger.parts_of(self._context.alias)
        running = [batch_part for batch_part in parts if batch_part.submitted]
        for batch_part in sorted(running, key=lambda running: self._done(running) / running.requests):
            if batch_part.cancelled_at is not None:
                continue
            # At a deadline a part is left that ends, at its pace so far, while others are being cancelled.
            done, created_at = self._done(batch_part), batch_part.created_at
            if not self.ending.cancels and done and created_at is not None and self._switched_at is not None:
                now = clock.now()
                ends_at = created_at + (now - created_at) * batch_part.requests / done
                if max(now, ends_at) < self._switched_at + CANCEL_S * clock.real_s:
                    continue
            yield batch_part

    @property
    def _remaining_s(self) -> float:
        switch = self.ending.switch
        return math.inf if switch is None else switch.ends_at - self._context.clock.now()

    def _is_time(self, switch: Switch) -> bool:
        """Whether the batches are left now; what the budget cannot pay in real time stays in them."""
        if self._switched_at is not None:
            return True

        # As many trials as no batch has answered yet are to be asked in real time.
        counters, context = self._client.counters, self._context
        open_trials = switch.trials - counters.outcomes.total() - counters.skipped
        unfinished = open_trials - sum(batch.done or 0 for batch in self._polling.latest.values())
        if self._remaining_s > switch_s(unfinished * switch.trial_s, real_s=context.clock.real_s):
            return False
        if not self._affords(open_trials, switch.trial_usd):
            return False

        self._switched_at = context.clock.now()
        if any(batch_part.submitted for batch_part in context.ledger.parts_of(context.alias)):
            context.notify(
                f"the deadline is near. asyncbench cancels batches that may not end in time, "
                f"and asks what they leave in real time, about {unfinished:,} trials. What a batch has done "
                "is billed, and collected."
            )
        return True

    def _affords(self, trials: int, trial_usd: float | None) -> bool:
        """Whether the budget pays so many trials in real time; a person is told once that it does not."""
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

    def _done(self, batch_part: BatchPart) -> int:
        """Return how many requests of a part were done when its batch was seen last."""
        batch = self._polling.latest.get(batch_part.batch_id or "")
        return (batch and batch.done) or 0
