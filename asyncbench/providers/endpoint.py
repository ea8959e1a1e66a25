"""Where and how a provider is reached."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from asyncbench.errors import ConfigError
from asyncbench.providers.rate_headers import Span
from asyncbench.records import Timeouts

MOST_BYTES: Final = 8_000_000  # sixteen times the text of 128,000 tokens
BYTES_OF_A_TOKEN: Final = 64  # at most, of a model that may write more than those: likewise
# So long an idle connection is kept: many servers (uvicorn, Node.js) close after 5 s and do not say so.
KEEPALIVE_S: Final = 4.0
LONGEST_KEEPALIVE_S: Final = 60.0  # of a server that says that it keeps them; what lies between may not


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One place to call, with the key in hand. Never stored, never logged: `repr` leaves the key out.

    Raises:
        ConfigError: an address that is no web address, or a key that no header can carry.
    """

    base_url: str | None  # None: the vendor's own, whatever the environment says
    api_key: str = field(repr=False)  # empty: the server asks for none
    key_header: str | None = None  # what carries the key, through the openai SDK; None: the SDK's own way
    timeouts: Timeouts = field(default_factory=Timeouts)
    most_bytes: int = MOST_BYTES  # of a body, decompressed; see `streams` for what that means to a stream
    connections: int = 100  # at least the lane's concurrency
    requests_per: Span = "minute"  # see `Quirks`

    def __post_init__(self) -> None:
        if self.base_url is not None and not _is_web_address(self.base_url):
            raise ConfigError(
                f"base_url {self.base_url!r} must be like https://host/v1 or http://host:port/v1"
            )
        if not (self.api_key.isascii() and self.api_key.isprintable() and " " not in self.api_key):
            raise ConfigError(
                f"the API key for {self.base_url or 'the provider'} holds a space, a line end or a letter"
                " outside ASCII: set its variable to the key alone"
            )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port  # a ValueError where it is no number
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0
