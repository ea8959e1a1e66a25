"""A results folder as a night would leave it: four models, two suites, two conditions, every outcome."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from asyncbench import generate
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.problems.opening import open_set
from asyncbench.records import (
    Attempt,
    Condition,
    Ended,
    Event,
    Model,
    Problem,
    Reply,
    Result,
    Sent,
    Trial,
    Usage,
)
from asyncbench.store.folder import Store
from asyncbench.suites.table import grade
from tests.store.made import AT, keep, minute

BUSY = ProviderError(ErrorKind.OVERLOADED, "busy", http_status=529)
SKILL = {"large": 16.0, "middle": 9.0, "small": 5.0}  # up to about so many digits
SETS: dict[str, dict[str, Any]] = {
    "llm_arithmetic": {"trials": 1},
    "nupa": {"per_length": 1, "tasks": ["add", "sub"], "representations": ["integer", "float"]},
}


def make_night(folder: Path, *, simulated: bool = False, repeats: int = 1) -> Path:
    """Make the folder; of `middle` there is a second condition, for nupa alone, in two repeats."""
    with Store.open(folder, sweep="night") as store:
        problems = list(problems_of(folder))
        draw = random.Random(8)
        asked = ((one, repeat) for one in _asked(problems) for repeat in range(repeats))
        for n, ((name, condition, problem), repeat) in enumerate(asked):
            trial = trial_of(n, problem, model=name, condition=condition, simulated=simulated)
            trial = replace(trial, repeat=n % 2 if condition == "shots" else repeat)
            keep(store, *events(trial, _reply(problem, SKILL[name], draw), at=AT + n / 4))
        for lane in SKILL:
            store.keep(replace(minute(lane), limits={"requests": 600.0, "tokens": 9000.0}))
        store.write_manifest({})
    return folder


def problems_of(folder: Path) -> Iterator[Problem]:
    for suite, parameters in SETS.items():
        path = folder / "problems" / f"{suite}.parquet"
        generate(suite, path, seed=1, **parameters)
        yield from open_set(path).read()


def _asked(problems: Iterable[Problem]) -> Iterator[tuple[str, str, Problem]]:
    for problem in problems:
        for name in SKILL:
            yield name, "plain", problem
        if problem.suite == "nupa":
            yield "middle", "shots", problem


def _reply(problem: Problem, skill: float, draw: random.Random) -> str | None:
    luck = draw.random()
    if luck < 0.01:
        return None
    if luck < 0.03:
        return "I would rather not."
    right = draw.random() < 1 / (1 + 2.0 ** ((problem.length or 0) - skill))
    return problem.expected if right else "7" + problem.expected


def trial_of(
    n: int, problem: Problem, *, model: str, condition: str = "plain", simulated: bool = False
) -> Trial:
    provider = "simulated" if simulated else "openai"
    return Trial(
        trial_id=f"{n * 2_654_435_761 % 2**32:032x}",
        run="night",
        sweep="night",
        problem_set=problem.suite,
        problem=problem,
        model=Model(alias=model, provider=provider, model_id=model, api="chat"),
        condition=Condition(name=condition),
    )


def events(trial: Trial, text: str | None, *, at: float, reasoning: str | None = None) -> Iterator[Event]:
    """Yield what a run keeps of a trial that was asked once; text None: no reply came."""
    tokens = len(text or "")
    usage = Usage(input_tokens=20, output_tokens=tokens, reasoning_tokens=tokens // 2)
    reply = None if text is None else Reply(text=text, reasoning=reasoning, usage=usage, finish_reason="stop")
    name, provider = trial.model.alias, trial.model.provider
    yield Sent(trial_id=trial.trial_id, attempt=1, model=name, provider=provider, started_at=at)
    attempt = Attempt(
        trial_id=trial.trial_id,
        attempt=1,
        model=name,
        provider=provider,
        started_at=at,
        latency_s=1.5,
        status="ok" if reply else "overloaded",
        http_status=200 if reply else 529,
        usage=usage if reply else None,
        cost_usd=0.0001 * tokens,
    )
    yield Ended(attempt=attempt, reply=reply)
    yield result_of(trial, reply, cost_usd=0.0001 * tokens, at=at)


def result_of(
    trial: Trial, reply: Reply | None, *, cost_usd: float, at: float, error: ProviderError = BUSY
) -> Result:
    return Result(
        trial=trial,
        reply=reply,
        error=None if reply else error,
        grades=grade(trial.problem, reply),
        attempts=1,
        cost_usd=cost_usd,
        price_source="sweep",
        queued_s=0.5,
        ttft_s=None,
        latency_s=1.5 if reply else None,
        finished_at=at + 2,
    )
