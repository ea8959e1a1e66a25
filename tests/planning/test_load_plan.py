"""The plan of a load: what is left of it, what that takes, and which percentiles it is too short for."""

import json
from dataclasses import replace
from typing import Any

import pytest

from asyncbench.errors import ConfigError
from asyncbench.lanes.load.searching import all_good_needed
from asyncbench.lanes.load.steps import due_times
from asyncbench.planning.belonging import questions_of_steps
from asyncbench.planning.planned_load import load_plan
from asyncbench.planning.trials import trial_sources
from asyncbench.problems.opening import open_set
from asyncbench.store.folder import Store
from tests.commands import asyncbench_here
from tests.store.made import keep, step
from tests.sweep_files import problem_set, sweep, sweep_file

PRICED = {"model": "openai/gpt-5-mini", "alias": "m", "max_tokens": 100, "price": {"input": 1, "output": 10}}
STEPS = {"rates": [2, 4], "warmup": 10, "duration": 100, "rest": 5, "seed": 3}


def planned(tmp_path, problems, load, **keys):
    return load_plan(sweep(tmp_path / "out", problems, PRICED, load=load, **keys))


def test_calls_are_those_that_are_drawn_and_cost_as_many_calls_do(tmp_path, problems):
    found = planned(tmp_path, problems, STEPS, repeats=2)
    drawn = {
        rate: [due_times("poisson", rate, 110.0, seed=3, model="m", round_=round_) for round_ in (1, 2)]
        for rate in (2.0, 4.0)
    }
    assert [(one.step, one.times, one.calls) for one in found.steps] == [
        (f"poisson {rate:g}/s", 2, sum(map(len, lists))) for rate, lists in drawn.items()
    ]
    assert found.steps[0].counted == sum(due_s >= 10 for due_s in drawn[2.0][0])
    assert found.seconds == 4 * (10 + 100 + 5)
    first, second = found.steps
    assert first.cost_usd is not None
    assert second.cost_usd == pytest.approx(first.cost_usd / first.calls * second.calls)
    assert first.cost_usd < (first.cost_usd_most or 0)
    assert second.in_flight == pytest.approx(4 * found.latency_s["m"])  # Little's law


def test_it_says_which_percentiles_it_has_too_few_calls_for(tmp_path, problems):
    text = planned(tmp_path, problems, STEPS).as_text()
    assert "too few for p99 (368)." in text
    assert "too few for" not in planned(tmp_path, problems, STEPS | {"duration": 300}).as_text()


def test_it_says_which_steps_have_too_few_calls_for_a_verdict(tmp_path, problems):
    promised = {"arrivals": "constant", "rates": [1, 2], "duration": 51, "slo": {"latency": 2}}
    text = planned(tmp_path, problems, promised).as_text(width=300)
    assert (
        "Too few calls for a verdict: constant 1/s (51). To be sure that 95 % keep the SLO takes 84" in text
    )
    for enough in ({"duration": 85}, {"slo": {"latency": 2, "share": 0.9}}, {"slo": None}):
        assert "for a verdict" not in planned(tmp_path, problems, promised | enough).as_text()
    assert "for a verdict" not in planned(tmp_path, problems, promised, repeats=2).as_text()


def test_it_says_that_few_problems_are_asked_over_and_over(tmp_path):
    few = problem_set(tmp_path / "sets", trials=1)
    text = planned(tmp_path, few, STEPS).as_text(width=300)
    assert "a problem counts once" in text
    seldom = planned(tmp_path, few, STEPS | {"duration": 1, "rates": [1]}).as_text(width=300)
    assert "a problem counts once" not in seldom


def test_what_is_measured_is_left_out(tmp_path, problems):
    asked = sweep(tmp_path / "out", problems, PRICED, load=STEPS)
    assert asked.load is not None
    way = questions_of_steps(asked, asked.load, asked.models[0], trial_sources([open_set(problems)]))
    done: dict[str, Any] = {
        "load": "poisson 2/s #1",
        "arrivals": "poisson",
        "rate": 2.0,
        "warmup_s": 10.0,
        "seconds": 100.0,
        "slo": None,
        "asked": way,
    }
    with Store.open(tmp_path / "out", sweep="test") as store:
        keep(store, replace(step(alias="m"), **done))
    assert [one.step for one in planned(tmp_path, problems, STEPS).steps] == ["poisson 4/s"]
    assert "Every step is measured." in planned(tmp_path, problems, STEPS | {"rates": [2]}).as_text()


def test_callers_and_a_search_have_a_plan_too(tmp_path, problems):
    (closed,) = planned(tmp_path, problems, STEPS | {"arrivals": "closed", "rates": [3]}).steps
    assert closed.in_flight == pytest.approx(3)
    find = {"find": {"lowest": 1, "highest": 16}, "slo": {"ttft": 1}, "duration": 100, "rest": 0, "warmup": 0}
    (search,) = planned(tmp_path, problems, find).steps
    assert (search.step, search.times) == ("find 1 to 16/s", 5 + 5 + 1 + 2)
    assert search.calls >= 100 * (1 + 2 + 4 + 8 + 16)
    brief = planned(tmp_path, problems, find | {"duration": 5})
    assert brief.steps[0].counted >= all_good_needed(0.95)  # its steps last until they can tell
    assert "last longer than 0:00:05 where the verdict needs more calls" in brief.as_text()


def test_the_command_plans_a_load_and_takes_no_pilot(tmp_path, problems):
    file = sweep_file(tmp_path, problems, PRICED, load=STEPS)
    shown = asyncbench_here("plan", file)
    assert (shown.returncode, "Steps that are left" in shown.stdout) == (0, True)
    assert json.loads(asyncbench_here("plan", file, "--json").stdout)["together"]["seconds"] == 2 * 115
    for option in ("--pilot", "--limit"):
        refused = asyncbench_here("plan", file, option, "2")
        assert (refused.returncode, f"{option}: s has a `load`" in refused.stderr) == (2, True)
    typed = json.loads(asyncbench_here("plan", file, "--rates", "8", "--rest", "0s", "--json").stdout)
    assert [one["step"] for one in typed["steps"]] == ["poisson 8/s"]
    with pytest.raises(ConfigError, match="has no `load`"):
        load_plan(sweep(tmp_path / "none", problems, PRICED))


def test_a_model_and_rates_are_enough_and_wrong_values_of_flags_are_told_first():
    typed = ("--model", "simulated/oracle", "--rates", "1,2", "--duration", "60s")
    shown = asyncbench_here("plan", *typed)
    assert "Results go to results/load-simulated-oracle." in shown.stdout
    assert shown.stderr.startswith("asyncbench: Asks the 720 problems of llm_arithmetic, seed 0.")
    wrong = asyncbench_here("load", "--rates", "0")
    assert (wrong.returncode, "'--rates' must be more than 0, not 0" in wrong.stderr) == (2, True)


def test_a_budget_that_cannot_hold_the_load_is_refused_before(tmp_path, problems):
    endless = {name: value for name, value in PRICED.items() if name != "max_tokens"}
    with pytest.raises(ConfigError, match="budget_usd needs a maximum cost for every call"):
        load_plan(sweep(tmp_path / "out", problems, endless, load=STEPS, budget_usd=1))
