"""An HTTP response as it came, whichever library fetched it."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncbench.providers.rate_headers import Span, allowances
from asyncbench.records import Allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]  # looked up in lower case
    body: bytes
    requests_per: Span = "minute"  # what a limit of requests is for, where its header does not say it

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, for its support."""
        return self.headers.get("x-request-id") or self.headers.get("request-id")

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """The limits that the headers tell; read anew each time."""
        return allowances(self.headers, requests_per=self.requests_per)
