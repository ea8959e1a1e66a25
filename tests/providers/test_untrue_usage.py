"""A usage that cannot be true is unknown on every wire, streamed or not. Add a case: one line."""

from collections.abc import Callable
from typing import Any

import pytest

from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.openai.wires import ChatWire, CompletionsWire, ResponsesWire
from asyncbench.providers.wire import Response, Wire
from asyncbench.records import UNTRUE_USAGE
from tests.rows import each_row

TEXT = "a long answer " * 100
# The names of input, output and total; a whole body with a text and an account; the events of its stream.
CHAT_NAMES = ("prompt_tokens", "completion_tokens", "total_tokens")


def chat(text, used):
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": used}


def chat_events(text, used):
    return [
        {"choices": [{"delta": {"content": text}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": used},
    ]


def completion(text, used):
    return {"choices": [{"text": text, "finish_reason": "stop"}], "usage": used}


def message(text, used):
    return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": used}


def message_events(text, used):
    return [
        {"type": "message_start", "message": {"usage": {**used, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": used},
        {"type": "message_stop"},
    ]


def contents(text, used):
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": used}


def responses(text, used):
    item = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    return {"status": "completed", "output": [item], "usage": used}


FORMATS: dict[str, tuple[Wire, tuple[str, str, str], Callable[..., Any], Callable[..., Any]]] = {
    "chat": (ChatWire(Quirks()), CHAT_NAMES, chat, chat_events),
    "completions": (CompletionsWire(Quirks()), CHAT_NAMES, completion, lambda *both: [completion(*both)]),
    "messages": (MessagesWire(), ("input_tokens", "output_tokens", "_"), message, message_events),
    "contents": (
        ContentsWire(),
        ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
        contents,
        lambda *both: [contents(*both)],
    ),
    "responses": (
        ResponsesWire(),
        ("input_tokens", "output_tokens", "total_tokens"),
        responses,
        lambda *both: [{"type": "response.completed", "response": responses(*both)}],
    ),
}
UNTOLD = object()
# What is told of input, output and total; the text; what is believed of input and output.
CASES = [
    pytest.param((0, 0, 0), TEXT, (None, None), id="noughts"),
    pytest.param((10, 0, 10), TEXT, (10, None), id="no output beside a text"),
    pytest.param((10, 1, 11), TEXT, (10, None), id="one token beside 1,400 characters"),
    pytest.param((10, 0, 10), "4", (10, None), id="no output beside a letter"),
    pytest.param((0, 300, 300), TEXT, (None, 300), id="no input"),
    pytest.param((None, None, None), TEXT, (None, None), id="nulls"),
    pytest.param((10, None, None), TEXT, (10, None), id="null output"),
    pytest.param((-10, -300, -310), TEXT, (None, None), id="negative"),
    pytest.param((10.5, 300.5, 311), TEXT, (None, None), id="fractions"),
    pytest.param(("10", "300", "310"), TEXT, (None, None), id="texts"),
    pytest.param((2**40, 2**40, 2**41), TEXT, (None, None), id="absurd"),
    pytest.param((UNTOLD, UNTOLD, 310), TEXT, (None, None), id="a total alone"),
    pytest.param((UNTOLD, 300, UNTOLD), TEXT, (None, 300), id="output alone"),
    pytest.param((10, 300, 310), TEXT, (10, 300), id="true"),
    pytest.param((10.0, 300.0, 310.0), TEXT, (10, 300), id="true, as floats"),
    pytest.param((10, 0, 10), "", (10, 0), id="nothing was written"),
]


def response():
    return Response(status=200, headers={}, body=b"")


def fed(wire: Wire, events, told):
    assembly = wire.stream(told)
    for event in events:
        assembly.feed(event)
    return assembly.complete()


def counts(reply):
    return (None, None) if reply.usage is None else (reply.usage.input_tokens, reply.usage.output_tokens)


@each_row("streamed", [False, True])
@each_row("api", FORMATS)
@each_row(("told", "text", "believed"), CASES)
def test_only_a_usage_that_can_be_true_is_believed(api, streamed, told, text, believed):
    if api == "contents" and told == (UNTOLD, 300, UNTOLD):
        believed = (None, None)  # without its input, nothing tells what Gemini counts where
    wire, names, whole, events = FORMATS[api]
    used = {name: count for name, count in zip(names, told, strict=True) if count is not UNTOLD}
    seen = response()
    reply = fed(wire, events(text, used), seen) if streamed else wire.reply(whole(text, used), seen)

    assert counts(reply) == believed
    assert any(note.startswith(UNTRUE_USAGE) for note in seen.notes) == (None in believed)


NOUGHTS = dict.fromkeys(CHAT_NAMES, 0)
REAL = dict(zip(CHAT_NAMES, (10, 400, 410), strict=True))
PROMPT = dict(zip(CHAT_NAMES, (10, 0, 10), strict=True))
PART = dict(zip(CHAT_NAMES, (10, 20, 30), strict=True))
SAYS, ENDS = {"delta": {"content": TEXT}}, {"delta": {}, "finish_reason": "stop"}
START = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": TEXT}}
STOP = {"type": "message_stop"}
GEMINI_REAL = {"promptTokenCount": 10, "candidatesTokenCount": 400, "totalTokenCount": 410}
GEMINI_SAYS = {"candidates": [{"content": {"parts": [{"text": TEXT}]}}]}
GEMINI_ENDS = {"candidates": [{"finishReason": "STOP"}]}


def delta(**used):
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": used}


# The wire, its events, what is believed.
STREAMS = [
    pytest.param(
        "chat",
        [{"choices": [SAYS]}, {"choices": [ENDS], "usage": REAL}, {"choices": [], "usage": NOUGHTS}],
        (10, 400),
        id="noughts after a count",
    ),
    pytest.param(
        "chat",
        [{"choices": [], "usage": PROMPT}, {"choices": [SAYS]}, {"choices": [ENDS]}],
        (10, None),
        id="the prompt, told first",
    ),
    pytest.param(
        "chat",
        [{"choices": [SAYS], "usage": PART}, {"choices": [SAYS]}, {"choices": [ENDS]}],
        (10, None),
        id="the text went on",
    ),
    pytest.param(
        "chat",
        [{"choices": [SAYS], "usage": PART}, {"choices": [SAYS], "usage": REAL}, {"choices": [ENDS]}],
        (10, 400),
        id="told in each chunk",
    ),
    pytest.param("messages", [START, BLOCK, delta(), STOP], (10, None), id="message_start alone"),
    pytest.param(
        "messages",
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "42"}},
            STOP,
        ],
        (10, None),
        id="message_start alone, a short text",
    ),
    pytest.param(
        "messages",
        [START, BLOCK, {"type": "message_delta", "delta": {"usage": {"output_tokens": 400}}}, STOP],
        (10, 400),
        id="told within the delta",
    ),
    pytest.param(
        "messages",
        [START, BLOCK, delta(output_tokens=400), delta(input_tokens=0, output_tokens=0), STOP],
        (10, 400),
        id="noughts after a count of a message",
    ),
    pytest.param(
        "contents",
        [
            GEMINI_SAYS,
            {**GEMINI_ENDS, "usageMetadata": GEMINI_REAL},
            {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}},
        ],
        (10, 400),
        id="noughts after a count of Gemini",
    ),
    pytest.param(
        "contents",
        [{**GEMINI_SAYS, "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}}, GEMINI_ENDS],
        (10, None),
        id="the prompt alone, of Gemini",
    ),
]


@pytest.mark.parametrize(("api", "events", "believed"), STREAMS)
def test_the_account_of_a_stream_is_the_one_that_counts_all_of_it(api, events, believed):
    assert counts(fed(FORMATS[api][0], events, response())) == believed


# What is told of a chat, what is believed of its input and output.
ODD_COUNTS = [
    pytest.param(
        {**REAL, "prompt_tokens_details": {"cached_tokens": 100}}, (None, 400), id="more cached than there is"
    ),
    pytest.param({**REAL, "prompt_tokens": 0}, (None, 400), id="no input, and a total"),
    pytest.param(
        {**REAL, "completion_tokens_details": {"reasoning_tokens": 500}}, (10, 900), id="thinking beside"
    ),
    pytest.param({"input_tokens": 10, "output_tokens": 400}, (10, 400), id="the names of Responses"),
]


@each_row("streamed", [False, True])
@each_row(("used", "believed"), ODD_COUNTS)
def test_counts_that_do_not_fit_together_are_unknown(streamed, used, believed):
    wire, _, whole, events = FORMATS["chat"]
    told = response()
    reply = fed(wire, events(TEXT, used), told) if streamed else wire.reply(whole(TEXT, used), told)

    assert counts(reply) == believed


@pytest.mark.parametrize(
    ("used", "cost"), [(NOUGHTS, None), (REAL, 0.0)], ids=["of nothing", "of a free model"]
)
def test_a_cost_of_nothing_is_believed_beside_a_count_alone(used, cost):
    reply = FORMATS["chat"][0].reply(chat(TEXT, {**used, "cost": 0}), response())

    assert reply.vendor_cost_usd == cost
