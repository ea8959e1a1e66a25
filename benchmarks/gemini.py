"""Measure our own CPU time for a call to Gemini, beside a bare loop over Google's SDK, in one run.

    python -m benchmarks.gemini [--calls 2160] [--rounds 5]

Each leg makes the same calls to a server in its own process that answers at once, 256 at a time; counted is
this process's CPU time (all threads), for asyncbench from opening the folder to its last Parquet part. Legs
take turns, and ratios are made by round.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from asyncbench import generate, run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from benchmarks import bare, cores, overhead

MODEL = "gemini-2.5-flash"
LIMITS = {"concurrency": overhead.CONCURRENCY, "rpm": 6_000_000, "tpm": 6_000_000_000}


async def sdk_loop(url: str, problems: ProblemSet) -> None:
    """Ask every question by `generate_content`."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, api_version="v1beta")
    client = genai.Client(api_key="k", vertexai=False, http_options=options)
    config = types.GenerateContentConfig(max_output_tokens=64)

    async def call(question: str) -> str:
        reply = await client.aio.models.generate_content(model=MODEL, contents=question, config=config)
        return reply.text or ""

    questions = [problem.question for problem in open_set(problems.path).read()]
    await bare.all_of(questions, call, at_once=overhead.CONCURRENCY)
    await client.aio.aclose()


async def sweep(url: str, problems: ProblemSet, folder: Path) -> None:
    """Ask them by a whole run."""
    model = {"model": f"google/{MODEL}", "base_url": url, "max_tokens": 64, "stream": False, **LIMITS}
    model["price"] = {"input": 1.0, "output": 2.0}
    with tempfile.TemporaryDirectory(dir=folder) as out:
        raw = {"name": "g", "problems": [str(problems.path)], "models": [model], "out": f"{out}/r"}
        summary = await run_sweep(sweep_from(raw))
    (counters,) = summary.models.values()
    assert sum(counters.outcomes.values()) == counters.planned, summary.as_text()


@contextmanager
def quick_server() -> Iterator[str]:
    """Yield the address of a server on the other cores."""
    command = [sys.executable, "-m", "benchmarks.quick_server", "contents"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  our own
        os.sched_setaffinity(server.pid, cores.OTHERS or {cores.FIRST})
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        assert server.stdin is not None
        server.stdin.close()


def main() -> None:
    """Measure both, and print each and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=2160)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    os.environ["GEMINI_API_KEY"] = "k"
    with tempfile.TemporaryDirectory() as place, quick_server() as url:
        cores.take_one()
        trials = max(1, asked.calls // overhead.CELLS)
        problems = generate("llm_arithmetic", Path(place) / "p.parquet", seed=1, trials=trials)
        legs: overhead.Legs = {
            "a": ("google-genai generate_content()", partial(sdk_loop, url, problems)),
            "b": ("asyncbench google", partial(sweep, url, problems, Path(place))),
        }
        figures = overhead.measure(legs, calls=problems.rows, rounds=asked.rounds)
    for key, (name, _) in legs.items():
        low, middle, high = min(figures[key]), statistics.median(figures[key]), max(figures[key])
        print(f"{name:36}{middle:8,.0f} µs a call ({low:,.0f}-{high:,.0f})")
    ratios = [ours / theirs for theirs, ours in zip(figures["a"], figures["b"], strict=True)]
    print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
