"""A real sweep in its own process, killed with SIGKILL at random moments and started again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from pathlib import Path

import pytest
import yaml

from asyncbench import read_attempts
from tests.sweeps import ADAPTERS, entry, outcomes, problem_set, simulator

LATENCY = {"latency_s": 0.15, "latency_sigma": 0.8}


class Sampled:
    """How many answers the simulator had delivered, and when."""

    def __init__(self, server):
        self._server = server
        self._seen: deque[tuple[float, int]] = deque(maxlen=2000)

    def now(self):
        stats = self._server.stats()
        self._seen.append((time.monotonic(), stats["delivered"]))
        return stats

    def a_second_before(self, moment_s):
        """Return the last count taken more than a second before a moment: at most what was delivered then."""
        return max((count for at_s, count in self._seen if at_s < moment_s - 1), default=0)


def killed_after(file, seconds, sampled, *, asking=False):
    """Start a run and kill it so long after its start, or its first call; return when; None: it was done."""
    command = [sys.executable, "-m", "asyncbench", "run", str(file), "--quiet"]
    before = sampled.now()["requests"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while asking and process.poll() is None and sampled.now()["requests"] == before:
        time.sleep(0.03)
    end_s = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end_s:
        sampled.now()
        time.sleep(0.03)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return time.monotonic() if process.returncode else None


def still_in_flight(sampled):
    """Wait until the server has noticed that its client is gone."""
    while (stats := sampled.now())["in_flight"]:
        time.sleep(0.02)
    return stats


def sweep_with_kills(folder: Path, *, seed: int, kills: int, trials: int, longest_s: float = 4.0) -> None:
    rng = random.Random(seed)
    print(f"crash: seed {seed}, {kills} kills")
    problems, out = problem_set(folder, trials=trials), folder / "out"
    with simulator(problems, faults=("429=0.03", "500=0.03", "reset=0.02"), **LATENCY) as server:
        models = [
            entry(server, f"{name}/noisy", concurrency=rng.choice([10, 40, 150]), retry={"attempts": 50})
            for name in ADAPTERS
        ]
        file = folder / "sweep.yaml"
        file.write_text(
            yaml.safe_dump({"name": "s", "problems": [str(problems)], "models": models, "out": str(out)})
        )
        sampled, forgotten = Sampled(server), 0
        for number in range(kills):
            # Every other kill counts from the first call: a slow machine may not have begun to ask else.
            asking = number % 2 == 1
            seconds = rng.uniform(0.1, longest_s / 2) if asking else rng.uniform(0.8, longest_s)
            killed_s = killed_after(file, seconds, sampled, asking=asking)
            stats = still_in_flight(sampled)
            if killed_s is None:
                break
            kept = answers_in(out)
            just_before = stats["delivered"] - sampled.a_second_before(killed_s)
            assert stats["delivered"] - kept - forgotten <= just_before, "an answer was lost after a second"
            forgotten = stats["delivered"] - kept
        final = killed_after(file, 600, sampled)
        stats = sampled.now()

    assert final is None
    check_tables(out, stats, planned=3 * 72 * trials)


def answers_in(out):
    """Return how many answers a folder holds, those of its journal included."""
    if not out.exists():
        return 0
    return Counter(read_attempts(out, columns=["status"])["status"].to_pylist())["ok"]


def check_tables(out, stats, *, planned):
    assert len(outcomes(out)) == planned
    attempts = read_attempts(out, columns=["trial_id", "attempt", "status"]).to_pylist()
    assert len({(row["trial_id"], row["attempt"]) for row in attempts}) == len(attempts)
    lost = sum(row["status"] == "lost" for row in attempts)
    assert lost > 0, "no kill hit a call in flight: this run proves nothing"
    assert len(attempts) - lost <= stats["requests"] <= len(attempts)
    ok = Counter(row["trial_id"] for row in attempts if row["status"] == "ok")
    assert set(ok.values()) == {1}, "a trial was answered twice and both were kept"
    assert len(ok) == planned


def test_a_run_killed_at_random_moments_ends_with_every_trial_exactly_once(tmp_path):
    sweep_with_kills(tmp_path, seed=1, kills=6, trials=5, longest_s=3.0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_runs_killed_many_times(tmp_path, seed):
    sweep_with_kills(tmp_path, seed=seed, kills=20, trials=30)


def test_a_killed_folder_can_be_looked_at_before_it_runs_again(tmp_path):
    problems, out = problem_set(tmp_path), tmp_path / "out"
    with simulator(problems, latency_s=0.3) as server:
        model = entry(server, "simulated/noisy", concurrency=20)
        file = tmp_path / "sweep.yaml"
        file.write_text(
            yaml.safe_dump({"name": "s", "problems": [str(problems)], "models": [model], "out": str(out)})
        )
        process = subprocess.Popen([sys.executable, "-m", "asyncbench", "run", str(file), "--quiet"])
        while server.stats()["delivered"] < 40:
            time.sleep(0.02)
        time.sleep(1)  # what was delivered more than a second ago is safe
        process.kill()
        process.wait()
        command = [sys.executable, "-m", "asyncbench", "status", str(out), "--json"]
        told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    (model_status,) = told["models"]
    assert model_status["done"] == len(outcomes(out)) >= 40
    assert model_status["planned"] == 144
