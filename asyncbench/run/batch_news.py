"""What a run tells people about its batches: few messages, each once."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from asyncbench.engine.telemetry import Counters
from asyncbench.lanes.batches.standing import PartStanding, Stand, left_in_batches, near_deletion, standings
from asyncbench.records import BATCH
from asyncbench.run.state import RunState

EVERY_S: Final = 5.0
LONG_S: Final = 3700.0  # in doubt: the last look for a batch comes before
ENDED_EARLY: Final = frozenset({"failed", "expired", "cancelled", "gone"})  # words of providers, and ours


class BatchNews:
    """Looks at the ledger of a run now and then, and tells those who wait what is new."""

    def __init__(self, run: RunState, counters: Mapping[str, Counters]) -> None:
        self._run, self._counters = run, counters
        self._told = set[str]()
        parts = self._parts(self._now())
        self._known = {part.part for part in parts if part.batch_id}  # sent by earlier runs
        self._ended = {part.part for part in parts if part.status in ENDED_EARLY}

    async def watch(self) -> None:
        """Look again and again until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)

    def look(self, *, last: bool = False) -> None:
        """Tell what is new; `last`: the run ends, and nobody looks after doubts any more."""
        now = self._now()
        parts = self._parts(now)
        sent = [part for part in parts if part.open and part.batch_id and part.part not in self._known]
        if sent and self._all_sent(parts):
            self._tell("sent", ["all batches are sent", *left_in_batches(parts, now=now)], parts)
        for part in parts:
            if part.status in ENDED_EARLY and part.part not in self._ended:
                count = "" if part.answered is None else f" with {part.answered:,} of {part.trials:,} done"
                self._tell("ended", [f"{part.model}: batch {part.batch_id} {part.status}{count}"], [part])
            if part.state is Stand.IN_DOUBT and (last or now - part.prepared_at > LONG_S):
                doubt = f"nobody knows whether a batch of {part.trials:,} requests was created"
                self._tell("doubt", [f"{part.model}: {doubt} (part {part.part})"], [part])
        if lines := near_deletion(parts, now=now):
            self._tell("deleted_soon", lines, parts)

    def _all_sent(self, parts: Sequence[PartStanding]) -> bool:
        """Whether everything that is to be asked in batches is in one."""
        asked = [self._counters[model.alias] for model in self._run.models if model.mode == BATCH]
        waits = any(part.state in (Stand.PREPARED, Stand.POOL, Stand.SUBMITTING) for part in parts)
        return not waits and all(one.over or one.open <= one.in_batches for one in asked)

    def _tell(self, what: str, lines: Sequence[str], parts: Sequence[PartStanding]) -> None:
        which = f"{what} {parts[0].part}" if len(parts) == 1 else what
        if which not in self._told:
            self._told.add(which)
            self._run.notifier.batches(what, lines, [part for part in parts if part.open or len(parts) == 1])

    def _parts(self, now: float) -> list[PartStanding]:
        return standings(self._run.batches, running=True, now=now)

    def _now(self) -> float:
        clock = self._run.options.clock
        return time.time() if clock is None else clock.now()
