"""A night of twenty models on three machines of a Ray cluster, of which some die."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

import asyncbench as ab
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from tests.cluster.machines import LOOPBACK, machines
from tests.cluster.on_processes import rows_of
from tests.commands import asyncbench
from tests.processes import until
from tests.sweep_files import Said, entry, problem_set, simulator, sweep

MODELS, AT_ONCE = 20, 4
PRICE = {"input": 1.0, "output": 5.0}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A problem set, and a server that answers it."""
    problems = problem_set(tmp_path_factory.mktemp("asked"), trials=2)
    with simulator(problems, latency_s=0.3) as server:
        yield problems, server


@pytest.fixture(scope="module")
def three():
    """Three machines with a core each: their cluster, and the processes of their raylets."""
    with machines(os.environ) as cluster:
        yield cluster, [cluster.add() for _ in range(3)]


def night(out, problems, server):
    return sweep(out, problems, *models_of(server))


def models_of(server):
    return [
        entry(
            server,
            "simulated-http/noisy" if number % 2 else "simulated-http/oracle",
            alias=f"model-{number}",
            price=PRICE,
            max_tokens=64 + number,  # else they would be one model
            concurrency=AT_ONCE,
        )
        for number in range(MODELS)
    ]


def worker_of(raylet):
    """Return the process of the worker on a machine."""
    (worker,) = (
        child.pid for child in psutil.Process(raylet).children() if "AsyncbenchWorker" in str(child.cmdline())
    )
    return worker


def run_on_ray(meant, address, screen, deaths: Callable[[], None] = lambda: None, **options):
    """Run a sweep on a cluster, while something dies."""

    async def running():
        run = asyncio.create_task(
            run_with_options(meant, RunOptions(ray=address, **options), screen=screen, env={})
        )
        await asyncio.to_thread(deaths)
        return await run

    return asyncio.run(running())


@pytest.mark.slow
def test_the_command_tells_that_a_worker_died_and_ray_tells_nothing(asked, three, tmp_path):
    problems, server = asked
    cluster, raylets = three
    file, before = tmp_path / "night.yaml", len(server.arrivals())
    keys = {"name": "night", "problems": [str(problems)], "out": str(tmp_path / "out")}
    file.write_text(json.dumps(keys | {"models": models_of(server)[:3]}))
    with ThreadPoolExecutor() as threads:
        run = threads.submit(asyncbench, "run", file, "--ray", cluster.address, env=LOOPBACK)
        until(lambda: len(server.arrivals()) - before >= 40 or run.done())
        os.kill(worker_of(raylets[2]), signal.SIGKILL)
    done = run.result()
    assert done.returncode == 0, done
    assert "died (The actor is dead because its worker process has died)" in done.stderr
    assert "raylet" not in done.stdout + done.stderr
    assert len(rows_of(tmp_path / "out")) == 3 * 144


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_night_in_which_a_worker_and_a_machine_die(asked, three, tmp_path):
    problems, server = asked
    cluster, raylets = three
    alone, out, screen = tmp_path / "alone", tmp_path / "out", Said()
    asyncio.run(ab.run_sweep(night(alone, problems, server)))
    trials = ab.read_trials(alone, ["trial_id", "cost_usd"]).to_pylist()
    costs = {trial["trial_id"]: trial["cost_usd"] for trial in trials}
    dearest, cap = max(costs.values()), sum(costs.values()) * 0.7
    before = len(server.arrivals())

    def deaths():
        until(lambda: len(server.arrivals()) - before >= 400)
        os.kill(worker_of(raylets[0]), signal.SIGKILL)
        until(lambda: len(server.arrivals()) - before >= 900)
        os.kill(raylets[1], signal.SIGKILL)

    first = run_on_ray(night(out, problems, server), cluster.address, screen, deaths, budget_usd=cap)
    assert first.exit is Exit.BUDGET
    calls = ab.read_attempts(out).to_pylist()
    lost = [call for call in calls if call["status"] == "lost"]
    known = {call["request_id"]: costs[call["trial_id"]] for call in calls if call["request_id"]}
    truth = [known.get(arrival.request_id, dearest) for arrival in server.arrivals()[before:]]
    assert sum(truth) <= cap
    assert sum("died" in line for line in screen.lines) == 2
    assert len(lost) <= 2 * AT_ONCE * MODELS // 2
    (held,) = first.budget.ledger.caps
    assert 0.95 * held.limit < held.spent <= held.limit
    assert held.doubted == pytest.approx(sum(call["reserved_usd"] for call in lost) * 1e12, abs=len(lost))

    assert run_on_ray(night(out, problems, server), cluster.address, screen).exit is Exit.COMPLETE
    assert rows_of(out) == rows_of(alone)
    ended = Counter(call["trial_id"] for call in ab.read_attempts(out).to_pylist() if call["status"] == "ok")
    assert set(ended.values()) == {1}
    assert len(server.arrivals()) - before <= len(costs) + len(lost)
    assert not (out / "workers").exists()
