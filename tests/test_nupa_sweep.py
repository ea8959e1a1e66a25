"""NUPA from end to end: asked in every style of three simulated models, through the real SDKs."""

import asyncio
import json

import pytest

from asyncbench import generate, read_grades, read_trials, run_sweep
from asyncbench.planning.sweep_plan import plan
from asyncbench.published.nupa.counts import entrant_lines
from asyncbench.published.nupa.report import nupa_report_on
from asyncbench.run.summary import Exit
from asyncbench.suites.nupa.tasks import TASKS
from tests.sweep_files import entry, simulator, sweep

MODELS = ("simulated/oracle", "simulated/noisy", "simulated-anthropic/noisy-2")
RELEASED = [task for task in TASKS.values() if "released" in task.sets]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A problem of each task; and of some that have a rule."""
    folder = tmp_path_factory.mktemp("sets")
    every, with_rule = folder / "every.parquet", folder / "with-rule.parquet"
    generate("nupa", every, seed=3, per_length=1, lengths="18")
    generate("nupa", with_rule, seed=3, per_length=1, lengths="18", tasks="add,multiply,max,mod")
    return every, with_rule


@pytest.fixture(scope="module")
def results(tmp_path_factory, sets):
    """The results folders of a sweep without and of one with examples, and of one with rules."""
    out = tmp_path_factory.mktemp("nupa")
    every, with_rule = sets
    shown = [{"name": "zero-shot"}, {"name": "5-shot", "shots": 5}]
    sweeps = {
        out / "chat": (every, shown),
        out / "rules": (with_rule, [{"name": "rules", "style": "rules"}]),
    }
    for folder, (problems, conditions) in sweeps.items():
        summary = asyncio.run(run_sweep(sweep(folder, problems, *MODELS, conditions=conditions)))
        assert summary.exit is Exit.COMPLETE
    return out


@pytest.mark.long
def test_every_task_is_asked_of_every_model_under_every_condition(results):
    lines = nupa_report_on(results / "chat").lines
    assert {(line.model, line.condition, line.task.name) for line in lines} == {
        (model, condition, task.name)
        for model in MODELS
        for condition in ("zero-shot", "5-shot")
        for task in RELEASED
    }
    assert all(line.answers == 1 for line in lines)


@pytest.mark.parametrize("folder", ["chat", "rules"])
def test_who_knows_everything_is_right_everywhere_and_others_are_not(results, folder):
    for (_, model, _), lines in entrant_lines(nupa_report_on(results / folder).lines).items():
        shares = [line.by_grader["strict"]["exact_match"].mean for line in lines]
        assert (set(shares) == {1}) is (model == MODELS[0])


def test_both_graders_are_stored_with_their_digits(results):
    rows = read_grades(results / "chat").to_pylist()
    assert len(rows) == 2 * len(read_trials(results / "chat"))
    for row in rows:
        assert row["headline"] is (row["grader"] == "strict")
        assert row["digits_total"] >= row["digits_right"] >= 0
        assert (row["digits_right"] == row["digits_total"]) or not row["exact_match"]


def test_examples_cost_tokens_and_plan_knows_how_many_characters(results, sets):
    rows = read_trials(results / "chat", ["condition", "model", "input_tokens"]).to_pylist()
    sums = {
        name: sum(row["input_tokens"] for row in rows if row["condition"] == name)
        for name in ("zero-shot", "5-shot")
    }
    assert sums["5-shot"] > 3 * sums["zero-shot"]
    planned = plan(
        sweep(results / "none", sets[0], MODELS[0], conditions=[{"name": "5-shot", "shots": 5}])
    ).models[0]
    assert planned.input_tokens == pytest.approx(sums["5-shot"] / len(MODELS), rel=0.1)


def test_the_report_is_for_a_terminal_and_for_scripts(results):
    report = nupa_report_on(results / "rules")
    text = report.as_text(width=120)
    assert text.startswith("SIMULATED")
    assert "simulated/oracle: exact match by task and range of lengths" in text
    assert "multiply easy, float" in text
    said = json.loads(report.as_json())
    assert {line["style"] for line in said["lines"]} == {"rules"}
    assert all(
        line["strict"]["exact_match"]["L"] is None for line in said["lines"] if line["length_class"] == 20
    )


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_completion_with_examples_on_its_lines_is_answered_behind_the_equals_sign(tmp_path, sets, api):
    condition = {"name": "lines", "style": "completion", "shots": 3}
    with simulator(sets[0]) as server:
        asked = entry(server, "simulated/oracle", api=api)
        ran = sweep(tmp_path / "out", sets[0], asked, conditions=[condition])
        assert asyncio.run(run_sweep(ran)).exit is Exit.COMPLETE
    rows = read_trials(tmp_path / "out", ["exact_match", "style"]).to_pylist()
    assert {row["style"] for row in rows} == {"completion"}
    assert {row["exact_match"] for row in rows} == {api == "completions"}  # a chat puts no space in front


def test_asking_again_asks_nothing_and_another_number_of_examples_is_another_trial(tmp_path, sets):
    out = tmp_path / "out"
    with simulator(sets[1]) as server:
        for shots, requests in ((2, 22), (2, 22), (3, 44)):
            conditions = [{"name": f"{shots}-shot", "shots": shots}]
            ran = sweep(out, sets[1], entry(server, "simulated/oracle"), conditions=conditions)
            asyncio.run(run_sweep(ran))
            assert server.stats()["requests"] == requests
