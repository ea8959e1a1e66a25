"""How models are asked: for a sweep, a provider or a model, and by --mode for all of them."""

from collections import Counter

import pytest
import yaml

from asyncbench.config.overriding import replace_mode
from asyncbench.config.sweep import load_sweep, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from tests.commands import asyncbench_here
from tests.world.cuts import CutError, cutting

PROBLEMS = [{"suite": "integer_addition", "seed": 1}]


def modes(**keys):
    models = [
        "openai/a",
        {"model": "openai/b", "mode": "realtime"},
        {"model": "anthropic/c", "max_tokens": 9},
    ]
    sweep = sweep_from({"name": "x", "problems": PROBLEMS, "models": models, **keys})
    return [model.mode for model in sweep.models]


def test_a_model_says_its_mode_before_its_provider_and_that_before_the_sweep():
    assert modes() == ["realtime", "realtime", "realtime"]
    assert modes(mode="batch") == ["batch", "realtime", "batch"]
    assert modes(limits={"openai": {"mode": "batch"}}) == ["batch", "realtime", "realtime"]
    assert modes(mode="batch", limits={"anthropic": {"mode": "realtime"}}) == [
        "batch",
        "realtime",
        "realtime",
    ]


@pytest.mark.long
def test_a_mode_for_all_models_wins_over_their_own_and_asks_no_trial_again(night):
    asked = night("simulated", mode="realtime")
    assert asked.run(limit=12).exit is Exit.COMPLETE
    assert asked.run(limit=12, mode="batch").exit is Exit.COMPLETE
    assert (len(asked.attempts), asked.truth) == (12, [])
    summary = asked.run(limit=20, mode="batch")
    assert Counter(row["mode"] for row in asked.attempts) == {"realtime": 12, "batch": 8}
    assert summary.command.endswith("--limit 20 --mode batch")
    assert [model.mode for model in load_sweep(asked.out / "sweep.yaml").models] == ["batch"]


@pytest.mark.long
@pytest.mark.parametrize("point", ["after line prepared 1", "after line submitted 1"])
def test_what_batches_leave_to_a_run_in_real_time_is_asked_there(night, point):
    faults = ("simulated", "expires=1:0.5")
    asked = night(*faults, batch={"fallback": "none"}, play={"speedup": 60, "latency_s": 4000})
    with cutting(point) as cutter, pytest.raises((CutError, ExceptionGroup)):
        asked.run(limit=6)
    begun = len(asked.truth)
    assert (cutter.cut, begun) == (True, int("submitted" in point))
    assert asked.run(limit=12, mode="realtime").exit is Exit.COMPLETE
    assert len(asked.truth) == begun
    assert asked.answers == asked.undisturbed(limit=12)
    at_once = {row["trial_id"] for row in asked.attempts if row["mode"] == "realtime"}
    assert at_once == asked.answers.keys() - asked.billed.keys()
    assert len(asked.billed) == 3 * begun


def test_a_pilot_is_asked_in_real_time_for_who_plans_does_not_wait_a_day(night):
    asked = night("simulated")
    asked.run(pilot=1, limit=6)
    assert {row["mode"] for row in asked.attempts} == {"realtime"}
    assert [model.mode for model in load_sweep(asked.out / "sweep.yaml").models] == ["batch"]


def test_a_mode_is_for_the_models_that_are_asked():
    sweep = sweep_from({"name": "x", "problems": PROBLEMS, "models": ["openai/a", "xai/grok"]})
    assert [one.mode for one in replace_mode(sweep, "batch", models=["openai/a"]).models] == [
        "batch",
        "realtime",
    ]
    with pytest.raises(
        ConfigError, match=r"--mode batch: xai has no batch API.* leave this one out with --models"
    ):
        replace_mode(sweep, "batch", given_as="--mode")
    with pytest.raises(ConfigError, match="mode 'fast': unknown mode"):
        replace_mode(sweep, "fast")


def test_a_mode_is_typed_beside_a_sweep_file(tmp_path):
    file = tmp_path / "night.yaml"
    raw = {"name": "night", "problems": PROBLEMS, "models": ["openai/gpt-5-mini"], "out": str(tmp_path / "x")}
    file.write_text(yaml.safe_dump(raw))
    assert "Batches, and the same calls" not in asyncbench_here("plan", file).stdout
    assert "Batches, and the same calls" in asyncbench_here("plan", file, "--mode", "batch").stdout
    assert "unknown mode" in asyncbench_here("run", file, "--mode", "fast").stderr
    assert RunOptions(mode="batch").command(load_sweep(file)) == f"asyncbench run {file} --mode batch"
