"""Time in which this process stood still: stopped, suspended or held up, it could read no answer.

A deadline that passes meanwhile is none. It is put off by that time, and by a little more, in which what lies
in the sockets is read first. All deadlines are timers of the event loop, whoever starts them: ours, those of
aiohttp and of `asyncio.timeout`. So they are put off in one place. Mere sleeps are not.
"""

import asyncio
import heapq
import time
from asyncio import futures
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

BEAT_S: Final = 0.1  # at least so often the loop looks at its clock
GAP_S: Final = 0.5  # without a look: the process stood still
GRACE_S: Final = 0.25  # to read what came meanwhile
_SLEEP: Final = getattr(futures, "_set_result_unless_cancelled", None)  # what wakes `asyncio.sleep`


def boot_s() -> float:
    """Return seconds of a clock that goes on while the machine is suspended, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _GapWatch:
    """Looks for gaps whenever the loop asks for the time, which it does before it lets timers ring."""

    def __init__(self, loop: Any, boot_clock: Callable[[], float]) -> None:
        self._loop, self._clock, self._boot_clock = loop, loop.time, boot_clock
        self._seen_s = loop.time()
        self._suspended_s = boot_clock() - self._seen_s  # in all, and a constant
        self._timer: asyncio.TimerHandle = loop.call_later(BEAT_S, self._beat)
        loop.time = self.time

    def time(self) -> float:
        """Return the time of the loop."""
        now_s: float = self._clock()
        gap_s, self._seen_s = now_s - self._seen_s, now_s
        if gap_s > GAP_S:
            self._put_off(gap_s)
        return now_s

    def end(self) -> None:
        """Leave the loop as it was."""
        self._timer.cancel()
        del self._loop.time

    def _beat(self) -> None:
        suspended_s = self._boot_clock() - self.time()
        if suspended_s - self._suspended_s > GAP_S:
            self._put_off(0.0)  # the loop's clock stood still, too
        self._suspended_s = suspended_s
        self._timer = self._loop.call_later(BEAT_S, self._beat)

    def _put_off(self, gap_s: float) -> None:
        timers = self._loop._scheduled
        for timer in timers:
            if timer is not self._timer and timer._callback is not _SLEEP:
                timer._when += gap_s + GRACE_S
        heapq.heapify(timers)


@contextmanager
def deadlines_put_off(*, boot_clock: Callable[[], float] = boot_s) -> Iterator[None]:
    """Put deadlines of the running loop off by the time in which this process stands still.

    Loops that are not written in Python (uvloop) cannot do so.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.BaseEventLoop) or "time" in vars(loop):  # or a run around this one does
        yield
        return

    watch = _GapWatch(loop, boot_clock)
    try:
        yield
    finally:
        watch.end()
