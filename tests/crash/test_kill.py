"""A real sweep in its own process, killed with SIGKILL at random moments and started again.

So are compaction, regrading and recovery. The seed is printed: ASYNCBENCH_CRASH_SEED=7 plays it again.
"""

import os
import random
import signal
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncbench import read_attempts
from asyncbench.reports.regrading import regrade_report
from asyncbench.store.folder import Store
from asyncbench.store.manifest import is_results_folder
from asyncbench.store.verify import verify_folder
from tests.crash.recorded import cut_power
from tests.processes import Forked
from tests.store.dying import start
from tests.store.made import compacted
from tests.sweep_files import ADAPTERS, entry, outcomes, problem_set, simulator

pytestmark = pytest.mark.long

SEED = int(os.environ.get("ASYNCBENCH_CRASH_SEED", "1"))
LATENCY: dict[str, Any] = {"latency_s": 0.25, "latency_sigma": 0.8}


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


def recovered(folder: Path) -> None:
    Store.reopen(folder).close()


def regraded(folder: Path) -> None:
    regrade_report(folder, write=True)


def killed_at_work(rng, folder):
    """Kill what may be done to a folder between two runs; return what a reader finds then."""
    process = start(rng.choice([recovered, compacted, regraded]), folder)
    process.join(rng.uniform(0.01, 0.4))
    process.kill()
    process.join()
    return answers_in(folder)


def killed_after(file, seconds, sampled, program=("asyncbench",)):
    """Start a run and kill it some seconds after its first call; return when, None if it was done before.

    Negative seconds: so long after its start, whatever it is doing then.
    """
    before, errors = sampled.now()["requests"], file.with_suffix(".errors")
    with errors.open("w") as stderr:
        process = Forked(*program, "run", file, "--quiet", stderr=stderr.fileno())
    end_s = time.monotonic() - seconds if seconds < 0 else None
    while process.poll() is None and (end_s is None or time.monotonic() < end_s):
        if end_s is None and sampled.now()["requests"] > before:
            end_s = time.monotonic() + seconds
        sampled.now()
        time.sleep(0.03)
    process.kill()
    code = process.wait()
    assert code in (0, -signal.SIGKILL), errors.read_text()
    return time.monotonic() if code else None


def still_in_flight(sampled):
    """Wait until the server has noticed that its client is gone."""
    while (stats := sampled.now())["in_flight"]:
        time.sleep(0.02)
    return stats


def sweep_with_kills(folder: Path, *, seed: int, rounds: int, trials: int) -> None:
    """In each round a run is killed, then work on its folder, and that again."""
    rng = random.Random(seed)
    print(f"crash: seed {seed}, {3 * rounds} kills")
    problems, out = problem_set(folder, trials=trials), folder / "out"
    with simulator(problems, faults=("429=0.03", "500=0.03", "reset=0.02"), **LATENCY) as server:
        models = [
            entry(server, f"{name}/noisy", concurrency=rng.choice([10, 25, 60]), retry={"attempts": 50})
            for name in ADAPTERS
        ]
        file = folder / "sweep.yaml"
        file.write_text(
            yaml.safe_dump({"name": "s", "problems": [str(problems)], "models": models, "out": str(out)})
        )
        sampled, forgotten = Sampled(server), 0
        for _ in range(rounds):
            moment_s = rng.uniform(0.05, 0.7) if rng.random() < 0.8 else -rng.uniform(0.02, 0.6)
            killed_s = killed_after(file, moment_s, sampled)
            stats = still_in_flight(sampled)
            if killed_s is None:
                break
            kept = answers_in(out)
            just_before = stats["delivered"] - sampled.a_second_before(killed_s)
            assert stats["delivered"] - kept - forgotten <= just_before, "an answer was lost after a second"
            forgotten = stats["delivered"] - kept
            for _ in range(2 if is_results_folder(out) else 0):
                assert killed_at_work(rng, out) == kept, "work on the folder lost or doubled an answer"
        final = killed_after(file, 600, sampled)
        stats = sampled.now()

    assert final is None
    assert verify_folder(out).sound
    check_tables(out, stats, planned=3 * 72 * trials)


def answers_in(out):
    """Return how many answers a folder holds, those of its journal included."""
    if not is_results_folder(out):
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
    sweep_with_kills(tmp_path, seed=SEED, rounds=4, trials=3)


def test_a_power_failure_takes_at_most_the_last_second(tmp_path):
    rng = random.Random(SEED)
    print(f"power: seed {SEED}")
    problems, out, log = problem_set(tmp_path, trials=8), tmp_path / "out", tmp_path / "log"
    with simulator(problems, **LATENCY) as server:
        model = entry(server, "simulated-http/noisy", concurrency=40)
        file = tmp_path / "sweep.yaml"
        file.write_text(
            yaml.safe_dump({"name": "s", "problems": [str(problems)], "models": [model], "out": str(out)})
        )
        sampled, forgotten = Sampled(server), 0
        for _ in range(3):
            program = ("tests.crash.recorded", str(log))
            killed_s = killed_after(file, rng.uniform(0.8, 1.6), sampled, program)
            if killed_s is None:
                break
            stats = still_in_flight(sampled)
            cut_power(out, log)
            kept = answers_in(out)
            just_before = stats["delivered"] - sampled.a_second_before(killed_s)
            assert stats["delivered"] - kept - forgotten <= just_before, "an answer was lost after a second"
            forgotten = stats["delivered"] - kept
        assert killed_after(file, 600, sampled) is None
        stats = sampled.now()
    assert verify_folder(out).sound
    assert set(outcomes(out).values()) <= {"correct", "wrong", "no_answer"}
    assert len(outcomes(out)) == 8 * 72
    assert answers_in(out) == 8 * 72
    assert stats["delivered"] == 8 * 72 + forgotten


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_runs_killed_many_times(tmp_path, seed):
    sweep_with_kills(tmp_path, seed=seed, rounds=7, trials=30)
