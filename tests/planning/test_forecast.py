"""A forecast: what finished trials tell of those to come, and how often that holds."""

import json
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from asyncbench import generate, import_files, read_attempts, read_trials, run_sweep
from asyncbench.config.sweep import as_mapping
from asyncbench.errors import ConfigError, StoreError
from asyncbench.planning.budget_bounds import open_ledger
from asyncbench.planning.cuts import Bound, shares
from asyncbench.planning.draws import DRAWS, Prompt, RemainingTrials, draws_for, draws_of
from asyncbench.planning.finished import Measured, SeenCell, StraightLine, columns_of, seen_in, seen_of
from asyncbench.planning.forecast_file import FORECAST, MOST, add_forecast, joined_forecasts, read_forecasts
from asyncbench.planning.records import Range
from asyncbench.planning.replies import Replies
from asyncbench.planning.sweep_plan import plan
from asyncbench.pricing import Bracket, Rates
from asyncbench.records import Cell, Sent
from asyncbench.run.summary import Exit
from asyncbench.store.folder import Store
from asyncbench.tables.numbers import dollars
from benchmarks.forecast import checked, recorded, within
from tests import recorded as recorded_files
from tests.commands import asyncbench_here, succeeded
from tests.reports.paid import Call, folder_of, trials
from tests.sweep_files import Said, entry as entry_of, problem_set, simulator, sweep

PRICE = {"input": 1.0, "output": 10.0}
O4_MINI = "azure_o4-mini-2025-04-16_2025-05-17_07-42.jsonl"


def cell(length, task="int_add"):
    return Cell("llm_arithmetic", task, "", "integer", length)


def seen_cell(*outputs, failed=0):
    replied = len(outputs)
    return SeenCell(trials=replied + failed, replied=replied, input_tokens=20.0, outputs=outputs)


def tokens_of(seen, wanted, *, most=None, draws=300):
    _, tokens = Replies(seen, dict(wanted), longest=most).draw(np.random.default_rng(3), draws)
    return [Range.of(column) for column in tokens.T.tolist()]


# ── on the recorded runs ─────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_pilot_of_two_a_cell_foretells_the_recorded_runs(golden):
    found = [checked(name, run) for name, run in sorted(recorded(golden).items())]
    tokens, dollars, priced = within(found)
    assert (len(found), priced) == (26, 19)
    assert tokens >= 22
    assert dollars >= 16
    assert sorted(one.width for one in found)[13] < 0.25  # ranges that hold everything would be easy


# ── replies ──────────────────────────────────────────────────────────────────────────────────


def test_the_mean_of_a_forecast_is_that_of_what_was_seen():
    rng = random.Random(7)
    seen = {cell(n): seen_cell(*(rng.lognormvariate(n / 3, 0.5) for _ in range(20))) for n in range(2, 11)}
    for (at, known), told in zip(seen.items(), tokens_of(seen, [(at, 40) for at in seen]), strict=True):
        mean = sum(known.outputs) / len(known.outputs)
        assert told.p50 / 40 == pytest.approx(mean, rel=0.2), at
        assert told.p5 < told.p50 < told.p95


def test_more_replies_make_a_narrower_range():
    rng = random.Random(7)
    few = {cell(n): seen_cell(*(rng.lognormvariate(3, 0.8) for _ in range(2))) for n in range(2, 11)}
    many = {cell(n): seen_cell(*(rng.lognormvariate(3, 0.8) for _ in range(30))) for n in range(2, 11)}
    widths = [
        sum((told.p95 - told.p5) / told.p50 for told in tokens_of(seen, [(at, 50) for at in seen]))
        for seen in (few, many)
    ]
    assert widths[1] < widths[0] * 0.75


def test_a_length_without_replies_lies_between_its_neighbours_and_is_less_sure():
    seen = {cell(n): seen_cell(*(100.0 * n + k for k in (-5, 0, 5))) for n in (2, 3, 5, 6)}
    alone, near = tokens_of(seen, [(cell(4), 50), (cell(3), 50)])
    assert 300 < alone.p50 / 50 < 500
    assert (alone.p95 - alone.p5) / alone.p50 > (near.p95 - near.p5) / near.p50


def test_a_task_without_replies_is_like_the_others_and_far_less_sure():
    seen = {cell(n): seen_cell(100.0, 110.0) for n in (2, 3)}
    other, own = tokens_of(seen, [(cell(2, "int_mul"), 50), (cell(2), 50)])
    assert other.p5 < own.p50 < other.p95
    assert other.p95 - other.p5 > 3 * (own.p95 - own.p5)


def test_no_reply_is_longer_than_max_tokens():
    seen = {cell(2): seen_cell(50.0, 100.0, 100.0)}  # two were cut
    (told,) = tokens_of(seen, [(cell(2), 10)], most=100)
    assert told.p95 <= 1000


def test_calls_that_fail_take_no_tokens():
    seen = {cell(2): seen_cell(failed=6), cell(3): seen_cell(*[100.0] * 6)}
    failing, answered = tokens_of(seen, [(cell(2), 10), (cell(3), 10)])
    assert failing.p50 < 300
    assert answered.p50 > 800


def test_a_cell_with_one_reply_is_less_sure_than_one_with_several():
    seen = {cell(n): seen_cell(*(100.0 * n + k for k in (-20, 0, 20))) for n in (2, 3, 5, 6)}
    seen[cell(4)] = seen_cell(400.0)
    single, several = tokens_of(seen, [(cell(4), 50), (cell(3), 50)])
    assert single.p50 / 50 == pytest.approx(400, rel=0.15)
    assert (single.p95 - single.p5) / single.p50 > (several.p95 - several.p5) / several.p50


def test_cells_of_a_task_without_replies_err_together():
    """Ten cells that other lengths tell are no surer than one: all lie on the same line."""
    seen = {cell(n): seen_cell(100.0, 110.0) for n in (2, 30)} | {cell(16): seen_cell(200.0, 210.0)}
    unseen = {cell(n): 500 for n in range(20, 30)}
    _, tokens = Replies(seen, unseen).draw(np.random.default_rng(3), 400)
    together, (alone, *_) = Range.of(tokens.sum(axis=1).tolist()), tokens_of(seen, list(unseen.items()))
    assert (together.p95 - together.p5) / together.p50 > 0.5 * (alone.p95 - alone.p5) / alone.p50


@pytest.mark.parametrize("count", [5, 64, 65, 5000])
def test_many_trials_of_a_cell_are_summed_as_few_are(count):
    seen = {cell(2): seen_cell(*[10.0, 30.0] * 16)}
    (told,) = tokens_of(seen, [(cell(2), count)])
    assert told.p50 / count == pytest.approx(20, rel=0.15)


@pytest.mark.long
def test_a_thousand_lengths_are_few_places():
    seen = {cell(n): seen_cell(float(n), float(n)) for n in range(1, 1001)}
    told = tokens_of(seen, [(at, 1) for at in seen], draws=20)
    assert told[900].p50 > 5 * told[20].p50


# ── dollars and seconds ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("points", "first", "second"),
    [
        pytest.param([(10, 5, 45), (20, 1, 45), (5, 9, 55)], 2, 5, id="two prices"),
        pytest.param([(10, 0, 20), (20, 0, 40)], 2, 0, id="one of them never asked for"),
        pytest.param([(1, 1, 5), (1, 1, 5)], 5, 0, id="nothing tells them apart"),
        pytest.param([(5, 9, 0), (1, 1, 0)], 0, 0, id="nothing was paid"),
    ],
)
def test_prices_are_learnt_from_bills_and_from_none_nothing(points, first, second):
    assert StraightLine.through([]) is None
    found = StraightLine.through(points)
    assert found is not None
    assert (found.first, found.second) == (pytest.approx(first), pytest.approx(second))


def test_each_request_is_priced_by_itself():
    """A prompt beyond a bracket makes its reply dearer, too; the sum of all prompts makes none dearer."""
    measured = Measured(replied=True, input_tokens=100, output_tokens=10, latency_s=1.0, cost_usd=None)
    brackets = tuple(
        Bracket(above=above, input=usd, cached_input=usd, cache_write=usd, cache_write_1h=usd, output=usd)
        for above, usd in ((-1, Decimal(1)), (150, Decimal(10)))
    )
    rest = RemainingTrials(
        seen=seen_of({cell(2): columns_of([measured] * 4)}),
        prompts=Counter({Prompt(cell(2), 400): 50, Prompt(cell(2), 1600): 50}),
        sent={cell(2): 400.0},
        rates=Rates(source="test", brackets=brackets),
        batch_rates=None,
        longest_reply=None,
    )
    drawn = draws_of(rest, draws=100, seed="x")
    short, long = 50 * (100 * 1 + 10 * 1) / 1e6, 50 * (400 * 10 + 10 * 10) / 1e6
    assert Range.of(one.cost_usd or 0 for one in drawn).p50 == pytest.approx(short + long, rel=0.05)
    assert Range.of(one.input_tokens for one in drawn).p50 == pytest.approx(50 * 500, rel=0.01)


# ── what a budget and a deadline leave ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        pytest.param([], {"a": 1, "b": 1, "c": 1}, id="no bound"),
        pytest.param([Bound(models="abc", amount=300)], {"a": 0.5, "b": 0.5, "c": 0.5}, id="one for all"),
        pytest.param([Bound(models="abc", amount=9000)], {"a": 1, "b": 1, "c": 1}, id="plenty"),
        pytest.param(
            [Bound(models="abc", amount=300), Bound(models="a", amount=10)],
            {"a": 0.1, "b": 0.58, "c": 0.58},
            id="what one leaves is the others'",
        ),
        pytest.param([Bound(models="ab", amount=0)], {"a": 0, "b": 0, "c": 1}, id="nothing is left of it"),
        pytest.param(
            [Bound(models="ab", amount=150, spare={"a": 120})],
            {"a": 0.1, "b": 0.7, "c": 1},
            id="one cannot use all of it",
        ),
    ],
)
def test_models_get_on_alike_until_a_bound_stops_them(bounds, left):
    assert shares({"a": 100, "b": 200, "c": 300}, bounds)[0] == pytest.approx(left)


def test_those_bounds_are_named_that_stop_something():
    bounds = [Bound(models="ab", amount=200, name="x"), Bound(models="a", amount=10, name="y")]
    assert shares({"a": 100, "b": 100}, bounds)[1] == ["y"]
    assert shares({"a": 100, "b": 300}, bounds)[1] == ["x", "y"]


async def test_a_plan_says_what_a_budget_and_a_deadline_leave(tmp_path):
    entry = {"model": "simulated/oracle", "alias": "m", "price": PRICE, "max_tokens": 50, "rpm": 60}
    asked = sweep(tmp_path / "out", problem_set(tmp_path), entry)
    whole = plan(asked).cost_usd
    assert whole
    found = plan(asked, budget_usd=whole / 2, deadline="36s")
    budget, deadline = found.cuts
    (half,) = budget.usual
    assert 60 < half.trials < 72  # what is set aside for the last call may not be had
    assert [one.trials for one in deadline.usual] == [36]
    assert half.per_cell == half.trials / 72
    assert "The budget of sweep test is not enough for everything: $" in found.as_text()
    assert plan(asked, budget_usd=1000 * whole).cuts[0].complete


async def test_no_call_is_promised_whose_reserve_does_not_fit(tmp_path):
    entry = {"model": "simulated-http/oracle", "price": PRICE, "max_tokens": 64_000}
    asked = sweep(tmp_path / "out", problem_set(tmp_path), entry, budget_usd=0.3)
    found = plan(asked)
    (cut,) = found.cuts
    assert [one.trials for one in cut.usual] == [0]
    assert (
        "simulated-http/oracle: the budget has no room for one more call. A call may cost up to $0.64"
        in found.as_text()
    )
    assert [one.attempts for one in (await run_sweep(asked)).models.values()] == [0]


@pytest.mark.long
async def test_a_plan_after_a_budget_stop_promises_nothing_and_names_each_budget(tmp_path):
    simulated = {"price": PRICE, "max_tokens": 64, "concurrency": 4}
    own = {"model": "simulated-http/noisy", "budget_usd": 0.001, **simulated}
    asked = sweep(
        tmp_path / "out",
        problem_set(tmp_path, trials=1),
        {"model": "simulated-http/oracle", **simulated},
        own,
        budget_usd=0.004,
    )
    assert (await run_sweep(asked)).exit is Exit.BUDGET
    found = plan(asked)
    (cut,) = found.cuts
    assert [one.trials for one in (*cut.usual, *cut.careful)] == [0] * 4
    assert cut.binding == ("budget of sweep test", "budget of model simulated-http/noisy")
    said = [
        f"The {name} is not enough for everything: {dollars(cut.left[name])} left." for name in cut.binding
    ]
    assert [text for text in said if text not in found.as_text()] == []


async def test_a_plan_says_what_is_spent_of_a_budget_that_is_passed_and_leaves_out_who_is_done(tmp_path):
    simulated = {"price": PRICE, "max_tokens": 64}
    models = [{"model": f"simulated-http/{name}", "alias": name, **simulated} for name in ("oracle", "noisy")]
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=1), *models, budget_usd=0.001)
    summary = await run_sweep(asked, models=["oracle"], budget_usd=1)
    spent = summary.models["oracle"].cost_usd
    found = plan(asked).as_text(width=200)
    assert f"The budget of sweep test is used up: ${spent:,.4f} of $0.0010 spent." in found
    _, cut = found.split("What that is enough for: the first trials of every cell")
    assert "noisy" in cut
    assert "oracle" not in cut.split("\n\n")[0]


async def test_a_plan_names_the_ways_of_asking_of_which_too_few_replies_are_known(tmp_path):
    entry = {"model": "simulated-http/oracle", "alias": "m", "price": PRICE, "max_tokens": 64}
    conditions = [{"name": "plain"}, {"name": "crowded", "context": "1k"}]
    problems = problem_set(tmp_path, trials=1)
    await run_sweep(sweep(tmp_path / "out", problems, entry, conditions=conditions[:1]), limit=51)
    found = plan(sweep(tmp_path / "out", problems, entry, conditions=conditions)).as_text(width=300)
    assert "guesses (see Assumptions): m has 51 replies, but fewer than 2 under 'crowded'." in found
    assert "`plan --pilot 2` makes a few calls first" in found


def test_after_a_pilot_that_a_budget_stopped_a_plan_offers_the_budget_and_no_pilot(tmp_path):
    conditions = [{"name": "plain"}, {"name": "crowded", "context": "4k"}]
    done, _ = piloted(tmp_path, conditions=conditions, budget_usd=0.0005)
    assert done.returncode == Exit.BUDGET
    told = " ".join(done.stdout.split())
    assert "The budget of simulated-http/oracle allows no more calls. Raise it" in told
    assert "makes a few calls first" not in told


async def test_a_call_of_unknown_cost_counts_in_a_plan_as_in_a_run(tmp_path):
    entry = {"model": "simulated-http/oracle", "alias": "a", "price": PRICE, "max_tokens": 64}
    problems = problem_set(tmp_path, trials=1)
    await run_sweep(sweep(tmp_path / "out", problems, entry), limit=1)
    store = Store.open(tmp_path / "out", sweep="test")
    call = Sent(
        trial_id="e" * 32, attempt=1, model="a", provider="simulated-http", started_at=1.7e9, most_usd=0.0008
    )
    store.keep(replace(call, reserved_usd=0.001))
    store.keep(replace(call, trial_id="f" * 32))  # no budget held it
    store.close()
    asked = sweep(tmp_path / "out", problems, entry, budget_usd=0.004)
    Store.reopen(tmp_path / "out").close()  # calls without an end are lost
    (planned,) = plan(asked).cuts
    before = 0.004 - planned.left["budget of sweep test"]
    ledger = open_ledger(asked, asked.out)
    assert ledger is not None
    assert before == pytest.approx(ledger.caps[0].spent / 1e12)
    assert before > 0.001 + 0.0008


def test_a_deadline_that_passed_leaves_nothing(tmp_path):
    found = plan(
        sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle"), deadline="2020-01-01 00:00"
    )
    assert [one.trials for one in found.cuts[0].usual] == [0]
    assert any("has passed" in said for said in found.warnings)


@pytest.mark.parametrize("keys", [{"budget_usd": 0}, {"budget_usd": float("nan")}, {"deadline": "soon"}])
def test_a_budget_or_a_deadline_that_is_none_is_refused(tmp_path, keys):
    with pytest.raises(ConfigError, match=next(iter(keys))):
        plan(sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle"), **keys)


# ── pilots ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_a_pilot_asks_the_first_of_every_cell_under_every_condition_once(tmp_path):
    both = [{"name": "plain"}, {"name": "shouted", "system": "LOUD"}]
    problems = problem_set(tmp_path, trials=3)
    asked = sweep(tmp_path / "out", problems, "simulated/oracle", conditions=both, repeats=2)
    summary = await run_sweep(asked, pilot=2)
    assert [one.planned for one in summary.models.values()] == [72 * 2 * 2]
    rows = read_trials(asked.out, ["task", "length", "condition", "repeat"]).to_pylist()
    assert set(Counter((row["task"], row["length"], row["condition"]) for row in rows).values()) == {2}
    assert {row["repeat"] for row in rows} == {0}
    again = await run_sweep(asked, pilot=2)
    assert [one.attempts for one in again.models.values()] == [0]


def piloted(tmp_path, *arguments, **keys):
    entry = {"model": "simulated-http/oracle", "price": PRICE, "max_tokens": 50}
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=3), entry, **keys)
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(as_mapping(asked)), "utf-8")
    return asyncbench_here("plan", file, "--pilot", 2, *arguments), asked.out


@pytest.mark.long
@pytest.mark.parametrize(("given", "own"), [(0.0015, {}), (10, {"budget_usd": 0.0015})])
def test_a_pilot_stays_within_the_lower_budget(tmp_path, given, own):
    done, out = piloted(tmp_path, "--budget", given, **own)
    assert done.returncode == Exit.BUDGET
    assert 0 < used_in(out, "cost_usd") <= 0.0015
    file = tmp_path / "sweep.yaml"
    ways = [
        f"run `asyncbench plan {file} --pilot 2 --budget 0.003`",
        f"raise budget_usd, then run `asyncbench plan {file} --pilot 2`",
    ]
    assert f"To continue, {ways[bool(own)]}" in done.stdout


@pytest.mark.parametrize("wrong", [("--deadline", "tomorrowish"), ("--budget", "0")])
def test_nothing_is_asked_for_a_plan_that_is_refused(tmp_path, wrong):
    done, out = piloted(tmp_path, *wrong)
    assert done.returncode == 2
    assert not out.exists()


def used_in(folder, column):
    return pc.sum(read_trials(folder, [column])[column]).as_py()


@pytest.fixture
def replayed(tmp_path, golden):
    """A sweep file whose model answers as o4-mini was recorded to."""
    (name,) = [
        path for path in recorded_files.write_jsonl(golden, tmp_path / "files") if path.name == O4_MINI
    ]
    imported = import_files("llm-arithmetic", [name], tmp_path / "recorded", depths="2-10").out
    (problems,) = (imported / "problems").glob("*.parquet")
    model = f"simulated/{name.stem}"
    entry = {"model": model, "alias": "o4", "replay": str(imported), "price": {"input": 1.1, "output": 4.4}}
    asked = sweep(tmp_path / "out", problems, entry)
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(as_mapping(asked)), "utf-8")
    return file, asked.out, imported


@pytest.mark.long
def test_a_pilot_forecasts_a_replayed_run_which_then_asks_nothing_twice(replayed):
    file, out, imported = replayed
    cells = 17
    first = succeeded(asyncbench_here("plan", file, "--pilot", 2, "--json"))
    told = json.loads(first.stdout)
    (model,) = told["models"]
    assert (told["pilot"]["models"]["o4"]["attempts"], model["done"], model["left"]) == (
        2 * cells,
        2 * cells,
        128,
    )
    cuts = json.loads(asyncbench_here("plan", file, "--budget", 0.1, "--json").stdout)["cuts"]
    assert 0 < cuts[0]["usual"][0]["trials"] < 128

    again = json.loads(asyncbench_here("plan", file, "--pilot", 2, "--json").stdout)
    assert again["pilot"]["models"]["o4"]["attempts"] == 0
    assert again["models"] == told["models"]

    assert asyncbench_here("run", file, "--quiet").returncode == 0
    attempts = read_attempts(out, ["trial_id"])["trial_id"].to_pylist()
    assert len(attempts) == len(set(attempts)) == 162
    used = used_in(out, "output_tokens")
    assert used == used_in(imported, "output_tokens")

    (kept,) = read_forecasts(out)
    assert kept["by"] == "pilot"
    total = kept["models"]["o4"]["total"]
    assert Range(**total["output_tokens"]).holds(used)
    assert Range(**total["cost_usd"]).holds(used_in(out, "cost_usd"))


def test_calls_that_were_cut_off_keep_no_dollars_from_being_forecast(tmp_path):
    cut = Call(status="timeout", cost_usd=None)
    folder = folder_of(tmp_path, trials(2, cut, Call(cost_usd=1.0), Call(cost_usd=2.0)))
    assert read_trials(folder, ["cost_usd"])["cost_usd"].null_count == 2
    (seen,) = seen_in(folder, {("mini", "plain"): pa.chunked_array([["mini-0", "mini-1"]])}).values()
    assert seen.used.cost_usd == 4.0
    assert seen.price is not None


@pytest.mark.long
async def test_a_run_is_forecast_anew_once_the_sweep_has_changed(tmp_path):
    problems, entry = (
        problem_set(tmp_path, trials=1),
        {"model": "simulated-http/oracle", "alias": "m", "price": PRICE},
    )
    await run_sweep(sweep(tmp_path / "out", problems, entry), limit=20)
    asked = sweep(tmp_path / "out", problems, entry)
    await run_sweep(asked, limit=30)
    await run_sweep(asked, limit=40)
    dear = entry | {"price": {"input": 100.0, "output": 500.0}}
    await run_sweep(sweep(tmp_path / "out", problems, dear), limit=50)
    kept = [
        (one["by"], one["limit"], one["models"]["m"]["observed"]) for one in read_forecasts(tmp_path / "out")
    ]
    assert kept == [("run", 30, 20), ("run", 40, 30), ("run", 50, 40)]
    last, before = (read_forecasts(tmp_path / "out")[i]["models"]["m"] for i in (-1, -2))
    assert last["prices"][0]["input"] == 100
    assert last["total"]["cost_usd"]["p50"] > before["total"]["cost_usd"]["p50"]


@pytest.mark.long
def test_a_plan_whose_forecast_cannot_be_kept_is_shown_all_the_same(tmp_path):
    done, out = piloted(tmp_path, "--limit", 2)
    (out / FORECAST).write_text("{", "utf-8")
    again = asyncbench_here("plan", tmp_path / "sweep.yaml", "--pilot", 2, "--limit", 3)
    assert (done.returncode, again.returncode) == (0, 0)
    assert "problem set" in again.stdout
    assert "not kept" in again.stderr


async def test_a_forecast_file_that_cannot_be_read_is_said_and_the_run_goes_on(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path, trials=1), "simulated-http/oracle")
    await run_sweep(asked, limit=10)
    (asked.out / FORECAST).write_text("{", "utf-8")
    heard = Said()
    assert (await run_sweep(asked, screen=heard)).exit is Exit.COMPLETE
    assert any("no forecast is kept" in said and FORECAST in said for said in heard.lines)


def test_a_run_with_many_cells_is_drawn_less_often_or_not_at_all():
    assert draws_for([72], quick=True) == [DRAWS]
    many = draws_for([720] * 20, quick=True)
    assert 0 < many[0] < draws_for([720] * 20, quick=False)[0]
    assert draws_for([5000] * 20, quick=True) == [0] * 20


# ── whose trials tell ────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_two_servers_of_one_model_are_forecast_apart(tmp_path):
    problems = problem_set(tmp_path, trials=2)
    with simulator(problems) as one, simulator(problems) as other:
        common = {"price": PRICE, "max_tokens": 64, "key_env": "ANY"}
        asked = sweep(
            tmp_path / "out",
            problems,
            entry_of(one, "http/oracle", alias="a", **common),
            entry_of(other, "http/noisy", alias="b", **common) | {"model": "http/oracle"},
        )
        await run_sweep(asked, pilot=1, env={"ANY": "sk-x"})
    found = {one.model: one.forecast for one in plan(asked).models}
    assert {alias: forecast and forecast.replies for alias, forecast in found.items()} == {"a": 72, "b": 72}


@pytest.mark.long
async def test_trials_of_problems_that_were_corrected_are_not_counted(tmp_path):
    out, entry = tmp_path / "out", {"model": "simulated-http/oracle", "price": PRICE}
    own = problem_set(tmp_path, trials=1)
    table = pq.read_table(own)
    await run_sweep(sweep(out, own, entry))
    others, new = table.slice(0, 20), tmp_path / "new.parquet"
    generate("llm_arithmetic", new, seed=77, trials=1)
    pq.write_table(pa.concat_tables([others, pq.read_table(new)]), own)
    (one,) = plan(sweep(out, own, entry)).models
    assert one.forecast is not None
    assert (one.done, one.forecast.replies) == (20, 20)
    asked = others["problem_id"].to_pylist()
    used = read_trials(out, ["problem_id", "output_tokens"], filters=[("problem_id", "in", asked)])
    assert len(used) == 20 < table.num_rows
    assert one.forecast.spent.output_tokens == pc.sum(used["output_tokens"]).as_py()


# ── what is kept ─────────────────────────────────────────────────────────────────────────────


def made(observed, limit=None, **keys):
    return {"sweep": "s", "limit": limit, "models": {"m": {"observed": observed, **keys}}, "together": None}


@pytest.mark.parametrize(
    "changed", [{"limit": 5}, {"trials": 9}, {"left": 3}, {"prices": [{"input": 2.0}]}, {"observed": 3}]
)
def test_a_forecast_of_something_else_is_kept_too(changed):
    first = {"observed": 2, "trials": 8, "left": 6, "prices": [{"input": 1.0}]}
    assert add_forecast([made(**first)], made(**first), by="run") is None
    assert add_forecast([made(**first)], made(**{**first, **changed}), by="run") is not None


def test_forecasts_of_several_folders_are_joined_by_their_time():
    one, two = ([made(n) | {"made_at": f"2026-11-{n:02}"} for n in days] for days in ((1, 3), (2, 3)))
    told = joined_forecasts([one, two, []])
    assert told is not None
    assert [kept["made_at"] for kept in json.loads(told)["forecasts"]] == [
        "2026-11-01",
        "2026-11-02",
        "2026-11-03",
    ]
    assert joined_forecasts([(), ()]) is None


def test_the_first_forecast_and_the_latest_are_kept(tmp_path):
    for observed in range(1, 31):
        told = add_forecast(read_forecasts(tmp_path), made(observed), by="run")
        assert told is not None
        (tmp_path / FORECAST).write_bytes(told)
    kept = [one["models"]["m"]["observed"] for one in read_forecasts(tmp_path)]
    assert kept == [1, *range(30 - MOST + 2, 31)]
    assert add_forecast(read_forecasts(tmp_path), made(30), by="run") is None


@pytest.mark.parametrize("text", ["{", '{"version": 99, "forecasts": []}', "[]"])
def test_a_file_that_is_no_forecast_is_refused(tmp_path, text):
    Path(tmp_path / FORECAST).write_text(text, "utf-8")
    with pytest.raises(StoreError, match=FORECAST):
        read_forecasts(tmp_path)


async def test_trials_without_usage_are_not_forecast_from(tmp_path):
    asked = sweep(tmp_path / "out", problem_set(tmp_path), "simulated/oracle")
    await run_sweep(asked, limit=1)
    (one,) = plan(asked).models
    assert one.done == 1
    assert one.forecast is None  # one reply tells nothing of a spread
