"""No answer, however odd, is more than one call's: it is kept, or it fails, and little is read of it."""

import asyncio

import pytest

from asyncbench.errors import ProviderError
from asyncbench.providers.provider import Provider
from asyncbench.records import Reply, Request
from tests.processes import HANG_S
from tests.providers.asking import asking, deadlines, failure_of
from tests.providers.hostile import BEHAVIOURS, ENDLESS, LATE, spoiled, used
from tests.providers.raw_server import answering


async def ended_of(provider: Provider, request: Request) -> Reply | ProviderError:
    try:
        return await provider.ask(request)
    except ProviderError as error:
        return error


@pytest.mark.long
async def test_an_odd_answer_is_kept_or_fails_as_one_call(adapter, server, opened):
    """All over the same connections: none spoils the next call."""
    whole = opened(adapter.provider(server.url, most_bytes=1_000_000))
    stream = opened(adapter.provider(server.url, most_bytes=50_000))
    hasty = opened(adapter.provider(server.url, timeouts=deadlines(total=0.3)))
    wrong = {}
    for behaviour in BEHAVIOURS:
        server.manner = behaviour.manner(adapter)
        provider = hasty if behaviour.ends is LATE else stream if behaviour.stream else whole
        ended = await ended_of(provider, asking(stream=behaviour.stream))
        if (ended.text if isinstance(ended, Reply) else ended.kind) != behaviour.ends:
            wrong[behaviour.name] = ended
    assert not wrong


@pytest.mark.long
async def test_what_does_not_end_is_hung_up_on_and_may_have_been_billed(adapter, server, opened):
    provider = opened(adapter.provider(server.url, most_bytes=20_000))
    assert ENDLESS
    for behaviour in ENDLESS:
        server.manner = behaviour.manner(adapter)
        server.left.clear()
        error = await ended_of(provider, asking(stream=behaviour.stream))
        async with asyncio.timeout(HANG_S):
            await server.left.wait()
        assert isinstance(error, ProviderError), behaviour.name
        assert error.may_have_been_billed, behaviour.name


async def test_a_body_of_the_most_bytes_is_read_and_one_of_more_is_not(adapter, server, opened):
    body = spoiled(adapter, by=b'"42"')
    server.manner = answering(body=body)

    exactly = opened(adapter.provider(server.url, most_bytes=len(body)))
    less = opened(adapter.provider(server.url, most_bytes=len(body) - 1))

    assert (await exactly.ask(asking())).text == "42"
    error = await ended_of(less, asking())
    assert "`max_reply_mb`" in str(error)


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "note"),
    [
        pytest.param(lambda a: spoiled(a, by=b'"42"'), None, id="nothing odd"),
        pytest.param(lambda a: spoiled(a, by=b'"\xff"'), "was repaired", id="no UTF-8"),
        pytest.param(lambda a: used(a, b"-7"), " of -7 is impossible and was ignored", id="below nothing"),
        pytest.param(lambda a: used(a, b"1e30"), " of 1e+30 is impossible and was ignored", id="beyond all"),
        pytest.param(lambda a: used(a, b"NaN"), "was repaired", id="no number"),
        pytest.param(
            lambda a: used(a, b"5", cost=1e308), "cost of 1e+308 is impossible and was ignored", id="cost"
        ),
        pytest.param(lambda a: used(a, b"5", x=[[]] * 101), "usage was too large to keep", id="account"),
        pytest.param(
            lambda a: spoiled(a, by=b"m" * 501, where=b"served-1"), "model_served was cut", id="name"
        ),
    ],
)
async def test_what_of_a_reply_was_mended_or_is_not_believed_is_noted(adapter, server, provider, body, note):
    server.manner = answering(body=body(adapter))

    reply = await provider.ask(asking())

    assert note in reply.note if note else reply.note is None
    assert reply.vendor_cost_usd is None
    assert len(reply.model_served) <= 500


async def test_a_note_never_repeats_the_key(adapter, server, opened):
    server.manner = answering(body=used(adapter, b"5", **{"sk-secret-0123456789abcdef_tokens": -1}))
    provider = opened(adapter.provider(server.url))

    assert "sk-secret" not in (await provider.ask(asking())).note


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_web_page_is_another_server_s(server, provider, stream):
    server.manner = answering(200, b"<!doctype html><p>Log in", content_type="text/html; charset=utf-8")
    failed = await failure_of(provider, asking(stream=stream))
    assert failed.foreign
    assert "its body is a web page, not JSON" in failed.message
