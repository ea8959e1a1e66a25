"""A streamed reply is the whole reply, or a failure that says what became of it."""

import asyncio
import gzip
import time
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers import streams
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.calls import Call
from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.openai.wires import ChatWire, Chunks, ResponsesWire
from asyncbench.providers.streams import _Reading
from asyncbench.providers.wire import Response
from asyncbench.records import Reply, Timeouts
from tests.processes import HANG_S
from tests.providers.asking import ADAPTERS, TEXT, asking, cancel, deadlines, failure_of
from tests.providers.raw_server import (
    EVENT_STREAM,
    answering,
    chunk,
    dripping,
    events,
    in_steps,
    resetting,
    sending,
    stalling,
    stream_of,
)

STREAMED = asking(stream=True)


def stream(adapter, *, whole=True):
    """Return the adapter's good stream, each event a chunk, as bytes."""
    return stream_of(*map(events, adapter.events), whole=whole)


CHUNKED = pytest.mark.parametrize("adapter", [ADAPTERS[0], ADAPTERS[2]], ids=["openai", "http"])


@CHUNKED
async def test_done_may_be_missing(adapter, server, provider):
    server.manner = sending(stream_of(events(*adapter.events[:-1])))

    assert (await provider.ask(STREAMED)).text == "42"


async def test_a_compressed_stream_is_read(adapter, server, provider):
    packed = gzip.compress(events(*adapter.events))
    server.manner = sending(stream_of(packed[:30], packed[30:], headers=b"content-encoding: gzip\r\n"))

    assert (await provider.ask(STREAMED)).text == "42"


@pytest.mark.parametrize("adapter", ADAPTERS[:3], ids=lambda adapter: adapter.name)  # Gemini says no `DONE`
async def test_after_done_nobody_waits_for_the_end(adapter, server, provider, monkeypatch):
    monkeypatch.setattr(streams, "PATIENCE_AFTER_DONE_S", 0.01)
    server.manner = stalling(stream(adapter, whole=False))

    async with asyncio.timeout(HANG_S):  # a deadline of the call would find the reply complete
        reply = await provider.ask(STREAMED)

    assert reply.text == "42"


async def test_after_done_it_does_not_matter_how_the_body_ends(adapter, server, provider):
    server.manner = resetting(after=stream(adapter, whole=False))

    assert (await provider.ask(STREAMED)).text == "42"


def finished(adapter) -> bytes:
    """Return a stream whose reply is complete, but which neither says so nor ends."""
    return stream_of(*map(events, adapter.events[:-1]), whole=False)


@CHUNKED
@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(lambda begun: sending(begun, then_close=True), id="closed"),
        pytest.param(lambda begun: resetting(after=begun), id="reset"),
        pytest.param(lambda begun: sending(begun + chunk(events(b'{"ch')) + chunk(b"")), id="half an event"),
        pytest.param(lambda begun: sending(begun + chunk(b'data: {"ch') + chunk(b"")), id="a cut event"),
    ],
)
async def test_a_complete_reply_is_kept_however_its_stream_breaks_off(adapter, server, provider, manner):
    server.manner = manner(finished(adapter))

    reply = await provider.ask(STREAMED)

    assert (reply.text, reply.finish_reason, reply.usage.output_tokens) == ("42", "stop", 5)


@CHUNKED
@pytest.mark.parametrize("limits", [{"total": 0.5}, {"between_chunks": 0.3}], ids=["total", "between_chunks"])
async def test_a_complete_reply_is_kept_after_a_silence(adapter, server, opened, limits):
    """The silence is no part of its latency, and leaves the task as it was."""
    server.manner = stalling(finished(adapter))
    provider = opened(adapter.provider(server.url, timeouts=deadlines(**limits)))

    call = asyncio.create_task(provider.ask(STREAMED))
    reply = await call

    assert (reply.text, reply.usage.output_tokens) == ("42", 5)
    assert reply.ttft_s <= reply.latency_s < min(limits.values())
    assert call.cancelling() == 0


@CHUNKED
async def test_a_call_that_is_given_up_is_cancelled_though_its_reply_is_complete(adapter, server, provider):
    server.manner = stalling(finished(adapter))
    await cancel(provider, server, STREAMED)


JSON_TYPES = ("application/json", "application/json; charset=utf-8", "application/problem+json")


@pytest.mark.parametrize(
    "headers", [{}, *({"content_type": kind} for kind in (*JSON_TYPES, "text/event-stream"))], ids=str
)
async def test_a_whole_body_instead_of_a_stream_is_read_whatever_it_is_called(
    adapter, server, provider, headers
):
    server.manner = answering(body=b"\n" + orjson.dumps(adapter.body, option=orjson.OPT_INDENT_2), **headers)

    reply = await provider.ask(STREAMED)

    assert (reply.text, reply.ttft_s) == ("42", None)


async def test_a_stream_is_read_though_its_server_calls_it_a_web_page(adapter, server, provider):
    server.manner = answering(body=events(*adapter.events), content_type="text/html")

    assert (await provider.ask(STREAMED)).text == "42"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_error_in_a_whole_body_is_what_it_says(server, provider, kind):
    error = {"error": {"message": "told", "type": "overloaded_error"}}
    server.manner = answering(body=error, content_type=kind)

    assert (await failure_of(provider, STREAMED)).kind is ErrorKind.OVERLOADED


async def test_an_error_in_the_middle_is_what_it_says(adapter, server, provider):
    told = b'{"type":"error","error":{"type":"overloaded_error","message":"too much"}}'
    server.manner = sending(stream_of(events(*adapter.events[:2], told)))

    error = await failure_of(provider, STREAMED)

    assert (error.kind, error.may_have_been_billed) == (ErrorKind.OVERLOADED, True)
    assert "too much" in error.message


class ConfusedWire(ChatWire):
    """One of ours with a bug in it."""

    def stream(self, response):
        return Chunks(response, cast(Any, len))  # which is no reader of choices


@CHUNKED
async def test_a_bug_of_ours_leaves_the_adapter_as_what_it_is(adapter, server, opened):
    server.manner = sending(stream(adapter))
    provider = opened(replace(adapter, wire=ConfusedWire(Quirks())).provider(server.url))

    with pytest.raises(TypeError, match="not iterable"):
        await provider.ask(STREAMED)


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(sending(stream_of()), id="empty"),
        pytest.param(sending(stream_of(b": ping\n\n")), id="nothing but signs of life"),
        pytest.param(sending(stream_of(events(TEXT))), id="ends early"),
        pytest.param(answering(204, content_type="text/event-stream"), id="no content"),
        pytest.param(sending(stream_of(events(b"{"))), id="not JSON"),
        pytest.param(sending(stream_of(events(b"\xff\xfe"))), id="not UTF-8"),
        pytest.param(sending(stream_of(events(b"[]"))), id="a list"),
        pytest.param(sending(stream_of(events(b"null"))), id="null"),
        pytest.param(sending(stream_of(events(TEXT), whole=False), then_close=True), id="cut"),
        pytest.param(resetting(after=stream_of(events(TEXT), whole=False)), id="reset"),
        pytest.param(resetting(after=EVENT_STREAM + b"\r\n"), id="reset after the headers"),
        pytest.param(sending(EVENT_STREAM + b"\r\nzz\r\n"), id="not a chunk"),
        pytest.param(sending(stream_of(b"no gzip", headers=b"content-encoding: gzip\r\n")), id="not gzip"),
        pytest.param(answering(body=b"<html></html>", content_type="text/html"), id="HTML"),
        pytest.param(answering(body=b"", content_type="application/json"), id="empty JSON"),
    ],
)
async def test_a_stream_that_cannot_be_read_is_a_bad_reply(server, provider, manner):
    server.manner = manner

    error = await failure_of(provider, STREAMED)

    assert (error.kind, error.may_have_been_billed) == (ErrorKind.BAD_REPLY, True)


async def test_an_event_without_an_end_is_a_bad_reply(adapter, server, opened):
    server.manner = dripping(EVENT_STREAM + b"\r\n", drop=chunk(b"x" * 999))

    error = await failure_of(opened(adapter.provider(server.url, most_bytes=1000)), STREAMED)

    assert (error.kind, "more than 1,000 bytes" in error.message) == (ErrorKind.BAD_REPLY, True)


async def test_the_first_token_is_timed_from_the_sending(adapter, server, provider):
    """Neither a first event without text nor the wait for a connection counts."""
    first, *rest = map(events, adapter.events)
    texts = {"after_s": 0.0, "sent_s": 0.0}

    async def manner(writer):
        texts["sent_s"] = time.monotonic()
        writer.write(EVENT_STREAM + b"\r\n" + chunk(first))
        await asyncio.sleep(0.05)
        texts["after_s"] = time.monotonic() - texts["sent_s"]
        writer.write(b"".join(map(chunk, (*rest, b""))))

    server.manner = manner
    started_s = time.monotonic()

    reply = await provider.ask(STREAMED)

    assert texts["after_s"] <= reply.ttft_s <= reply.latency_s <= time.monotonic() - started_s


async def test_the_pieces_of_a_reply_are_timed_and_so_is_its_connection(adapter, server, provider):
    server.manner = in_steps(EVENT_STREAM + b"\r\n", *map(chunk, map(events, adapter.events)), chunk(b""))
    first, second = await provider.ask(STREAMED), await provider.ask(STREAMED)
    for reply in (first, second):
        times = reply.times
        assert len(times.chunks_s) == 2  # "4" and "2"
        assert times.chunks_s[0] == reply.ttft_s == times.ttfo_s <= times.chunks_s[1] <= reply.latency_s
    assert first.times.sent_s < second.times.sent_s
    assert first.times.connect_s > 0
    assert second.times.connect_s is None  # the connection was there


THINKING_THEN_ANSWER: dict[str, tuple[Any, ...]] = {
    "chat": (
        ChatWire(Quirks()),
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"content": "42"}}]},
    ),
    "responses": (
        ResponsesWire(),
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.output_text.delta", "delta": "42"},
    ),
    "messages": (
        MessagesWire(),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "42"}},
    ),
}


@pytest.mark.parametrize("wire", THINKING_THEN_ANSWER)
def test_thinking_is_no_part_of_the_answer(wire):
    format_, thinking, answer = THINKING_THEN_ANSWER[wire]
    reading = format_.stream(Response(status=200, headers={}, body=b""))
    assert (reading.feed(thinking), reading.answers) == (2, False)
    assert (reading.feed(answer), reading.answers) == (2, True)


@pytest.mark.parametrize(
    ("pieces", "begins"),
    [
        (["42"], 0),
        (["<think>", "hm", "</think>", "\n\n", "4", "2"], 4),
        (["h", "m</thi", "nk>4", "2"], 2),
        (["<think>hm", " 42"], None),
    ],
)
async def test_the_answer_begins_behind_thinking_in_the_text(pieces, begins):
    assembly = ChatWire(Quirks()).stream(Response(status=200, headers={}, body=b""))
    reading = _Reading(assembly, Call(Timeouts()), [], 1000, key="")
    for second, piece in enumerate(pieces):
        reading.latest_s = float(second)
        reading._note({"choices": [{"delta": {"content": piece}}]})

    assert reading.answer_s(Reply(text="".join(pieces))) == begins


async def test_a_stream_without_text_has_no_first_token(adapter, server, provider):
    silent = [data for data in adapter.events if b'"4"' not in data and b'"2"' not in data]
    server.manner = sending(stream_of(events(*silent)))

    reply = await provider.ask(STREAMED)

    assert (reply.text, reply.ttft_s) == ("", None)


BEGUN = stream_of(events(TEXT), whole=False)
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@pytest.mark.parametrize(
    ("limits", "manner"),
    [
        pytest.param({"total": 0.3}, stalling(), id="total, before the headers"),
        pytest.param({"total": 0.3}, dripping(BEGUN, drop=chunk(events(TEXT))), id="total, in the stream"),
        pytest.param({"first_byte": 0.2}, stalling(), id="first_byte"),
        pytest.param({"first_byte": 0.2}, stalling(EVENT_STREAM + b"\r\n"), id="first_byte, headers alone"),
        pytest.param(
            {"first_byte": 0.2, "between_chunks": 0.1},
            stalling(EVENT_STREAM + b"\r\n"),
            id="first_byte, before between_chunks",
        ),
        pytest.param({"between_chunks": 0.2}, stalling(BEGUN), id="between_chunks, silence"),
        pytest.param(
            {"between_chunks": 0.2}, dripping(BEGUN, drop=chunk(b": ping\n\n")), id="between_chunks, comments"
        ),
        pytest.param(
            {"between_chunks": 0.2}, dripping(BEGUN, drop=chunk(b"\n")), id="between_chunks, blank lines"
        ),
        pytest.param({"between_chunks": 0.2}, dripping(BEGUN, drop=chunk(PING)), id="between_chunks, pings"),
        pytest.param(
            {"between_chunks": 0.2}, stalling(EVENT_STREAM + b"\r\n"), id="between_chunks, no event"
        ),
    ],
)
async def test_a_deadline_is_named_when_it_is_missed(adapter, server, opened, limits, manner):
    server.manner = manner
    provider = opened(adapter.provider(server.url, timeouts=deadlines(**limits)))

    error = await failure_of(provider, STREAMED)

    assert error.kind is ErrorKind.TIMEOUT
    assert f"timeouts.{next(iter(limits))} (" in error.message


async def test_the_first_byte_has_its_deadline_without_a_stream_too(adapter, server, opened):
    server.manner = stalling()
    provider = opened(adapter.provider(server.url, timeouts=deadlines(first_byte=0.2)))

    with pytest.raises(ProviderError, match=r"timeouts\.first_byte"):
        await provider.ask(asking())


async def test_word_in_time_keeps_a_stream_alive(adapter, server, opened):
    """Longer than every deadline but the whole one."""
    steps = [EVENT_STREAM + b"\r\n", *(chunk(events(data)) for data in adapter.events), chunk(b"")]

    async def manner(writer):
        for step in steps:
            writer.write(step)
            await asyncio.sleep(0.1)

    server.manner = manner
    provider = opened(adapter.provider(server.url, timeouts=deadlines(first_byte=0.5, between_chunks=0.5)))

    assert (await provider.ask(STREAMED)).text == "42"


async def test_the_first_byte_has_no_deadline_once_it_came(adapter, server, opened):
    first, *rest = (chunk(events(data)) for data in adapter.events)

    async def manner(writer):
        writer.write(EVENT_STREAM + b"\r\n" + first)
        await asyncio.sleep(0.7)
        writer.write(b"".join((*rest, chunk(b""))))

    server.manner = manner
    provider = opened(adapter.provider(server.url, timeouts=deadlines(first_byte=0.5)))

    assert (await provider.ask(STREAMED)).text == "42"


async def test_a_request_that_no_connection_told_of_is_not_timed():
    async with Call(deadlines()) as call:
        assert call.age_s() is None

        call.sent(reused=False)

        assert call.age_s() is not None


async def test_an_unread_rest_is_not_left_for_the_next_call(adapter, server, provider):
    broken = orjson.dumps({"type": "error", "error": {"type": "api_error", "message": "x"}})
    server.manner = sending(stream_of(events(broken), events(*adapter.events)))
    await failure_of(provider, STREAMED)
    server.manner = sending(stream(adapter))

    assert (await provider.ask(STREAMED)).text == "42"


async def test_many_streams_run_at_once(adapter, server, opened):
    server.manner = in_steps(
        *(stream(adapter)[start : start + 60] for start in range(0, len(stream(adapter)), 60))
    )
    provider = opened(adapter.provider(server.url, connections=100))

    replies = await asyncio.gather(*(provider.ask(STREAMED) for _ in range(100)))

    assert {reply.text for reply in replies} == {"42"}
