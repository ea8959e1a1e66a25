"""Thousands of calls in flight: their rate against the ideal, the length of the ramp, and memory.

    python -m benchmarks.in_flight [--cases wide,brisk] [--legs asyncbench,bare] [--rounds 6] [--calls N]
    python -m benchmarks.in_flight --quick

A case is so many calls in flight at a latency; ideal is one call after the other in every slot. A leg runs
in a process and on a core of its own, against a simulator of its own on the others: `asyncbench run` as a
person starts it (prices, grading, journal, Parquet), over the openai SDK, and a bare loop over the same SDK
with as many connections. All calls of a case take equally long: the hard case, for what starts together ends
together.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from asyncbench import generate
from asyncbench.problems.opening import open_set
from asyncbench.simulator.settings import Settings
from benchmarks import bare, cores
from benchmarks.weighed import peak_bytes

CELLS = 72  # of llm_arithmetic: its problems come in multiples of it
QUICK = 6  # calls of a quick look, for each in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is asked of each leg."""

    in_flight: int
    latency_s: float
    calls: int

    @property
    def ideal_per_s(self) -> float:
        return self.in_flight / self.latency_s


CASES = {
    "wide": Case(in_flight=5_000, latency_s=5.0, calls=40_000),
    "brisk": Case(in_flight=2_000, latency_s=1.0, calls=20_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a leg."""

    ended_s: Sequence[float]  # of each call, ascending, since the first start
    latency_s: Sequence[float]  # of each call
    lag_s: Sequence[float] = ()  # of the event loop, at the end of each call; asyncbench alone tells
    peak_bytes: int
    cpu_s: float
    most_in_flight: int = 0  # as the server saw it


# ── the legs ─────────────────────────────────────────────────────────────────────────────────


def asyncbench_leg(case: Case, url: str, problems: Path) -> Seen:
    """Run a sweep by the command; when its calls ended stands in its attempts."""
    with tempfile.TemporaryDirectory() as place:
        model = {
            "model": "simulated/oracle",
            "base_url": f"{url}/v1",
            "concurrency": case.in_flight,
            "price": {"input": 1.0, "output": 2.0},
        }
        sweep, peak_file = Path(place, "sweep.yaml"), Path(place, "peak")
        settings = {"name": "in-flight", "problems": [str(problems)], "models": [model], "out": f"{place}/r"}
        sweep.write_text(json.dumps(settings))  # which is YAML, too
        run = [sys.executable, "-m", "benchmarks.weighed", str(peak_file), "run", str(sweep), "--quiet"]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own interpreter
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        columns = ["started_at", "latency_s", "loop_lag_s", "status"]
        attempts = ds.dataset(f"{place}/r/attempts").to_table(columns)
        peak = int(peak_file.read_text())
    assert attempts["status"].to_pylist() == ["ok"] * open_set(problems).rows
    started_s = attempts["started_at"].cast(pa.int64()).to_numpy() / 1e6
    latency_s = attempts["latency_s"].to_numpy()
    return Seen(
        ended_s=sorted((started_s + latency_s - started_s.min()).tolist()),
        latency_s=latency_s.tolist(),
        lag_s=attempts["loop_lag_s"].to_numpy().tolist(),
        peak_bytes=peak,
        cpu_s=used.ru_utime + used.ru_stime,
    )


def bare_leg(case: Case, url: str, problems: Path) -> Seen:
    """Ask with nothing but the SDK."""
    ended_s, latency_s = list[float](), list[float]()
    questions = (problem.question for problem in open_set(problems).read())

    async def loop() -> None:
        async with bare.openai_client(url, connections=case.in_flight) as client:
            post = bare.openai_post(client)

            async def call(question: str) -> None:
                sent_s = time.perf_counter()
                await post(question)
                ended_s.append(time.perf_counter() - started_s)
                latency_s.append(time.perf_counter() - sent_s)

            started_s = time.perf_counter()
            await bare.all_of(questions, call, at_once=case.in_flight)

    asyncio.run(loop())
    return Seen(ended_s=ended_s, latency_s=latency_s, peak_bytes=peak_bytes(), cpu_s=time.process_time())


LEGS: dict[str, Callable[[Case, str, Path], Seen]] = {"asyncbench": asyncbench_leg, "bare": bare_leg}


def measured(leg: str, case: Case, problems: Path) -> Seen:
    """Run a leg in a fresh process, against a fresh simulator."""
    with (
        cores.served(Settings(problems=(problems,), latency_s=case.latency_s)) as server,
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh,
    ):
        seen = fresh.submit(_by_name, leg, case, server.url, problems).result()
        return replace(seen, most_in_flight=server.stats()["max_in_flight"])


def _by_name(leg: str, case: Case, url: str, problems: Path) -> Seen:
    cores.take_one()
    return LEGS[leg](case, url, problems)


# ── what it comes to ─────────────────────────────────────────────────────────────────────────


def rate(seen: Seen, case: Case) -> float:
    """Return the calls a second after the first and before the last round of all slots."""
    ramp, last = case.in_flight - 1, len(seen.ended_s) - case.in_flight - 1
    return (last - ramp) / (seen.ended_s[last] - seen.ended_s[ramp])


def leg_line(name: str, leg: str, seen: Seen, case: Case) -> str:
    """Return a few lines on a leg."""
    ended_s, calls = seen.ended_s, len(seen.ended_s)
    ramp_s, tail_s = ended_s[case.in_flight - 1], ended_s[-1] - ended_s[-case.in_flight - 1]
    per_s = rate(seen, case)
    lag = f"; loop lag {_spread(seen.lag_s)}" if seen.lag_s else ""
    return "\n".join(
        [
            f"{name}, {leg}: {calls:,} calls, {case.in_flight:,} in flight at {case.latency_s:g} s",
            f"  {per_s:,.0f} calls/s, {per_s / case.ideal_per_s:.1%} of the ideal {case.ideal_per_s:,.0f}; "
            f"most in flight at the server {seen.most_in_flight:,}",
            f"  ramp: the first {case.in_flight:,} in {ramp_s:.1f} s; tail: the last in {tail_s:.1f} s",
            f"  latency, client's delay included: {_spread(seen.latency_s)}{lag}",
            f"  client CPU {seen.cpu_s / calls * 1e6:.0f} µs a call, start and end included",
            f"  memory {seen.peak_bytes / 1e6:.0f} MB at most",
        ]
    )


def _spread(seconds: Sequence[float]) -> str:
    ascending = sorted(seconds)
    at = {name: ascending[int(share * (len(ascending) - 1))] for name, share in SHARES.items()}
    return ", ".join(f"{name} {value:.3f} s" for name, value in at.items())


SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--legs", default=",".join(LEGS))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--calls", type=int, help="of each case, instead of its own number")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK} calls for each in flight")
    options = parser.parse_args()
    for name in options.cases.split(","):
        case = CASES[name]
        calls = options.calls or (QUICK * case.in_flight if options.quick else case.calls)
        if calls <= 2 * case.in_flight:
            parser.error(f"{name}: {calls:,} calls are all ramp and tail; ask for more")
        compare(name, replace(case, calls=calls), options.legs.split(","), rounds=options.rounds)


def compare(name: str, case: Case, legs: Sequence[str], *, rounds: int) -> None:
    """Run the legs of a case in turns; print what each came to, and the spread over all rounds."""
    shares: dict[str, list[float]] = {leg: [] for leg in legs}
    with tempfile.TemporaryDirectory() as place:
        problems = Path(place) / "problems.parquet"
        generate("llm_arithmetic", problems, seed=1, trials=-(-case.calls // CELLS))
        for _ in range(rounds):
            for leg in legs:
                seen = measured(leg, case, problems)
                shares[leg].append(rate(seen, case) / case.ideal_per_s)
                print(leg_line(name, leg, seen, case))
                print(f"  load of the machine afterwards {os.getloadavg()[0]:.1f}", flush=True)
    for leg, of_ideal in shares.items():
        print(f"{name}, {leg}, share of the ideal: {_of_rounds(of_ideal)}")
    if shares.keys() >= LEGS.keys():
        ratios = [ours / bare for ours, bare in zip(shares["asyncbench"], shares["bare"], strict=True)]
        print(f"{name}, asyncbench / bare, round by round: {_of_rounds(ratios)}")


def _of_rounds(values: Sequence[float]) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"median {middle:.3f} ({low:.3f}-{high:.3f}) of {len(values)}"


if __name__ == "__main__":
    main()
