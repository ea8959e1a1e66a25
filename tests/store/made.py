"""Events as a run makes them, small and told apart by a number."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import (
    BATCH,
    Attempt,
    Condition,
    Ended,
    Event,
    Grade,
    LaneMinute,
    Model,
    Outcome,
    Problem,
    Reply,
    Result,
    Sent,
    Skipped,
    StepResult,
    Stop,
    Trial,
    Usage,
)
from asyncbench.store.folder import Store

AT = 1_790_000_000.25  # seconds since 1970: exact in microseconds
USAGE = Usage(input_tokens=50, cached_input_tokens=8, cache_write_tokens=0, output_tokens=7)
RAW_USAGE = {"prompt_tokens": 50, "completion_tokens": 7}
BUSY = ProviderError(ErrorKind.OVERLOADED, "busy", http_status=529, request_id="req-529")


def model(alias: str = "small") -> Model:
    return Model(alias=alias, provider="openai", model_id="gpt-5-mini", api="chat")


def trial(n: int, *, alias: str = "small", suite: str = "nupa") -> Trial:
    return Trial(
        trial_id=trial_id(n),
        run="night",
        sweep="night",
        problem_set="data/nupa.parquet",
        problem=Problem(
            problem_id=f"{n:032x}",
            suite=suite,
            task="add",
            representation="integer",
            length=3,
            operands=("100", str(n)),
            question=f"100 + {n}",
            expected=str(100 + n),
            answer_type="integer",
        ),
        model=model(alias),
        condition=Condition(name="zero-shot"),
    )


def minute(lane: str = "small") -> LaneMinute:
    return LaneMinute(
        lane=lane,
        started_at=AT,
        seconds=60.0,
        requests=100,
        tokens=5_700.4,
        input_tokens=5_000.0,
        output_tokens=700.4,
        limits={"requests": 600.0},
        share=0.995,
        most_in_flight=12,
        refused=1,
        waited_s={"requests": 50.0, "work": 2.5},
    )


def step(load: str = "poisson 8/s #2", *, alias: str = "small") -> StepResult:
    return StepResult(
        load=load,
        model=alias,
        arrivals="poisson",
        rate=8.0,
        round=2,
        began_at=AT,
        warmup_s=5.0,
        seconds=60.0,
        offered=480,
        dropped=1,
        sent=479,
        answered=470,
        refused=5,
        failed=3,
        unfinished=1,
        late_p50_s=0.0005,
        late_p99_s=0.002,
        loop_lag_p99_s=0.001,
        in_flight_mean=4.5,
        in_flight_max=11,
        in_flight_slope=0.01,
        ks_p=0.5,
        dispersion_p=0.25,
        client_bound=False,
        saturated=False,
        met=460,
        slo={"ttft": 0.5, "share": 0.95},
        verdict="unresolved",
    )


def trial_id(n: int) -> str:
    return f"{n:032x}"


def reply(n: int) -> Reply:
    return Reply(
        text=f"The answer is {100 + n}.",
        finish_reason="stop",
        model_served="gpt-5-mini-2026-08-07",
        usage=USAGE,
        raw_usage=RAW_USAGE,
        request_id=f"req-{n}",
    )


def sent(asked: Trial, *, attempt: int = 1) -> Sent:
    return Sent(
        trial_id=asked.trial_id,
        attempt=attempt,
        model=asked.model.alias,
        provider=asked.model.provider,
        started_at=AT,
    )


def ended(asked: Trial, answer: Reply | None, *, attempt: int = 1, cost_usd: float | None = 0.25) -> Ended:
    return Ended(
        attempt=Attempt(
            trial_id=asked.trial_id,
            attempt=attempt,
            model=asked.model.alias,
            provider=asked.model.provider,
            started_at=AT,
            queued_s=0.5,
            latency_s=1.5,
            status="overloaded" if answer is None else "ok",
            http_status=529 if answer is None else 200,
            usage=None if answer is None else answer.usage,
            cost_usd=cost_usd,
            in_flight=3,
            loop_lag_s=0.001,
            raw_usage=None if answer is None else answer.raw_usage,
        ),
        reply=answer,
    )


def in_batch(call: Ended, batch_id: str) -> Ended:
    """Return a call as a request of a batch, which took an hour: no time of its own is known."""
    attempt = replace(
        call.attempt,
        queued_s=None,
        ttft_s=None,
        latency_s=None,
        in_flight=None,
        loop_lag_s=None,
        mode=BATCH,
        batch_id=batch_id,
        batch_ended_at=AT + 3600,
    )
    return replace(call, attempt=attempt)


def grade(answer: str | None, outcome: Outcome, *, grader: str = "number", headline: bool = True) -> Grade:
    return Grade(
        grader=grader,
        grader_version=1,
        headline=headline,
        answer=answer,
        classification=None,
        outcome=outcome,
        exact_match=outcome is Outcome.CORRECT,
    )


def result(asked: Trial, answer: Reply | None, *, attempts: int = 1, cost_usd: float | None = 0.25) -> Result:
    outcome = Outcome.FAILED if answer is None else Outcome.CORRECT
    read = None if answer is None else asked.problem.expected
    return Result(
        trial=asked,
        reply=answer,
        error=BUSY if answer is None else None,
        grades=(
            grade(read, outcome),
            grade(read, outcome, grader="lenient", headline=False),
        ),
        attempts=attempts,
        cost_usd=cost_usd,
        price_source=None if answer is None else "genai-prices 0.2.3",
        queued_s=0.5,
        ttft_s=None,
        latency_s=1.5,
        finished_at=AT + 2,
    )


def with_calls(closed: Result) -> Iterator[Event]:
    """Yield the calls that a result counts, then the result: the last call cost what it says."""
    for attempt in range(1, closed.attempts):
        yield ended(closed.trial, None, attempt=attempt, cost_usd=0.0)
    if closed.attempts:
        yield ended(closed.trial, closed.reply, attempt=closed.attempts, cost_usd=closed.cost_usd)
    yield closed


def answered(n: int, *, alias: str = "small", suite: str = "nupa", attempt: int = 1) -> Iterator[Event]:
    """Yield the events of a trial that got its right answer at once."""
    asked = trial(n, alias=alias, suite=suite)
    yield sent(asked, attempt=attempt)
    yield ended(asked, reply(n), attempt=attempt)
    yield result(asked, reply(n), attempts=attempt)


def refused(n: int, *, alias: str = "small") -> Iterator[Event]:
    """Yield the events of a trial that failed at once."""
    asked = trial(n, alias=alias)
    yield sent(asked)
    yield ended(asked, None, cost_usd=0.0)
    yield result(asked, None, cost_usd=0.0)


def skipped(n: int, *, alias: str = "small", asked: int = 84) -> Skipped:
    """Return a trial that is not asked, for its cell is known."""
    stop = Stop(rule="saturated 0.05", asked=asked, correct=asked, low=0.95, high=1.0)
    return Skipped(trial=trial(n, alias=alias), stop=stop, skipped_at=AT)


def without_list(folder: Path) -> None:
    """Make the manifest of a folder what an earlier version wrote: without the list of its parts."""
    said = orjson.loads((folder / "manifest.json").read_bytes())
    del said["holds"], said["digest"]
    (folder / "manifest.json").write_bytes(orjson.dumps(said))


def keep(store: Store, *events: Event) -> None:
    for event in events:
        store.keep(event)


def add(folder: Path, *events: Event, again: Collection[Outcome] = ()) -> None:
    """Open a folder as a run does, keep these events, and close it."""
    with Store.open(folder, sweep="night", again=again) as store:
        keep(store, *events)


def seal(store: Store) -> None:
    """Make parts of all that its journal holds."""
    store.journal.rotate()
    store.journal.seal()


def compacted(folder: Path) -> None:
    with Store.reopen(folder) as store:
        store.compact(all_tables=True)


def folder_of(path: Path, *events: Event, **manifest: object) -> Path:
    """Write a results folder with these events, and with what its manifest says of runs."""
    with Store.open(path, sweep="night") as store:
        keep(store, *events)
        store.write_manifest(manifest)
    return path


def results_folder(path: Path, *results: Result, **manifest: object) -> Path:
    """Write a results folder with these results, each of a trial of its own, and their calls."""
    with Store.open(path, sweep="night") as store:
        for n, result in enumerate(results, len(store.finished)):
            keep(store, *with_calls(replace(result, trial=replace(result.trial, trial_id=trial_id(n)))))
        store.write_manifest(manifest)
    return path
