"""A sweep with a budget, against the simulator: it stops within it, is balanced, and goes on with more."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncbench.analysis.status import status_of
from asyncbench.budgeting import check_budget, most_of, open_ledger
from asyncbench.config import as_mapping, load_sweep, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.pricing import picodollars
from asyncbench.prompting import most_input_tokens
from asyncbench.records import (
    Attempt,
    Condition,
    Ended,
    Grade,
    Message,
    Outcome,
    Reply,
    Request,
    Result,
    Sent,
    Usage,
)
from asyncbench.run import run_sweep
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.spending import spending
from asyncbench.suites.llm_arithmetic import draft
from asyncbench.summary import Exit
from asyncbench.turns import padding
from tests.commands import ROOT
from tests.engine.night import requests
from tests.recorded import rows
from tests.sweeps import entry, outcomes, problem_set, simulator, sweep

PRICE = {"input": 1.0, "output": 5.0}
HTTP = "simulated-http/oracle"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """72 problems and a simulator that knows them."""
    problems = problem_set(tmp_path_factory.mktemp("served"), trials=1)
    with simulator(problems) as server:
        yield problems, server


def run(planned, **options):
    return asyncio.run(run_sweep(planned, **options))


def counted(out):
    """What a folder's calls count for, USD."""
    found = read_attempts(out, ["cost_usd", "reserved_usd"]).to_pylist()
    return sum(row["reserved_usd"] if row["cost_usd"] is None else row["cost_usd"] for row in found)


def cells(out):
    """Finished trials by model and cell."""
    found = read_trials(out, ["model", "task", "length"]).to_pylist()
    return Counter((row["model"], row["task"], row["length"]) for row in found)


# ── the whole ────────────────────────────────────────────────────────────────────────────────


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


def test_a_run_killed_between_reply_and_settlement_goes_on_within_its_budget(tmp_path):
    problems, out, file = problem_set(tmp_path, trials=2), tmp_path / "out", tmp_path / "sweep.yaml"
    with simulator(problems, latency_s=0.2) as server:
        model = entry(server, HTTP, alias="m", max_tokens=64, price=PRICE, concurrency=6)
        plan = {
            "name": "s",
            "problems": [str(problems)],
            "models": [model],
            "out": str(out),
            "budget_usd": 0.0145,
        }
        file.write_text(yaml.safe_dump(plan))
        command = [sys.executable, "-m", "asyncbench", "run", str(file), "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while server.stats()["delivered"] < 6:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        while server.stats()["in_flight"]:
            time.sleep(0.02)
        assert any(one.reserved for one in spending(out).values()), "no call was in flight"
        delivered = server.stats()["delivered"]
    with simulator(problems) as server:  # a quick one
        second = run(sweep_from(plan | {"models": [model | entry(server, HTTP)]}))
        delivered += server.stats()["delivered"]

    assert second.exit in (Exit.BUDGET, Exit.COMPLETE)
    assert counted(out) <= 0.0145
    lost = [row for row in read_attempts(out).to_pylist() if row["status"] == "lost"]
    assert lost
    assert all(row["reserved_usd"] > 0 for row in lost)
    assert delivered * 40e-6 < 0.0145
    assert spending(out)["m"].charged == picodollars(second.budget.as_mapping()["caps"][0]["spent_usd"])


def test_a_summary_tells_what_was_spent_what_is_open_and_how_to_go_on(tmp_path, served):
    (problems, server), file = served, tmp_path / "sweep.yaml"
    plan = {
        "name": "s",
        "problems": [str(problems)],
        "models": [entry(server, HTTP, alias="m", max_tokens=64, price=PRICE, budget_usd=1)],
        "limits": {"simulated-http": {"budget_usd": 0.002}},
        "out": str(tmp_path / "out"),
    }
    file.write_text(yaml.safe_dump(plan))
    summary = run(file)
    status = status_of(tmp_path / "out")

    text, told = summary.as_text(), json.loads(summary.as_json())
    opened = 72 - len(outcomes(tmp_path / "out"))
    assert summary.exit is Exit.BUDGET
    assert "Stopped by its budget (provider simulated-http): what is left does not suffice" in text
    go_on = f"raise `budget_usd` under `limits: simulated-http` and run `asyncbench run {file}`."
    assert f"{opened} trials are open. To go on, {go_on}" in text
    assert "provider simulated-http: $0.00" in text
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


def test_a_sweep_without_a_budget_says_nothing_of_one(tmp_path, served):
    problems, server = served
    summary = run(sweep(tmp_path / "out", problems, entry(server, HTTP)), limit=3)
    assert json.loads(summary.as_json())["budget"] is None
    assert read_attempts(tmp_path / "out")["reserved_usd"].null_count == 3
    assert status_of(tmp_path / "out").budget == ()


# ── what no budget can hold ──────────────────────────────────────────────────────────────────


def planned(*models, **keys):
    return sweep_from(
        {"name": "s", "problems": ["p.parquet"], "models": list(models), "budget_usd": 1} | keys
    )


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
        pytest.param(
            {"model": "openai/gpt-5-mini", "max_tokens": 9, "params": {"n": "3"}},
            r"how many answers .* is no whole number above 0",
            id="answers in quotes",
        ),
    ],
)
def test_a_model_that_no_budget_can_hold_is_refused_before_anything_is_spent(model, rule):
    plan = planned(model)
    with pytest.raises(ConfigError, match=rule):
        check_budget(plan, plan.models)
    without = planned(model, budget_usd=None)
    check_budget(without, without.models)


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


def test_an_unpriced_model_is_asked_outside_of_the_budget_where_the_sweep_says_so(tmp_path, served):
    (problems, server), out = served, tmp_path / "out"
    calls = server.stats()["requests"]
    models = [
        entry(server, HTTP, alias="known", max_tokens=64, price=PRICE),
        entry(server, HTTP, alias="unknown"),
    ]
    with pytest.raises(ConfigError, match="unknown: no price is known"):
        run(sweep(out, problems, *models, budget_usd=0.001))
    assert server.stats()["requests"] == calls
    summary = run(sweep(out, problems, *models, budget_usd=0.001, allow_unpriced=True))
    assert summary.exit is Exit.BUDGET
    assert summary.models["unknown"].complete
    assert summary.budget.outside == ["unknown"]
    assert "no price is known for unknown: asked outside of the budget" in summary.as_text()


def test_a_sweep_with_budgets_is_read_back_from_its_mapping():
    plan = planned(
        {"model": "openai/gpt-5-mini", "budget_usd": 0.5},
        limits={"openai": {"rpm": 50, "budget_usd": 0.75}},
        allow_unpriced=True,
    )
    assert (plan.budget_usd, plan.provider_budgets, plan.models[0].budget_usd) == (1.0, {"openai": 0.75}, 0.5)
    assert sweep_from(as_mapping(plan)) == plan


@pytest.mark.parametrize("wrong", [0, -1, True, float("nan"), float("inf"), "much"])
def test_a_budget_is_a_positive_number(wrong):
    with pytest.raises(ConfigError, match="budget_usd"):
        planned("openai/gpt-5-mini", budget_usd=wrong)


def test_a_budget_of_a_provider_that_nobody_asks_is_refused():
    with pytest.raises(ConfigError, match=r"limits.anthropic: `budget_usd` holds no model"):
        planned("openai/gpt-5-mini", limits={"anthropic": {"budget_usd": 1}})


MINI = {"model": "openai/gpt-5-mini", "max_tokens": 9}
ROUTED = {"model": "openrouter/openai/gpt-4o-mini", "max_tokens": 9}
HAIKU = {"model": "anthropic/claude-haiku-4-5"}


@pytest.mark.parametrize(
    ("model", "params", "named"),
    [
        (MINI, {"web_search_options": {}}, "web_search_options"),
        (MINI | {"api": "responses"}, {"tools": [{"type": "web_search"}]}, "'web_search' runs"),
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
        (ROUTED | {"model": "openrouter/openai/gpt-4o-mini:online", "price": PRICE}, {}, "searches the web"),
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
    with pytest.raises(ConfigError, match=f"{named}.*Leave it out.*without a budget"):
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


def most_tokens(**model):
    """The output tokens that are set aside for a call, where only output costs."""
    given = {"model": "http/m", "base_url": "http://h/v1", "price": {"input": 0, "output": 1}} | model
    (one,) = planned(given).models
    return most_of(one)(requests(1, one)[0], 1.8e9) // 10**6


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        pytest.param({"max_tokens": 10}, 10, id="max_tokens"),
        pytest.param({"max_tokens": 10, "params": {"n": 4}}, 40, id="several answers"),
        pytest.param({"max_tokens": 10, "params": {"max_completion_tokens": 30}}, 30, id="said twice"),
        pytest.param(
            {"api": "completions", "params": {"max_tokens": 7, "n": 2, "best_of": 5}}, 35, id="best of"
        ),
    ],
)
def test_as_many_output_tokens_are_paid_for_as_a_request_allows(model, tokens):
    assert most_tokens(**model) == tokens


def test_a_tier_is_paid_for_at_its_own_price_or_the_standard_one_if_that_is_dearer():
    def most(**params):
        (one,) = planned({"model": "openai/gpt-5-mini", "max_tokens": 1000, "params": params}).models
        # 1.795e9: 2026-11-18; of input the bytes of `params` count, so a bit more
        return most_of(one)(requests(1, one)[0], 1.795e9)

    standard = most(service_tier="default")
    assert most(service_tier="priority") > 1.7 * standard
    assert most(service_tier="flex") == pytest.approx(standard, rel=0.01)


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
    for row in rows(golden):
        asked = draft(row["variant"], row["depth"], row["lhs"], row["rhs"], expected=row["correct"])
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


def test_an_earlier_call_of_unknown_cost_counts_with_the_most_it_can_have_cost(tmp_path):
    spent = begun_with(tmp_path, {"status": "timeout", "max_tokens": 1_000}, opened=[{"max_tokens": 1_000}])
    # 1,000 tokens at 5 dollars a million, and its prompt
    assert 2 * 5_000 * 10**6 < spent < 2 * 8_000 * 10**6


def test_the_ready_made_sweep_takes_a_budget():
    ready = load_sweep(ROOT / "configs" / "overnight.yaml")
    check_budget(replace(ready, budget_usd=50.0), ready.models)


def test_a_longer_reply_that_params_ask_for_counts_for_an_earlier_call(tmp_path):
    out = tmp_path / "out"
    usage = Usage(input_tokens=0)
    kept(out, {"status": "timeout", "max_tokens": 10, "usage": usage})
    model = {"model": HTTP, "alias": "m", "price": PRICE, "params": {"max_completion_tokens": 5_000}}
    ledger = open_ledger(sweep(out, problem_set(tmp_path, trials=1), model, budget_usd=1), out)
    assert ledger is not None
    assert ledger.caps[0].spent == 5_000 * 5 * 10**6


@pytest.mark.parametrize("call", [{"status": "timeout"}, {"status": "lost"}])
def test_a_call_whose_cost_nobody_can_say_is_refused_with_a_way_out(tmp_path, call):
    with pytest.raises(ConfigError, match=r"1 calls of unknown cost \(1 of m\).* --reuse"):
        begun_with(tmp_path, call, {"cost_usd": 0.0, "max_tokens": 100})


def test_a_call_of_unknown_cost_of_a_model_that_left_is_refused_by_its_name(tmp_path):
    gone = {"status": "timeout", "model": "gone", "max_tokens": 9}
    with pytest.raises(ConfigError, match=r"\(1 of gone, which left the sweep\)"):
        begun_with(tmp_path, gone)
    only = {"budget_usd": None, "limits": {"simulated-http": {"budget_usd": 1}}}
    assert begun_with(tmp_path / "b", gone | {"provider": "openai"}, **only) == 0


def test_a_folder_of_an_earlier_version_tells_what_was_spent(tmp_path):
    released = Path(__file__).parent / "store" / "versions"
    for number, version in enumerate(sorted(released.iterdir())):
        folder = shutil.copytree(version, tmp_path / str(number))
        found = spending(folder)["small"]
        known = read_attempts(folder)["cost_usd"].drop_null().to_pylist()
        assert found.charged == sum(picodollars(one) for one in known if one is not None)
        assert found.unknown.total() == len(read_attempts(folder)) - len(known)


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


def test_a_model_that_has_no_price_any_more_keeps_what_it_spent(tmp_path, served):
    (problems, server), out = served, tmp_path / "out"
    one = entry(server, HTTP, alias="one", max_tokens=64, price=PRICE)
    other = entry(server, HTTP, alias="other", seed=1, max_tokens=64, price=PRICE)
    first = run(sweep(out, problems, one, budget_usd=0.002))
    unknown = {key: value for key, value in one.items() if key != "price"}
    second = run(
        sweep(out, problems, unknown, other, budget_usd=0.002, allow_unpriced=True), models=["other"]
    )
    spent = [summary.budget.as_mapping()["caps"][0]["spent_usd"] for summary in (first, second)]
    assert 0 < spent[0] <= spent[1] <= 0.002
    assert counted(out) <= 0.002


def test_models_that_are_not_asked_this_time_are_counted_by_their_own_calls(tmp_path, served):
    (problems, server), out = served, tmp_path / "out"
    models = [
        entry(server, HTTP, alias=alias, seed=n, max_tokens=64, price=PRICE) for n, alias in enumerate("ab")
    ]
    run(sweep(out, problems, *models), limit=1)
    lost = Sent(
        trial_id="e" * 32, attempt=1, model="b", provider="simulated-http", started_at=1e9, max_tokens=64
    )
    with Store.open(out, sweep="test") as store:
        store.keep(lost)
    planned = sweep(out, problems, *models, budget_usd=1)
    summary = run(planned, models=["a"], limit=2)

    (cap,) = summary.budget.as_mapping()["caps"]
    assert counted_known(out) + 64 * 5e-6 < cap["spent_usd"] < 0.02
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
        store.keep(closed(imported))
    assert spending(out)["m"].charged == picodollars(0.25)


def closed(trial):
    """The end of a trial."""
    grade = Grade(
        grader="g",
        grader_version=1,
        headline=True,
        answer=None,
        classification=None,
        outcome=Outcome.NO_ANSWER,
        exact_match=False,
    )
    return Result(
        trial=trial,
        reply=Reply(text=""),
        error=None,
        grades=(grade,),
        attempts=1,
        cost_usd=None,
        price_source=None,
        queued_s=None,
        ttft_s=None,
        latency_s=None,
        finished_at=1e9,
    )


def test_dearer_calls_of_earlier_runs_raise_what_is_set_aside(tmp_path):
    calls = {"cost_usd": 0.5, "reserved_usd": 0.25}, {"cost_usd": 0.125, "reserved_usd": 0.0}
    (one,) = opened_with(tmp_path, *calls).accounts
    assert (one.ratio, one.least) == (2, picodollars(0.125))


# ── what a person is told ────────────────────────────────────────────────────────────────────


def test_the_command_that_goes_on_is_the_one_that_was_given(tmp_path, served):
    (problems, server), file = served, tmp_path / "my sweep.yaml"
    models = [
        entry(server, HTTP, alias=alias, seed=n, max_tokens=1, price=PRICE) for n, alias in enumerate("ab")
    ]
    plan = {"name": "s", "problems": [str(problems)], "models": models, "out": str(tmp_path / "out")}
    file.write_text(yaml.safe_dump(plan | {"budget_usd": 0.1}))
    run(file, models=["a"], limit=5)
    text = run(file, models=["a"], limit=5, retry=[Outcome.TRUNCATED], max_tokens=60_000).as_text()
    assert f"run `asyncbench run '{file}' --limit 5 --models a --retry truncated --max-tokens 60000`." in text
    assert "trials are open, or keep the answer that was to be asked again." in text


def test_a_budget_that_was_passed_before_is_called_spent(tmp_path, served):
    (problems, server), out = served, tmp_path / "out"
    model = entry(server, HTTP, alias="m", max_tokens=64, price=PRICE)
    run(sweep(out, problems, model), limit=5)
    text = run(sweep(out, problems, model, budget_usd=1e-6)).as_text()
    assert "Stopped by its budget (sweep test): all of it is spent" in text
    assert "of $0.0000010 spent" in text
