"""What both SDKs are given and give back: they are made by one generator and sit on httpx2."""

from typing import Final

import httpx2

from asyncbench.providers.endpoint import KEEPALIVE_S, Endpoint
from asyncbench.providers.response import Response

NO_KEY: Final = "none"  # the SDKs insist on a key even where the server asks for none


def limits(endpoint: Endpoint) -> httpx2.Limits:
    """Return as many connections as calls may be in flight: none waits for another's."""
    return httpx2.Limits(
        max_connections=endpoint.connections,
        max_keepalive_connections=endpoint.connections,
        keepalive_expiry=KEEPALIVE_S,
    )


def timeout(endpoint: Endpoint) -> httpx2.Timeout:
    """Return the deadlines of the parts of a call; the whole of it needs one of its own.

    A plain number would also limit the wait for a free connection.
    """
    return httpx2.Timeout(endpoint.timeouts.total, connect=endpoint.timeouts.connect, pool=None)


def joined(base_url: httpx2.URL, path: str) -> str:
    """Return the whole address: given a part of it, an SDK would join and parse it anew for each call."""
    return f"{str(base_url).rstrip('/')}/{path}"


def received(response: httpx2.Response) -> Response:
    """Return a response that was read to its end."""
    return Response(status=response.status_code, headers=response.headers, body=response.content)
