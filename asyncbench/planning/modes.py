"""Choice between real time and batches for each model, and how long either takes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from asyncbench.config.run_entries import Batching, seconds_left
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.context import FIRST_TOKENS
from asyncbench.lanes.batches.switching import LEAST_S, switch_s
from asyncbench.planning.budget_bounds import priced
from asyncbench.planning.guesses import LanePace, pace
from asyncbench.planning.records import BatchPlan, Needs
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import batch_complaint
from asyncbench.records import AUTO, BATCH, REALTIME, Model


def resolve_modes(sweep: Sweep, models: Sequence[Model]) -> tuple[Model, ...]:
    """Return models with `auto` replaced by the mode in which they are asked."""
    return tuple(
        model
        if model.mode != AUTO
        else replace(model, mode=REALTIME if why_in_real_time(sweep, model) else BATCH)
        for model in models
    )


def why_in_real_time(sweep: Sweep, model: Model) -> str | None:
    """Return why a model whose mode is `auto` is not asked in batches, or None if it is."""
    batched = replace(model, mode=BATCH)
    if complaint := batch_complaint(batched, known_endpoints()[model.provider]):
        return complaint.partition(". ")[0]  # without the way out
    if sweep.budgeted(model) and priced(sweep, model) and not priced(sweep, batched):
        return "no price of its batches is known, and a budget needs one"
    return None


def batch_price_warning(models: Iterable[Model]) -> str | None:
    """Return a warning that batches count at the full price, or None if the sweep prices them all."""
    full = [
        model.alias
        for model in models
        if model.mode == BATCH and model.price and model.price.input and model.price.batch is None
    ]
    if not full:
        return None
    return (
        f"the batches of {', '.join(full)} count at the full price. If they cost less, say so: "
        "`price: {input: …, output: …, batch: 0.5}` in the sweep, for half of it."
    )


def has_mode_auto(sweep: Sweep, alias: str) -> bool:
    """Return whether the sweep leaves the mode of a model open, so that a deadline may end its batches."""
    return any(model.mode == AUTO for model in sweep.models if model.alias == alias)


def seconds_to_deadline(sweep: Sweep) -> float | None:
    """Return the seconds until the deadline of a run that begins now (0 once it has passed), or None."""
    if sweep.deadline is None:
        return None
    try:
        return seconds_left(sweep.deadline, datetime.now().astimezone())
    except ConfigError:
        return 0.0


# ── forecasts of batches: their number, bytes, tokens in the provider's queue, and hours


SOONEST_S: Final = 120.0  # the shortest time that a batch was seen to take
LATEST_S: Final = 86_400.0  # the window of a batch; requests that have not run by then are asked again
VALIDATED_S: Final = 60.0  # how long a provider takes to accept a batch; then one twice as large may be sent
LINE_BYTES: Final = 250  # of a request in a batch's file, without its texts
BATCHES: Final = "batches"  # as `LanePace.bound_by`: batches, not a rate limit, decide how long a model takes


def batch_plan_of(
    model: Model,
    batching: Batching,
    needs: Needs,
    *,
    longest_s: float,
    within_s: float | None = None,
) -> BatchPlan | None:
    """Return the batches of a model, or None if it is asked in real time.

    Args:
        model: the model.
        batching: the sweep's settings for batches.
        needs: what all trials that are left need together.
        longest_s: the time of the longest call in real time.
        within_s: seconds to the deadline, if batches are given up in time for it; None: they are not.
    """
    if model.mode != BATCH:
        return None

    # The number of batches: each keeps the limits of the sweep and of the provider.
    endpoint = known_endpoints()[model.provider]
    most_requests, most_bytes = endpoint.most_of_a_batch
    size = needs.characters + LINE_BYTES * needs.trials
    parts = math.ceil(needs.trials / min(batching.max_requests, most_requests))
    parts = max(parts, math.ceil(size / min(batching.max_bytes, most_bytes)))

    # Where the limit of the provider's queue is unknown, the run finds it: each batch may be twice the last.
    limit, prompts = batching.enqueued_tokens, round(needs.input_tokens)
    learning_s = 0.0
    if limit is None and endpoint.via != "anthropic" and prompts > FIRST_TOKENS:
        learning_s = math.ceil(math.log2(prompts / FIRST_TOKENS)) * VALIDATED_S

    rounds = _rounds(batching, needs)
    realtime_s = pace(model.limits, needs, longest_s=longest_s).seconds
    return BatchPlan(
        parts=parts,
        bytes=size,
        prompt_tokens=prompts,
        enqueued_tokens=limit,
        enqueued_share=None if limit is None else prompts / limit,
        soonest_s=rounds * SOONEST_S + learning_s,
        latest_s=rounds * LATEST_S,
        realtime_usd=needs.realtime_usd,
        realtime_s=realtime_s,
        switch_in_s=_switch_in_s(realtime_s, within_s),
    )


def pace_of(
    model: Model, batching: Batching, needs: Needs, *, longest_s: float, within_s: float | None = None
) -> LanePace:
    """Return how long a model takes. Batches are counted to the end of the last one's window.

    The arguments are those of `batch_plan_of`.
    """
    realtime = pace(model.limits, needs, longest_s=longest_s)
    if model.mode != BATCH or not needs.trials or _switch_in_s(realtime.seconds, within_s) == 0:
        return realtime
    return LanePace(min(_rounds(batching, needs) * LATEST_S, within_s or math.inf), BATCHES)


def chain_of(trials: int, *, usd: float, usd_most: float, budget_usd: float) -> int:
    """Return how many batches must follow one another, because the budget reserves the highest cost of each.

    A batch gives back what it did not cost, so the next one can be reserved from that.

    Args:
        trials: the number of trials that are left.
        usd: the likely cost of one.
        usd_most: the highest possible cost of one, which is reserved.
        budget_usd: what is left of the budget.
    """
    links = 0
    while trials and usd_most > 0 and (batch := min(trials, int(budget_usd / usd_most + 1e-9))):
        trials -= batch
        budget_usd -= batch * usd
        links += 1
    return max(1, links)


def chain_batches(plan: BatchPlan, chain: int) -> BatchPlan:
    """Return a plan whose batches follow one another in a chain of so many."""
    times = max(1.0, chain * LATEST_S / plan.latest_s) if plan.latest_s else 1.0
    return replace(
        plan,
        chain=chain,
        parts=max(plan.parts, chain),
        soonest_s=plan.soonest_s * times,
        latest_s=plan.latest_s * times,
    )


def _rounds(batching: Batching, needs: Needs) -> int:
    """Return how often the provider's queue is filled, as prompts beyond its limit wait for others to end."""
    if not needs.trials:
        return 0
    return math.ceil(max(1.0, needs.input_tokens / (batching.enqueued_tokens or math.inf)))


def _switch_in_s(realtime_s: float, within_s: float | None) -> float | None:
    """Return the seconds until batches are given up for real time, or None if there is no deadline for them.

    0 means that no batch is begun, because the deadline is too near.
    """
    if within_s is None:
        return None
    return 0.0 if within_s < LEAST_S else max(0.0, within_s - switch_s(realtime_s))
