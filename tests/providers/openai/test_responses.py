"""Responses, whole or as a stream of typed events."""

import pytest
from hypothesis import given

from asyncbench.errors import ErrorKind
from asyncbench.providers.openai.wires import ResponsesWire
from asyncbench.records import Finish, Usage, finish_of
from tests.providers.streams import PIECES, RESPONSE, failure, first_word, streamed

WIRE = ResponsesWire()
USAGE = {
    "input_tokens": 20,
    "output_tokens": 5,
    "total_tokens": 25,
    "output_tokens_details": {"reasoning_tokens": 3},
}


def message(*content):
    return {"type": "message", "role": "assistant", "content": list(content)}


def said(text):
    return {"type": "output_text", "text": text, "annotations": []}


def thought(*texts, summary=()):
    return {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in texts],
    }


def whole(*output, status="completed", **more):
    return {"id": "resp_1", "model": "m-1", "status": status, "error": None, "output": list(output), **more}


def delta(kind, piece, **place):
    return {"type": f"response.{kind}.delta", "delta": piece, "output_index": 0, **place}


def end(kind="completed", *output, **more):
    return {"type": f"response.{kind}", "response": whole(*output, status=kind, **more)}


@pytest.mark.parametrize(
    ("output", "text", "reasoning"),
    [
        pytest.param([message(said("42"))], "42", None, id="text"),
        pytest.param([message(said("4"), said("2"))], "42", None, id="two parts"),
        pytest.param([thought("hm"), message(said("42"))], "42", "hm", id="thinking"),
        pytest.param([thought(summary=["a", "b"]), message(said("42"))], "42", "a\n\nb", id="summaries"),
        pytest.param([thought("c", summary=["a"]), message(said("42"))], "42", "a\n\nc", id="both"),
        pytest.param([{"type": "reasoning", "encrypted_content": "x"}], "", None, id="thinking in secret"),
        pytest.param([message({"type": "refusal", "refusal": "No."})], "No.", None, id="a refusal is text"),
        pytest.param([{"type": "web_search_call"}, None, 7], "", None, id="what is not known"),
        pytest.param([], "", None, id="nothing"),
    ],
)
def test_text_and_reasoning_are_found(output, text, reasoning):
    found = WIRE.reply(whole(*output), RESPONSE)

    assert (found.text, found.reasoning) == (text, reasoning)
    assert found.finish_reason == ("refusal" if text == "No." else "completed")


def test_usage_and_what_served_it_are_told():
    found = WIRE.reply(whole(message(said("42")), usage=USAGE, service_tier="flex"), RESPONSE)

    assert found.usage == Usage(input_tokens=20, output_tokens=5, reasoning_tokens=3)
    assert (found.raw_usage, found.service_tier, found.model_served) == (USAGE, "flex", "m-1")
    assert (found.request_id, found.http_status) == ("req_1", 200)


def test_a_missing_usage_is_unknown():
    assert WIRE.reply(whole(usage=None), RESPONSE).usage is None


@pytest.mark.parametrize(
    ("reason", "known"),
    [("max_output_tokens", Finish.TRUNCATED), ("content_filter", Finish.REFUSED)],
    ids=["cut short", "refused"],
)
def test_what_was_cut_says_why(reason, known):
    found = WIRE.reply(whole(status="incomplete", incomplete_details={"reason": reason}), RESPONSE)

    assert found.finish_reason == reason
    assert finish_of(found.finish_reason) is known


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        pytest.param(
            whole(status="failed") | {"error": {"code": "server_error", "message": "x"}},
            ErrorKind.SERVER_ERROR,
            id="failed",
        ),
        pytest.param(whole(status="failed"), ErrorKind.BAD_REPLY, id="failed without a word"),
        pytest.param(whole(status="cancelled"), ErrorKind.BAD_REPLY, id="cancelled"),
        pytest.param(whole(status="in_progress"), ErrorKind.BAD_REPLY, id="in the background"),
        pytest.param({"status": "completed"}, ErrorKind.BAD_REPLY, id="no output"),
        pytest.param({"choices": []}, ErrorKind.BAD_REPLY, id="a chat completion"),
    ],
)
def test_what_is_no_answer_is_an_error(payload, kind):
    assert failure(WIRE.reply, payload, RESPONSE).kind is kind


@pytest.mark.long
@pytest.mark.parametrize("told_at_the_end", [True, False], ids=["in the last event too", "in pieces alone"])
@given(words=PIECES, thoughts=PIECES)
def test_a_stream_gives_the_same_reply_as_the_whole_body(told_at_the_end, words, thoughts):
    output = [thought("".join(thoughts)), message(said("".join(words)))]
    last = end("completed", *(output if told_at_the_end else ()), usage=USAGE)
    events = [
        {"type": "response.created", "response": whole(status="in_progress")},
        {"type": "response.output_item.added", "item": {"type": "reasoning", "summary": []}},
        *(delta("reasoning_text", piece, content_index=0) for piece in thoughts),
        *(delta("output_text", piece, content_index=0) for piece in words),
        {"type": "response.output_text.done", "text": "".join(words)},
        last,
    ]

    assert streamed(WIRE, events) == WIRE.reply(whole(*output, usage=USAGE), RESPONSE)


def test_pieces_go_where_they_belong():
    events = [
        delta("reasoning_summary_text", "a", summary_index=0),
        delta("reasoning_summary_text", "b", summary_index=1),
        delta("reasoning_summary_text", "c", summary_index=1),
        delta("refusal", "No.", content_index=0),
        end("incomplete", incomplete_details={"reason": "content_filter"}),
    ]

    found = streamed(WIRE, events)

    assert (found.text, found.reasoning, found.finish_reason) == ("No.", "a\n\nbc", "content_filter")


@pytest.mark.parametrize("kind", ["output_text", "reasoning_text", "reasoning_summary_text", "refusal"])
def test_the_first_word_is_known(kind):
    assert first_word(WIRE, [{"type": "response.created"}, delta(kind, ""), delta(kind, "4")]) == 2


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        pytest.param(
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            ErrorKind.SERVER_ERROR,
            id="failed",
        ),
        pytest.param(
            {"type": "error", "code": "insufficient_quota", "message": "x"}, ErrorKind.NO_QUOTA, id="flat"
        ),
        pytest.param(
            {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
            ErrorKind.RATE_LIMITED,
            id="nested",
        ),
        pytest.param({"error": "something broke"}, ErrorKind.BAD_REPLY, id="without a type"),
        pytest.param({"type": "response.failed"}, ErrorKind.BAD_REPLY, id="without a word"),
    ],
)
def test_an_error_in_the_middle_means_what_it_says(event, kind):
    assert failure(streamed, WIRE, [delta("output_text", "4"), event]).kind is kind


def test_a_stream_without_its_end_is_a_bad_reply():
    assert failure(streamed, WIRE, [delta("output_text", "42")]).kind is ErrorKind.BAD_REPLY


def test_a_refusal_is_a_finish_reason():
    refused = message({"type": "refusal", "refusal": "No."})

    assert WIRE.reply(whole(refused), RESPONSE).finish_reason == "refusal"
    assert streamed(WIRE, [end("completed", refused)]).finish_reason == "refusal"


@pytest.mark.parametrize("kind", ["completed", "incomplete"])
def test_a_stream_has_ended_with_its_last_event(kind):
    assembly = WIRE.stream(RESPONSE)
    assembly.feed(delta("output_text", "42"))
    assert not assembly.ended

    assembly.feed(end(kind))

    assert assembly.ended


def test_the_last_event_says_what_its_response_leaves_out():
    last = {"type": "response.incomplete", "response": {"output": [message(said("4"))]}}

    assert streamed(WIRE, [last]).finish_reason == "incomplete"
