"""What every adapter owes: one call in, one reply or one ProviderError out."""

import asyncio
import gzip
import socket
import time
from dataclasses import replace

import orjson
import pytest

from asyncbench.errors import ErrorKind
from tests.providers.asking import CHUNKS, EVENTS, KEY, TEXT, asking, cancel, deadlines, failure_of
from tests.providers.raw_server import (
    answering,
    dripping,
    events,
    head,
    resetting,
    sending,
    stalling,
    stream_of,
    together,
)


def openai_error(code, message="told"):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def anthropic_error(kind, code=None, message="told"):
    details = {"details": {"error_code": code}} if code else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_b"}


WAYS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def good(adapter, stream, **headers):
    """A good reply, whole or streamed."""
    if stream:
        return answering(200, events(*adapter.events), content_type="text/event-stream", **headers)
    return answering(200, adapter.body, content_type="application/json", **headers)


@WAYS
async def test_a_good_reply_is_read(adapter, server, provider, stream):
    server.manner = good(adapter, stream, x_request_id="req_1")

    reply = await provider.ask(asking(stream=stream))

    assert (reply.text, reply.finish_reason, reply.model_served) == ("42", adapter.finish_reason, "served-1")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (20, 5)
    assert reply.raw_usage == adapter.usage
    assert (reply.request_id, reply.http_status, reply.ttft_s is None) == ("req_1", 200, not stream)
    received = server.received[0]
    assert (received.body.get("stream", False) or "stream" in received.path) is stream


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(429, openai_error("rate_limit_exceeded"), ErrorKind.RATE_LIMITED, id="slow down"),
        pytest.param(429, openai_error("insufficient_quota"), ErrorKind.NO_QUOTA, id="no money left"),
        pytest.param(
            429,
            anthropic_error("rate_limit_error", "enforced_spend_limit_reached"),
            ErrorKind.NO_QUOTA,
            id="no money until the month is over",
        ),
        pytest.param(502, b"<html><h1>Bad Gateway</h1></html>", ErrorKind.SERVER_ERROR, id="HTML"),
        pytest.param(
            200, {"error": {"code": 502, "message": "x"}}, ErrorKind.SERVER_ERROR, id="200 is no success"
        ),
        pytest.param(200, {"error": "something broke"}, ErrorKind.BAD_REPLY, id="200 with an unknown error"),
        pytest.param(400, openai_error("context_length_exceeded"), ErrorKind.TOO_LONG, id="too long"),
        pytest.param(400, openai_error("content_filter"), ErrorKind.BLOCKED, id="blocked"),
        pytest.param(404, openai_error("model_not_found"), ErrorKind.NO_SUCH_MODEL, id="no such model"),
        pytest.param(308, b"", ErrorKind.NO_SUCH_MODEL, id="moved"),
    ],
)
@WAYS
async def test_a_refusal_becomes_its_kind(server, provider, status, body, kind, stream):
    server.manner = answering(status, body)

    error = await failure_of(provider, asking(stream=stream))

    assert (error.kind, error.http_status) == (kind, status)


async def test_a_refusal_carries_wait_and_request_id(server, provider):
    server.manner = answering(429, openai_error("rate_limit_exceeded"), retry_after="7", request_id="req_h")

    error = await failure_of(provider)

    assert (error.retry_after_s, error.request_id) == (7.0, "req_h")


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(sending(head(200, content_length=100) + b'{"id":'), id="stalls in the body"),
        pytest.param(stalling(), id="stalls before the headers"),
        pytest.param(dripping(head(200, content_length=10**6)), id="drips blanks"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nx:"), id="drips headers"),
    ],
)
async def test_the_whole_call_has_one_deadline(adapter, server, opened, manner):
    server.manner = manner
    provider = opened(adapter.provider(server.url, timeouts=deadlines(total=0.3)))

    assert (await failure_of(provider)).kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(resetting(), id="reset"),
        pytest.param(sending(b"", then_close=True), id="closed"),
    ],
)
async def test_a_connection_lost_before_the_headers_is_unreachable(server, provider, manner):
    """The request was there: the server may have worked for it."""
    server.manner = manner

    error = await failure_of(provider)

    assert (error.kind, error.may_have_been_billed) == (ErrorKind.UNREACHABLE, True)


async def test_a_refused_connection_is_unreachable(adapter, opened):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    error = await failure_of(opened(adapter.provider(f"http://127.0.0.1:{port}")))

    assert (error.kind, error.http_status) == (ErrorKind.UNREACHABLE, None)
    assert not error.may_have_been_billed


async def test_a_connection_that_is_never_made_is_unreachable(adapter, opened):
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for waiting in (first, second):  # no room is left for another
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        provider = opened(adapter.provider(url, timeouts=deadlines(connect=0.2)))

        assert (await failure_of(provider)).kind is ErrorKind.UNREACHABLE


GOOD_HEAD = head(200, content_length=100)


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(sending(GOOD_HEAD + b'{"id":', then_close=True), id="cut"),
        pytest.param(resetting(after=GOOD_HEAD + b'{"id":'), id="reset in the body"),
        pytest.param(sending(head(transfer_encoding="chunked") + b"6\r\n{", then_close=True), id="cut chunk"),
        pytest.param(sending(head(transfer_encoding="chunked") + b"zz\r\n"), id="not a chunk"),
        pytest.param(sending(b"220 smtp.example ESMTP\r\n\r\n", then_close=True), id="not HTTP"),
        pytest.param(answering(body=b"{'single': quotes}"), id="not JSON"),
        pytest.param(answering(body=b""), id="empty"),
        pytest.param(answering(body=b"null"), id="null"),
        pytest.param(answering(body=b"[]"), id="a list"),
        pytest.param(answering(204), id="no content"),
        pytest.param(answering(body=b'data: {"choices": []}\n\n'), id="a stream of events"),
        pytest.param(answering(body={"choices": [], "content": None}), id="nothing chosen"),
        pytest.param(answering(body={"choices": [None], "content": "text"}), id="another shape"),
        pytest.param(answering(body=b"{}", content_encoding="gzip"), id="not gzip"),
    ],
)
async def test_a_reply_that_cannot_be_read_is_a_bad_reply(server, provider, manner):
    server.manner = manner

    assert (await failure_of(provider)).kind is ErrorKind.BAD_REPLY


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(answering(500), id="500"),
        pytest.param(answering(429, retry_after="0"), id="429"),
        pytest.param(answering(409, x_should_retry="true"), id="asked to"),
        pytest.param(answering(307, location="/v1/elsewhere"), id="redirect"),
        pytest.param(resetting(), id="reset"),
    ],
)
async def test_a_call_is_made_once(server, provider, manner):
    server.manner = manner

    await failure_of(provider)

    assert len(server.received) == 1


@pytest.mark.long
async def test_as_many_calls_as_connections_run_at_once(adapter, server, opened):
    calls = 300
    server.manner = together(calls, answering(body=adapter.body))
    provider = opened(adapter.provider(server.url, connections=calls, timeouts=deadlines(total=60)))

    replies = await asyncio.gather(*(provider.ask(asking()) for _ in range(calls)))

    assert {reply.text for reply in replies} == {"42"}
    assert server.connections == calls


@WAYS
async def test_a_connection_is_used_again(adapter, server, provider, stream):
    server.manner = good(adapter, stream)

    for _ in range(3):
        await provider.ask(asking(stream=stream))

    assert server.connections == 1


async def test_a_failed_call_leaves_the_next_one_whole(adapter, server, provider):
    for manner in (answering(500), resetting(), answering(body=b"{")):
        server.manner = manner
        await failure_of(provider)
    server.manner = answering(body=adapter.body)

    assert (await provider.ask(asking())).text == "42"


async def test_blank_lines_before_the_reply_are_patience(adapter, server, provider):
    server.manner = answering(body=b"\n\n\n" + orjson.dumps(adapter.body))

    assert (await provider.ask(asking())).text == "42"


async def test_a_compressed_reply_is_read(adapter, server, provider):
    server.manner = answering(body=gzip.compress(orjson.dumps(adapter.body)), content_encoding="gzip")

    assert (await provider.ask(asking())).text == "42"


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(answering(401, openai_error("invalid_api_key", f"wrong key: {KEY}")), id="refusal"),
        pytest.param(answering(500, f"{'.' * 480} Bearer {KEY}".encode()), id="across the cut"),
        pytest.param(answering(301, location=f"http://127.0.0.1/?key={KEY}"), id="redirect"),
        pytest.param(answering(200, {"error": {"message": KEY}}), id="200"),
        pytest.param(sending(f"{KEY}\r\n\r\n".encode(), then_close=True), id="not HTTP"),
        pytest.param(
            sending(stream_of(events(b'{"type":"error","error":{"message":"%s"}}' % KEY.encode()))),
            id="event",
        ),
        pytest.param(sending(stream_of(events(KEY.encode()))), id="not JSON"),
    ],
)
@WAYS
async def test_the_key_is_never_repeated(server, provider, manner, stream):
    server.manner = manner

    error = await failure_of(provider, asking(stream=stream))

    assert KEY[:6] not in f"{error} {error.message} {error!r}"
    assert len(error.message) <= 500


@WAYS
async def test_no_request_id_repeats_the_key(adapter, server, provider, stream):
    request = asking(stream=stream)
    server.manner = answering(body=adapter.body, x_request_id=f"req {KEY}")
    assert (await provider.ask(request)).request_id == "req [key]"

    for status, body in ((429, b""), (200, {}), (200, {"error": {"code": 502}})):
        server.manner = answering(status, body, x_request_id=f"req {KEY}")
        assert (await failure_of(provider, request)).request_id == "req [key]"


# In the order in which they are preferred; the last one stands in the body.
IDS = ("x_request_id", "request_id", "x_litellm_call_id", "x_amzn_requestid", "apim_request_id", "cf_ray")


@WAYS
async def test_a_reply_has_the_first_request_id_that_is_told(adapter, server, provider, stream):
    if adapter.events is CHUNKS:
        adapter = replace(adapter, events=(b'{"id":"chatcmpl-1","choices":[]}', *CHUNKS))
    for place in range(len(IDS) + 1):
        server.manner = good(adapter, stream, **{name: name for name in IDS[place:]})
        reply = await provider.ask(asking(stream=stream))
        assert reply.request_id == (*IDS, adapter.id)[place]


@WAYS
@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(429, {"error": {"message": "no"}, "id": "in-body"}, id="refused"),
        pytest.param(429, {"error": {"message": "no", "request_id": "in-body"}}, id="within the error"),
        pytest.param(200, {"error": {"message": "no"}, "id": "in-body"}, id="an error in 200"),
        pytest.param(200, {"id": "in-body"}, id="no content"),
    ],
)
async def test_an_error_has_the_request_id_of_its_headers_or_else_of_its_body(
    server, provider, status, body, stream
):
    for told in ({"cf_ray": "ray"}, {}):
        server.manner = answering(status, body, content_type="application/json", **told)
        error = await failure_of(provider, asking(stream=stream))
        assert error.request_id == told.get("cf_ray", "in-body")


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        pytest.param(resetting, ErrorKind.BAD_REPLY, id="reset"),
        pytest.param(stalling, ErrorKind.TIMEOUT, id="overdue"),
        pytest.param(lambda start: sending(start, then_close=True), ErrorKind.BAD_REPLY, id="cut"),
    ],
)
@WAYS
async def test_a_call_that_breaks_off_has_the_request_id_of_its_headers(
    adapter, server, opened, then, kind, stream
):
    provider = opened(adapter.provider(server.url, timeouts=deadlines(total=1.0 if then is stalling else 30)))
    kind_of_body = "text/event-stream" if stream else "application/json"
    start = head(200, content_length=1000, content_type=kind_of_body, x_request_id=f"req {KEY}")
    server.manner = then(start)

    error = await failure_of(provider, asking(stream=stream))

    assert (error.kind, error.request_id) == (kind, "req [key]")


@pytest.mark.parametrize("stream_events", [(), (b"{not json",)], ids=["cut", "unreadable"])
async def test_a_stream_that_fails_has_the_id_of_its_events(adapter, server, provider, stream_events):
    first = b'{"id":"msg_1","choices":[]}' if adapter.events is CHUNKS else EVENTS[0]
    server.manner = sending(stream_of(events(first, *stream_events)))

    error = await failure_of(provider, asking(stream=True))

    assert (error.kind, error.request_id) == (ErrorKind.BAD_REPLY, "msg_1")


async def test_latency_runs_from_the_sending_to_the_last_byte(adapter, server, opened):
    """The wait for a connection, of which there is one, does not count."""
    body = orjson.dumps(adapter.body)

    async def manner(writer):
        writer.write(head(200, content_length=len(body)))
        await asyncio.sleep(0.1)
        writer.write(body)

    server.manner = manner
    provider = opened(adapter.provider(server.url, connections=1))
    started_s = time.monotonic()
    replies = await asyncio.gather(*(provider.ask(asking()) for _ in range(5)))
    all_of_it_s = time.monotonic() - started_s

    assert sum(reply.latency_s for reply in replies) <= all_of_it_s
    assert all(reply.latency_s > 0 for reply in replies)


@WAYS
async def test_a_cancelled_call_closes_its_connection_and_leaves_the_next_one_whole(
    adapter, server, provider, stream
):
    server.manner = stalling(stream_of(events(TEXT), whole=False) if stream else GOOD_HEAD)
    await cancel(provider, server, asking(stream=stream))

    server.manner = good(adapter, stream)

    assert (await provider.ask(asking(stream=stream))).text == "42"
    assert server.connections == 2


async def test_what_the_library_said_is_the_cause(server, provider):
    server.manner = resetting()

    assert (await failure_of(provider)).__cause__ is not None


async def test_what_cannot_be_written_is_a_bad_request(server, provider):
    error = await failure_of(provider, asking(params={"big": 2**64}))

    assert (error.kind, server.received) == (ErrorKind.BAD_REQUEST, [])


async def test_closing_what_was_never_opened_is_no_error(adapter):
    await adapter.provider("http://127.0.0.1:1").aclose()
