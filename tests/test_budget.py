"""A sweep with a budget, against the simulator: it stops within it, is balanced, and goes on with more."""

import asyncio
import json
import math
import re
import shlex
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from asyncbench import generate
from asyncbench.analysis.counting import counted
from asyncbench.config.overriding import replace_budget
from asyncbench.config.sweep import as_mapping, load_sweep, sweep_from
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ConfigError
from asyncbench.planning import budget_bounds as budgeting
from asyncbench.planning.budget_bounds import ASKED, check_budget, most_of, open_ledger
from asyncbench.pricing import picodollars
from asyncbench.providers.prices import rates_of
from asyncbench.records import Attempt, Condition, Ended, Message, Outcome, Request, Sent, Usage
from asyncbench.reports.cost.report import cost_report_of
from asyncbench.reports.status.report import status_of
from asyncbench.run.costs import cap_text
from asyncbench.run.summary import BudgetUse, Exit, Summary
from asyncbench.run.sweep_run import run_sweep
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.status import trial_counts
from asyncbench.suites.llm_arithmetic import draft_arithmetic
from asyncbench.suites.requests import most_input_tokens, padding
from tests.commands import ROOT, asyncbench_here
from tests.planning.sweeps.test_budget_bounds import planned
from tests.processes import Forked
from tests.recorded import rows
from tests.store.made import result
from tests.sweep_files import entry, outcomes, problem_set, run, simulator, sweep, sweep_file
from tests.world.night import requests

PRICE = {"input": 1.0, "output": 5.0}
HTTP = "simulated-http/oracle"
DOLLAR = 10**12


def counted_usd(out):
    """What a folder's calls count for, USD."""
    found = read_attempts(out, ["cost_usd", "reserved_usd"]).to_pylist()
    return sum(row["reserved_usd"] if row["cost_usd"] is None else row["cost_usd"] for row in found)


def cells(out):
    """Finished trials by model and cell."""
    found = read_trials(out, ["model", "task", "length"]).to_pylist()
    return Counter((row["model"], row["task"], row["length"]) for row in found)


# ── the whole ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_with_a_third_of_the_money_a_sweep_stops_balanced_and_with_more_it_is_completed(tmp_path):
    problems, out = problem_set(tmp_path, trials=2), tmp_path / "out"
    third = 3 * 144 * 40e-6 / 3  # a trial costs about 40 millionths
    with simulator(problems) as server:
        models = [
            entry(server, HTTP, alias=alias, seed=n, max_tokens=64, price=PRICE, concurrency=8)
            for n, alias in enumerate(("one", "two", "three"))
        ]
        first = run(sweep(out, problems, *models, budget_usd=third))
        calls, done, by_cell = server.stats()["requests"], outcomes(out), cells(out)
        again = run(sweep(out, problems, *models, budget_usd=third))
        assert server.stats()["requests"] == calls, "a call was made though none fits"
        last = run(sweep(out, problems, *models, budget_usd=10 * third))
        assert server.stats()["requests"] == 3 * 144, "something was asked twice"

    assert (first.exit, again.exit, last.exit) == (Exit.BUDGET, Exit.BUDGET, Exit.COMPLETE)
    (cap,) = first.budget.as_mapping()["caps"]
    assert third - 1.2e-3 < cap["spent_usd"] <= third
    assert 100 <= len(done) <= 3 * 144 * 0.4
    by_model = Counter(model for model, _, _ in by_cell.elements())
    assert max(by_model.values()) - min(by_model.values()) <= 9
    assert set(by_cell.values()) <= {0, 1}, "a cell got its second trial before another its first"
    assert done.items() <= outcomes(out).items()
    assert cap["spent_usd"] == pytest.approx(sum(one.cost_usd for one in first.models.values()))


@pytest.mark.long
def test_a_run_killed_between_reply_and_settlement_goes_on_within_its_budget(tmp_path):
    problems, out = problem_set(tmp_path, trials=2), tmp_path / "out"
    with simulator(problems, latency_s=0.2) as server:
        model = entry(server, HTTP, alias="m", max_tokens=64, price=PRICE, concurrency=6)
        file = sweep_file(tmp_path, problems, model, budget_usd=0.0145)
        process = Forked("asyncbench", "run", file, "--quiet")
        while (seen := server.stats())["delivered"] < 6 or not seen["in_flight"]:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        while server.stats()["in_flight"]:
            time.sleep(0.02)
        assert any(one.charges().reserved for one in spending_of(out).by_alias.values()), (
            "no call was in flight"
        )
        delivered = server.stats()["delivered"]
    with simulator(problems) as server:  # a quick one
        second = run(sweep_file(tmp_path, problems, model | entry(server, HTTP), budget_usd=0.0145))
        delivered += server.stats()["delivered"]

    assert second.exit in (Exit.BUDGET, Exit.COMPLETE)
    assert counted_usd(out) <= 0.0145
    lost = [row for row in read_attempts(out).to_pylist() if row["status"] == "lost"]
    assert lost
    assert all(row["reserved_usd"] > 0 for row in lost)
    assert delivered * 40e-6 < 0.0145
    assert spending_of(out).by_alias["m"].charges().charged == picodollars(
        second.budget.as_mapping()["caps"][0]["spent_usd"]
    )


def test_a_summary_tells_what_was_spent_what_is_open_and_how_to_go_on(tmp_path, problems, server):
    model = entry(server, HTTP, alias="m", max_tokens=64, price=PRICE, budget_usd=1)
    file = sweep_file(tmp_path, problems, model, limits={"simulated-http": {"budget_usd": 0.002}})
    summary = run(file)
    status = status_of(tmp_path / "out")

    text, told = summary.as_text(), json.loads(summary.as_json())
    opened = 72 - len(outcomes(tmp_path / "out"))
    assert summary.exit is Exit.BUDGET
    assert (
        "Stopped by budget_usd of provider simulated-http: the rest of it is too little for another" in text
    )
    go_on = f"raise budget_usd under `limits: simulated-http`, then run `asyncbench run {file}`."
    assert f"{opened} trials are left.\nTo continue, {go_on}" in text
    assert "budget_usd of provider simulated-http: $0.00" in text
    assert "of $0.0020 spent" in text
    assert [(cap["kind"], cap["of"], cap["limit_usd"]) for cap in told["budget"]["caps"]] == [
        ("provider", "simulated-http", 0.002),
        ("model", "m", 1.0),
    ]
    assert told["models"]["m"]["budget_stopped"]
    assert told["budget"]["models"]["m"]["spent_usd"] == told["budget"]["caps"][0]["spent_usd"]
    spent = told["budget"]["caps"][0]["spent_usd"]
    assert [(cap.name, cap.spent_usd) for cap in status.budget] == [
        ("provider simulated-http", spent),
        ("model m", spent),
    ]
    assert "provider simulated-http: $0.00" in status.as_text()


def test_a_sweep_without_a_budget_says_nothing_of_one(tmp_path, problems, server):
    summary = run(sweep(tmp_path / "out", problems, entry(server, HTTP)), limit=3)
    assert json.loads(summary.as_json())["budget"] is None
    assert read_attempts(tmp_path / "out")["reserved_usd"].null_count == 3
    assert status_of(tmp_path / "out").budget == ()


# ── a budget for one start ───────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_budget_for_one_start_takes_the_place_of_the_sweep_s_own_wherever_it_is_told(
    tmp_path, problems, server
):
    out = tmp_path / "out"
    model = entry(server, HTTP, alias="m", max_tokens=64, price=PRICE, budget_usd=0.5)
    asked, calls = sweep(out, problems, model, budget_usd=10), server.stats()["requests"]

    first = run(asked, budget_usd=0.0015)
    done = outcomes(out)
    lower = run(asked, budget_usd=0.0005)
    assert outcomes(out) == done, "a call was made though more than that is spent"
    higher = run(asked, budget_usd=0.0025)

    assert [one.exit for one in (first, lower, higher)] == [Exit.BUDGET] * 3
    assert "more than that is spent already" in lower.as_text()
    assert 0.0005 < first.budget.as_mapping()["caps"][0]["spent_usd"] <= 0.0015
    assert done.items() < outcomes(out).items()
    assert server.stats()["requests"] - calls == len(outcomes(out)), "something was asked twice"
    told = yaml.safe_load((out / "sweep.yaml").read_text("utf-8"))
    assert (told["budget_usd"], told["models"][0]["budget_usd"]) == (0.0025, 0.5)
    limits = [("sweep test", 0.0025), ("model m", 0.5)]
    assert [(cap.name, cap.limit_usd) for cap in status_of(out).budget] == limits
    assert [(cap.name, cap.limit / 1e12) for cap in higher.budget.ledger.caps] == limits
    assert run(asked).exit is Exit.COMPLETE  # its own again


@pytest.mark.parametrize("wrong", [0, -1, True, float("nan"), float("inf"), "much"])
def test_a_budget_is_a_positive_number_in_the_sweep_and_for_one_start(tmp_path, wrong):
    with pytest.raises(ConfigError, match="budget_usd"):
        planned("openai/gpt-5-mini", budget_usd=wrong)
    with pytest.raises(ConfigError, match=r"run: budget_usd .* is not a number of dollars above 0"):
        run(sweep(tmp_path / "out", tmp_path / "none.parquet", "openai/gpt-5-mini"), budget_usd=wrong)


@pytest.mark.long
def test_the_command_that_a_stopped_run_names_goes_on_until_all_is_done(tmp_path, problems, server):
    out = tmp_path / "out"
    file = sweep_file(tmp_path, problems, entry(server, HTTP, alias="m", max_tokens=64, price=PRICE))
    done, finished = asyncbench_here("run", file, "--budget", 0.0011, "--quiet"), [0]
    while done.returncode == Exit.BUDGET:
        finished.append(len(outcomes(out)))
        left = 72 - finished[-1]
        assert (f"{left} trials are left" if left > 1 else "1 trial is left") in done.stdout
        assert "Stopped by --budget: " in done.stdout
        assert "\n--budget: $0.00" in done.stdout
        assert "budget_usd" not in done.stdout, "it was typed as --budget"
        (named,) = re.findall("To continue, run `asyncbench (.*?)`", done.stdout)
        done = asyncbench_here(*shlex.split(named), "--quiet")
    assert done.returncode == Exit.COMPLETE, done.stderr
    assert len(outcomes(out)) == 72
    assert len(finished) > 1
    assert finished == sorted(set(finished)), "a start asked nothing"


@pytest.mark.long
def test_a_run_that_its_budget_stops_counts_all_that_earlier_runs_finished(tmp_path):
    few, many = problem_set(tmp_path, trials=1), tmp_path / "many.parquet"
    generate("llm_arithmetic", many, seed=6, trials=9)
    with simulator(few, many) as server:
        models = [entry(server, HTTP, alias=f"m{n}", seed=n, max_tokens=64, price=PRICE) for n in (1, 2)]
        # A set's problems are spread over the whole plan: most of what is finished comes after the stop.
        first = run(sweep(tmp_path / "out", few, *models))
        stopped = run(sweep(tmp_path / "out", [few, many], *models), budget_usd=0.0001)
    assert stopped.exit is Exit.BUDGET
    assert [one.done for one in first.models.values()] == [72, 72]
    assert [(one.attempts, one.done_before) for one in stopped.models.values()] == [(0, 72)] * 2
    assert f"{2 * 9 * 72:,} trials are left" in stopped.as_text()


@pytest.mark.long
def test_the_budget_that_is_named_takes_the_rest_to_its_end_and_the_least_is_named_beside(
    tmp_path, problems, server
):
    out = tmp_path / "out"
    asked = sweep(out, problems, entry(server, HTTP, alias="m", max_tokens=64, price=PRICE), repeats=3)
    stopped = run(asked, budget_usd=0.002)
    told = stopped.budget.as_mapping()
    spent, rest, most = told["caps"][0]["spent_usd"], told["rest_usd"], told["to_go_on_usd"]
    assert spent + rest < most < 1.5 * (spent + rest)
    assert told["least_to_go_on_usd"] < 0.003 < most
    said = f"another call needs at least --budget {told['least_to_go_on_usd']}."
    assert said in stopped.as_text()
    assert run(asked, budget_usd=most).exit is Exit.COMPLETE


@pytest.mark.long
@pytest.mark.parametrize("max_tokens", [64, 60_000])
def test_the_budget_that_is_named_has_room_for_another_call(tmp_path, problems, server, max_tokens):
    out = tmp_path / "out"
    asked = sweep(out, problems, entry(server, HTTP, alias="m", max_tokens=max_tokens, price=PRICE))
    stopped = run(asked, budget_usd=0.0005)
    named = stopped.budget.to_go_on
    assert f"`asyncbench run {out / 'sweep.yaml'} --budget {named}`" in stopped.as_text()
    assert run(out / "sweep.yaml", budget_usd=float(named), limit=40).models["m"].attempts > 0


def test_a_budget_holds_without_a_sweep_file(tmp_path):
    problems, out, keys = problem_set(tmp_path, trials=1), tmp_path / "out", tmp_path / "keys"
    keys.write_text("ANTHROPIC_API_KEY=none\nOPENAI_API_KEY=none\n")
    given = ("--problems", problems, "--out", out, "--env-file", keys, "--quiet", "--budget")

    done = asyncbench_here("run", "--model", "anthropic/claude-haiku-4-5", *given, "0.0001")
    assert (done.returncode, read_attempts(out).num_rows) == (Exit.BUDGET, 0)
    assert "of $0.000100 spent" in done.stdout
    assert f"`asyncbench run {out / 'sweep.yaml'} --budget 0.3" in done.stdout
    assert load_sweep(out / "sweep.yaml").budget_usd == 0.0001

    refused = asyncbench_here("run", "--model", "openai/gpt-4.1-mini", *given, "5")
    assert refused.returncode == 2
    assert refused.stderr.endswith("Set `max_tokens`.\nAdd --max-tokens, such as --max-tokens 1000.\n")

    url = ("--base-url", "http://127.0.0.1:9/v1", "--effort", "low,high", "--repeats", 2)
    refused = asyncbench_here("run", "--model", "http/m", *url, *given, "5")
    lines = refused.stderr.split("\n")
    assert lines[1].startswith("Write these lines to sweep.yaml")
    file = tmp_path / "sweep.yaml"
    file.write_text("\n".join(lines[2:]).replace("…", "1"), "utf-8")
    written = load_sweep(file)
    assert [(model.alias, model.max_tokens) for model in written.models] == [
        ("http/m effort=low", 1000),
        ("http/m effort=high", 1000),
    ]
    assert (written.out, [one.path for one in written.problems], written.repeats) == (out, [problems], 2)
    check_budget(replace(written, budget_usd=5.0), written.models)
    none = asyncbench_here("run", "--model", "openai/gpt-4.1-mini", *given, "0")
    assert (none.returncode, "not a number of dollars above 0" in none.stderr) == (2, True)

    entries = f'models: [{{model: openai/unheard-of}}]\nbudget_usd: 5\nout: "{out}"\n'
    file.write_text(f'name: mine\nproblems: ["{problems}"]\n{entries}', "utf-8")
    unpriced = asyncbench_here("run", file, "--env-file", keys)
    assert (unpriced.returncode, unpriced.stderr.count("\n")) == (2, 1)
    assert unpriced.stderr.startswith("asyncbench: budget_usd needs a price for every model")


# ── what no budget can hold ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        pytest.param(
            {"model": "http/qwen", "base_url": "http://h/v1", "max_tokens": 9},
            "allow_unpriced: true",
            id="price",
        ),
        pytest.param({"model": "openai/gpt-5-mini"}, "Set `max_tokens`", id="length"),
        pytest.param(
            {"model": "openai/gpt-5-mini", "max_tokens": 9, "params": {"max_tokens": None}},
            "Set `max_tokens`",
            id="a length taken away",
        ),
        pytest.param(
            {"model": "openai/gpt-5-mini", "max_tokens": 9, "params": {"service_tier": "scale"}},
            "no price is known",
            id="a tier without a price",
        ),
    ],
)
def test_a_model_that_no_budget_can_hold_is_refused_before_anything_is_spent(model, rule):
    plan = planned(model)
    with pytest.raises(ConfigError, match=rule):
        check_budget(plan, plan.models)
    without = planned(model, budget_usd=None)
    check_budget(without, without.models)


def test_a_budget_is_called_as_it_was_given_and_all_models_without_a_price_are_named():
    unpriced = [{"model": "http/q", "base_url": f"http://h/v{i}", "alias": f"m{i}"} for i in (1, 2)]
    own = planned(*unpriced)
    said = "needs a price for every model, and no price is known for m1, m2. Add `price: "
    typed = replace_budget(own, 5, place="run", given_as="--budget")
    of_models = planned(*[model | {"budget_usd": 1} for model in unpriced], budget_usd=None)
    for plan, name in ((typed, "--budget"), (own, "budget_usd"), (of_models, "budget_usd")):
        with pytest.raises(ConfigError, match=f"^{name} {said}"):
            check_budget(plan, plan.models)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param({"model": "anthropic/claude-opus-5"}, id="a documented longest reply"),
        pytest.param({"model": "openai/gpt-5-mini", "params": {"max_completion_tokens": 9}}, id="params"),
        pytest.param({"model": "openai/gpt-5-mini", "price": {"input": 1, "output": 0}}, id="free replies"),
    ],
)
def test_a_model_whose_calls_have_a_bound_is_not_refused(model):
    plan = planned(model)
    check_budget(plan, plan.models)


@pytest.mark.long
def test_an_unpriced_model_is_asked_outside_of_the_budget_where_the_sweep_says_so(tmp_path, problems, server):
    out = tmp_path / "out"
    calls = server.stats()["requests"]
    models = [
        entry(server, HTTP, alias="known", max_tokens=64, price=PRICE),
        entry(server, HTTP, alias="unknown"),
    ]
    with pytest.raises(ConfigError, match=r"no price is known for unknown\."):
        run(sweep(out, problems, *models, budget_usd=0.001))
    assert server.stats()["requests"] == calls
    summary = run(sweep(out, problems, *models, budget_usd=0.001, allow_unpriced=True))
    assert summary.exit is Exit.BUDGET
    assert summary.models["unknown"].complete
    assert summary.budget.outside == ["unknown"]
    assert "no price is known for unknown: no budget holds their cost" in summary.as_text()


def test_a_sweep_with_budgets_is_read_back_from_its_mapping():
    plan = planned(
        {"model": "openai/gpt-5-mini", "budget_usd": 0.5},
        limits={"openai": {"rpm": 50, "budget_usd": 0.75}},
        allow_unpriced=True,
    )
    assert (plan.budget_usd, plan.provider_budgets, plan.models[0].budget_usd) == (1.0, {"openai": 0.75}, 0.5)
    assert sweep_from(as_mapping(plan)) == plan


def test_a_budget_of_a_provider_that_nobody_asks_is_refused():
    with pytest.raises(ConfigError, match=r"limits.anthropic: `budget_usd` of anthropic covers no model"):
        planned("openai/gpt-5-mini", limits={"anthropic": {"budget_usd": 1}})


MINI = {"model": "openai/gpt-5-mini", "max_tokens": 9}
AZURE = {
    "model": "azure/m",
    "base_url": "https://h.openai.azure.com/openai/v1",
    "price": PRICE,
    "max_tokens": 9,
}
ROUTED = {"model": "openrouter/openai/gpt-4o-mini", "max_tokens": 9}
HAIKU = {"model": "anthropic/claude-haiku-4-5"}


@pytest.mark.parametrize(
    ("model", "params", "named"),
    [
        (MINI, {"web_search_options": {}}, "web_search_options"),
        (
            MINI | {"api": "responses"},
            {"tools": [{"type": "web_search"}]},
            "'web_search' in `params: tools` runs",
        ),
        (MINI | {"api": "responses"}, {"tools": [{"type": "code_interpreter"}]}, "code_interpreter"),
        (MINI | {"api": "responses"}, {"previous_response_id": "r1"}, "previous_response_id"),
        (MINI | {"api": "responses"}, {"conversation": "c1"}, "conversation"),
        (MINI, {"prediction": {"type": "content", "content": "x"}}, "prediction"),
        (HAIKU, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        (HAIKU, {"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
        (HAIKU, {"container": "c1"}, "container"),
        (ROUTED, {"plugins": [{"id": "web"}]}, "plugins"),
        (ROUTED, {"models": ["anthropic/claude-opus-4"]}, "another model"),
        (ROUTED, {"route": "fallback"}, "route"),
        (ROUTED, {"preset": "mine"}, "preset"),
        (AZURE, {"data_sources": [{"type": "azure_search"}]}, "data_sources"),
        (
            {"model": "gemini/gemini-2.5-flash", "max_tokens": 9},
            {"extra_body": {"google": {"tools": [1]}}},
            "extra_body",
        ),
        (
            {"model": "gemini/gemini-2.5-flash", "max_tokens": 9},
            {"tools": [{"google_search": {}}]},
            "google_search",
        ),
    ],
)
def test_what_costs_beside_the_tokens_of_a_call_is_refused_by_name_with_a_way_out(model, params, named):
    plan = planned(model | {"params": params})
    with pytest.raises(ConfigError, match=f"{named}.*Remove it.*without a budget"):
        check_budget(plan, plan.models)
    without = planned(model | {"params": params}, budget_usd=None)
    check_budget(without, without.models)


@pytest.mark.parametrize(
    "tool", [{"type": "function", "function": {"name": "f"}}, {"name": "f", "input_schema": {}}]
)
def test_tools_that_the_asker_runs_are_fine(tool):
    plan = planned(MINI | {"params": {"tools": [tool]}})
    check_budget(plan, plan.models)


# ── what a call may cost ─────────────────────────────────────────────────────────────────────


def test_a_tier_is_paid_for_at_its_own_price_or_the_standard_one_if_that_is_dearer():
    def most(**params):
        (one,) = planned({"model": "openai/gpt-5-mini", "max_tokens": 1000, "params": params}).models
        # 1.795e9: 2026-11-18; of input the bytes of `params` count, so a bit more
        return most_of(one)(requests(1, one)[0], 1.795e9)

    standard = most(service_tier="default")
    assert most(service_tier="priority") > 1.7 * standard
    assert most(service_tier="flex") == pytest.approx(standard, rel=0.01)


@pytest.mark.parametrize(
    ("entry", "times"),
    [
        ({"model": "google/gemini-2.5-flash", "params": {"serviceTier": "priority"}}, 2.0),
        ({"model": "google/gemini-2.5-flash", "params": {"serviceTier": "SERVICE_TIER_PRIORITY"}}, 2.0),
        ({"model": "google/gemini-2.5-flash", "params": {"service_tier": "priority"}}, 2.0),
        ({"model": "gemini/gemini-2.5-flash", "params": {"service_tier": "priority"}}, 2.0),
        ({"model": "google/gemini-2.5-flash", "params": {"serviceTier": "flex"}}, 1.0),  # it may be refused
        (
            {"model": "vertex/gemini-2.5-flash", "headers": {"X-Vertex-AI-LLM-Shared-Request-Type": "TIER"}},
            2.0,
        ),
    ],
)
def test_the_dearest_tier_that_gemini_is_asked_for_is_set_aside(entry, times):
    def most(**keys):
        (one,) = planned({"max_tokens": 1000, **keys}).models
        return most_of(one)(requests(1, one)[0], 1.795e9)

    assert most(**entry) == pytest.approx(times * most(model=entry["model"]), rel=0.01)


def test_where_no_tier_is_named_the_dearest_is_set_aside_that_a_project_may_be_set_to():
    def most(model, **params):
        (one,) = planned({"model": model, "max_tokens": 1000, "params": params}).models
        return most_of(one)(requests(1, one)[0], 1.795e9)

    assert most("openai/gpt-5-mini") == pytest.approx(
        most("openai/gpt-5-mini", service_tier="priority"), rel=0.1
    )
    assert most("openai/gpt-5-mini") == pytest.approx(most("openai/gpt-5-mini", service_tier="auto"), rel=0.1)
    gemini = "gemini/gemini-2.5-flash"  # has priority prices, and no project that asks for them unasked
    assert most(gemini) == pytest.approx(most(gemini, service_tier="default"), rel=0.1)


def test_no_recorded_prompt_had_more_tokens_than_its_bound(golden):
    small_talk = {k: padding(f"{k}k", place="") for k in (1, 4)}
    (model,) = planned("openai/gpt-5-mini").models
    trial = replace(requests(1, model)[0].trial, condition=Condition())
    recorded = list(rows(golden))
    assert recorded
    for row in recorded:
        asked = draft_arithmetic(
            row["variant"], row["depth"], row["lhs"], row["rhs"], expected=row["correct"]
        )
        turns = small_talk.get(row["extra_context"] or 0, ())
        said = (*turns, Message(role="user", content=asked.question))
        assert row["prompt_tokens"] <= most_input_tokens(Request(trial=trial, system=None, messages=said))


# ── what was spent before ────────────────────────────────────────────────────────────────────


def kept(out, *attempts, opened=()):
    """Make a folder that holds these calls of `m`, and others without an end."""
    with Store.open(out, sweep="test") as store:
        for n, keys in enumerate(attempts):
            call: dict[str, Any] = {
                "trial_id": f"{n:032x}",
                "attempt": 1,
                "model": keys.get("model", "m"),
                "provider": keys.get("provider", "simulated-http"),
            }
            store.keep(Sent(**call, started_at=1e9))
            ended = {"status": "ok", "started_at": 1e9} | keys | call
            store.keep(Ended(attempt=Attempt(**ended), reply=None))
        for n, keys in enumerate(opened):
            call = {"trial_id": f"{n:031x}f", "attempt": 1, "model": "m", "provider": "simulated-http"}
            store.keep(Sent(**call, started_at=1e9, **keys))


def opened_with(folder, *attempts, opened=(), alias="m", **keys):
    """The ledger that a run finds."""
    out = folder / "out"
    kept(out, *attempts, opened=opened)
    (out / "problems").mkdir()
    shutil.copy(problem_set(folder, trials=1), out / "problems" / "p.parquet")
    Store.reopen(out).close()  # calls without an end are lost
    model = {"model": HTTP, "alias": alias, "max_tokens": 64, "price": PRICE}
    return open_ledger(sweep(out, folder / "problems.parquet", model, **{"budget_usd": 1} | keys), out)


def begun_with(folder, *attempts, **keys):
    """What a run finds to have been spent, picodollars."""
    return opened_with(folder, *attempts, **keys).caps[0].spent


def test_known_costs_and_what_was_set_aside_for_others_count_as_spent(tmp_path):
    timeout = {"status": "timeout", "reserved_usd": 0.25}
    spent = begun_with(
        tmp_path,
        {"cost_usd": 0.1},
        {"cost_usd": 0.2, "reserved_usd": 0.3},
        timeout,
        opened=[{"reserved_usd": 0.5}, {"reserved_usd": 0.125}],
    )
    assert spent == picodollars(0.1) + picodollars(0.2) + picodollars(0.25) + picodollars(0.625)


@pytest.mark.long
def test_what_is_spent_and_what_calls_of_unknown_cost_may_have_cost_are_told_apart(tmp_path):
    timeout = {"status": "timeout", "reserved_usd": 0.25}
    opened = [{"reserved_usd": 0.5}, {"most_usd": 0.125}]
    ledger = opened_with(tmp_path, {"cost_usd": 0.1}, timeout, opened=opened, budget_usd=0.8)
    said = ": $0.1000 of $0.8000 spent, up to $0.8750 for 3 calls of unknown cost"
    assert cap_text(ledger.caps[0]) == f"budget_usd{said}"
    account = ledger.account_of("m")
    account.stop(account.hold(requests(1)[0], 0.0).amount)
    counters = Counters(planned=3, budget_stopped=True)
    summary = Summary(
        sweep="test",
        out=tmp_path,
        models={"m": counters},
        causes=frozenset({Exit.BUDGET}),
        seconds=1.0,
        simulated=False,
        budget=BudgetUse(ledger=ledger),
    )
    assert "all of it may be spent, because the cost of 3 calls is unknown" in summary.as_text()
    assert f"budget_usd{said}" in summary.as_text()

    out = tmp_path / "out"
    with Store.reopen(out) as store:
        store.write_manifest({"budget": ledger.described()})
    assert f"sweep test{said}" in status_of(out).as_text()
    (cap,) = counted(out, cost_report_of).budgets
    assert (cap.spent_usd, cap.doubted_usd, cap.doubted_calls) == (0.975, 0.875, 3)


def test_an_earlier_call_of_unknown_cost_counts_with_the_most_it_can_have_cost(tmp_path):
    spent = begun_with(tmp_path, {"status": "timeout", "most_usd": 0.25}, opened=[{"most_usd": 0.5}])
    assert spent == picodollars(0.75)


def test_a_lost_call_counts_with_what_was_asked_then_whatever_the_sweep_asks_today(tmp_path):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    with simulator(problems, latency_s=30.0) as server:
        asked = {"system": "s" * 2_000, "price": {"input": 10.0, "output": 50.0}}
        model = entry(server, HTTP, alias="m", max_tokens=1200)
        long = sweep(out, problems, model | asked, conditions=[{"name": "long", "context": "4k"}])

        async def left_alone():
            going = asyncio.create_task(run_sweep(long, limit=1))
            while not (await asyncio.to_thread(server.stats))["in_flight"]:
                assert not going.done()
                await asyncio.sleep(0.02)
            going.cancel()
            await going

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(left_alone())
        today = sweep(out, problems, model | {"price": PRICE, "max_tokens": 9}, budget_usd=5)
        Store.reopen(out).close()
        ledger = open_ledger(today, out)
    (lost,) = read_attempts(out).to_pylist()
    assert (lost["status"], lost["reserved_usd"]) == ("lost", None)
    # 1,200 tokens at 50 dollars a million; some 20,000 bytes at 10
    assert 0.06 + 0.1 < lost["most_usd"] < 0.06 + 0.4
    assert ledger is not None
    assert ledger.caps[0].spent == picodollars(lost["most_usd"])


def test_tokens_that_were_told_when_no_price_was_known_are_priced_as_they_would_be_now(tmp_path):
    usage = Usage(input_tokens=1_000, output_tokens=100)
    assert begun_with(tmp_path, {"usage": usage}) == 1_000 * 10**6 + 100 * 5 * 10**6


def test_calls_of_unknown_cost_are_priced_without_looking_the_price_up_for_each(tmp_path, monkeypatch):
    looked = Mock(wraps=rates_of)
    monkeypatch.setattr(budgeting, "rates_of", looked)
    calls = [{"usage": Usage(input_tokens=n, output_tokens=100)} for n in range(200)]
    assert begun_with(tmp_path, *calls) == sum(range(200)) * 10**6 + 200 * 100 * 5 * 10**6
    assert 0 < looked.call_count < 20


def test_a_sum_of_costs_is_exact_where_that_of_floats_is_a_picodollar_too_high(tmp_path):
    costs = [8e-05, 7.9e-05, 4.3e-05] * 7
    assert picodollars(math.fsum(costs)) != sum(map(picodollars, costs)), "it shows nothing"
    kept(tmp_path / "out", *({"cost_usd": cost} for cost in costs))
    assert spending_of(tmp_path / "out").by_alias["m"].charges().charged == 1_414_000_000


def test_the_ready_made_sweep_takes_a_budget():
    ready = load_sweep(ROOT / "configs" / "overnight.yaml")
    check_budget(replace(ready, budget_usd=50.0), ready.models)


@pytest.mark.parametrize("call", [{"status": "timeout"}, {"status": "lost"}])
def test_a_call_whose_cost_nobody_can_say_is_refused_with_a_way_out(tmp_path, call):
    with pytest.raises(ConfigError, match=r"the cost of 1 calls is unknown \(1 of m\).* --reuse"):
        begun_with(tmp_path, call | {"max_tokens": 64}, {"cost_usd": 0.0})


def test_a_call_of_unknown_cost_of_a_model_that_left_is_refused_by_its_name(tmp_path):
    gone = {"status": "timeout", "model": "gone", "max_tokens": 9}
    with pytest.raises(ConfigError, match=r"\(1 of gone, no longer in the sweep\)"):
        begun_with(tmp_path, gone)
    only = {"budget_usd": None, "limits": {"simulated-http": {"budget_usd": 1}}}
    assert begun_with(tmp_path / "b", gone | {"provider": "openai"}, **only) == 0


def test_a_folder_of_an_earlier_version_tells_what_was_spent(tmp_path):
    released = sorted((Path(__file__).parent / "store" / "versions").iterdir())
    assert released
    for number, version in enumerate(released):
        folder = shutil.copytree(version, tmp_path / str(number))
        found = spending_of(folder).by_alias["small"]
        known = read_attempts(folder)["cost_usd"].drop_null().to_pylist()
        assert found.charges().charged == sum(picodollars(one) for one in known if one is not None)
        unended = trial_counts(folder).models["small"].in_flight
        assert found.unknown.total() == len(read_attempts(folder)) - len(known) + unended


NAMED = {"old": ["simulated-http/oracle"], "other": ["simulated-http/noisy"], "m": ["simulated-http/oracle"]}


@pytest.mark.long
@pytest.mark.parametrize("asked", [NAMED, {}], ids=["as the manifest says", "as it may have been"])
def test_a_model_under_another_name_has_spent_what_it_spent_under_the_first(tmp_path, asked):
    out = tmp_path / "out"
    kept(
        out,
        {"cost_usd": 0.5, "model": "old", "reserved_usd": 0.25},
        *([{"cost_usd": 0.125, "model": "other"}] if asked else []),
        {"cost_usd": 0.0625, "model": "elsewhere", "provider": "openai"},
        {"cost_usd": 0.25},
    )
    with Store.open(out, sweep="test") as store:
        store.write_manifest({ASKED: asked})
    model = {"model": HTTP, "alias": "m", "max_tokens": 64, "price": PRICE, "budget_usd": 1}
    problems = problem_set(tmp_path, trials=1)

    ledger = open_ledger(sweep(out, problems, model), out)
    assert ledger is not None
    assert (ledger.caps[0].spent, ledger.accounts[0].ratio) == (picodollars(0.75), 2)
    with Store.open(out, sweep="test") as store:
        store.write_manifest({"budget": ledger.described()})
    assert [cap.spent_usd for cap in status_of(out).budget] == [0.75]
    assert [cap.spent_usd for cap in counted(out, cost_report_of).budgets] == [0.75]

    # beside each other each has a cap of its own
    beside = open_ledger(sweep(out, problems, model, model | {"alias": "old", "seed": 1}), out)
    assert beside is not None
    assert [cap.spent for cap in beside.caps] == [picodollars(0.25), picodollars(0.5)]


def test_what_an_alias_may_have_named_in_an_older_folder_is_not_forgotten_once_it_names_another(tmp_path):
    out, problems = tmp_path / "out", problem_set(tmp_path, trials=1)
    kept(out, {"cost_usd": 0.5, "model": "a"})  # of a version that wrote down no names
    keys = {"max_tokens": 64, "price": PRICE, "budget_usd": 1}
    noisy = {"model": "simulated-http/noisy", "alias": "a"} | keys
    with simulator(problems) as server:
        run(sweep(out, problems, noisy | {"base_url": f"{server.url}/v1"}), limit=1)
    spent = spending_of(out).by_alias["a"].charges().charged
    assert spent > picodollars(0.5)
    for model, counts_for in ((HTTP, spent), ("openai/gpt-5-mini", 0)):
        ledger = open_ledger(sweep(out, problems, {"model": model, "alias": "b"} | keys), out)
        assert ledger is not None
        assert ledger.caps[0].spent == counts_for


# ── what cannot be read any more ─────────────────────────────────────────────────────────────


def a_byte(line):
    return line[:60] + b"X" + line[61:]


def spoiled(out, *, lines, how=a_byte):
    """Damage the first lines of calls in a folder's journal."""
    (segment,) = (out / "journal").glob("*.wal")
    found = segment.read_bytes().splitlines(keepends=True)
    at = [n for n, line in enumerate(found) if b'"sent"' in line][:lines]
    for n in at:
        found[n] = how(found[n])
    segment.write_bytes(b"".join(found))


def in_flight(out, count):
    """A folder whose calls all have no end yet, as a crash leaves it."""
    store = Store.open(out, sweep="test")
    for n in range(count):
        store.keep(
            Sent(
                trial_id=f"{n:032x}",
                attempt=1,
                model="m",
                provider="simulated-http",
                started_at=1e9,
                reserved_usd=0.25 if n < count - 1 else 0.5,  # the dearest is the last
            )
        )
    left = out.with_name("left")
    shutil.copytree(out, left)
    store.close()
    return left


HELD = {"model": HTTP, "alias": "m", "max_tokens": 64, "price": PRICE, "budget_usd": 9}


@pytest.mark.parametrize(
    ("how", "lines"),
    [
        pytest.param(a_byte, 1, id="a byte"),
        pytest.param(lambda line: line[:60] + b"\n" + line[61:], 2, id="a line feed too many"),
        pytest.param(lambda line: line[:-1] + b" ", 2, id="a line feed too few"),
        pytest.param(lambda line: bytes(len(line)), 2, id="zeros"),
    ],
)
def test_a_damaged_line_is_charged_as_the_dearest_call(tmp_path, how, lines):
    left = in_flight(tmp_path / "out", 8)
    planned = sweep(left, problem_set(tmp_path, trials=1), HELD, budget_usd=9)
    whole = open_ledger(planned, left)
    spoiled(left, lines=6, how=how)
    ledger = open_ledger(planned, left)
    assert whole is not None
    assert ledger is not None
    for before, now in zip(whole.caps, ledger.caps, strict=True):
        assert before.spent == picodollars(2.25)
        assert now.spent >= before.spent
    if lines == 1:
        assert ledger.caps[0].spent == picodollars(0.5 + 0.25 + 6 * 0.5)


def test_damaged_lines_stay_charged_once_they_are_set_aside(tmp_path):
    left = in_flight(tmp_path / "out", 8)
    spoiled(left, lines=3, how=lambda line: line.replace(b"0", b"1", 1))
    planned = sweep(left, problem_set(tmp_path, trials=1), HELD, budget_usd=9)
    spent = []
    for _ in range(3):
        ledger = open_ledger(planned, left)
        assert ledger is not None
        spent.append(ledger.caps[0].spent)
        with Store.open(left, sweep="test") as store:
            store.write_manifest({"budget": ledger.described()})
        assert status_of(left).budget[0].spent_usd == spent[-1] / DOLLAR
    assert spent == [picodollars(0.5 + 4 * 0.25 + 3 * 0.5)] * 3


def test_damaged_lines_of_which_nobody_can_say_what_they_cost_are_refused(tmp_path):
    left = in_flight(tmp_path / "out", 2)
    spoiled(left, lines=2)
    with pytest.raises(ConfigError, match=r"2 damaged lines of the journal.* --reuse"):
        open_ledger(sweep(left, problem_set(tmp_path, trials=1), HELD), left)


def test_what_models_cost_that_left_the_sweep_is_gone_from_its_budget_and_their_provider_s(tmp_path):
    ledger = opened_with(
        tmp_path,
        {"cost_usd": 0.5, "model": "gone"},
        {"cost_usd": 0.25, "model": "elsewhere", "provider": "openai"},
        {"cost_usd": 0.125, "provider": "openai"},
        limits={"simulated-http": {"budget_usd": 2}},
    )
    assert [(cap.kind, cap.spent) for cap in ledger.caps] == [
        ("sweep", picodollars(0.875)),
        ("provider", picodollars(0.5)),
    ]


@pytest.mark.long
def test_a_model_that_has_no_price_any_more_keeps_what_it_spent(tmp_path, problems, server):
    out = tmp_path / "out"
    one = entry(server, HTTP, alias="one", max_tokens=64, price=PRICE)
    other = entry(server, HTTP, alias="other", seed=1, max_tokens=64, price=PRICE)
    first = run(sweep(out, problems, one, budget_usd=0.002))
    unknown = {key: value for key, value in one.items() if key != "price"}
    second = run(
        sweep(out, problems, unknown, other, budget_usd=0.002, allow_unpriced=True), models=["other"]
    )
    spent = [summary.budget.as_mapping()["caps"][0]["spent_usd"] for summary in (first, second)]
    assert 0 < spent[0] <= spent[1] <= 0.002
    assert counted_usd(out) <= 0.002


@pytest.mark.long
def test_models_that_are_not_asked_this_time_are_counted_by_their_own_calls(tmp_path, problems, server):
    out = tmp_path / "out"
    models = [
        entry(server, HTTP, alias=alias, seed=n, max_tokens=64, price=PRICE) for n, alias in enumerate("ab")
    ]
    run(sweep(out, problems, *models), limit=1)
    lost = Sent(
        trial_id="e" * 32, attempt=1, model="b", provider="simulated-http", started_at=1e9, most_usd=0.001
    )
    with Store.open(out, sweep="test") as store:
        store.keep(lost)
    planned = sweep(out, problems, *models, budget_usd=1)
    summary = run(planned, models=["a"], limit=2)

    (cap,) = summary.budget.as_mapping()["caps"]
    assert cap["spent_usd"] == pytest.approx(counted_known(out) + 0.001)
    assert status_of(out).budget[0].spent_usd == cap["spent_usd"]
    ledger = open_ledger(planned, out)
    assert ledger is not None
    assert ledger.caps[0].spent == picodollars(cap["spent_usd"])


def counted_known(out):
    return sum(row["cost_usd"] or 0.0 for row in read_attempts(out, ["cost_usd"]).to_pylist())


def test_calls_of_imported_runs_are_others_money(tmp_path):
    out, (problem, *_) = tmp_path / "out", requests(1)
    kept(out, {"cost_usd": 0.5}, {"cost_usd": 0.25})
    imported = replace(problem.trial, trial_id=f"{0:032x}", run="theirs")
    with Store.open(out, sweep="test") as store:
        store.keep(result(imported, None))
    assert spending_of(out).by_alias["m"].charges().charged == picodollars(0.25)


def test_dearer_calls_of_earlier_runs_raise_what_is_set_aside(tmp_path):
    calls = {"cost_usd": 0.5, "reserved_usd": 0.25}, {"cost_usd": 0.125, "reserved_usd": 0.0}
    (one,) = opened_with(tmp_path, *calls).accounts
    assert (one.ratio, one.least) == (2, picodollars(0.125))


# ── what a person is told ────────────────────────────────────────────────────────────────────


def test_the_command_that_goes_on_is_the_one_that_was_given(tmp_path, problems, server):
    models = [
        entry(server, HTTP, alias=alias, seed=n, max_tokens=1, price=PRICE) for n, alias in enumerate("ab")
    ]
    file = sweep_file(tmp_path, problems, *models, budget_usd=0.1).rename(tmp_path / "my sweep.yaml")
    run(file, models=["a"], limit=5)
    text = run(file, models=["a"], limit=5, retry=[Outcome.TRUNCATED], max_tokens=60_000).as_text()
    options = "--limit 5 --models a --budget 0.31 --retry truncated --max-tokens 60000"
    go_on = f"To continue, run `asyncbench run '{file}' {options}`."
    assert f"{go_on} `asyncbench plan` estimates the cost of the rest." in text
    assert "are left (or keep their earlier answer)." in text
