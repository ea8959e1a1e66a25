"""What both SDKs are given and give back: they are made by one generator and sit on httpx2."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import httpx2

from asyncbench.errors import ConfigError
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoint import KEEPALIVE_S, Endpoint
from asyncbench.providers.pool import session
from asyncbench.providers.rate_headers import Span
from asyncbench.providers.response import Response
from asyncbench.providers.sse import TooLongError
from asyncbench.providers.streams import is_json, read_stream, whole_body, whole_reply
from asyncbench.providers.wire import Wire
from asyncbench.records import Reply

BREAKS: Final = (httpx2.HTTPError, aiohttp.ClientError, OSError, TooLongError)  # of what an SDK lets through
NO_KEY: Final = "none"  # the SDKs insist on a key even where the server asks for none


def limits(endpoint: Endpoint) -> httpx2.Limits:
    """Return as many connections as calls may be in flight: none waits for another's."""
    return httpx2.Limits(
        max_connections=endpoint.connections,
        max_keepalive_connections=endpoint.connections,
        keepalive_expiry=KEEPALIVE_S,
    )


def timeout(endpoint: Endpoint) -> httpx2.Timeout:
    """Return the one deadline that `Call` does not keep.

    A plain number would also limit the wait for a free connection, and start a timer at every chunk.
    """
    return httpx2.Timeout(None, connect=endpoint.timeouts.connect)


def trusts_environment(endpoint: Endpoint) -> bool:
    """Whether the proxies of the environment are used: none of them reaches a server on this machine."""
    host = urlsplit(endpoint.base_url or "").hostname or ""
    try:
        return not ip_address(host).is_loopback
    except ValueError:  # a name
        return host != "localhost" and not host.endswith(".localhost")


def pooled(client: httpx2.AsyncClient, endpoint: Endpoint) -> httpx2.AsyncClient:
    """Let an SDK's aiohttp client, which keeps its ways with TLS and proxies, use connections of ours.

    Its transports take a session, or what opens one at the first call; their classes have no public name.

    Raises:
        ConfigError: they take none: a release that we do not know, with which no deadline would be kept.
    """
    for transport in (getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values()):
        if transport is None and hasattr(client, "_transport"):
            continue  # a mount for what goes past the proxy
        if not (hasattr(transport, "client") and hasattr(transport, "ssl_context")):
            raise ConfigError(
                f"{type(transport).__name__} of {type(transport).__module__} takes no session, as asyncbench"
                " needs it: install the releases of the SDKs and of httpx2 that asyncbench was released with"
            )
        transport.client = partial(session, endpoint, tls=transport.ssl_context)
    client.event_hooks = {"response": [partial(_read_refusal, most=endpoint.most_bytes)]}
    return client


async def _read_refusal(response: httpx2.Response, *, most: int) -> None:
    """Read what an SDK would read to its end, however far that is."""
    if response.is_success:
        return
    async with aclosing(response.aiter_bytes()) as chunks:
        response._content = await whole_body(chunks, most)


def joined(base_url: httpx2.URL, path: str) -> str:
    """Return the whole address: given a part of it, an SDK would join and parse it anew for each call."""
    return f"{str(base_url).rstrip('/')}/{path}"


def received(response: httpx2.Response, *, requests_per: Span) -> Response:
    """Return a response that was read to its end."""
    return _response(response, response.content, requests_per)


async def read(
    response: httpx2.Response, wire: Wire, call: Call, endpoint: Endpoint, *, stream: bool
) -> Reply:
    """Read a good response, whole or as it comes, and close it.

    Raises:
        ProviderError: see `read_stream` and `payload`.
        httpx2.HTTPError: it breaks off.
        TooLongError: it does not end.
    """
    key, most = endpoint.api_key, endpoint.most_bytes
    head = _response(response, b"", endpoint.requests_per)
    try:
        async with aclosing(_chunks(response)) as chunks:
            if stream and not is_json(response.headers):
                return await read_stream(chunks, wire, head, call, key=key, most=most)
            body = await whole_body(chunks, most)
    finally:
        await response.aclose()
    return whole_reply(replace(head, body=body), wire, call, key=key)


def _response(response: httpx2.Response, body: bytes, requests_per: Span) -> Response:
    # Each look into headers of httpx2 goes through all of them.
    headers = {
        name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers.raw
    }
    return Response(status=response.status_code, headers=headers, body=body, requests_per=requests_per)


def _chunks(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Return the body as it comes: straight from the transport where nothing is to be decompressed."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    return response.stream.__aiter__()  # type: ignore[union-attr, return-value]  # of an asynchronous client
