"""One problem set asked in several ways: which trials that makes, and what is refused before any call."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest

from asyncbench import generate, read_trials, run_sweep
from asyncbench.config.sweep import as_mapping, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.sweep_plan import plan
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on
from asyncbench.published.llm_arithmetic.tables import progress
from asyncbench.run.summary import Exit
from asyncbench.store.manifest import planned, read_manifest
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.suites.requests import TrialIds
from tests.sweep_files import entry, problem_set, simulator, sweep

TALK = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


@pytest.fixture
def sets(tmp_path):
    """144 arithmetic problems and 10 strings."""
    strings = tmp_path / "strings.parquet"
    generate("string_reversal", strings, seed=1, tries=10)
    return [problem_set(tmp_path), strings]


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK))
    return str(path)


def asked(out, sets, *conditions, models=("simulated/oracle",), **keys):
    """Run against a simulator that comes and goes by itself."""
    return asyncio.run(run_sweep(sweep(out, sets, *models, conditions=list(conditions)), **keys))


@pytest.mark.long
def test_each_condition_asks_the_suites_it_is_for_and_says_so_in_the_results(tmp_path, sets, talk):
    out = tmp_path / "out"
    summary = asked(
        out,
        sets,
        {"name": "plain"},
        {"name": "talk", "context": talk, "suites": ["string_reversal"]},
        {"name": "brief", "system": "be brief", "params": {"verbosity": "low"}},
    )
    assert summary.exit is Exit.COMPLETE

    rows = read_trials(out).to_pylist()
    assert Counter((row["condition"], row["suite"]) for row in rows) == {
        ("plain", "llm_arithmetic"): 144,
        ("plain", "string_reversal"): 10,
        ("talk", "string_reversal"): 10,
        ("brief", "llm_arithmetic"): 144,
        ("brief", "string_reversal"): 10,
    }
    assert len({row["trial_id"] for row in rows}) == len(rows)
    described = {row["condition"]: json.loads(row["condition_params"]) for row in rows}
    assert described["plain"] == {}
    assert described["talk"]["context"] == talk
    assert described["brief"] == {"system": "be brief", "params": {"verbosity": "low"}}


@pytest.mark.long
def test_a_condition_may_be_for_some_models_with_parameters_of_its_own(tmp_path, sets):
    out = tmp_path / "out"
    models = (
        {"model": "simulated/oracle", "alias": "thinks", "effort": ["none", "low"]},
        {"model": "simulated/noisy", "temperature": 0.5},
    )
    conditions = (
        {"name": "plain"},
        {
            "name": "hard",
            "models": ["thinks effort=low"],
            "effort": "high",
            "suites": ["string_reversal"],
            "system": "x",
        },
        {"name": "cold", "models": ["*/noisy"], "temperature": 0},
    )
    sweep_file = sweep(out, sets, *models, conditions=list(conditions))
    expected = {"thinks effort=none": 154, "thinks effort=low": 164, "simulated/noisy": 308}
    assert {each.model: each.trials for each in plan(sweep_file).models} == expected
    assert asyncio.run(run_sweep(sweep_file)).exit is Exit.COMPLETE

    rows = read_trials(out).to_pylist()
    assert Counter(row["model"] for row in rows) == expected
    sent = {(row["model"], row["condition"]): (row["effort"], json.loads(row["params"])) for row in rows}
    assert sent == {
        ("thinks effort=none", "plain"): ("none", {"effort": "none"}),
        ("thinks effort=low", "plain"): ("low", {"effort": "low"}),
        ("thinks effort=low", "hard"): ("high", {"effort": "high"}),
        ("simulated/noisy", "plain"): (None, {"temperature": 0.5}),
        ("simulated/noisy", "cold"): (None, {"temperature": 0.0}),
    }
    plans = {(alias, name) for _, alias, name in planned(read_manifest(out))}
    assert plans == set(sent)
    again = asyncio.run(run_sweep(out / "sweep.yaml"))
    assert all(counters.open == 0 and counters.attempts == 0 for counters in again.models.values())


def test_a_condition_asks_what_a_model_with_its_parameters_would():
    def ids(model, condition):
        one = sweep_from({"name": "s", "problems": ["p"], "models": [model], "conditions": [condition]})
        return TrialIds(one.models[0], one.conditions[0]).make("x", prompt_version=1, repeat=0)

    own = {"model": "openai/gpt-5-mini", "effort": "high", "temperature": 1}
    low = {"model": "openai/gpt-5-mini", "effort": "low"}
    wins = {"name": "hard", "effort": "high", "temperature": 1, "models": ["openai/gpt-5-mini"]}
    assert ids(own, {"name": "plain"}) == ids(low, wins) != ids(low, {"name": "plain"})


def test_the_models_of_a_condition_are_those_that_its_patterns_fit():
    def meant(*patterns):
        models = [
            {"model": "openai/gpt-5", "effort": ["low", "high"]},
            {"model": ["openai/gpt-5-mini", "simulated/oracle"], "seed": [1, 2]},
        ]
        conditions = [{"name": "all"}, {"name": "some", "system": "x", "models": list(patterns)}]
        found = sweep_from({"name": "s", "problems": ["p"], "models": models, "conditions": conditions})
        assert sweep_from(as_mapping(found)) == found
        return found.conditions[1].models

    both = {f"openai/gpt-5 effort={effort}" for effort in ("low", "high")}
    minis = {f"openai/gpt-5-mini seed={seed}" for seed in (1, 2)}
    assert meant("openai/gpt-5") == both
    assert meant("openai/*") == both | minis
    assert meant("openai/gpt-5 effort=high", "*seed=2") == {
        *("openai/gpt-5 effort=high", "openai/gpt-5-mini seed=2", "simulated/oracle seed=2")
    }


def test_a_model_streams_where_a_condition_makes_it_think():
    models = ["openai/gpt-5", "openai/gpt-5-mini"]
    hard = {"name": "hard", "effort": "high", "models": ["openai/gpt-5"]}
    made = sweep_from({"name": "s", "problems": ["p"], "models": models, "conditions": [{"name": "a"}, hard]})
    assert [model.stream for model in made.models] == [True, False]


@pytest.mark.parametrize(
    ("models", "condition", "said"),
    [
        ([], {"models": ["openai/gtp-5"]}, "no model is called 'openai/gtp-5'. Did you mean 'openai/gpt-5'?"),
        ([], {"models": []}, "'models' must not be empty"),
        (["simulated/oracle"], {"models": ["openai/gpt-5"]}, "no condition asks 'simulated/oracle'"),
        ([{"model": "openai/o3", "params": {"reasoning_effort": "low"}}], {"effort": "high"}, "would win"),
        ([{"model": "openai/o3", "params": {"temperature": 1}}], {"temperature": 1}, "would win"),
        (["anthropic/claude-fable-5"], {"temperature": 0}, "temperature"),
    ],
)
def test_a_condition_that_does_not_suit_its_models_is_refused(models, condition, said):
    raw = {"name": "s", "problems": ["p"], "models": ["openai/gpt-5", *models]}
    with pytest.raises(ConfigError, match=r"line|conditions|models") as caught:
        sweep_from(raw | {"conditions": [{"name": "odd", "system": "x"} | condition]})
    assert said in str(caught.value)


@pytest.mark.long
def test_padding_is_counted_by_the_server_and_changes_no_answer(tmp_path, sets):
    out = tmp_path / "out"
    asked(out, sets, {"name": "plain"}, {"name": "padded", "context": "4k"})
    rows = read_trials(out).to_pylist()
    tokens = {
        (row["problem_id"], row["condition"]): row["input_tokens"] for row in rows if row["exact_match"]
    }
    assert len(tokens) == 2 * 154
    for problem in {row["problem_id"] for row in rows}:
        assert tokens[problem, "padded"] - tokens[problem, "plain"] == pytest.approx(3704, rel=0.05)


def test_the_folder_knows_what_was_planned(tmp_path, sets, talk):
    out = tmp_path / "out"
    conditions = [{"name": "plain"}, {"name": "talk", "context": talk, "suites": ["string_reversal"]}]
    summary = asked(out, sets, *conditions, limit=20)

    plans = {asked[2]: suites for asked, suites in planned(read_manifest(out)).items()}
    assert plans == {
        "plain": {
            "llm_arithmetic": dict.fromkeys(ARITHMETIC_TASKS, 18),
            "string_reversal": {"string_reversal": 10},
        },
        "talk": {"string_reversal": {"string_reversal": 10}},
    }
    (counters,) = summary.models.values()
    assert " % (2 conditions together)" in summary.as_text()
    rows = read_trials(out)
    assert counters.planned == rows.num_rows > 20
    assert len(set(rows["problem_id"].to_pylist())) == 20


@pytest.mark.long
def test_a_condition_that_is_taken_out_keeps_the_plan_it_had(tmp_path):
    problems, out = tmp_path / "few.parquet", tmp_path / "out"
    generate("llm_arithmetic", problems, seed=1, depths="5-6", trials=2)
    asked(out, [problems], {"name": "p"}, {"name": "ctx", "context": "1k"}, limit=20)
    again = asked(out, [problems], {"name": "p"})
    assert "together" not in again.as_text()
    p, ctx = llm_arithmetic_report_on(out).rows
    assert (p.condition, progress(p), p.valid, p.complete) == ("p", "32 of 32", True, True)
    assert (ctx.condition, progress(ctx), ctx.valid, ctx.complete) == ("ctx", "20 of 32", False, False)


@pytest.fixture
def digits(tmp_path):
    """NUPA's digit_max of integers, which has a rule, and of decimals, which has none."""
    path = tmp_path / "digits.parquet"
    generate("nupa", path, seed=1, per_length=1, tasks="digit_max,sig", lengths="5,30")
    return path


@pytest.mark.parametrize(
    ("asks", "condition", "said"),
    [
        ("sets", {"style": "completion"}, "llm_arithmetic has no style 'completion', only chat"),
        ("sets", {"shots": 5}, "llm_arithmetic defines no worked examples"),
        ("sets", {"shots": "shots.jsonl"}, "llm_arithmetic takes no worked examples of your own"),
        ("sets", {"suites": ["custom"]}, "the problem sets hold only llm_arithmetic"),
        ("digits", {"shots": 19}, "nupa has 18 worked examples for each task"),
        ("digits", {"shots": 1, "style": "rules"}, "no worked examples in style 'rules'"),
        ("digits", {"shots": "shots.jsonl"}, "nupa takes no worked examples of your own"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_made(
    tmp_path, monkeypatch, request, asks, condition, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shots.jsonl").write_text('{"question": "1+1?", "answer": "2"}')
    with pytest.raises(ConfigError) as caught:
        asked(tmp_path / "out", request.getfixturevalue(asks), {"name": "odd"} | condition)
    assert "condition 'odd'" in str(caught.value)
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["file", "suite"])
def test_a_task_without_a_rule_is_refused_before_any_call(tmp_path, digits, given):
    out, rules = tmp_path / "out", {"name": "by-rule", "style": "rules"}
    made = {"suite": "nupa", "per_length": 1, "tasks": ["digit_max", "sig"], "lengths": "5,30"}
    own = {"problems": [made]} if given == "suite" else {}
    with simulator(digits) as server:
        ran = sweep(out, digits, entry(server, "simulated/oracle", **own), conditions=[rules])
        with pytest.raises(ConfigError) as caught:
            asyncio.run(run_sweep(ran))
        with pytest.raises(ConfigError):
            plan(ran)
        assert server.stats()["requests"] == 0
    assert "condition 'by-rule': nupa has no rule for digit_max of representation 'float'" in str(
        caught.value
    )
    assert "sig of representation 'float'; nupa has no rule for sig of representation 'integer'" in str(
        caught.value
    )


def test_a_set_that_calls_something_else_a_task_of_a_suite_is_refused_before_any_call(tmp_path, digits):
    odd = tmp_path / "odd.parquet"
    named = [replace(one, task="cube") for one in open_set(digits).read()]
    write_problems(named, odd)
    with pytest.raises(ConfigError, match="nupa has no task cube"):
        asked(tmp_path / "out", [odd], {"name": "plain"})


def test_a_rule_is_not_missed_where_the_condition_is_for_other_suites(tmp_path, sets):
    conditions = [{"name": "chat"}, {"name": "by-rule", "style": "rules", "suites": ["nupa"]}]
    covered = tmp_path / "covered.parquet"
    generate("nupa", covered, seed=1, per_length=1, tasks="floordiv", lengths="3")
    summary = asked(tmp_path / "out", [sets[1], covered], *conditions)
    assert summary.exit is Exit.COMPLETE
    rows = read_trials(tmp_path / "out").to_pylist()
    assert Counter((row["suite"], row["style"]) for row in rows) == {
        ("string_reversal", "chat"): 10,
        ("nupa", "chat"): 1,
        ("nupa", "rules"): 1,
    }


def test_problems_that_no_condition_is_for_are_refused(tmp_path, sets):
    with pytest.raises(ConfigError, match="has problems of string_reversal, but no condition is for them"):
        asked(tmp_path / "out", sets, {"name": "sums", "suites": ["llm_arithmetic"]})


def test_two_system_prompts_for_one_request_are_refused(tmp_path, sets):
    model = {"model": "simulated/oracle", "system": "/no_think"}
    brief = {"name": "brief", "system": "be brief", "suites": ["string_reversal"]}
    plain = {"name": "plain", "suites": ["llm_arithmetic"]}
    with pytest.raises(ConfigError, match="condition 'brief' both set `system`"):
        asked(tmp_path / "out", sets, brief, plain, models=[model])


@pytest.mark.long
def test_a_system_prompt_and_one_of_a_condition_for_other_suites_go_together(tmp_path, sets):
    model = {"model": "simulated/oracle", "system": "/no_think", "problems": [str(sets[0])]}
    brief = {"name": "brief", "system": "be brief", "suites": ["string_reversal"]}
    plain = {"name": "plain", "suites": ["llm_arithmetic"]}
    summary = asked(tmp_path / "out", sets, brief, plain, models=[model, "simulated/noisy"])
    assert [one.planned for one in summary.models.values()] == [144, 154]


def test_padding_counts_only_where_it_goes_along(tmp_path, sets):
    model = {"model": "simulated/oracle", "tpm": 3000, "problems": [str(sets[1])]}
    padded = {"name": "padded", "context": "4k", "suites": ["llm_arithmetic"]}
    plain = {"name": "plain", "suites": ["string_reversal"]}
    summary = asked(tmp_path / "out", sets, padded, plain, models=[model, "simulated/noisy"], limit=2)
    assert summary.exit is Exit.COMPLETE


def test_padding_counts_against_the_tokens_a_minute(tmp_path, sets):
    model = {"model": "simulated/oracle", "tpm": 3000}
    with pytest.raises(ConfigError, match="one request may need 3,7"):
        asked(tmp_path / "out", sets, {"name": "padded", "context": "4k"}, models=[model])
