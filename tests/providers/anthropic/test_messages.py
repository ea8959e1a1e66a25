"""Messages as Anthropic writes them, whole or as a stream of events, read into one form of reply."""

import pytest
from hypothesis import given

from asyncbench.errors import ErrorKind
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.records import Usage
from tests.providers.asking import asking
from tests.providers.streams import PIECES, RESPONSE, failure, first_word, streamed

WIRE = MessagesWire()


def start(**message):
    return {
        "type": "message_start",
        "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], **message},
    }


def begin(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, **piece):
    return {"type": "content_block_delta", "index": index, "delta": piece}


def end(stop_reason="end_turn", **more):
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, **more}


STOP = {"type": "message_stop"}
PING = {"type": "ping"}


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        pytest.param([{"type": "text", "text": "42"}], "42", None, id="text"),
        pytest.param(
            [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}], "42", None, id="two texts"
        ),
        pytest.param(
            [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "42"},
            ],
            "42",
            "hm",
            id="thinking",
        ),
        pytest.param([], "", None, id="refused before a word"),
    ],
)
def test_text_and_thinking_are_found(content, text, reasoning):
    found = WIRE.reply({"content": content, "stop_reason": "end_turn"}, RESPONSE)

    assert (found.text, found.reasoning, found.finish_reason) == (text, reasoning, "end_turn")


def test_a_missing_usage_is_unknown():
    found = WIRE.reply({"content": []}, RESPONSE)

    assert (found.usage, found.raw_usage) == (None, None)


def test_the_service_tier_stands_in_the_usage():
    assert WIRE.reply({"content": [], "usage": {"service_tier": "batch"}}, RESPONSE).service_tier == "batch"


def test_without_content_it_is_a_bad_reply():
    assert failure(WIRE.reply, {"type": "message"}, RESPONSE).kind is ErrorKind.BAD_REPLY


def test_a_model_nobody_knows_is_sent_no_limit_of_our_making():
    assert "max_tokens" not in WIRE.body(asking(model_id="qwen3", max_tokens=None))


@given(PIECES, PIECES)
def test_a_stream_gives_the_same_reply_as_the_whole_body(said, thought):
    events = [
        start(model="m-1", usage={"input_tokens": 20, "output_tokens": 1}),
        begin(0, type="thinking", thinking="", signature=""),
        PING,
        *(delta(0, type="thinking_delta", thinking=piece) for piece in thought),
        delta(0, type="signature_delta", signature="s"),
        {"type": "content_block_stop", "index": 0},
        begin(1, type="text", text=""),
        *(delta(1, type="text_delta", text=piece) for piece in said),
        {"type": "content_block_stop", "index": 1},
        end("max_tokens", usage={"output_tokens": 5}),
        STOP,
    ]
    whole = {
        "model": "m-1",
        "content": [
            {"type": "thinking", "thinking": "".join(thought), "signature": "s"},
            {"type": "text", "text": "".join(said)},
        ],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 20, "output_tokens": 5},
    }

    assert streamed(WIRE, events) == WIRE.reply(whole, RESPONSE)


@pytest.mark.parametrize(
    ("at_the_start", "at_the_end", "usage"),
    [
        pytest.param(
            {"usage": {"input_tokens": 20, "cache_read_input_tokens": 4, "output_tokens": 1}},
            {"usage": {"output_tokens": 5}},
            Usage(input_tokens=24, cached_input_tokens=4, output_tokens=5),
            id="the input at the start alone",
        ),
        pytest.param(
            {"usage": {"input_tokens": 20, "output_tokens": 1}},
            {"usage": {"input_tokens": 30, "output_tokens": 5, "cache_read_input_tokens": None}},
            Usage(input_tokens=30, output_tokens=5),
            id="all of it at the end",
        ),
        pytest.param({"usage": {"input_tokens": 20}}, {}, Usage(input_tokens=20), id="at the start alone"),
        pytest.param({}, {}, None, id="never"),
    ],
)
def test_usage_is_gathered_from_both_ends(at_the_start, at_the_end, usage):
    assert streamed(WIRE, [start(**at_the_start), end(**at_the_end), STOP]).usage == usage


@pytest.mark.parametrize(
    ("events", "place"),
    [
        pytest.param([delta(0, type="text_delta", text="4")], 1, id="text"),
        pytest.param([delta(0, type="thinking_delta", thinking="h")], 1, id="thinking"),
        pytest.param([begin(0, type="text", text="4")], 1, id="in the beginning of a block"),
        pytest.param(
            [PING, begin(0, type="text", text=""), delta(0, type="signature_delta", signature="s"), STOP],
            None,
            id="never",
        ),
    ],
)
def test_the_first_word_is_known(events, place):
    assert first_word(WIRE, [start(), *events]) == place


def test_the_beginning_of_a_block_belongs_to_it():
    events = [begin(0, type="text", text="4"), delta(0, type="text_delta", text="2"), end(), STOP]

    assert streamed(WIRE, events).text == "42"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param({"type": "overloaded_error", "message": "Overloaded"}, ErrorKind.OVERLOADED, id="busy"),
        pytest.param({"type": "api_error", "message": "x"}, ErrorKind.SERVER_ERROR, id="broken"),
        pytest.param({"type": "rate_limit_error", "message": "x"}, ErrorKind.RATE_LIMITED, id="too fast"),
        pytest.param("something broke", ErrorKind.BAD_REPLY, id="text"),
    ],
)
def test_an_error_in_the_middle_means_what_it_says(error, kind):
    error = failure(streamed, WIRE, [start(), {"type": "error", "error": error}])

    assert (error.kind, error.http_status) == (kind, 200)


@pytest.mark.parametrize(
    "events",
    [[], [start(), delta(0, type="text_delta", text="42")], [start(), end()]],
    ids=["no event", "cut", "no message_stop"],
)
def test_a_stream_without_its_end_is_a_bad_reply(events):
    error = failure(streamed, WIRE, events)

    assert (error.kind, error.request_id) == (ErrorKind.BAD_REPLY, "req_1")
