"""How many requests a minute to ask for where nobody tells a limit: what was admitted, and ever more.

The first refusal says at which rate there was one too many. A pause for refusals says that hardly any were
admitted: then what was answered in the minute before it is where to begin again. That may be far too few,
when the lane was young, so the guess doubles quickly up to half of what was refused last, and grows slowly
from there. Where refusals go on far below that, they may have nothing to do with how much is asked: once,
it is tried without a guess.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Final

MINUTE_S: Final = 60
QUICKLY: Final = 2.0  # times as many, far below what was refused
QUICKLY_S: Final = 5.0  # or as long as a call takes at that pace
SLOWLY: Final = 1.5  # times as many, where it may be one too many
SLOWLY_S: Final = 60.0  # without a refusal: a window of a minute is over by then
CALM: Final = 0.98  # of the limits in use, at least: nothing was refused lately
FAR_BELOW: Final = 0.25  # of the rate that was refused
KNOWN: Final = 100  # answers at a guess, before refusals may be about something else


@dataclass(slots=True)
class GuessedLimit:
    """What is known of a limit that nobody tells; times are the loop's clock, rates requests a minute."""

    _since_s: float = 0.0
    _refused: float = inf  # the rate that was refused last
    _answers: int = 0  # since then
    _dropped: bool = False  # it was tried whether there is a limit at all
    _proven: bool = False  # and there is
    _answered: deque[list[int]] = field(default_factory=lambda: deque(maxlen=MINUTE_S + 1))  # second, answers

    def answered(self, at_s: float) -> None:
        """Take in that a call was answered."""
        second = int(at_s)
        if not self._answered or self._answered[-1][0] != second:
            self._answered.append([second, 0])
        self._answered[-1][1] += 1
        self._answers += 1

    @property
    def ever_answered(self) -> bool:
        """Whether any call was answered."""
        return bool(self._answered)

    def first(self, rpm: float, at_s: float) -> float:
        """Return the guess at the first refusal, from the rate at which it came."""
        self._refused, self._since_s, self._answers = rpm, at_s, 0
        return rpm

    def after_pause(self, rpm: float, at_s: float, *, paused_s: float) -> float:
        """Return the guess after a pause for refusals at a rate: what was answered in the minute before."""
        self._refused, self._since_s, self._answers = rpm, at_s, 0
        self._proven |= self._dropped
        begun_s = at_s - paused_s - MINUTE_S
        return max(1.0, sum(count for second, count in self._answered if second >= begun_s))

    def drop(self, rpm: float, *, share: float) -> bool:
        """Return whether to go on without a guess: refusals go on, far below the rate that led to it."""
        far_below = rpm * share <= self._refused * FAR_BELOW
        if self._proven or share >= CALM or self._answers < KNOWN or not far_below:
            return False
        self._dropped = True
        return True

    def growth(self, rpm: float, at_s: float, *, share: float) -> float | None:
        """Return by how much a guess is to grow now; None: it stays.

        Args:
            rpm: the guess.
            at_s: now.
            share: of it that is in use.
        """
        since_s = at_s - self._since_s
        quickly = rpm * QUICKLY <= self._refused / 2 and share >= CALM
        if quickly and since_s > max(QUICKLY_S, MINUTE_S / rpm):
            self._since_s = at_s
            return QUICKLY
        if share == 1.0 and since_s > SLOWLY_S:
            self._since_s = at_s
            return SLOWLY
        return None
