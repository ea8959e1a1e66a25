"""Times in which a provider says that nothing remains of a limit: how long that is believed."""

import math
from typing import Final, NamedTuple

from asyncbench.records import Allowance

DAY: Final = "day"  # the name under which a day's limit holds a lane
SOON_S: Final = 2.0  # a reset so near is that of a small burst: calls are paced, it comes by itself
CONTRADICTS_S: Final = 5.0  # so much sooner than the other: two waits that cannot both be right
WORTH_TELLING_S: Final = 10.0  # of a pause


class Wait(NamedTuple):
    """How long nothing may be taken, and which limit says so."""

    seconds: float
    limit: str


class Pause(NamedTuple):
    """A pause that a person should hear of."""

    cause: str
    why: str


class _Hold(NamedTuple):
    until_s: float  # nothing is taken
    back_s: float  # something remains again, by the provider's word
    told_s: float  # the latest word of it


class Holds:
    """The limits of which nothing remains, by name; times are the loop's clock.

    Some servers name a reset that has nothing to do with when they admit the next call. So where a
    refusal's `Retry-After` is shorter than the reset beside it, a call is tried after the shorter one: if it
    is refused, the longer one holds. A reset is not believed again once a call was admitted well before it.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Hold] = {}
        self._disproved: set[str] = set()

    def wait(self, at_s: float) -> Wait:
        """Return how long and for which limit nothing may be taken; 0 s: none."""
        waits = (Wait(hold.until_s - at_s, name) for name, hold in self._held.items())
        return max(waits, key=lambda wait: wait.seconds, default=Wait(0.0, ""))

    def hold(
        self, told: Allowance, at_s: float, *, sent_s: float, retry_after_s: float | None
    ) -> Pause | None:
        """Take nothing until the reset, or the shorter `Retry-After`; return what a person should hear."""
        name, reset_s = _name(told), told.reset_s or 0.0
        if name in self._disproved:
            return None
        # A minute's limit is back after a minute, whatever else its reset may mean.
        wait_s = min(reset_s, told.period_s)
        before = self._held.get(name, _Hold(-math.inf, -math.inf, at_s))
        refused_early = before.until_s <= sent_s < before.back_s
        if retry_after_s is not None and retry_after_s + CONTRADICTS_S < wait_s and not refused_early:
            wait_s = retry_after_s
        self._held[name] = _Hold(max(before.until_s, at_s + wait_s), at_s + reset_s, at_s)
        if before.until_s > at_s or wait_s < WORTH_TELLING_S:
            return None
        return Pause(name, _why(told, wait_s, reset_s))

    def lift(self, told: Allowance, sent_s: float) -> None:
        """Take a later word that something remains for the end of a hold."""
        name = _name(told)
        if name in self._held and sent_s > self._held[name].told_s:
            del self._held[name]

    def admitted(self, sent_s: float) -> None:
        """Believe no reset again before which a call was admitted."""
        for name, hold in list(self._held.items()):
            if hold.until_s <= sent_s < hold.back_s - CONTRADICTS_S:
                self._disproved.add(name)
                del self._held[name]


def _name(told: Allowance) -> str:
    return DAY if told.period_s > 60 else told.what


def _why(told: Allowance, wait_s: float, reset_s: float) -> str:
    if told.period_s > 60 and wait_s == reset_s:
        return f"no {words(told.what)} remain of this day's; waiting {reset_s / 3600:.1f} hours for more"
    until = f"the provider's headers say so for {reset_s:,.0f} s"
    return f"no {words(told.what)} remain, {until}; waiting {wait_s:,.0f} s"


def words(what: str) -> str:
    """Return what a limit counts, for a person."""
    return what.replace("_", " ")
