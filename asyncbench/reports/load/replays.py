"""The traces that a load replayed: lateness of its calls, times of the answers, and their lengths."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.config.loading import TRACE
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE
from asyncbench.reports.load.steps import StepFigures
from asyncbench.tables.data import in_data
from asyncbench.tables.numbers import complete_sum, duration, rounded

# The answers of each step to questions that were made of a trace's calls.
_ANSWERS: Final = """
WITH made AS (
    SELECT DISTINCT problem_set, problem_id, extra->>'trace' AS trace,
        (extra->>'input_tokens')::BIGINT AS tokens, (extra->>'output_tokens')::BIGINT AS reply_tokens
    FROM problems WHERE suite = 'custom' AND task = 'trace' AND extra->>'at_s' IS NOT NULL
)
SELECT trace, model, load, sum(tokens)::BIGINT AS input_asked, sum(reply_tokens)::BIGINT AS output_asked,
    if(count(attempts.input_tokens) = count(*), sum(attempts.input_tokens), NULL)::BIGINT AS input_counted,
    if(count(attempts.output_tokens) = count(*), sum(attempts.output_tokens), NULL)::BIGINT AS output_counted,
    count(*) FILTER (attempts.output_tokens < reply_tokens) AS shorter
FROM attempts JOIN trials USING (trial_id, model, load) JOIN made USING (problem_set, problem_id)
WHERE phase = 'measured' AND attempts.status = 'ok' GROUP BY ALL ORDER BY ALL
"""

_CAVEATS: Final = {  # on verdicts
    INCOMPLETE: " It was stopped before its end.",
    CLIENT_BOUND: " This computer was the bottleneck.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrace:
    """The steps of one speed at which a trace was replayed to a model."""

    model: str
    trace: str  # its file
    speed: float
    seconds: float
    calls: int
    answered: int
    late_p50_s: float | None  # None: no call was sent
    late_p99_s: float | None
    ttft_p50_s: float | None = None  # None: too few answers, or no stream
    ttft_p95_s: float | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    input_asked: int  # tokens of the questions that were answered, as the trace has them
    input_counted: int | None  # the same, as the server counted; None: it did not tell all
    output_asked: int
    output_counted: int | None
    shorter: int  # replies with fewer tokens than the trace has
    verdict: str | None  # of the step; None: it has no SLO

    @property
    @in_data("text")
    def text(self) -> str:
        """The same in sentences."""
        times = [f"sent {_seconds(self.late_p50_s)} late (p99 {_seconds(self.late_p99_s)})"]
        for name, p50_s, p95_s in (
            ("TTFT", self.ttft_p50_s, self.ttft_p95_s),
            ("latency", self.latency_p50_s, self.latency_p95_s),
        ):
            if p50_s is not None:
                times.append(f"{name} {_seconds(p50_s)} (p95 {_seconds(p95_s)})")
        counted = [
            f"{asked:,} {direction} (server counted {'not all' if total is None else f'{total:,}'})"
            for asked, total, direction in (
                (self.input_asked, self.input_counted, "in"),
                (self.output_asked, self.output_counted, "out"),
            )
        ]
        return (
            f"{self.model}: replayed {self.calls:,} calls of {self.trace} at speed {self.speed:g} in "
            f"{duration(self.seconds)}; {self.answered:,} were answered. In the median {', '.join(times)}. "
            f"Tokens: {', '.join(counted)}; {self.shorter:,} of {self.answered:,} replies shorter."
            f"{_CAVEATS.get(self.verdict or '', '')}"
        )


def _seconds(seconds: float | None) -> str:
    """Return a time with its unit, in milliseconds below one second."""
    if seconds is None:
        return "unknown"
    return f"{rounded(seconds, 2)} s" if seconds >= 1 else f"{rounded(1000 * seconds, 1)} ms"


def replayed_traces(views: FolderViews, steps: Iterable[StepFigures]) -> tuple[ReplayedTrace, ...]:
    """Return what came of each trace and speed; empty: none was replayed.

    Args:
        views: with all calls of the load, and the answers to it.
        steps: as `steps_in` returns them.
    """
    trace_steps = [step for step in steps if step.arrivals == TRACE]
    answers = {(row["model"], row["load"]): row for row in views.rows(_ANSWERS)} if trace_steps else {}
    traces = list[ReplayedTrace]()
    for step in trace_steps:
        rows = [answers[step.model, load] for load in step.loads if (step.model, load) in answers]
        if not rows:
            continue
        times = {
            f"{kind}_{name}_s": percentile.value
            for kind in ("ttft", "latency")
            for name in ("p50", "p95")
            if (percentile := step.times[kind].percentile(name)) is not None and isfinite(percentile.value)
        }
        replay = ReplayedTrace(
            model=step.model,
            trace=rows[0]["trace"],
            speed=step.rate,
            seconds=step.seconds,
            calls=step.offered,
            answered=step.answered,
            late_p50_s=step.late_percentile(0.5),
            late_p99_s=step.late_p99_s,
            **times,
            input_asked=sum(row["input_asked"] for row in rows),
            input_counted=complete_sum(row["input_counted"] for row in rows),
            output_asked=sum(row["output_asked"] for row in rows),
            output_counted=complete_sum(row["output_counted"] for row in rows),
            shorter=sum(row["shorter"] for row in rows),
            verdict=step.verdict,
        )
        traces.append(replay)
    return tuple(traces)
