"""An HTTP response as it came, whichever library fetched it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]  # looked up in lower case
    body: bytes

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, for its support."""
        return self.headers.get("x-request-id") or self.headers.get("request-id")
