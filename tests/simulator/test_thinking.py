"""How much a request lets a model think, and what it then thinks."""

import pytest
from hypothesis import given, strategies as st

from asyncbench.simulator.asked import EFFORTS, LONGEST, UNSAID, reasoning_of, think_tokens
from asyncbench.simulator.wire import RefusedError, WireRequest, answer_of, tokens


def asked(max_tokens=None):
    return WireRequest(model="m", question="q", prompt_characters=1, max_tokens=max_tokens, stream=None)


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ({}, 0),
        ({"reasoning_effort": "none"}, 0),
        ({"reasoning_effort": "low"}, EFFORTS["low"]),
        ({"reasoning": {"effort": "high"}}, EFFORTS["high"]),
        ({"reasoning": {"max_tokens": 50}}, 50),
        ({"reasoning": {"summary": "auto"}}, 0),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, 2000),
        ({"thinking": {"type": "enabled", "budget_tokens": 10**6}}, LONGEST),
        ({"thinking": {"type": "adaptive"}}, EFFORTS[UNSAID]),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, EFFORTS["max"]),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}, 0),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}, "output_config": {"effort": "low"}}, 9),
        ({"output_config": {"effort": "medium"}}, EFFORTS["medium"]),
        ({"extra_body": {"google": {"thinking_config": {"thinking_budget": 77}}}}, 77),
        ({"google": {"thinking_config": {"thinking_budget": 0}}}, 0),
    ],
    ids=str,
)
def test_thinking_is_as_long_as_the_request_lets_it_be(body, most):
    assert think_tokens(body) == most


@pytest.mark.parametrize(
    "body",
    [{"reasoning_effort": "some"}, {"reasoning": {"effort": 3}}, {"thinking": {"budget_tokens": -1}}],
    ids=str,
)
def test_what_cannot_be_understood_is_refused(body):
    with pytest.raises(RefusedError):
        think_tokens(body)


@given(st.integers(1, LONGEST), st.text(max_size=9))
def test_thinking_takes_half_to_all_of_its_tokens_and_holds_no_number(most, seed):
    text = reasoning_of(most, seed)

    assert most / 2 <= tokens(len(text)) <= most
    assert not any(map(str.isdigit, text))
    assert text == reasoning_of(most, seed)


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 300))
def test_a_limit_cuts_the_text_first_and_then_the_thinking(thought, said, most):
    answer = answer_of(asked(max_tokens=most), "s" * 4 * said, "t" * 4 * thought)

    assert answer.output_tokens == min(most, thought + said)
    assert answer.reasoning_tokens == tokens(len(answer.reasoning)) == min(most, thought)
    assert len(answer.text) == 4 * max(0, min(most - thought, said))
    assert answer.cut == (most < thought + said)
