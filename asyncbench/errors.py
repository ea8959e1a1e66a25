"""The error tree of asyncbench.

AsyncbenchError                  catch this to catch all of ours
├── ConfigError                  the run never starts
├── ProblemSetError              a file we were given is not what it should be
├── StoreError                   results cannot be written: the run stops
│     TakenAwayError             another program took away what was written
│     UnwrittenError             a call was not made, since it could not be written down first
├── LostCallError                nobody knows how a call ended: the process that made it died
├── UnsentError                  a call was not made after all: its trial is the next again
└── ProviderError                one call failed; `kind` says what follows
      worth another try     rate_limited overloaded timeout unreachable server_error bad_reply
      final for the trial   bad_request too_long blocked
      final for the lane    auth no_quota no_such_model rejected_parameter
"""

import sys
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A limit, the rest of it, and when it is whole again. None stands for what the server did not tell."""

    what: str  # requests, tokens (input and output together), input_tokens or output_tokens
    period_s: float  # what `limit` is for: 60 or 86,400
    limit: float | None
    remaining: float | None
    reset_s: float | None  # from now until all of it is back


class AsyncbenchError(Exception):
    """Anything asyncbench refuses or gives up on, with a message that says what to do."""


class ConfigError(AsyncbenchError):
    """A sweep, a command or a parameter that cannot be carried out; raised before anything is spent."""


def refuse_windows() -> None:
    """Refuse a system whose files cannot be locked as ours are, nor its processes limited.

    Raises:
        ConfigError: this is Windows.
    """
    if sys.platform.startswith("win"):
        raise ConfigError(
            "Windows is not supported. Install asyncbench in WSL (`wsl --install`, then as on Linux)"
        )


class ProblemSetError(AsyncbenchError):
    """A problem set that is not what it should be; raised before any call."""


class StoreError(AsyncbenchError):
    """Results cannot be written or read."""


class NoRoomError(StoreError):
    """A file would not fit on the disk, which goes on to take what is smaller."""


class TakenAwayError(StoreError):
    """Another program took away, moved or changed what was written, and not all of it could be put back."""


class UnwrittenError(StoreError):
    """A call that could not be written down first, and so must not be made."""


class LostCallError(AsyncbenchError):
    """A call whose process died: nobody knows how it ended.

    Args:
        message: what happened.
        worker: which process it was.
        sent: whether the process had got it; if not, it was never made.
    """

    def __init__(self, message: str, worker: str | None = None, *, sent: bool = True) -> None:
        super().__init__(message)
        self.worker, self.sent = worker, sent


class UnsentError(AsyncbenchError):
    """A call that was not made after all: its worker had not heard of its run for too long."""


class DamageWarning(UserWarning):
    """Something of a results folder was damaged and left out of what was read; the rest is right."""


class ErrorKind(StrEnum):
    """Why a call failed, in the terms that decide what follows."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    BAD_REPLY = "bad_reply"
    BAD_REQUEST = "bad_request"
    TOO_LONG = "too_long"
    BLOCKED = "blocked"
    AUTH = "auth"
    NO_QUOTA = "no_quota"
    NO_SUCH_MODEL = "no_such_model"
    REJECTED_PARAMETER = "rejected_parameter"


WORTH_ANOTHER_TRY = frozenset(
    {
        ErrorKind.RATE_LIMITED,
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.UNREACHABLE,
        ErrorKind.SERVER_ERROR,
        ErrorKind.BAD_REPLY,
    }
)
FINAL_FOR_LANE = frozenset(
    {ErrorKind.AUTH, ErrorKind.NO_QUOTA, ErrorKind.NO_SUCH_MODEL, ErrorKind.REJECTED_PARAMETER}
)

# The provider may have worked, and billed, before these: what such an attempt cost is unknown.
MAY_HAVE_BEEN_BILLED = frozenset({ErrorKind.TIMEOUT, ErrorKind.BAD_REPLY})


class ProviderError(AsyncbenchError):
    """One call failed.

    Args:
        kind: what follows from it.
        message: short text for a person; never holds an API key.
        http_status: the response's status; None when no response came.
        retry_after_s: how long the provider asks to wait, seconds; None when it does not say.
        request_id: the provider's id of the request, for its support.
        may_have_been_billed: the provider may have worked for it, so that what it cost is unknown; None: as
            is usual for its kind.
        allowances: what the response told of the provider's limits.
        never_sent: no connection was made, so nobody can have read the request.
    """

    worker: str | None = None  # the name of the process that made the call; None: the run's own
    loop_lag_s: float = 0.0  # how late the event loop of that process was meanwhile, at worst
    kept_connection: str | None = None  # what came of it where the server had closed it; None: nothing
    before_call: bool = False  # something else failed, such as what gives credentials: no word of the server
    fault: Exception | None = None  # what a function of somebody's own raised; None: no such function failed
    foreign: bool = False  # no server of such an API wrote what came, such as a web page

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        may_have_been_billed: bool | None = None,
        allowances: tuple[Allowance, ...] = (),
        never_sent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.http_status = http_status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.may_have_been_billed = (
            kind in MAY_HAVE_BEEN_BILLED if may_have_been_billed is None else may_have_been_billed
        )
        self.allowances = allowances
        self.never_sent = never_sent

    def __reduce__(self) -> tuple[object, ...]:
        """Let it go to another process as it is."""
        return ProviderError, (self.kind, self.message), vars(self)
