"""An HTTP response as it came, whichever library fetched it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncbench.providers.loose_json import mapping_in, text
from asyncbench.providers.rate_headers import Span, allowances
from asyncbench.records import Allowance

# Headers with the id of a request, the first that is there counts: the provider's own, then that of a gateway
# (litellm, AWS, Azure), then that of the network (Cloudflare).
REQUEST_IDS: Final = (
    *("x-request-id", "request-id"),
    *("x-litellm-call-id", "x-amzn-requestid", "apim-request-id"),
    "cf-ray",
)


def header_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, for its support; None where no header tells it."""
    return next(filter(None, map(headers.get, REQUEST_IDS)), None)


def body_id(body: Mapping[str, object]) -> str | None:
    """Return the id of what was answered, by a body or by an event of a stream."""
    places = (body, mapping_in(body.get("message")), mapping_in(body.get("response")))
    return next(filter(None, (text(place.get("id")) for place in places)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]  # looked up in lower case
    body: bytes
    requests_per: Span = "minute"  # what a limit of requests is for, where its header does not say it
    notes: list[str] = field(default_factory=list)  # what of it was mended or is not believed

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, for its support."""
        return header_id(self.headers)

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """The limits that the headers tell; read anew each time."""
        return allowances(self.headers, requests_per=self.requests_per)
