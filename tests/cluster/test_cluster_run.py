"""A run whose workers are processes of their own: the answers, budgets and ends of one process."""

import asyncio
import os
import signal
from collections import Counter
from typing import Any

import pytest

import asyncbench as ab
from asyncbench.cluster.messages import WorkerDiedError
from asyncbench.errors import ConfigError
from asyncbench.run.summary import Exit
from tests.cluster.on_processes import rows_of, run_on
from tests.cluster.processes import ProcessCluster
from tests.processes import until
from tests.sweep_files import Said, entry, outcomes, problem_set, simulator, sweep

PRICE = {"input": 1.0, "output": 5.0}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A problem set, and a server that answers it."""
    problems = problem_set(tmp_path_factory.mktemp("asked"), trials=2)
    with simulator(problems, latency_s=0.05) as server:
        yield problems, server


@pytest.fixture(scope="module")
def alone(asked, tmp_path_factory):
    """What one process makes of it."""
    problems, server = asked
    out = tmp_path_factory.mktemp("alone") / "out"
    asyncio.run(ab.run_sweep(sweep(out, problems, *models_of(server))))
    return out


def models_of(server, **keys):
    return [
        entry(server, f"simulated-http/{name}", price=PRICE, max_tokens=64, **keys)
        for name in ("noisy", "oracle")
    ]


def two():
    return ProcessCluster(2, children=False)


def on_two(meant):
    return run_on(two(), meant)


@pytest.mark.parametrize("rpm", [pytest.param(None, marks=pytest.mark.long), 120_000])
def test_workers_give_the_answers_of_one_process_each_model_whole_on_one(asked, alone, tmp_path, rpm):
    problems, server = asked
    meant = sweep(tmp_path / "out", problems, *models_of(server, rpm=rpm))
    assert run_on(two(), meant).exit is Exit.COMPLETE
    assert rows_of(tmp_path / "out") == rows_of(alone)
    calls = ab.read_attempts(tmp_path / "out", ["worker", "model"]).to_pylist()
    by_model = Counter((call["model"], call["worker"]) for call in calls)
    assert sorted(model for model, _ in by_model) == ["simulated-http/noisy", "simulated-http/oracle"]
    assert {worker for _, worker in by_model} == {"w001-e1", "w002-e1"}
    assert [*by_model.values()] == [144, 144]
    assert not (tmp_path / "out" / "workers").exists()


@pytest.mark.long
def test_models_under_one_limit_are_with_one_worker(asked, alone, tmp_path):
    problems, server = asked
    limits = {"simulated-http": {"rpm": 120_000, "shared": True}}
    assert run_on(two(), sweep(tmp_path / "out", problems, *models_of(server), limits=limits)).exit == 0
    assert rows_of(tmp_path / "out") == rows_of(alone)
    calls = ab.read_attempts(tmp_path / "out", ["worker"])["worker"]
    assert (len(calls.unique()), len(calls)) == (1, 288)


@pytest.mark.long
@pytest.mark.parametrize("rpm", [None, 120_000])
def test_a_budget_holds_for_all_workers_and_any_number_goes_on(asked, alone, tmp_path, rpm):
    problems, server = asked
    before = server.stats()["delivered"]
    meant = sweep(tmp_path / "out", problems, *models_of(server, rpm=rpm), budget_usd=0.003)
    assert run_on(two(), meant).exit is Exit.BUDGET
    answers: list[Any] = ab.read_attempts(tmp_path / "out", ["cost_usd"])["cost_usd"].to_pylist()
    assert len(answers) == server.stats()["delivered"] - before
    assert 0.002 < sum(answers) <= 0.003
    asyncio.run(ab.run_sweep(meant, budget_usd=1))  # without workers
    assert rows_of(tmp_path / "out") == rows_of(alone)


@pytest.mark.long
def test_a_rule_stops_the_same_cells(tmp_path):
    few = tmp_path / "few.parquet"
    ab.generate("integer_addition", few, tries=80, min_digits=1, max_digits=3, seed=3)
    with simulator(few, latency_s=0.1) as server:
        for out, run in (("alone", lambda meant: asyncio.run(ab.run_sweep(meant))), ("spread", on_two)):
            asked = models_of(server, concurrency=2)
            run(sweep(tmp_path / out, few, *asked, stop_when={"saturated": 0.3}))
    stops = ["model", "task", "length", "rule", "asked", "correct"]
    alone, spread = (
        {tuple(row.values()) for row in ab.read_skipped(tmp_path / out, stops).to_pylist()}
        for out in ("alone", "spread")
    )
    assert alone
    assert spread == alone


@pytest.mark.long
def test_a_worker_that_is_killed_costs_no_more_than_what_it_was_doing(asked, alone, tmp_path):
    problems, server = asked
    before, screen = server.stats()["delivered"], Said()

    async def kill_the_first(cluster):
        await asyncio.to_thread(until, lambda: server.stats()["delivered"] >= before + 60)
        os.kill(cluster.links[0].pid, signal.SIGKILL)

    meant = sweep(tmp_path / "out", problems, *models_of(server, concurrency=8), budget_usd=1)
    summary = run_on(two(), meant, screen, kill_the_first)
    assert summary.exit is Exit.COMPLETE
    assert rows_of(tmp_path / "out") == rows_of(alone)
    lost = [row for row in ab.read_attempts(tmp_path / "out").to_pylist() if row["status"] == "lost"]
    assert len(lost) <= 8
    assert server.stats()["delivered"] - before <= 288 + len(lost)
    assert any("Another one takes its place" in line for line in screen.lines)
    doubted = sum(row["reserved_usd"] for row in lost)
    cap = summary.budget.ledger.caps[0]
    assert cap.doubted == pytest.approx(doubted * 1e12, abs=1)


class FullCluster(ProcessCluster):
    """A cluster that looks in vain for room for a third worker."""

    async def start(self, name, program):
        if len(self.links) == self.count:
            await asyncio.Event().wait()
        return await super().start(name, program)


@pytest.mark.long
def test_a_run_waits_for_no_worker_that_nobody_needs_any_more(asked, alone, tmp_path):
    problems, server = asked
    before = server.stats()["delivered"]

    async def kill_the_first(cluster):
        await asyncio.to_thread(until, lambda: server.stats()["delivered"] >= before + 60)
        os.kill(cluster.links[0].pid, signal.SIGKILL)

    meant = sweep(tmp_path / "out", problems, *models_of(server, concurrency=8))
    run = run_on(FullCluster(2, children=False), meant, beside=kill_the_first)
    assert run.exit is Exit.COMPLETE
    assert rows_of(tmp_path / "out") == rows_of(alone)


class SmallCluster(ProcessCluster):
    """A cluster that has room for one worker, whatever it says."""

    async def start(self, name, program):
        if self.links:
            raise WorkerDiedError("no free core")
        return await super().start(name, program)


def test_a_run_goes_on_with_the_workers_for_which_there_is_room(asked, alone, tmp_path):
    problems, server = asked
    screen = Said()
    meant = sweep(tmp_path / "out", problems, *models_of(server, rpm=120_000))
    assert run_on(SmallCluster(2, children=False), meant, screen).exit is Exit.COMPLETE
    assert rows_of(tmp_path / "out") == rows_of(alone)
    assert "worker w002-e1 does not start: no free core. The others go on." in screen.lines


def test_keys_are_those_of_the_workers(asked, tmp_path):
    problems, server = asked
    meant = sweep(tmp_path / "out", problems, *models_of(server, key_env="THEIR_KEY"))
    without = {name: value for name, value in os.environ.items() if name != "THEIR_KEY"}
    with pytest.raises(ConfigError, match="THEIR_KEY is not set"):
        run_on(ProcessCluster(1, without, children=False), meant)
    with_key = ProcessCluster(1, without | {"THEIR_KEY": "sk-theirs"}, children=False)
    assert run_on(with_key, meant).exit is Exit.COMPLETE
    assert len(outcomes(tmp_path / "out")) == 288
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if b"sk-theirs" in path.read_bytes()]
