"""Calls through a cloud, whose own chain finds the credentials: an SDK signs each call, or gives it a token.

A chain looks where its cloud's own tools look: variables, files, a program, a login of yours, the role of a
machine. What it finds ends after an hour or so, and is renewed before that, while calls go on with what is
there. Where a server says sooner that it has ended, it is looked for anew, once for all calls in flight. What
never let a call in is not: the model stops.
"""

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.error_kinds import safe_line
from asyncbench.providers.functions import call_in_thread
from asyncbench.providers.params import needs_sampling_version
from asyncbench.providers.sdk import SdkProvider, Transport
from asyncbench.providers.secrets import withhold_too
from asyncbench.providers.wire import Json, Wire
from asyncbench.records import Reply, Request

SOON_S: Final = 300.0  # what ends sooner than that is renewed
LATER: Final = (408, 429)  # statuses of a server that may answer soon, as all from 500 on
_LEAST_S: Final = 10.0  # that credentials are used, whatever this machine's clock says of their end


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Credentials that a chain found."""

    credentials: Any  # as their library has them
    secrets: tuple[str, ...]  # what nobody may see of them; the first changes with them
    ends_s: float | None = None  # UTC, seconds since 1970; None: they do not end


class Chain(ABC):
    """Where a cloud's own library looks for credentials."""

    name: ClassVar[str]
    unreached: ClassVar[tuple[type[Exception], ...]]  # raised where what would give them does not answer

    @abstractmethod
    def find(self) -> Login:
        """Look for credentials anew, whatever was found before; blocks.

        Raises:
            Exception: of the library, where none are found.
        """

    def is_down(self, error: Exception) -> bool:
        """Whether what would give credentials does not answer now, and may do so soon."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, self.unreached):
                return True
            cause = cause.__cause__ or cause.__context__
        return False


class CloudCredentials:
    """The credentials of a model's calls: found once for all of them, and renewed beside them."""

    def __init__(
        self,
        chain: Chain,
        use: Callable[[Login], None],
        *,
        wait_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Args:
        chain: finds them.
        use: gives them to the client, in the event loop.
        wait_s: how long a call waits for them at most.
        now: the time, UTC, seconds since 1970.
        """
        self._chain, self._use, self._wait_s, self._now = chain, use, wait_s, now
        self._login: Login | None = None
        self._renew_at_s = self._ends_s = 0.0
        self._renewal: asyncio.Task[None] | None = None
        self._good = set[str]()  # what let a call in

    async def ask(self, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Make a call; raises ProviderError, one worth another try where new credentials were found."""
        in_use = await self.current()
        try:
            reply = await ask()
        except ProviderError as error:
            ended = error.kind is ErrorKind.AUTH and in_use in self._good
            if ended and self._login is not None and self._login.secrets[0] == in_use:
                self._login = None  # refused: look anew
            if ended and await self.current() != in_use:
                error.kind = ErrorKind.SERVER_ERROR  # worth another try
                error.message = f"{error.message} (new credentials were found)"
            raise
        self._good.add(in_use)
        return reply

    async def current(self) -> str:
        """Return the token that calls bring now; waits where there is none that is still valid.

        Raises:
            ProviderError: none are found.
        """
        if self._login is None or self._now() >= self._ends_s:
            try:
                async with asyncio.timeout(self._wait_s):
                    await asyncio.shield(self._renew())
            except TimeoutError as error:
                why = f"nothing within timeouts.total ({self._wait_s:g} s)"
                raise self._failure(why, passing=True) from error
        elif self._now() >= self._renew_at_s:
            self._renew()
        assert self._login is not None  # noqa: S101  found, or raised
        return self._login.secrets[0]

    def _renew(self) -> asyncio.Task[None]:
        """Return the one search that is under way; begins it."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._look(), name=f"credentials of {self._chain.name}")
            # Perhaps nobody waits for it: how it ended is taken note of, and it is tried again.
            self._renewal.add_done_callback(lambda renewal: renewal.cancelled() or renewal.exception())
        return self._renewal

    async def _look(self) -> None:
        try:
            login = await call_in_thread(self._chain.find, name="credentials")
        except ProviderError:
            raise
        except Exception as error:  # a library's, of files, programs and servers of any kind
            self._plan(self._ends_s)
            passing = bool(self._good) or self._chain.is_down(error)  # what let calls in comes back
            raise self._failure(str(error) or type(error).__name__, passing=passing) from error
        withhold_too(login.secrets)
        self._login = login
        self._ends_s = float("inf") if login.ends_s is None else max(login.ends_s, self._now() + _LEAST_S)
        self._plan(self._ends_s)
        self._use(login)

    def _plan(self, ends_s: float) -> None:
        """Set when to look again: some minutes before the end, or half of what is left where that is less."""
        self._renew_at_s = ends_s - min(SOON_S, (ends_s - self._now()) / 2)

    def _failure(self, why: str, *, passing: bool) -> ProviderError:
        """Say that nothing is found; `passing`: it will be, when a service answers or somebody logs in."""
        kind = ErrorKind.UNREACHABLE if passing else ErrorKind.AUTH
        message = safe_line(f"{self._chain.name} finds no credentials: {why}", key="")
        failure = ProviderError(kind, message, may_have_been_billed=False, never_sent=True)
        failure.before_call = True
        return failure


class CloudProvider(SdkProvider):
    """An SDK's client of a cloud. Where it signs or rewrites each call, it builds them all: `door: sdk`."""

    builds_all = True
    # Of Anthropic's format; the one that an SDK gives refuses temperature and top_p, as Anthropic does.
    sampling_version: ClassVar[str | None] = None  # None: the format has no versions

    def __init__(
        self,
        client: Any,
        transport: Transport,
        endpoint: Endpoint,
        wire: Wire,
        *,
        chain: Chain,
        options: Callable[[Json], Any],
    ) -> None:
        super().__init__(client, transport, endpoint, wire, options=options)
        self._cloud = CloudCredentials(chain, self._bring, wait_s=endpoint.timeouts.total)

    @abstractmethod
    def give(self, login: Login) -> None:
        """Give credentials to the client."""

    def _bring(self, login: Login) -> None:
        self.give(login)
        self._doors.clear()  # built with what was found before

    def post_arguments(self, body: Json, content: bytes) -> dict[str, Any]:
        if self.sampling_version is None:
            return super().post_arguments(body, content)
        version = {"anthropic_version": self.sampling_version} if needs_sampling_version(body) else {}
        return {"path": "/v1/messages", "body": {**body, **version}}  # the SDK makes an address of it

    async def ask(self, request: Request) -> Reply:
        ask = super().ask
        return await self._cloud.ask(lambda: ask(request))


def region_in(form: str, base_url: str | None) -> str | None:
    """Return the region that an address names, or None if it names none.

    Args:
        form: of addresses that do, with REGION in its place.
        base_url: the address.
    """
    pattern = re.escape(form).replace("REGION", "([a-z0-9-]+)")
    match = re.match(pattern, base_url or "")
    return match[1] if match else None
