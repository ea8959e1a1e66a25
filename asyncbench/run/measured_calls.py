"""Measures how much CPU a call takes: real runs against a simulator, in a process that does nothing else.

    python -m asyncbench.run.measured_calls '[{"via": "openai", "api": "chat"}]'

Counted is the CPU time of this process, so that neither the server nor other programs matter. A run of many
calls less one of few leaves out what a run takes whatever it asks.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncbench.config import sweep_from
from asyncbench.fleet import CallCost, CallKind, Workers
from asyncbench.problems import ProblemSet, generate, open_set
from asyncbench.prompting import request_for
from asyncbench.providers import Provider, open_provider, rare_garbage_collection
from asyncbench.records import SDK, Condition, Model, Request, Trial
from asyncbench.run.options import RunOptions
from asyncbench.run.sweep_run import run_as_told
from asyncbench.simulator import Settings, running

IN_FLIGHT: Final = 64
CELLS: Final = 72  # of llm_arithmetic: its problems come in multiples of it
FEW, MANY = 2 * CELLS, 10 * CELLS  # calls of a run; both open all connections
CALLS: Final = 5 * CELLS  # that are made without a run
SIMULATED: Final = {"openai": "simulated", "anthropic": "simulated-anthropic", "http": "simulated-http"}
LATENCY_S, TTFT_S = 0.02, 0.01  # not at once: else all pieces of a stream come as one


async def costs_of(
    kinds: Sequence[CallKind], problems: ProblemSet, url: str, folder: Path
) -> dict[str, CallCost]:
    """Measure a call of each kind, by its name."""
    models = {kind: _model(kind, url) for kind in kinds}
    workers = Workers(1, list(models.values()), os.environ, say=lambda _: None)
    async with workers.running():
        costs = {}
        for kind, model in models.items():
            requests = _requests(model, problems)
            alone = open_provider(model, key="simulated", simulator_url=None)
            handed = workers.provider(model, key="simulated", simulator_url=None)
            costs[kind.name] = CallCost(
                alone_s=await _alone_s(kind, problems, url, folder),
                call_s=await _asked_s(alone, requests),
                hand_s=await _asked_s(handed, requests),
            )
        return costs


async def _alone_s(kind: CallKind, problems: ProblemSet, url: str, folder: Path) -> float:
    """Return the CPU seconds of a call in a run without workers."""

    async def run_s(calls: int, name: str) -> float:
        out = folder / f"{kind.name} {name}"
        return await _cpu_s(lambda: _run(kind, problems, url, calls=calls, out=out))

    await run_s(FEW, "first")  # imports, and whatever else is done but once
    few_s, many_s = await run_s(FEW, "few"), await run_s(MANY, "many")
    return (many_s - few_s) / (MANY - FEW)


async def _cpu_s(work: Callable[[], Awaitable[None]]) -> float:
    """Return the CPU seconds that work takes this process, in all its threads."""
    gc.collect()
    before_s = time.process_time()
    await work()
    return time.process_time() - before_s


async def _run(kind: CallKind, problems: ProblemSet, url: str, *, calls: int, out: Path) -> None:
    limits = {"rpm": 6e6, "tpm": 6e9, "concurrency": IN_FLIGHT}
    keys = {"api": kind.api, "stream": kind.stream, "door": SDK if kind.sdk else None}
    sweep = {
        "name": "calls",
        "problems": [str(problems.path)],
        "models": [
            {
                "model": f"{SIMULATED[kind.via]}/oracle",
                "base_url": _address(kind, url),
                "price": {"input": 1.0, "output": 2.0},
                **{key: value for key, value in keys.items() if value is not None},
                **limits,
            }
        ],
        "out": str(out),
    }
    await run_as_told(sweep_from(sweep), RunOptions(limit=calls), env={})


async def _asked_s(provider: Provider, requests: Sequence[Request]) -> float:
    """Return the CPU seconds of this process for a call, without a run around it."""

    async def ask_all(asked: Sequence[Request]) -> None:
        left = iter(asked)

        async def ask_on() -> None:
            for request in left:
                await provider.ask(request)

        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(ask_on())

    try:
        with rare_garbage_collection(IN_FLIGHT):  # as in a run
            await ask_all(requests[:FEW])  # opens the connections
            return await _cpu_s(lambda: ask_all(requests[:CALLS])) / CALLS
    finally:
        await provider.aclose()


def _address(kind: CallKind, url: str) -> str:
    return url if kind.via == "anthropic" else f"{url}/v1"


def _model(kind: CallKind, url: str) -> Model:
    model = Model(
        alias=kind.name,
        provider=SIMULATED[kind.via],
        model_id="oracle",
        api=kind.api,
        simulated=True,
        base_url=_address(kind, url),
        stream=kind.stream,
        door=SDK if kind.sdk else None,
        max_tokens=1000,
    )
    return replace(model, limits=replace(model.limits, concurrency=IN_FLIGHT))


def _requests(model: Model, problems: ProblemSet) -> list[Request]:
    return [
        request_for(
            Trial(
                trial_id=problem.problem_id,
                run="calls",
                sweep="calls",
                problem_set="calls",
                problem=problem,
                model=model,
                condition=Condition(),
            )
        )
        for problem in open_set(problems.path).read()
    ]


def main() -> None:
    """Print what a call of each kind costs that the only argument lists, as JSON."""
    kinds = [CallKind(**kind) for kind in json.loads(sys.argv[1])]
    with TemporaryDirectory(prefix="asyncbench-calls-") as made:
        problems = generate("llm_arithmetic", Path(made, "p.parquet"), seed=1, trials=MANY // CELLS)
        with running(Settings(problems=(problems.path,), latency_s=LATENCY_S, ttft_s=TTFT_S)) as server:
            costs = asyncio.run(costs_of(kinds, problems, server.url, Path(made)))
    sys.stdout.write(json.dumps({name: asdict(cost) for name, cost in costs.items()}))


if __name__ == "__main__":
    main()
