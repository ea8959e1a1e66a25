"""Plain completions, whole or in chunks."""

import pytest
from hypothesis import given

from asyncbench.errors import ErrorKind
from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.openai.wires import CompletionsWire
from asyncbench.records import Usage
from tests.providers.streams import PIECES, RESPONSE, failure, first_word, streamed

WIRE = CompletionsWire(Quirks())
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def chunk(text, finish_reason=None):
    return {"model": "m-1", "choices": [{"index": 0, "text": text, "finish_reason": finish_reason}]}


def test_a_text_is_read():
    found = WIRE.reply({**chunk(" 42", "length"), "usage": USAGE}, RESPONSE)

    assert (found.text, found.reasoning, found.finish_reason) == (" 42", None, "length")
    assert (found.model_served, found.request_id, found.raw_usage) == ("m-1", "req_1", USAGE)
    assert found.usage == Usage(input_tokens=20, output_tokens=5)


@given(PIECES)
def test_a_stream_gives_the_same_reply_as_the_whole_body(said):
    chunks = [*map(chunk, said), chunk("", "stop"), {"choices": [], "usage": USAGE}]

    assert streamed(WIRE, chunks) == WIRE.reply({**chunk("".join(said), "stop"), "usage": USAGE}, RESPONSE)


def test_the_first_word_is_known():
    assert first_word(WIRE, [chunk(""), chunk("4")]) == 1


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": []},
        {"choices": [{"message": {"content": "42"}}]},
        {"choices": [{"error": "x", "text": ""}]},
    ],
    ids=["nothing", "empty", "a chat completion", "failed on its own"],
)
def test_without_a_text_it_is_a_bad_reply(payload):
    assert failure(WIRE.reply, payload, RESPONSE).kind is ErrorKind.BAD_REPLY
