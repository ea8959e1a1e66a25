"""Other providers' ways, as a client meets them."""

import asyncio
import re
from urllib.parse import urlsplit

import openai
import orjson
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionUserMessageParam

from asyncbench.providers.rate_headers import Span, allowances
from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.openai_wire import CHAT
from asyncbench.simulator.vendors import OWN, VENDORS

LONG = "What is 12345678 + 1?"
THINK = {"reasoning_effort": "low", "max_tokens": 1000}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
SHOWN = {  # the field of reasoning in a message and in a delta; not here: it is not shown
    **dict.fromkeys(["deepseek", "xai", "llamacpp"], "reasoning_content"),
    **dict.fromkeys(["openrouter", "groq", "cerebras", "ollama", "vllm"], "reasoning"),
}
UNASKED = {"openrouter", "transformers"}  # tell a stream's usage unasked
NO_LIMITS = {"deepseek", "openrouter", "gemini", "ollama", "vllm", "llamacpp", "transformers"}
NO_REQUEST_ID = {"ollama", "vllm", "llamacpp", "transformers"}


@pytest.fixture(params=list(VENDORS))
def like(request) -> str:
    """Each provider in turn."""
    return str(request.param)


def text_of(content):
    """The text of a message or delta, whose content may be parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def deltas(response):
    return [choice["delta"] for event in response.events for choice in event["choices"]]


# ── every provider ───────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_every_provider_is_read_by_openai_s_sdk(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    async with openai.AsyncOpenAI(base_url=f"{client.url}/v1", api_key="k", max_retries=0) as sdk:
        user: ChatCompletionUserMessageParam = {"role": "user", "content": LONG}
        answer = await sdk.chat.completions.create(model="oracle", messages=[user])
        stream = await sdk.chat.completions.create(model="oracle", messages=[user], stream=True)
        text = "".join([c.delta.content or "" async for chunk in stream for c in chunk.choices])

    assert answer.choices[0].message.content == text == "12345679"


async def test_reasoning_is_shown_where_the_provider_shows_it_and_the_text_is_the_same(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    message = (await client.ask(LONG, **THINK)).body["choices"][0]["message"]
    streamed = deltas(await client.ask(LONG, **THINK, **STREAM))
    names = {name for name in (*message, *(key for delta in streamed for key in delta)) if "reason" in name}

    assert names == {SHOWN[like]} if like in SHOWN else not names
    assert text_of(message["content"]) == "12345679"
    assert "".join(text_of(delta.get("content")) for delta in streamed) == "12345679"
    if like in SHOWN:
        told = "".join(delta.get(SHOWN[like], "") for delta in streamed)
        assert message[SHOWN[like]] == told != ""
        first = next(place for place, delta in enumerate(streamed) if delta.get("content"))
        assert not any(SHOWN[like] in delta for delta in streamed[first:])


async def test_reasoning_comes_only_where_it_is_asked_for(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    body = (await client.ask(LONG)).body

    assert set(body["choices"][0]["message"]) == {"role", "content", "refusal", "annotations"}
    assert body["usage"]["completion_tokens"] == 2


async def test_a_limit_within_the_thinking_leaves_no_text(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    body = (await client.ask(LONG, reasoning_effort="high", max_tokens=3)).body
    choice = body["choices"][0]

    assert (text_of(choice["message"]["content"]), choice["finish_reason"]) == ("", "length")
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 3


async def test_a_stream_tells_usage_as_the_provider_does(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    unasked = (await client.ask(LONG, stream=True)).events
    asked = (await client.ask(LONG, **STREAM)).events

    assert any("usage" in event for event in unasked) == (like in UNASKED)
    assert asked[-1]["usage"]["total_tokens"] == (await client.ask(LONG)).body["usage"]["total_tokens"]
    assert bool(asked[-1]["choices"]) == (like == "transformers")


async def test_a_stream_ends_with_done_but_for_transformers(simulator, like):
    response = await (await simulator(like=like, keep_alive=False)).ask(LONG, stream=True)

    assert response.content.endswith(b"data: [DONE]\n\n") == (like != "transformers")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"], ids=["openai", "anthropic"])
async def test_headers_are_those_that_the_provider_sends(simulator, like, path):
    client = await simulator(like=like, keep_alive=False, rpm=6000, tpm=10**6)
    wire = "anthropic" if "messages" in path else "openai"
    headers = (await client.ask(LONG, wire=wire)).headers

    assert any("ratelimit" in name for name in headers) == (like not in NO_LIMITS)
    assert any("request-id" in name for name in headers) == (like not in NO_REQUEST_ID)


async def test_a_429_says_when_to_come_again_but_for_gemini(simulator, like):
    client = await simulator(like=like, keep_alive=False, rpm=1)
    await client.ask(LONG)
    headers = (await client.ask(LONG)).headers

    assert ("retry-after" in headers) == (like != "gemini")
    assert ("retry-after-ms" in headers) == (like in {"openai", "azure"})
    if "retry-after-ms" in headers:
        assert int(headers["retry-after"]) * 1000 >= int(headers["retry-after-ms"]) > 0


async def test_every_answer_and_chunk_has_what_the_sdk_s_types_require(simulator, like):
    client = await simulator(like=like, keep_alive=False)
    response = await client.ask(LONG, **STREAM)

    ChatCompletion.model_validate((await client.ask(LONG)).body)
    assert len(response.events) > 3
    for event in response.events:
        if event["object"]:  # Azure's first chunk is no chunk
            ChatCompletionChunk.model_validate(event)


# ── one provider's own ───────────────────────────────────────────────────────────────────────


async def test_mistral_puts_thinking_into_parts_of_the_content(simulator):
    client = await simulator(like="mistral")
    thinking, text = (await client.ask(LONG, **THINK)).body["choices"][0]["message"]["content"]
    streamed = deltas(await client.ask(LONG, **THINK, **STREAM))
    parts = [
        part for delta in streamed if isinstance(delta.get("content"), list) for part in delta["content"]
    ]

    assert (thinking["type"], text) == ("thinking", {"type": "text", "text": "12345679"})
    assert "".join(part["thinking"][0]["text"] for part in parts) == thinking["thinking"][0]["text"]


async def test_mistral_refuses_seed_and_takes_random_seed(simulator):
    client = await simulator(like="mistral")
    refused = await client.ask(LONG, seed=7)

    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "seed"])
    assert (await client.ask(LONG, random_seed=7)).status == 200


@pytest.mark.parametrize(
    ("like", "comment"), [("deepseek", "keep-alive"), ("openrouter", "OPENROUTER PROCESSING")]
)
async def test_comments_come_before_the_first_token(simulator, like, comment):
    response = await (await simulator(like=like, keep_alive=False)).ask(LONG, stream=True)

    assert response.content.startswith(f": {comment}\n\n: {comment}\n\n".encode())
    assert b"\n:" not in response.content.partition(b"data: ")[2]


async def test_deepseek_sends_blank_lines_before_an_answer_and_tells_its_cache(simulator):
    messages = [{"role": "system", "content": "x" * 400}, {"role": "user", "content": LONG}]
    response = await (await simulator(like="deepseek")).ask("", messages=messages)
    usage = response.body["usage"]

    assert response.content.startswith(b"\n\n\n{")
    assert (usage["prompt_cache_hit_tokens"], usage["prompt_cache_miss_tokens"]) == (0, 106)


async def test_openrouter_says_what_a_call_cost_and_who_answered(simulator):
    client = await simulator(like="openrouter")
    body = (await client.ask(LONG)).body
    last = (await client.ask(LONG, stream=True)).events[-1]

    assert body["provider"] == last["provider"] == "Simulated"
    assert body["usage"] == last["usage"]
    assert body["usage"]["cost"] == pytest.approx(8e-6)


async def test_what_a_provider_tells_of_its_limits_is_read_as_they_are(simulator, like):
    client = await simulator(like=like, rpm=2, tpm=600, burst_s=60, keep_alive=False)
    whole, streamed, refused = [await client.ask(LONG, **more) for more in ({}, STREAM, {})]
    spans: dict[str, Span] = {"groq": "day"}

    assert (whole.status, streamed.status, refused.status) == (200, 200, 429)
    for response in (whole, streamed, refused):
        found = allowances(response.headers, requests_per=spans.get(like, "minute"))
        a_minute = {one.what: (one.limit or 0) * 60 / one.period_s for one in found}
        assert a_minute == ({} if like in NO_LIMITS else {"requests": 2, "tokens": 600})
        assert all((one.period_s == 86_400) == (one.what in by_day(like)) for one in found)
        assert all((one.reset_s is None) == (like == "mistral") for one in found)


def by_day(like):
    return {"requests"} if like in ("groq", "cerebras") else set()


async def test_groq_limits_requests_by_the_day_and_tells_usage_twice(simulator):
    client = await simulator(like="groq", rpm=60)
    response = await client.ask(LONG, stream=True)
    told = [event["x_groq"] for event in response.events if "x_groq" in event]

    assert response.headers["x-ratelimit-limit-requests"] == "86400"
    assert [set(one) for one in told] == [{"id"}, {"id", "usage"}]


async def test_cerebras_tells_resets_in_float_seconds(simulator):
    headers = (await (await simulator(like="cerebras", rpm=60, tpm=6000)).ask(LONG)).headers

    assert headers["x-ratelimit-limit-requests-day"] == "86400"
    assert headers["x-ratelimit-limit-tokens-minute"] == "6000"
    assert 0 < float(headers["x-ratelimit-reset-tokens-minute"]) < 1


async def test_gemini_tells_the_wait_in_the_body(simulator):
    client = await simulator(like="gemini", rpm=1)
    await client.ask(LONG)
    (said,) = (await client.ask(LONG)).body

    assert said["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert said["error"]["details"][0]["retryDelay"] in ("59s", "60s")


async def test_xai_leaves_reasoning_out_of_the_completion_tokens_alone(simulator):
    usage = (await (await simulator(like="xai")).ask(LONG, **THINK)).body["usage"]
    thought = usage["completion_tokens_details"]["reasoning_tokens"]

    assert (usage["completion_tokens"], thought > 0) == (2, True)
    assert usage["total_tokens"] == usage["prompt_tokens"] + 2 + thought


async def test_azure_says_what_its_filter_found(simulator):
    client = await simulator(like="azure")
    body = (await client.ask(LONG)).body
    first, second, *_ = (await client.ask(LONG, stream=True)).events

    assert {"content_filter_results"} <= set(body["choices"][0])
    assert (first["choices"], "prompt_filter_results" in first, "prompt_filter_results" in body) == (
        [],
        True,
        True,
    )
    assert {"content_filter_results"} <= set(second["choices"][0])


def written(**fields):
    """A call as it goes over the wire."""
    body = {"model": "oracle", "messages": [{"role": "user", "content": LONG}], **fields}
    data = orjson.dumps(body)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n"
    return f"{head}authorization: Bearer k\r\n\r\n".encode() + data


async def test_llamacpp_closes_the_connection_after_a_stream_and_only_then(simulator):
    place = urlsplit((await simulator(like="llamacpp")).url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    for _ in range(2):
        writer.write(written())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", head)[0]))
    writer.write(written(stream=True))
    to_the_end = await reader.read()
    writer.close()
    await writer.wait_closed()

    assert b"timeout=5, max=100" in to_the_end
    assert to_the_end.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize(("fields", "streams"), [({}, True), ({"stream": False}, False)], ids=str)
async def test_transformers_streams_responses_unless_told_not_to(simulator, fields, streams):
    client = await simulator(like="transformers")
    response = await client.ask(LONG, wire="responses", **fields)

    assert response.headers["content-type"].startswith("text/event-stream") == streams
    assert (await client.ask(LONG)).body["object"] == "chat.completion"


async def test_responses_show_reasoning_where_chat_does(simulator):
    body = (await (await simulator(like="vllm")).ask(LONG, wire="responses", **THINK)).body

    assert [part["type"] for part in body["output"][0]["content"]] == ["reasoning_text"]


# ── names ────────────────────────────────────────────────────────────────────────────────────


async def test_one_server_plays_as_many_providers_as_names_ask_for(simulator):
    client = await simulator()
    bodies = {name: (await client.ask(LONG, model=f"{name}:oracle", **THINK)).body for name in VENDORS}

    assert {name: body["model"] for name, body in bodies.items()} == {
        name: f"{name}:oracle" for name in VENDORS
    }
    assert bodies["openrouter"]["provider"] == "Simulated"
    assert bodies["deepseek"]["choices"][0]["message"]["reasoning_content"]
    assert bodies["openai"]["usage"]["completion_tokens_details"]["reasoning_tokens"]


async def test_a_provider_changes_no_answer_of_a_model(simulator, expected):
    client = await simulator()
    plain = [(await client.ask(question, model="noisy")).text for question in expected]

    assert plain == [(await client.ask(question, model="vllm:noisy")).text for question in expected]
    assert plain != list(expected.values())


async def test_each_provider_s_model_has_limits_and_counts_of_its_own(simulator):
    client = await simulator(rpm=1)

    assert [(await client.ask(LONG, model=name)).status for name in ("oracle", "groq:oracle")] == [200, 200]
    assert set((await client.stats())["models"]) == {"oracle", "groq:oracle"}


@pytest.mark.parametrize(
    "name", ["closedai:oracle", "mistral:", "mistral:nobody", "mistral:vllm:oracle", ":oracle"]
)
async def test_a_name_without_a_model_or_provider_is_refused(simulator, name):
    response = await (await simulator()).ask(LONG, model=name)

    assert (response.status, response.body["error"]["code"]) == (404, "model_not_found")


# ── the table ────────────────────────────────────────────────────────────────────────────────


def test_the_first_row_is_openai_itself():
    assert next(iter(VENDORS)) == OWN


def test_headers_of_limits_are_text():
    allowance = ToldAllowance(per_minute=60, remaining=0.5, reset_s=0.5)
    told = {
        name: one.limit_headers(CHAT, {"requests": allowance, "tokens": allowance})
        for name, one in VENDORS.items()
    }

    tells = {OWN, "azure", "xai", "mistral", "groq", "cerebras"}
    assert {name for name, headers in told.items() if headers} == tells
    assert {type(value) for headers in told.values() for value in headers.values()} == {str}
