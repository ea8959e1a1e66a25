"""Measure the use of a rate limit and the share of refusals: asyncbench beside two loops by hand.

    python -m benchmarks.limits [--seconds 120] [--warm-up 10] [--only quanta] [--clients asyncbench,bare]
    python -m benchmarks.limits --only untold-bucket --clients asyncbench --warm-up 60 --seconds 420

Each case is a server in a process of its own that enforces a limit in one of the ways that providers do. The
clients ask one after the other, each a fresh server, over the real SDKs and real sockets: a whole run of
asyncbench that is told the limit, a loop over the SDK with the SDK's own retries, and the same loop behind
aiolimiter. Only what the server counted counts, in the seconds after the warm-up; allowed is the limit times
those seconds, and of several limits the one that is used most is shown. Who uses a window of a minute at once
is measured truly by whole minutes alone.

In the cases whose names begin with `untold`, neither the sweep nor a header tells asyncbench the limit.
"""

import argparse
import asyncio
import itertools
import random
import string
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai
import pyarrow as pa
import pyarrow.parquet as pq
from aiolimiter import AsyncLimiter

from asyncbench import run_sweep
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.simulator.counts import Second, ServerSeconds
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.wire import tokens
from benchmarks import bare

TASKS = 300  # of the loops by hand; asyncbench may have as many calls in flight
LATENCY_S, LATENCY_SIGMA = 0.5, 0.3
START_S = 10.0  # for a client to make its first call
SPARE_MINUTES = 2.0  # of problems: a window may admit a minute's worth at once
NAMES = {"rpm": "requests", "tpm": "tokens", "input_tpm": "input-tokens", "output_tpm": "output-tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A limit and what is asked within it."""

    limits: Mapping[str, int]  # as in a sweep
    model: str = "token_bucket"  # of the limit
    tokens_counted: str = "used"
    max_tokens: int | None = None
    uneven: bool = False  # prompts and answers from a few tokens to thousands, else small sums
    anthropic: bool = False  # the SDK
    untold: bool = False  # the limit
    least: float = 0.99  # share of the limit to be used
    most: float = 0.001  # share of the calls that may be refused

    @property
    def counts(self) -> str:
        """What the server counts, in the words of a sweep."""
        return "demanded" if self.tokens_counted == "demanded" else "uncached" if self.anthropic else "used"

    def settings(self, problems: Path) -> Settings:
        """Return the server that enforces it."""
        return Settings(
            problems=(problems,),
            limit_model=self.model,
            tokens_counted=self.tokens_counted,
            latency_s=LATENCY_S,
            latency_sigma=LATENCY_SIGMA,
            rpm=self.limits.get("rpm"),
            tpm=self.limits.get("tpm"),
            input_tpm=self.limits.get("input_tpm"),
            output_tpm=self.limits.get("output_tpm"),
            like="deepseek" if self.untold else None,  # which tells no limits
        )

    def cost(self, question: str, output_tokens: float) -> dict[str, float]:
        """Return what a call counts against each limit, by its key in a sweep."""
        input_tokens = tokens(len(question))
        together = max(input_tokens, self.max_tokens or 0) if self.tokens_counted == "demanded" else None
        costs = {
            "rpm": 1.0,
            "tpm": input_tokens + output_tokens if together is None else together,
            "input_tpm": input_tokens,
            "output_tpm": output_tokens,
        }
        return {key: costs[key] for key in self.limits}


CASES = {
    "bucket": Case(limits={"rpm": 6000}),
    "fixed": Case(limits={"rpm": 6000}, model="fixed_window"),
    "sliding": Case(limits={"rpm": 6000}, model="sliding_window"),
    "quanta": Case(limits={"rpm": 6000}, model="quanta", least=0.98, most=0.005),
    "tokens": Case(limits={"tpm": 600_000}, uneven=True, least=0.98, most=0.005),
    "demanded": Case(limits={"tpm": 600_000}, tokens_counted="demanded", max_tokens=1000, uneven=True),
    "untold-bucket": Case(limits={"rpm": 6000}, untold=True, least=0.95, most=0.01),
    "untold-fixed": Case(limits={"rpm": 6000}, model="fixed_window", untold=True, least=0.95, most=0.01),
    "untold-sliding": Case(limits={"rpm": 6000}, model="sliding_window", untold=True, least=0.95, most=0.01),
    "in-out": Case(
        limits={"input_tpm": 400_000, "output_tpm": 200_000},
        anthropic=True,
        uneven=True,
        least=0.98,
        most=0.005,
    ),
}


# ── what is asked ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """A problem set as each client needs it."""

    path: Path
    questions: Sequence[str]
    output_tokens: float  # of an answer, on average


def problems_for(case: Case, folder: Path, minutes: float) -> Problems:
    """Write problems that last so long at the limit, the same at each call."""
    draw = random.Random(1)  # noqa: S311  for repeatability
    make = _uneven if case.uneven else _sum
    remaining = {key: per_minute * minutes for key, per_minute in case.limits.items()}
    rows: list[tuple[str, str]] = []
    while any(amount > 0 for amount in remaining.values()):
        question, expected = make(draw, len(rows))
        rows.append((question, expected))
        for key, amount in case.cost(question, tokens(len(expected))).items():
            remaining[key] -= amount
    questions, answers = [question for question, _ in rows], [expected for _, expected in rows]
    path = folder / "problems.parquet"
    pq.write_table(pa.table({"question": questions, "expected": answers}), path)
    mean = sum(tokens(len(answer)) for answer in answers) / len(answers)
    return Problems(path=path, questions=questions, output_tokens=mean)


def _sum(_draw: random.Random, number: int) -> tuple[str, str]:
    return f"What is {number} + 10000?", str(number + 10_000)


def _uneven(draw: random.Random, number: int) -> tuple[str, str]:
    question = f"{number}: repeat what you know of {_text(draw, median=600, most=20_000)}"
    return question, _text(draw, median=400, most=8_000)


def _text(draw: random.Random, *, median: float, most: int) -> str:
    length = min(most, max(1, round(median * draw.lognormvariate(0, 1))))
    return draw.choice(string.ascii_lowercase) * length


# ── the clients: each asks until it is stopped ───────────────────────────────────────────────

Asking = Callable[[Case, str, Problems], Coroutine[None, None, None]]  # case, server's URL, problems


async def asyncbench_asks(case: Case, url: str, problems: Problems) -> None:
    """Run a sweep that is told the limit."""
    provider, base_url = ("simulated-anthropic", url) if case.anthropic else ("simulated", f"{url}/v1")
    model: dict[str, object] = {
        "model": f"{provider}/oracle",
        "base_url": base_url,
        "concurrency": TASKS,
        "price": {"input": 1.0, "output": 2.0},
    }
    if not case.untold:
        model |= {**case.limits, "counts": case.counts}
    if case.max_tokens is not None:
        model["max_tokens"] = case.max_tokens
    source = {"path": str(problems.path), "suite": "custom", "grader": "exact"}
    with tempfile.TemporaryDirectory() as out:
        settings = {"name": "limits", "problems": [source], "models": [model], "out": f"{out}/r"}
        summary = await run_sweep(sweep_from(settings))
    raise AssertionError(f"the sweep ended before its time:\n{summary.as_text()}")


async def bare_asks(case: Case, url: str, problems: Problems) -> None:
    """Ask with nothing but the SDK and its retries; a call that they do not save is lost."""
    async with _client(case, url) as client:
        await _loop(problems, _created(case, client))


async def aiolimiter_asks(case: Case, url: str, problems: Problems, *, burst_s: float = 60) -> None:
    """Ask as `bare_asks` does, behind a limiter for each limit; of answers their average length is known.

    `burst_s`: so many seconds' worth may go at once.
    """
    limiters = {
        key: AsyncLimiter(per_minute * burst_s / 60, burst_s) for key, per_minute in case.limits.items()
    }
    async with _client(case, url) as client:
        create = _created(case, client)

        async def call(question: str) -> object:
            for key, amount in case.cost(question, problems.output_tokens).items():
                await limiters[key].acquire(amount)
            return await create(question)

        await _loop(problems, call)


def _client(case: Case, url: str) -> AbstractAsyncContextManager[Any]:
    """Return a client that retries as often as the SDK does by itself."""
    if case.anthropic:
        client = bare.anthropic_client(url, connections=TASKS)
        return client.with_options(max_retries=anthropic.DEFAULT_MAX_RETRIES)
    return bare.openai_client(url, connections=TASKS).with_options(max_retries=openai.DEFAULT_MAX_RETRIES)


def _created(case: Case, client: Any) -> bare.Call:
    create = bare.anthropic_create(client) if case.anthropic else partial(_create, client, case.max_tokens)

    async def call(question: str) -> object:
        try:
            return await create(question)
        except (openai.RateLimitError, anthropic.RateLimitError):
            return None

    return call


async def _create(client: openai.AsyncOpenAI, max_tokens: int | None, question: str) -> object:
    return await client.chat.completions.create(
        model="oracle",
        messages=[{"role": "user", "content": question}],
        max_completion_tokens=openai.omit if max_tokens is None else max_tokens,
    )


async def _loop(problems: Problems, call: bare.Call) -> None:
    await bare.all_of(itertools.cycle(problems.questions), call, at_once=TASKS)


CLIENTS: Mapping[str, Asking] = {
    "asyncbench": asyncbench_asks,
    "bare": bare_asks,
    "aiolimiter": aiolimiter_asks,
    "aiolimiter-paced": partial(aiolimiter_asks, burst_s=0.03),  # no burst, as far as it can
}


# ── what the server counted ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the limits of a server did in the measured seconds."""

    accepted: int  # calls
    rejected: int
    used: float  # share of the limit that was used most
    cpu: float  # of the client, from its start to its end: share of a core

    @property
    def refused(self) -> float:
        """The share of the calls that were refused."""
        return self.rejected / max(1, self.accepted + self.rejected)


def measured(case: Case, client: str, problems: Problems, *, warm_up_s: int, seconds: int) -> Seen:
    """Let a client ask a fresh server, and return what the server saw of it after the warm-up."""
    with running(case.settings(problems.path)) as server:
        cpu_s, began_s = time.process_time(), time.monotonic()
        asking = CLIENTS[client](case, server.url, problems)
        asyncio.run(_for(START_S + warm_up_s + seconds, asking))
        cpu = (time.process_time() - cpu_s) / (time.monotonic() - began_s)
        rows = _after(server.seconds(), warm_up_s=warm_up_s, seconds=seconds)
    return Seen(
        accepted=sum(row["accepted"] for row in rows),
        rejected=sum(row["rejected"] for row in rows),
        used=max(
            sum(row["charged"].get(NAMES[key], 0) for row in rows) / (per_minute / 60 * seconds)
            for key, per_minute in case.limits.items()
        ),
        cpu=cpu,
    )


async def _for(seconds: float, asking: Coroutine[None, None, None]) -> None:
    """Stop a client when its time is over."""
    try:
        async with asyncio.timeout(seconds):
            await asking
    except TimeoutError:
        return


def _after(seen: ServerSeconds, *, warm_up_s: int, seconds: int) -> list[Second]:
    """Return the measured seconds: whole ones, from so long after the first call on."""
    (rows,) = seen["models"].values()
    first_s = rows[0]["at_s"] + 1 + warm_up_s
    assert first_s + seconds <= seen["now_s"], (
        f"the client's first call came after more than {START_S - 1:g} s"
    )
    return [row for row in rows if first_s <= row["at_s"] < first_s + seconds]


# ── what it comes to ─────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=120, help="measured, of each client and case")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds before them")
    parser.add_argument("--only", choices=CASES, action="append", help="this case; repeatable")
    parser.add_argument("--clients", default=",".join(CLIENTS), help="such as asyncbench,bare")
    options = parser.parse_args()
    if unknown := set(options.clients.split(",")) - set(CLIENTS):
        parser.error(f"no such client: {', '.join(sorted(unknown))}; choose of {', '.join(CLIENTS)}")
    if options.seconds < 1 or options.warm_up < 0:
        parser.error("at least one second must be measured, after a warm-up of none or more")
    print(
        f"{options.seconds} s after {options.warm_up} s of warm-up, {TASKS} calls at a time; "
        "the server's counts"
    )
    print(
        f"{'case':<16}{'client':<12}{'accepted':>10}{'of allowed':>12}{'429s':>9}{'of calls':>10}{'CPU':>7}"
    )
    for name in options.only or CASES:
        compare(name, options.clients.split(","), warm_up_s=options.warm_up, seconds=options.seconds)


def compare(name: str, clients: Sequence[str], *, warm_up_s: int, seconds: int) -> None:
    """Print a line for each client of a case."""
    case = CASES[name]
    minutes = (START_S + warm_up_s + seconds) / 60 + SPARE_MINUTES
    with tempfile.TemporaryDirectory() as folder:
        problems = problems_for(case, Path(folder), minutes)
        for client in clients:
            try:
                seen = measured(case, client, problems, warm_up_s=warm_up_s, seconds=seconds)
            except ConfigError as error:
                print(f"{name:<16}{client:<12}  not run: {error}", flush=True)
                continue
            print(f"{name:<16}{client:<12}{figures_line(seen)}{_verdict(case, client, seen)}", flush=True)


def figures_line(seen: Seen) -> str:
    """Return the figures of a line."""
    return f"{seen.accepted:>10,}{seen.used:>12.1%}{seen.rejected:>9,}{seen.refused:>10.2%}{seen.cpu:>7.0%}"


def _verdict(case: Case, client: str, seen: Seen) -> str:
    if client != "asyncbench":
        return ""
    reached = seen.used >= case.least and seen.refused <= case.most
    return f"   {'reached' if reached else 'missed'}: at least {case.least:.0%}, at most {case.most:.1%}"


if __name__ == "__main__":
    main()
