"""One call under way: its connection, its times and its deadlines."""

import asyncio
import math
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Self

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.error_kinds import safe_line
from asyncbench.providers.wire import header_id
from asyncbench.records import LOST_WITH_IT, RESENT, Timeouts

_OVERDUE: Final = {
    "total": "no complete reply within timeouts.total",
    "first_byte": "no answer began within timeouts.first_byte",
    "between_chunks": "the stream paused for longer than timeouts.between_chunks",
}
News = Callable[[int], Sequence[object]]  # milliseconds to wait → what is to be read of a connection
# A call and its request → why its answer may be another's.
Doubt = Callable[["Call", bytes], Awaitable[str | None]]
_UNDER_WAY: Final[ContextVar["Call"]] = ContextVar("call under way")


def current_call() -> "Call":
    """Return the call that the running code serves, however deep inside a library it is."""
    return _UNDER_WAY.get()


class Call:
    """The deadlines of one call, and what its connection tells of it; entered around the call.

    A timer is moved when it rings, not at each chunk: a whole stream costs one or two.
    The attributes in seconds are of the event loop's clock. A ProviderError of the block gets the id of the
    request, should it have none.

    Args:
        timeouts: those deadlines.
        key: the API key, which an id must not repeat.

    Raises:
        ProviderError: `timeout`, with the name of the deadline that was missed; `unreachable` where no
            connection was made within it.
    """

    __slots__ = (
        *("_cancelled", "_due_s", "_ends_s", "_headers", "_key", "_loop", "_missed", "_rule", "_task"),
        *("_timeouts", "_timer", "_token", "answered", "body_id", "connect_s", "connection", "handed_over"),
        *("doubt", "news", "repeated", "reused", "sent_s"),
    )

    def __init__(self, timeouts: Timeouts, *, key: str = "") -> None:
        self.sent_s = 0.0  # a connection was there: the request is being written
        self.connect_s: float | None = None  # before that, to make a connection; None: there was one
        self.reused = False  # the connection had served another call before
        self.news: News | None = None  # of such a connection
        self.handed_over = False  # the kernel has the whole request: the server may have read it
        self.connection: object = None  # by which it is made
        self.repeated = False  # made again because that connection had gone unread
        self.doubt: Doubt | None = None  # of its connection
        self.answered = False  # the headers of the answer are there
        self.body_id: str | None = None  # the id that the answer gives itself
        self._headers: Mapping[str, str] = {}
        self._timeouts, self._key = timeouts, key
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._ends_s = self._due_s = math.inf  # of `total`; of `_rule`, which may be due before
        self._rule = "total"
        self._missed: str | None = None  # the deadline that stopped the call

    async def __aenter__(self) -> Self:
        task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101  this runs in one
        self._task, self._cancelled = task, task.cancelling()  # how often it had been cancelled before
        self._token: Token[Call] = _UNDER_WAY.set(self)
        self.allow(self._timeouts.total)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _UNDER_WAY.reset(self._token)
        self._ring_at(math.inf)
        if self._missed is not None and self._task.uncancel() <= self._cancelled and kind is CancelledError:
            limit_s = getattr(self._timeouts, self._missed)
            if not self.sent_s:
                message = f"no connection within timeouts.{self._missed} ({limit_s:g} s)"
                raise ProviderError(ErrorKind.UNREACHABLE, message, never_sent=True) from error
            message = f"{_OVERDUE[self._missed]} ({limit_s:g} s)"
            raise ProviderError(ErrorKind.TIMEOUT, message, request_id=self.request_id) from error
        if isinstance(error, ProviderError):
            error.request_id = error.request_id or self.request_id
            error.kept_connection = self.kept_connection(lost=error.kind is ErrorKind.UNREACHABLE)

    @property
    def request_id(self) -> str | None:
        """The id of the request for the provider's support, without the key, or None if none was told yet."""
        return safe_line(header_id(self._headers) or self.body_id or "", key=self._key) or None

    def kept_connection(self, *, lost: bool = False) -> str | None:
        """Return the fate of a kept connection that the server had closed, or None if there was none."""
        if self.repeated:
            return RESENT
        return LOST_WITH_IT if lost and self.reused and self.handed_over and not self.answered else None

    @property
    def overdue(self) -> bool:
        """Return whether a deadline was missed, and is all that stops the call: nobody else gave it up."""
        return self._missed is not None and self._task.cancelling() <= self._cancelled + 1

    def sent(self, *, reused: bool) -> None:
        """Note that the request is about to be written."""
        self.sent_s, self.reused, self.handed_over = self._loop.time(), reused, False
        self._expect("first_byte", self.sent_s, self._timeouts.first_byte)

    def began(self, headers: Mapping[str, str]) -> None:
        """Note that the answer has begun: its headers are there."""
        self.answered, self._headers = True, headers
        self._due_s = math.inf

    def streams(self) -> None:
        """Note that the answer is a stream: headers, which some send at once, are not its first byte."""
        if self._timeouts.first_byte is None:
            self.flows()
        else:  # no new timer: that of `sent` is put off by time in which this process stood still
            self._due_s = self.sent_s + self._timeouts.first_byte

    def flows(self) -> None:
        """Note the first byte of a stream's body: silence counts from now on."""
        self._expect("between_chunks", self._loop.time(), self._timeouts.between_chunks)

    def heard(self) -> None:
        """Note a word of the stream."""
        if self._timeouts.between_chunks is not None:
            self._due_s = self._loop.time() + self._timeouts.between_chunks

    def allow(self, seconds: float) -> None:
        """Let the call take so long from now on."""
        self._ends_s = self._loop.time() + seconds
        self._ring_at(min(self._ends_s, self._due_s))

    async def check_answer(self, request: bytes = b"") -> None:
        """Raise ProviderError where the answer may be one to an earlier request."""
        if self.doubt is not None and (message := await self.doubt(self, request)):
            raise ProviderError(ErrorKind.BAD_REPLY, message, may_have_been_billed=True)

    def age_s(self) -> float | None:
        """Return the seconds since the request was sent; None where no connection told of that."""
        return self._loop.time() - self.sent_s if self.sent_s else None

    def _expect(self, rule: str, since_s: float, within_s: float | None) -> None:
        self._rule, self._due_s = rule, math.inf if within_s is None else since_s + within_s
        if self._due_s < self._ends_s:
            self._ring_at(self._due_s)

    def _ring_at(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        rings = at_s < math.inf and self._missed is None
        self._timer = self._loop.call_at(at_s, self._ring) if rings else None

    def _ring(self) -> None:
        due_s = min(self._due_s, self._ends_s)
        if self._loop.time() < due_s:  # there was word meanwhile
            self._ring_at(due_s)
            return
        self._missed = self._rule if self._due_s <= self._ends_s else "total"
        self._task.cancel()
