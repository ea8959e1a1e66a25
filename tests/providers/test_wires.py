"""What a wire format or an endpoint has no words for is known before anything is spent."""

from dataclasses import replace

import pytest

from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.params import wire_complaint
from asyncbench.providers.provider import WIRES
from tests.providers.asking import asking
from tests.rows import each_row

EVERYTHING = Quirks(thinking="thinking_budget")  # an endpoint that has words for all that a format can say
SAYABLE = {  # key → the formats that can say it
    "effort": {"chat", "responses", "messages", "contents"},
    "thinking_tokens": {"chat", "messages", "contents"},
    "thinking": {"messages"},
    "seed": {"chat", "completions", "contents"},
    "temperature": set(WIRES),
    "top_p": set(WIRES),
    "max_tokens": set(WIRES),
}
VALUES = {"effort": "low", "thinking": "adaptive", "temperature": 0.0, "top_p": 0.5}


def model(api, **fields):
    return replace(asking(**{"max_tokens": None, **fields}).trial.model, api=api, provider="acme")


@each_row("key", SAYABLE)
@each_row("api", WIRES)
def test_a_format_is_asked_only_for_what_it_can_say(api, key):
    fault = wire_complaint(model(api, **{key: VALUES.get(key, 2048)}), EVERYTHING)

    assert (fault is None) == (api in SAYABLE[key])
    assert fault is None or f"{api!r} has no {key}. Remove `{key}`" in fault


@pytest.mark.parametrize(
    ("quirks", "asked"),
    [
        pytest.param(Quirks(), {"thinking_tokens": 2048}, id="no budget"),
        pytest.param(Quirks(effort=None), {"effort": "low"}, id="no effort"),
        pytest.param(Quirks(seed=None), {"seed": 0}, id="no seed"),
        pytest.param(Quirks(rejects=["top_p"]), {"top_p": 0.5}, id="rejected"),
        pytest.param(Quirks(rejects=["max_tokens"]), {"max_tokens": 5}, id="rejected too"),
    ],
)
def test_an_endpoint_is_asked_only_for_what_it_takes(quirks, asked):
    (key,) = asked

    assert f"acme does not accept `{key}`" in (wire_complaint(model("chat", **asked), quirks) or "")
    assert wire_complaint(model("chat", params=asked), quirks) is None  # params are the user's own


@pytest.mark.parametrize(
    ("api", "keys", "way_out"),
    [
        pytest.param(
            "chat", {"thinking_tokens": 2000, "max_tokens": 1000}, "Raise `max_tokens`", id="no room"
        ),
        pytest.param("chat", {"thinking_tokens": 2000, "max_tokens": 2000}, "lower `thinking", id="no more"),
        pytest.param("messages", {"thinking_tokens": 2048, "max_tokens": 2048}, "Raise", id="messages"),
        pytest.param(
            "chat",
            {"thinking_tokens": 2000, "effort": "low"},
            "accepts `effort` or `thinking_tokens`, not both. Remove one",
            id="and effort",
        ),
        pytest.param("contents", {"thinking_tokens": 2000, "effort": "low"}, "not both", id="Gemini"),
        pytest.param(
            "contents", {"model_id": "gemini-2.5-pro", "effort": "low"}, "Set `thinking_tokens`", id="older"
        ),
    ],
)
def test_a_budget_for_thinking_must_fit_in_with_the_other_keys(api, keys, way_out):
    assert way_out in (wire_complaint(model(api, **keys), EVERYTHING) or "")


@pytest.mark.parametrize(
    ("api", "keys"),
    [
        pytest.param("chat", {"thinking_tokens": 2000, "max_tokens": 2001}, id="room for an answer"),
        pytest.param("chat", {"max_tokens": 10, "effort": "low"}, id="an effort alone"),
        pytest.param("messages", {"thinking_tokens": 2000, "effort": "low"}, id="Anthropic takes both"),
        pytest.param("contents", {"model_id": "gemini-3.8-flash", "effort": "low"}, id="a level of Gemini's"),
        pytest.param(
            "chat", {"params": {"thinking_budget": 9}, "max_tokens": 5}, id="params are the user's own"
        ),
    ],
)
def test_a_budget_for_thinking_that_fits_is_not_complained_of(api, keys):
    assert wire_complaint(model(api, **keys), EVERYTHING) is None


def test_a_name_that_no_model_has_rejects_nothing():
    assert wire_complaint(model("chat", top_p=0.5), Quirks(rejects=["logprobs"])) is None
