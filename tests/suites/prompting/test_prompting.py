"""What is asked, and what makes two ways of asking the same."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from asyncbench.problems.schema import identified
from asyncbench.records import Condition, Limits, Message, Model, Price, RetryPolicy, Timeouts, Trial
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.suites.requests import (
    FIELDS,
    TrialIds,
    characters,
    characters_before_question,
    most_characters,
    most_input_tokens,
    most_tokens_before,
    request_for,
    sent_parameters,
    way_of_asking,
    worded_size,
)
from tests.world.night import requests

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


TALK = (Message(role="user", content="hi"), Message(role="assistant", content="hello"))


def test_what_a_condition_says_first_comes_before_the_question():
    trial = replace(requests(1)[0].trial, condition=Condition(system="be brief", turns=TALK))
    request = request_for(trial)
    assert request.system == "be brief"
    assert request.messages == (*TALK, Message(role="user", content=trial.problem.question))
    assert characters(request) == len("be briefhihello") + len(trial.problem.question)
    assert characters_before_question(trial.model, trial.condition) == len("be briefhihello")


def nupa(condition: Condition, model: Model = MODEL) -> Trial:
    """A trial of a suite that says more than its question."""
    (problem,) = identified([draft_nupa(TASKS["add_Integer_Integer_Integer"], ("744", "543"))])
    return replace(requests(1, model)[0].trial, problem=problem, condition=condition)


def test_a_suite_that_asks_in_words_of_its_own_puts_them_around_the_question():
    trial = nupa(Condition(shots=2, turns=TALK))
    request = request_for(trial)
    assert str(request.system).startswith("You are a capable math assistant.")
    assert request.messages[:2] == TALK
    assert [one.role for one in request.messages] == ["user", "assistant"] * 3 + ["user"]
    assert request.messages[-1].content == trial.problem.question


def test_a_models_system_prompt_goes_before_the_suites_and_a_conditions_takes_its_place():
    own = request_for(nupa(PLAIN)).system
    assert request_for(nupa(PLAIN, replace(MODEL, system="/no_think"))).system == f"/no_think\n\n{own}"
    assert request_for(nupa(Condition(system="just the number"))).system == "just the number"
    assert request_for(nupa(Condition(style="completion"))).system is None


@pytest.mark.parametrize(
    "condition",
    [
        PLAIN,
        Condition(shots=5),
        Condition(style="completion", shots=3),
        Condition(style="rules"),
        Condition(system="s", turns=TALK),
        Condition(shots=2, digits=("spaced",)),
        Condition(template="{question}\n{question}", system="{task}!", turns=TALK, shots=2),
        Condition(template="{suite}: {question}", digits=("indexed",), style="completion", shots=1),
    ],
    ids=["chat", "shots", "completion", "rules", "system", "digits", "template", "both"],
)
def test_what_is_counted_before_a_request_is_made_is_what_it_holds(condition):
    trial = nupa(condition)
    counted = worded_size(trial.problem, condition)[0] + characters_before_question(trial.model, condition)
    assert counted == characters(request_for(trial))
    most = worded_size(trial.problem, condition)[1] + most_tokens_before(trial.model, condition)
    assert most == most_input_tokens(request_for(trial))
    longest = most_characters(condition, "nupa", len(trial.problem.question))
    assert counted <= characters_before_question(trial.model, condition) + longest


def test_only_what_the_sweep_sets_is_sent():
    assert sent_parameters(MODEL) == {}
    assert sent_parameters(replace(MODEL, temperature=0.0, params={"a": 1})) == {"temperature": 0.0, "a": 1}


def asked_with(change):
    """What is asked where a field of the model or of the condition has another value."""
    of, fields = change
    return (
        way_of_asking(replace(MODEL, **fields), PLAIN)
        if of == "model"
        else way_of_asking(MODEL, Condition(**fields))
    )


def changes(*pairs):
    """Parametrize by changes, each named by its field."""
    named = [pytest.param(pair, id=f"{pair[0]}: {next(iter(pair[1]))}") for pair in pairs]
    return pytest.mark.parametrize("change", named)


@changes(
    ("model", {"provider": "http"}),
    ("model", {"model_id": "n"}),
    ("model", {"api": "messages"}),
    ("model", {"base_url": "http://localhost:1/v1"}),
    ("model", {"system": "s"}),
    ("model", {"temperature": 0.0}),
    ("model", {"top_p": 0.5}),
    ("model", {"seed": 1}),
    ("model", {"max_tokens": 5}),
    ("model", {"params": {"verbosity": "low"}}),
    ("model", {"replay": "results/x"}),
    ("condition", {"style": "completion"}),
    ("condition", {"system": "s"}),
    ("condition", {"turns": TALK}),
    ("condition", {"shots": 5}),
    ("condition", {"params": {"a": 1}}),
    ("condition", {"template": "{question}"}),
    ("condition", {"digits": ("reversed",)}),
)
def test_what_shapes_a_reply_makes_another_trial(change):
    assert asked_with(change) != way_of_asking(MODEL, PLAIN)


@changes(
    ("model", {"alias": "b"}),
    ("model", {"key_env": "K"}),
    ("model", {"price": Price(input=1, output=1)}),
    ("model", {"limits": Limits(rpm=1)}),
    ("model", {"retry": RetryPolicy(attempts=1)}),
    ("model", {"timeouts": Timeouts(total=1)}),
    ("condition", {"name": "other"}),
    ("condition", {"suites": frozenset({"custom"})}),
    ("condition", {"described": {"context": "4k"}}),
)
def test_what_changes_no_reply_leaves_the_trial_the_same(change):
    assert asked_with(change) == way_of_asking(MODEL, PLAIN)


def test_the_same_system_prompt_is_the_same_trial_whoever_sets_it():
    assert way_of_asking(MODEL, Condition(system="s")) == way_of_asking(replace(MODEL, system="s"), PLAIN)


def test_a_condition_has_the_last_word_on_a_parameter():
    model = replace(MODEL, temperature=1.0, params={"a": 1})
    asked = way_of_asking(model, Condition(params={"temperature": 0.0, "a": 2}))
    assert asked == way_of_asking(replace(MODEL, temperature=0.0, params={"a": 2}), PLAIN)


def test_a_simulators_address_is_a_free_port_and_leaves_the_trial_the_same():
    simulated = replace(MODEL, simulated=True)
    assert way_of_asking(simulated, PLAIN) == way_of_asking(
        replace(simulated, base_url="http://127.0.0.1:1"), PLAIN
    )


def test_an_imported_trial_is_another_in_every_run():
    ids = {run: TrialIds(MODEL, PLAIN, run=run) for run in (None, "a", "b")}
    assert len({one.make("p", prompt_version=1, repeat=0) for one in ids.values()}) == 3


ASKED_IN = "Task {task}: {question}\n{{{operands}}}"


def test_a_template_is_filled_with_what_a_problem_is_and_never_with_its_answer():
    (problem,) = identified([draft_nupa(TASKS["add_Integer_Integer_Integer"], ("744", "543"))])
    talk = (Message(role="user", content="A {suite}?"), Message(role="assistant", content="{{}}"))
    example = (Message(role="user", content="1 + {1}"), Message(role="assistant", content="{2}"))
    condition = Condition(
        template=ASKED_IN,
        system="{representation}",
        turns=(*talk, *example),
        examples=2,
        digits=("reversed",),
    )
    request = request_for(replace(nupa(condition), problem=problem))
    assert request.system == "integer"
    said = [message.content for message in request.messages]
    assert said[:2] == ["A nupa?", "{}"]
    assert said[2:4] == ["Task add: 1 + {1}\n{447, 345}", "{2}"]
    assert said[4].startswith("Task add: Directly return")
    assert said[4].endswith("like 123 . Add two numbers: 447 + 345 =\n{447, 345}")
    assert "expected" not in FIELDS
    assert "extra" not in FIELDS


@given(st.text(), st.text())
def test_braces_in_data_are_safe(question, task):
    trial = requests(1)[0].trial
    problem = replace(trial.problem, question=question, task=task)
    condition = Condition(template="{task}|{question}|{{}}")
    (asked,) = request_for(replace(trial, problem=problem, condition=condition)).messages
    assert asked.content == f"{task}|{question}|{{}}"


def test_worked_examples_of_a_suite_are_asked_in_the_template_and_in_the_form():
    shown = request_for(nupa(Condition(shots=1, template="Q: {question}", digits=("grouped",))))
    plain = request_for(nupa(Condition(shots=1)))
    assert shown.messages[0].content.startswith("Q: Directly")
    (asked, said), (bare, answer) = shown.messages[:2], plain.messages[:2]
    assert asked.content.replace(",", "") == f"Q: {bare.content}".replace(",", "")
    assert "," in said.content
    assert said.content.replace(",", "") == answer.content


@given(st.sets(st.tuples(st.text("ab", max_size=3), st.integers(1, 3), st.integers(0, 3)), min_size=2))
def test_problem_prompt_version_and_repeat_each_make_another_trial(trials):
    ids = TrialIds(MODEL, PLAIN)
    assert len({ids.make(p, prompt_version=v, repeat=r) for p, v, r in trials}) == len(trials)
