"""Measure how late a load sends its calls, beside bare timers of asyncio at the same times, in one run.

    python -m benchmarks.lateness [--rates 10,100,1000] [--seconds 20] [--rounds 3]

Late is a call sent after it was due: the request's first byte on a connection that is there. A bare timer
(`loop.call_at`) is late, too: the event loop waits in whole milliseconds, and up to two. Both have the same
arrivals, by chance, and take turns, so that a machine that grows busier does so for both. A simulator in a
process of its own answers. It notes when each call came: the way there is from the request sent until then.
On a busy machine, `chrt -f 10` before the command shows what it would be on an idle one (as root, Linux).
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from asyncbench import generate, read_attempts, read_steps, run_load
from asyncbench.config.sweep import sweep_from
from asyncbench.lanes.load.steps import due_times
from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings

AIM_S: Final = 0.002  # at the 99th percentile, up to 100 calls a second, on an idle machine
SETTLE_S: Final = 2.0  # before calls count: connections are made


@dataclass(slots=True, kw_only=True)
class Seen:
    """Seconds of all rounds at one rate."""

    timers: list[float] = field(default_factory=list)  # late
    calls: list[float] = field(default_factory=list)  # late
    way: list[float] = field(default_factory=list)  # from sent to the server
    lag_p99: list[float] = field(default_factory=list)  # of the event loop, by round
    bound: int = 0  # rounds of which the load says that this computer was the bottleneck


async def bare(due: Sequence[float]) -> list[float]:
    """Return how late timers are, set one after the other."""
    loop = asyncio.get_running_loop()
    began_s, late, done = loop.time() + 0.1, list[float](), loop.create_future()
    times = iter(due)

    def fire(at_s: float) -> None:
        late.append(loop.time() - at_s)
        set_next()

    def set_next() -> None:
        if (due_s := next(times, None)) is None:
            done.set_result(None)
        else:
            loop.call_at(began_s + due_s, fire, began_s + due_s)

    set_next()
    await done
    return late


async def loaded(
    seen: Seen, server: Simulator, problems: Path, rate: float, options: argparse.Namespace, seed: int
) -> None:
    """Take in how late calls of a load were."""
    load = {"rates": [rate], "warmup": SETTLE_S, "duration": options.seconds, "rest": 0, "seed": seed}
    url = server.url if options.provider == "simulated-anthropic" else f"{server.url}/v1"
    model = {"model": f"{options.provider}/oracle", "base_url": url}
    with tempfile.TemporaryDirectory() as out:
        raw = {
            "name": "late",
            "problems": [str(problems)],
            "models": [model],
            "out": f"{out}/r",
            "load": load,
        }
        ahead_s = time.time() - time.monotonic()
        await run_load(sweep_from(raw), progress=False)
        rows = [row for row in read_attempts(Path(out, "r")).to_pylist() if row["phase"] == "measured"]
        (step,) = read_steps(Path(out, "r")).to_pylist()
    came = {arrival.request_id: arrival.arrived_s for arrival in server.arrivals()}
    for row in rows:
        seen.calls.append(row["late_s"] - (row["connect_s"] or 0.0))
        sent_s = row["due_at"].timestamp() + row["late_s"] - ahead_s
        seen.way.append(came[row["request_id"]] - sent_s)
    seen.lag_p99.append(step["loop_lag_p99_s"])
    seen.bound += step["client_bound"]


def shown(values: Sequence[float]) -> str:
    """Return p50, p99 and the highest, in milliseconds."""
    ordered = sorted(values)
    n = len(ordered)
    picked = (ordered[n // 2], ordered[min(n - 1, int(0.99 * n))], ordered[-1])
    return "".join(f"{1000 * value:9.2f}" for value in picked)


def main() -> None:
    """Measure and print a line for each rate and who was late."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", default="10,100,1000", help="calls a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--provider", default="simulated-http")
    options = parser.parse_args()
    seen = {float(rate): Seen() for rate in options.rates.split(",")}
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        problems = generate("llm_arithmetic", Path(folder, "p.parquet"), seed=1, trials=2).path
        with running(Settings(problems=(problems,))) as server:
            for number in range(options.rounds):
                for rate, delays in seen.items():
                    due = due_times("poisson", rate, options.seconds, seed=number, model="m", round_=1)
                    delays.timers += asyncio.run(bare(due))
                    with contextlib.redirect_stdout(None):
                        asyncio.run(loaded(delays, server, problems, rate, options, number))
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}; the bare timers are in it, and the server")
    print(f"{'':34}{'calls':>8}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    for rate, delays in seen.items():
        print(f"{rate:>7g}/s  {'bare timers, late':25}{len(delays.timers):8}{shown(delays.timers)}")
        print(f"{'':11}{'calls of a load, late':25}"[:34].ljust(34), end="")
        print(f"{len(delays.calls):8}{shown(delays.calls)}", end="")
        aimed = sorted(delays.calls)[int(0.99 * len(delays.calls))] < AIM_S
        print(f"   p99 below {1000 * AIM_S:g} ms: {'yes' if aimed else 'no'}" if rate <= 100 else "")
        print(f"{'':11}{'their way to the server'}{len(delays.way):8}{shown(delays.way)}")
        lags = ", ".join(f"{1000 * lag:.1f}" for lag in delays.lag_p99)
        print(f"{'':11}loop lag p99 by round: {lags} ms; client-bound: {delays.bound} of {options.rounds}")


if __name__ == "__main__":
    main()
