"""Modes of models, and how long real time and batches take."""

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
    """Return models as they are asked: in real time, or in batches."""
    return tuple(
        model
        if model.mode != AUTO
        else replace(model, mode=REALTIME if why_in_real_time(sweep, model) else BATCH)
        for model in models
    )


def why_in_real_time(sweep: Sweep, model: Model) -> str | None:
    """Return why a model whose mode is `auto` is not asked in batches, or None if it is."""
    batched = replace(model, mode=BATCH)
    if fault := batch_complaint(batched, known_endpoints()[model.provider]):
        return fault.partition(". ")[0]
    if sweep.budgeted(model) and priced(sweep, model) and not priced(sweep, batched):
        return "no price of its batches is known, and a budget needs one"
    return None


def batch_price_warning(models: Iterable[Model]) -> str | None:
    """Return a warning of batches that count at the full price, since the sweep names no other, or None."""
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
    """Return whether a model of a sweep is asked in batches only as far as there is time."""
    return any(model.mode == AUTO for model in sweep.models if model.alias == alias)


def seconds_to_deadline(sweep: Sweep) -> float | None:
    """Return the seconds until the deadline of a run that begins now (0 once it has passed), or None."""
    if sweep.deadline is None:
        return None
    try:
        return seconds_left(sweep.deadline, datetime.now().astimezone())
    except ConfigError:
        return 0.0


# ── what is left as batches: parts, bytes, tokens in the provider's queue, and hours


SOONEST_S: Final = 120.0  # no batch that was seen ended sooner
LATEST_S: Final = 86_400.0  # the window of a batch; what it has not run by then is asked again
VALIDATED_S: Final = 60.0  # until a batch is accepted, after which twice as much may be sent
LINE_BYTES: Final = 250  # of a request beside its texts
BATCHES: Final = "batches"  # what a model waits for that is asked in them


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
        model: whom it is about.
        batching: how batches are made.
        needs: what all its trials take that are left.
        longest_s: one of them would take so long there.
        within_s: seconds to the deadline for which batches are left; None: they are not.
    """
    if model.mode != BATCH:
        return None

    # how many files: the limits of one are the sweep's and the provider's
    endpoint = known_endpoints()[model.provider]
    most_requests, most_bytes = endpoint.most_of_a_batch
    size = needs.characters + LINE_BYTES * needs.trials
    parts = math.ceil(needs.trials / min(batching.max_requests, most_requests))
    parts = max(parts, math.ceil(size / min(batching.max_bytes, most_bytes)))

    # where the size of the provider's queue is not known, it is learnt: each batch may be twice the last
    limit, prompts = batching.enqueued_tokens, round(needs.input_tokens)
    learning_s = 0.0
    if limit is None and endpoint.via != "anthropic" and prompts > FIRST_TOKENS:
        learning_s = math.ceil(math.log2(prompts / FIRST_TOKENS)) * VALIDATED_S

    rounds, realtime_s = _rounds(batching, needs), pace(model.limits, needs, longest_s=longest_s).seconds
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
    """Return how long a model takes: in batches, until the last of them must have ended.

    `within_s`: seconds to the deadline for which batches are left, if they are.
    """
    at_once = pace(model.limits, needs, longest_s=longest_s)
    if model.mode != BATCH or not needs.trials or _switch_in_s(at_once.seconds, within_s) == 0:
        return at_once
    return LanePace(min(_rounds(batching, needs) * LATEST_S, within_s or math.inf), BATCHES)


def chain_of(trials: int, *, usd: float, usd_most: float, budget_usd: float) -> int:
    """Return how many batches come one after the other where each is held with all that it may cost.

    Args:
        trials: that are left.
        usd: what one of them costs.
        usd_most: what one may cost, which is set aside.
        budget_usd: what is left to be spent.
    """
    links = 0
    while trials and usd_most > 0 and (batch := min(trials, int(budget_usd / usd_most + 1e-9))):
        trials -= batch
        budget_usd -= batch * usd
        links += 1
    return max(1, links)


def chain_batches(plan: BatchPlan, chain: int) -> BatchPlan:
    """Return a plan of which a budget makes a chain."""
    times = max(1.0, chain * LATEST_S / plan.latest_s) if plan.latest_s else 1.0
    return replace(
        plan,
        chain=chain,
        parts=max(plan.parts, chain),
        soonest_s=plan.soonest_s * times,
        latest_s=plan.latest_s * times,
    )


def _rounds(batching: Batching, needs: Needs) -> int:
    """Return how often the provider's queue is filled: prompts beyond its limit wait for others to end."""
    if not needs.trials:
        return 0
    return math.ceil(max(1.0, needs.input_tokens / (batching.enqueued_tokens or math.inf)))


def _switch_in_s(realtime_s: float, within_s: float | None) -> float | None:
    """Return the seconds until batches are left (0: none is begun), or None if they have their time."""
    if within_s is None:
        return None
    return 0.0 if within_s < LEAST_S else max(0.0, within_s - switch_s(realtime_s))
