"""The assumptions and the warnings of a plan."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from asyncbench.config.run_entries import Batching
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.draws import Drawing
from asyncbench.planning.guesses import UNSEEN_LATENCY_S, UNSEEN_TOKENS_PER_S, assumption
from asyncbench.planning.modes import by_server, why_in_real_time
from asyncbench.planning.records import ModelPlan
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.records import AUTO, REALTIME, Condition, Model
from asyncbench.tables.numbers import days, duration


def assumptions_of(
    rest: Remainder, drawings: Mapping[str, Drawing | None], plans: Sequence[ModelPlan]
) -> Iterator[str]:
    """Yield the assumptions of a plan, a sentence each."""
    sweep, guessed = rest.sweep, list[tuple[Model, Condition]]()
    for model in rest.models:
        ways = rest.ways_left(model)
        if (drawing := drawings[model.alias]) is not None and ways:
            yield (
                f"{model.alias}: forecast from its {drawing.forecast.replies:,} replies; the result lies in "
                "nine of ten such ranges"
            )
            continue
        if known := [rest.seen[way].used.trials for way in ways if way in rest.seen]:
            yield f"{model.alias}: mean tokens and latency of its {sum(known):,} finished trials"
        guessed += [(model, rest.conditions_of(model)[way.condition]) for way in ways if way not in rest.seen]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters per token"
        yield from dict.fromkeys(assumption(model, condition) for model, condition in guessed)
        yield f"latency: {UNSEEN_LATENCY_S:g} s, then {UNSEEN_TOKENS_PER_S} output tokens per second"
    yield "every trial succeeds at its first attempt, and no input comes from a cache"
    yield from servers_started(rest.models)
    if sweep.stop_when is not None:
        yield "`stop_when` stops no more cells, so a run may take less; trials that it skipped are left out"
    yield "worst case: every reply uses all of max_tokens, and every byte sent is a token"
    if any(plan.batch_usd is not None and plan.batches is None for plan in plans):
        yield "as a batch: the provider's batch price for the same calls; `mode: batch` asks them so"
    if batched := [plan.batches for plan in plans if plan.batches is not None]:
        yield "batches: a provider promises them within 24 hours; most end within one, some within minutes"
        if any(one.enqueued_tokens is None for one in batched):
            yield (
                "all prompts fit into the provider's queue at once; else each further filling takes up to 24 "
                "hours more (set `enqueued_tokens` under `batch`, as the limits page of your account says)"
            )
        yield "a batch that was sent is paid: a budget, a deadline and `stop_when` stop further ones only"
    yield from _switches_of(rest, plans)
    if any(model.alias in sweep.max_tokens_demanded for model in rest.models):
        yield "*: the model's longest reply: Anthropic requires max_tokens, and the sweep sets none"


def servers_started(models: Iterable[Model]) -> Iterator[str]:
    """Yield which servers a run starts, a sentence each."""
    for serve, aliases in by_server(models).items():
        yield (
            f"{', '.join(aliases)}: a run starts `{shlex.join(serve.command)}`, waits up to "
            f"{days(serve.within)} until {serve.ready} answers, and stops it at its end"
        )


def _switches_of(rest: Remainder, plans: Sequence[ModelPlan]) -> Iterator[str]:
    """Yield when models leave batches for real time, and why some are not asked in them at all."""
    for model in rest.sweep.models:
        if model.mode == AUTO and (why := why_in_real_time(rest.sweep, model)):
            yield f"{model.alias}: `mode: auto` asks it in real time: {why}"
    for model in rest.models:
        late = model.mode == REALTIME and rest.switches_s(model) is not None
        if late and why_in_real_time(rest.sweep, model) is None:
            yield f"{model.alias}: the deadline leaves no time for batches: all is asked in real time"
    for plan in plans:
        if plan.batches is None or not (wait_s := plan.batches.switch_in_s):
            continue
        at = datetime.fromtimestamp(rest.at_s + wait_s).astimezone()
        yield (
            f"{plan.model}: batches have time until {at:%a %H:%M}, {duration(wait_s)} from now. What is not "
            "answered then is asked in real time, if the budget can pay that. The worst case counts that"
        )


def warnings_of(plans: Sequence[ModelPlan], batching: Batching) -> Iterator[str]:
    """Yield what is unknown or too small in a plan, and what to do about it."""
    yield from _too_small(plans, batching)
    unpriced = [plan.model for plan in plans if plan.price_source is None]
    at_once = [plan.model for plan in plans if plan.batches and plan.batches.realtime_usd is not None]
    if halves := [model for model in unpriced if model in at_once]:
        unpriced = [model for model in unpriced if model not in halves]
        yield (
            f"no batch price is known for {', '.join(halves)}: their cost is unknown. Set "
            "`price: {input: …, output: …, batch: 0.5}` (USD per million tokens, and the part of it that a "
            "batch costs) in the sweep."
        )
    if unpriced:
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost is unknown. "
            "Set `price: {input: …, output: …}` (USD per million tokens) in the sweep."
        )
    unbounded = [plan for plan in plans if plan.cost_usd_most is None]
    unlimited = [plan.model for plan in unbounded if plan.output_tokens_most is None]
    if unlimited:
        yield (
            f"no max_tokens is set for {', '.join(unlimited)}: their replies have no limit, so the worst "
            "case is unknown and no budget can hold them. Set it in the sweep."
        )
    unheld = [
        plan.model
        for plan in unbounded
        if plan.price_source is not None and plan.output_tokens_most is not None
    ]
    if unheld:
        yield (
            f"the worst case of {', '.join(unheld)} is unknown: part of the cost is billed separately from "
            "tokens, or has no known price. No budget can hold it."
        )


def _too_small(plans: Sequence[ModelPlan], batching: Batching) -> Iterator[str]:
    """Yield the limits of a batch that one request is larger than."""
    for plan in plans:
        if plan.batches is None or not plan.left:
            continue
        sizes = {
            "max_bytes": (plan.batches.bytes, batching.max_bytes),
            "enqueued_tokens": (plan.batches.prompt_tokens, batching.enqueued_tokens),
        }
        for name, (all_of_them, most) in sizes.items():
            if most is not None and (one := all_of_them // plan.left) > most:
                yield (
                    f"{plan.model}: one request has about {one:,} {name.rpartition('_')[2]}, more than "
                    f"`{name}: {most}` under `batch`. Each is a batch by itself. Raise `{name}`."
                )
