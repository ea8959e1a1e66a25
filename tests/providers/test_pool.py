"""A connection that had gone already costs no attempt; one that breaks in earnest does."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import orjson
import pytest

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers import http, sdk
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Endpoint
from tests.providers.asking import ADAPTERS, asking, deadlines, failure_of
from tests.providers.raw_server import (
    answering,
    events,
    head,
    raw_server,
    reset,
    resetting,
    sending,
    stream_of,
    together,
)


async def kind_of_end(provider, request) -> ErrorKind | None:
    try:
        await provider.ask(request)
    except ProviderError as error:
        return error.kind
    return None


@pytest.mark.long
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


# ── gone before it was written to ────────────────────────────────────────────────────────────


class Elsewhere:
    """A server in a thread of its own: while it does something, our event loop stands still."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._running = raw_server(tls)
        self.server = self._wait(self._running.__aenter__())

    def close_all(self, close: Callable[[asyncio.StreamWriter], None]) -> None:
        async def closing() -> None:
            for writer in self.server.writers:
                close(writer)
                with suppress(ConnectionError):
                    await writer.wait_closed()

        self._wait(closing())

    def end(self) -> None:
        self._wait(self._running.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()


@pytest.fixture
def elsewhere(request):
    there = Elsewhere(getattr(request, "param", None))
    yield there
    there.end()


def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()  # nothing lingers unread: an end, no reset


@pytest.fixture
def closes_once(elsewhere, monkeypatch, close):
    """When the next call has taken its connection up, and before it writes, the server closes all."""
    sent = Call.sent

    def then_closed(call, *, reused):
        sent(call, reused=reused)
        monkeypatch.setattr(Call, "sent", sent)
        elsewhere.close_all(close)

    return lambda: monkeypatch.setattr(Call, "sent", then_closed)


BOTH_ENDS = pytest.mark.parametrize("close", [hang_up, reset])


@BOTH_ENDS
async def test_a_connection_that_closed_while_our_loop_stood_still_fails_no_call(
    adapter, elsewhere, opened, closes_once
):
    server = elsewhere.server
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider(server.url))
    await provider.ask(asking())
    closes_once()

    assert (await provider.ask(asking())).text == "42"
    assert len(server.received) == 2  # each call was read once
    assert server.connections == 2


@BOTH_ENDS
async def test_a_pool_that_died_fails_no_call(adapter, elsewhere, opened, close):
    server = elsewhere.server
    server.manner = together(5, answering(body=adapter.body))
    provider = opened(adapter.provider(server.url))
    await asyncio.gather(*(provider.ask(asking()) for _ in range(5)))
    elsewhere.close_all(close)

    replies = await asyncio.gather(*(provider.ask(asking()) for _ in range(5)))

    assert [reply.text for reply in replies] == ["42"] * 5
    assert len(server.received) == 10
    assert server.connections == 10


LONGER_THAN_THE_KERNEL_TAKES = "x" * 16_000_000
large = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


@pytest.mark.long
@large
async def test_a_request_that_the_kernel_never_took_whole_is_made_again(server, used):
    """The server closed while it was written: nobody has read it."""
    server.writers[0].transport.pause_reading()
    call = asyncio.create_task(used.ask(asking(system=LONGER_THAN_THE_KERNEL_TAKES)))
    await asyncio.sleep(0.05)
    reset(server.writers[0])

    assert (await call).text == "42"
    assert len(server.received) == 1
    assert server.connections == 2


@large
async def test_over_a_first_connection_it_costs_nothing_and_is_not_made_again(server, provider):
    """There the server may be in trouble: the lane waits and tries again."""
    call = asyncio.create_task(provider.ask(asking(system=LONGER_THAN_THE_KERNEL_TAKES)))
    while not server.writers:  # noqa: ASYNC110  the server tells of requests alone
        await asyncio.sleep(0.001)
    reset(server.writers[0])

    with pytest.raises(ProviderError) as caught:
        await call
    assert (caught.value.kind, caught.value.may_have_been_billed) == (ErrorKind.UNREACHABLE, False)
    assert server.connections == 1


@pytest.mark.parametrize("close", [hang_up])
@pytest.mark.parametrize(
    ("closed", "wary_s", "connections"),
    [
        pytest.param(1, 300.0, 1, id="one is no sign"),
        pytest.param(2, 300.0, 3, id="two"),
        pytest.param(2, 0.0, 1, id="two, and the while is over"),
    ],
)
async def test_where_many_connections_close_too_soon_each_serves_one_call_for_a_while(
    elsewhere, opened, closes_once, monkeypatch, closed, wary_s, connections
):
    monkeypatch.setattr(http, "WARY_S", wary_s)
    adapter, server = ADAPTERS[2], elsewhere.server
    server.manner = answering(body=adapter.body, keep_alive="timeout=5, max=100")
    provider = opened(adapter.provider(server.url))
    for _ in range(closed):
        await provider.ask(asking())
        closes_once()
        await provider.ask(asking())
    before = server.connections

    for _ in range(3):
        await provider.ask(asking())

    assert server.connections == before + connections


@pytest.mark.parametrize(
    ("said", "usual_s", "rests_s", "connections"),
    [
        pytest.param({}, 4.0, 0.0, 1, id="nothing"),
        pytest.param({}, 0.0, 0.0, 2, id="nothing, and we keep none"),
        pytest.param({"keep_alive": "timeout=5, max=100"}, 0.0, 0.0, 1, id="longer than we keep it"),
        pytest.param({"keep_alive": 'max=100, Timeout = "75"'}, 0.0, 0.0, 1, id="in another form"),
        pytest.param({"keep_alive": "timeout=60"}, 90.0, 0.0, 1, id="a minute"),
        pytest.param({"keep_alive": "timeout=1"}, 4.0, 0.6, 2, id="a second, half of which is over"),
        pytest.param({"keep_alive": "timeout=0"}, 4.0, 0.0, 2, id="not at all"),
        pytest.param({"keep_alive": "max=100"}, 4.0, 0.0, 1, id="no time"),
        pytest.param({"keep_alive": "timeout=soon"}, 4.0, 0.0, 1, id="no number"),
    ],
)
async def test_a_server_is_believed_how_long_it_keeps_connections(
    server, opened, monkeypatch, said, usual_s, rests_s, connections
):
    monkeypatch.setattr(http, "KEEPALIVE_S", usual_s)
    adapter = ADAPTERS[2]
    server.manner = answering(body=adapter.body, **said)
    provider = opened(adapter.provider(server.url))

    await provider.ask(asking())
    await asyncio.sleep(rests_s)
    await provider.ask(asking())

    assert server.connections == connections


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """Contexts of a server with a certificate of its own making, and of a client that trusts it."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [openssl, *made.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    return ours, ssl.create_default_context(cafile=certificate)


@pytest.mark.long
@BOTH_ENDS
async def test_a_connection_with_tls_is_looked_at_too(certified, close):
    ours, theirs = certified
    elsewhere = Elsewhere(ours)
    server = elsewhere.server
    server.manner = answering(body={})
    endpoint = Endpoint(base_url=server.url, api_key="")
    try:
        async with http.session(endpoint, tls=theirs) as session:
            await post(session, server.url)
            await post(session, server.url)
            assert server.connections == 1  # what TLS itself says is no end
            elsewhere.close_all(close)
            await post(session, server.url)
    finally:
        elsewhere.end()

    assert len(server.received) == 3
    assert server.connections == 2


async def post(session, url):
    async with Call(deadlines()), session.post(url, data=b"{}") as response:
        return await response.read()


# ── gone after it was written to ─────────────────────────────────────────────────────────────


async def lost(provider) -> bool:
    """Whether a call ends without an answer, and may have been billed."""
    error = await failure_of(provider)
    return error.kind is ErrorKind.UNREACHABLE and error.may_have_been_billed


CLOSING = sending(b"", then_close=True)


@pytest.mark.parametrize("manner", [resetting(), CLOSING], ids=["reset", "closed"])
async def test_a_request_that_the_server_read_is_an_attempt_of_its_own(server, used, manner):
    """However soon it breaks."""
    server.manner = manner

    assert await lost(used)
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


async def test_the_proxy_of_the_environment_is_used_at_every_door(adapter, server, opened, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider("http://elsewhere.test"))

    for _ in range(2):
        assert (await provider.ask(asking())).text == "42"

    assert server.received[0].path == f"http://elsewhere.test{adapter.path}"
    assert server.connections == 1


def test_clients_share_what_they_trust_until_the_environment_names_something_else(tmp_path, monkeypatch):
    def client():
        return sdk.Transport(Endpoint(base_url=None, api_key=""), "https://a.test")

    assert client().tls is client().tls
    assert client().tls.verify_mode is ssl.CERT_REQUIRED
    (tmp_path / "none.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE is .*none.pem', which holds no certificate in PEM"):
        client()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_server_on_this_machine_is_asked_directly(adapter, server, opened, monkeypatch, name):
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.manner = answering(body=adapter.body)
    provider = opened(adapter.provider(server.url))

    assert (await provider.ask(asking())).text == "42"


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
