"""A stream that says that it is complete is kept, and events that are not the API's are passed over."""

import pytest

from asyncbench.errors import ErrorKind
from asyncbench.records import FOREIGN_EVENTS
from tests.providers.asking import ADAPTERS, asking, failure_of
from tests.providers.raw_server import events, sending, stream_of

STREAMED = asking(stream=True)
TEXTS = {  # adapter → an event that brings 42, and one with the account
    "openai": (
        b'{"choices":[{"index":0,"delta":{"content":"42"},"finish_reason":null}]}',
        b'{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}',
    ),
    "http": (
        b'{"choices":[{"index":0,"delta":{"content":"42"}}]}',
        b'{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}',
    ),
    "anthropic": (
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"42"}}',
        b'{"type":"message_delta","delta":{},"usage":{"input_tokens":10,"output_tokens":1}}',
    ),
}
OF_DONE = pytest.mark.parametrize("adapter", ADAPTERS[:3], ids=lambda adapter: adapter.name)
DONE = {
    "usual": b"data: [DONE]\n\n",
    "without a blank": b"data:[DONE]\n\n",
    "without its field": b"[DONE]\n\n",
    "in small letters": b"data: [done]\n\n",
    "without an end": b"data: [DONE]",
    "twice": b"data: [DONE]\n\ndata: [DONE]\n\n",
    "after an event's name": b"event: done\ndata: [DONE]\n\n",
}


@OF_DONE
@pytest.mark.parametrize("counts", [True, False], ids=["with usage", "without usage"])
@pytest.mark.parametrize("done", DONE.values(), ids=DONE)
async def test_a_text_and_done_is_the_whole_answer(adapter, server, provider, done, counts):
    text, usage = TEXTS[adapter.name]
    server.manner = sending(stream_of(events(text), events(usage) if counts else b":\n\n", done))

    reply = await provider.ask(STREAMED)

    assert (reply.text, reply.finish_reason) == ("42", None)
    assert (reply.usage.output_tokens if counts else reply.usage) == (1 if counts else None)


@OF_DONE
@pytest.mark.parametrize("end", [b":\n\n", b"data: null\n\n", b"data: {}\n\n"], ids=["nothing", "null", "{}"])
async def test_a_text_without_done_is_cut(adapter, server, provider, end):
    server.manner = sending(stream_of(events(TEXTS[adapter.name][0]), end))

    assert (await failure_of(provider, STREAMED)).kind is ErrorKind.BAD_REPLY


@OF_DONE
async def test_done_without_a_text_is_no_answer(adapter, server, provider):
    server.manner = sending(stream_of(events(TEXTS[adapter.name][1]), DONE["usual"]))

    assert (await failure_of(provider, STREAMED)).kind is ErrorKind.BAD_REPLY


# What a gateway sends between events → whether it is told as an event that is not the API's.
NOISE = {
    "comment": (b": OPENROUTER PROCESSING\n\n", False),
    "an event without data": (b"event: ping\n\n", False),
    "no data": (b"event: ping\ndata:\n\n", False),
    "retry": (b"retry: 3000\n\n", False),
    "ping as JSON": (b'event: ping\ndata: {"type": "ping"}\n\n', False),
    "heartbeat as JSON": (b'data: {"type": "heartbeat"}\n\n', False),
    "an empty object": (b"data: {}\n\n", False),
    "a word": (b"event: ping\ndata: ping\n\n", True),
    "a time": (b"event: heartbeat\ndata: 2026-11-28T00:00:00Z\n\n", True),
    "null": (b"event: ping\ndata: null\n\n", True),
    "a number": (b"data: 1764288000\n\n", True),
    "true": (b"data: true\n\n", True),
    "NaN": (b"data: NaN\n\n", True),
    "a text": (b'data: "ping; pong"\n\n', True),
    "an empty text": (b'data: ""\n\n', True),
    "an empty list": (b"data: []\n\n", True),
    "a list of words": (b'data: ["ping"]\n\n', True),
    "no text": (b"data: \xff\xfe\n\n", True),
}


@pytest.mark.parametrize(("noise", "told"), NOISE.values(), ids=NOISE)
async def test_what_is_none_of_the_apis_events_is_passed_over(adapter, server, provider, noise, told):
    whole = [events(event) for event in adapter.events]
    server.manner = sending(stream_of(noise, whole[0], noise, *whole[1:]))

    reply = await provider.ask(STREAMED)

    assert reply.text == "42"
    assert (reply.note or "").startswith(f"{FOREIGN_EVENTS} (2, ") is told


OVERLOADED = b'{"type": "overloaded_error", "message": "m"}'
# What is an error, or was to be read, is not passed over.
FAULTS = {
    "error object": (b'data: {"error": %s}\n\n' % OVERLOADED, ErrorKind.OVERLOADED),
    "error event": (b"event: error\ndata: %s\n\n" % OVERLOADED, ErrorKind.OVERLOADED),
    "error in words": (b"event: error\ndata: Too much\n\n", ErrorKind.BAD_REPLY),
    "word of an error": (b"data: Internal Server Error\n\n", ErrorKind.BAD_REPLY),
    "list of an error": (b'data: [{"error": {"code": 503, "message": "m"}}]\n\n', ErrorKind.OVERLOADED),
    "error as an object": (
        b'data: {"object": "error", "message": "m", "code": 500}\n\n',
        ErrorKind.SERVER_ERROR,
    ),
    "code and words": (b'data: {"code": 500, "message": "m"}\n\n', ErrorKind.SERVER_ERROR),
    "detail": (b'data: {"detail": "m"}\n\n', ErrorKind.BAD_REPLY),
    "list of errors": (b'data: {"errors": [{"message": "m", "code": 503}]}\n\n', ErrorKind.OVERLOADED),
    "half an object": (b'data: {"choices": [{"delta": {"content"\n\n', ErrorKind.BAD_REPLY),
    "web page": (b"data: <html><body>Log in</body></html>\n\n", ErrorKind.BAD_REPLY),
}


@pytest.mark.parametrize(("fault", "kind"), FAULTS.values(), ids=FAULTS)
async def test_an_error_between_events_stays_one(adapter, server, provider, fault, kind):
    whole = [events(event) for event in adapter.events]
    server.manner = sending(stream_of(whole[0], fault, *whole[1:]))

    assert (await failure_of(provider, STREAMED)).kind is kind
