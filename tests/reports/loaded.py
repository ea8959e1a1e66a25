"""Results folders that hold a load: steps whose calls took given times."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from asyncbench.records import Event, Outcome, StepResult, Usage
from tests.store import made

SLO = {"latency": 2.0, "share": 0.9}
LATE_S = 0.001


def step(
    rate: float,
    latencies_s: Sequence[float | None],
    *,
    model: str = "small",
    round_: int = 1,
    right: float = 1.0,
    first: int = 0,
    seconds: float = 10.0,
    **more: object,
) -> Iterator[Event]:
    """The events of a step: a call for each latency (None: a 429), and its row.

    `right`: the share of right answers, the first ones.
    """
    name = f"poisson {rate:g}/s #{round_}"
    for n, latency_s in enumerate(latencies_s):
        asked = replace(made.trial(n, alias=model), load=name, trial_id=f"{first + n:032x}"[::-1])
        answer = None if latency_s is None else made.reply(n)
        call = made.ended(asked, answer, cost_usd=0.0 if answer is None else 0.001)
        attempt = replace(
            call.attempt,
            status="ok" if answer else "rate_limited",
            http_status=200 if answer else 429,
            latency_s=latency_s or 0.01,
            ttft_s=latency_s and latency_s / 2,
            ttfo_s=latency_s and latency_s / 2,
            usage=Usage(input_tokens=50, output_tokens=11) if answer else None,
            load=name,
            due_at=made.AT + n * seconds / len(latencies_s),
            late_s=LATE_S,
            phase="measured",
        )
        yield replace(call, attempt=attempt)
        closed = made.result(asked, answer)
        if answer is not None and n >= right * len(latencies_s):
            wrong = made.grade("1", Outcome.WRONG)
            closed = replace(closed, grades=(wrong,))
        yield closed
    yield _row(name, rate, round_, model, latencies_s, seconds, more)


def _row(
    name: str,
    rate: float,
    round_: int,
    model: str,
    latencies_s: Sequence[float | None],
    seconds: float,
    more: dict[str, object],
) -> StepResult:
    answered = [one for one in latencies_s if one is not None]
    refused = len(latencies_s) - len(answered)
    counts = {"offered": len(latencies_s), "sent": len(latencies_s), "answered": len(answered)}
    counts |= {"dropped": 0, "refused": refused, "failed": 0, "unfinished": 0}
    told = {"rate": rate, "round": round_, "began_at": made.AT, "warmup_s": 0.0, "seconds": seconds}
    met = sum(one + LATE_S <= SLO["latency"] for one in answered)
    promised = {"slo": SLO, "met": met, "verdict": "met", "saturated": False, "in_flight_mean": 1.5}
    return replace(made.step(name, alias=model), **counts | told | promised | more)  # type: ignore[arg-type]  # as the test gives them


def folder_of(path: Path, *steps: Iterable[Event], **manifest: object) -> Path:
    return made.folder_of(path, *(event for one in steps for event in one), **manifest)
