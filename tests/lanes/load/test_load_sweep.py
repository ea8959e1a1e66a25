"""`asyncbench load` against a real server: rows of calls and steps, what is left, and what is refused."""

import asyncio
import json
import shutil
import time
import zipfile
from collections import Counter
from dataclasses import replace

import pytest

from asyncbench import (
    export_folder,
    merge_folders,
    read_attempts,
    read_steps,
    read_trials,
    report,
    run_load,
    run_sweep,
    status as status_of,
)
from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ConfigError
from asyncbench.lanes.load.earlier_steps import limits_before
from asyncbench.planning.belonging import questions_of_steps
from asyncbench.planning.planned_load import load_plan
from asyncbench.planning.trials import trial_sources
from asyncbench.problems.opening import open_set
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from asyncbench.store.folder import Store
from asyncbench.store.verify import verify_folder
from tests.commands import asyncbench_here
from tests.processes import Forked
from tests.store.made import keep, minute
from tests.sweep_files import Said, entry, simulator, sweep, sweep_file

# On a busy machine answers may be long in coming, and a step waits for none longer than `drain`.
STEPS = {"arrivals": "constant", "warmup": "0.5s", "duration": "1.5s", "drain": "60s", "rest": 0}


def asked(server, problems, out, *, model="simulated/oracle", **load):
    return sweep(out, problems, entry(server, model), load=STEPS | {"rates": [10, 20]} | load)


def loaded(planned):
    return asyncio.run(run_load(planned, progress=False))


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["simulated", "simulated-anthropic", "simulated-http"])
def test_every_call_is_a_streamed_graded_row_of_its_step(server, problems, tmp_path, vendor):
    before = server.stats()
    summary = loaded(asked(server, problems, tmp_path / "out", model=f"{vendor}/oracle", rates=[20]))
    after = server.stats()
    assert [after[name] - before[name] for name in ("requests", "delivered")] == [40, 40]
    assert summary.exit in (Exit.COMPLETE, Exit.UNFINISHED)  # where this machine was too slow
    assert "40/40 done. Accuracy 100 % of answers." in summary.as_text()
    (step,) = read_steps(tmp_path / "out").to_pylist()
    assert (step["load"], step["offered"], step["answered"]) == ("constant 20/s #1", 30, 30)
    calls = read_attempts(tmp_path / "out").to_pylist()
    assert Counter(call["phase"] for call in calls) == {"warmup": 10, "measured": 30}
    for call in calls:
        assert call["late_s"] >= 0 < call["ttft_s"] <= call["ttfo_s"] <= call["latency_s"]
        assert call["due_at"] <= call["started_at"]
        assert call["chunks"] > 0 < call["output_chars"]
        assert (call["gap_max_s"] is None) == (call["chunks"] == 1) == (call["gap_counts"] is None)
        assert call["gap_counts"] is None or call["chunks"] - 1 == sum(
            json.loads(call["gap_counts"]).values()
        )
    assert any(call["connect_s"] is not None for call in calls)
    assert any(call["connect_s"] is None for call in calls)
    (shown,) = json.loads(report(tmp_path / "out").as_json())["steps"]  # of a load alone: its style
    measured = [call for call in calls if call["phase"] == "measured"]
    for kind in ("latency", "ttft"):
        values = sorted(call["late_s"] + call[f"{kind}_s"] for call in measured)
        assert shown[kind]["p50"]["s"] == pytest.approx(values[14])
    assert (shown["offered"], shown["latency"]["p95"]["s"]) == (30, None)
    trials = read_trials(tmp_path / "out").to_pylist()
    assert {(trial["load"], trial["outcome"]) for trial in trials} == {("constant 20/s #1", "correct")}
    assert len({trial["trial_id"] for trial in trials}) == 40
    assert verify_folder(tmp_path / "out").sound


@pytest.mark.long
def test_no_rate_is_above_what_a_server_can_do(problems, tmp_path):
    with simulator(problems, slots=1, service="fixed", latency_s=0.1) as slow:  # ten answers a second
        times = {"rates": [30], "duration": "2s", "warmup": "0.5s", "slo": {"latency": 60}}
        loaded(asked(slow, problems, tmp_path / "out", **times))
    (step,) = json.loads(report(tmp_path / "out").as_json())["steps"]
    assert (step["offered"], step["answered"]) == (60, 60)  # most of them while the step waited for answers
    most = (2 * 10 + 1) / 2  # one more may end in a time that is not a whole number of answers
    assert 0 < step["answered_per_s"] <= most
    assert 0 < step["goodput_per_s"] <= most
    calls = read_attempts(tmp_path / "out", ["output_tokens"]).to_pylist()
    assert 0 < step["tokens_per_s"] <= most * max(call["output_tokens"] for call in calls)
    (found,) = json.loads(report(tmp_path / "out", style="providers").as_json())["providers"]
    assert found["limits"]["most"] <= 60 * most


@pytest.mark.long
def test_a_load_that_goes_on_asks_other_problems_if_each_step_is_to(server, problems, tmp_path):
    quick = {"warmup": 0, "duration": "1s", "same_problems": False}
    for rate in (10, 20):
        loaded(asked(server, problems, tmp_path / "out", rates=[rate], **quick))
    trials = read_trials(tmp_path / "out", ["load", "problem_id"]).to_pylist()
    names = ("constant 10/s #1", "constant 20/s #1")
    asked_by = [{row["problem_id"] for row in trials if row["load"] == name} for name in names]
    assert list(map(len, asked_by)) == [10, 20]
    assert not set.intersection(*asked_by)
    calls = read_attempts(tmp_path / "out", ["queued_s", "late_s"]).to_pylist()
    assert all(call["queued_s"] <= call["late_s"] for call in calls)  # none waited before it was due


@pytest.mark.long
def test_what_is_measured_is_not_measured_again_and_more_is(server, problems, tmp_path):
    def bound():
        rows = read_steps(tmp_path / "out").to_pylist()
        return max(rows, key=lambda row: row["round"])["client_bound"]  # as on a busy machine

    loaded(asked(server, problems, tmp_path / "out", rates=[10]))
    (step,) = read_steps(tmp_path / "out").to_pylist()
    assert (step["load"], len(step["asked"])) == ("constant 10/s #1", 32)
    to_repeat, again = bound(), loaded(asked(server, problems, tmp_path / "out", rates=[10]))
    assert [step.load for step in again.steps or ()] == ["constant 10/s #2"] * to_repeat
    assert ("Every step was measured before" in again.as_text()) != to_repeat
    to_repeat, summary = bound(), loaded(asked(server, problems, tmp_path / "out", rates=[10, 20]))
    begun = [step.load.partition(" #")[0] for step in summary.steps or ()]
    assert sorted(begun) == ["constant 10/s"] * to_repeat + ["constant 20/s"]
    assert load_sweep(tmp_path / "out" / "sweep.yaml").load == asked(server, problems, tmp_path).load


def test_a_step_tells_how_it_was_asked(server, problems, tmp_path):
    def how(model="simulated/oracle", params=None, **load):
        one = entry(server, model, **({} if params is None else {"params": params}))
        planned = sweep(tmp_path, problems, one, load=STEPS | {"rates": [10]} | load)
        sets = trial_sources([open_set(problems)])
        assert planned.load is not None
        return questions_of_steps(planned, planned.load, planned.models[0], sets)

    ways = [how(), how("simulated/null"), how(max_in_flight=7), how(drain="9s"), how(same_problems=False)]
    ways += [how(params={"max_tokens": 64}), how(arrivals="closed", think="1s")]
    assert len({*ways}) == len(ways)
    assert how() == how(rates=[20], duration="9s", slo={"latency": 1})


@pytest.mark.long
def test_a_closed_loop_has_as_many_callers_as_it_says(server, problems, tmp_path):
    summary = loaded(asked(server, problems, tmp_path / "out", arrivals="closed", rates=[3]))
    assert "Callers wait for their answers (`arrivals: closed`): a slow server" in summary.as_text()
    (step,) = read_steps(tmp_path / "out").to_pylist()
    assert (step["load"], step["arrivals"], step["rate"]) == ("closed 3 #1", "closed", 3.0)
    assert (step["in_flight_max"], step["ks_p"]) == (3, None)
    assert step["answered"] == step["offered"] > 3


def test_a_server_that_nobody_reaches_ends_a_load_which_says_why(problems, tmp_path):
    dead = {"model": "vllm/foo", "max_tokens": 9, "base_url": "http://127.0.0.1:9/v1"}
    keys = {"rates": [9, 18], "warmup": 0, "duration": "0.5s", "order": "rising"}
    screen = Said()
    planned = sweep(tmp_path / "out", problems, dead, load=STEPS | keys)
    summary = asyncio.run(run_with_options(planned, RunOptions(load=()), env={}, screen=screen))
    assert summary.exit is Exit.UNFINISHED
    assert "stopped: vllm/foo: no call of constant 9/s #1 reached the server" in summary.as_text()
    assert "Not complete. 1 of 1 models stopped. Steps that are incomplete" in summary.as_text()
    assert "5/14 done. 5 failed." in summary.as_text()
    assert "Accuracy" not in summary.as_text()
    assert [step.verdict for step in summary.steps or ()] == ["incomplete"]
    assert any("The load goes on to the end of its step. Start the server" in line for line in screen.lines)
    assert "1 step, 1 incomplete" in status_of(tmp_path / "out").as_text()


@pytest.mark.long
def test_a_load_leaves_the_figures_of_an_ordinary_sweep_in_its_folder_alone(server, problems, tmp_path):
    ordinary = sweep(tmp_path / "out", problems, entry(server, "simulated/oracle"))
    asyncio.run(run_sweep(ordinary, limit=5, progress=False))
    before = status_of(tmp_path / "out")
    loaded(asked(server, problems, tmp_path / "out", rates=[20], duration="1s"))
    after = status_of(tmp_path / "out")
    (was,), (model,) = before.models, after.models
    assert (was.planned, was.done, was.open) == (72, 5, 67) == (model.planned, model.done, model.open)
    assert model.loaded == 30 == model.attempts - was.attempts
    assert sum(model.steps.values()) == 1
    assert "simulated/oracle under load: 1 step, 1 " in after.as_text()
    assert "5/72" in after.as_line()
    assert json.loads(report(tmp_path / "out").as_json())["suites"][0]["trials"] == 5
    export_folder("inspect", tmp_path / "out", tmp_path / "logs")
    (log,) = (tmp_path / "logs").glob("*.eval")
    assert len([name for name in zipfile.ZipFile(log).namelist() if name.startswith("samples/")]) == 5
    export_folder("llm-arithmetic", tmp_path / "out", tmp_path / "rows")
    (rows,) = (tmp_path / "rows").glob("sim*.jsonl")
    assert len(rows.read_text().splitlines()) == 5


@pytest.mark.long
def test_a_step_stands_once_in_merged_folders_and_two_measurements_are_not_made_one(
    server, problems, tmp_path
):
    a, copy, b, out = (tmp_path / name for name in ("a", "copy", "b", "merged"))
    quick = {"rates": [20], "warmup": 0, "duration": "0.5s", "gpus": 4}
    loaded(asked(server, problems, a, **quick))
    shutil.copytree(a, copy)
    merge_folders([a, copy], out)
    told = [json.loads((folder / "manifest.json").read_text())["loads"] for folder in (a, out)]
    assert told[0] == told[1]
    assert [load["gpus"] for load in told[0]["simulated/oracle"]] == [4]
    assert (read_steps(out).num_rows, read_attempts(out).num_rows) == (1, 10)
    assert verify_folder(out).sound
    loaded(asked(server, problems, b, **quick))
    with pytest.raises(ConfigError, match="both measured constant 20/s #1 of simulated/oracle"):
        merge_folders([a, b], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_run_and_load_each_have_their_sweeps(server, problems, tmp_path):
    with pytest.raises(ConfigError, match="Run it with `asyncbench load`"):
        asyncio.run(run_sweep(asked(server, problems, tmp_path / "out")))
    with pytest.raises(ConfigError, match=r"has no `load`.*--rates"):
        loaded(sweep(tmp_path / "out", problems, entry(server, "simulated/oracle")))
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_the_command_takes_rates_or_callers_beside_a_file_or_without_one(server, problems, tmp_path):
    out, file = tmp_path / "out", sweep_file(tmp_path, problems, entry(server, "simulated/oracle"))
    times = ("--duration", "1s", "--warmup", "0s", "--rest", "0s", "--drain", "9s")
    told = asyncbench_here("load", file, "--rates", "5", "--slo", "latency=30,share=0.5", *times, "--json")
    steps = json.loads(told.stdout)["steps"]
    assert [(step["load"], step["slo"]) for step in steps] == [
        ("poisson 5/s #1", {"latency": 30, "share": 0.5})
    ]
    assert told.returncode in (0, 3)
    typed = asyncbench_here(
        "load", "--model", "simulated/oracle", "--problems", problems, "--out", tmp_path / "typed",
        "--rates", "4,8", "--arrivals", "constant", *times, "--quiet",
    )  # fmt: skip
    assert "constant 8/s #1: 8 of 8 calls due in 1 s were answered" in typed.stdout
    again = asyncbench_here(
        "plan", "--model", "simulated/oracle", "--problems", problems, "--out", tmp_path / "typed",
        "--rates", "4,8", "--arrivals", "constant", *times,
    )  # fmt: skip
    assert again.stderr == ""  # typed again, it goes on
    calls = [*read_attempts(out).to_pylist(), *read_attempts(tmp_path / "typed").to_pylist()]
    assert calls
    assert all(call["ttft_s"] is not None for call in calls)  # streamed, as with a load in the file
    called = asyncbench_here(
        "load", file, "--concurrency", "1,2", *times, "--out", tmp_path / "callers", "--json"
    )
    assert {step["load"] for step in json.loads(called.stdout)["steps"]} == {"closed 1 #1", "closed 2 #1"}
    both = asyncbench_here("load", file, "--concurrency", "1,2", "--rates", "5")
    assert (both.returncode, both.stderr) == (
        2,
        "asyncbench: --concurrency 1,2: callers ask in turn, so no rate is held. Leave out --rates\n",
    )
    wrong = asyncbench_here("load", file, "--rates", "5,x")
    assert (wrong.returncode, wrong.stderr) == (2, "asyncbench: --rates 5,x: 'x' is not a number\n")


def test_a_budget_ends_a_step_with_its_exit_code_and_the_way_on(server, problems, tmp_path):
    priced = entry(server, "simulated/oracle", max_tokens=100, price={"input": 0, "output": 100.0})
    steps = STEPS | {"rates": [10], "duration": "30s", "warmup": 0}
    planned = sweep(tmp_path / "out", problems, priced, load=steps, budget_usd=0.0125)
    summary = loaded(planned)
    assert summary.exit is Exit.BUDGET
    assert "Stopped by budget_usd: no money for the next call." in summary.as_text()
    (step,) = read_steps(tmp_path / "out").to_pylist()
    assert step["verdict"] == "incomplete"
    spent = sum(call["cost_usd"] for call in read_attempts(tmp_path / "out").to_pylist())
    assert 0 < spent <= 0.0125


@pytest.mark.long
def test_a_step_of_a_killed_run_is_measured_as_another_one(server, problems, tmp_path):
    before = server.stats()["delivered"]
    slow = entry(server, "simulated/oracle", params={"simulate": {"latency_s": 1.0}})
    steps = STEPS | {"rates": [10], "warmup": "1s", "duration": "30s"}
    file = sweep_file(tmp_path, problems, slow, load=steps)
    process = Forked("asyncbench", "load", file, "--quiet")
    while server.stats()["delivered"] < before + 15:
        time.sleep(0.05)
    time.sleep(1)  # what was delivered more than a second ago is safe
    process.kill()
    process.wait()
    assert read_steps(tmp_path / "out").num_rows == 0
    loaded(sweep_file(tmp_path, problems, slow, load=steps | {"duration": "1s"}))
    killed, step = sorted(read_steps(tmp_path / "out").to_pylist(), key=lambda row: row["load"])
    assert (killed["load"], killed["verdict"], killed["rate"]) == ("constant 10/s #1", "incomplete", 10.0)
    assert killed["warmup_s"] == pytest.approx(1.0, abs=0.05)
    assert killed["offered"] == killed["answered"] + killed["unfinished"]
    assert killed["answered"] > 0 < killed["unfinished"]  # those in flight were lost
    assert (step["load"], step["answered"]) == ("constant 10/s #2", 10)
    calls = read_attempts(tmp_path / "out").to_pylist()
    assert {call["load"] for call in calls} == {"constant 10/s #1", "constant 10/s #2"}
    lost = [call for call in calls if call["status"] == "lost"]
    assert {(call["load"], call["cost_usd"], call["phase"]) for call in lost} == {
        ("constant 10/s #1", None, "measured")
    }
    assert all(call["due_at"] <= call["started_at"] for call in lost)


@pytest.mark.long
def test_rates_above_a_limit_that_the_folder_knows_are_refused_unless_somebody_wants_to_see_it(
    problems, tmp_path
):
    with simulator(problems, rpm=600, tpm=90_000) as limited:
        ordinary = sweep(tmp_path / "out", problems, entry(limited, "simulated/oracle"))
        asyncio.run(run_sweep(ordinary, limit=3, progress=False))
        quick = {"warmup": 0, "duration": "0.5s"}
        fast = asked(limited, problems, tmp_path / "out", rates=[9, 20], **quick)
        for refused in (loaded, load_plan):
            with pytest.raises(
                ConfigError, match=r"a limit of 600 requests a minute, which 20 calls a second"
            ):
                refused(fast)
        many = sweep(
            tmp_path / "out",
            problems,
            entry(limited, "simulated/oracle", tpm=600),
            load=STEPS | {"rates": [9]},
        )
        with pytest.raises(ConfigError, match=r"a limit of 600 tokens a minute, which 9 .* of about"):
            loaded(many)
        seen = loaded(asked(limited, problems, tmp_path / "out", rates=[20], past_limits=True, **quick))
        assert [step.load for step in seen.steps or ()] == ["constant 20/s #1"]


def test_a_minute_without_limits_does_not_forget_those_that_are_known(tmp_path):
    known = minute("m")
    with Store.open(tmp_path, sweep="night") as store:
        limits: list[dict[str, float]] = [{"requests": 300.0}, {"tokens": 9_000.0}, {}]
        later = [
            replace(known, started_at=known.started_at + 60 * n, limits=each)
            for n, each in enumerate(limits, 1)
        ]
        keep(store, known, *later)
    assert limits_before(tmp_path, "m") == {"requests": 300.0, "tokens": 9_000.0}


@pytest.mark.long
def test_a_search_goes_no_higher_than_the_limit_of_its_model(server, problems, tmp_path):
    model = entry(server, "simulated/oracle", rpm=600)
    find = {"lowest": 8, "highest": 500}
    steps = STEPS | {"find": find, "slo": {"latency": 60, "share": 0.5}}
    summary = loaded(sweep(tmp_path / "out", problems, model, load=steps))
    rates = [step.rate for step in summary.steps or ()]
    assert rates[0] == 8.0
    assert set(rates) <= {8.0, 10.0}  # a slow machine repeats a step, or ends early
    (found,) = summary.found.values()
    assert found in summary.as_text()
    if len(rates) == 3 and summary.exit is Exit.COMPLETE:
        assert found == "Kept the SLO up to 10/s, the highest rate that was tried, which is its `rpm`."
