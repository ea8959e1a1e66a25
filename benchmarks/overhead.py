"""What a call costs in our own CPU, beside bare loops over the same SDKs, in one run.

    python benchmarks/overhead.py [--calls 5000] [--rounds 5]

Each leg makes the same calls to a simulator without latency in another process, 256 at a time; counted is
this process's CPU time (all threads), for asyncbench from opening the folder to its last Parquet part.
Legs take turns, so that a machine that grows faster or slower does so for all; ratios are made by round.
"""

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import aiohttp
import anthropic
import httpx2
import openai
import orjson

from asyncbench import generate, run_sweep
from asyncbench.config import sweep_from
from asyncbench.problems import open_set
from asyncbench.records import Outcome
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings

CONCURRENCY = 256
LIMITS = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
TIMEOUT = httpx2.Timeout(600, connect=30, pool=None)

Call = Callable[[str], Awaitable[object]]
Leg = Callable[[], Awaitable[None]]

# ratio, its legs, what is to be reached
RATIOS = (
    ("(d) / (b)", "d", "b", 1.25),
    ("(d) / (a)", "d", "a", 0.65),
    ("(e) / (e-b)", "e", "e-b", 1.25),
    ("(e) / (e-a)", "e", "e-a", None),
    ("(f) / (c)", "f", "c", 2.5),
)


async def all_at_once(questions: Sequence[str], call: Call) -> None:
    """Ask every question, 256 at a time: the plainest loop there is."""
    waiting: Iterator[str] = iter(questions)

    async def work() -> None:
        for question in waiting:
            await call(question)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONCURRENCY):
            tasks.create_task(work())


def bare_legs(url: str, questions: Sequence[str]) -> dict[str, tuple[str, Leg]]:
    """Return the loops that a careful person would write by hand."""

    async def openai_create() -> None:
        async with _openai(url) as client:

            async def call(question: str) -> object:
                reply = await client.chat.completions.create(
                    model="oracle", messages=[{"role": "user", "content": question}]
                )
                return reply.choices[0].message.content

            await all_at_once(questions, call)

    async def openai_post() -> None:
        async with _openai(url) as client:

            async def call(question: str) -> object:
                body = {"model": "oracle", "messages": [{"role": "user", "content": question}]}
                reply = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
                return orjson.loads(reply.content)["choices"][0]["message"]["content"]

            await all_at_once(questions, call)

    async def aiohttp_post() -> None:
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        headers = {"authorization": "Bearer k", "content-type": "application/json"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def call(question: str) -> object:
                body = {"model": "oracle", "messages": [{"role": "user", "content": question}]}
                async with session.post(f"{url}/v1/chat/completions", data=orjson.dumps(body)) as reply:
                    return orjson.loads(await reply.read())["choices"][0]["message"]["content"]

            await all_at_once(questions, call)

    async def anthropic_create() -> None:
        async with _anthropic(url) as client:

            async def call(question: str) -> object:
                reply = await client.messages.create(
                    model="oracle", max_tokens=4096, messages=[{"role": "user", "content": question}]
                )
                return reply.content[0]

            await all_at_once(questions, call)

    async def anthropic_post() -> None:
        async with _anthropic(url) as client:

            async def call(question: str) -> object:
                body = {
                    "model": "oracle",
                    "max_tokens": 4096,
                    "messages": [{"role": "user", "content": question}],
                }
                reply = await client.post("/v1/messages", body=body, cast_to=httpx2.Response)
                return orjson.loads(reply.content)["content"][0]["text"]

            await all_at_once(questions, call)

    return {
        "a": ("(a)   openai create()", openai_create),
        "b": ("(b)   openai client.post + orjson", openai_post),
        "c": ("(c)   aiohttp + orjson", aiohttp_post),
        "e-a": ("(e-a) anthropic create()", anthropic_create),
        "e-b": ("(e-b) anthropic client.post + orjson", anthropic_post),
    }


def _openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{url}/v1",
        api_key="k",
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(limits=LIMITS, timeout=TIMEOUT),
    )


def _anthropic(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=url,
        api_key="k",
        max_retries=0,
        http_client=anthropic.DefaultAioHttpClient(limits=LIMITS, timeout=TIMEOUT),
    )


def our_legs(url: str, problems: Path, folder: Path) -> dict[str, tuple[str, Leg]]:
    """Return whole runs of asyncbench: limits, prices, grading, journal and Parquet on."""

    def leg(provider: str, base_url: str) -> Leg:
        async def sweep() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as out:
                model = {
                    "model": f"{provider}/oracle",
                    "base_url": base_url,
                    "concurrency": CONCURRENCY,
                    "rpm": 6_000_000,
                    "tpm": 6_000_000_000,
                    "price": {"input": 1.0, "output": 2.0},
                }
                given = {
                    "name": "overhead",
                    "problems": [str(problems)],
                    "models": [model],
                    "out": f"{out}/r",
                }
                summary = await run_sweep(sweep_from(given))
                (counters,) = summary.models.values()
                assert counters.outcomes[Outcome.CORRECT] == counters.planned, summary.as_text()

        return sweep

    return {
        "d": ("(d)   asyncbench openai", leg("simulated", f"{url}/v1")),
        "e": ("(e)   asyncbench anthropic", leg("simulated-anthropic", url)),
        "f": ("(f)   asyncbench http", leg("simulated-http", f"{url}/v1")),
    }


def cpu_s(leg: Leg) -> float:
    """Return the CPU seconds that a leg takes in this process."""
    gc.collect()
    before_s = time.process_time()
    asyncio.run(leg())  # type: ignore[arg-type]  # every leg is an async function
    return time.process_time() - before_s


def measure(legs: dict[str, tuple[str, Leg]], *, calls: int, rounds: int) -> dict[str, list[float]]:
    """Return each leg's CPU µs per call, a figure a round; the first round warms up and is not counted."""
    figures: dict[str, list[float]] = {key: [] for key in legs}
    for i in range(rounds + 1):
        for key, (_, leg) in legs.items():
            figure = cpu_s(leg) / calls * 1e6
            if i:
                figures[key].append(figure)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=5000, help="per leg and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--legs", default="", help="only these, such as b,d")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trials = -(-given.calls // 72)
        problems = generate("llm_arithmetic", folder / "problems.parquet", seed=1, trials=trials)
        questions = [problem.question for problem in open_set(problems.path).read()]
        with running(Settings(problems=(problems.path,))) as server:
            legs = bare_legs(server.url, questions) | our_legs(server.url, problems.path, folder)
            if given.legs:
                legs = {key: legs[key] for key in given.legs.split(",")}
            figures = measure(legs, calls=problems.rows, rounds=given.rounds)
    report(legs, figures, calls=problems.rows)


def report(legs: dict[str, tuple[str, Leg]], figures: dict[str, list[float]], *, calls: int) -> None:
    """Print medians, spreads and ratios."""
    print(f"client CPU, µs per call; {calls:,} calls a leg, {CONCURRENCY} in flight, simulated server")
    for key, (name, _) in legs.items():
        row = figures[key]
        print(f"{name:<40}{statistics.median(row):8.0f}   ({min(row):.0f}-{max(row):.0f})")
    for name, ours, theirs, aim in RATIOS:
        if ours in figures and theirs in figures:
            ratios = [a / b for a, b in zip(figures[ours], figures[theirs], strict=True)]
            spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
            print(f"{name:<40}{statistics.median(ratios):8.2f}   {spread}" + (f", aim {aim}" if aim else ""))


if __name__ == "__main__":
    main()
