"""Calls through a cloud, whose own chain finds the credentials: an SDK signs each call, or gives it a token.

A chain looks where its cloud's own tools look: variables, files, a login of yours, the role of a machine.
What it finds ends after an hour or so, and is renewed before that. Where a server says sooner that it has
ended, it is looked for anew, once for all calls in flight. What never let a call in is not: the model stops.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.error_kinds import safe_line
from asyncbench.providers.params import needs_sampling_version
from asyncbench.providers.sdk import SdkProvider
from asyncbench.providers.secrets import withhold_too
from asyncbench.providers.wire import Json, Wire
from asyncbench.records import Reply, Request


class CloudProvider(SdkProvider, ABC):
    """An SDK's client of a cloud. Where it signs or rewrites each call, it builds them all: `door: sdk`."""

    builds_all = True
    # Of Anthropic's format; the one that an SDK gives refuses temperature and top_p, as Anthropic does.
    sampling_version: ClassVar[str | None] = None  # None: the format has no versions
    chain: ClassVar[str]  # who finds the credentials
    unfound: ClassVar[tuple[type[Exception], ...]]  # raised where a chain finds none
    unreached: ClassVar[tuple[type[Exception], ...]]  # where what would give them does not answer

    def __init__(
        self, client: Any, endpoint: Endpoint, wire: Wire, *, options: Callable[[Json], Any]
    ) -> None:
        super().__init__(client, endpoint, wire, options=options)
        self._finding = asyncio.Lock()
        self._found: str | None = None  # what the calls bring
        self._good = set[str]()  # what let a call in

    @abstractmethod
    def find(self, *, anew: bool) -> Iterable[str]:
        """Find credentials and give them to the client; blocks.

        Args:
            anew: what was found before was refused: forget it.

        Returns:
            what nobody may see of them; the first of it changes with them.
        """

    @abstractmethod
    def fresh(self) -> bool:
        """Whether what was found is not about to end."""

    def addressed(self, body: Json, content: bytes) -> dict[str, Any]:
        if self.sampling_version is None:
            return super().addressed(body, content)
        version = {"anthropic_version": self.sampling_version} if needs_sampling_version(body) else {}
        return {"path": "/v1/messages", "body": {**body, **version}}  # the SDK makes an address of it

    async def ask(self, request: Request) -> Reply:
        in_use = await self._credentials()
        try:
            reply = await super().ask(request)
        except ProviderError as error:
            ended = error.kind is ErrorKind.AUTH and in_use in self._good
            if ended and await self._credentials(refused=in_use) != in_use:
                error.kind = ErrorKind.SERVER_ERROR  # worth another try
                error.message = f"{error.message} (new credentials were found)"
            raise
        self._good.add(in_use)
        return reply

    async def _credentials(self, *, refused: str | None = None) -> str:
        if self._found is not None and self._found != refused and self.fresh():
            return self._found
        async with self._finding:
            if self._found is None or self._found == refused or not self.fresh():
                anew, self._found = self._found in (None, refused), None  # it stays so where nothing is found
                self._found = await self._look(anew=anew)
            return self._found

    async def _look(self, *, anew: bool) -> str:
        try:
            first, *more = await asyncio.to_thread(self.find, anew=anew)
        except (*self.unreached, *self.unfound) as error:
            # What has let calls in comes back, when its service does or somebody logs in again.
            passing = bool(self._good) or isinstance(error, self.unreached)
            kind = ErrorKind.UNREACHABLE if passing else ErrorKind.AUTH
            message = safe_line(f"{self.chain} finds no credentials: {error}", key="")
            failed = ProviderError(kind, message, may_have_been_billed=False)
            failed.never_sent = True
            raise failed from error
        withhold_too((first, *more))
        self._doors.clear()  # built with what was found before
        return first


def region_in(form: str, base_url: str | None) -> str | None:
    """Return the region that an address names; None: it names none.

    Args:
        form: of addresses that do, with REGION in its place.
        base_url: the address.
    """
    pattern = re.escape(form).replace("REGION", "([a-z0-9-]+)")
    match = re.match(pattern, base_url or "")
    return match[1] if match else None
