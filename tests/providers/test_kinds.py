"""What a refusal means, by the body's code first, then by its words, then by its status."""

import orjson
import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.error_bodies import ErrorBody, read_error
from asyncbench.providers.error_kinds import kind_of, payload
from asyncbench.providers.wire import Response
from tests.providers.dialects import REFUSALS, Refusal
from tests.rows import each_row


def kind(status, body, wait_s=None):
    return kind_of(status, read_error(body if isinstance(body, bytes) else orjson.dumps(body)), wait_s=wait_s)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, ErrorKind.NO_SUCH_MODEL),
        (400, ErrorKind.BAD_REQUEST),
        (401, ErrorKind.AUTH),
        (402, ErrorKind.NO_QUOTA),
        (403, ErrorKind.AUTH),
        (404, ErrorKind.NO_SUCH_MODEL),
        (405, ErrorKind.NO_SUCH_MODEL),
        (407, ErrorKind.AUTH),
        (408, ErrorKind.TIMEOUT),
        (409, ErrorKind.SERVER_ERROR),
        (413, ErrorKind.TOO_LONG),
        (418, ErrorKind.BAD_REQUEST),
        (422, ErrorKind.BAD_REQUEST),
        (425, ErrorKind.SERVER_ERROR),
        (429, ErrorKind.RATE_LIMITED),
        (500, ErrorKind.SERVER_ERROR),
        (502, ErrorKind.SERVER_ERROR),
        (503, ErrorKind.OVERLOADED),
        (504, ErrorKind.TIMEOUT),
        (511, ErrorKind.AUTH),
        (520, ErrorKind.SERVER_ERROR),
        (529, ErrorKind.OVERLOADED),
        (200, ErrorKind.BAD_REPLY),
    ],
)
def test_a_body_that_says_nothing_leaves_it_to_the_status(status, expected):
    assert kind(status, b"") is expected


def error(code=None, type_=None, message="told", **more):
    return {"error": {"message": message, "type": type_, "code": code, **more}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        pytest.param(429, error("insufficient_quota"), ErrorKind.NO_QUOTA, id="OpenAI: quota used up"),
        pytest.param(429, error(None, "insufficient_quota"), ErrorKind.NO_QUOTA, id="as the type"),
        pytest.param(400, error("billing_hard_limit_reached"), ErrorKind.NO_QUOTA, id="OpenAI: hard limit"),
        pytest.param(
            429,
            error(None, "rate_limit_error", details={"error_code": "contract_spend_limit_reached"}),
            ErrorKind.NO_QUOTA,
            id="Anthropic: contract used up",
        ),
        pytest.param(
            429,
            error(None, "rate_limit_error", details={"error_code": "ramp_limit_exceeded"}),
            ErrorKind.RATE_LIMITED,
            id="Anthropic: growing too fast",
        ),
        pytest.param(
            403, error("model_not_found"), ErrorKind.NO_SUCH_MODEL, id="OpenAI: not for this project"
        ),
        pytest.param(
            404,
            error("unknown_question", "invalid_request_error"),
            ErrorKind.BAD_REQUEST,
            id="our simulator: a question it does not know",
        ),
        pytest.param(
            404,
            error(None, "invalid_request_error", details={"error_code": "unknown_question"}),
            ErrorKind.BAD_REQUEST,
            id="the same in Anthropic's format",
        ),
        pytest.param(
            400, error("unsupported_parameter"), ErrorKind.REJECTED_PARAMETER, id="OpenAI: parameter"
        ),
        pytest.param(400, error("unsupported_value"), ErrorKind.REJECTED_PARAMETER, id="OpenAI: value"),
        pytest.param(400, error("unknown_parameter"), ErrorKind.REJECTED_PARAMETER, id="OpenAI: no such one"),
        pytest.param(
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "not permitted"}]},
            ErrorKind.REJECTED_PARAMETER,
            id="Mistral: seed",
        ),
        pytest.param(400, error("organization_on_hold"), ErrorKind.AUTH, id="Anthropic: account stopped"),
        pytest.param(403, error("content_policy_violation"), ErrorKind.BLOCKED, id="a 403 for the content"),
        pytest.param(
            400,
            error("other", innererror={"code": "ResponsibleAIPolicyViolation"}),
            ErrorKind.BLOCKED,
            id="Azure: content filter",
        ),
        pytest.param(500, error(None, "overloaded_error"), ErrorKind.OVERLOADED, id="overloaded as a 500"),
        pytest.param(400, error(400, "exceed_context_size_error"), ErrorKind.TOO_LONG, id="llama-server"),
        pytest.param(
            413, error("rate_limit_exceeded", "tokens"), ErrorKind.TOO_LONG, id="Groq: over the TPM"
        ),
    ],
)
def test_the_code_in_the_body_comes_before_the_status(status, body, expected):
    assert kind(status, body) is expected


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        pytest.param(400, "Your credit balance is too low to use the API.", ErrorKind.NO_QUOTA, id="credit"),
        pytest.param(
            400, "You have reached your specified API usage limits.", ErrorKind.NO_QUOTA, id="limit set"
        ),
        pytest.param(402, "Insufficient Balance", ErrorKind.NO_QUOTA, id="DeepSeek"),
        pytest.param(429, "Key crossed its budget", ErrorKind.NO_QUOTA, id="litellm"),
        pytest.param(400, "API key not valid. Pass a valid one.", ErrorKind.AUTH, id="Gemini: key"),
        pytest.param(400, "Incorrect API key provided", ErrorKind.AUTH, id="xAI: key"),
        pytest.param(
            400, "This model's maximum context length is 2048 tokens.", ErrorKind.TOO_LONG, id="vLLM"
        ),
        pytest.param(
            400, "prompt is too long: 250000 tokens > 200000 maximum", ErrorKind.TOO_LONG, id="Anthropic"
        ),
        pytest.param(400, "exceeds the available context size", ErrorKind.TOO_LONG, id="llama.cpp"),
        pytest.param(400, "Model Not Exist", ErrorKind.NO_SUCH_MODEL, id="DeepSeek: model"),
        pytest.param(
            400, "Invalid model name passed in model=x", ErrorKind.NO_SUCH_MODEL, id="litellm: model"
        ),
        pytest.param(400, "x/y is not a valid model ID", ErrorKind.NO_SUCH_MODEL, id="OpenRouter: model"),
        pytest.param(403, "Your input was flagged", ErrorKind.BLOCKED, id="OpenRouter: moderation"),
        pytest.param(
            400, "temperature does not support 0 with this model", ErrorKind.BAD_REQUEST, id="parameter"
        ),
        pytest.param(500, "the context length of my patience", ErrorKind.SERVER_ERROR, id="words of a 500"),
        pytest.param(
            429, "You exceeded your current quota", ErrorKind.RATE_LIMITED, id="Gemini: of this minute"
        ),
    ],
)
def test_words_are_believed_where_no_code_tells(status, message, expected):
    assert kind(status, error(message=message)) is expected


def test_a_budget_that_fills_again_is_a_rate():
    body = error(message="token budget of this minute is used")

    assert kind(429, body, wait_s=12.0) is ErrorKind.RATE_LIMITED
    assert kind(429, body) is ErrorKind.NO_QUOTA


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(error(402), ErrorKind.NO_QUOTA, id="a status as a number"),
        pytest.param(error("429"), ErrorKind.RATE_LIMITED, id="a status as text"),
        pytest.param(error(None, "server_error"), ErrorKind.SERVER_ERROR, id="a family"),
        pytest.param(error(None, "overloaded_error"), ErrorKind.OVERLOADED, id="a code"),
        pytest.param({"error": "model 'x' not found"}, ErrorKind.NO_SUCH_MODEL, id="words"),
        pytest.param({"error": "out of cheese"}, ErrorKind.BAD_REPLY, id="nothing known"),
    ],
)
def test_a_200_with_an_error_is_read_by_what_the_body_has(body, expected):
    assert kind(200, body) is expected


@given(st.integers(100, 999), st.text(), st.lists(st.text(max_size=30)), st.none() | st.integers(0, 10**6))
def test_every_refusal_has_a_kind(status, text, codes, body_status):
    body = ErrorBody(text=text, codes=tuple(codes), status=body_status)

    assert isinstance(kind_of(status, body, wait_s=None), ErrorKind)


def test_words_are_read_in_linear_time():
    for words in ("model " * 10**6, "api key " * 10**6, "crossed " * 10**6, "<" * 10**7):
        assert kind(400, words.encode()) is ErrorKind.BAD_REQUEST


@each_row("refusal", REFUSALS)
def test_each_dialect_of_a_refusal_means_what_its_vendor_says(refusal: Refusal):
    body = orjson.dumps(refusal.body)

    assert kind(refusal.status, body) is refusal.kind
    if refusal.status == 200:  # it is told from an answer
        with pytest.raises(ProviderError) as raised:
            payload(Response(status=200, headers={}, body=body), key="")
        assert raised.value.kind is refusal.kind


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"id": "x", "object": "file", "status": "processed"},
        {"candidates": [], "message": "ok"},
        {"error": None, "error_code": 0, "content": []},
    ],
)
def test_an_answer_that_also_holds_a_word_of_success_is_no_refusal(answer):
    assert payload(Response(status=200, headers={}, body=orjson.dumps(answer)), key="") == answer
