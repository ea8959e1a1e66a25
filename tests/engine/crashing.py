"""Nights whose process dies: what was kept up to then, and what the next start knows of it."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from asyncbench.errors import UnwrittenError
from asyncbench.records import Ended, Event, History, Sent
from tests.engine.night import Night


class Desk:
    """Keeps what a night writes down, up to a crash: then nothing more, and no call is begun."""

    def __init__(self, night: Night) -> None:
        self.dead = False
        self._night = night

    def keep(self, event: Event) -> None:
        if not self.dead:
            self._night.kept.append(event)
        elif isinstance(event, Sent):
            raise UnwrittenError("the process is dead")

    async def crash(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self.dead = True
        self._night.stop(drain_s=0)


def known_of(kept: Sequence[Event]) -> dict[str, History]:
    """What earlier starts leave to the next, by trial."""
    calls: dict[str, int] = defaultdict(int)
    ended: dict[str, Ended] = {}
    for event in kept:
        if isinstance(event, Sent):
            calls[event.trial_id] = max(calls[event.trial_id], event.attempt)
        elif isinstance(event, Ended) and event.reply:
            ended[event.attempt.trial_id] = event
    return {
        name: History(attempts=count, cost_usd=None, ended=ended.get(name)) for name, count in calls.items()
    }
