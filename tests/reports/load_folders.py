"""Results folders of loads in which every call is given: when it was due, how long it took, whether right."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from asyncbench.lanes.load.steps import MET, MISSED
from asyncbench.problems.making import write_problems
from asyncbench.records import (
    Attempt,
    Ended,
    Event,
    Model,
    Outcome,
    Problem,
    Reply,
    Result,
    StepResult,
    Trial,
    Usage,
)
from asyncbench.store.folder import Store
from tests.reports.answered import problem
from tests.store import made

SLO = {"latency": 2.0, "share": 0.95}
PROBLEMS = 50
STEP_S = 100.0  # from the start of a step to that of the next


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """One model under load; what is a function takes the rate and the number of the call."""

    model: str
    rates: tuple[float, ...] = (1.0, 2.0, 4.0)
    calls: int = 80  # of each step
    latency_s: Callable[[float, int], float] = lambda _, n: 0.5 + n / 100
    ttft_s: float | None = 0.25
    right: Callable[[float, int], bool] = lambda _, n: n % 4 > 0
    refused: Callable[[float, int], bool] = lambda *_: False
    retry_after_s: float | None = None
    provider: str = "openai"
    model_id: str = "m"
    fingerprint: str | None = None
    cost_usd: float = 0.001
    first: int = 0  # number of the first problem
    begins_s: float = 0.0
    arrivals: str = "poisson"
    verdict: str | None = ""  # empty: by the calls
    round: int = 1

    @property
    def steps(self) -> Iterator[tuple[float, str, float]]:
        for n, rate in enumerate(self.rates):
            unit = "" if self.arrivals == "closed" else "/s"
            yield rate, f"{self.arrivals} {rate:g}{unit} #{self.round}", made.AT + self.begins_s + n * STEP_S


def load_folder(folder: Path, models: Iterable[Loaded], *, sweep: str = "load") -> Path:
    """Write a results folder of loads, its problems with it."""
    number, problems = 0, {}
    with Store.open(folder, sweep=sweep) as store:
        for one in models:
            for rate, name, at in one.steps:
                for n in range(one.calls):
                    asked = problem(one.first + n % PROBLEMS)
                    problems[asked.problem_id] = asked
                    trial = _trial(one, name, n, number, asked)
                    number += 1
                    for event in _events(one, trial, rate, n, at):
                        store.keep(event)
                store.keep(step_of(one, rate, name, at))
        store.write_manifest({})
    (folder / "problems").mkdir(exist_ok=True)
    write_problems(problems.values(), folder / "problems" / "s.parquet")
    return folder


def _trial(one: Loaded, name: str, n: int, number: int, asked: Problem) -> Trial:
    model = Model(alias=one.model, provider=one.provider, model_id=one.model_id, api="chat")
    plain = made.trial(0)
    return replace(
        plain,
        trial_id=made.trial_id(number),
        run="load",
        problem=asked,
        model=model,
        repeat=n // PROBLEMS,
        load=name,
    )


def _events(one: Loaded, trial: Trial, rate: float, n: int, at: float) -> Iterator[Event]:
    due_at = at + 2.0 + n / rate
    refused = one.refused(rate, n)
    latency_s = 0.01 if refused else one.latency_s(rate, n)
    usage = Usage(input_tokens=20, output_tokens=11)
    right = one.right(rate, n)
    answer = trial.problem.expected if right else trial.problem.expected + "1"
    reply = None
    if not refused:
        reply = Reply(
            text=answer,
            usage=usage,
            finish_reason="stop",
            model_served=f"{one.model_id}-served",
            fingerprint=one.fingerprint,
        )
    attempt = Attempt(
        trial_id=trial.trial_id,
        attempt=1,
        model=one.model,
        provider=one.provider,
        started_at=due_at,
        ttft_s=None if refused else one.ttft_s,
        latency_s=latency_s,
        status="rate_limited" if refused else "ok",
        http_status=429 if refused else 200,
        retry_after_s=one.retry_after_s if refused else None,
        usage=None if refused else usage,
        cost_usd=0.0 if refused else one.cost_usd,
        load=trial.load,
        due_at=due_at,
        late_s=0.001,
        phase="measured",
        connect_s=0.02 if n == 0 else None,
    )
    yield Ended(attempt=attempt, reply=reply)
    outcome = Outcome.FAILED if refused else Outcome.CORRECT if right else Outcome.WRONG
    yield Result(
        trial=trial,
        reply=reply,
        error=made.BUSY if refused else None,
        grades=(made.grade(None if refused else answer, outcome),),
        attempts=1,
        cost_usd=attempt.cost_usd,
        price_source=None if refused else "sweep",
        queued_s=None,
        ttft_s=attempt.ttft_s,
        latency_s=None if refused else latency_s,
        finished_at=due_at + latency_s,
    )


def step_of(one: Loaded, rate: float, name: str, at: float) -> StepResult:
    gone = sum(one.refused(rate, n) for n in range(one.calls))
    met = sum(
        not one.refused(rate, n) and one.latency_s(rate, n) + 0.001 <= SLO["latency"]
        for n in range(one.calls)
    )
    verdict = one.verdict if one.verdict != "" else MET if met >= SLO["share"] * one.calls else MISSED
    return replace(
        made.step(name, alias=one.model),
        arrivals=one.arrivals,
        rate=rate,
        round=one.round,
        began_at=at,
        warmup_s=2.0,
        seconds=one.calls / rate,
        offered=one.calls,
        dropped=0,
        sent=one.calls,
        answered=one.calls - gone,
        refused=gone,
        failed=0,
        unfinished=0,
        slo=SLO,
        met=met,
        verdict=verdict,
    )
