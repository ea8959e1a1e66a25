"""The share of its limits that a lane uses, adjusted by what the provider refuses.

Three answers to refusals, from light to heavy: use a smaller share, in the measure of what was refused; stop,
and send a probe now and then, when nothing is admitted any more; and no answer at all when a smaller share
changed nothing, for then the refusals are not about how much is asked.
"""

import math
from dataclasses import dataclass
from typing import Final

MEMORY: Final = 0.99  # of what was counted, kept at each answer: those before the last 200 hardly count
ENOUGH: Final = 10  # answers, or three refusals, before a share is judged
CUTS: Final = (0.1, 0.3, 0.7)  # of the share at most: a first judgement, and those that follow it quickly
SMALLEST_SHARE: Final = 0.01
BELOW: Final = 0.99  # of what was found to be admitted: whatever was overdrawn has to come back
CREEP_PER_S: Final = 0.001  # back to what was admitted
GROW_AFTER_S: Final = 10.0  # and then beyond it, the faster the longer nothing is refused
DOUBLE_S: Final = 40.0  # to twice as much
QUICKLY_S: Final = 3.0  # after a cut, the next one may be deeper
KNOWN: Final = 100  # answers since the first of several cuts, before these may be called in vain
IN_VAIN: Final = 0.8  # of the share that would do twice over, were the refusals about how much is asked
FAST_PER_S: Final = 10.0  # calls; a lane of fewer takes its time, for as much is learnt from each of them
SLOWEST: Final = 10.0  # times as much time
RESIGNED_S: Final = 60.0  # before refusals are answered again
CLOSES_AT: Final = 5  # calls in a row without an answer, at least
# One in so many: failures come sooner than answers, and many in a row of many say little.
OF_IN_FLIGHT: Final = 4
SETTLED_S: Final = 30.0  # open for so long: a pause is news, and not what too large a share leads to
FIRST_PROBE_S: Final = 1.0  # where the provider names no time
RAREST_PROBE_S: Final = 60.0  # where the provider names none, or one further off: it may mean another limit
RAREST_OF_LONG_S: Final = 900.0  # of a pause that the provider says is longer than an hour


@dataclass(slots=True, kw_only=True)
class Throttle:
    """The share of a lane's limits in use; times are the loop's clock."""

    closed: bool = False  # nothing is admitted but a probe
    probing: bool = False  # a probe is on its way
    probe_due_s: float = 0.0  # when the next may leave
    for_refusals: bool = False  # it is closed because all of the latest calls were refused, by no other fault
    provider_named: bool = False  # the provider named `probe_due_s`
    probe_sent_s: float = -math.inf  # when the latest left
    streak_s: float = -math.inf  # when the first of the latest calls in a row was sent that came to nothing
    streak: int = 0  # how many these are
    _refused_streak: int = 0  # those of them that were refused
    _opened_s: float = -math.inf
    _closed_s: float = -math.inf
    _wait_s: float = FIRST_PROBE_S
    _top: float = 1.0  # the share that was admitted
    _cut_s: float = -math.inf
    _stretch: float = 1.0  # of all times of coming back
    _answers: float = 0.0
    _refusals: float = 0.0
    _quick: int = 0  # cuts in quick succession
    _before: float = 1.0  # the share before the first of several cuts without calm between them
    _all_answers: float = 0.0  # since then
    _all_refusals: float = 0.0
    _resigned_until_s: float = -math.inf

    def share(self, at_s: float) -> float:
        """Return the share of its limits that the lane may use, in (0, 1]."""
        since_s = (at_s - self._cut_s) / self._stretch
        if self._top == 1.0 and since_s > GROW_AFTER_S:
            return 1.0
        near = min(1.0, BELOW + since_s * CREEP_PER_S)
        growth = 1 + (max(0.0, since_s - GROW_AFTER_S) / DOUBLE_S) ** 2
        return max(SMALLEST_SHARE, min(1.0, self._top * near * growth))

    def start_over(self, at_s: float) -> None:
        """Use all of the limits again: they were set anew."""
        self._top, self._cut_s, self._answers, self._refusals = 1.0, at_s, 0.0, 0.0

    def sit_out(self, seconds: float) -> None:
        """Leave a pause by a person out of the time for which the lane was closed."""
        self._closed_s += seconds

    def backs_off(self, at_s: float) -> bool:
        """Whether less than all is used because calls were refused."""
        return self.share(at_s) < BELOW

    def admits(self, at_s: float) -> bool:
        """Whether a call may be made at all: an open lane's, or a probe whose time has come."""
        return not self.closed or (not self.probing and at_s >= self.probe_due_s)

    def closed_for(self, at_s: float) -> float:
        """Return how long nothing has been admitted, seconds."""
        return at_s - self._closed_s if self.closed else 0.0

    def wait_s(self, at_s: float) -> float:
        """Return how long until a call may be made; without end while a probe is on its way."""
        if self.admits(at_s):
            return 0.0
        return math.inf if self.probing else self.probe_due_s - at_s

    def answered(self, sent_s: float, at_s: float) -> None:
        """Take in that a call was answered."""
        self._count(sent_s, refused=False)
        self.admitted(sent_s)
        if self.closed:
            # It frees a slot, which may be all that was missing: some name a minute whatever the limit.
            self.probe_due_s = min(self.probe_due_s, max(at_s, self._closed_s + self._wait_s))

    def admitted(self, sent_s: float) -> None:
        """Take in that a call was admitted; one from before all that came to nothing says nothing of now."""
        if sent_s >= max(self._opened_s, self.streak_s):
            self.streak = self._refused_streak = 0

    def probe_answered(self, at_s: float) -> None:
        """Take in that a probe was answered: the pause is over."""
        self.closed = self.probing = False
        self.streak = self._refused_streak = 0
        self._opened_s, self._wait_s = at_s, FIRST_PROBE_S

    def refused(
        self,
        sent_s: float,
        at_s: float,
        *,
        wait_s: float | None,
        per_s: float,
        in_flight: int = 0,
    ) -> bool:
        """Take in that a call was refused for being one too many; return whether this begins a pause.

        Args:
            wait_s: how long the provider says to wait.
            per_s: calls that start in a second; without end: it is no matter of their share.
            in_flight: calls of which nothing is known yet.
        """
        counts = per_s < math.inf and self._count(sent_s, refused=True)
        if counts and (self._answers >= ENOUGH or self._refusals >= 3):
            self._cut(at_s, per_s)
        self._refused_streak += sent_s >= self._opened_s
        return self.broke(sent_s, at_s, wait_s=wait_s, in_flight=in_flight)

    def broke(self, sent_s: float, at_s: float, *, wait_s: float | None = None, in_flight: int = 0) -> bool:
        """Take in that a call came to nothing, by whatever fault; return whether this begins a pause."""
        if self.closed:
            return False
        if not self.streak:
            self.streak_s = sent_s
        self.streak += sent_s >= self._opened_s
        if self.streak < max(CLOSES_AT, in_flight // OF_IN_FLIGHT):
            return False
        return self.close(at_s, wait_s=wait_s, for_refusals=self._refused_streak >= self.streak)

    def close(self, at_s: float, *, wait_s: float | None, for_refusals: bool = True) -> bool:
        """Begin a pause; return whether it was none before."""
        if self.closed:
            return False
        settled = at_s - self._opened_s > SETTLED_S * self._stretch
        if settled and at_s - self._cut_s < GROW_AFTER_S * self._stretch:
            # Undo the cuts that the pause began with: when nothing is admitted, no share would be.
            self._top, self._cut_s = self._before, at_s
        self.closed, self._closed_s, self.for_refusals = True, at_s, for_refusals
        self._schedule_probe(at_s, wait_s)
        return True

    def probe_failed(self, at_s: float, *, wait_s: float | None, rarest_s: float = RAREST_PROBE_S) -> None:
        """Take in that a probe came to nothing: the next leaves later."""
        self.probing = False
        self._wait_s = min(rarest_s, self._wait_s * 2)
        self._schedule_probe(at_s, wait_s)

    def lose_probe(self, at_s: float) -> None:
        """Take in that nobody knows how a probe ended: another one leaves at once."""
        self.probing, self.probe_due_s = False, at_s

    def _schedule_probe(self, at_s: float, named_s: float | None) -> None:
        rarest_s = RAREST_OF_LONG_S if (named_s or 0.0) > 3600 else RAREST_PROBE_S
        self.provider_named = named_s is not None
        self.probe_due_s = at_s + (self._wait_s if named_s is None else min(named_s, rarest_s))

    def _cut(self, at_s: float, per_s: float) -> None:
        """Take less of the limits, in the measure of what was refused; or resign."""
        if at_s < self._resigned_until_s:
            return
        since_s = (at_s - self._cut_s) / self._stretch
        refused, before = self._refusals / self._answers, self.share(at_s)
        if since_s > GROW_AFTER_S:  # calm: what led to this cut has nothing to do with earlier ones
            self._before, self._all_answers, self._all_refusals = before, 0.0, 0.0
        self._all_answers += self._answers
        self._all_refusals += self._refusals
        self._stretch = min(SLOWEST, max(1.0, FAST_PER_S * before / max(per_s, 1e-9)))
        self._quick = min(self._quick + 1, len(CUTS) - 1) if since_s < QUICKLY_S else 0
        # Cuts went far beyond what would have done, were the refusals about how much is asked.
        admitted = 1 - self._all_refusals / self._all_answers
        in_vain = self._all_answers >= KNOWN and before <= self._before * admitted**2 * IN_VAIN
        if in_vain and refused < 0.5:
            self._top, self._resigned_until_s = self._before, at_s + RESIGNED_S * self._stretch
        else:
            self._top = max(SMALLEST_SHARE, before * (1 - min(refused, CUTS[self._quick])))
        self._cut_s = at_s
        self._answers = self._refusals = 0.0

    def _count(self, sent_s: float, *, refused: bool) -> bool:
        """Count an answer, unless it belongs to what was answered with a cut already."""
        if sent_s < self._cut_s:
            return False
        self._answers = self._answers * MEMORY + 1
        self._refusals = self._refusals * MEMORY + refused
        return True
