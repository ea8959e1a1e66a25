"""The share of its limits that a lane uses, and the bound on its calls in flight, as the provider bears them.

There are three answers to refusals, from light to heavy: use a smaller share, in the measure of what was
refused; stop, and send a probe now and then, when nothing is admitted any more; and no answer at all when a
smaller share changed nothing, for then the refusals are not about how much is asked. A server that breaks
answers off when it has too many gets fewer calls at once.
"""

import math
from dataclasses import dataclass
from typing import Final

from asyncbench.engine.limits import respected_wait_s

# ── The share of the limits


MEMORY: Final = 0.99  # of what was counted, kept at each answer: those before the last 200 hardly count
TELLING_ANSWERS: Final = 10  # or three refusals, before a share is judged
SEVERAL: Final = 2.0  # refusals, counted so, where lengths are uneven: 1 of 100 calls is fewer
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
    _failed_s: float = -math.inf  # when the latest was sent of them, and of the probes since
    _refused_streak: int = 0  # those of them that were refused
    opened_s: float = -math.inf  # when the latest pause was over
    _admitted_s: float = -math.inf  # when the latest call was sent that was admitted
    _closed_s: float = -math.inf
    _wait_s: float = FIRST_PROBE_S
    _refused_probes: int = 0  # of the present pause, and what it began with
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
        """Leave a pause by a person, or an outage, out of all times that go on."""
        self._closed_s += seconds
        self._resigned_until_s += seconds

    def rare(self, at_s: float) -> bool:
        """Whether hardly any call was refused lately."""
        return self._refusals < SEVERAL and at_s - self._cut_s > GROW_AFTER_S * self._stretch

    def backs_off(self, at_s: float) -> bool:
        """Whether less than all is used because calls were refused."""
        return self.share(at_s) < BELOW

    def admits(self, at_s: float) -> bool:
        """Whether a call may be made at all: an open lane's, or a probe whose time has come."""
        return not self.closed or (not self.probing and at_s >= self.probe_due_s)

    @property
    def failed_for_s(self) -> float:
        """The seconds in which the calls were sent that came to nothing, up to the latest probe that did."""
        return self._failed_s - self.streak_s

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
        self._admitted_s = max(self._admitted_s, sent_s)
        if sent_s >= max(self.opened_s, self.streak_s):
            self.streak = self._refused_streak = 0

    def _tells_of_now(self, sent_s: float) -> bool:
        """Whether a call that failed was sent after the latest pause, and after any that was admitted."""
        return sent_s >= max(self.opened_s, self._admitted_s)

    def probe_answered(self, at_s: float) -> None:
        """Take in that a probe was answered: the pause is over."""
        self.closed = self.probing = False
        self.streak = self._refused_streak = 0
        self.opened_s, self._wait_s = at_s, FIRST_PROBE_S

    def refused(
        self,
        sent_s: float,
        at_s: float,
        *,
        wait_s: float | None,
        per_s: float,
        in_flight: int = 0,
        uneven: bool = False,
    ) -> bool:
        """Take in that a call was refused for being one too many; return whether this begins a pause.

        Args:
            wait_s: how long the provider says to wait.
            per_s: calls that start in a second; without end: it is no matter of their share.
            in_flight: calls of which nothing is known yet.
            uneven: it may have been a long one: one refusal by itself says nothing of the share.
        """
        counts = per_s < math.inf and self._count(sent_s, refused=True)
        tells = self._answers >= TELLING_ANSWERS or self._refusals >= 3
        if counts and tells and not (uneven and self.rare(at_s)):
            self._cut(at_s, per_s)
        self._refused_streak += self._tells_of_now(sent_s)
        return self.broke(sent_s, at_s, wait_s=wait_s, in_flight=in_flight)

    def broke(self, sent_s: float, at_s: float, *, wait_s: float | None = None, in_flight: int = 0) -> bool:
        """Take in that a call came to nothing, by whatever fault; return whether this begins a pause."""
        if self.closed or not self._tells_of_now(sent_s):
            return False
        if not self.streak:
            self.streak_s = sent_s
        self.streak, self._failed_s = self.streak + 1, sent_s
        if self.streak < max(CLOSES_AT, in_flight // OF_IN_FLIGHT):
            return False
        return self.close(at_s, wait_s=wait_s, for_refusals=self._refused_streak >= self.streak)

    def close(self, at_s: float, *, wait_s: float | None, for_refusals: bool = True) -> bool:
        """Begin a pause; return whether it was none before."""
        if self.closed:
            return False
        settled = at_s - self.opened_s > SETTLED_S * self._stretch
        if settled and at_s - self._cut_s < GROW_AFTER_S * self._stretch:
            # Undo the cuts that the pause began with: when nothing is admitted, no share would be.
            self._top, self._cut_s = self._before, at_s
        if not self.streak:
            self.streak_s = self._failed_s = at_s
        self.closed, self._closed_s, self.for_refusals, self._refused_probes = True, at_s, for_refusals, 0
        self._schedule_probe(at_s, wait_s)
        return True

    def probe_failed(self, at_s: float, *, wait_s: float | None, rarest_s: float = RAREST_PROBE_S) -> None:
        """Take in that a probe came to nothing: the next leaves later."""
        self.probing, self._failed_s = False, self.probe_sent_s
        self._wait_s = min(rarest_s, self._wait_s * 2)
        self._schedule_probe(at_s, wait_s)

    def lose_probe(self, at_s: float) -> None:
        """Take in that nobody knows how a probe ended: another one leaves at once."""
        self.probing, self.probe_due_s = False, at_s

    def _schedule_probe(self, at_s: float, named_s: float | None) -> None:
        rarest_s = RAREST_OF_LONG_S if (named_s or 0.0) > 3600 else RAREST_PROBE_S
        self._refused_probes += 1
        named_s = None if named_s is None else min(named_s, rarest_s)
        wait_s = respected_wait_s(named_s, self._wait_s, times=self._refused_probes)
        self.provider_named, self.probe_due_s = wait_s == named_s, at_s + wait_s

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


# ── The bound on calls in flight, for a server that breaks answers off


TOLERATED: Final = 0.05  # of all calls: connections break now and then, however few there are
TELLING_BREAKS: Final = 3  # calls that broke, before anything is made of it
TELLING_BREAKS_OF_A_TRY: Final = 2  # where fewer in flight are known to be borne
WINDOW: Final = 64  # calls, at least, after which those before are forgotten
ROUND: Final = 8  # calls, at least, before a number in flight is called good
WAVES: Final = 2  # of all slots, before a number is judged: what breaks ends sooner than what is answered
EXPECTED: Final = 8  # calls that would break, were fewer in flight no help: then it shows
HELPS: Final = 0.6  # of the part that broke before, at most
MOSTLY: Final = 0.5  # of all calls break: how many too many are in flight cannot be told yet
LEAST: Final = 0.25  # of the calls in flight that are left at one step
GROWTH: Final = 1.5
NEAR: Final = 0.25  # of a good number: a bad one so near is tried seldom
MOST_PATIENCE: Final = 64  # rounds until a bad number is tried again
FIRST_RESIGNED_S: Final = 60.0  # at first, once fewer in flight were no help
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
    _most_in_flight: int = 0  # of them at once
    _all_calls: int = 0  # since fewer seemed to help
    _all_broken: int = 0
    _since_s: float = -math.inf
    _patience: int = 1  # rounds
    _rounds_left: int = 1
    _resigned_s: float = FIRST_RESIGNED_S  # the next time

    def ended(self, sent_s: float, at_s: float, *, in_flight: int, broke: bool) -> None:
        """Take in how a call ended that was one of so many in flight; times are the loop's clock."""
        if sent_s < self._since_s or in_flight > self.bound:
            if self._watched_s <= sent_s < self._lowered_s:
                self._top_calls, self._top_broken = self._top_calls + 1, self._top_broken + broke
            return  # it began under another bound
        self._calls += 1
        self._broken += broke
        self._most_in_flight = max(self._most_in_flight, in_flight)
        broken_share = self._broken / self._calls
        if self.bound == math.inf:
            if self._broken >= TELLING_BREAKS and broken_share > TOLERATED:
                self._top, self._top_calls, self._top_broken = self._most_in_flight, self._calls, self._broken
                self._watched_s, self._lowered_s = self._since_s, at_s
                self._lower(self._top, broken_share, at_s)
            elif self._calls >= max(WINDOW, 2 * self._most_in_flight):
                self._begin(self.bound, at_s=self._since_s)
        elif not self._good:
            self._judge(broken_share, at_s)
        else:
            self._climb(broken_share, at_s, broke=broke)

    def _lower(self, level: float, broken_share: float, at_s: float) -> None:
        if level <= 1:
            self._resign(at_s)
            return
        self._good, self._bad = 0.0, level
        self._begin(max(1.0, level * max(LEAST, min(0.5, 1 - broken_share))), at_s)

    def _judge(self, broken_share: float, at_s: float) -> None:
        """Find out whether fewer in flight are any help."""
        unbound = self._top_broken / self._top_calls  # the share of calls that broke without a bound
        needed = max(ROUND, EXPECTED / unbound, WAVES * self.bound)
        if broken_share >= MOSTLY and self._broken > HELPS * unbound * needed:
            self._lower(self.bound, broken_share, at_s)
        elif self._calls < needed:
            return
        elif broken_share > HELPS * unbound and self.bound <= max(1.0, LEAST * self._top):
            self._resign(at_s)
        elif broken_share > TOLERATED and self.bound > 1:
            self._lower(self.bound, broken_share, at_s)
        else:
            self._all_calls = self._all_broken = 0
            self._rise(at_s)

    def _climb(self, broken_share: float, at_s: float, *, broke: bool) -> None:
        over = self._calls >= max(ROUND, self.bound)
        self._all_calls, self._all_broken = self._all_calls + 1, self._all_broken + broke
        helps = HELPS * self._top_broken / self._top_calls
        if self._all_broken >= max(EXPECTED, helps * self._all_calls):
            self._resign(at_s)  # it only seemed to help
        elif self.bound > self._good and self._broken >= TELLING_BREAKS_OF_A_TRY and broken_share > TOLERATED:
            self._bad = self.bound
            self._patience = self._rounds_left = min(MOST_PATIENCE, 2 * self._patience)
            self._begin(self._good, at_s)
        elif over and self._broken >= TELLING_BREAKS and broken_share > TOLERATED and self.bound <= 1:
            self._resign(at_s)
        elif over and self._broken >= TELLING_BREAKS and broken_share > TOLERATED:  # go below what was good
            self._bad, self._good = self.bound, max(1.0, self.bound / 2)
            self._begin(self._good, at_s)
        elif over and self._most_in_flight < math.floor(self.bound):  # it was not tried
            self._begin(self.bound, at_s)
        elif over:
            self._rise(at_s)

    def _rise(self, at_s: float) -> None:
        """Go on after a round in which hardly any call broke."""
        self._good = self.bound
        if self._good >= self._top:
            self._patience, self._resigned_s = 1, max(FIRST_RESIGNED_S, self._resigned_s / 2)
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
        self._calls = self._broken = self._most_in_flight = 0
