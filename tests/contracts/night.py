"""A results folder drawn from one seed: every suite, outcome and kind of row, with times that are given."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from asyncbench import generate
from asyncbench.problems.making import write_problems
from asyncbench.problems.opening import open_set
from asyncbench.records import Condition, Ended, Event, Model, Problem, Reply, Result, Skipped, Trial, Usage
from asyncbench.store.folder import Store
from asyncbench.suites.requests import TrialIds
from asyncbench.suites.table import SUITES, grade
from tests.store import made

SETS = "sets"  # the folder of problem sets beside the night
LLM_ARITHMETIC = "llm_arithmetic"
# The smallest set of each suite that shows all of its tasks' kinds.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    LLM_ARITHMETIC: {"depths": "2,6", "trials": 1, "variants": "int_add,float_mul"},
    "integer_addition": {"tries": 8, "max_digits": 9},
    "string_reversal": {"tries": 5},
    "string_rehearsal": {"tries": 5, "max_length": 40},
    "nupa": {
        "per_length": 2,
        "tasks": "add,get_digit",
        "representations": "integer,fraction",
        "lengths": "3,21",
    },
}
PLAIN, SHORT = Condition(), Condition(name="short", system="Be brief.", described={"system": "Be brief."})
CONDITIONS = (PLAIN, SHORT)
BARE = ("integer_addition", "string_reversal", "string_rehearsal")  # suites of which an answer stands alone
BY_DEFAULT = (LLM_ARITHMETIC, *BARE)  # those that are also made as they are without parameters
SKILLS = {"steady": 0.9, "quick": 0.7, "thrifty": 0.65}  # by alias: the share of right answers
MODELS = [
    Model(alias="steady", provider="openai", model_id="gpt-5", api="chat", effort="high", stream=True),
    Model(alias="quick", provider="anthropic", model_id="claude-haiku-4-5", api="messages"),
    Model(alias="thrifty", provider="openai", model_id="gpt-5-mini", api="chat", effort="low", mode="batch"),
]
LIMITED = {"requests": 60.0, "tokens": 30_000.0}


def write_night(folder: Path) -> Path:
    """Write the folder, with its problems."""
    problems = list(drawn_problems(folder.with_name(SETS)))
    planned = {
        model.alias: {condition.name: _counts(problems) for condition in CONDITIONS} for model in MODELS
    }
    with Store.open(folder, sweep="night") as store:
        made.keep(store, *events(problems))
        store.write_manifest({"runs": {"night": {"planned": planned}}})
    (folder / "problems").mkdir()
    write_problems(problems, folder / "problems" / "night.parquet")
    return folder


def drawn_problems(folder: Path) -> Iterator[Problem]:
    """Yield a few problems of every suite; sets as their suites make them by default stand beside these."""
    folder.mkdir(exist_ok=True)
    for suite in BY_DEFAULT:
        generate(suite, folder / f"{suite} by default.parquet", seed=7)
    for suite, parameters in PARAMETERS.items():
        path = folder / f"{suite}.parquet"
        generate(suite, path, seed=7, **parameters)
        yield from open_set(path).read()


def events(problems: list[Problem]) -> Iterator[Event]:
    """Yield what became of every trial, then of the minutes of each model."""
    number = 0
    for model in MODELS:
        for condition in CONDITIONS:
            for problem in problems:
                number += 1
                yield from _asked(_trial(model, condition, problem), number)
        for n in range(3):
            waits = {"requests": 40.0 - n, "tokens": 5.0 * n, "work": 2.5}
            minute = replace(made.minute(model.alias), started_at=made.AT + 60 * n, limits=LIMITED)
            yield replace(minute, requests=40 + n, tokens=9_000.5 + n, share=0.9, waited_s=waits)


def _counts(problems: list[Problem]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for problem in problems:
        tasks = counts.setdefault(problem.suite, {})
        tasks[problem.task] = tasks.get(problem.task, 0) + 1
    return counts


def _trial(model: Model, condition: Condition, problem: Problem) -> Trial:
    ids, version = TrialIds(model, condition), SUITES[problem.suite].prompt_version
    return Trial(
        trial_id=ids.make(problem.problem_id, prompt_version=version, repeat=0),
        run="night",
        sweep="night",
        problem_set="night",
        problem=problem,
        model=model,
        condition=condition,
    )


@dataclass(frozen=True, kw_only=True)
class Chance:
    """What befalls one trial."""

    answer: str | None  # None: no reply came
    finish_reason: str
    busy: bool  # whether a first call was refused
    latency_s: float
    tokens: int
    reasoning: int


def _chance(trial: Trial, draw: Random) -> Chance:
    kind = draw.random()
    right = kind < SKILLS[trial.model.alias] - 0.1 * (trial.condition is SHORT)
    expected = trial.problem.expected
    said = expected if trial.problem.suite in BARE else f"The answer is {expected}"
    others = (f"{expected[:-1]}7", "I do not know.", expected[:1], None)
    return Chance(
        answer=said if right else draw.choice(others),
        finish_reason="stop" if kind < 0.96 else "length",
        busy=draw.random() < 0.1,
        latency_s=round(draw.lognormvariate(0.0, 0.5), 6),
        tokens=draw.randint(5, 400),
        reasoning=draw.randint(0, 200) if trial.model.effort else 0,
    )


def _asked(trial: Trial, number: int) -> Iterator[Event]:
    draw = Random(f"{trial.model.alias} {trial.condition.name} {trial.problem.problem_id}")
    if draw.random() < 0.03:
        yield Skipped(trial=trial, stop=made.skipped(0).stop, skipped_at=made.AT)
        return
    chance = _chance(trial, draw)
    began_at, attempts = made.AT + 0.75 * number, 1
    if chance.busy:
        yield _call(trial, None, chance, began_at, attempt=1, cost_usd=0.0)
        began_at, attempts = began_at + 1.0, 2
    reply = None if chance.answer is None else _reply(trial, chance)
    cost_usd = _cost_usd(reply, draw)
    yield _call(trial, reply, chance, began_at, attempt=attempts, cost_usd=cost_usd)
    yield Result(
        trial=trial,
        reply=reply,
        error=None if reply else made.BUSY,
        grades=grade(trial.problem, reply, trial.condition.style),
        attempts=attempts,
        cost_usd=cost_usd,
        price_source="sweep" if reply else None,
        queued_s=0.25,
        ttft_s=chance.latency_s / 4 if trial.model.stream else None,
        latency_s=None if trial.model.mode == "batch" else chance.latency_s,
        finished_at=began_at + chance.latency_s,
    )


def _cost_usd(reply: Reply | None, draw: Random) -> float | None:
    """Return what a call cost; of a few that is not known."""
    if reply is None or reply.usage is None or reply.usage.output_tokens is None:
        return 0.0
    return None if draw.random() < 0.03 else (40 * 1.25 + reply.usage.output_tokens * 10) / 1e6


def _reply(trial: Trial, chance: Chance) -> Reply:
    spent = Usage(
        input_tokens=40,
        cached_input_tokens=8,
        output_tokens=chance.tokens + chance.reasoning,
        reasoning_tokens=chance.reasoning or None,
    )
    return Reply(
        text=chance.answer or "",
        finish_reason=chance.finish_reason,
        model_served=f"{trial.model.model_id}-2026",
        usage=spent,
        request_id="req",
    )


def _call(
    trial: Trial, reply: Reply | None, chance: Chance, at: float, *, attempt: int, cost_usd: float | None
) -> Ended:
    call = made.ended(trial, reply, attempt=attempt, cost_usd=cost_usd)
    if trial.model.mode == "batch":
        return made.in_batch(call, f"batch_{trial.condition.name}")
    ttft_s = chance.latency_s / 4 if trial.model.stream and reply else None
    timed = replace(call.attempt, started_at=at, latency_s=chance.latency_s, ttft_s=ttft_s, queued_s=0.25)
    return replace(call, attempt=timed)
