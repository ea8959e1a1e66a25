"""Admission of calls in a lane: slots, pauses, shares and guessed limits, adjusted by how calls end."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from asyncbench.engine.guessed_limit import BIN_S, LOST_S, GuessedLimit
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.limits import WORTH_TELLING_S, Gate, Pause, Wait
from asyncbench.engine.outages import Outages
from asyncbench.engine.pending_trial import ONE_CALL, PendingTrial
from asyncbench.engine.telemetry import LoopLag, Minutes
from asyncbench.engine.throttle import (
    FIRST_PROBE_S,
    OF_IN_FLIGHT,
    RAREST_PROBE_S,
    OverloadDetector,
    Throttle,
)
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import MOST_IN_FLIGHT, Attempt, Limits, Reply, waits

# ── Slots: calls in flight at once


FIRST: Final = 8  # of a lane that finds out by itself
STEEP: Final = 4.0  # times as many, as long as answers take no longer by it
NO_LONGER: Final = 1.25  # times the latency before
GROWTH: Final = 1.5
PAYS_OFF: Final = 0.3  # of what ideal growth would bring: less is a longer queue at the server
FEW: Final = 4  # answers, at least, before more calls are tried
SOON: Final = 0.25  # of a round of answers tells, as long as more calls pay off
SOON_CAREFUL: Final = 0.5  # the same, where calls were refused before the first answer
FEW_REFUSED: Final = 2  # in a round, which say nothing
MANY_REFUSED: Final = 0.2  # of the answers of a round: there, more are too many
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
    overload: OverloadDetector = field(default_factory=OverloadDetector)
    _ceiling: float = math.inf  # before the first answer, for nothing is known
    _careful: bool = False  # calls were refused before the first answer
    _refused: int = 0  # the same in this round
    _others: int = 0  # in flight, of all answers of this round
    _alone: deque[float] = field(default_factory=lambda: deque(maxlen=FEW))  # latencies of the first calls
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
        ceiling = self.fixed or (self.most if limited else min(self.most, self._ceiling))
        return max(1, int(min(ceiling * share, self.overload.bound)))

    def begin(self, in_flight: int) -> None:
        """Climb from so many on: the first call was answered."""
        if self._ceiling == math.inf:
            self._ceiling = self._before = max(FIRST, in_flight)

    def refused(self) -> None:
        """Climb slowly, and not where many are refused, if any was before the first answer."""
        self._careful |= self._ceiling == math.inf
        self._refused += self._careful

    def full(self, admitted_per_s: float | None) -> None:
        """Note that a call had to wait for a slot; try all that calls need of which so many are admitted."""
        self._filled = self.overload.bound == math.inf
        if admitted_per_s is not None and self._climbing and self._usual_s < math.inf:
            needed = ROOM * admitted_per_s * self._usual_s
            self._ceiling = max(self._ceiling, min(self.most, needed))

    def answered(self, latency_s: float, *, in_flight: int) -> None:
        """Take in how long the answer took of a call that was one of so many; judge the ceiling by rounds."""
        if in_flight > self._ceiling:
            return  # it began under another one
        if in_flight <= FEW:
            self._alone.append(latency_s)
        self._answers += 1
        self._seconds += latency_s
        self._others += in_flight
        soon = SOON_CAREFUL if self._careful else SOON
        enough = max(FEW, soon * self._ceiling) if self._climbing else max(ROUND, self._ceiling)
        # So many slots, tried again, may bring so many refusals that no answers need be waited for.
        again = self._patience > 1 and not self._holding
        refuses = again and self._refused > max(FEW_REFUSED, MANY_REFUSED * self._ceiling)
        if self._answers >= enough or refuses:
            latency_s = self._seconds / self._answers
            rate = self._ceiling / latency_s if latency_s > 0 else 0.0
            if self._holding:
                self._hold(latency_s, rate)
            elif self._filled:
                self._climb(latency_s, rate)
            self._answers, self._seconds, self._filled, self._refused, self._others = 0, 0.0, False, 0, 0

    @property
    def _climbing(self) -> bool:
        """Whether more calls in flight paid off whenever it was tried lately."""
        return not self._holding and self._patience == 1

    def _climb(self, latency_s: float, rate: float) -> None:
        alone_s = fmean(self._alone) if self._alone else math.inf
        if not self._rate_before and latency_s > SLOWER * alone_s:  # most calls wait inside the server
            self._ceiling = self._before = max(FIRST, self._ceiling * alone_s / latency_s)
            return
        grown = self._ceiling / self._before
        admitted = self._refused <= max(FEW_REFUSED, MANY_REFUSED * self._answers)
        if admitted and rate >= self._rate_before * (1 + (grown - 1) * PAYS_OFF):
            steep = latency_s <= NO_LONGER * self._usual_s and not self._careful
            times = STEEP if steep else GROWTH
            self._before, self._rate_before, self._usual_s = self._ceiling, rate, latency_s
            self._patience = 1
            self._ceiling = min(self.most, self._ceiling * times)
        else:
            usual = 0.0 if admitted else self._others / self._answers  # that were admitted
            self._ceiling, self._holding, self._slow_s = max(self._before, usual), self._patience, math.inf
            self._patience = min(8 * MOST_PATIENCE if self._careful else MOST_PATIENCE, 2 * self._patience)

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


# ── Admission


FREED: Final = 0.5  # of the calls in flight that are left
LATE_S: Final = 3.0  # until a call was surely not refused: those in flight are no measure of those admitted
SOON_S: Final = 10.0  # between two test calls, while a window may be ending
REMEMBERED: Final = 64  # starts of calls, to know how many a minute there are
SHALLOWEST: Final = 32  # trials that wait in a queue, however few may be in flight
DEEPEST: Final = 2_048  # the same, however many: more than a process starts in a second
SHARE_GROWS_S: Final = 1.0  # until a share of the slots may be one more
NOTIFY_EVERY_S: Final = 600.0  # pauses of one cause: a person need not hear of each
LONGEST_PAUSE_S: Final = 25 * 3600.0  # a day's limit is back by then; what takes longer is for another run
LONG_WAIT_S: Final = 600.0  # of a Retry-After: it is about the lane
LONGEST_OUTAGE_S: Final = 4 * 3600.0  # of a provider that had answered before
NEVER_S: Final = 60.0  # of a pause before any answer of a server that can be reached

ONE_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
BROKEN_OFF: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.BAD_REPLY})
BROKEN: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.SERVER_ERROR})
FAILED: Final = ONE_TOO_MANY | BROKEN  # these may begin a pause
UNANSWERED: Final = FAILED | BROKEN_OFF  # these may be an outage


@dataclass(slots=True, kw_only=True)
class Admission:
    """The limits of a lane, judged by how its calls end; times are the loop's clock."""

    name: str
    models: Sequence[LaneModel]
    limits: Limits
    lag: LoopLag
    minutes: Minutes
    notify: Callable[[str], None]
    now_s: Callable[[], float]
    held_s: Callable[[], float] = float  # for how long nothing may start: nobody is there to make a call
    taken_until_s: list[float] = field(default_factory=list)  # slots, by calls of a process that died
    gate: Gate = field(init=False)
    slots: Slots = field(init=False)
    throttle: Throttle = field(default_factory=Throttle)
    started: int = 0  # calls so far
    in_flight: int = 0
    highest: int = 0  # in flight so far
    _guess: GuessedLimit = field(default_factory=GuessedLimit)  # of a limit that nobody tells
    _starts: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))  # of the latest calls
    _bound: bool = False  # by a limit a minute, at any time
    _there_s: float = -math.inf  # until when the provider was there: it said no, or how long to wait
    _notified_s: dict[str, float] = field(default_factory=dict)  # by cause of a pause: its last notice
    _held_in_flight: int = 0  # when everything was refused last: at the start of a pause, or at a probe
    _is_outage: bool = False  # in the latest pause calls failed otherwise than for being too many
    _outages: Outages = field(default_factory=Outages)
    _pause_notified: bool = False  # of the present one
    _overload_notified: bool = False  # that answers break off

    def __post_init__(self) -> None:
        self.gate = Gate(self.limits, at_s=self.now_s())
        self.slots = Slots(fixed=self.limits.concurrency, most=self.limits.most)

    @property
    def limited(self) -> bool:
        """Whether limits a minute say how much may be asked: the sweep's own, or told ones that were felt."""
        return self.gate.configured or (self.gate.limited and self._bound)

    @property
    def limits_are_guessed(self) -> bool:
        """Whether refusals say how much may be asked: a guess, or a share of the limits that are known."""
        return self.gate.guessed_rpm is not None or self.throttle.backs_off(self.now_s())

    @property
    def finds_slots(self) -> bool:
        """Whether the number of calls in flight is what the server turned out to bear."""
        return not (self.limits.concurrency or self.limited) or self.slots.overload.bound < math.inf

    def set_limits(self, limits: Limits) -> None:
        """Set other limits, and use all of them."""
        at_s = self.now_s()
        self.limits = limits
        self.gate.set(limits, at_s)
        self.slots.fixed = limits.concurrency
        self.throttle.start_over(at_s)

    def sit_out(self, seconds: float) -> None:
        """Leave a pause by a person out of all times and rates: nothing was to be sent for so long."""
        self.throttle.sit_out(seconds)
        self._shift_starts(seconds)

    def depth(self) -> int:
        """Return how many trials of a model may wait, so that none waits for the file: two rounds at most."""
        return min(DEEPEST, max(SHALLOWEST, 2 * self.slots.ceiling(limited=self.limited, share=1.0)))

    def obstacle(self, model: LaneModel, pending: PendingTrial) -> Wait | None:
        """Return the limit that keeps a call from starting now, and for how long at most, or None."""
        at_s = self.now_s()
        if model.counters.paused:
            return Wait(math.inf, waits.RESUME)
        if not self.throttle.admits(at_s) and (seconds := self._pause_s(at_s)):
            return Wait(seconds, waits.PAUSE)
        if self.lag.late:
            return Wait(self.lag.interval_s, waits.CLIENT)
        if (seconds := self.held_s()) > 0:
            return Wait(seconds, waits.CLIENT)
        share = self.throttle.share(at_s)
        taken = sum(until_s > at_s for until_s in self.taken_until_s)  # their server may still be at work
        if self.in_flight + taken >= self.slots.ceiling(limited=self.limited, share=share):
            self.slots.full(None if self.gate.guessed_rpm is None else self.gate.guessed_rpm / 60)
            return Wait(SHARE_GROWS_S if taken or share < 1.0 else math.inf, waits.CONCURRENCY)
        if self.in_flight >= FIRST and self.gate.counts_tokens and model.estimates.guesses(pending):
            return Wait(math.inf, waits.CONCURRENCY)  # replies may be a hundred times as long as guessed
        self.gate.use(share, at_s)
        self.gate.guess(None if self.gate.limited else self._guess.pace(at_s), at_s)
        if self.gate.guessed_rpm is not None and self._guess.full(at_s):
            return Wait(BIN_S, "requests")
        # Estimated again at every wait: a limit of tokens may have been told in the meantime.
        pending.reserved = model.estimates.amounts(pending) if self.gate.counts_tokens else ONE_CALL
        wait = self.gate.wait(pending.reserved, at_s)
        if wait is not None and self.gate.guessed_rpm is not None:
            self._guess.waits(at_s, wait.seconds)
        self._bound |= wait is not None
        return wait

    def start(self, model: LaneModel, pending: PendingTrial) -> None:
        """Count a call that starts."""
        at_s = self.now_s()
        self.in_flight += 1
        model.counters.in_flight += 1
        self.started += 1
        pending.number, pending.in_flight = self.started, self.in_flight
        self._starts.append(at_s)
        model.warm_up.started(at_s)
        pending.is_probe = self.throttle.probing = self.throttle.closed
        if not self.gate.limited:
            self._guess.sent(at_s, is_probe=pending.is_probe)
        if pending.is_probe:
            self.throttle.probe_sent_s = at_s
        self.minutes.admitted(self.in_flight)

    def settle(
        self, model: LaneModel, pending: PendingTrial, attempt: Attempt, ended: Reply | ProviderError
    ) -> None:
        """Put the limits right by what a call used, what its response told, and whether it was refused.

        The order matters, for each step reads what those before it have changed:

        1. The warm-up: whether key and name are good decides if slots climb and who hears of failures.
        2. What was set aside is given back. `throttle.rare` must not count this refusal yet.
        3. Limits that the response told: by them, or by a guess, step 7 judges a refusal.
        4. Messages to a person, which steps 1 to 3 may leave.
        5. The wait that a refusal names: it shows that the provider is there, so step 7 has patience.
        6. Failures in a row: what the detector of overload and the guess knew before the first of them is
           kept before they take in this call. The detector takes in none that ends during a pause.
        7. The judgement, which begins and ends pauses. After a pause that ended calls ramp up again.
        8. The minute ends once all of the call is in it, and slots count answers while no overload bounds
           them.
        """
        at_s, error = self.now_s(), ended if isinstance(ended, ProviderError) else None
        kind = None if error is None else error.kind
        model.warm_up.ended(ended, at_s, in_flight=model.counters.in_flight, paced=self.gate.limited)
        if model.warm_up.passed:
            self.slots.begin(self.in_flight + 1)
        if kind is ErrorKind.RATE_LIMITED:
            self.gate.refuse(pending.reserved, at_s, alone=self.throttle.rare(at_s))
        else:
            used = model.estimates.used(pending, ended)
            self.gate.settle(pending.reserved, used, at_s)
            self.minutes.settled(used)
        self._follow_limits(pending, ended, at_s)
        for message in model.messages():
            self.notify(f"{model.alias}: {message}")
        if error is not None and not model.warm_up.passed:
            model.client.records.note_failure(error)
        if error is not None and kind in ONE_TOO_MANY:
            self.minutes.refused += 1
            self.slots.refused()
            self._respect_wait(model, error, at_s)
        paused = self.throttle.closed
        self._follow_failures(pending, kind, at_s)
        of_now = pending.sent_s >= self.throttle.opened_s and pending.number not in self._outages.unanswered
        made = not (error and error.before_call)
        if made and of_now and not paused and kind not in ONE_TOO_MANY:
            self._note_overload(pending, at_s, broke=kind in BROKEN_OFF)
        self._judge(pending, error, at_s)
        if paused and not self.throttle.closed:
            self.highest = self.in_flight
        if not self.minutes.left_s(at_s):
            self.close_minute()
        if error is None and self.slots.overload.bound == math.inf:
            self.slots.answered(attempt.latency_s or 0.0, in_flight=pending.in_flight)

    def close_minute(self) -> None:
        """End the minute of the lane's account here, and write it down."""
        at_s = self.now_s()
        share = self.throttle.share(at_s)
        self.minutes.close(at_s, self.gate.limits_in_force(), share, in_flight=self.in_flight)

    def _follow_limits(self, pending: PendingTrial, ended: Reply | ProviderError, at_s: float) -> None:
        """Follow what a response told of the provider's limits."""
        if isinstance(ended, Reply):
            self.gate.holds.admitted(pending.sent_s)
        retry_after_s = ended.retry_after_s if isinstance(ended, ProviderError) else None
        for allowance in ended.allowances:
            if pause := self.gate.hold(allowance, at_s, sent_s=pending.sent_s, retry_after_s=retry_after_s):
                self._record_pause(pause, at_s)
            if message := self.gate.follow(allowance, at_s, model=pending.request.trial.model.alias):
                self.notify(f"{self.name}: {message}")

    def _record_pause(self, pause: Pause, at_s: float) -> None:
        """Write a pause down, and notify a person unless that was done lately."""
        self.minutes.pauses.append(pause.why)
        if at_s >= self._notified_s.get(pause.cause, -math.inf) + NOTIFY_EVERY_S:
            self._notified_s[pause.cause] = at_s
            self.notify(f"{self.name}: paused: {pause.why}")

    def _respect_wait(self, model: LaneModel, error: ProviderError, at_s: float) -> None:
        """Wait as long as a provider asks, where that is about more than one call."""
        wait_s = error.retry_after_s or 0.0
        self._there_s = max(self._there_s, at_s + min(wait_s, LONGEST_PAUSE_S))
        if wait_s > LONGEST_PAUSE_S:
            why = f"{error.kind.value}: the provider asks to wait {wait_s / 3600:,.0f} hours: {error.message}"
            model.queue.suspend(why)
        elif wait_s > LONG_WAIT_S and len(self.models) > 1:
            # Others of the group may be answered all the same; and it may mean another limit.
            model.not_before_s = at_s + min(wait_s, RAREST_PROBE_S)
            request = f"the provider asks to wait {wait_s:,.0f} s ({error.kind.value}: {error.message})"
            why = f"only {model.alias}, because {request}. asyncbench tries it again now and then"
            self._record_pause(Pause(model.alias, why), at_s)

    def _follow_failures(self, pending: PendingTrial, kind: ErrorKind | None, at_s: float) -> None:
        """Keep what is known before calls fail, and go back to it when their failures were an outage."""
        if kind in UNANSWERED:
            broke = kind not in ONE_TOO_MANY
            self._outages.failed(pending.sent_s, self.slots.overload, self._guess, broke=broke)
            return
        failing_s = self._outages.answered(pending.number, pending.sent_s)
        if failing_s is not None and not self.throttle.closed:
            self._go_back(at_s, failing_s)

    def _go_back(self, at_s: float, failing_s: float) -> None:
        """Go on as before calls began to fail: an outage says nothing of what the provider bears."""
        if (remembered := self._outages.known_before(failing_s, at_s)) is not None:
            self.slots.overload, self._guess = remembered
        self._guess.interrupted(at_s)

    def _note_overload(self, pending: PendingTrial, at_s: float, *, broke: bool) -> None:
        """Take in whether an answer broke off: with fewer calls in flight it may not."""
        overload = self.slots.overload
        overload.ended(pending.sent_s, at_s, in_flight=pending.in_flight, broke=broke)
        if overload.bound < math.inf and self._guess.ever_answered and not self._overload_notified:
            self._overload_notified = True
            self.notify(
                f"{self.name}: replies break off with {pending.in_flight:,} calls in flight. asyncbench now "
                "keeps fewer in flight, and tries more again later"
            )

    def _judge(self, pending: PendingTrial, error: ProviderError | None, at_s: float) -> None:
        """Take in whether a call was one too many, came to nothing, or was answered, be it with a refusal."""
        throttle = self.throttle
        kind, wait_s = (None, None) if error is None else (error.kind, error.retry_after_s)
        begins = False
        if kind in ONE_TOO_MANY and not self.gate.limited:
            self._guess.refused(pending.sent_s, at_s)
        elif kind in BROKEN:
            self._guess.broke(pending.sent_s)
        is_probe = pending.is_probe and throttle.probing and pending.sent_s >= throttle.probe_sent_s
        if error is not None and is_probe and kind in FAILED:
            soon = not self.gate.limited and throttle.for_refusals and throttle.closed_for(at_s) < LOST_S
            throttle.probe_failed(at_s, wait_s=wait_s, rarest_s=SOON_S if soon else RAREST_PROBE_S)
            self._held_in_flight = self.in_flight
            self._is_outage |= kind is not ErrorKind.RATE_LIMITED
            self._lose_patience(error, at_s)
        elif is_probe:
            self._reopen(at_s)
        elif kind in ONE_TOO_MANY and (wait_s or 0.0) > LONG_WAIT_S and len(self.models) == 1:
            begins = throttle.close(at_s, wait_s=wait_s)  # nobody means one call by that
        elif kind in ONE_TOO_MANY:
            begins = self._refused(pending.sent_s, at_s, wait_s=wait_s)
        elif kind in BROKEN:
            begins = throttle.broke(pending.sent_s, at_s, wait_s=wait_s, in_flight=self._undecided)
        else:
            throttle.answered(pending.sent_s, at_s)
        if error is not None and begins:
            self._is_outage = not throttle.for_refusals or kind is not ErrorKind.RATE_LIMITED
            self._held_in_flight = self.in_flight
            self._pause_notified = False
            self._record_long_pause(error, at_s)
        if kind not in FAILED:
            self._guess.answered(at_s)
        pending.is_probe = False

    def _refused(self, sent_s: float, at_s: float, *, wait_s: float | None) -> bool:
        """Take in that a call was one too many; return whether this begins a pause."""
        throttle, guess = self.throttle, self._guess
        if self.gate.limited:
            starts = self._starts
            per_s = len(starts) / max(at_s - starts[0], 1.0) if starts else 0.0  # lately
            return throttle.refused(
                sent_s,
                at_s,
                wait_s=wait_s,
                per_s=per_s,
                in_flight=self._undecided,
                uneven=self.gate.counts_tokens,
            )
        throttle.admitted(guess.admitted_s(at_s))
        # Of calls that are no longer too young to say, none since then was admitted.
        sure = at_s - throttle.streak_s > guess.sure_s + 2 * BIN_S
        many = int(max(self._undecided, OF_IN_FLIGHT / 2 * (self.gate.guessed_rpm or 0) / 60))
        begins = throttle.refused(sent_s, at_s, wait_s=wait_s, per_s=math.inf, in_flight=0 if sure else many)
        if sure and guess.kept and throttle.streak > 1:
            begins |= throttle.close(at_s, wait_s=wait_s)
        return begins

    @property
    def _undecided(self) -> int:
        """The calls of which nothing is known yet; before the first answer, each may have been admitted."""
        return self.in_flight * (1 if self._guess.ever_answered else OF_IN_FLIGHT)

    def _pause_s(self, at_s: float) -> float:
        """Return how long a pause lasts; it is over when its test call was not refused as others were."""
        throttle = self.throttle
        if not throttle.probing or not throttle.for_refusals or self.gate.limited:
            return throttle.wait_s(at_s)
        seconds = throttle.probe_sent_s + self._guess.sure_s - at_s
        if seconds <= 0:
            self._reopen(at_s)
        return max(0.0, seconds)

    def _reopen(self, at_s: float) -> None:
        """End a pause. One for refusals alone tells of a limit: what had been admitted before it."""
        throttle, paused_s = self.throttle, self.throttle.closed_for(at_s)
        # So many calls may have ended since everything was refused that slots are all that was missing.
        tells = not throttle.provider_named and self._guess.sure_s < LATE_S
        freed = tells and self.in_flight < FREED * self._held_in_flight
        if self._is_outage:
            long = throttle.failed_for_s >= FIRST_PROBE_S
            self._go_back(at_s, at_s - paused_s if long else -math.inf)
            throttle.sit_out(paused_s)
        elif not freed:
            self._guess.reopened(at_s, held_s=paused_s, provider_named=throttle.provider_named)
        throttle.probe_answered(at_s)
        self._shift_starts(paused_s)

    def _shift_starts(self, seconds: float) -> None:
        """Leave a pause that is just over out of the rate of calls."""
        self._starts = deque((start_s + seconds for start_s in self._starts), maxlen=REMEMBERED)

    def _record_long_pause(self, error: ProviderError, at_s: float) -> None:
        """Write the present pause down, once, as soon as it is known to be a long one."""
        named_s, so_far_s = error.retry_after_s or 0.0, self.throttle.closed_for(at_s)
        if self._pause_notified or max(named_s, so_far_s) < WORTH_TELLING_S:
            return
        self._pause_notified = True
        wait = f"the provider asks to wait {named_s:,.0f} s" if named_s else f"no reply for {so_far_s:,.0f} s"
        failure, probe_in_s = f"{error.kind.value}: {error.message}", self.throttle.probe_due_s - at_s
        why = f"{wait} ({failure}). One test call follows in {probe_in_s:,.0f} s"
        if error.kind is ErrorKind.UNREACHABLE and not self._guess.ever_answered:
            self.minutes.pauses.append(why)  # `on_failure` has told it, once for all models of the provider
        else:
            self._record_pause(Pause(error.kind, why), at_s)

    def _lose_patience(self, error: ProviderError, at_s: float) -> None:
        """Give up a lane that was never answered, or not for longer than a night may wait."""
        self._record_long_pause(error, at_s)
        if not any(model.queue.pending for model in self.models):
            return  # what is left was tried before, and will come to its own end
        since_s = min(self.throttle.closed_for(at_s), at_s - self._there_s)
        there = self._guess.ever_answered or math.isfinite(self._there_s)
        answered = there or any(model.client.answered_before for model in self.models)
        reach_s = max(model.client.model.retry.unreachable_s for model in self.models)
        never_s = reach_s if error.kind is ErrorKind.UNREACHABLE else max(reach_s, NEVER_S)
        if since_s > (LONGEST_OUTAGE_S if answered else never_s):
            why = f"{error.kind.value}: no reply for {since_s:,.0f} s: {error.message}"
            for model in self.models:
                model.queue.suspend(why)
