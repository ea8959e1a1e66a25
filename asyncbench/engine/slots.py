"""How many calls a lane keeps in flight: as many as it is told to, or as many as still pay off."""

import math
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.overload import Strain
from asyncbench.records import MOST_IN_FLIGHT

FIRST: Final = 8  # of a lane that finds out by itself
STEEP: Final = 4.0  # times as many, as long as answers take no longer by it
NO_LONGER: Final = 1.25  # times the latency before
GROWTH: Final = 1.5
PAYS_OFF: Final = 0.3  # of what ideal growth would bring: less is a longer queue at the server
FEW: Final = 4  # answers, at least, before more calls are tried
SOON: Final = 0.25  # of a round of answers tells, as long as more calls pay off
ROUND: Final = 16  # answers, at least, before a number of slots is judged that may be too many
ROOM: Final = 1.5  # times the slots that admitted calls need at the latency of the first to be answered
MOST_PATIENCE: Final = 10  # rounds before more is tried again; the first times fewer: few answers may err
SLOWER: Final = 2.0  # times the usual latency: somebody else is there
HELPS: Final = 0.9  # of the latency before: what a step back has to bring


@dataclass(slots=True, kw_only=True)
class Slots:
    """The ceiling of calls in flight.

    `fixed` is what the sweep says. Without it, and without limits a minute, the ceiling climbs as long as
    more calls in flight bring more answers (Little's law: their number over their latency), steps back
    where they only wait longer, and tries again later. Where refusals tell how many calls are admitted, it
    climbs at once to what these need. Whatever else says how many, there are fewer while a
    server breaks answers off with so many.
    """

    fixed: int | None
    most: int = MOST_IN_FLIGHT
    strain: Strain = field(default_factory=Strain)
    _ceiling: float = FIRST
    _before: float = FIRST  # the ceiling of the round before
    _rate_before: float = 0.0  # answers a second then
    _usual_s: float = math.inf  # the latency at the ceiling that was found good
    _was_slow: bool = False  # the round before
    _slow_s: float = math.inf  # the latency that the last step back was for
    _answers: int = 0
    _seconds: float = 0.0  # of their latencies
    _filled: bool = False  # in this round every slot was in use
    _holding: int = 0  # rounds to go before the next try
    _patience: int = 1  # rounds to hold after the next try that does not pay off

    def ceiling(self, *, limited: bool, share: float) -> int:
        """Return how many calls may be in flight.

        Args:
            limited: a limit a minute says how much may be asked: slots are not what to save on.
            share: of the ceiling, while the provider refuses calls.
        """
        most = self.fixed or (self.most if limited else self._ceiling)
        return max(1, int(min(most * share, self.strain.bound)))

    def full(self, admitted_per_s: float | None) -> None:
        """Note that a call had to wait for a slot; try all that calls need of which so many are admitted."""
        self._filled = self.strain.bound == math.inf
        if admitted_per_s is not None and self._climbing and self._usual_s < math.inf:
            needed = ROOM * admitted_per_s * self._usual_s
            self._ceiling = max(self._ceiling, min(self.most, needed))

    def answered(self, latency_s: float) -> None:
        """Take in how long an answer took; at the end of a round, judge the ceiling."""
        self._answers += 1
        self._seconds += latency_s
        enough = max(FEW, SOON * self._ceiling) if self._climbing else max(ROUND, self._ceiling)
        if self._answers >= enough:
            latency_s = self._seconds / self._answers
            rate = self._ceiling / latency_s if latency_s > 0 else 0.0
            if self._holding:
                self._hold(latency_s, rate)
            elif self._filled:
                self._climb(latency_s, rate)
            self._answers, self._seconds, self._filled = 0, 0.0, False

    @property
    def _climbing(self) -> bool:
        """Whether more calls in flight paid off whenever it was tried lately."""
        return not self._holding and self._patience == 1

    def _climb(self, latency_s: float, rate: float) -> None:
        grown = self._ceiling / self._before
        if rate >= self._rate_before * (1 + (grown - 1) * PAYS_OFF):
            times = STEEP if latency_s <= NO_LONGER * self._usual_s else GROWTH
            self._before, self._rate_before, self._usual_s = self._ceiling, rate, latency_s
            self._patience = 1
            self._ceiling = min(self.most, self._ceiling * times)
        else:
            self._ceiling, self._holding, self._slow_s = self._before, self._patience, math.inf
            self._patience = min(MOST_PATIENCE, 2 * self._patience)

    def _hold(self, latency_s: float, rate: float) -> None:
        slow = latency_s > SLOWER * self._usual_s
        if slow and self._was_slow:
            if latency_s < self._slow_s * HELPS:  # leave room to others, as long as that makes answers faster
                self._ceiling = self._before = max(1.0, self._ceiling / GROWTH)
                self._slow_s, self._holding = latency_s, MOST_PATIENCE
            else:  # slower is what is usual now
                self._usual_s, self._slow_s = latency_s, math.inf
            slow = False  # the next round is half of calls that began before
        self._was_slow = slow
        self._holding -= 1
        if not self._holding:  # what the ceiling brings now is what more has to beat
            self._before, self._rate_before = self._ceiling, rate
            self._ceiling = min(self.most, self._ceiling * GROWTH)
