"""What each wire format writes: what the sweep says, in the format's own words, and nothing else."""

import itertools
from dataclasses import replace

import pytest

from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.provider import WIRES
from asyncbench.providers.wire import nest
from asyncbench.records import Condition, Message
from asyncbench.suites.requests import merged_params
from tests.providers.asking import PROBLEM, asking
from tests.rows import each_row

TURNS = (Message(role="user", content="1+1"), Message(role="assistant", content="2"))
QUESTION = {"role": "user", "content": PROBLEM.question}


def said(role, text):
    """A turn of contents."""
    return {"role": role, "parts": [{"text": text}]}


SHOTS = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}, QUESTION]

ASKED = {  # what is asked → the request
    "plain": asking(model_id="m", max_tokens=None),
    "effort": asking(model_id="m", max_tokens=None, effort="high"),
    "budget": asking(model_id="m", max_tokens=None, thinking_tokens=2048),
    "adaptive": asking(model_id="m", max_tokens=None, thinking="adaptive"),
    "temperature": asking(model_id="m", max_tokens=None, temperature=0.0, top_p=0.9),
    "seed": asking(model_id="m", max_tokens=None, seed=0),
    "max_tokens": asking(model_id="m", max_tokens=50),
    "system": asking("Be brief.", model_id="m", max_tokens=None),
    "shots": asking(
        messages=(*TURNS, Message(role="user", content=PROBLEM.question)), model_id="m", max_tokens=None
    ),
    "stream": asking(model_id="m", max_tokens=None, stream=True),
}
PLAIN: dict[str, dict[str, object]] = {  # wire format → what it says when nothing is asked for but an answer
    "chat": {"model": "m", "messages": [QUESTION]},
    "completions": {"model": "m", "prompt": PROBLEM.question},
    "responses": {"model": "m", "input": [QUESTION], "stream": False},
    "messages": {"model": "m", "messages": [QUESTION]},
    "contents": {"contents": [said("user", PROBLEM.question)]},
}
SAMPLING: dict[str, object] = {"temperature": 0.0, "top_p": 0.9}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
ADDED: dict[str, dict[str, dict[str, object]]] = {  # wire format → what is asked → what is said beside it
    "chat": {
        "plain": {},
        "effort": {"reasoning_effort": "high"},
        "temperature": SAMPLING,
        "seed": {"seed": 0},
        "max_tokens": {"max_completion_tokens": 50},
        "system": {"messages": [{"role": "system", "content": "Be brief."}, QUESTION]},
        "shots": {"messages": SHOTS},
        "stream": STREAM,
    },
    "completions": {
        "plain": {},
        "temperature": SAMPLING,
        "seed": {"seed": 0},
        "max_tokens": {"max_tokens": 50},
        "system": {"prompt": f"Be brief.\n{PROBLEM.question}"},
        "shots": {"prompt": f"1+1\n2\n{PROBLEM.question}"},
        "stream": STREAM,
    },
    "responses": {
        "plain": {},
        "effort": {"reasoning": {"effort": "high"}},
        "temperature": SAMPLING,
        "max_tokens": {"max_output_tokens": 50},
        "system": {"instructions": "Be brief."},
        "shots": {"input": SHOTS},
        "stream": {"stream": True},
    },
    "messages": {
        "plain": {},
        "effort": {"output_config": {"effort": "high"}},
        "budget": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        "adaptive": {"thinking": {"type": "adaptive"}},
        "temperature": SAMPLING,
        "max_tokens": {"max_tokens": 50},
        "system": {"system": "Be brief."},
        "shots": {"messages": SHOTS},
        "stream": {"stream": True},
    },
    "contents": {
        "plain": {},
        "effort": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}},
        "budget": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2048}}},
        "temperature": {"generationConfig": {"temperature": 0.0, "topP": 0.9}},
        "seed": {"generationConfig": {"seed": 0}},
        "max_tokens": {"generationConfig": {"maxOutputTokens": 50}},
        "system": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
        "shots": {
            "contents": [said("user", "1+1"), said("model", "2"), said("user", PROBLEM.question)],
        },
        "stream": {},  # the address says so
    },
}


@pytest.mark.parametrize(
    ("api", "quirks", "asked", "added"),
    [
        pytest.param(
            "chat",
            Quirks(effort="reasoning.effort", thinking="reasoning.max_tokens"),
            {"effort": "low", "thinking_tokens": 2048},
            {"reasoning": {"effort": "low", "max_tokens": 2048}},
            id="OpenRouter",
        ),
        pytest.param(
            "completions",
            Quirks(seed="random_seed", usage_in_streams="unasked"),
            {"seed": 7, "max_tokens": 9, "stream": True},
            {"random_seed": 7, "max_tokens": 9, "stream": True},
            id="Mistral",
        ),
    ],
)
def test_an_endpoints_quirks_change_the_words(api, quirks, asked, added):
    request = asking(**{"model_id": "m", "max_tokens": None, **asked})

    assert WIRES[api](quirks).body(request) == PLAIN[api] | added


@pytest.mark.parametrize("api", WIRES)
def test_params_come_last_the_conditions_after_the_models(api):
    request = asking(model_id="m", top_p=0.9, params={"top_p": 0.8, "a": 1, "b": {"of": "model"}})
    condition = Condition(params={"a": 2, "b": {"or": "condition"}})

    body = WIRES[api](Quirks()).body(replace(request, trial=replace(request.trial, condition=condition)))

    assert (body["top_p"], body["a"], body["b"]) == (0.8, 2, {"or": "condition"})


@pytest.mark.parametrize(
    ("api", "asked", "params", "whole"),
    [
        pytest.param(
            "responses",
            {"effort": "high"},
            {"reasoning": {"summary": "auto"}, "store": False},
            {"reasoning": {"effort": "high", "summary": "auto"}, "store": False},
            id="a summary beside the effort",
        ),
        pytest.param(
            "messages",
            {"thinking": "adaptive"},
            {"thinking": {"display": "omitted"}},
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            id="a display beside the thinking",
        ),
        pytest.param(
            "chat",
            {"stream": True},
            {"stream_options": {"include_obfuscation": False}},
            {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
            id="an option beside the usage",
        ),
    ],
)
def test_params_add_to_an_object_of_ours(api, asked, params, whole):
    request = asking(model_id="m", max_tokens=None, params=params, **asked)

    assert WIRES[api](Quirks()).body(request) == PLAIN[api] | whole


@each_row(("api", "asked"), list(itertools.product(WIRES, ASKED)))
def test_writing_a_body_changes_nothing_of_the_request(api, asked):
    wire = WIRES[api](Quirks())

    assert wire.body(ASKED[asked]) == wire.body(ASKED[asked])
    assert ASKED[asked].trial.model.params == {}


def test_a_path_is_written_as_objects():
    assert nest("a.b.c", 0) == {"a": {"b": {"c": 0}}}
    assert nest("a", None) == nest(None, 1) == {}


def test_merging_leaves_both_sides_as_they_were():
    ours, given = {"a": {"b": 1}}, {"a": {"c": 2}, "d": 3}

    assert merged_params(ours, given) == {"a": {"b": 1, "c": 2}, "d": 3}
    assert (ours, given) == ({"a": {"b": 1}}, {"a": {"c": 2}, "d": 3})
