"""A bound on calls in flight, for a server that breaks answers off when it has too many."""

import math
from dataclasses import dataclass
from typing import Final

TOLERATED: Final = 0.05  # of all calls: connections break now and then, however few there are
ENOUGH: Final = 3  # calls that broke, before anything is made of it
ENOUGH_OF_A_TRY: Final = 2  # where fewer in flight are known to be borne
WINDOW: Final = 64  # calls, at least, after which those before are forgotten
ROUND: Final = 8  # calls, at least, before a number in flight is called good
WAVES: Final = 2  # of all slots, likewise: what breaks ends sooner than what is answered
EXPECTED: Final = 8  # calls that would break, were fewer in flight no help: then it shows
HELPS: Final = 0.6  # of the part that broke before, at most
MOSTLY: Final = 0.5  # of all calls break: how many too many are in flight cannot be told yet
LEAST: Final = 0.25  # of the calls in flight that are left at one step
GROWTH: Final = 1.5
NEAR: Final = 0.25  # of a good number: a bad one so near is tried seldom
MOST_PATIENCE: Final = 64  # rounds until a bad number is tried again
RESIGNED_S: Final = 60.0  # at first, once fewer in flight were no help
LONGEST_RESIGNED_S: Final = 3_600.0


@dataclass(slots=True)
class OverloadDetector:
    """An upper bound of calls in flight, infinite as long as few answers break off.

    When more than few do, fewer calls are in flight, until hardly any breaks. Then the bound climbs: half the
    way up to what was too many, and now and then to that itself. Where fewer in flight are no help, answers
    break for another reason: the bound is lifted, and for an ever longer time nothing is made of it.
    """

    bound: float = math.inf
    _good: float = 0.0  # so many in flight are borne; 0: that is being found out
    _bad: float = math.inf  # so many were too many
    _top: float = math.inf  # in flight when it began
    _top_calls: int = 0  # that began before the bound was first lowered; also those that ended since
    _top_broken: int = 0
    _watched_s: float = -math.inf  # from when on they began
    _lowered_s: float = -math.inf  # until when
    _calls: int = 0  # since the bound was set, of those that began since
    _broken: int = 0  # of them
    _most: int = 0  # of them in flight at once
    _all_calls: int = 0  # since fewer seemed to help
    _all_broken: int = 0
    _since_s: float = -math.inf
    _patience: int = 1  # rounds
    _rounds_left: int = 1
    _resigned_s: float = RESIGNED_S  # the next time

    def ended(self, sent_s: float, at_s: float, *, in_flight: int, broke: bool) -> None:
        """Take in how a call ended that was one of so many in flight; times are the loop's clock."""
        if sent_s < self._since_s or in_flight > self.bound:
            if self._watched_s <= sent_s < self._lowered_s:
                self._top_calls, self._top_broken = self._top_calls + 1, self._top_broken + broke
            return  # it began under another bound
        self._calls += 1
        self._broken += broke
        self._most = max(self._most, in_flight)
        part = self._broken / self._calls
        if self.bound == math.inf:
            self._watch(part, at_s)
        elif not self._good:
            self._judge(part, at_s)
        else:
            self._climb(part, at_s, broke=broke)

    def _watch(self, part: float, at_s: float) -> None:
        if self._broken >= ENOUGH and part > TOLERATED:
            self._top, self._top_calls, self._top_broken = self._most, self._calls, self._broken
            self._watched_s, self._lowered_s = self._since_s, at_s
            self._lower(self._top, part, at_s)
        elif self._calls >= max(WINDOW, 2 * self._most):
            self._begin(self.bound, at_s=self._since_s)

    def _lower(self, level: float, part: float, at_s: float) -> None:
        if level <= 1:
            self._resign(at_s)
            return
        self._good, self._bad = 0.0, level
        self._begin(max(1.0, level * max(LEAST, min(0.5, 1 - part))), at_s)

    def _judge(self, part: float, at_s: float) -> None:
        """Find out whether fewer in flight are any help."""
        unbound = self._top_broken / self._top_calls  # the part of calls that broke without a bound
        needed = max(ROUND, EXPECTED / unbound, WAVES * self.bound)
        if part >= MOSTLY and self._broken > HELPS * unbound * needed:
            self._lower(self.bound, part, at_s)
        elif self._calls < needed:
            return
        elif part > HELPS * unbound and self.bound <= max(1.0, LEAST * self._top):
            self._resign(at_s)
        elif part > TOLERATED and self.bound > 1:
            self._lower(self.bound, part, at_s)
        else:
            self._all_calls = self._all_broken = 0
            self._rise(at_s)

    def _climb(self, part: float, at_s: float, *, broke: bool) -> None:
        over = self._calls >= max(ROUND, self.bound)
        self._all_calls, self._all_broken = self._all_calls + 1, self._all_broken + broke
        helps = HELPS * self._top_broken / self._top_calls
        if self._all_broken >= max(EXPECTED, helps * self._all_calls):
            self._resign(at_s)  # it only seemed to help
        elif self.bound > self._good and self._broken >= ENOUGH_OF_A_TRY and part > TOLERATED:
            self._bad = self.bound
            self._patience = self._rounds_left = min(MOST_PATIENCE, 2 * self._patience)
            self._begin(self._good, at_s)
        elif over and self._broken >= ENOUGH and part > TOLERATED and self.bound <= 1:
            self._resign(at_s)
        elif over and self._broken >= ENOUGH and part > TOLERATED:  # go below what was good
            self._bad, self._good = self.bound, max(1.0, self.bound / 2)
            self._begin(self._good, at_s)
        elif over and self._most < math.floor(self.bound):  # it was not tried
            self._begin(self.bound, at_s)
        elif over:
            self._rise(at_s)

    def _rise(self, at_s: float) -> None:
        """Go on after a round in which hardly any call broke."""
        self._good = self.bound
        if self._good >= self._top:
            self._patience, self._resigned_s = 1, max(RESIGNED_S, self._resigned_s / 2)
            self._begin(math.inf, at_s)
            return
        if self._good >= self._bad:
            self._patience, self._bad = 1, math.inf
        good, bad = self._good, self._bad
        if bad > self._top:
            self._begin(min(self._top, good * GROWTH + 1), at_s)
        elif bad - good > max(1, NEAR * good):
            self._begin((good + bad) // 2, at_s)
        else:
            self._rounds_left -= 1
            again = self._rounds_left <= 0
            self._rounds_left = self._patience if again else self._rounds_left
            self._begin(bad if again else good, at_s)

    def _resign(self, at_s: float) -> None:
        self._begin(math.inf, at_s + self._resigned_s)
        self._resigned_s = min(LONGEST_RESIGNED_S, 2 * self._resigned_s)

    def _begin(self, bound: float, at_s: float) -> None:
        self.bound, self._since_s = math.floor(bound) if bound < math.inf else bound, at_s
        self._calls = self._broken = self._most = 0
