"""What is said of OpenAI's models before anything is spent."""

import pytest

from asyncbench.providers.model_rules import openai_complaint
from tests.providers.asking import asking


def model(model_id, **fields):
    return asking(model_id=model_id, **fields).trial.model


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
def test_sampling_is_refused_for_models_that_reason(asked, rule):
    fault = openai_complaint(asked)

    assert fault is not None
    assert asked.model_id in fault
    assert rule in fault


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
def test_what_can_be_had_is_not_complained_of(asked):
    assert openai_complaint(asked) is None
