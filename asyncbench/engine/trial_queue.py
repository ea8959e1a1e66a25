"""The trials of one model that wait to be asked: read ahead, put back, passed over, given up."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from asyncbench.engine.budget import Account
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters
from asyncbench.engine.turn import Turn
from asyncbench.records import History, Request, Stop, Trial

HistoryOf = Callable[[Trial], History | None]  # what earlier runs know of it; None: it need not be asked
BATCH: Final = 256  # trials read at a time


def _nothing() -> None: ...


@dataclass(slots=True, kw_only=True)
class TrialQueue:
    """The next trials of one model, in the planned order; those that have to be tried again come first."""

    trials: Iterator[Trial]
    history_of: HistoryOf
    request_for: Callable[[Trial], Request]
    characters: Callable[[Request], int]
    longest: Callable[[Request], int | None]
    tell_read: Callable[[], None]
    tell_suspended: Callable[[str], None]
    counters: Counters
    account: Account | None
    stopping: Stopping | None
    now_s: Callable[[], float]
    turns: deque[Turn] = field(default_factory=deque)
    hungry: asyncio.Event = field(default_factory=asyncio.Event)  # it may be read on
    dry: bool = False  # nothing more comes
    _changed: Callable[[], None] = _nothing  # wakes its lane

    def __post_init__(self) -> None:
        if self.stopping is not None:
            self.stopping.on_stop(self._pass_over)

    async def feed(self, depth: Callable[[], int], changed: Callable[[], None]) -> None:
        """Keep up to `depth()` trials waiting: memory does not grow with the set."""
        self._changed, counters = changed, self.counters
        while not counters.over and (batch := await asyncio.to_thread(lambda: [*islice(self.trials, BATCH)])):
            self.tell_read()
            for trial in batch:
                if counters.over:
                    break
                if (history := self.history_of(trial)) is None:
                    continue
                request = self.request_for(trial)
                self.turns.append(
                    Turn(
                        request=request,
                        history=history,
                        characters=self.characters(request),
                        longest=self.longest(request),
                        taken_s=self.now_s(),
                        attempts=history.attempts,
                        cost_usd=history.cost_usd,
                    )
                )
                changed()
                if len(self.turns) >= depth():
                    self.hungry.clear()
                    await self.hungry.wait()
        self.tell_read()
        self.dry = True
        self._tell_others()

    def put_back(self, turn: Turn) -> None:
        """Let a trial be the next again; of a model that is over it stays open."""
        if not self.counters.over:
            self.turns.appendleft(turn)

    def suspend(self, reason: str) -> None:
        """Give up what is not asked yet; the first proof is kept as the reason."""
        if self.counters.suspended is None:
            self.counters.suspended = reason
            self.tell_suspended(reason)
        self.turns.clear()
        self.hungry.set()

    def stop_for_money(self) -> None:
        """Ask nothing more; what was answered before is still closed."""
        self.counters.budget_stopped = True
        self.turns = deque(turn for turn in self.turns if turn.answered)
        self.hungry.set()

    # ── what need not be asked ───────────────────────────────────────────────────────────────

    def gives_up(self, turn: Turn) -> bool:
        """Whether a trial that waits for its limits is not asked after all."""
        return self.counters.suspended is not None or self._stop_of(turn) is not None

    def skip(self, turn: Turn) -> bool:
        """Write down that a trial is needless, if it is; return whether it is."""
        stop = self._stop_of(turn)
        if stop is None or self.stopping is None:
            return False
        self.stopping.skip(turn.request.trial, stop)
        return True

    def _stop_of(self, turn: Turn) -> Stop | None:
        """Return what is known of a trial's cell, where the trial is neither begun nor answered."""
        if self.stopping is None or turn.tries or turn.answered:
            return None
        return self.stopping.stop_of(turn.request.trial)

    def _pass_over(self) -> None:
        """Leave out what waits and is needless now that a cell was stopped."""
        self.turns = deque(turn for turn in self.turns if not self.skip(turn))
        self.hungry.set()
        self._tell_others()

    def _tell_others(self) -> None:
        self._changed()
        if self.account is not None:
            self.account.ledger.changed()
