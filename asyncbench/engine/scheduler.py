"""All lanes at once: feed → dispatch → ask → keep, until done, stopped or abandoned."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asyncbench.engine.lane import Lane
from asyncbench.engine.telemetry import LoopLag


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """Runs lanes side by side; a slow or suspended lane never holds up another."""

    lanes: Sequence[Lane]
    lag: LoopLag
    stopped: bool = False
    abandoned: bool = False  # calls still in flight were given up
    overdue: bool = False  # the deadline stopped it
    _bound: asyncio.Timeout | None = None  # of the drain; while running

    async def run(self) -> None:
        """Return when every lane is done, or the drain after `stop` is over.

        Raises:
            ExceptionGroup: what a lane raised; all others were cancelled first.
        """
        try:
            async with asyncio.timeout(None) as self._bound, asyncio.TaskGroup() as tasks:
                meter = tasks.create_task(self.lag.measure(), name="event-loop lag")
                async with asyncio.TaskGroup() as lanes:
                    for lane in self.lanes:
                        lanes.create_task(lane.run(), name=f"lane {lane.name}")
                meter.cancel()
        except TimeoutError:
            self.abandoned = True
        finally:
            self._bound = None

    def pass_deadline(self, *, drain_s: float) -> None:
        """Stop because there is no more time."""
        self.overdue = not self.stopped
        self.stop(drain_s=drain_s)

    def stop(self, *, drain_s: float) -> None:
        """Admit nothing more and give what is in flight `drain_s` seconds to end; 0 gives it up now."""
        self.stopped = True
        for lane in self.lanes:
            lane.stop()
        if self._bound is not None and not self._bound.expired():
            self._bound.reschedule(asyncio.get_running_loop().time() + drain_s)
