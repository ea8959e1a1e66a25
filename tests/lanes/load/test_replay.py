"""`asyncbench load --trace`: what is sent when, how long replies are, and what is said of it."""

import json
from dataclasses import replace
from itertools import islice

import pytest

from asyncbench import read_attempts, read_problems, read_steps
from asyncbench.errors import ConfigError
from asyncbench.planning.planned_load import load_plan
from asyncbench.planning.traces import set_lengths, settings_of
from asyncbench.planning.trials import trial_sources, trials_of
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.problems.schema import identified
from asyncbench.problems.traces import TraceCall
from asyncbench.suites.synthetic import draft_synthetic
from tests.commands import asyncbench_here
from tests.sweep_files import sweep

CALLS = [TraceCall(0.0, 300, 30), TraceCall(0.5, 64, 8), TraceCall(0.5, 900, 12), TraceCall(2.0, 40, 0)]
TRACE = "time_s,input_tokens,output_tokens\n" + "".join(
    f"{7 + call.at_s},{call.input_tokens},{call.output_tokens}\n" for call in CALLS
)
PRICED = {"model": "openai/gpt-5-mini", "alias": "m", "max_tokens": 30, "price": {"input": 1, "output": 10}}
STEPS = {"arrivals": "trace", "rates": [1, 4], "rest": 1}


@pytest.fixture
def questions(tmp_path):
    """A file of problems that were made of a trace."""
    drafts = [
        replace(draft_synthetic(f"question {n}", **settings_of(call, "t.csv")), task="trace", length=None)
        for n, call in enumerate(CALLS)
    ]
    return write_problems(identified(drafts), tmp_path / "t.questions.parquet").path


def test_a_plan_counts_the_calls_and_the_tokens_of_a_trace_and_what_they_cost(questions, tmp_path):
    plan = load_plan(sweep(tmp_path / "out", questions, PRICED, load=STEPS))
    slow, fast = plan.steps
    assert (slow.step, slow.calls, slow.input_tokens, slow.output_tokens) == ("trace 1x", 4, 1304, 50)
    assert slow.cost_usd == slow.cost_usd_most == pytest.approx(1304 / 1e6 + 51 * 10 / 1e6)  # no reply of 0
    assert (fast.step, fast.seconds, slow.seconds) == ("trace 4x", 1 + 1, 3 + 1)
    assert "1,304 tokens in, 50 out" in plan.as_text()
    (cut,) = load_plan(
        sweep(tmp_path / "out", questions, PRICED, load=STEPS | {"rates": [1], "duration": "0.4s"})
    ).steps
    assert (cut.calls, cut.input_tokens, cut.output_tokens) == (1, 300, 30)


def test_each_trial_of_a_trace_may_have_a_reply_as_long_as_that_of_its_call(questions, tmp_path):
    planned = sweep(tmp_path / "out", questions, PRICED, load=STEPS)
    sets = trial_sources([open_set(questions)])
    trials = list(set_lengths(trials_of(planned, planned.models[0], sets, limit=None, load="trace 1x #1")))
    assert [trial.model.max_tokens for trial in trials] == [30, 8, 12, 1]  # in the order of the trace
    assert [trial.problem.question for trial in islice(trials, 2)] == ["question 0", "question 1"]


def test_a_trace_is_refused_where_its_problems_or_its_limits_do_not_go_with_it(questions, problems, tmp_path):
    for source, model, load, said in (
        (problems, PRICED, STEPS, "its problems have no times.*--trace FILE"),
        (questions, PRICED, STEPS | {"warmup": "1s"}, r"leaves no call of t.csv, which takes 0.5 s"),
        (questions, PRICED | {"rpm": 60}, STEPS, "has `rpm: 60`, and t.csv has 4 calls a second in the mean"),
    ):
        with pytest.raises(ConfigError, match=said):
            load_plan(sweep(tmp_path / "out", source, model, load=load))
    assert load_plan(
        sweep(tmp_path / "out", questions, PRICED | {"rpm": 60}, load=STEPS | {"past_limits": True})
    ).steps


@pytest.mark.long
def test_the_calls_of_a_trace_are_sent_at_their_times_and_have_its_lengths(tmp_path):
    trace, out = tmp_path / "day.csv", tmp_path / "out"
    trace.write_text(TRACE)
    words = ("--model", "simulated/oracle", "--out", out, "--trace", trace, "--speed", "2", "--rest", "0s")
    plan = asyncbench_here("plan", *words, "--json")
    assert (json.loads(plan.stdout)["together"]["calls"], out.exists()) == (4, False)
    assert "Replays 4 calls of day.csv: 1,304 tokens in, 50 out." in asyncbench_here("plan", *words).stderr
    assert not list(tmp_path.glob("*.parquet"))  # nobody was asked

    told = asyncbench_here("load", *words)
    assert told.returncode in (0, 3), told.stderr  # 3: this machine was too slow
    calls = sorted(read_attempts(out).to_pylist(), key=lambda call: (call["due_at"], call["input_tokens"]))
    due_s = [(call["due_at"] - calls[0]["due_at"]).total_seconds() for call in calls]
    assert due_s == pytest.approx([0, 0.25, 0.25, 1], abs=1e-5)
    assert [call["max_tokens"] for call in calls] == [30, 8, 12, 1]
    assert [call["output_tokens"] for call in calls] == [30, 8, 12, 1]
    counted = [call["input_tokens"] for call in calls]
    assert [abs(found - call.input_tokens) <= 5 for found, call in zip(counted, CALLS, strict=True)] == [
        True
    ] * 4
    (step,) = read_steps(out).to_pylist()
    assert (step["load"], step["arrivals"], step["rate"], step["seconds"]) == (
        "trace 2x #1",
        "trace",
        2.0,
        2.0,
    )

    # The load and its report say the same of it.
    (line,) = (line for line in told.stdout.splitlines() if "replayed" in line)
    assert line.startswith(
        "simulated/oracle: replayed 4 calls of day.csv at speed 2 in 0:00:02; 4 were answered."
    )
    tokens = f"Tokens: 1,304 in (server counted {sum(counted):,}), 50 out (server counted 51); 0 of 4 replies"
    assert tokens in line
    assert line in asyncbench_here("report", out, "--style", "load").stdout.splitlines()
    (replay,) = json.loads(asyncbench_here("report", out, "--style", "load", "--json").stdout)["replays"]
    assert (replay["trace"], replay["calls"], replay["output_counted"], replay["text"]) == (
        "day.csv",
        4,
        51,
        line,
    )
    assert replay["late_p99_s"] >= replay["late_p50_s"] > 0

    # The folder has all that another speed needs. Another trace is another sweep.
    asked = read_problems(out).num_rows
    trace.rename(tmp_path / "elsewhere.csv")
    again = asyncbench_here("load", out / "sweep.yaml", "--speed", "4", "--quiet")
    assert again.returncode in (0, 3), again.stderr
    assert {row["load"].split(" #")[0] for row in read_steps(out).to_pylist()} == {"trace 2x", "trace 4x"}
    assert read_problems(out).num_rows == asked
    trace.write_text(TRACE + "20,5,5\n")
    other = asyncbench_here("load", *words)
    assert (other.returncode, "holds the questions of another trace" in other.stderr) == (2, True)


@pytest.mark.long
def test_a_trace_is_replayed_to_the_models_of_a_sweep_file_and_wrong_words_are_refused(tmp_path):
    file, trace = tmp_path / "two.yaml", tmp_path / "day.csv"
    trace.write_text(TRACE)
    file.write_text(
        f"name: two\nout: {tmp_path / 'out'}\nproblems: [{{suite: integer_addition, tries: 2}}]\n"
        "models: [simulated/oracle, simulated/noisy]\nload: {rates: [9], warmup: 3s, duration: 2s}\n"
    )
    told = asyncbench_here("load", file, "--trace", trace, "--speed", "4", "--json")
    assert told.returncode in (0, 3), told.stderr
    replays = json.loads(told.stdout)["replays"]
    assert [(replay["model"], replay["calls"]) for replay in replays] == [
        ("simulated/noisy", 4),
        ("simulated/oracle", 4),
    ]

    trace.write_text(TRACE + "5,1,1\n")
    for words, said in (
        (("--trace", trace, "--out", tmp_path / "new"), "line 6: time_s is 5, 4 s before the row above"),
        (("--trace", trace, "--rates", "1"), "Leave out --rates"),
        (("--trace", trace, "--tokens", "9/9"), "Leave out --tokens"),
        (("--trace", trace, "--speed", "0"), "'--speed' must be more than 0"),
        (("--trace", trace, "--speed", "fast"), "'fast' is not a number"),
    ):
        refused = asyncbench_here("load", file, *words)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "new").exists()
