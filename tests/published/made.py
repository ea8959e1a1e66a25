"""Closed trials of a benchmark, graded as a run grades them."""

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Condition, Model, Problem, Reply, Result, Trial
from asyncbench.suites.table import grade

BROKEN = ProviderError(ErrorKind.SERVER_ERROR, "broken", http_status=500)
PLAIN = Condition()


def closed(
    problem: Problem,
    reply: Reply | None,
    *,
    trial_id: str,
    run: str = "night",
    model: str = "m",
    provider: str = "openai",
    condition: Condition = PLAIN,
    cost_usd: float | None = None,
    price_source: str | None = None,
    latency_s: float | None = None,
) -> Result:
    """Return one closed trial; without a reply it failed."""
    trial = Trial(
        trial_id=trial_id,
        run=run,
        sweep="night",
        problem_set="set",
        problem=problem,
        model=Model(alias=model, provider=provider, model_id=model, api="chat"),
        condition=condition,
    )
    return Result(
        trial=trial,
        reply=reply,
        error=None if reply else BROKEN,
        grades=grade(problem, reply, condition.style),
        attempts=1,
        cost_usd=cost_usd,
        price_source=price_source,
        queued_s=None,
        ttft_s=None,
        latency_s=latency_s if reply else None,
        finished_at=1.0,
    )
