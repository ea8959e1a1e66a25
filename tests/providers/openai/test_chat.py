"""Chat completions as OpenAI and others write them, whole or in chunks, read into one form of reply."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.openai.wires import ChatWire
from asyncbench.records import Usage
from tests.providers.streams import PIECES, RESPONSE, failure, first_word, streamed

WIRE = ChatWire(Quirks())
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def read(message=None, **more):
    choice = {"message": {"role": "assistant", **(message or {})}, "finish_reason": "stop"}
    return WIRE.reply({"choices": [choice], **more}, RESPONSE)


def chunk(finish_reason=None, *, beside=(), **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "choices": [choice], **dict(beside)}


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        pytest.param({"content": " 42\n"}, " 42\n", None, id="text untouched"),
        pytest.param({"content": None}, "", None, id="null"),
        pytest.param({}, "", None, id="none"),
        pytest.param({"content": "42", "reasoning_content": "hm"}, "42", "hm", id="DeepSeek"),
        pytest.param({"content": "42", "reasoning": "hm"}, "42", "hm", id="vLLM, Groq, OpenRouter"),
        pytest.param({"content": "42", "reasoning_content": "hm", "reasoning": "hm"}, "42", "hm", id="both"),
        pytest.param({"content": "42", "reasoning_content": ""}, "42", None, id="no reasoning"),
        pytest.param(
            {
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}],
                    },
                    {"type": "text", "text": "4"},
                    {"type": "reference", "reference_ids": [1]},
                    {"type": "text", "text": "2"},
                ]
            },
            "42",
            "hm",
            id="a list of parts (Mistral)",
        ),
        pytest.param(
            {"content": None, "refusal": "I will not."}, "I will not.", None, id="a refusal is text"
        ),
        pytest.param({"content": 42}, "", None, id="a number is no text"),
    ],
)
def test_text_and_reasoning_are_found_in_a_whole_answer_and_in_a_chunk(message, text, reasoning):
    for found in (read(message), streamed(WIRE, [chunk(**message), chunk("stop")])):
        assert (found.text, found.reasoning) == (text, reasoning)


@pytest.mark.parametrize("usage", [None, {}, [], "20"])
def test_a_missing_usage_is_unknown(usage):
    found = read(usage=usage)

    assert (found.usage, found.raw_usage) == (None, None)


def test_the_raw_usage_is_kept_as_it_came():
    raw = {"prompt_tokens": 1, "cost": 0.5, "cost_details": {"upstream": None}}

    assert read(usage=raw).raw_usage == raw


def test_what_served_it_is_told():
    found = read(
        model="m-1", system_fingerprint="fp_1", service_tier="flex", provider="Acme", usage={"cost": 0.25}
    )

    assert (found.model_served, found.fingerprint, found.service_tier) == ("m-1", "fp_1", "flex")
    assert (found.upstream, found.vendor_cost_usd) == ("Acme", 0.25)


def test_a_finish_reason_is_the_providers_own_word():
    assert WIRE.reply({"choices": [{"message": {}, "finish_reason": "eos"}]}, RESPONSE).finish_reason == "eos"


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"choices": []}, id="empty"),
        pytest.param({"choices": {"message": {}}}, id="no list"),
        pytest.param({"choices": [{"finish_reason": "stop"}]}, id="no message"),
    ],
)
def test_without_a_choice_it_is_a_bad_reply(payload):
    error = failure(WIRE.reply, payload, RESPONSE)

    assert (error.kind, error.request_id) == (ErrorKind.BAD_REPLY, "req_1")


@given(PIECES, PIECES, st.sampled_from(["reasoning", "reasoning_content"]))
def test_a_stream_gives_the_same_reply_as_the_whole_body(said, thought, field):
    beside = {"model": "m-1", "system_fingerprint": "fp_1", "service_tier": "default", "provider": "Acme"}
    chunks = [
        chunk(role="assistant", content="", beside=beside),
        *(chunk(**{field: piece}, beside=beside) for piece in thought),
        *(chunk(content=piece, beside=beside) for piece in said),
        chunk("length", beside=beside),
        {"choices": [], "usage": USAGE, **beside},
    ]
    message = {"content": "".join(said), field: "".join(thought)}
    whole = {"choices": [{"message": message, "finish_reason": "length"}], "usage": USAGE, **beside}

    assert streamed(WIRE, chunks) == WIRE.reply(whole, RESPONSE)


@pytest.mark.parametrize(
    ("chunks", "known"),
    [
        pytest.param([chunk("stop"), {"choices": [], "usage": USAGE}], True, id="a chunk of its own (vLLM)"),
        pytest.param(
            [chunk("stop"), chunk(beside={"usage": USAGE})], True, id="beside an empty choice (litellm)"
        ),
        pytest.param([chunk("stop", beside={"usage": USAGE})], True, id="with the finish (transformers)"),
        pytest.param(
            [
                chunk(content="4", beside={"usage": {"prompt_tokens": 1}}),
                chunk("stop", beside={"usage": USAGE}),
            ],
            True,
            id="in each chunk: the last counts",
        ),
        pytest.param([chunk("stop", beside={"usage": None})], False, id="never (llama-cpp-python)"),
        pytest.param([chunk("stop", beside={"x_groq": {"usage": USAGE}})], True, id="Groq"),
    ],
)
def test_usage_is_found_wherever_a_stream_tells_it(chunks, known):
    found = streamed(WIRE, chunks)

    assert found.usage == (Usage(input_tokens=20, output_tokens=5) if known else None)
    assert found.raw_usage == (USAGE if known else None)


@pytest.mark.parametrize(
    ("chunks", "place"),
    [
        pytest.param([chunk(content="4")], 0, id="text"),
        pytest.param([chunk(role="assistant", content=""), chunk(content="4")], 1, id="a role is no word"),
        pytest.param([chunk(content="", reasoning="h"), chunk(content="4")], 0, id="thinking"),
        pytest.param([chunk(refusal="No")], 0, id="refusal"),
        pytest.param([{"choices": [], "usage": USAGE}, {"object": "ping"}, chunk("stop")], None, id="never"),
    ],
)
def test_the_first_word_is_known(chunks, place):
    assert first_word(WIRE, chunks) == place


def test_only_the_first_answer_is_read():
    other = {"choices": [{"index": 1, "delta": {"content": "43"}, "finish_reason": "length"}]}

    found = streamed(WIRE, [chunk(content="42"), other, chunk("stop"), other])

    assert (found.text, found.finish_reason) == ("42", "stop")


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([], id="no event"),
        pytest.param([chunk(content="4")], id="cut"),
        pytest.param([chunk(content="42"), {"choices": [], "usage": USAGE}], id="usage is no end"),
    ],
)
def test_a_stream_without_its_end_is_a_bad_reply(chunks):
    error = failure(streamed, WIRE, chunks)

    assert (error.kind, error.request_id) == (ErrorKind.BAD_REPLY, "req_1")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param("something broke", ErrorKind.BAD_REPLY, id="text"),
        pytest.param({"code": 502, "message": "upstream"}, ErrorKind.SERVER_ERROR, id="a status for a code"),
        pytest.param({"code": "insufficient_quota", "message": "x"}, ErrorKind.NO_QUOTA, id="a code"),
        pytest.param({"type": "server_error", "message": "x"}, ErrorKind.SERVER_ERROR, id="a family"),
        pytest.param({"code": 429, "message": "slow down"}, ErrorKind.RATE_LIMITED, id="too fast"),
    ],
)
def test_an_error_in_the_middle_means_what_it_says(error, kind):
    last = {"error": error, "choices": [{"finish_reason": "error"}]}
    failed = failure(streamed, WIRE, [chunk(content="4"), last])

    assert (failed.kind, failed.http_status) == (kind, 200)


@pytest.mark.parametrize(
    "read", [lambda payload: WIRE.reply(payload, RESPONSE), lambda payload: streamed(WIRE, [payload])]
)
def test_a_choice_that_failed_on_its_own_keeps_its_words(read):
    error = {"code": 403, "message": "moderation flagged it"}

    with pytest.raises(ProviderError, match="moderation flagged it") as caught:
        read({"choices": [{"message": {"content": ""}, "delta": {}, "error": error}]})

    assert (caught.value.kind, caught.value.may_have_been_billed) == (ErrorKind.BLOCKED, True)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("insufficient_system_resource", ErrorKind.OVERLOADED), ("error", ErrorKind.SERVER_ERROR)],
)
def test_a_finish_that_means_a_failure_is_one(word, kind):
    choice = {"message": {"content": "4"}, "delta": {"content": "4"}, "finish_reason": word}

    for read in (
        lambda: WIRE.reply({"choices": [choice]}, RESPONSE),
        lambda: streamed(WIRE, [{"choices": [choice]}]),
    ):
        with pytest.raises(ProviderError, match=f"its finish reason is {word}") as caught:
            read()
        assert (caught.value.kind, caught.value.may_have_been_billed) == (kind, True)


def test_a_refusal_is_a_finish_reason():
    assert read({"content": None, "refusal": "No."}).finish_reason == "refusal"
    assert streamed(WIRE, [chunk(refusal="N"), chunk("stop", refusal="o.")]).finish_reason == "refusal"
    assert streamed(WIRE, [chunk("content_filter", refusal="No.")]).finish_reason == "content_filter"
    assert read({"content": "42", "refusal": ""}).finish_reason == "stop"
