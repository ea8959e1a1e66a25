"""Asks the servers that give a cloud's tokens, for the libraries that find its credentials."""

from collections.abc import Mapping
from typing import Any

import requests

from asyncbench.providers.clouds import LATER
from asyncbench.providers.environment import proxy_of, token_certificates


class TokenSession(requests.Session):
    """Goes the way that calls go: with the same proxies, and without ~/.netrc."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.status: int | None = None  # of the latest answer
        self.broke_off = False  # the latest request got none

    @property
    def is_down(self) -> bool:
        """Whether the latest answer said that the server cannot answer now."""
        return self.status is not None and (self.status >= 500 or self.status in LATER)

    def merge_environment_settings(
        self,
        url: str | bytes | None,
        proxies: Mapping[str, Any] | None,
        stream: bool | None,
        verify: Any,  # as requests has it: a path, or whether certificates count
        cert: Any,
    ) -> Any:
        """Return how a request is sent; see `requests.Session`."""
        address = url.decode() if isinstance(url, bytes) else url or ""
        proxy = proxy_of(address)
        environment_proxies = dict.fromkeys(("http", "https"), proxy.address_with_login) if proxy else {}
        trusted = token_certificates() if verify in (True, None) else verify
        return super().merge_environment_settings(
            address, {**environment_proxies, **(proxies or {})}, stream, trusted or verify, cert
        )

    def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        """Send a request; see `requests.Session`."""
        self.broke_off = True
        response = super().send(request, **how)
        self.broke_off = False
        self.status = response.status_code
        return response
