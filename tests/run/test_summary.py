"""The lines with which a run ends."""

import asyncio
import re
from pathlib import Path

import pytest

from asyncbench import run_sweep
from asyncbench.engine.telemetry import Counters
from asyncbench.records import Outcome
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit, Summary
from asyncbench.store.budget_state import known_costs
from asyncbench.store.catalog import read_attempts
from tests.commands import asyncbench_here, succeeded
from tests.sweep_files import entry, problem_set, simulator

PRICE = {"input": 1, "output": 10}


def summary(causes=(), *, stops=(), limit=None, command="asyncbench run night.yaml", **models):
    return Summary(
        sweep="night",
        out=Path("out"),
        models=models,
        causes=frozenset(causes),
        seconds=64.2,
        simulated=False,
        command=command,
        stops=stops,
        limit=limit,
    )


def counters(right=0, wrong=0, failed=0, **given):
    made = Counters(**given)
    made.outcomes.update({Outcome.CORRECT: right, Outcome.WRONG: wrong, Outcome.FAILED: failed})
    made.attempts = made.outcomes.total()
    return made


def test_everything_done_is_one_number_and_this_run_is_told_apart():
    one = counters(294, 64, planned=720, done_before=144, cost_usd=0.0055, cost_before_usd=0.0022)
    first, *_ = summary([Exit.INTERRUPTED], m=one).as_text().splitlines()
    told = "502/720 done (358 this run). Accuracy 82 % this run. $0.0055 this run, $0.0077 in all"
    assert first == f"night: {told}. 0:01:05."


def test_a_first_run_speaks_of_no_other():
    first, *_ = summary(m=counters(3, 1, planned=4, cost_usd=0.0055)).as_text().splitlines()
    assert first == "night: 4/4 done. Accuracy 75 %. $0.0055. 0:01:05."


def test_accuracy_is_that_of_a_model_and_never_of_several_together():
    told = summary(a=counters(4, planned=4), b=counters(0, 4, planned=4)).as_text().splitlines()
    assert told[:3] == [
        "night: 8/8 done. $0.0000. 0:01:05.",
        "  a: 4/4 done, accuracy 100 %, $0.0000",
        "  b: 4/4 done, accuracy 0 %, $0.0000",
    ]
    assert told[3:] == ["results: out (see `asyncbench report out`)"]


def test_where_a_screen_of_results_follows_only_the_run_is_summed_up():
    told = summary(a=counters(4, planned=4), b=counters(0, 4, planned=4)).as_text(brief=True)
    assert told == "night: 8/8 done. $0.0000. 0:01:05."


def test_exit_3_says_which_of_its_reasons_it_is():
    failed = summary([Exit.UNFINISHED], m=counters(3, failed=2, planned=5)).as_text()
    assert (
        "\nNot complete. 2 trials are without a usable reply.\nTo ask again those without a reply: " in failed
    )
    assert "asyncbench run night.yaml --retry failed" in failed
    assert "left" not in failed

    stopped = counters(3, planned=5, suspended="auth: HTTP 401")
    models = {"a": stopped, "b": counters(5, planned=5)}
    why = "stopped: a: the provider rejects the key in KEY (HTTP 401). Set a valid key, then run again."
    text = summary([Exit.UNFINISHED], stops=[why], **models).as_text()
    assert why in text
    assert (
        "Not complete. 1 of 2 models stopped. 2 trials are left.\nTo continue: asyncbench run night.yaml"
        in text
    )
    assert "--retry" not in text


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            Exit.INTERRUPTED,
            "Interrupted. Everything answered so far is saved. 2 trials are left.\nTo continue: ",
        ),
        (
            Exit.DEADLINE,
            "The deadline has passed. Everything answered so far is saved. 2 trials are left.\nTo ",
        ),
    ],
)
def test_a_run_that_was_stopped_says_what_is_left_and_how_to_continue(cause, said):
    assert f"\n{said}" in summary([cause], m=counters(3, planned=5)).as_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    problems = problem_set(tmp_path_factory.mktemp("set"))
    with simulator(problems) as started:
        yield problems, started


@pytest.mark.long
def test_a_limit_that_is_reached_says_what_is_left_and_what_a_later_run_cost(tmp_path, server):
    problems, started = server
    model = entry(started, "simulated-http/noisy", alias="m", price=PRICE)
    file = tmp_path / "sweep.yaml"
    file.write_text(
        f"{{name: s, problems: [{problems}], models: [{model}], out: {tmp_path / 'out'}}}".replace("'", '"')
    )
    typed = succeeded(asyncbench_here("run", file, "--limit", 20, "--quiet"))
    assert (
        "--limit 20 reached: 20 of 144 problems asked; run again without --limit for the rest" in typed.stdout
    )

    before = sum(cost or 0 for cost in read_attempts(tmp_path / "out")["cost_usd"].to_pylist())
    assert known_costs(tmp_path / "out")["m"].usd == pytest.approx(before)
    again = asyncio.run(run_sweep(file, limit=50))
    assert (
        "limit=50 reached: 50 of 144 problems asked; run again without limit for the rest" in again.as_text()
    )
    (one,) = again.models.values()
    assert one.cost_before_usd == pytest.approx(before)
    assert (one.done, one.outcomes.total()) == (50, 30)
    assert re.search(
        r"s: 50/50 done \(30 this run\)\. Accuracy \d+ % this run\. \$\S+ this run", again.as_text()
    )

    whole = asyncio.run(run_sweep(file))
    assert "run again without" not in whole.as_text()
    assert whole.models["m"].cost_before_usd == pytest.approx(before + one.cost_usd)


def test_a_budget_is_called_what_was_typed():
    assert RunOptions(budget_usd=5, typed=True).budget_name == "--budget"
    assert RunOptions(budget_usd=5).budget_name == "budget_usd"
    assert RunOptions(typed=True).budget_name == "budget_usd"  # the sweep's own
