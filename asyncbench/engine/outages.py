"""Outages of a lane: the calls that failed in one, and what was known of limits before they did.

For example, a server hangs for 44 seconds and then answers again. The 400 calls sent in that time end by
their time limits a minute later. They tell of that outage and not of the calls that are in flight now. The
lane goes on with the limits it had found before.
"""

import math
from collections import deque
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.guessed_limit import GuessedLimit
from asyncbench.engine.throttle import FIRST_PROBE_S, OverloadDetector

SOON_AGAIN_S: Final = 30.0  # after an outage: a server that breaks down again may bear no more
LONG_RUN: Final = 8  # calls in a row without an answer: an overloaded server answers some of them
MOST_RUNS: Final = 16  # that are remembered

Known = tuple[OverloadDetector, GuessedLimit]


@dataclass(slots=True)
class UnansweredRuns:
    """Runs of calls, in the order they were sent, of which none was answered though a later call was."""

    _latest: int = 0  # the number of the latest call that was answered
    _latest_s: float = 0.0  # when it was sent
    _runs: deque[range] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))  # numbers of calls

    def answered(self, number: int, sent_s: float) -> bool:
        """Take in that the call of this number was answered; return whether it is the first after a run."""
        if number > self._latest:
            run, seconds = range(self._latest + 1, number), sent_s - self._latest_s
            self._latest, self._latest_s = number, sent_s
            ends_run = len(run) >= LONG_RUN and seconds >= FIRST_PROBE_S
            if ends_run:
                self._runs.append(run)
            return ends_run

        around = next((run for run in self._runs if number in run), None)
        if around is not None:
            self._runs.remove(around)
            halves = range(around.start, number), range(number + 1, around.stop)
            self._runs.extend(half for half in halves if len(half) >= LONG_RUN)
        return False

    def __contains__(self, number: int) -> bool:
        """Whether the call of this number was sent while nothing was answered."""
        return any(number in run for run in self._runs)


@dataclass(slots=True)
class Outages:
    """What a lane knew before its calls began to fail; times are the loop's clock."""

    unanswered: UnansweredRuns = field(default_factory=UnansweredRuns)
    _remembered: Known | None = None  # as it was before the latest failures; None: none failed yet
    _failing_s: float | None = None  # when the first of the latest calls was sent that failed; None: none did
    _has_broken: bool = False  # one of them failed otherwise than for being too many
    _back_s: float = -math.inf  # when the latest outage was over

    def failed(self, sent_s: float, overload: OverloadDetector, guess: GuessedLimit, *, broke: bool) -> None:
        """Take in that a call failed, before `overload` and `guess` do; `broke`: not for being too many."""
        if self._failing_s is None:
            self._failing_s, self._has_broken = sent_s, False
            self._remembered = copy(overload), copy(guess)
        self._has_broken |= broke

    def answered(self, number: int, sent_s: float) -> float | None:
        """Take in that a call was answered.

        Returns:
            since when calls had failed, if this is the first answer after an outage; None: it is not.
        """
        ends_run, failing_s = self.unanswered.answered(number, sent_s), self._failing_s
        if failing_s is None or sent_s < failing_s:
            return None
        self._failing_s = None
        return failing_s if ends_run and self._has_broken else None

    def known_before(self, failing_s: float, at_s: float) -> Known | None:
        """Return the knowledge before an outage whose first failing call was sent at `failing_s`, or None.

        None: this outage followed soon after another. Then the server may break down whenever it is asked so
        much, and what its failures taught counts.
        """
        if self._remembered is None or failing_s < self._back_s + SOON_AGAIN_S:
            return None
        self._back_s = at_s
        return self._remembered
