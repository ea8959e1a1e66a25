"""What is said of Anthropic's and OpenAI's models before anything is spent."""

import subprocess
import sys

import pytest

from asyncbench.providers.params import claude_complaint, default_max_tokens, openai_complaint
from tests.providers.asking import asking


def model(model_id, **fields):
    return asking(model_id=model_id, **{"max_tokens": None, **fields}).trial.model


def refuses(complaint, asked, rule):
    fault = complaint(asked)
    assert fault is not None
    assert asked.model_id in fault
    assert rule in fault


@pytest.mark.parametrize(
    ("model_id", "longest"),
    [
        ("claude-opus-5-5", 128_000),
        ("claude-sonnet-4-6", 128_000),
        ("claude-haiku-4-5", 64_000),
        ("claude-haiku-4-5-20251001", 64_000),
        ("claude-opus-4-5@20251101", 64_000),
        ("oracle", 4_096),
        ("noisy", 4_096),
        ("noisy-2", 4_096),
        ("noisy-20251101-b", 4_096),
        ("noisyness", None),
        ("claude-opus-6", None),
        ("claude-opus-5-7", None),
        ("qwen3-32b", None),
    ],
)
def test_the_longest_reply_of_a_model_is_that_of_its_family(model_id, longest):
    assert default_max_tokens(model_id) == longest


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        pytest.param(model("claude-opus-6"), "Set `max_tokens`", id="unknown maximum"),
        pytest.param(model("qwen3-32b"), "Set `max_tokens`", id="of another vendor"),
        pytest.param(model("claude-sonnet-4-6", seed=1), "Remove `seed`", id="seed"),
        pytest.param(
            model("claude-opus-4-7", temperature=0.0), "accepts no temperature", id="4.7: temperature"
        ),
        pytest.param(model("claude-opus-5", top_p=0.9), "or top_p", id="5: top_p"),
        pytest.param(
            model("claude-novel-7", max_tokens=9, temperature=1.0), "accepts no", id="newer than this table"
        ),
        pytest.param(
            model("claude-sonnet-4-6", thinking_tokens=1023),
            "from 1,023 to at least 1,024",
            id="a small budget",
        ),
        pytest.param(
            model("claude-opus-4-7", thinking_tokens=2048), "Set `thinking: adaptive`", id="4.7: budget"
        ),
        pytest.param(
            model("claude-haiku-4-5-20251001", thinking="adaptive"),
            "Set `thinking_tokens`",
            id="4.5: adaptive",
        ),
        pytest.param(
            model("claude-sonnet-4-6", thinking_tokens=2048, temperature=1.0),
            "while it thinks",
            id="a budget and a temperature",
        ),
        pytest.param(
            model("claude-opus-4-6", thinking="adaptive", top_p=0.9),
            "while it thinks",
            id="adaptive and top_p",
        ),
    ],
)
def test_what_cannot_be_had_of_claude_is_refused_with_the_way_out(asked, rule):
    refuses(claude_complaint, asked, rule)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(model("claude-opus-5"), id="as it is"),
        pytest.param(model("claude-opus-6", max_tokens=9), id="unknown, with max_tokens"),
        pytest.param(model("claude-sonnet-4-6", temperature=0.0, top_p=0.9), id="4.6"),
        pytest.param(model("claude-opus-4-1-20250805", temperature=0.0, max_tokens=9), id="4.1"),
        pytest.param(model("claude-sonnet-4-20250514", temperature=0.0, max_tokens=9), id="4"),
        pytest.param(model("claude-3-7-sonnet-latest", temperature=0.0, max_tokens=9), id="3.7"),
        pytest.param(model("noisy-2", temperature=0.0), id="simulator"),
        pytest.param(model("qwen3-32b", temperature=0.0, max_tokens=9), id="another vendor's"),
        pytest.param(model("claude-opus-5", params={"temperature": 1.0}), id="params are the user's own"),
        pytest.param(model("claude-sonnet-4-6", thinking_tokens=1024), id="4.6: a budget"),
        pytest.param(model("claude-haiku-4-5", thinking_tokens=63_999), id="4.5: a large budget"),
        pytest.param(model("claude-opus-4-6", thinking="adaptive", effort="high"), id="4.6: adaptive"),
        pytest.param(model("claude-opus-5", thinking="adaptive", effort="max"), id="5: adaptive"),
        pytest.param(
            model("qwen3-32b", thinking_tokens=2048, temperature=0.6, max_tokens=4096),
            id="another vendor's, thinking",
        ),
    ],
)
def test_what_can_be_had_of_claude_is_not_complained_of(asked):
    assert claude_complaint(asked) is None


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        pytest.param(model("o1", temperature=0.0), "Remove them", id="o1"),
        pytest.param(model("o3-mini-2025-01-31", top_p=0.9), "Remove them", id="o3-mini"),
        pytest.param(model("o4-mini", temperature=0.0), "Remove them", id="o4-mini"),
        pytest.param(model("gpt-5", temperature=0.0), "Remove them", id="5"),
        pytest.param(model("gpt-5-2025-08-07", temperature=0.0), "Remove them", id="5, dated"),
        pytest.param(model("gpt-5-nano", temperature=0.0, effort="none"), "Remove them", id="5-nano"),
        pytest.param(model("gpt-5.2-chat-latest", temperature=0.0, effort="none"), "Remove them", id="chat"),
        pytest.param(model("gpt-5.1", temperature=0.0), "set `effort: none`", id="5.1"),
        pytest.param(
            model("gpt-5.4-mini", temperature=0.0, effort="low"), "set `effort: none`", id="5.4-mini"
        ),
        pytest.param(model("gpt-6.1-sol", top_p=0.5), "set `effort: none`", id="6.1"),
        pytest.param(model("openai/gpt-5", temperature=0.0), "Remove them", id="through a router"),
        pytest.param(model("ft:gpt-5-mini:us::a1", temperature=0.0), "Remove them", id="fine-tuned"),
        pytest.param(
            model("gpt-5.1", temperature=0.0, effort="none", params={"reasoning_effort": "high"}),
            "set `effort: none`",
            id="an effort in params wins",
        ),
    ],
)
def test_sampling_is_refused_for_openai_s_models_that_reason(asked, rule):
    refuses(openai_complaint, asked, rule)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(model("gpt-5"), id="as it is"),
        pytest.param(model("o3", temperature=1.0, effort="high"), id="the default temperature"),
        pytest.param(model("gpt-5.1-2025-11-13", temperature=0.0, effort="none"), id="5.1 without effort"),
        pytest.param(
            model("gpt-5.1", temperature=0.0, params={"reasoning_effort": "none"}), id="none in params"
        ),
        pytest.param(
            model("gpt-5.1", temperature=0.0, params={"reasoning": {"effort": "none"}}),
            id="none in params, as Responses have it",
        ),
        pytest.param(model("ft:gpt-4.1-mini:us::a1", temperature=0.0), id="fine-tuned 4.1"),
        pytest.param(model("gpt-5-chat-latest", temperature=0.0), id="a chat model"),
        pytest.param(model("gpt-4.1-mini", temperature=0.0, top_p=0.5), id="4.1"),
        pytest.param(model("gpt-4o", temperature=0.0), id="4o"),
        pytest.param(model("olmo-3-32b", temperature=0.0), id="another vendor's"),
        pytest.param(model("o3", params={"temperature": 0.0}), id="params are the user's own"),
        pytest.param(model("o3", temperature=0.0, simulated=True), id="simulated"),
    ],
)
def test_what_can_be_had_of_openai_is_not_complained_of(asked):
    assert openai_complaint(asked) is None


def test_asking_costs_no_sdk():
    """`config` complains before anything is loaded."""
    sdks = "{'openai', 'anthropic'}"
    code = f"import sys, asyncbench.providers.provider as _; sys.exit(not {sdks}.isdisjoint(sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # our own words
