"""An estimate of an untold limit of requests a minute, measured by the calls that are refused.

Whatever way a provider counts, a moment at which it refuses is one at which nothing is left. So:

- A bucket has refilled, between two refusals, what was admitted between them: that is its rate, whatever
  it may save up. The first refusal begins such a measurement. Each lasts twice as long as the one before and
  asks for a little less above what was found, until a minute is known.
- A window lets nothing through until it is over. What was admitted in the minute before it admits again is
  its limit: all since a fixed one began, and all that a sliding one counts. A sliding window frees its places
  as they were taken a minute ago, so for another minute no more than that are taken. A rate far below what
  the last minute admitted is such a window's, too, of a minute that began slowly.

From then on calls are paced a little below the limit, and grow past it in about a minute, the faster the
longer few are refused: a limit is tried again at the cost of a call in two hundred. Where fewer calls are
refused as often as more, refusals are not about how many there are; so many are then no news.
"""

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

MINUTE_S: Final = 60.0
BIN_S: Final = 0.05  # calls are counted by the time they were sent, this exactly
DOUBT_S: Final = 0.25  # that a refusal may take longer than any did lately
SHORTEST_S: Final = 1.0  # a measurement
FEWEST_CALLS: Final = 3  # that were admitted in it, or refused before the first
ABOVE_S: Final = 0.4  # seconds' worth of calls too many in each measurement: it needs refusals
BELOW: Final = 0.01  # what was found
GROWS: Final = 6.5  # times as long as what the pace was found by, it would be without end
FOLD: Final = 4.0  # times as much, and growth begins anew, twice as fast
WRONG: Final = 1.1  # times what was found and little is refused: it was not the limit
HELD_S: Final = 3.0  # with everything refused: a window, not a bucket
MOST: Final = 0.9  # of the pace was admitted in a minute that ends with a window's end
ASKED: Final = 0.8  # of the pace: something else kept calls from starting
LATE_S: Final = 1.0  # that a call comes after a window's end, at most, where it is told in whole seconds
LEAST: Final = 1 / 3  # of what a minute admitted: a bucket that saved up a whole one refills half of it
LOST_S: Final = 75.0  # and a window is over by then: it was something else
TOLERATED: Final = 0.005  # of all calls may be refused
MUCH: Final = 0.2  # of them refused: the limit is another one now
MANY: Final = 100  # calls
LONG_S: Final = 8.0  # a measurement after others: few are refused in it, if it is about how many there are
IN_VAIN: Final = 4  # times in a row that fewer calls were refused as often
NOISE_S: Final = 600.0  # until it is looked again how many are refused at any pace
FORGOTTEN_RPM: Final = 600_000  # a guess that has grown to this is none any more


@dataclass(slots=True)
class _Bin:
    number: int
    sent: int = 0
    refused: int = 0

    @property
    def admitted(self) -> int:
        return self.sent - self.refused


@dataclass(slots=True)
class RecentCalls:
    """The calls of the last minute, by when they were sent: how many, and how many came to nothing."""

    admitted: int = 0  # of all of them, as far as it is known
    _bins: deque[_Bin] = field(default_factory=deque)
    _before: deque[_Bin] = field(default_factory=deque)  # of a moment before that minute

    def add(self, at_s: float) -> None:
        """Count a call that starts."""
        number = int(at_s / BIN_S)
        if not self._bins or self._bins[-1].number != number:
            self._bins.append(_Bin(number))
        self._bins[-1].sent += 1
        self.admitted += 1

    def refuse(self, sent_s: float) -> None:
        """Take in that one was not admitted."""
        if latest := self._find_bin(sent_s):
            latest.refused += 1
            self.admitted -= 1

    def leave_out(self, sent_s: float) -> None:
        """Count a call no longer, of which nobody knows whether it was admitted."""
        if latest := self._find_bin(sent_s):
            latest.sent -= 1
            self.admitted -= 1

    def _find_bin(self, sent_s: float) -> _Bin | None:
        """Return the bin of a call, unless it was forgotten."""
        number = int(sent_s / BIN_S)
        latest = next((each for each in reversed(self._bins) if each.number <= number), None)
        return latest if latest is not None and latest.number == number else None

    def forget(self, at_s: float) -> None:
        """Forget what was sent more than a minute ago."""
        first = int((at_s - MINUTE_S) / BIN_S)
        while self._bins and self._bins[0].number < first:
            self._before.append(self._bins.popleft())
            self.admitted -= self._before[-1].admitted
        while self._before and self._before[0].number < first - LATE_S / BIN_S:
            self._before.popleft()

    def counted(self, from_s: float, until_s: float | None = None) -> tuple[int, int]:
        """Return how many were sent from a time on, in bins that were over at another, and refused."""
        first, end = int(from_s / BIN_S), None if until_s is None else int(until_s / BIN_S)
        sent = refused = 0
        for bin_ in itertools.chain(reversed(self._bins), reversed(self._before)):
            if bin_.number < first:
                break
            if end is None or bin_.number < end:
                sent, refused = sent + bin_.sent, refused + bin_.refused
        return sent, refused

    def admitted_s(self, before_s: float) -> float:
        """Return about when the latest was sent that was admitted, of those sent before a time."""
        before = int(before_s / BIN_S)
        admitted = (bin_.number for bin_ in reversed(self._bins) if bin_.number < before and bin_.admitted)
        return next(admitted, -math.inf) * BIN_S


@dataclass(slots=True)
class GuessedLimit:
    """An estimate of a limit that nobody tells; times are the loop's clock, rates requests a minute."""

    ever_answered: bool = False
    _rpm: float = math.inf  # the pace that was set last; without end: nothing is known
    _measured_rpm: float = math.inf  # the limit by what was measured last
    _base_rpm: float = math.inf  # the same, before it grew
    _since_s: float = -math.inf  # when the pace was set
    _tried_s: float = 0.0  # how long it was what calls waited for since
    _waits_s: tuple[float, float] = (0.0, 0.0)  # from when until when they do
    _measures: bool = False  # more is asked for than was found
    _empty_s: float = -math.inf  # the refusal from which the present measurement runs
    _length_s: float = SHORTEST_S  # that it is to take
    _calls: RecentCalls = field(default_factory=RecentCalls)
    _full: int = 0  # admitted in the minute before the latest refusal
    _before_probe: int = 0  # and before the latest probe
    _delay_s: float = 0.0  # until a refusal is there, lately at most
    _grew: bool = False  # the present measurement began with a pace that had grown
    _resumed_s: float = -math.inf  # when the latest outage was over
    _window_s: float = -math.inf  # until when a window may be counting what was sent before a pause
    _doubted_s: float = -math.inf  # when a pause last was no reason to give up what was found
    _falls: int = 0  # times in a row that a lower pace was refused, too
    _fell_s: float = -math.inf  # since when
    _noise: float = 0.0  # of all calls, refused at any pace
    _noisy_s: float = -math.inf  # until when that is believed

    # ── Observations ─────────────────────────────────────────────────────────────────────────────

    def sent(self, at_s: float, *, is_probe: bool = False) -> None:
        """Count a call that starts; a probe finds out whether calls are admitted again."""
        self._calls.forget(at_s)
        if is_probe:  # which may be told in whole seconds, and so be late
            sent, refused = self._calls.counted(at_s - MINUTE_S - LATE_S)
            self._before_probe = sent - refused
        self._calls.add(at_s)

    def answered(self, at_s: float) -> None:
        """Take in an answer. While the first was waited for, no call waited for the pace."""
        if not self.ever_answered:
            self.ever_answered, self._empty_s, self._tried_s = True, at_s, 0.0

    def broke(self, sent_s: float) -> None:
        """Take in that a call came to nothing: nobody knows whether it was admitted."""
        self._calls.leave_out(sent_s)

    def refused(self, sent_s: float, at_s: float) -> None:
        """Take in that a call was one too many."""
        self._calls.refuse(sent_s)
        self._calls.forget(at_s)
        self._full = self._calls.admitted
        self._delay_s = max(0.9 * self._delay_s, at_s - sent_s)
        if sent_s < self._since_s:
            return  # it was sent at another pace
        if self._rpm == math.inf:
            sent, refused = self._calls.counted(at_s - MINUTE_S)
            if refused >= FEWEST_CALLS and self._tells(sent, refused, at_s):
                self._measure(at_s)
        elif self._measures and self._outgrown and not self._grew:
            self._measure(at_s, min(self._rpm * self._growth, self._rate(at_s)))
            self._grew = True
        elif self._measures and not self._outgrown:
            self._go_on(sent_s, at_s)
        else:
            self._grew &= self._measures
            self._correct(at_s)

    def interrupted(self, at_s: float) -> None:
        """Take in that an outage is over, which is no time in which calls were admitted."""
        self._empty_s = self._since_s = self._resumed_s = at_s

    def reopened(self, at_s: float, *, held_s: float, provider_named: bool) -> None:
        """Take in that a call was admitted again after so long, just when the provider said so or not."""
        if held_s > LOST_S and not self.kept:
            self._rpm = math.inf
        if held_s > LOST_S or (held_s < HELD_S and not self.kept):
            return
        if self.kept and self._full < MOST * self._rpm and at_s > self._doubted_s + 2 * MINUTE_S:
            self._doubted_s = at_s  # once it may be another's doing
            return
        admitted = max(self._before_probe, self._full / 2) if provider_named else self._full
        self._set(max(1, admitted), 1 - BELOW, at_s, length_s=MINUTE_S, window=True)

    def waits(self, at_s: float, seconds: float) -> None:
        """Take in that nothing but the pace keeps a call from starting."""
        self._waits_s = (at_s, at_s + seconds)

    # ── The pace that follows ────────────────────────────────────────────────────────────────────

    def pace(self, at_s: float) -> float | None:
        """Return how many calls a minute to start now, or None while no limit is guessed."""
        if self._rpm == math.inf:
            return None
        from_s, until_s = self._waits_s
        self._tried_s += max(0.0, min(at_s, until_s) - from_s)
        self._waits_s = (at_s, at_s)
        if self._growth >= FOLD:
            self._rpm, self._tried_s = self._rpm * FOLD, 0.0
            self._length_s = max(SHORTEST_S, self._length_s / 2)
            if self._rpm > FORGOTTEN_RPM:
                self._rpm = math.inf
                return None
        return self._rpm * self._growth

    def full(self, at_s: float) -> bool:
        """Whether a window that admits again still counts too many calls of the last minute."""
        if at_s >= self._window_s:
            return False
        self._calls.forget(at_s)
        return self._calls.admitted >= self._rpm * self._growth

    @property
    def kept(self) -> bool:
        """Whether the limit was found, and calls are paced a little below."""
        return self._rpm < math.inf and not self._measures

    @property
    def sure_s(self) -> float:
        """The seconds after which a call that was not refused was most probably admitted."""
        return 2 * self._delay_s + DOUBT_S

    def admitted_s(self, at_s: float) -> float:
        """Return about when the latest call was sent that was admitted, most probably."""
        return self._calls.admitted_s(at_s - self.sure_s)

    # ── Measurements ─────────────────────────────────────────────────────────────────────────────

    def _measure(self, at_s: float, rpm: float | None = None) -> None:
        """Measure anew, at a pace that is too high: by default at the rate of the last second."""
        if rpm is None:
            sent, refused = self._calls.counted(at_s - SHORTEST_S)
            rpm = max(1, sent - refused) / SHORTEST_S * MINUTE_S
        self._empty_s, self._falls = at_s, 0
        self._set(rpm, 1.0, at_s, length_s=SHORTEST_S)
        self._measures = True

    def _go_on(self, sent_s: float, at_s: float) -> None:
        """End a measurement that took long enough, and begin the next."""
        from_s = max(self._empty_s, at_s - MINUTE_S)  # calls before that are forgotten
        seconds = (int(sent_s / BIN_S) - int(from_s / BIN_S)) * BIN_S
        sent, refused = self._calls.counted(from_s, sent_s)
        if seconds < self._length_s or sent - refused < FEWEST_CALLS:
            return
        if self._tried_s < seconds / 2 and refused < MUCH * sent:  # other things kept calls from starting
            self._empty_s, self._tried_s = at_s, 0.0
            return
        if self._length_s >= LONG_S and sent >= MANY and refused >= MUCH * sent:
            self._give_up(refused / sent, at_s)
            return
        rpm = (sent - refused) / seconds * MINUTE_S
        if rpm < LEAST * self._full and at_s > self._doubted_s + 2 * MINUTE_S:
            self._set(self._full, 1 - BELOW, at_s, length_s=MINUTE_S, window=True)
            return
        self._empty_s, length_s = at_s, min(MINUTE_S, 2 * self._length_s)
        above = ABOVE_S / length_s if length_s < MINUTE_S else -BELOW
        self._set(rpm, 1 + above, at_s, length_s=length_s)
        self._measures = length_s < MINUTE_S
        self._grew &= self._measures

    def _correct(self, at_s: float) -> None:
        """Go below a pace that was admitted for a while; the further, the oftener that did not help."""
        if at_s < self._window_s:
            sent, refused = self._calls.counted(self._since_s)
            if sent >= MANY and refused >= MUCH * sent:
                self._window_s = at_s
                self._measure(at_s)  # it was no window
            return  # it is that window's end, not the pace
        pace = min(self._rpm * self._growth, self._rate(at_s))
        if self.admitted_s(at_s) <= self._since_s or not self._tells(
            *self._calls.counted(self._since_s), at_s
        ):
            return  # nothing is admitted any more, or hardly any refused
        if pace > self._measured_rpm:
            self._falls = 0
            if self._outgrown:
                self._doubted_s = at_s  # where all is refused now, it is for being too many
            elif at_s - self._since_s >= MINUTE_S:
                pace = (pace + min(pace, self._full)) / 2  # which is a window's limit, if it is one
            self._set(pace, 1 - 2 * BELOW, at_s, length_s=MINUTE_S)
        elif self._falls < IN_VAIN:
            self._fell_s = at_s if not self._falls else self._fell_s
            self._falls += 1
            doubled = 2 ** (self._falls - 1)
            self._set(pace, 1 - 2 * BELOW * doubled, at_s, length_s=min(MINUTE_S, 4 * MINUTE_S / doubled))
        else:
            sent, refused = self._calls.counted(self._fell_s)
            if refused >= MUCH * sent:
                self._measure(at_s, pace)
            elif sent >= MANY:
                self._give_up(refused / sent, at_s)

    def _rate(self, at_s: float) -> float:
        """Return how many calls a minute started lately; without end if it was about what the pace says."""
        pace = self._rpm * self._growth
        seconds = min(MINUTE_S, max(SHORTEST_S, 10 * MINUTE_S / pace), at_s - self._resumed_s)
        if seconds < SHORTEST_S:
            return math.inf
        rate = self._calls.counted(at_s - seconds)[0] / seconds * MINUTE_S
        return math.inf if rate > ASKED * pace else rate

    def _give_up(self, refused: float, at_s: float) -> None:
        """Go on without a limit: so many are refused whatever the pace."""
        self._rpm, self._noise, self._noisy_s = math.inf, refused, at_s + NOISE_S

    def _set(
        self, measured_rpm: float, times: float, at_s: float, *, length_s: float, window: bool = False
    ) -> None:
        if window:  # what a minute admitted is spread over the next
            self._doubted_s, self._window_s, self._falls = at_s, at_s + MINUTE_S, 0
        self._measured_rpm, self._rpm, self._since_s, self._length_s = (
            measured_rpm,
            measured_rpm * times,
            at_s,
            length_s,
        )
        self._base_rpm, self._tried_s, self._measures = self._rpm, 0.0, False

    def _tells(self, sent: int, refused: int, at_s: float) -> bool:
        """Whether so many refusals are more than are put up with."""
        noise = self._noise if at_s < self._noisy_s else 0.0
        return refused > (TOLERATED + 2 * noise) * sent

    @property
    def _growth(self) -> float:
        """The factor by which the pace has grown since it was set."""
        known_by_s = max(self._length_s, FEWEST_CALLS * MINUTE_S / self._rpm)
        progress = self._tried_s / (GROWS * known_by_s)
        return min(FOLD, 1 / (1 - progress**3)) if progress < 1 else FOLD

    @property
    def _outgrown(self) -> bool:
        """Whether it has grown so much that what was found was not the limit."""
        return self._rpm * self._growth > WRONG * self._base_rpm
