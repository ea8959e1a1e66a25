"""Messages as Anthropic writes them, read into one form of reply."""

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.anthropic.messages import body, reply
from asyncbench.providers.response import Response
from tests.providers.asking import asking

RESPONSE = Response(status=200, headers={"request-id": "req_1"}, body=b"")


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
    found = reply({"content": content, "stop_reason": "end_turn"}, RESPONSE)

    assert (found.text, found.reasoning, found.finish_reason) == (text, reasoning, "end_turn")


def test_a_missing_usage_is_unknown():
    found = reply({"content": []}, RESPONSE)

    assert (found.usage, found.raw_usage) == (None, None)


def test_without_content_it_is_a_bad_reply():
    with pytest.raises(ProviderError) as caught:
        reply({"type": "message"}, RESPONSE)

    assert caught.value.kind is ErrorKind.BAD_REPLY


def test_a_model_nobody_knows_is_sent_no_limit_of_our_making():
    assert "max_tokens" not in body(asking(model_id="qwen3", max_tokens=None))
