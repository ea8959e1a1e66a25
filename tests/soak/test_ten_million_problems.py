"""Ten million problems are made, checked and read within 500 MB above the start."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from asyncbench.problems.making import generate
from asyncbench.problems.opening import open_set
from asyncbench.records import Draft
from asyncbench.suites.table import SUITES
from tests.soak.mission import rss

ROOT = Path(__file__).resolve().parents[2]
PROBLEMS = 10_000_000
SEED = 7
MB = 1024 * 1024


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_million_problems_stay_within_500_mb(tmp_path):
    path = tmp_path / "ten-million.parquet"

    for step in STEPS:
        grown_mb, seconds, said = measured(step, path)
        figures = f"{PROBLEMS:,} problems, seed {SEED}, {grown_mb:.0f} MB above the start, {seconds:.0f} s"
        print(f"{step}: {figures}")  # the figures are what a soak is for
        assert said == f"{PROBLEMS}"
        assert grown_mb < 500


def measured(step: str, path: Path) -> tuple[float, float, str]:
    """Run one step in a process of its own; return the memory it grew by, its seconds and its last word."""
    command = [sys.executable, __file__, step, str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(  # our own interpreter and this file
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # everything is imported
        watched, started_s = psutil.Process(process.pid), time.monotonic()
        start = peak = watched.memory_info().rss
        process.stdin.write("go\n")
        process.stdin.flush()
        while process.poll() is None:
            peak = max(peak, rss(watched))
            time.sleep(0.05)
        return (peak - start) / MB, time.monotonic() - started_s, process.stdout.read().strip()


# ── in the process that is measured ──────────────────────────────────────────────────────────


def sums(seed: int, _parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield sums of short numbers, some of them more than once."""
    rng = random.Random(seed)
    for _row in range(PROBLEMS):
        a, b = rng.randrange(10**5), rng.randrange(10**5)
        yield Draft(
            suite="integer_addition",
            task="add",
            representation="integer",
            length=5,
            operands=(str(a), str(b)),
            question=f"{a} + {b} =",
            expected=str(a + b),
            answer_type="integer",
        )


def make(path: Path) -> int:
    suite = replace(SUITES["integer_addition"], parameters={}, check=None, generate=sums)
    return generate(suite, path, seed=SEED).rows


def read(path: Path) -> int:
    return sum(1 for _ in open_set(path).read())


STEPS = {"make": make, "check and read": read}

if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(f"{STEPS[sys.argv[1]](Path(sys.argv[2]))}\n")
