"""The trials of one model that wait to be asked: read ahead, put back, passed over, given up."""

import asyncio
from collections import deque
from collections.abc import Callable

from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.records import Stop


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
        feed, calls = client.feed, client.calls
        self._changed = changed
        while not counters.over and (batch := await feed.read()):
            feed.note_read()
            for trial in batch:
                if counters.over:
                    break
                if (history := feed.history_of(trial)) is None:
                    continue
                request = calls.request_for(trial)
                self.pending.append(
                    PendingTrial(
                        request=request,
                        history=history,
                        characters=calls.characters(request),
                        longest=calls.longest(request),
                        taken_s=client.now_s(),
                        attempts=history.attempts,
                        cost_usd=history.cost_usd,
                    )
                )
                changed()
                if len(self.pending) >= depth():
                    self.hungry.clear()
                    await self.hungry.wait()
        feed.note_read()
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
        """Return the rule that stops a trial's cell, where the trial is neither begun nor answered."""
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
