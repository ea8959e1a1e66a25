"""A model before its first answer: it is asked little until a call shows that its key and name are good."""

import math
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.turn import Turn
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Reply

FEW: Final = 4  # calls in flight before any of them showed that key and model are good
PATIENT_S: Final = 20.0  # without a failure: a dead key is told sooner, if the server is not far behind
WIDER_S: Final = 2.0  # beyond that: each time twice as many may be, for a model may think for minutes
PROOF: Final = 3  # trials of a model without success, refused in the same words: it is not their questions
WORTH_TELLING: Final = 3  # calls from the first on that were one too many
ENOUGH: Final = 5  # of them, before a model may be given up
HOPELESS_S: Final = 300.0  # in which no call was admitted

_TOO_MANY: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
# Who says this has read the request: the key and the name of the model are good.
_READ_IT: Final = frozenset(
    {ErrorKind.BAD_REQUEST, ErrorKind.TOO_LONG, ErrorKind.BLOCKED, ErrorKind.BAD_REPLY}
)


@dataclass(slots=True, kw_only=True)
class Probation:
    """What is known of a model that was not answered yet; times are the loop's clock."""

    answered_before: bool  # by earlier runs
    accepted: bool  # requests as such: refusals are each about a trial of its own
    refused: list[tuple[Turn, ProviderError]] = field(default_factory=list)  # and it is not known why
    passed: bool = False  # a call showed that key and name are good
    _calm_since_s: float = math.inf  # the first call, or the latest failure
    _too_many: int = 0  # calls that were one too many
    _first_s: float = 0.0  # when the first of them ended
    _patient_until_s: float = 0.0
    _last: ProviderError | None = None  # that was not told yet

    def most(self, at_s: float) -> float:
        """Return how many calls may be in flight."""
        return math.inf if self.passed else FEW * 2.0 ** min(30, self._steps(at_s))

    def wider_s(self, at_s: float) -> float:
        """Return when that is more; infinite: it is not by time alone."""
        return math.inf if self.passed else self._calm_since_s + PATIENT_S + WIDER_S * self._steps(at_s)

    def _steps(self, at_s: float) -> int:
        """Return how often it has become wider."""
        return int(max(-1.0, at_s - self._calm_since_s - PATIENT_S) // WIDER_S) + 1

    def started(self, at_s: float) -> None:
        """Note that a call starts."""
        self._calm_since_s = min(self._calm_since_s, at_s)

    def ended(self, ended: Reply | ProviderError, at_s: float) -> None:
        """Take in how a call ended."""
        if isinstance(ended, Reply) or ended.kind in _READ_IT:
            self.passed = True
        if self.passed or isinstance(ended, Reply):
            return
        self._calm_since_s = at_s
        if ended.kind not in _TOO_MANY:
            return
        # Its own word of when to come back is waited for, and that of a day's limit of which nothing remains.
        days = [limit for limit in ended.allowances if limit.period_s > 60 and limit.remaining == 0]
        told_s = max([ended.retry_after_s or 0.0, *(day.reset_s or 0.0 for day in days)])
        if not self._too_many:
            self._first_s, self._patient_until_s = at_s, at_s + told_s + HOPELESS_S
        elif told_s > HOPELESS_S and at_s <= self._first_s + HOPELESS_S:
            self._patient_until_s = max(self._patient_until_s, at_s + told_s + HOPELESS_S)
        self._too_many += 1
        if self._too_many == WORTH_TELLING:
            self._last = ended

    def news(self) -> str | None:
        """Return, once, what a person should hear."""
        error, self._last = self._last, None
        if error is None:
            return None
        stops = f"The model stops if this lasts {HOPELESS_S / 60:.0f} minutes"
        follows = "asyncbench tries it again now and then" if self.answered_before else stops
        return f"the provider refuses every call so far ({error.kind.value}: {error.message}). {follows}"

    def hopeless(self, at_s: float) -> bool:
        """Whether a model that never answered has refused every call for so long that it will go on."""
        refuses = self._too_many >= ENOUGH and at_s > self._patient_until_s
        return refuses and not self.passed and not self.answered_before

    def suspects(self, error: ProviderError) -> bool:
        """Whether a refusal may be about what every request of the model has, such as a parameter."""
        # Another status, such as a 404 for a question that our simulator does not know, is about the trial.
        about_all = error.kind is ErrorKind.BAD_REQUEST and error.http_status in (None, 400, 422)
        return about_all and not self.accepted

    @property
    def suspicious(self) -> bool:
        """Whether what was refused so far looks as if anything would be."""
        return len(self.refused) >= PROOF
