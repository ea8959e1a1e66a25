"""A connection that had gone already costs no attempt; one that breaks in earnest does."""

import asyncio
import itertools

import httpx2
import orjson
import pytest

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers import pool, sdk
from asyncbench.providers.endpoint import Endpoint
from tests.providers.asking import ADAPTERS, asking, deadlines
from tests.providers.raw_server import answering, events, head, resetting, sending, stream_of


async def kind_of_end(provider, request) -> ErrorKind | None:
    try:
        await provider.ask(request)
    except ProviderError as error:
        return error.kind
    return None


@pytest.fixture
def _patient(monkeypatch):
    """However busy this machine is, a connection that had gone counts as such."""
    monkeypatch.setattr(pool, "STALE_WITHIN_S", 30.0)


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_server_that_closes_after_each_answer_fails_no_call(adapter, server, provider, stream):
    """It announces the opposite, as llama-server does."""
    body = orjson.dumps(adapter.body)
    whole = head(200, content_length=len(body), keep_alive="timeout=5, max=100") + body
    streamed = stream_of(events(*adapter.events), headers=b"keep-alive: timeout=5, max=100\r\n")
    server.manner = sending(streamed if stream else whole, then_close=True)

    ended = [await kind_of_end(provider, asking(stream=stream)) for _ in range(300)]

    assert ended == [None] * 300


@pytest.fixture
async def used(adapter, server, provider):
    """A provider whose next call finds a connection that served a call before."""
    server.manner = answering(body=adapter.body)
    await provider.ask(asking())
    server.received.clear()
    return provider


CLOSING = sending(b"", then_close=True)


@pytest.mark.usefixtures("_patient")
async def test_a_call_is_repeated_once(server, used):
    server.manner = CLOSING

    assert await kind_of_end(used, asking()) is ErrorKind.UNREACHABLE
    assert len(server.received) == 2
    assert server.connections == 2


@pytest.mark.usefixtures("_patient")
async def test_the_repeat_is_over_a_fresh_connection(adapter, server, provider):
    """Not over another of the kept ones, which may have gone too."""
    server.manner = answering(body=adapter.body)
    await asyncio.gather(*(provider.ask(asking()) for _ in range(5)))
    ours = server.connections
    server.manner = closing_once_then(answering(body=adapter.body))

    assert await kind_of_end(provider, asking()) is None
    assert server.connections == ours + 1


def closing_once_then(then):
    manners = itertools.chain([CLOSING], itertools.repeat(then))

    async def manner(writer):
        await next(manners)(writer)

    return manner


async def test_a_call_that_the_server_thought_about_is_not_repeated(server, used):
    async def thinks_and_closes(writer):
        await asyncio.sleep(0.2)
        writer.close()

    server.manner = thinks_and_closes

    assert await kind_of_end(used, asking()) is ErrorKind.UNREACHABLE
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nx-request-id: 1\r\n", id="in the headers"),
        pytest.param(head(200, content_length=10), id="after the headers"),
        pytest.param(head(200, content_length=10) + b"{", id="in the body"),
    ],
)
async def test_an_answer_that_had_begun_is_not_asked_for_again(server, used, begun):
    server.manner = sending(begun, then_close=True)

    assert await kind_of_end(used, asking()) is not None
    assert len(server.received) == 1


async def test_a_reset_is_an_attempt_of_its_own(server, used):
    server.manner = resetting()

    assert await kind_of_end(used, asking()) is ErrorKind.UNREACHABLE
    assert len(server.received) == 1


@pytest.mark.parametrize("manner", [resetting(), CLOSING], ids=["reset", "closed"])
async def test_a_first_connection_that_breaks_is_not_tried_again(server, provider, manner):
    server.manner = manner

    assert await kind_of_end(provider, asking()) is ErrorKind.UNREACHABLE
    assert len(server.received) == 1


@pytest.mark.parametrize("adapter", ADAPTERS[:2], ids=["openai", "anthropic"])
async def test_the_proxy_of_the_environment_is_used_by_the_sdks(adapter, server, opened, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider("http://elsewhere.test"))

    for _ in range(2):
        assert (await provider.ask(asking())).text == "42"

    assert server.received[0].path == f"http://elsewhere.test{adapter.path}"
    assert server.connections == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "a.localhost", "127.1.2.3"])
def test_no_proxy_stands_before_a_server_on_this_machine(host):
    assert not sdk.trusts_environment(Endpoint(base_url=f"http://{host}:8000/v1", api_key=""))


@pytest.mark.parametrize("base_url", [None, "https://localhost.test/v1", "http://10.0.0.1:8000"])
def test_the_proxy_of_the_environment_stands_before_all_others(base_url):
    assert sdk.trusts_environment(Endpoint(base_url=base_url, api_key=""))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_server_on_this_machine_is_asked_directly(adapter, server, opened, monkeypatch, name):
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider(server.url))

    assert (await provider.ask(asking())).text == "42"


async def test_a_client_that_takes_no_session_is_told_of():
    """Not used without deadlines: its transports have no public name, and may change."""
    async with httpx2.AsyncClient() as client:
        with pytest.raises(ConfigError, match=r"AsyncHTTPTransport of httpx2.* takes no session"):
            sdk.pooled(client, Endpoint(base_url=None, api_key=""))


async def test_no_more_connections_are_open_than_the_endpoint_allows(adapter, server, opened):
    """Nor is the wait for one counted in the deadline of the first byte."""
    at_once = [0, 0]  # now, at most

    async def manner(writer):
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.1)
        at_once[0] -= 1
        await answering(body=adapter.body)(writer)

    server.manner = manner
    timeouts = deadlines(first_byte=0.35)
    provider = opened(adapter.provider(server.url, connections=2, timeouts=timeouts))

    await asyncio.gather(*(provider.ask(asking()) for _ in range(12)))

    assert at_once[1] == 2
