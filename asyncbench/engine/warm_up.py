"""The warm-up of a model: few calls are in flight before one of them shows that key and model are good.

A model that refuses every call from the first one on is given up after a time.
"""

import math
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Reply

FEW: Final = 4  # calls in flight before any of them showed that key and model are good
# Without any answer twice as many may be in flight after `QUIET_S`, for a dead key is refused sooner, and
# again after each `QUIET_WIDER_S`, for a model may think for minutes. After a failure the other two count.
QUIET_S: Final = 0.4
QUIET_WIDER_S: Final = 0.1
PATIENT_S: Final = 20.0
WIDER_S: Final = 2.0
WORTH_TELLING: Final = 3  # calls from the first on that were refused as one too many
HOPELESS_CALLS: Final = 5  # of them, before a model may be given up, ...
HOPELESS_S: Final = 300.0  # ... and the time in which no call was admitted

_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
# Who says this has read the request: the key and the name of the model are good.
_READ_IT: Final = frozenset(
    {ErrorKind.BAD_REQUEST, ErrorKind.TOO_LONG, ErrorKind.BLOCKED, ErrorKind.BAD_REPLY}
)


@dataclass(slots=True, kw_only=True)
class WarmUp:
    """The state of a model before its first answer; times are the loop's clock."""

    answered_before: bool  # by earlier runs
    passed: bool = False  # a call showed that key and name are good
    _calm_since_s: float = math.inf  # the first call, or the latest failure
    _least: int = FEW  # in flight then
    _patience: tuple[float, float] = (QUIET_S, QUIET_WIDER_S)
    _too_many: int = 0  # calls that were one too many
    _first_s: float = 0.0  # when the first of them ended
    _patient_until_s: float = 0.0
    _unreported: ProviderError | None = None  # that was not told yet

    def most_in_flight(self, at_s: float) -> float:
        """Return how many calls may be in flight."""
        return math.inf if self.passed else self._least * 2.0 ** min(30, self._steps(at_s))

    def wider_s(self, at_s: float) -> float:
        """Return when `most_in_flight` rises next; inf: time alone does not raise it."""
        calm_s, wider_s = self._patience
        return math.inf if self.passed else self._calm_since_s + calm_s + wider_s * self._steps(at_s)

    def _steps(self, at_s: float) -> int:
        """Return how often `most_in_flight` has risen."""
        calm_s, wider_s = self._patience
        return int(max(-wider_s, at_s - self._calm_since_s - calm_s) // wider_s) + 1

    def started(self, at_s: float) -> None:
        """Note that a call starts."""
        self._calm_since_s = min(self._calm_since_s, at_s)

    def ended(
        self, ended: Reply | ProviderError, at_s: float, *, in_flight: int = 0, paced: bool = True
    ) -> None:
        """Take in how a call ended.

        Args:
            ended: its reply, or how it failed.
            at_s: now.
            in_flight: calls that go on.
            paced: by a limit that somebody told. Else a refusal may be about how many are in flight.
        """
        if isinstance(ended, Reply) or (ended.kind in _READ_IT and not ended.foreign):
            self.passed = True
        if self.passed or isinstance(ended, Reply):
            return
        self._calm_since_s, self._least = at_s, max(FEW, in_flight)
        waits = in_flight >= FEW and ended.kind in _TOO_MANY and not paced  # for one of them to be answered
        self._patience = math.inf if waits else PATIENT_S, WIDER_S
        if ended.kind not in _TOO_MANY:
            return
        # Its own word of when to come back is waited for, and that of a day's limit of which nothing remains.
        days = [limit for limit in ended.allowances if limit.period_s > 60 and limit.remaining == 0]
        named_s = max([ended.retry_after_s or 0.0, *(day.reset_s or 0.0 for day in days)])
        if not self._too_many:
            self._first_s, self._patient_until_s = at_s, at_s + named_s + HOPELESS_S
        elif named_s > HOPELESS_S and at_s <= self._first_s + HOPELESS_S:
            self._patient_until_s = max(self._patient_until_s, at_s + named_s + HOPELESS_S)
        self._too_many += 1
        if self._too_many == WORTH_TELLING:
            self._unreported = ended

    def message(self) -> str | None:
        """Return, once, a warning that every call is refused, or None."""
        error, self._unreported = self._unreported, None
        if error is None:
            return None
        stops = f"The model stops if this lasts {HOPELESS_S / 60:.0f} minutes"
        follows = "asyncbench tries it again now and then" if self.answered_before else stops
        return f"the provider refuses every call so far ({error.kind.value}: {error.message}). {follows}"

    def hopeless(self, at_s: float) -> bool:
        """Whether a model that never answered has refused every call for so long that it will go on."""
        refuses = self._too_many >= HOPELESS_CALLS and at_s > self._patient_until_s
        return refuses and not self.passed and not self.answered_before
