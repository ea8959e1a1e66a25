"""Measure our own CPU time for a call, beside bare loops over the same SDKs, in one run.

    python -m benchmarks.overhead [--calls 5000] [--rounds 6] [--legs b,d]
    python -m benchmarks.overhead --legs j-b,j --calls 1000
    python -m benchmarks.overhead --against ../before --pairs 12 [--calls 5000] [--legs d]

Each leg makes the same calls to a simulator on another core, 256 at a time; counted is this process's
CPU time (all threads), for asyncbench from opening the folder to its last Parquet part. Whole answers come at
once, streams piece by piece. Legs take turns, so that a machine that grows faster or slower does so for all;
ratios are made by round. The legs j and j-b, which are measured only where they are named, make 100 calls a
second, most of them alone: what a call costs a client that has little to do.

With --against, a leg of this tree is set beside that of another checkout: in turns, each time in a process of
its own, both measured by this file and answered by this tree's simulator. A pair gives one ratio; the
interval is that of the sign test for their median, which assumes nothing of how they are spread.
"""

import argparse
import asyncio
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from asyncbench import generate, run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.records import Outcome
from asyncbench.simulator.settings import Settings
from benchmarks import bare, cores

ROOT = Path(__file__).resolve().parents[1]
CONCURRENCY = 256
PER_S = 100.0  # calls of a paced leg
PACED = ("j-b", "j")
CELLS = 72  # of llm_arithmetic: its problems come in multiples of it
PIECES = 50  # of a streamed answer: of four characters, about a token
# Pieces 8 ms apart, as a model writes them: those of a stream that comes at once are read at once.
PIECEMEAL = Settings(chunks=PIECES, latency_s=0.5, ttft_s=0.1)

TOLERATED = 0.05  # more CPU than the state before

_AT_ONCE = partial(bare.all_of, at_once=CONCURRENCY)
Leg = Callable[[], Coroutine[None, None, None]]
Legs = dict[str, tuple[str, Leg]]

# ratio, its legs, what is to be reached
RATIOS = (
    ("(d) / (b)", "d", "b", 0.65),
    ("(d) / (a)", "d", "a", 0.65),
    ("(e) / (e-b)", "e", "e-b", 0.65),
    ("(e) / (e-a)", "e", "e-a", None),
    ("(f) / (c)", "f", "c", 2.2),
    ("(g) / (g-a)", "g", "g-a", 0.6),
    ("(g-e) / (g-e-a)", "g-e", "g-e-a", 0.6),
    ("(h) / (h-a)", "h", "h-a", None),
    ("(i) / (d)", "i", "d", 1.05),
    ("(j) / (j-b)", "j", "j-b", 1.25),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What some legs ask, and of which simulator."""

    url: str  # without /v1
    problems: ProblemSet
    questions: Sequence[str]


def asked(url: str, problems: ProblemSet) -> Asked:
    """Read the questions once, so that the bare loops need not."""
    questions = [problem.question for problem in open_set(problems.path).read()]
    return Asked(url=url, problems=problems, questions=questions)


def bare_legs(whole: Asked, streamed: Asked) -> Legs:
    """Return the loops that a careful person would write by hand."""
    paced = partial(bare.paced, per_s=PER_S)
    openai, anthropic = bare.openai_client, bare.anthropic_client
    return {
        "a": ("(a)     openai create()", _loop(openai, bare.openai_create, whole)),
        "b": ("(b)     openai client.post + orjson", _loop(openai, bare.openai_post, whole)),
        "c": ("(c)     aiohttp + orjson", _loop(bare.aiohttp_session, bare.aiohttp_post, whole)),
        "e-a": ("(e-a)   anthropic create()", _loop(anthropic, bare.anthropic_create, whole)),
        "e-b": ("(e-b)   anthropic client.post + orjson", _loop(anthropic, bare.anthropic_post, whole)),
        "g-a": ("(g-a)   openai create(stream=True)", _loop(openai, bare.openai_stream, streamed)),
        "g-e-a": (
            "(g-e-a) anthropic create(stream=True)",
            _loop(anthropic, bare.anthropic_stream, streamed),
        ),
        "h-a": ("(h-a)   openai responses.create()", _loop(openai, bare.openai_responses, whole)),
        "j-b": ("(j-b)   openai client.post, paced", _loop(openai, bare.openai_post, whole, paced)),
    }


def _loop(
    opened: Callable[..., AbstractAsyncContextManager[bare.Client]],
    door: Callable[[bare.Client], bare.Call],
    what: Asked,
    ask_all: Callable[[Sequence[str], bare.Call], Coroutine[None, None, None]] = _AT_ONCE,
) -> Leg:
    async def loop() -> None:
        async with opened(what.url, connections=CONCURRENCY) as client:
            await ask_all(what.questions, door(client))

    return loop


def our_legs(whole: Asked, streamed: Asked, folder: Path) -> Legs:
    """Return whole runs of asyncbench: limits, prices, grading, journal and Parquet on."""

    def leg(provider: str, what: Asked, **more: object) -> Leg:
        base_url = what.url if provider == "simulated-anthropic" else f"{what.url}/v1"
        model = {"model": f"{provider}/oracle", "base_url": base_url, **more}
        return partial(_sweep, model, what.problems, folder)

    return {
        "d": ("(d)     asyncbench openai", leg("simulated", whole)),
        "e": ("(e)     asyncbench anthropic", leg("simulated-anthropic", whole)),
        "f": ("(f)     asyncbench http", leg("simulated-http", whole)),
        "g": ("(g)     asyncbench openai, streamed", leg("simulated", streamed, stream=True)),
        "g-e": (
            "(g-e)   asyncbench anthropic, streamed",
            leg("simulated-anthropic", streamed, stream=True),
        ),
        "h": ("(h)     asyncbench openai, responses", leg("simulated", whole, api="responses")),
        "i": ("(i)     asyncbench openai, a budget", leg("simulated", whole, max_tokens=64, budget_usd=1e6)),
        "j": ("(j)     asyncbench openai, paced", leg("simulated", whole, rpm=60 * PER_S)),
    }


async def _sweep(model: dict[str, object], problems: ProblemSet, folder: Path) -> None:
    limits = {"concurrency": CONCURRENCY, "rpm": 6_000_000, "tpm": 6_000_000_000}
    priced = limits | {"price": {"input": 1.0, "output": 2.0}, "stream": False} | model
    with tempfile.TemporaryDirectory(dir=folder) as out:
        settings = {
            "name": "overhead",
            "problems": [str(problems.path)],
            "models": [priced],
            "out": f"{out}/r",
        }
        summary = await run_sweep(sweep_from(settings))
    (counters,) = summary.models.values()
    assert counters.outcomes[Outcome.CORRECT] == counters.planned, summary.as_text()


def cpu_s(leg: Leg) -> float:
    """Return the CPU seconds that a leg takes in this process."""
    gc.collect()
    before_s = time.process_time()
    asyncio.run(leg())
    return time.process_time() - before_s


def measure(legs: Legs, *, calls: int, rounds: int) -> dict[str, list[float]]:
    """Return each leg's CPU µs per call, a figure a round; the first round warms up and is not counted."""
    figures: dict[str, list[float]] = {key: [] for key in legs}
    for i in range(rounds + 1):
        for key, (_, leg) in legs.items():
            figure = cpu_s(leg) / calls * 1e6
            if i:
                figures[key].append(figure)
    return figures


# ── this tree beside another ─────────────────────────────────────────────────────────────────


def paired(against: Path, leg: str, *, calls: int, pairs: int) -> None:
    """Measure a leg in both trees by turns, and print each pair's ratio and what they say together."""
    trees = (ROOT, against.resolve())
    if not (trees[1] / "asyncbench" / "__init__.py").is_file():
        sys.exit(f"--against {against}: no asyncbench in it; give the root of a checkout")
    print(f"client CPU of ({leg}), µs per call; {calls:,} calls; this tree, {against}, ratio", flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as place, _served(Path(place), calls) as (whole, streamed):
        for number in range(pairs):
            # Who goes first has the machine as the pair before left it: each does so as often.
            order = trees if number % 2 == 0 else trees[::-1]
            figures = {tree: _cpu_in(tree, leg, whole, streamed) for tree in order}
            ours, theirs = (figures[tree] for tree in trees)
            ratios.append(ours / theirs)
            print(f"{ours:8.0f}{theirs:8.0f}{ratios[-1]:8.3f}", flush=True)
    print(verdict(ratios))


def _cpu_in(tree: Path, leg: str, whole: Asked, streamed: Asked) -> float:
    """Return a leg's CPU µs per call in a process that imports asyncbench from a tree."""
    places = [str(part) for one in (whole, streamed) for part in (one.url, one.problems.path)]
    # -P: this file is run for both trees, but what it imports must come from the tree alone.
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--legs", leg, "--child", *places]
    done = subprocess.run(  # noqa: S603  our own interpreter and this file
        command,
        env=os.environ | {"PYTHONPATH": str(tree)},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{tree}: the leg {leg!r} failed there:\n{done.stderr}")
    figures = json.loads(done.stdout)
    assert Path(figures["asyncbench"]).is_relative_to(tree), figures
    return float(figures["cpu_us"])


def child(leg: str, places: Sequence[str]) -> None:
    """Measure one leg once, after a round to warm up, and print it as JSON."""
    url, path, stream_url, stream_path = places
    whole, streamed = asked(url, open_set(Path(path))), asked(stream_url, open_set(Path(stream_path)))
    with tempfile.TemporaryDirectory() as folder:
        legs = bare_legs(whole, streamed) | our_legs(whole, streamed, Path(folder))
        figures = measure({leg: legs[leg]}, calls=whole.problems.rows, rounds=1)
    print(json.dumps({"cpu_us": figures[leg][0], "asyncbench": run_sweep.__code__.co_filename}))


def verdict(ratios: Sequence[float]) -> str:
    """Return the median of the ratios, its interval, and whether they show a change of `TOLERATED`."""
    middle = f"this / other: median {statistics.median(ratios):.3f} of {len(ratios)} pairs"
    if (interval := sign_interval(ratios)) is None:
        return f"{middle} ({min(ratios):.3f}-{max(ratios):.3f}); an interval of 95 % takes 6 pairs or more"
    low, high, coverage = interval
    worse = "no" if high <= 1 + TOLERATED else "yes" if low > 1 + TOLERATED else "undecided: more pairs"
    return (
        f"{middle}, {coverage:.1%} interval {low:.3f}-{high:.3f}; worse by more than {TOLERATED:.0%}: {worse}"
    )


def sign_interval(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the narrowest interval of ordered values that holds the median in 95 % or more, and how often.

    None: too few values for that. The kth least and the kth greatest leave the median outside as often as a
    coin, thrown once for each value, shows fewer than k heads, or fewer than k tails.
    """
    ordered, count = sorted(values), len(values)
    missed, interval = 0.0, None
    for k in range(count // 2):
        missed += 2 * math.comb(count, k) / 2**count
        if missed > 0.05:
            break
        interval = (ordered[k], ordered[-1 - k], 1 - missed)
    return interval


# ── the command ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def _served(folder: Path, calls: int) -> Iterator[tuple[Asked, Asked]]:
    """Make problems and serve them: whole answers of one server, streamed ones of another."""
    problems = generate("llm_arithmetic", folder / "problems.parquet", seed=1, trials=-(-calls // CELLS))
    length = 4 * PIECES
    texts = generate(
        "string_rehearsal",
        folder / "texts.parquet",
        seed=1,
        tries=problems.rows,
        min_length=length,
        max_length=length,
    )
    with (
        cores.served(Settings(problems=(problems.path,))) as at_once,
        cores.served(replace(PIECEMEAL, problems=(texts.path,))) as by_pieces,
    ):
        yield asked(at_once.url, problems), asked(by_pieces.url, texts)
        streams = by_pieces.stats()
        assert streams["chunks"] == PIECES * streams["streams"], streams


def in_turns(keys: Sequence[str], *, calls: int, rounds: int) -> None:
    """Measure legs of this tree, all or those named, and print them with their ratios."""
    with tempfile.TemporaryDirectory() as place, _served(Path(place), calls) as (whole, streamed):
        legs = bare_legs(whole, streamed) | our_legs(whole, streamed, Path(place))
        legs = {key: legs[key] for key in keys or sorted(legs.keys() - set(PACED))}
        figures = measure(legs, calls=whole.problems.rows, rounds=rounds)
    report(legs, figures, calls=whole.problems.rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=5000, help="per leg and round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--legs", default="", help="only these, such as b,d")
    parser.add_argument(
        "--against", type=Path, help="another checkout, such as a worktree of the state before"
    )
    parser.add_argument("--pairs", type=int, default=12, help="with --against")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    cores.take_one()
    if options.child:
        child(options.legs, options.child)
    elif options.against:
        for leg in (options.legs or "d").split(","):
            paired(options.against, leg, calls=options.calls, pairs=options.pairs)
    else:
        in_turns(options.legs.split(",") if options.legs else (), calls=options.calls, rounds=options.rounds)


def report(legs: Legs, figures: dict[str, list[float]], *, calls: int) -> None:
    """Print medians, spreads and ratios."""
    print(f"client CPU, µs per call; {calls:,} calls a leg, {CONCURRENCY} in flight, simulated server")
    for key, (name, _) in legs.items():
        row = figures[key]
        print(f"{name:<42}{statistics.median(row):8.0f}   ({min(row):.0f}-{max(row):.0f})")
    for name, ours, theirs, aim in RATIOS:
        if ours in figures and theirs in figures:
            ratios = [a / b for a, b in zip(figures[ours], figures[theirs], strict=True)]
            spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
            print(f"{name:<42}{statistics.median(ratios):8.2f}   {spread}" + (f", aim {aim}" if aim else ""))


if __name__ == "__main__":
    main()
