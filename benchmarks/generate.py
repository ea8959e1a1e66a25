"""Measure the speed and memory of making NUPA's problems, on one core.

    python -m benchmarks.generate [--per-length 1000]

Counted is CPU time of one process: of the problems alone, task by task, and with their ids, columns and
Parquet file, as `asyncbench generate nupa` makes them. Memory is the peak above what is used before the first
problem, for the set that was asked for and for one of a tenth of it.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from asyncbench.problems.making import generate
from asyncbench.suites.nupa.generation import generate as drafts_of
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.suites.table import SUITES

WANTED = 40_000  # problems a second, on one core, averaged over the 44 released tasks
PUBLISHED = 820  # of the published code: pairs and questions, on a core like this one
MB = 1024


def rates(per_length: int) -> dict[str, float]:
    """Return the problems a second of each released task, without ids and file."""
    return {
        task.name: _rate(task.task, task.representation, task.variant, per_length)
        for task in TASKS.values()
        if "released" in task.sets
    }


def _rate(task: str, representation: str, variant: str, per_length: int) -> float:
    choice = {"tasks": task, "representations": representation, "variants": variant or "plain"}
    parameters = SUITES["nupa"].parsed(choice | {"per_length": per_length}, place="benchmark")
    start_s = time.process_time()
    made = sum(1 for _ in drafts_of(7, parameters))
    return made / (time.process_time() - start_s)


def write(path: Path, per_length: int) -> str:
    """Make a whole set; return its problems, the CPU seconds and the peak memory in MB, above the start."""
    start_mb, start_s = _peak_mb(), time.process_time()
    made = generate("nupa", path, seed=7, per_length=per_length)
    return f"{made.rows} {time.process_time() - start_s} {_peak_mb() - start_mb}"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB


def written(per_length: int) -> tuple[int, float, float]:
    """Make a whole set in a process of its own; return what `write` says."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--per-length", str(per_length), "--out", folder]
        command = [sys.executable, "-m", "benchmarks.generate", *options]
        figures = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  ours
    made, seconds, grown_mb = figures.split()
    return int(made), float(seconds), float(grown_mb)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="How fast NUPA's problems are made.")
    parser.add_argument("--per-length", type=int, default=1000)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out:
        print(write(options.out / "nupa.parquet", options.per_length))
        return
    per_s = rates(options.per_length)
    mean = statistics.harmonic_mean(per_s.values())
    slowest = min(per_s, key=per_s.__getitem__)
    print(f"problems alone: {mean:,.0f} a second, harmonic mean of {len(per_s)} tasks", end="; ")
    print(f"slowest {slowest} {per_s[slowest]:,.0f} (wanted {WANTED:,}, published code {PUBLISHED})")
    for per_length in (options.per_length // 10 or 1, options.per_length):
        made, seconds, grown_mb = written(per_length)
        print(f"with ids and file: {made:,} problems, {made / seconds:,.0f} a second, {grown_mb:.0f} MB")


if __name__ == "__main__":
    main()
