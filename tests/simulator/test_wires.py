"""Both vendors' shapes, as their own SDKs read them."""

import re
from datetime import UTC, datetime

import anthropic
import openai
import pytest
from anthropic.types import Message, ModelInfo
from openai.types import Model
from openai.types.chat import ChatCompletion

from asyncbench.simulator.openai_wire import go_duration
from asyncbench.simulator.settings import parse_fault
from asyncbench.simulator.wire import tokens

QUESTION = "What is 10 + 10?"
LONG = "What is 12345678 + 1?"
USER = {"role": "user", "content": QUESTION}


def ask_openai(client, **fields):
    return client.chat.completions.create(**{"model": "oracle", "messages": [USER]} | fields)


def ask_anthropic(client, **fields):
    return client.messages.create(**{"model": "oracle", "messages": [USER], "max_tokens": 9} | fields)


# ── answers ──────────────────────────────────────────────────────────────────────────────────


async def test_openai_s_sdk_reads_an_answer(openai_sdk):
    answer = await ask_openai(await openai_sdk())

    assert (answer.object, answer.model, answer.system_fingerprint) == (
        "chat.completion",
        "oracle",
        "simulated",
    )
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("20", "stop")
    assert answer.usage.model_dump(include={"prompt_tokens", "completion_tokens", "total_tokens"}) == {
        "prompt_tokens": 4,
        "completion_tokens": 1,
        "total_tokens": 5,
    }
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert answer.usage.completion_tokens_details.reasoning_tokens == 0
    assert answer._request_id.startswith("simulated-")


async def test_anthropic_s_sdk_reads_an_answer(anthropic_sdk):
    answer = await ask_anthropic(await anthropic_sdk())

    assert (answer.type, answer.role, answer.model) == ("message", "assistant", "oracle")
    assert ([block.text for block in answer.content], answer.stop_reason) == (["20"], "end_turn")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (4, 1)
    assert (answer.usage.cache_read_input_tokens, answer.usage.cache_creation_input_tokens) == (0, 0)
    assert answer.usage.service_tier == "standard"
    assert answer._request_id.startswith("simulated-")


@pytest.mark.parametrize(("wire", "type_"), [("openai", ChatCompletion), ("anthropic", Message)])
async def test_an_answer_has_the_fields_that_the_sdk_s_type_requires(simulator, wire, type_):
    body = (await (await simulator()).ask(QUESTION, wire=wire)).body

    assert set((type_.model_validate(body).model_extra) or {}) <= {"system_fingerprint"}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_openai_says_length_when_a_reply_was_cut(openai_sdk, name):
    messages = [{"role": "user", "content": LONG}]
    answer = await ask_openai(await openai_sdk(), messages=messages, **{name: 1})

    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 1)


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "What is 11 + 11?"}, {"role": "assistant", "content": "22"}, USER],
        [USER, {"role": "assistant", "content": "The answer is"}],
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "10 + 10?"}],
            }
        ],
    ],
    ids=["after examples", "before a prefill", "in parts"],
)
async def test_the_question_is_the_last_message_of_the_user(simulator, wire, messages):
    client = await simulator()

    assert (await client.ask("", wire=wire, messages=messages)).text == "20"


async def test_the_system_prompt_counts_as_input(openai_sdk, anthropic_sdk):
    system = {"role": "system", "content": "x" * 400}
    by_openai = await ask_openai(await openai_sdk(), messages=[system, USER])
    by_anthropic = await ask_anthropic(await anthropic_sdk(), system="x" * 400)

    assert by_openai.usage.prompt_tokens == by_anthropic.usage.input_tokens == 104


@pytest.mark.parametrize(("characters", "expected"), [(0, 1), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_a_token_is_four_characters_and_there_is_at_least_one(characters, expected):
    assert tokens(characters) == expected


async def test_an_empty_reply_has_no_content_block_in_anthropic_s_format(simulator):
    client = await simulator()
    replies = [await client.ask(LONG, model=f"noisy-{n}", wire="anthropic") for n in range(500)]
    empty = next(reply for reply in replies if not reply.text)

    assert (empty.body["content"], empty.body["usage"]["output_tokens"]) == ([], 1)


# ── models ───────────────────────────────────────────────────────────────────────────────────


async def test_openai_s_sdk_lists_the_models(openai_sdk):
    page = await (await openai_sdk()).models.list()

    assert [model.id for model in page.data] == ["oracle", "noisy"]
    assert all(Model.model_validate(model.model_dump()) for model in page.data)


async def test_anthropic_s_sdk_lists_the_models(anthropic_sdk):
    models = [model async for model in (await anthropic_sdk()).models.list()]

    assert [model.id for model in models] == ["oracle", "noisy"]
    assert all(ModelInfo.model_validate(model.model_dump()) for model in models)


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "error", "type_"),
    [
        ("429=1", anthropic.RateLimitError, "rate_limit_error"),
        ("500=1", anthropic.InternalServerError, "api_error"),
        ("529=1", anthropic.OverloadedError, "overloaded_error"),
        ("dead_key=1", anthropic.AuthenticationError, "authentication_error"),
        ("no_quota=1", anthropic.EnforcedSpendLimitReachedError, "rate_limit_error"),
    ],
)
async def test_anthropic_s_sdk_raises_its_own_error_for_a_fault(anthropic_sdk, fault, error, type_):
    client = await anthropic_sdk(faults=(parse_fault(fault),))

    with pytest.raises(error) as caught:
        await ask_anthropic(client)

    assert caught.value.type == type_
    assert caught.value.request_id.startswith("simulated-")


async def test_an_unknown_question_is_not_found_and_named(openai_sdk, anthropic_sdk):
    messages = [{"role": "user", "content": "What is love?"}]
    with pytest.raises(openai.NotFoundError, match=r"What is love\?") as by_openai:
        await ask_openai(await openai_sdk(), messages=messages)
    with pytest.raises(anthropic.NotFoundError, match=r"What is love\?") as by_anthropic:
        await ask_anthropic(await anthropic_sdk(), messages=messages)

    assert (by_openai.value.code, by_anthropic.value.error_code) == ("unknown_question", "unknown_question")


# ── limits ───────────────────────────────────────────────────────────────────────────────────


async def test_openai_s_headers_tell_the_limits(simulator):
    client = await simulator(rpm=2, tpm=600, burst_s=60)
    headers = (await client.ask(QUESTION)).headers

    assert (headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) == ("2", "1")
    assert headers["x-ratelimit-limit-tokens"] == "600"
    assert int(headers["x-ratelimit-remaining-tokens"]) == 595  # 4 asked and 1 answered
    assert re.fullmatch(r"30s|29\.\d+s", headers["x-ratelimit-reset-requests"])


async def test_anthropic_s_headers_tell_the_limits(simulator):
    client = await simulator(rpm=2, tpm=600, input_tpm=300, output_tpm=300, burst_s=60)
    headers = (await client.ask(QUESTION, wire="anthropic")).headers

    assert headers["anthropic-ratelimit-requests-limit"] == "2"
    assert headers["anthropic-ratelimit-requests-remaining"] == "1"
    assert [headers[f"anthropic-ratelimit-{what}tokens-remaining"] for what in ("", "input-", "output-")] == [
        "595",
        "296",
        "299",
    ]
    reset = datetime.strptime(headers["anthropic-ratelimit-requests-reset"], "%Y-%m-%dT%H:%M:%S%z")
    assert reset > datetime.now(UTC)


async def test_anthropic_s_tokens_repeat_the_stricter_of_its_limits(simulator):
    client = await simulator(input_tpm=600, output_tpm=300, burst_s=60)
    headers = (await client.ask(QUESTION, wire="anthropic")).headers

    assert headers["anthropic-ratelimit-tokens-limit"] == "300"
    assert headers["anthropic-ratelimit-tokens-remaining"] == "299"


async def test_without_limits_there_are_no_headers_of_limits(simulator):
    client = await simulator()
    responses = [await client.ask(QUESTION, wire=wire) for wire in ("openai", "anthropic")]

    assert [response.status for response in responses] == [200, 200]
    assert not [name for response in responses for name in response.headers if "ratelimit" in name]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0001, "1ms"),
        (0.02, "20ms"),
        (1, "1s"),
        (59.56, "59.56s"),
        (360, "6m0s"),
        (3600, "1h0m0s"),
        (3723, "1h2m3s"),
    ],
)
def test_a_duration_is_written_the_way_go_prints_it(seconds, text):
    assert go_duration(seconds) == text
