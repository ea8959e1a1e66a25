"""Chat completions as OpenAI and others write them, read into one form of reply."""

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.openai.chat import reply
from asyncbench.providers.response import Response

RESPONSE = Response(status=200, headers={"x-request-id": "req_1"}, body=b"")


def read(message=None, **more):
    choice = {"message": {"role": "assistant", **(message or {})}, "finish_reason": "stop"}
    return reply({"choices": [choice], **more}, RESPONSE)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        pytest.param({"content": " 42\n"}, " 42\n", None, id="text untouched"),
        pytest.param({"content": None}, "", None, id="null"),
        pytest.param({}, "", None, id="none"),
        pytest.param({"content": "42", "reasoning_content": "hm"}, "42", "hm", id="DeepSeek"),
        pytest.param({"content": "42", "reasoning": "hm"}, "42", "hm", id="vLLM, Groq, OpenRouter"),
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
def test_text_and_reasoning_are_found(message, text, reasoning):
    found = read(message)

    assert (found.text, found.reasoning) == (text, reasoning)


@pytest.mark.parametrize("usage", [None, {}, [], "20"])
def test_a_missing_usage_is_unknown(usage):
    found = read(usage=usage)

    assert (found.usage, found.raw_usage) == (None, None)


def test_the_raw_usage_is_kept_as_it_came():
    raw = {"prompt_tokens": 1, "cost": 0.5, "cost_details": {"upstream": None}}

    assert read(usage=raw).raw_usage == raw


def test_a_finish_reason_is_the_providers_own_word():
    assert reply({"choices": [{"message": {}, "finish_reason": "eos"}]}, RESPONSE).finish_reason == "eos"


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"choices": []}, id="empty"),
        pytest.param({"choices": {"message": {}}}, id="no list"),
        pytest.param({"choices": [{"finish_reason": "stop"}]}, id="no message"),
        pytest.param(
            {"choices": [{"message": {"content": ""}, "error": {"code": 502}}]}, id="failed on its own"
        ),
    ],
)
def test_without_a_choice_it_is_a_bad_reply(payload):
    with pytest.raises(ProviderError) as caught:
        reply(payload, RESPONSE)

    assert (caught.value.kind, caught.value.request_id) == (ErrorKind.BAD_REPLY, "req_1")
