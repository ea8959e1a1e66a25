"""Runs with workers whose processes are killed at random, the run's own among them, until all is done.

The seed is printed: ASYNCBENCH_CRASH_SEED=7 plays it again.
"""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest
import yaml

from asyncbench import read_attempts
from asyncbench.run.summary import Exit
from asyncbench.store.verify import verify_folder
from tests.crash.test_kill import SEED, Sampled, answers_in, check_tables, still_in_flight
from tests.processes import Forked
from tests.providers.workers.worker_processes import workers_of
from tests.sweep_files import ADAPTERS, entry, problem_set, simulator

pytestmark = pytest.mark.long

PRICE = {"input": 1.0, "output": 5.0}


def replace_workers(rng, file, *budget, stderr):
    """Start a run whose calls other processes make."""
    words = ("run", file, "--quiet", "--workers", rng.randrange(1, 4))
    return Forked("asyncbench", *words, *(f"--budget={usd}" for usd in budget), stderr=stderr)


def on_a_cluster(rng, file, *budget, stderr):
    """Start a run whose trials are asked by other processes, each with a folder of its own."""
    return Forked("tests.cluster.on_processes", file, rng.randrange(1, 4), *budget, stderr=stderr)


def killed_at_random(rng, process, sampled, *, kills):
    """Kill workers of a run, or the run, after some answers each; return how many kills are left.

    It ends with the run, be that killed or done.
    """
    while kills and process.poll() is None:
        done = sampled.now()["delivered"] + rng.randrange(5, 60)
        while process.poll() is None and sampled.now()["delivered"] < done:
            time.sleep(0.02)
        workers = list(workers_of(process.pid))
        victim = process.pid if rng.random() < 0.3 or not workers else rng.choice(workers)
        if process.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(victim, signal.SIGKILL)
            kills -= 1
        if victim == process.pid:
            process.wait()
    return kills


def run_until_it_ends(rng, file, sampled, *budget, start, kills):
    """Start a run with some workers, and again when it was killed; return its exit code."""
    while True:
        with file.with_suffix(".errors").open("w") as errors:
            process = start(rng, file, *budget, stderr=errors.fileno())
        kills = killed_at_random(rng, process, sampled, kills=kills)
        code = process.wait()
        still_in_flight(sampled)
        if code != -signal.SIGKILL:
            return code


def sweep_with_killed_workers(folder, *, start, seed, kills, trials):
    """Kill one half of the times in a run whose money ends, the other in the one that completes it."""
    rng = random.Random(seed)
    print(f"killed workers: seed {seed}, {kills} kills")
    problems, out, file = problem_set(folder, trials=trials), folder / "out", folder / "sweep.yaml"
    planned = 3 * 72 * trials
    little = planned * 10e-6  # a fourth of what it takes
    with simulator(problems, faults=("429=0.03", "reset=0.02"), latency_s=0.1) as server:
        models = [
            entry(server, f"{name}/noisy", price=PRICE, max_tokens=64, concurrency=8, retry={"attempts": 50})
            for name in ADAPTERS
        ]
        said = {"name": "s", "problems": [str(problems)], "models": models, "out": str(out)}
        file.write_text(yaml.safe_dump(said | {"budget_usd": little}))
        sampled = Sampled(server)
        assert run_until_it_ends(rng, file, sampled, start=start, kills=-(-kills // 2)) == Exit.BUDGET
        bill = server.stats()["delivered"] * cheapest(out)
        assert bill <= little, "the server answered more than the budget pays for"
        code = run_until_it_ends(rng, file, sampled, 1000 * little, start=start, kills=kills // 2)
        stats = server.stats()

    assert code == Exit.COMPLETE, file.with_suffix(".errors").read_text()
    assert verify_folder(out).sound
    check_tables(out, stats, planned=planned)
    calls = read_attempts(out, columns=["status", "worker"]).to_pylist()
    assert None not in {call["worker"] for call in calls if call["status"] == "ok"}
    lost = Counter(call["status"] for call in calls)["lost"]
    assert stats["delivered"] - answers_in(out) <= lost, "an answer was lost that no kill had caught"


def cheapest(out):
    """Return what the cheapest of the answers cost, USD."""
    return min(row["cost_usd"] for row in read_attempts(out).to_pylist() if row["status"] == "ok")


@pytest.mark.parametrize("start", [replace_workers, on_a_cluster])
def test_nothing_is_lost_or_doubled_and_no_cap_passed_whichever_process_is_killed(tmp_path, start):
    sweep_with_killed_workers(tmp_path, start=start, seed=SEED, kills=6, trials=2)


@pytest.mark.soak
@pytest.mark.parametrize("start", [replace_workers, on_a_cluster])
@pytest.mark.parametrize("seed", range(200, 205))
def test_a_hundred_kills_of_workers_and_of_their_runs(tmp_path, seed, start):
    sweep_with_killed_workers(tmp_path, start=start, seed=seed, kills=20, trials=20)
