"""The same trials in batches and in real time: memory in thirds of the run, and client CPU for each trial.

    python -m benchmarks.batches [--trials 100000] [--rounds 3] [--legs batch,anthropic,realtime]

Each leg is a whole run (prices, grading, journal, Parquet) in a process of its own, against a simulator in
another one. Its memory is looked at from outside, ten times a second from the first request on; its CPU is
that of the whole run less that of a run of a few trials, which start and end of a process take.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from asyncbench import generate, run_sweep
from asyncbench.records import Outcome
from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings

MB: Final = 1_000_000
SAMPLE_EVERY_S: Final = 0.1
CELLS: Final = 72  # of llm_arithmetic: its problems come in multiples of it
FEW: Final = 144  # trials of a run that is all start and end
BATCH: Final = {"speedup": 3600, "latency_s": 3600}  # an hour takes a second
PROVIDERS: Final = {"batch": "simulated", "anthropic": "simulated-anthropic", "realtime": "simulated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegFigures:
    """What is known of a leg."""

    peaks: tuple[float, ...]  # MB, of each third of the run
    usual: tuple[float, ...]  # likewise, the median
    cpu_s: float
    seconds: float


def sweep_for(leg: str, server: Simulator, problems: Path, out: Path) -> Mapping[str, object]:
    """Return the sweep of a leg."""
    provider = PROVIDERS[leg]
    model: dict[str, object] = {
        "model": f"{provider}/noisy",
        "base_url": server.url if "anthropic" in provider else f"{server.url}/v1",
        "price": {"input": 1.0, "output": 2.0, "batch": 0.5},
        "concurrency": 256,
        "params": {"simulate": {"batch": BATCH}},
    }
    settings: dict[str, object] = {
        "name": leg,
        "problems": [str(problems)],
        "models": [model],
        "out": str(out),
    }
    in_batches = {"mode": "batch", "batch": {"enqueued_tokens": 10**9}}
    return settings if leg == "realtime" else settings | in_batches


def run_for_cpu_s(settings: Mapping[str, object], limit: int) -> float:
    """Run a sweep in this process; return the CPU seconds of the process so far."""
    summary = asyncio.run(run_sweep(settings, limit=limit, progress=False))
    (counters,) = summary.models.values()
    assert counters.done == limit, summary.as_text()
    assert counters.outcomes[Outcome.FAILED] == 0, summary.as_text()
    return time.process_time()


def measured(leg: str, problems: Path, *, trials: int) -> LegFigures:
    """Run a leg in a fresh process, against a fresh simulator."""
    with (
        tempfile.TemporaryDirectory() as place,
        running(Settings(problems=(problems,))) as server,
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh,
    ):
        out = Path(place) / "out"
        child = psutil.Process(fresh.submit(os.getpid).result())
        running_leg = fresh.submit(run_for_cpu_s, sweep_for(leg, server, problems, out), trials)
        began_s, seen = time.monotonic(), list[float]()
        while not running_leg.done():
            time.sleep(SAMPLE_EVERY_S)
            if (out / "batches").exists() or (leg == "realtime" and server.stats()["requests"]):
                seen.append(child.memory_info().rss / MB)
        cpu_s = running_leg.result()
    thirds = [seen[n * len(seen) // 3 : (n + 1) * len(seen) // 3] or [0.0] for n in range(3)]
    return LegFigures(
        peaks=tuple(map(max, thirds)),
        usual=tuple(map(statistics.median, thirds)),
        cpu_s=cpu_s,
        seconds=time.monotonic() - began_s,
    )


def leg_line(leg: str, run: LegFigures, *, idle_cpu_s: float, trials: int) -> str:
    """Return a line on a leg."""
    peaks, usual = (", ".join(f"{mb:.0f}" for mb in thirds) for thirds in (run.peaks, run.usual))
    grown = run.usual[2] / run.usual[0] - 1
    return (
        f"{leg:<10} {1000 * (run.cpu_s - idle_cpu_s) / trials:.3f} s of CPU a thousand trials; MB in thirds: "
        f"most {peaks}; median {usual} ({grown:+.1%}); {run.seconds:.0f} s"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--legs", default=",".join(PROVIDERS))
    options = parser.parse_args()
    legs, trials, cpu_ms = options.legs.split(","), options.trials, dict[str, list[float]]()
    with tempfile.TemporaryDirectory() as place:
        problems = Path(place) / "problems.parquet"
        generate("llm_arithmetic", problems, seed=5, trials=-(-trials // CELLS))
        idle = {leg: measured(leg, problems, trials=FEW).cpu_s for leg in legs}
        for _ in range(options.rounds):
            for leg in legs:
                run = measured(leg, problems, trials=trials)
                cpu_ms.setdefault(leg, []).append(1000 * (run.cpu_s - idle[leg]) / trials)
                print(leg_line(leg, run, idle_cpu_s=idle[leg], trials=trials), flush=True)
    for leg, each in cpu_ms.items():
        spread = f"({min(each):.3f}-{max(each):.3f})"
        print(f"{leg}: {statistics.median(each):.3f} s of CPU a thousand trials {spread}")
        if leg != "realtime" and "realtime" in cpu_ms:
            ratios = [one / other for one, other in zip(each, cpu_ms["realtime"], strict=True)]
            print(f"  / realtime {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
