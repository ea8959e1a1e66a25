"""What a provider's refusals and faults mean for a lane: pauses, guessed limits, and when to give up."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.asker import Asker
from asyncbench.engine.guess import Guess
from asyncbench.engine.holds import WORTH_TELLING_S, Pause
from asyncbench.engine.limits import Gate
from asyncbench.engine.throttle import RAREST_SCOUT_S, Throttle
from asyncbench.engine.turn import Turn
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Reply

REMEMBERED: Final = 64  # starts of calls, to know how many a minute there are
FEW: Final = 4
LONGEST_PAUSE_S: Final = 25 * 3600.0  # a day's limit is back by then; what takes longer is for another run
LONG_WAIT_S: Final = 600.0  # of a Retry-After: it is about the lane
LONGEST_OUTAGE_S: Final = 4 * 3600.0  # of a provider that had answered before
NEVER_S: Final = 60.0  # of a pause before any answer: the address is wrong, or nobody is there tonight

ONE_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
BROKEN_OFF: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.BAD_REPLY})
BROKEN: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.SERVER_ERROR})


@dataclass(slots=True, kw_only=True)
class Pressure:
    """Judges how calls ended, and opens, narrows or closes a lane by it; times are the loop's clock."""

    askers: Sequence[Asker]
    gate: Gate
    throttle: Throttle
    tell: Callable[[Pause], None]
    _guess: Guess = field(default_factory=Guess)  # of a limit that nobody tells
    _starts: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))  # of the latest calls
    _told_pause: bool = False  # of the present one
    _there_s: float = -math.inf  # until when the provider was there: it said no, or how long to wait

    def started(self, at_s: float) -> None:
        """Note that a call starts."""
        self._starts.append(at_s)

    def heed(self, asker: Asker, error: ProviderError, at_s: float) -> None:
        """Take in how long a provider says to wait, where that is about more than one call."""
        wait_s = error.retry_after_s or 0.0
        self._there_s = max(self._there_s, at_s + min(wait_s, LONGEST_PAUSE_S))
        if wait_s > LONGEST_PAUSE_S:
            asker.suspend(f"{error.kind.value}: to wait {wait_s / 3600:,.0f} hours; {error.message}")
        elif wait_s > LONG_WAIT_S and len(self.askers) > 1:
            # Others of the group may be answered all the same; and it may mean another limit.
            asker.not_before_s = at_s + min(wait_s, RAREST_SCOUT_S)
            alias = asker.model.alias
            said = f"the provider asks to wait {wait_s:,.0f} s ({error.kind.value}: {error.message})"
            self.tell(Pause(alias, f"{alias} alone: {said}; it is asked again now and then"))

    def judge(self, turn: Turn, ended: Reply | ProviderError, at_s: float, *, in_flight: int) -> None:
        """Take in whether a call was one too many, came to nothing, or was answered, be it with a refusal."""
        throttle = self.throttle
        kind = ended.kind if isinstance(ended, ProviderError) else None
        wait_s = ended.retry_after_s if isinstance(ended, ProviderError) else None
        if turn.scouts and isinstance(ended, ProviderError) and kind in ONE_TOO_MANY | BROKEN:
            throttle.scouted_in_vain(at_s, wait_s=wait_s)
            self._lose_patience(ended, at_s)
        elif turn.scouts:
            paused_s = throttle.closed_for(at_s)
            throttle.scouted(at_s)
            self._guess_again(at_s, paused_s=paused_s)
            self._starts.clear()  # a pause is no rate
        elif kind in ONE_TOO_MANY and (wait_s or 0.0) > LONG_WAIT_S and len(self.askers) == 1:
            self._paused(throttle.close(at_s, wait_s=wait_s), ended, at_s)  # nobody means one call by that
        elif kind in ONE_TOO_MANY:
            self._slow_down(at_s)
            per_s = self._per_s(at_s)
            begins = throttle.refused(turn.sent_s, at_s, wait_s=wait_s, per_s=per_s, in_flight=in_flight)
            self._paused(begins, ended, at_s)
        elif kind in BROKEN:
            begins = throttle.broke(turn.sent_s, at_s, wait_s=wait_s, in_flight=in_flight)
            self._paused(begins, ended, at_s)
        else:
            throttle.answered(turn.sent_s, at_s)
        if kind not in ONE_TOO_MANY | BROKEN:
            self._guess.answered(at_s)
        turn.scouts = False

    def _slow_down(self, at_s: float) -> None:
        """Where no limit is known, take the rate of the latest calls for one: a share of it can be taken."""
        known = self.gate.limited or self.gate.guessed_rpm or self.throttle.resigned(at_s)
        if not known and len(self._starts) > FEW:
            self.gate.guess(self._guess.first(self._per_s(at_s) * 60, at_s), at_s)
            self.throttle.start_over(at_s)

    def _guess_again(self, at_s: float, *, paused_s: float) -> None:
        """Where a guessed limit ended in a pause, guess by what was answered before it."""
        if (rpm := self.gate.guessed_rpm) is not None and self.throttle.for_refusals:
            self.gate.guess(self._guess.after_pause(rpm, at_s, paused_s=paused_s), at_s)
            self.throttle.start_over(at_s)

    def raise_guess(self, share: float, at_s: float) -> None:
        """Try more than was guessed now and then; forget a guess that refusals had nothing to do with."""
        if (rpm := self.gate.guessed_rpm) is None:
            return
        if self.throttle.resigned(at_s):
            self.gate.forget_guess()
        elif self._guess.drop(rpm, share=share):
            self.gate.forget_guess()
            self.throttle.start_over(at_s)
            self._starts.clear()  # they were as many as the guess allowed
        elif times := self._guess.growth(rpm, at_s, share=share):
            self.gate.raise_guess(times, at_s)

    def _per_s(self, at_s: float) -> float:
        """Return how many calls a second started lately."""
        return len(self._starts) / max(at_s - self._starts[0], 1.0) if self._starts else 0.0

    def _paused(self, begins: bool, error: Reply | ProviderError, at_s: float) -> None:
        """Tell of a long pause; give up where it is longer than a run should wait."""
        if not begins or not isinstance(error, ProviderError):
            return
        self._told_pause = False
        self._tell_pause(error, at_s)

    def _tell_pause(self, error: ProviderError, at_s: float) -> None:
        """Say once of a pause that it is, or will be, a long one."""
        told_s, so_far_s = error.retry_after_s or 0.0, self.throttle.closed_for(at_s)
        if self._told_pause or max(told_s, so_far_s) < WORTH_TELLING_S:
            return
        self._told_pause = True
        asked = f"the provider asks to wait {told_s:,.0f} s" if told_s else f"no answer for {so_far_s:,.0f} s"
        said, scout_in_s = f"{error.kind.value}: {error.message}", self.throttle.scout_s - at_s
        self.tell(
            Pause(error.kind, f"{asked} ({said}); one call sees in {scout_in_s:,.0f} s whether it is over")
        )

    def _lose_patience(self, error: ProviderError, at_s: float) -> None:
        """Give up a lane that was never answered, or not for longer than a night may wait."""
        self._tell_pause(error, at_s)
        if not any(asker.queue for asker in self.askers):
            return  # what is left was tried before, and will come to its own end
        since_s = min(self.throttle.closed_for(at_s), at_s - self._there_s)
        there = self._guess.ever_answered or math.isfinite(self._there_s)
        answered = there or any(asker.answered_before for asker in self.askers)
        longest_s = LONGEST_OUTAGE_S if answered else NEVER_S
        if since_s > longest_s:
            for asker in self.askers:
                asker.suspend(
                    f"{error.kind.value}: nothing was answered for {since_s:,.0f} s; {error.message}"
                )
