"""Token counts of every provider in one form; what a provider does not say stays unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.providers.usage import from_anthropic, from_openai
from asyncbench.records import Usage


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 40,
                "total_tokens": 140,
                "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(
                input_tokens=100,
                cached_input_tokens=64,
                cache_write_tokens=8,
                output_tokens=40,
                reasoning_tokens=30,
            ),
            id="OpenAI: cached are part of the prompt, reasoning of the completion",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 40, "prompt_cache_hit_tokens": 64},
            Usage(input_tokens=100, cached_input_tokens=64, output_tokens=40),
            id="DeepSeek: cached under another name",
        ),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 140,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(input_tokens=100, output_tokens=40, reasoning_tokens=30),
            id="xAI: reasoning beside the completion, which the total tells",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": None, "prompt_tokens_details": None},
            Usage(input_tokens=100),
            id="null is unknown",
        ),
        pytest.param(
            {"prompt_tokens": "100", "completion_tokens": -1, "total_tokens": True},
            Usage(),
            id="no number is unknown",
        ),
        pytest.param({"completion_tokens": 12.0}, Usage(output_tokens=12), id="a whole number with a point"),
    ],
)
def test_a_chat_completion(raw, usage):
    assert from_openai(raw) == usage


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        pytest.param(
            {
                "input_tokens": 20,
                "cache_creation_input_tokens": 300,
                "cache_read_input_tokens": 4000,
                "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
                "output_tokens": 50,
                "output_tokens_details": {"thinking_tokens": 40},
            },
            Usage(
                input_tokens=4320,
                cached_input_tokens=4000,
                cache_write_tokens=300,
                cache_write_1h_tokens=200,
                output_tokens=50,
                reasoning_tokens=40,
            ),
            id="input is all of it: uncached, read and written",
        ),
        pytest.param(
            {"input_tokens": 1, "cache_read_input_tokens": 10, "output_tokens": 5},
            Usage(input_tokens=11, cached_input_tokens=10, output_tokens=5),
            id="llama.cpp",
        ),
        pytest.param({"output_tokens": 5}, Usage(output_tokens=5), id="without input it is unknown"),
        pytest.param({"input_tokens": 0}, Usage(input_tokens=0), id="nought is known"),
    ],
)
def test_a_message(raw, usage):
    assert from_anthropic(raw) == usage


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_output_is_never_less_than_the_completion_nor_than_the_total_leaves(prompt, completion, total):
    usage = from_openai({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total})

    assert usage.output_tokens == max(completion, total - prompt)
