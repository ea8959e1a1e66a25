"""The ready-made sweep in batches, which starts its own simulator: interrupted, killed, and run again."""

import asyncio
import signal
from collections import Counter

import pytest
import yaml

from asyncbench import read_attempts, read_trials, run_sweep
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.run.summary import Exit
from tests.commands import ROOT, asyncbench
from tests.processes import Forked, until
from tests.sweep_files import problem_set, sweep


@pytest.fixture
def batch_sweep(tmp_path):
    """The sweep with a part or two of each model, whose batches take a second."""
    raw = yaml.safe_load((ROOT / "configs" / "batch.yaml").read_text("utf-8"))
    for model in raw["models"]:
        model["params"]["simulate"]["batch"]["speedup"] = 20_000
    raw |= {"problems": [{"suite": "llm_arithmetic", "seed": 1, "trials": 1}], "batch": {"max_requests": 40}}
    file = tmp_path / "batch.yaml"
    file.write_text(yaml.safe_dump(raw | {"out": str(tmp_path / "out")}), "utf-8")
    return file, tmp_path / "out"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_sweep_with_a_simulator_of_its_own_finds_its_batches_again(batch_sweep, tmp_path, number):
    file, out = batch_sweep
    with (tmp_path / "said").open("w") as said:
        process = Forked("asyncbench", "run", file, "--quiet", stderr=said.fileno())
    until(lambda: sum(part.requests for part in sent(out)) >= 144)
    process.send_signal(number)
    process.wait()
    first = {part.batch_id for part in sent(out)}
    kept = out / "batches" / "simulated"
    assert kept.is_dir()
    done = asyncbench("run", file)
    assert done.returncode == Exit.COMPLETE
    assert "SIMULATED" in done.stdout
    attempts = read_attempts(out).to_pylist()
    answered = Counter(row["trial_id"] for row in attempts if row["status"] == "ok")
    assert answered == dict.fromkeys((row["trial_id"] for row in read_trials(out).to_pylist()), 1)
    assert answered.total() == 144
    assert {row["mode"] for row in attempts} == {"batch"}
    assert first <= {row["batch_id"] for row in attempts}
    assert not kept.exists()


def sent(out):
    """The parts of a folder that are known to be batches."""
    return [part for part in BatchLedger(out).parts.values() if part.batch_id]


@pytest.mark.long
@pytest.mark.parametrize("model", ["simulated/oracle", "simulated-anthropic/oracle"])
def test_a_simulator_of_the_run_s_own_plays_batches_at_once_though_nobody_says_so(tmp_path, model):
    out = tmp_path / "out"
    asked = sweep(out, problem_set(tmp_path), {"model": model, "mode": "batch"})
    done = asyncio.run(asyncio.wait_for(run_sweep(asked, limit=4), 60))  # half an hour by a batch's own clock
    assert done.exit is Exit.COMPLETE
    assert {row["mode"] for row in read_attempts(out).to_pylist()} == {"batch"}
