"""A plan: what is left of a sweep, what it would cost and how long it would take."""

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asyncbench import generate, run_sweep
from asyncbench.commands.terminal import dollars_typed
from asyncbench.config.entry import Place
from asyncbench.config.models import ModelEntry, model_from
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.planning.budget_bounds import budgeted_models, most_of
from asyncbench.planning.draws import seconds_of
from asyncbench.planning.guesses import EFFORT_TOKENS, pace, thinking, tokens_of
from asyncbench.planning.records import Needs
from asyncbench.planning.sweep_plan import plan
from asyncbench.planning.trials import sources_by_model, trials_of
from asyncbench.pricing import dollars_of, picodollars
from asyncbench.problems.opening import open_set
from asyncbench.providers.params import longest_reply_of
from asyncbench.records import Condition, Limits
from asyncbench.suites.requests import request_for
from asyncbench.tables.numbers import duration
from tests.commands import asyncbench, asyncbench_here, succeeded
from tests.sweep_files import problem_set, sweep, sweep_file

MESSAGES = "anthropic/claude-haiku-4-5"
PRICE = {"input": 1.0, "output": 10.0}  # USD for a million tokens


def model(name="openai/gpt-4.1", **keys):
    return model_from(ModelEntry.model_validate({"model": name, **keys}), {}, place=Place(source="test"))


def everything_in(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_models_under_one_limit_are_planned_one_after_the_other_and_named(tmp_path):
    limits = {"simulated": {"rpm": 60, "shared": True}}
    names = ("simulated/oracle", "simulated/noisy")
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), *names, limits=limits))
    assert "simulated/oracle, simulated/noisy share the rate limit of simulated and take turns" in (
        found.assumptions
    )
    assert {one.group for one in found.models} == {"simulated"}


def test_the_matrix_is_shown_with_what_each_combination_would_cost():
    raw = {
        "name": "s",
        "problems": [{"suite": "integer_addition", "tries": 7}],
        "models": [
            {
                "model": ["openai/gpt-5-mini", "openai/gpt-5-nano"],
                "effort": ["low", "high"],
                "max_tokens": 2000,
                "price": PRICE,
            },
            {"model": "openai/gpt-4.1", "price": PRICE},
        ],
        "conditions": [
            {"name": "plain"},
            {"name": "terse", "system": "Be brief.", "models": ["openai/gpt-5*"]},
        ],
    }
    found = plan(sweep_from(raw))
    costs = {(each.model, row.name): row.cost_usd for each in found.models for row in each.conditions}
    assert [each.varied for each in found.models] == [*[{"effort": "low"}, {"effort": "high"}] * 2, {}]
    assert len(costs) == 2 * 2 * 2 + 1
    assert sum(filter(None, costs.values())) == pytest.approx(found.cost_usd)
    (sheet,) = (part for part in found.content() if not isinstance(part, str) and "Matrix" in part.title)
    assert sheet.title == "Matrix: 9 entrants"
    assert [row[:5] for row in sheet.rows] == [
        ("low", "plain", "2", "14", "14"),
        ("low", "terse", "2", "14", "14"),
        ("high", "plain", "2", "14", "14"),
        ("high", "terse", "2", "14", "14"),
        ("", "plain", "1", "7", "7"),
    ]
    assert (
        "Matrix"
        not in plan(sweep_from(raw | {"models": ["openai/gpt-4.1"], "conditions": [{"name": "a"}]})).as_text()
    )


def test_nothing_is_written_and_no_key_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    path = problem_set(tmp_path)
    before = everything_in(tmp_path)
    generated = {"suite": "integer_addition", "seed": 3, "tries": 7}
    found = plan(sweep_from({"name": "s", "problems": [str(path), generated], "models": ["openai/gpt-4.1"]}))
    assert [(one.name, one.rows) for one in found.problem_sets] == [
        ("problems", 144),
        ("integer_addition", 7),
    ]
    assert [(one.trials, one.done, one.left) for one in found.models] == [(151, 0, 151)]
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize(
    ("keys", "limit", "trials"),
    [
        pytest.param({}, None, 144, id="every problem"),
        pytest.param({}, 10, 10, id="the first ten"),
        pytest.param({"repeats": 3}, None, 432, id="thrice"),
        pytest.param({"conditions": [{"name": "a"}, {"name": "b", "context": "1k"}]}, 10, 20, id="two ways"),
    ],
)
def test_trials_are_those_that_a_run_would_ask(tmp_path, keys, limit, trials):
    asked = sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle", **keys)
    assert plan(asked, limit=limit).models[0].left == trials


def test_a_problem_in_two_sets_is_planned_once(tmp_path):
    sets = [problem_set(tmp_path), problem_set(tmp_path, name="again")]
    assert plan(sweep(tmp_path / "out", sets, "simulated/oracle")).models[0].trials == 144


def test_each_model_is_planned_on_its_own_problems(tmp_path):
    few = tmp_path / "few.parquet"
    generate("integer_addition", few, tries=5)
    own = {"model": "simulated/noisy", "problems": [str(few)]}
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle", own))
    assert [one.trials for one in found.models] == [144, 5]


async def test_a_complete_sweep_costs_nothing_more_and_takes_no_time(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path), {"model": "simulated/oracle", "price": PRICE})
    await run_sweep(asked)
    found = plan(asked)
    (one,) = found.models
    assert (one.left, one.cost_usd, one.cost_usd_most, one.seconds, one.bound_by) == (0, 0, 0, 0, None)
    assert found.warnings == ()


async def test_trials_with_another_parameter_tell_nothing(tmp_path):
    problems = problem_set(tmp_path)
    await run_sweep(sweep(tmp_path / "out", problems, {"model": "simulated/oracle", "alias": "m"}), limit=30)
    changed = {"model": "simulated/oracle", "alias": "m", "temperature": 1}
    found = plan(sweep(tmp_path / "out", problems, changed))
    assert found.models[0].done == 0
    assert not any("finished trials" in said for said in found.assumptions)


def test_cost_is_that_of_every_trial_by_itself(tmp_path):
    entry = {"model": "openai/gpt-4.1", "price": PRICE, "max_tokens": 50, "system": "x" * 100}
    asked = sweep(tmp_path / "out", problem_set(tmp_path), entry)
    (one,) = plan(asked, limit=1).models
    assert one.output_tokens_most == 50
    assert one.cost_usd == pytest.approx((one.input_tokens * 1 + one.output_tokens * 10) / 1e6)
    assert one.input_tokens > 100 / 4
    assert one.cost_usd_most is not None
    assert one.cost_usd_most > (100 * 1 + 50 * 10) / 1e6


def test_an_unknown_price_is_unknown_and_never_zero(tmp_path):
    asked = sweep(
        tmp_path / "out",
        problem_set(tmp_path),
        {"model": "simulated/oracle", "max_tokens": 9},
        {"model": "simulated/noisy", "max_tokens": 9, "price": PRICE},
    )
    found = plan(asked)
    unpriced, priced = found.models
    assert (unpriced.cost_usd, unpriced.cost_usd_most, unpriced.price_source) == (None, None, None)
    assert priced.cost_usd
    assert found.cost_usd is None
    assert json.loads(found.as_json())["together"]["cost_usd"] is None
    assert "+ unknown" in found.as_text()
    assert any("no price is known for simulated/oracle:" in said for said in found.warnings)


@pytest.mark.parametrize(
    ("keys", "unlimited"),
    [
        pytest.param({"price": PRICE}, True, id="no max_tokens"),
        pytest.param({"price": PRICE, "max_tokens": 9}, False, id="max_tokens"),
        pytest.param({"price": PRICE, "params": {"max_completion_tokens": 9}}, False, id="in params"),
        pytest.param({"price": {"input": 0, "output": 0}}, False, id="replies cost nothing"),
    ],
)
def test_without_max_tokens_the_most_is_unknown(tmp_path, keys, unlimited):
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), {"model": "openai/gpt-4.1", **keys}))
    assert (found.cost_usd_most is None) is unlimited
    assert any("no max_tokens" in said for said in found.warnings) is unlimited


def test_the_max_tokens_that_anthropics_format_demands_is_shown(tmp_path):
    said = {"model": "anthropic/claude-haiku-4-5", "alias": "said", "max_tokens": 1000}
    longest = {**said, "alias": "longest", "max_tokens": 64000, "temperature": 0}
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), "anthropic/claude-haiku-4-5", said, longest))
    assert [(one.max_tokens, one.max_tokens_required) for one in found.models] == [
        (64000, True),
        (1000, False),
        (64000, False),
    ]
    assert "64,000*" in found.as_text()
    assert any("Anthropic requires max_tokens" in line for line in found.assumptions)


FLEX = {"params": {"service_tier": "flex"}}


@pytest.mark.parametrize(("own", "keys"), [(FLEX, {}), ({}, {"conditions": [{"name": "flex"} | FLEX]})])
def test_a_service_tier_is_planned_at_its_own_price(tmp_path, own, keys):
    problems, mini = problem_set(tmp_path), {"model": "openai/gpt-5-mini"}
    (standard,) = plan(sweep(tmp_path / "out", problems, mini)).models
    (cheaper,) = plan(sweep(tmp_path / "out", problems, mini | own, **keys)).models
    assert standard.cost_usd is not None
    assert cheaper.cost_usd == pytest.approx(standard.cost_usd / 2)


def test_a_condition_whose_tier_has_no_price_makes_the_cost_unknown(tmp_path):
    both = [{"name": "plain"}, {"name": "scale", "params": {"service_tier": "scale"}}]
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), "openai/gpt-5-mini", conditions=both))
    assert (found.cost_usd, found.models[0].price_source) == (None, None)
    assert any("no price is known for openai/gpt-5-mini" in said for said in found.warnings)


def test_an_effort_of_a_condition_is_planned_and_told(tmp_path):
    high = [{"name": "plain"}, {"name": "high", "params": {"reasoning_effort": "high"}}]
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), "openai/gpt-5-mini", conditions=high))
    told = [said for said in found.assumptions if said.startswith("replies")]
    assert [said.split(":")[0] for said in told] == [
        "replies with effort high",
        "replies of models that think by default",
    ]


@pytest.mark.parametrize(
    ("asked", "params", "most"),
    [
        pytest.param(model(max_tokens=9), {"max_completion_tokens": 5}, 9, id="said twice: the longer"),
        pytest.param(model(max_tokens=9), {"max_output_tokens": 5}, 9, id="no word of chat"),
        pytest.param(model(api="responses"), {"max_output_tokens": 5}, 5, id="responses"),
        pytest.param(model(MESSAGES, max_tokens=9), {"max_tokens": 5}, 5, id="messages"),
        pytest.param(model(MESSAGES, max_tokens=9), {"max_completion_tokens": 5}, 9, id="no word of them"),
    ],
)
def test_the_longest_reply_goes_by_the_words_of_the_wire_format(asked, params, most):
    assert longest_reply_of(asked, Condition(params=params)) == most


@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        pytest.param(model(), 0, id="plain"),
        pytest.param(
            model("openai/gpt-5-mini", params={"reasoning_effort": "high"}),
            EFFORT_TOKENS["high"],
            id="an effort in params",
        ),
        pytest.param(
            model("openrouter/openai/gpt-5", effort="low", params={"reasoning": {"effort": "high"}}),
            EFFORT_TOKENS["high"],
            id="an effort in params wins",
        ),
        pytest.param(model("anthropic/claude-sonnet-4-6", thinking_tokens=8000), 2000, id="a budget"),
        pytest.param(
            model("anthropic/claude-sonnet-4-6", thinking="adaptive"), EFFORT_TOKENS["high"], id="adaptive"
        ),
        pytest.param(model("openai/gpt-5-mini", effort="low"), EFFORT_TOKENS["low"], id="an effort"),
        pytest.param(model("openai/gpt-5.1", effort="none"), 0, id="effort none"),
        pytest.param(model("xai/grok-4", effort="vast"), EFFORT_TOKENS["medium"], id="an unknown effort"),
        pytest.param(model("openai/gpt-5-mini"), EFFORT_TOKENS["medium"], id="thinks unasked"),
        pytest.param(model("openai/o3"), EFFORT_TOKENS["medium"], id="o3"),
        pytest.param(model("openai/gpt-5-chat-latest"), 0, id="gpt-5-chat does not think"),
        pytest.param(model("together/Qwen/Qwen3-235B-A22B-Instruct-2507-tput"), 0, id="qwen3 instruct"),
        pytest.param(model("openai/gpt-4o-mini"), 0, id="gpt-4o is not o4"),
        pytest.param(model("gemini/gemini-2.5-flash-lite"), 0, id="flash-lite does not think"),
        pytest.param(model("xai/grok-4-1-fast-non-reasoning"), 0, id="non-reasoning"),
        pytest.param(model("deepseek/deepseek-reasoner"), EFFORT_TOKENS["medium"], id="a reasoner"),
    ],
)
def test_thinking_is_guessed_from_what_the_sweep_says_or_the_name(asked, tokens):
    assert thinking(asked, Condition()) == tokens


def test_a_reply_is_never_expected_to_exceed_its_most():
    asked = model("openai/o3", max_tokens=100)
    tokens = tokens_of(asked, Condition(), question=40, answer=9, seen=None)
    assert (tokens.input, tokens.output, tokens.output_most) == (10, 100, 100)


@pytest.mark.parametrize(
    ("keys", "conditions"),
    [
        pytest.param({}, [{}], id="plain"),
        pytest.param({"system": "Antworte: größer", "max_tokens": 4000}, [{}], id="umlauts"),
        pytest.param({}, [{}, {"name": "b", "context": "1k", "params": {"x": "y" * 99}}], id="conditions"),
        pytest.param({"model": "openai/gpt-5-mini", "price": None}, [{}], id="a tier of the project's"),
        pytest.param({"model": "openrouter/openai/gpt-4o-mini", "price": None}, [{}], id="a router"),
        pytest.param(
            {"model": "openrouter/openai/gpt-4o-mini", "price": None},
            [{}, {"name": "b", "params": {"provider": {"max_price": {"prompt": 100, "completion": 200}}}}],
            id="a router that may be dearer under a condition",
        ),
    ],
)
def test_at_most_is_what_a_budget_sets_aside_for_the_same_calls(tmp_path, keys, conditions):
    entry = {"model": "simulated-http/oracle", "alias": "m", "max_tokens": 64, "price": PRICE} | keys
    entry = {key: value for key, value in entry.items() if value is not None}
    nupa = generate("nupa", tmp_path / "nupa.parquet", per_length=1, tasks=["add"], lengths="1-4")
    named = [{"name": "a"} | one for one in conditions]
    for problems in (problem_set(tmp_path, trials=1), nupa.path):
        asked = sweep(tmp_path / "out", problems, entry, conditions=named, budget_usd=1)
        (one,) = budgeted_models(asked, asked.models)
        sets = sources_by_model(asked, asked.models, {asked.problems[0].place: open_set(problems)})
        aside = [
            most_of(one)(request_for(trial), time.time())
            for trial in trials_of(asked, one, sets["m"], limit=None)
        ]
        found = plan(asked).cost_usd_most
        assert found is not None
        assert sum(aside) <= picodollars(found) * (1 + 1e-9)
        assert found * 10**12 <= sum(aside) * 1.001
        (cut,) = plan(replace(asked, budget_usd=1e-9)).cuts
        assert cut.too_small == {"m": dollars_of(max(aside))}


def test_what_may_cost_beside_its_tokens_has_no_most(tmp_path):
    search = {"model": "openai/gpt-4.1", "max_tokens": 9, "params": {"web_search_options": {}}}
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), search))
    assert (found.cost_usd_most, found.cost_usd is None) == (None, False)
    assert any("billed separately from tokens" in said for said in found.warnings)


def test_lanes_run_side_by_side_and_models_of_one_take_turns():
    quick, slow, slower = ([1.0, 2.0, 9.0], [5.0, 5.0, 5.0], [1.0, 3.0, 5.0])
    lanes = [("a", quick), ("b", slow), ("b", slower)]
    drawings: Any = [SimpleNamespace(lane=lane, seconds=seconds) for lane, seconds in lanes]
    together = seconds_of(drawings)
    assert (together.p5, together.p50, together.p95) == (6.0, 8.0, 10.0)


@pytest.mark.long
async def test_all_models_together_have_a_range_of_time(tmp_path):
    models = [{"model": f"simulated/{name}", "price": PRICE, "rpm": 6_000} for name in ("oracle", "noisy")]
    asked = sweep(tmp_path / "out", problem_set(tmp_path), *models)
    await run_sweep(asked, limit=72)
    found = plan(asked)
    each = [one.forecast.seconds for one in found.models if one.forecast is not None]
    told = json.loads(found.as_json())
    assert found.forecast_seconds is not None
    assert found.forecast_seconds.p95 >= max(one.p95 for one in each) > found.forecast_seconds.p5 / 2
    assert found.seconds == told["together"]["seconds"] == told["forecast_seconds"]["p50"]
    rows = [line.split() for line in found.as_text(width=300).splitlines() if line.startswith("together")]
    assert rows[-1][-2:] == [duration(found.forecast_seconds.p5), duration(found.forecast_seconds.p95)]


@pytest.mark.parametrize(
    ("limits", "seconds", "bound_by"),
    [
        pytest.param(Limits(concurrency=10), 200, "concurrency", id="calls at once"),
        pytest.param(Limits(concurrency=5000), 3, "concurrency", id="never faster than one call"),
        pytest.param(Limits(rpm=60, concurrency=100), 1000, "rpm", id="requests"),
        pytest.param(Limits(rpm=6000, tpm=3000, concurrency=100), 2000, "tpm", id="tokens"),
        pytest.param(Limits(rpm=60, fraction=0.5, concurrency=100), 2000, "rpm", id="half of the requests"),
        pytest.param(
            Limits(input_tpm=6000, output_tpm=600, concurrency=100), 4000, "output_tpm", id="output"
        ),
    ],
)
def test_the_tightest_limit_says_how_long_it_takes(limits, seconds, bound_by):
    found = pace(limits, Needs(1000, input_tokens=60_000, output_tokens=40_000, latency_s=2000), longest_s=3)
    assert (found.seconds, found.bound_by) == (pytest.approx(seconds), bound_by)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00:00"), (0.1, "0:00:01"), (3661, "1:01:01")])
def test_time_is_shown_in_whole_seconds_rounded_up(seconds, shown):
    assert duration(seconds) == shown


async def test_a_folder_of_another_sweep_is_refused(tmp_path):
    problems = problem_set(tmp_path)
    asked = sweep(tmp_path / "out", problems, "simulated/oracle")
    await run_sweep(asked, limit=1)
    with pytest.raises(ConfigError, match="holds the results of sweep 'test'"):
        plan(sweep(tmp_path / "out", problems, "simulated/oracle", name="other"))


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        pytest.param({"problems": ["missing.parquet"]}, "missing.parquet was not found", id="no problem set"),
        pytest.param({"conditions": [{"name": "a", "shots": 3}]}, "no worked examples", id="cannot be asked"),
        pytest.param(
            {"limits": {"openai": {"tpm": 1}}}, "one request may need", id="too few tokens a minute"
        ),
    ],
)
def test_what_would_keep_a_run_from_starting_is_said(tmp_path, keys, complaint):
    raw = {"name": "s", "problems": [str(problem_set(tmp_path))], "models": ["openai/gpt-4.1"]}
    with pytest.raises(AsyncbenchError, match=complaint):
        plan(sweep_from({**raw, "out": str(tmp_path / "out"), **keys}))


@pytest.mark.long
async def test_guesses_are_called_so_until_replies_are_known(tmp_path):
    priced = {"model": "simulated/oracle", "price": PRICE, "max_tokens": 50}
    asked = sweep(tmp_path / "out", problem_set(tmp_path), priced, {**priced, "alias": "other", "seed": 1})
    before = plan(asked, budget_usd=5).as_text(width=300)
    cut = plan(asked, budget_usd=0.004).as_text(width=300)
    assert "Tokens, cost and time are guesses (see Assumptions)" in before
    assert "enough for everything, if the guesses are right." in before
    assert "95th" not in before
    assert "p95" not in cut

    await run_sweep(asked, limit=80, models=["simulated/oracle"])
    half = plan(asked, budget_usd=5).as_text(width=300)
    assert "Tokens, cost and time of other are guesses" in half
    assert "if the guesses for other are right." in half
    cut = plan(asked, budget_usd=0.005).as_text(width=300)
    assert "other: guesses, also in the columns of the 95th percentile (p95)." in cut

    await run_sweep(asked, limit=80)
    known = plan(asked, budget_usd=5).as_text(width=300)
    assert "are guesses" not in known
    assert "enough for everything, also at the 95th percentile." in known

    await run_sweep(asked)
    over = plan(asked, budget_usd=5).as_text(width=300)
    assert over.endswith("Nothing is left to ask: a run makes no call.")


def test_a_batch_has_a_column_where_somebody_s_price_of_it_is_known(tmp_path):
    problems, own = problem_set(tmp_path), {"model": "simulated/oracle", "price": PRICE}
    without = plan(sweep(tmp_path / "a", problems, own)).as_text(width=300)
    beside = plan(sweep(tmp_path / "b", problems, own, "openai/gpt-4.1")).as_text(width=300)
    assert "as a batch" not in without
    assert "as a batch: the provider's batch price" in beside
    for shown in (without, beside):
        head = next(line for line in shown.splitlines() if "limited by" in line)
        row = next(line for line in shown.splitlines() if "concurrency" in line)
        assert head.index("limited by") + len("limited by") == row.index("concurrency") + len("concurrency")


def test_a_budget_that_a_run_would_refuse_is_the_first_thing_to_beware_of(tmp_path):
    found = plan(sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle"), budget_usd=1)
    assert found.warnings[0].startswith("a run would refuse this budget")
    assert len(found.warnings) == 3


def test_the_command_prints_text_or_json(tmp_path):
    file = sweep_file(
        tmp_path, problem_set(tmp_path), {"model": "simulated/oracle", "price": PRICE}, "openai/gpt-4.1"
    )
    shown = succeeded(asyncbench("plan", file))
    for part in ("SIMULATED", "openai/gpt-4.1", "together", "Assumptions:", "Nothing was asked"):
        assert part in shown.stdout
    told = json.loads(asyncbench("plan", file, "--limit", 5, "--models", "simulated/oracle", "--json").stdout)
    assert [(one["model"], one["left"]) for one in told["models"]] == [("simulated/oracle", 5)]
    assert asyncbench("plan", file, "--models", "nobody").returncode == 2
    assert "asyncbench plan" in asyncbench("plan", "--help").stdout
    assert not Path(tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["$5", "5,0", "abc", "inf", "nan", "0", "-3"])
def test_a_budget_that_is_no_number_of_dollars_is_refused_in_plain_words(given):
    said = f"--budget {given}: not a number of dollars above 0. Give one, such as 5"
    with pytest.raises(ConfigError) as refused:
        dollars_typed(given)
    assert str(refused.value) == said


@pytest.mark.parametrize("command", ["plan", "run"])
def test_the_command_line_says_so_in_one_line(command):
    done = asyncbench_here(command, "sweep.yaml", "--budget", "$5")
    said = "asyncbench: --budget $5: not a number of dollars above 0. Give one, such as 5\n"
    assert (done.returncode, done.stderr) == (2, said)
