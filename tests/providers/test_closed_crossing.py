"""A kept connection that the server closes while the request is on its way."""

import aiohttp
import pytest

from asyncbench.errors import ErrorKind
from asyncbench.providers import http
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Endpoint
from tests.providers.asking import asking, deadlines, failure_of
from tests.providers.raw_server import answering, sending
from tests.providers.test_pool import Elsewhere, certified, hang_up

__all__ = ["certified"]  # a fixture


class Crossing(aiohttp.BytesPayload):
    """A body before whose first byte, once, the server closes all connections."""

    def __init__(self, elsewhere, close):
        super().__init__(b"{}")
        self._closing = lambda: elsewhere.close_all(close)

    async def write_with_length(self, writer, content_length):
        closing, self._closing = self._closing, lambda: None
        closing()
        await super().write_with_length(writer, content_length)


@pytest.mark.long
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
async def test_a_request_of_which_no_byte_came_before_the_server_closed_is_made_again(certified, tls):
    ours, theirs = certified if tls else (None, False)
    elsewhere = Elsewhere(ours)
    server = elsewhere.server
    server.manner = answering(body={})
    try:
        async with http.session(Endpoint(base_url=server.url, api_key=""), tls=theirs) as session:
            async with Call(deadlines()):
                await (await session.post(server.url, data=b"{}")).read()
            async with Call(deadlines()) as call:
                response = await session.post(server.url, data=Crossing(elsewhere, hang_up))
                await response.read()
    finally:
        elsewhere.end()

    assert (response.status, call.handed_over, call.kept_connection()) == (200, True, "resent")
    assert (len(server.received), server.connections) == (2, 2)


async def test_a_call_that_breaks_on_a_kept_connection_after_it_was_read_is_lost(adapter, server, provider):
    server.manner = answering(body=adapter.body)
    held = await provider.ask(asking())
    server.manner = sending(b"", then_close=True)
    error, fresh = await failure_of(provider), await failure_of(provider)

    assert (held.times.kept_connection, error.kept_connection) == (None, "lost")
    assert (fresh.kind, fresh.kept_connection) == (ErrorKind.UNREACHABLE, None)
