"""The trials of one model that wait to be asked: read ahead, put back, passed over, given up."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final

from asyncbench.engine.asker import Asker
from asyncbench.engine.turn import Turn
from asyncbench.records import Stop

BATCH: Final = 256  # trials read at a time


class TrialQueue:
    """The next trials of one model, in the planned order; those that have to be tried again come first."""

    def __init__(self, asker: Asker) -> None:
        self.turns = deque[Turn]()
        self.hungry = asyncio.Event()  # it may be read on
        self.dry = False  # nothing more comes
        self._asker, self._counters, self._stopping = asker, asker.counters, asker.stopping
        self._changed: Callable[[], None] = lambda: None  # wakes its lane
        if self._stopping is not None:
            self._stopping.on_stop = self._pass_over

    async def feed(self, depth: Callable[[], int], changed: Callable[[], None]) -> None:
        """Keep up to `depth()` trials waiting: memory does not grow with the set."""
        asker, counters = self._asker, self._counters
        read = asker.read or partial(asyncio.to_thread, lambda: [*islice(asker.trials, BATCH)])
        self._changed = changed
        while not counters.over and (batch := await read()):
            asker.tell_read()
            for trial in batch:
                if counters.over:
                    break
                if (history := asker.history_of(trial)) is None:
                    continue
                request = asker.request_for(trial)
                self.turns.append(
                    Turn(
                        request=request,
                        history=history,
                        characters=asker.characters(request),
                        longest=asker.longest(request),
                        taken_s=asker.now_s(),
                        attempts=history.attempts,
                        cost_usd=history.cost_usd,
                    )
                )
                changed()
                if len(self.turns) >= depth():
                    self.hungry.clear()
                    await self.hungry.wait()
        asker.tell_read()
        self.dry = True
        self._tell_others()

    def put_back(self, turn: Turn) -> None:
        """Let a trial be the next again; of a model that is over it stays open."""
        if not self._counters.over:
            self.turns.appendleft(turn)

    def suspend(self, reason: str) -> None:
        """Give up what is not asked yet; the first proof is kept as the reason."""
        if self._counters.suspended is None:
            self._counters.suspended = reason
            self._asker.tell_suspended(reason)
        self.turns.clear()
        self.hungry.set()

    def stop_for_money(self) -> None:
        """Ask nothing more; what was answered before is still closed."""
        self._counters.budget_stopped = True
        self.turns = deque(turn for turn in self.turns if turn.answered)
        self.hungry.set()

    # ── what need not be asked ───────────────────────────────────────────────────────────────

    def gives_up(self, turn: Turn) -> bool:
        """Whether a trial that waits for its limits is not asked after all."""
        return self._counters.suspended is not None or self._stop_of(turn) is not None

    def skip(self, turn: Turn) -> bool:
        """Write down that a trial is needless, if it is; return whether it is."""
        stop = self._stop_of(turn)
        if stop is None or self._stopping is None:
            return False
        self._stopping.skip(turn.request.trial, stop)
        return True

    def _stop_of(self, turn: Turn) -> Stop | None:
        """Return what is known of a trial's cell, where the trial is neither begun nor answered."""
        if self._stopping is None or turn.tries or turn.answered:
            return None
        return self._stopping.stop_of(turn.request.trial)

    def _pass_over(self) -> None:
        """Leave out what waits and is needless now that a cell was stopped."""
        self.turns = deque(turn for turn in self.turns if not self.skip(turn))
        self.hungry.set()
        self._tell_others()

    def _tell_others(self) -> None:
        self._changed()
        if self._asker.account is not None:
            self._asker.account.ledger.changed()
