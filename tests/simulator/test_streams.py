"""Answers piece by piece: what the vendors' SDKs read from a stream is what they read from a whole answer."""

import asyncio
import contextlib

import aiohttp
import anthropic
import orjson
import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from asyncbench.simulator.settings import OF_STREAMS, parse_fault

QUESTION, LONG = "What is 10 + 10?", "What is 12345678 + 1?"
WIRES = ("openai", "anthropic", "completions", "responses")
CLOSING = ('finish_reason":"', "[DONE]", "message_delta", "message_stop", "response.completed")


@pytest.fixture(params=WIRES)
def wire(request) -> str:
    """Each wire format in turn, those of OpenAI alone as well."""
    return str(request.param)


def whole(wire, body):
    """(text, why it ended, input, output and reasoning tokens) of a whole answer."""
    usage = body["usage"]
    if wire == "openai":
        told = usage["completion_tokens_details"]["reasoning_tokens"]
        choice, counts = body["choices"][0], (usage["prompt_tokens"], usage["completion_tokens"])
        return choice["message"]["content"], choice["finish_reason"], *counts, told
    if wire == "completions":
        choice, counts = body["choices"][0], (usage["prompt_tokens"], usage["completion_tokens"])
        return choice["text"], choice["finish_reason"], *counts, 0
    if wire == "responses":
        messages = [item for item in body["output"] if item["type"] == "message"]
        text = "".join(part["text"] for message in messages for part in message["content"])
        told = usage["output_tokens_details"]["reasoning_tokens"]
        return text, body["status"], usage["input_tokens"], usage["output_tokens"], told
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    told = usage["output_tokens_details"]["thinking_tokens"]
    return text, body["stop_reason"], usage["input_tokens"], usage["output_tokens"], told


def from_stream(wire, events):
    """The same, put together from the events of a stream."""
    if wire in ("openai", "completions"):
        choices = [choice for event in events for choice in event["choices"]]
        text = "".join(c.get("text") or c.get("delta", {}).get("content") or "" for c in choices)
        finish = next(choice["finish_reason"] for choice in choices if choice["finish_reason"])
        shape = {"message": {"content": text}, "text": text, "finish_reason": finish}
        return whole(wire, {"choices": [shape], "usage": events[-1]["usage"]})
    if wire == "responses":
        texts = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
        told = whole(wire, events[-1]["response"])
        assert told[0] == "".join(texts)
        return told
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    text = "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta")
    end = next(event for event in events if event["type"] == "message_delta")
    body = {"content": [{"type": "text", "text": text}], "stop_reason": end["delta"]["stop_reason"]}
    return whole(wire, body | {"usage": end["usage"]})


def thinking(wire, effort="low"):
    return {
        "openai": {"reasoning_effort": effort},
        "anthropic": {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}},
        "completions": {},
        "responses": {"reasoning": {"effort": effort, "summary": "auto"}},
    }[wire]


def limited(wire, tokens):
    return {"max_output_tokens" if wire == "responses" else "max_tokens": tokens}


STREAMED = {"stream": True, "stream_options": {"include_usage": True}}

# ── the same answer ──────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("chunks", [None, 1, 2])
@pytest.mark.parametrize("most", [1, 2, 40, 500])
@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
async def test_a_stream_is_the_whole_answer_in_pieces(simulator, wire, thinks, most, chunks):
    client = await simulator(chunks=chunks)
    fields = limited(wire, most) | (thinking(wire) if thinks else {})
    at_once = await client.ask(LONG, wire=wire, **fields)
    streamed = await client.ask(LONG, wire=wire, **fields, **STREAMED)

    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert from_stream(wire, streamed.events) == whole(wire, at_once.body)


async def test_the_finish_says_whether_it_was_cut(simulator, wire):
    client = await simulator()
    cut = await client.ask(LONG, wire=wire, **limited(wire, 1), **STREAMED)

    assert from_stream(wire, cut.events)[:2] == (
        "1234",
        {"anthropic": "max_tokens", "responses": "incomplete"}.get(wire, "length"),
    )


async def test_an_empty_reply_is_a_stream_too(simulator, wire):
    client = await simulator()
    for n in range(500):
        events = (await client.ask(LONG, model=f"noisy-{n}", wire=wire, **STREAMED)).events
        if not (told := from_stream(wire, events))[0]:
            break

    assert (told[0], told[3]) == ("", 1)


async def test_usage_of_openai_s_streams_is_told_where_it_is_asked_for(simulator):
    client = await simulator()
    unasked = (await client.ask(QUESTION, stream=True)).events
    asked = (await client.ask(QUESTION, stream=True, stream_options={"include_usage": True})).events

    assert [event for event in asked if "usage" in event] == asked[-1:]
    assert len(unasked) == len(asked) - 1
    assert not any("usage" in event for event in unasked)


async def test_openai_s_sdk_reads_a_stream_of_responses(openai_sdk):
    stream = await (await openai_sdk()).responses.create(
        model="oracle", input=LONG, reasoning={"effort": "low", "summary": "auto"}, stream=True
    )
    events = [event async for event in stream]
    response = events[-1].response

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert response.output_text == "12345679"
    thought = "".join(e.delta for e in events if e.type == "response.reasoning_summary_text.delta")
    assert response.output[0].summary[0].text == thought
    assert response.usage.output_tokens == 2 + response.usage.output_tokens_details.reasoning_tokens > 2


async def test_openai_s_sdk_reads_a_whole_response(simulator, openai_sdk):
    sdk = await openai_sdk()
    response = await sdk.responses.create(model="oracle", input=LONG, instructions="x" * 400)

    assert (response.output_text, response.status, response.usage.input_tokens) == (
        "12345679",
        "completed",
        106,
    )
    body = (await (await simulator()).ask(LONG, wire="responses")).body
    assert set(TypeAdapter(Response).validate_python(body).model_extra or {}) <= {"system_fingerprint"}


async def test_openai_s_sdk_reads_plain_completions(openai_sdk):
    sdk = await openai_sdk()
    at_once = await sdk.completions.create(model="oracle", prompt=LONG)
    stream = await sdk.completions.create(model="oracle", prompt=LONG, stream=True)
    text = "".join([c.text async for chunk in stream for c in chunk.choices])

    assert at_once.choices[0].text == text == "12345679"


async def test_anthropic_s_sdk_reads_a_stream_with_thinking(anthropic_sdk):
    messages = (await anthropic_sdk()).messages
    fields = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    asked = [{"role": "user", "content": LONG}]
    async with messages.stream(model="oracle", messages=asked, **fields) as stream:
        message = await stream.get_final_message()

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.content[1].text, message.stop_reason) == ("12345679", "end_turn")
    assert message.usage.output_tokens == 2 + message.usage.output_tokens_details.thinking_tokens


# ── prompts without roles ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "prompt",
    [QUESTION, [QUESTION], f"You are a calculator.\nWhat is 11 + 11?\n22\n{QUESTION}"],
    ids=["text", "a list of one", "after examples"],
)
async def test_a_prompt_ends_with_the_question(simulator, prompt):
    response = await (await simulator()).ask("", wire="completions", prompt=prompt)

    assert response.body["choices"][0]["text"] == "20"


@pytest.mark.parametrize("prompt", [None, 5, [QUESTION, QUESTION], [1, 2]], ids=str)
async def test_a_prompt_that_is_no_text_is_refused(simulator, prompt):
    assert (await (await simulator()).ask("", wire="completions", prompt=prompt)).status == 400


# ── pace ─────────────────────────────────────────────────────────────────────────────────────


async def arrivals(client, **fields):
    """Yield what has arrived of a stream, part by part, until the test stops asking."""
    body = {"model": "oracle", "messages": [{"role": "user", "content": LONG}], "stream": True, **fields}
    given = {"authorization": "Bearer k"}
    path = f"{client.url}/v1/chat/completions"
    async with client.session.post(path, data=orjson.dumps(body), headers=given) as response:
        async for part in response.content.iter_any():
            yield part


async def test_what_is_due_at_once_is_written_at_once(simulator):
    client = await simulator()

    assert len([part async for part in arrivals(client, simulate={"latency_s": 0})]) == 1


async def test_nothing_of_the_text_comes_before_the_first_token_is_due(simulator):
    stream = arrivals(await simulator(), simulate={"latency_s": 3000, "ttft_s": 2000})
    first = await anext(stream)
    second = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)

    assert (b'"role":"assistant"' in first, b"1234" in first, second.done()) == (True, False, False)
    second.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await second


async def test_the_rest_comes_after_the_first_token(simulator):
    stream = arrivals(await simulator(), simulate={"latency_s": 3000, "ttft_s": 0, "chunks": 2})
    first = await anext(stream)

    assert (b'"1234"' in first, b'"5679"' in first) == (True, False)
    await stream.aclose()


async def test_a_client_that_leaves_a_stream_is_counted(simulator):
    client = await simulator()
    stream = arrivals(client, simulate={"latency_s": 3000})
    await anext(stream)
    await stream.aclose()
    stats = await client.until(lambda stats: stats["in_flight"] == 0)

    assert (stats["left"], stats["streams"], stats["chunks"], stats["delivered"]) == (1, 1, 0, 0)


async def test_streams_and_their_pieces_are_counted(simulator, wire):
    client = await simulator()
    await client.ask(LONG, wire=wire)
    await client.ask(LONG, wire=wire, stream=True)
    stats = await client.stats()

    assert (stats["delivered"], stats["streams"], stats["chunks"]) == (2, 1, 2)
    assert (stats["models"]["oracle"]["streams"], stats["models"]["oracle"]["chunks"]) == (1, 2)


# ── faults ───────────────────────────────────────────────────────────────────────────────────


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


async def met(simulator, kind, wire, *, stream=True, **fields):
    client = await simulator(faults=(parse_fault(f"{kind}=1"),), keep_alive=False)
    return await client.ask(LONG, wire=wire, stream=stream, **fields), await client.stats()


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(OF_STREAMS))
async def test_a_fault_of_streams_spares_a_whole_answer(simulator, wire, kind):
    client = await simulator(faults=(parse_fault(f"{kind}=1"),))

    assert whole(wire, (await client.ask(LONG, wire=wire)).body)[0] == "12345679"
    assert (await client.stats())["faults"] == {}


async def test_no_terminator_ends_early_and_clean(simulator, wire):
    response, stats = await met(simulator, "no_terminator", wire)

    assert response.events or wire == "completions"
    assert not any(word in response.content.decode() for word in CLOSING)
    assert (stats["delivered"], stats["statuses"]) == (0, {"200": 1})


async def test_stream_error_says_so_in_its_last_event(simulator, wire):
    response, _ = await met(simulator, "stream_error", wire)

    assert "error" in response.events[-1] or response.events[-1]["type"] == "error"
    assert not any(word in response.content.decode() for word in CLOSING)


async def test_anthropic_s_sdk_raises_the_error_of_a_stream(anthropic_sdk):
    sdk = await anthropic_sdk(faults=(parse_fault("stream_error=1"),))
    stream = await sdk.messages.create(
        model="oracle", messages=[{"role": "user", "content": LONG}], max_tokens=9, stream=True
    )
    with pytest.raises(anthropic.APIStatusError) as caught:
        [event async for event in stream]

    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")


@pytest.mark.parametrize(("kind", "stream"), [("cut", False), ("cut", True), ("cut_stream", True)])
async def test_an_answer_that_is_cut_breaks_off(simulator, wire, kind, stream):
    with pytest.raises(aiohttp.ClientPayloadError, match="Not enough data"):
        await met(simulator, kind, wire, stream=stream)


async def test_silent_lasts_until_the_client_leaves(simulator):
    client = await simulator(faults=(parse_fault("silent=1"),))
    stream = arrivals(client)
    assert b'"1234"' in await anext(stream)
    await client.until(lambda stats: stats["in_flight"] == 1)
    await stream.aclose()

    assert (await client.until(lambda stats: stats["in_flight"] == 0))["left"] == 1


@both
async def test_invalid_json_is_a_success_that_does_not_parse(simulator, wire, stream):
    response, _ = await met(simulator, "invalid_json", wire, stream=stream)

    assert response.status == 200
    with pytest.raises(orjson.JSONDecodeError, match=None if stream else "unexpected end of data"):
        assert response.events if stream else response.body


@both
async def test_error_200_is_a_success_with_an_error_for_a_body_and_no_stream(simulator, wire, stream):
    response, stats = await met(simulator, "error_200", wire, stream=stream)

    assert (response.status, "error" in response.body) == (200, True)
    assert (stats["streams"], stats["delivered"]) == (0, 0)


async def test_stale_is_a_whole_stream_on_a_connection_that_then_closes(simulator, wire):
    response, stats = await met(simulator, "stale", wire, stream_options={"include_usage": True})

    assert from_stream(wire, response.events)[0] == "12345679"
    assert (response.headers["connection"], stats["delivered"]) == ("keep-alive", 1)


@pytest.mark.parametrize("kind", ["429", "500", "529"])
async def test_a_refusal_is_no_stream(simulator, wire, kind):
    response, _ = await met(simulator, kind, wire)

    assert (response.status >= 400, "error" in response.body) == (True, True)
