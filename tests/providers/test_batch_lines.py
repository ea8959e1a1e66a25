"""What a line of a batch's results means, of each vendor: as of a single call. Add a case: one line."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import orjson
import pytest

from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.batch_calls import BatchApi
from asyncbench.providers.provider import open_batches
from asyncbench.records import UNTRUE_USAGE, Reply, outcome_of
from tests.providers.dialects import REFUSALS
from tests.providers.test_untrue_usage import CASES, TEXT, UNTOLD, chat, contents, counts, message

KEY = "sk-secret-0123456789"


class Vendor(NamedTuple):
    """How a vendor writes a line: around an answer with a text and an account, and around a refusal."""

    model: str
    answer: Callable[[str, dict[str, Any]], dict[str, Any]]
    finish: Callable[[dict[str, Any], str], None]  # writes a finish reason into an answer
    names: tuple[str, str, str]  # of input, output and total
    answered: Callable[[object], Mapping[str, object]]
    refused: Callable[[int, object], Mapping[str, object]] | None


VENDORS = {
    "openai": Vendor(
        "openai/gpt-4o-mini",
        chat,
        lambda answer, word: answer["choices"][0].update(finish_reason=word),
        ("prompt_tokens", "completion_tokens", "total_tokens"),
        lambda body: {"custom_id": "a", "response": {"status_code": 200, "body": body}},
        lambda status, body: {"custom_id": "a", "response": {"status_code": status, "body": body}},
    ),
    "anthropic": Vendor(
        "anthropic/claude-haiku-4-5",
        message,
        lambda answer, word: answer.update(stop_reason=word),
        ("input_tokens", "output_tokens", "_"),
        lambda body: {"custom_id": "a", "result": {"type": "succeeded", "message": body}},
        None,  # its families alone
    ),
    "google": Vendor(
        "google/gemini-2.5-flash",
        contents,
        lambda answer, word: answer["candidates"][0].update(finishReason=word),
        ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
        lambda body: {"key": "a", "response": body},
        None,  # an error of google.rpc alone
    ),
}
of_each = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)


@cache
def api_of(vendor: Vendor) -> BatchApi:
    entry = {"model": vendor.model, "mode": "batch", "max_tokens": 50}
    (model,) = load_sweep({"name": "x", "problems": ["p"], "models": [entry]}).models
    return open_batches(model, key=KEY, simulator_url=None)


def read(vendor: Vendor, line: Mapping[str, object]) -> Reply | ProviderError:
    read_line = api_of(vendor).read(orjson.dumps(line))
    assert isinstance(read_line.ended, Reply | ProviderError)
    return read_line.ended


def answered(vendor: Vendor, word: str) -> Reply | ProviderError:
    answer = vendor.answer("Let me add 12", dict(zip(vendor.names, (10, 20, 30), strict=True)))
    vendor.finish(answer, word)
    return read(vendor, vendor.answered(answer))


@of_each
@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("max_tokens", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("SAFETY", "refused"),
        ("content_filter", "refused"),
        ("safety_filter", "refused"),
        ("brand_new", "wrong"),
    ],
)
def test_a_finish_reason_means_the_same_in_a_batch(vendor, word, outcome):
    reply = answered(vendor, word)

    assert isinstance(reply, Reply)
    assert outcome_of(reply, answer="12", exact_match=False) == outcome
    if word == "brand_new":
        assert "unknown finish reason 'brand_new' was ignored" in (reply.note or "")


@of_each
@pytest.mark.parametrize("word", ["abort", "network_error", "upstream_error", "MALFORMED_RESPONSE"])
def test_a_broken_generation_of_a_batch_is_asked_again_and_may_be_billed(vendor, word):
    error = answered(vendor, word)

    assert isinstance(error, ProviderError)
    assert (error.kind, error.may_have_been_billed) == (ErrorKind.SERVER_ERROR, True)


@of_each
@pytest.mark.parametrize(("told", "text", "believed"), CASES)
def test_only_a_usage_that_can_be_true_is_believed_of_a_batch(vendor, told, text, believed):
    if vendor.model.startswith("google") and told == (UNTOLD, 300, UNTOLD):
        believed = (None, None)  # without its input, nothing tells what Gemini counts where
    used = {name: count for name, count in zip(vendor.names, told, strict=True) if count is not UNTOLD}
    reply = read(vendor, vendor.answered(vendor.answer(text, used)))

    assert isinstance(reply, Reply)
    assert counts(reply) == believed
    assert (UNTRUE_USAGE in (reply.note or "")) == (None in believed)
    assert TEXT.startswith(reply.text) or reply.text == text


OF_LINES = [refusal for refusal in REFUSALS if refusal.status >= 300 and isinstance(refusal.body, dict)]


@pytest.mark.parametrize("refusal", OF_LINES, ids=lambda refusal: refusal.whose)
def test_a_refusal_means_the_same_in_a_batch_and_costs_nothing(refusal):
    vendor = VENDORS["openai"]
    assert vendor.refused is not None
    error = read(vendor, vendor.refused(refusal.status, refusal.body))

    assert isinstance(error, ProviderError)
    assert (error.kind, error.may_have_been_billed) == (refusal.kind, False)
