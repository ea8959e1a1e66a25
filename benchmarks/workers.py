"""Calls a second with 0, 1, 2 and 4 workers, beside bare loops in as many processes, in one run.

    python -m benchmarks.workers [--calls 20000] [--rounds 3] [--workers 0,1,2,4] [--provider simulated]
    python -m benchmarks.workers --steady --workers 1,2 --provider simulated-http

All ask a server that gives each call the same answer at once, on the same cores as they. A bare loop is the
SDK's `client.post` (aiohttp's own for http) and orjson, 256 calls at a time, the calls shared out evenly.
Calls a second are counted from the first call to the end of the last, so that starting processes counts for
nobody; CPU is all of it, of this process and of its workers. Legs take turns; ratios are made by round.

With `--steady` only the CPU of a call is measured, from the difference between many calls and a quarter of
them: what processes cost at their start counts for no call. It can be told on a busy machine, too.
"""

import argparse
import asyncio
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from asyncbench import generate, read_attempts, run_sweep
from asyncbench.problems.problem_set import ProblemSet
from benchmarks import bare

IN_FLIGHT = 256
CELLS = 72  # of llm_arithmetic: its problems come in multiples of it
CLIENTS: Mapping[str, tuple[Callable[..., Any], Callable[[Any], bare.Call]]] = {  # Any: the SDKs' clients
    "simulated": (bare.openai_client, bare.openai_post),
    "simulated-anthropic": (bare.anthropic_client, bare.anthropic_post),
    "simulated-http": (bare.aiohttp_session, bare.aiohttp_post),
}


class Figures(NamedTuple):
    """What one leg came to."""

    per_s: float  # calls
    own_us: float  # CPU a call: of the run's process, or of none
    workers_us: float  # of its workers, or of the bare loops


@contextmanager
def served() -> Iterator[str]:
    """Run the quick server; its address."""
    command = [sys.executable, "-m", "benchmarks.quick_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  our own module
        assert server.stdin
        assert server.stdout
        yield server.stdout.readline().strip()
        server.stdin.close()


def ours(url: str, provider: str, problems: ProblemSet, workers: int) -> Figures:
    """Measure a whole run of asyncbench: limits, prices, grading, journal and Parquet on."""
    model = {
        "model": f"{provider}/quick",
        "base_url": url if provider == "simulated-anthropic" else f"{url}/v1",
        "concurrency": IN_FLIGHT,
        "rpm": 6_000_000,
        "tpm": 6_000_000_000,
        "price": {"input": 1.0, "output": 2.0},
    }
    own_s, workers_s = time.process_time(), _children_s()
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        sweep = {"name": "w", "problems": [str(problems.path)], "models": [model], "out": out}
        asyncio.run(run_sweep(sweep, workers=workers, progress=False))
        own_s, workers_s = time.process_time() - own_s, _children_s() - workers_s
        calls = read_attempts(out, columns=["started_at", "latency_s", "status"]).to_pylist()
    assert {call["status"] for call in calls} == {"ok"}
    began_s = min(call["started_at"].timestamp() for call in calls)
    ended_s = max(call["started_at"].timestamp() + call["latency_s"] for call in calls)
    each = 1e6 / len(calls)
    return Figures(len(calls) / (ended_s - began_s), own_s * each, workers_s * each)


def loops(url: str, provider: str, calls: int, processes: int) -> Figures:
    """Measure bare loops in so many processes."""
    command = [sys.executable, "-m", "benchmarks.workers", "--bare", url, "--provider", provider]
    before_s = _children_s()
    started = [
        subprocess.Popen(  # noqa: S603  our own module
            [*command, "--calls", str(calls // processes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in started:
        assert process.stdout
        process.stdout.readline()  # it has made its first calls
    began_s = time.perf_counter()
    for process in started:
        assert process.stdin
        process.stdin.close()
    for process in started:
        assert process.stdout
        process.stdout.readline()
    seconds = time.perf_counter() - began_s
    for process in started:
        process.wait()
    made = calls // processes * processes
    return Figures(made / seconds, 0.0, (_children_s() - before_s) * 1e6 / made)


async def bare_loop(url: str, provider: str, calls: int) -> None:
    """Make some calls, say so, wait for the word to go on, make the calls that count, and say so."""
    client_of, door = CLIENTS[provider]
    async with client_of(url, connections=IN_FLIGHT) as client:
        call = door(client)
        await bare.all_of(["1"] * IN_FLIGHT, call, at_once=IN_FLIGHT)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await bare.all_of(["1"] * calls, call, at_once=IN_FLIGHT)
        print("done", flush=True)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(counts: Sequence[int], *, calls: int, rounds: int, provider: str) -> None:
    """Measure all legs in turns, and print them."""
    figures_of: dict[str, list[Figures]] = {}
    with served() as url, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problems.parquet"
        problems = generate("llm_arithmetic", path, seed=1, trials=-(-calls // CELLS))
        for round_ in range(rounds + 1):
            for count in counts:
                if count:
                    figures = loops(url, provider, calls, count)
                    figures_of.setdefault(f"bare loops in {count}", []).append(figures)
                figures = ours(url, provider, problems, count)
                figures_of.setdefault(f"{count} workers", []).append(figures)
            if not round_:
                figures_of.clear()  # the first round warms up
    cores = len(os.sched_getaffinity(0))
    print(
        f"{provider}, {calls:,} calls a leg, {IN_FLIGHT} in flight, {cores} cores; medians of {rounds} rounds"
    )
    print(f"{'':<18}{'calls/s':>9}{'(range)':>16}{'run µs':>9}{'workers µs':>12}")
    for name, rows in figures_of.items():
        rates = [row.per_s for row in rows]
        own, beside = (statistics.median(row[n] for row in rows) for n in (1, 2))
        spread = f"({min(rates):,.0f}-{max(rates):,.0f})"
        print(f"{name:<18}{statistics.median(rates):>9,.0f}{spread:>16}{own:>9.0f}{beside:>12.0f}")
    ratios(figures_of)


def steady(counts: Sequence[int], *, calls: int, rounds: int, provider: str) -> None:
    """Measure the CPU of a call without starts, and that of the starts of workers, in turns; print both."""
    rows: dict[int, list[tuple[float, float, float]]] = {count: [] for count in counts}
    few, many = (-(-some // CELLS) for some in (calls // 4, calls))
    with served() as url, tempfile.TemporaryDirectory() as folder:
        sets = [
            generate("llm_arithmetic", Path(folder) / f"{n}.parquet", seed=1, trials=n) for n in (few, many)
        ]
        for _, count in itertools.product(range(rounds), counts):
            less, more = (ours(url, provider, problems, count) for problems in sets)
            own = (many * more.own_us - few * less.own_us) / (many - few)
            beside = (many * more.workers_us - few * less.workers_us) / (many - few)
            rows[count].append((own, beside, few * CELLS * (less.workers_us - beside) / 1e6))
    print(f"{provider}, from {few * CELLS:,} to {many * CELLS:,} calls; medians of {rounds} rounds")
    print(f"{'workers':<10}{'run µs':>9}{'workers µs':>12}{'together':>10}{'their start, CPU s':>20}")
    for count, seen in rows.items():
        own, beside, start_s = (statistics.median(column) for column in zip(*seen, strict=True))
        print(f"{count:<10}{own:>9.0f}{beside:>12.0f}{own + beside:>10.0f}{start_s:>20.2f}")


def ratios(figures_of: dict[str, list[Figures]]) -> None:
    """Print what workers bring, and how near they come to what the bare loops reach on these cores."""
    alone = figures_of.get("0 workers", [])
    of_loops = [rows for name, rows in figures_of.items() if name.startswith("bare")]
    for name, rows in figures_of.items():
        if not name.endswith("workers") or name.startswith("0"):
            continue
        gains = [with_.per_s / without.per_s for with_, without in zip(rows, alone, strict=False)]
        most = [max(row.per_s for row in at_once) for at_once in zip(*of_loops, strict=True)]
        shares = [row.per_s / ceiling for row, ceiling in zip(rows, most, strict=True)]
        gained = f"{statistics.median(gains):.2f} x 0 workers, " if gains else ""
        print(f"{name}: {gained}{statistics.median(shares):.2f} x the most that bare loops reach")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20_000, help="per leg and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="0,1,2,4")
    parser.add_argument("--provider", choices=sorted(CLIENTS), default="simulated")
    parser.add_argument("--steady", action="store_true", help="the CPU of a call alone, without starts")
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        asyncio.run(bare_loop(options.bare, options.provider, options.calls))
        return
    counts = [int(count) for count in options.workers.split(",")]
    if options.steady:
        steady(counts, calls=options.calls, rounds=options.rounds, provider=options.provider)
        return
    measure(counts, calls=options.calls, rounds=options.rounds, provider=options.provider)


if __name__ == "__main__":
    main()
