"""What a lane did with its limits, minute by minute: how much was used, and what it waited for."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from asyncbench.engine.limits import Amounts
from asyncbench.records import LaneMinute

MINUTE_S: Final = 60.0
A_MOMENT_S: Final = 0.01  # late: no timer is exact

# What a lane may wait for; every second of it belongs to one of them.
WORK = "work"  # nothing to ask: the source is dry or still being read, or what is left waits for its time
CONCURRENCY = "concurrency"  # all slots are taken
BUDGET = "budget"  # what calls in flight may still cost leaves no money for another
PAUSE = "pause"  # the provider refuses everything for now
CLIENT = "client"  # our own event loop is late
FIRST_ANSWER = "first_answer"  # it is not known yet whether key and model are good
RETRIES = "retries"  # too many trials wait to be tried again
RAMP = "ramp"  # connections are opened no faster
RESUME = "resume"  # a person paused the run

# What a screen tells apart beside them: `concurrency` that nobody set, a `pause` without refusals, and limits
# of which a share alone is used, because calls were refused.
SERVER = "server"
NO_REPLY = "no_reply"
BACK_OFF = "back_off"


class Minutes:
    """The account of one lane; a minute is written down when it is over, the last one when the lane ends.

    Times are the loop's clock; `epoch_s` is UTC at its zero.
    """

    _most: int  # calls in flight at once

    def __init__(self, lane: str, *, epoch_s: float, at_s: float, keep: Callable[[LaneMinute], None]) -> None:
        self._lane, self._epoch_s, self._keep = lane, epoch_s, keep
        self._begin(at_s, in_flight=0)

    def waited(self, cause: str, seconds: float) -> None:
        """Add time in which no call could start, and why."""
        self._waited[cause] += seconds

    def admitted(self, in_flight: int) -> None:
        """Count a call that starts."""
        self._calls += 1
        self._most = max(self._most, in_flight)

    def settled(self, used: Amounts) -> None:
        """Count what a call took of the limits."""
        self._tokens += used.tokens
        self._input += used.input_tokens
        self._output += used.output_tokens

    def refused(self) -> None:
        """Count a call that was one too many."""
        self._refused += 1

    def paused(self, why: str) -> None:
        """Note why a long pause begins."""
        self._pauses.append(why)

    def changed(self, change: str) -> None:
        """Note what a person changed; the minute ends by it."""
        self._changes.append(change)

    def left_s(self, at_s: float) -> float:
        """Return how long this minute lasts."""
        return max(0.0, self._end_s - at_s)

    def close(self, at_s: float, limits: Mapping[str, float], share: float, *, in_flight: int) -> None:
        """Write the minute down as far as it went, and begin another.

        Args:
            at_s: now. Where nobody looked in time, what was counted belongs to the first of several minutes.
            limits: in force, by what they count, a minute.
            share: of them that the lane allows itself.
            in_flight: calls that go over into the next one.
        """
        over = False
        while not over:
            over = at_s <= self._end_s + A_MOMENT_S
            until_s = at_s if over else self._end_s
            if until_s > self._start_s or self._changes:
                self._keep(
                    LaneMinute(
                        lane=self._lane,
                        started_at=self._epoch_s + self._start_s,
                        seconds=until_s - self._start_s,
                        requests=self._calls,
                        tokens=self._tokens,
                        input_tokens=self._input,
                        output_tokens=self._output,
                        limits=dict(limits),
                        share=share,
                        most_in_flight=self._most,
                        refused=self._refused,
                        waited_s=dict(self._waited),
                        pauses=tuple(self._pauses),
                        changes=tuple(self._changes),
                    )
                )
            self._begin(until_s, in_flight)

    def _begin(self, at_s: float, in_flight: int) -> None:
        self._start_s = at_s
        # Minutes of the clock on the wall: those of all lanes can be laid side by side.
        self._end_s = at_s + MINUTE_S - (self._epoch_s + at_s) % MINUTE_S
        self._calls, self._most, self._refused = 0, in_flight, 0
        self._tokens = self._input = self._output = 0.0
        self._waited: dict[str, float] = defaultdict(float)
        self._pauses: list[str] = []
        self._changes: list[str] = []


def change_alone(lane: str, change: str, *, at: float) -> LaneMinute:
    """Return a row for what a person changed in a lane that keeps no account of its minutes."""
    return LaneMinute(
        lane=lane,
        started_at=at,
        seconds=0.0,
        requests=0,
        tokens=0.0,
        input_tokens=0.0,
        output_tokens=0.0,
        limits={},
        share=1.0,
        most_in_flight=0,
        refused=0,
        waited_s={},
        changes=(change,),
    )
