"""Gemini's replies, as its pages print them: thinking, blocked prompts and answers, usage, limits."""

import sys
from dataclasses import replace

import orjson
import pytest

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.pricing import charge, rates_at
from asyncbench.providers.error_kinds import refusal
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.provider import open_provider
from asyncbench.providers.quota_details import quota_details
from asyncbench.providers.streams import finished_reply
from asyncbench.providers.wire import Response
from asyncbench.records import Outcome, outcome_of
from tests.providers.asking import ADAPTERS, CONTENT, asking, failure_of
from tests.providers.raw_server import answering, events, sending, stream_of

RATINGS = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
USED = {"promptTokenCount": 8, "totalTokenCount": 8}
BLOCKED = (
    pytest.param({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "prompt", id="the prompt"),
    pytest.param({"candidates": [], "promptFeedback": {"blockReason": "OTHER"}}, "prompt", id="no reason"),
    pytest.param(
        {"candidates": [{"finishReason": "SAFETY", "safetyRatings": RATINGS}]}, "answer", id="the answer"
    ),
    pytest.param({"candidates": [{"finishReason": "RECITATION", "index": 0}]}, "answer", id="recited"),
)


@pytest.fixture
def adapter():
    (google,) = (adapter for adapter in ADAPTERS if adapter.name == "google")
    return google


def read(body):
    response = Response(status=200, headers={}, body=orjson.dumps(body))
    return finished_reply(ContentsWire().reply(body, response), response, None, key="")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("body", "what"), BLOCKED)
async def test_what_was_blocked_is_a_refusal_and_no_wrong_answer(server, provider, body, what, stream):
    body = {**body, "usageMetadata": USED, "modelVersion": "gemini-2.5-flash"}
    piece = orjson.dumps(body)
    server.manner = sending(stream_of(events(piece))) if stream else answering(body=piece)

    reply = await provider.ask(asking(stream=stream))

    assert outcome_of(reply, answer=None, exact_match=False) is Outcome.REFUSED
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("", 8, 0)
    assert f"the {what} was blocked: " in reply.note


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("headers", "used", "tier", "millionths"),
    [
        ({"x_gemini_service_tier": "standard"}, {}, "standard", 8 * 0.3 + 2 * 2.5),
        ({"x_gemini_service_tier": "flex"}, {}, "flex", 8 * 0.15 + 2 * 1.25),
        ({"x_gemini_service_tier": "priority"}, {}, "priority", 8 * 0.6 + 2 * 5.0),
        ({}, {"serviceTier": "SERVICE_TIER_FLEX"}, "flex", 8 * 0.15 + 2 * 1.25),
        ({}, {"trafficType": "ON_DEMAND"}, "on_demand", 8 * 0.3 + 2 * 2.5),
        ({}, {"trafficType": "ON_DEMAND_PRIORITY"}, "priority", 8 * 0.6 + 2 * 5.0),
        ({}, {"trafficType": "ON_DEMAND_FLEX"}, "flex", 8 * 0.15 + 2 * 1.25),
        ({}, {"trafficType": "PROVISIONED_THROUGHPUT"}, "provisioned_throughput", None),
    ],
)
async def test_the_tier_that_served_a_call_prices_it(
    server, provider, stream, headers, used, tier, millionths
):
    piece = orjson.dumps(
        {**CONTENT, "usageMetadata": {**USED, "candidatesTokenCount": 2, "totalTokenCount": 10, **used}}
    )
    if stream:
        told = "".join(f"{name.replace('_', '-')}: {word}\r\n" for name, word in headers.items())
        server.manner = sending(stream_of(events(piece), headers=told.encode()))
    else:
        server.manner = answering(body=piece, **headers)

    reply = await provider.ask(asking(stream=stream))

    rates = rates_at("gemini-2.5-flash", price=None, vendor="google")
    assert reply.service_tier == tier
    paid = charge(reply, rates, at_s=1.795e9, provider="google").usd
    assert paid == (None if millionths is None else pytest.approx(millionths / 1e6))


def test_a_cut_reply_is_known_as_one_and_thoughts_are_no_part_of_the_answer():
    parts = [{"text": "Adding.", "thought": True}, {"text": "4"}, {"text": "2", "thoughtSignature": "x"}]
    reply = read({"candidates": [{"content": {"parts": parts}, "finishReason": "MAX_TOKENS"}]})

    assert (reply.text, reply.reasoning) == ("42", "Adding.")
    assert reply.cut_short


async def test_thoughts_come_before_the_answer_and_are_told_apart(server, provider):
    pieces = [
        {"candidates": [{"content": {"parts": [{"text": "Adding.", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]},
        {"usageMetadata": {**USED, "candidatesTokenCount": 2, "thoughtsTokenCount": 30}},
    ]
    server.manner = sending(stream_of(*(events(orjson.dumps(piece)) for piece in pieces)))

    reply = await provider.ask(asking(stream=True, thinking_tokens=40))

    assert (reply.text, reply.reasoning) == ("42", "Adding.")
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (32, 30)
    assert server.received[0].body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 40}


@pytest.mark.parametrize("body", [{}, {"candidates": [{"finishReason": "MALFORMED_RESPONSE"}]}])
async def test_what_holds_no_answer_is_asked_again(server, provider, body):
    server.manner = answering(body=body)

    error = await failure_of(provider)

    assert error.kind in (ErrorKind.BAD_REPLY, ErrorKind.SERVER_ERROR)
    assert error.may_have_been_billed


# ── Refusals, word for word ──────────────────────────────────────────────────────────────────────────────
# The first two from googleapis/python-genai and RooCodeInc/Roo-Code (issues 2044 and 3883), with the limit
# in one of them as google-gemini/gemini-cli prints it; the key's from gemini-cli (25198).

RPC = "type.googleapis.com/google.rpc."
MESSAGE = (
    "You exceeded your current quota, please check your plan and billing details. For more information on "
    "this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
HELP = {
    "@type": f"{RPC}Help",
    "links": [
        {
            "description": "Learn more about Gemini API quotas",
            "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
        }
    ],
}
WHERE = {"location": "global", "model": "gemini-2.5-flash"}


def too_many(quota, limit, *, metric="requests", delay="26s"):
    violation = {
        "quotaMetric": f"generativelanguage.googleapis.com/generate_content_free_tier_{metric}",
        "quotaId": quota,
        "quotaDimensions": WHERE,
        "quotaValue": limit,
    }
    details = [{"@type": f"{RPC}QuotaFailure", "violations": [violation]}, HELP]
    details.append({"@type": f"{RPC}RetryInfo", "retryDelay": delay})
    return {
        "error": {"code": 429, "message": MESSAGE, "status": "RESOURCE_EXHAUSTED", "details": details},
    }


MINUTE = too_many(
    "GenerateContentInputTokensPerModelPerMinute-FreeTier", "250000", metric="input_token_count"
)
DAY = too_many("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "200", delay="47s")
NOTHING = too_many("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "0", delay="10.6s")


def refused(body, status=429):
    return refusal(Response(status=status, headers={}, body=orjson.dumps(body)), key="")


def test_a_minutes_limit_is_learnt_from_the_body_of_its_refusal():
    error = refused(MINUTE)
    (limit,) = error.allowances

    assert (error.kind, error.retry_after_s) == (ErrorKind.RATE_LIMITED, 26.0)
    assert (limit.what, limit.period_s, limit.limit) == ("input_tokens", 60.0, 250_000.0)
    assert (limit.remaining, limit.reset_s) == (0.0, 26.0)
    assert "GenerateContentInputTokensPerModelPerMinute-FreeTier (250000)" in error.message


def test_a_days_limit_is_back_at_midnight_in_california_whatever_wait_is_told():
    details = quota_details(DAY["error"]["details"], now=1_793_000_000.0)  # 07:33:20 UTC
    (limit,) = details.allowances

    assert (limit.what, limit.period_s, limit.limit) == ("requests", 86_400.0, 200.0)
    assert (details.retry_delay, limit.reset_s) == ("1600s", 1600.0)
    assert refused(DAY).kind is ErrorKind.RATE_LIMITED


def test_a_limit_of_nothing_is_not_waited_for():
    error = refused(NOTHING)
    assert (error.kind, error.allowances) == (ErrorKind.NO_QUOTA, ())


@pytest.mark.parametrize(
    ("status", "message", "reason", "kind"),
    [
        (400, "API Key not found. Please pass a valid API key.", "API_KEY_INVALID", ErrorKind.AUTH),
        (400, "User location is not supported for the API use.", None, ErrorKind.AUTH),
        (503, "The model is overloaded. Please try again later.", None, ErrorKind.OVERLOADED),
        (504, "Deadline expired before operation could complete.", None, ErrorKind.TIMEOUT),
        (
            404,
            "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.",
            None,
            ErrorKind.NO_SUCH_MODEL,
        ),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            None,
            ErrorKind.TOO_LONG,
        ),
        (400, "Thinking level is not supported for this model.", None, ErrorKind.BAD_REQUEST),
        (
            429,
            "Resource exhausted. Please try again later. Please refer to "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.",
            None,
            ErrorKind.RATE_LIMITED,
        ),
    ],
)
async def test_a_refusal_means_what_google_says(server, provider, status, message, reason, kind):
    details = [{"@type": f"{RPC}ErrorInfo", "reason": reason, "domain": "googleapis.com"}] if reason else []
    server.manner = answering(status, {"error": {"code": status, "message": message, "details": details}})

    error = await failure_of(provider)

    assert isinstance(error, ProviderError)
    assert error.kind is kind
    assert type(error.__cause__).__module__ == "google.genai.errors"


def test_without_the_sdk_its_extra_is_named(monkeypatch):
    for name in ("google.genai", "google.auth"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "asyncbench.providers.google.client", raising=False)
    for provider in ("google", "vertex"):
        model = replace(asking().trial.model, provider=provider, api="contents")
        with pytest.raises(ConfigError, match=r"pip install 'asyncbench\[google\]'"):
            open_provider(model, key="", simulator_url=None)
