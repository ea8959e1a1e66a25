"""What is asked, and what makes two ways of asking the same."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.prompting import TrialIds, asked_as, characters, request_for, sent_parameters
from asyncbench.records import Condition, Limits, Message, Model, Price, RetryPolicy, Timeouts
from tests.engine.night import requests

PLAIN = Condition()
MODEL = Model(alias="a", provider="openai", model_id="m", api="chat")


def test_the_question_is_asked_as_it_stands_and_nothing_is_added():
    trial = requests(1)[0].trial
    request = request_for(trial)
    assert request.messages == (Message(role="user", content=trial.problem.question),)
    assert request.system is None
    assert characters(request) == len(trial.problem.question)


def test_a_system_prompt_goes_along_where_the_sweep_sets_one():
    trial = requests(1, replace(MODEL, system="be brief"))[0].trial
    assert request_for(trial).system == "be brief"


def test_only_what_the_sweep_sets_is_sent():
    assert sent_parameters(MODEL) == {}
    assert sent_parameters(replace(MODEL, temperature=0.0, params={"a": 1})) == {"temperature": 0.0, "a": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "http"},
        {"model_id": "n"},
        {"api": "messages"},
        {"base_url": "http://localhost:1/v1"},
        {"system": "s"},
        {"temperature": 0.0},
        {"top_p": 0.5},
        {"seed": 1},
        {"max_tokens": 5},
        {"params": {"verbosity": "low"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_shapes_a_reply_makes_another_trial(change):
    assert asked_as(replace(MODEL, **change), PLAIN) != asked_as(MODEL, PLAIN)


@pytest.mark.parametrize(
    "change",
    [
        {"alias": "b"},
        {"key_env": "K"},
        {"price": Price(input=1, output=1)},
        {"limits": Limits(rpm=1)},
        {"retry": RetryPolicy(attempts=1)},
        {"timeouts": Timeouts(total=1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_no_reply_leaves_the_trial_the_same(change):
    assert asked_as(replace(MODEL, **change), PLAIN) == asked_as(MODEL, PLAIN)


def test_the_name_of_a_condition_leaves_the_trial_the_same_and_its_style_does_not():
    assert asked_as(MODEL, Condition(name="other")) == asked_as(MODEL, PLAIN)
    assert asked_as(MODEL, Condition(style="completion")) != asked_as(MODEL, PLAIN)


def test_a_simulators_address_is_a_free_port_and_leaves_the_trial_the_same():
    simulated = replace(MODEL, simulated=True)
    assert asked_as(simulated, PLAIN) == asked_as(replace(simulated, base_url="http://127.0.0.1:1"), PLAIN)


def test_a_trial_id_is_32_hex_characters_and_stays_what_it_was():
    # A golden value: were it to change, every finished trial would be asked and paid for again.
    assert TrialIds(MODEL, PLAIN).of("p", prompt_version=1, repeat=0) == "f9c9932bc4322348e6d7c8d6835fe003"


@given(st.sets(st.tuples(st.text("ab", max_size=3), st.integers(1, 3), st.integers(0, 3)), min_size=2))
def test_problem_prompt_version_and_repeat_each_make_another_trial(trials):
    ids = TrialIds(MODEL, PLAIN)
    assert len({ids.of(p, prompt_version=v, repeat=r) for p, v, r in trials}) == len(trials)
