"""The assumptions below a plan, and its warnings: a sentence each."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from asyncbench.config.run_entries import Batching
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.planning.draws import Drawing
from asyncbench.planning.guesses import UNSEEN_LATENCY_S, UNSEEN_TOKENS_PER_S, assumption, cached_prefix
from asyncbench.planning.modes import why_in_real_time
from asyncbench.planning.records import ModelPlan
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.records import AUTO, REALTIME, Condition, Model
from asyncbench.tables.numbers import duration


def assumptions_of(
    rest: Remainder, drawings: Mapping[str, Drawing | None], plans: Sequence[ModelPlan]
) -> Iterator[str]:
    """Yield the assumptions of a plan, a sentence each."""
    # how each model's tokens, cost and time were found
    guessed: list[tuple[Model, Condition]] = []
    for model in rest.models:
        groups = rest.groups_left(model)
        if (drawing := drawings[model.alias]) is not None and groups:
            yield (
                f"{model.alias}: forecast from its {drawing.forecast.replies:,} replies; the result lies in "
                "nine of ten such ranges"
            )
            continue
        if finished := [rest.seen[group].used.trials for group in groups if group in rest.seen]:
            yield f"{model.alias}: mean tokens and latency of its {sum(finished):,} finished trials"
        conditions = rest.conditions_of(model)
        guessed += [(model, conditions[group.condition]) for group in groups if group not in rest.seen]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters per token"
        yield from dict.fromkeys(assumption(model, condition) for model, condition in guessed)
        yield f"latency: {UNSEEN_LATENCY_S:g} s, then {UNSEEN_TOKENS_PER_S} output tokens per second"

    # what every plan takes for granted
    yield "every trial succeeds at its first attempt"
    yield from _cache_assumptions(rest)
    aliases_by_limit: dict[str, list[str]] = {}
    for model in rest.models:
        if model.limits.group is not None:
            aliases_by_limit.setdefault(model.limits.group, []).append(model.alias)
    for limit, aliases in aliases_by_limit.items():
        if len(aliases) > 1:
            yield f"{', '.join(aliases)} share the rate limit of {limit} and take turns"
    if rest.sweep.stop_when is not None:
        yield "`stop_when` stops no more cells, so a run may take less; trials that it skipped are left out"
    yield "worst case: every reply uses all of max_tokens, and every byte sent is a token"

    yield from _batch_assumptions(rest, plans)
    if any(model.alias in rest.sweep.max_tokens_demanded for model in rest.models):
        yield "*: the model's longest reply: Anthropic requires max_tokens, and the sweep sets none"


def _cache_assumptions(rest: Remainder) -> Iterator[str]:
    """Yield a plan's assumptions about caches: they are used where a sweep asks for it."""
    read = False
    for model in rest.models:
        conditions = rest.conditions_of(model)
        for condition in conditions.values():
            prefix = cached_prefix(model, condition)
            if prefix is None:
                continue
            subject = f"{model.alias}, {condition.name}" if len(conditions) > 1 else model.alias
            read = read or bool(prefix.read)
            yield (
                f"{subject}: about {prefix.read:,} tokens of each question are read from a cache that was "
                "written before (`prompt_cache`)"
                if prefix.read
                else f"{subject}: `prompt_cache` has no effect: what all questions begin with is about "
                f"{prefix.tokens:,} tokens, and less than about {prefix.least:,} are not cached"
            )
    yield "no other input comes from a cache" if read else "no input comes from a cache"


def _batch_assumptions(rest: Remainder, plans: Sequence[ModelPlan]) -> Iterator[str]:
    """Yield a plan's assumptions about batches, and the models that leave them or never use them."""
    if any(plan.batch_usd is not None and plan.batches is None for plan in plans):
        yield "as a batch: the provider's batch price for the same calls; `mode: batch` asks them so"
    if batched := [plan.batches for plan in plans if plan.batches is not None]:
        yield "batches: a provider promises them within 24 hours; most end within one, some within minutes"
        if any(batches.enqueued_tokens is None for batches in batched):
            yield (
                "all prompts fit into the provider's queue at once; else each further filling takes up to 24 "
                "hours more (set `enqueued_tokens` under `batch`, as the limits page of your account says)"
            )
        yield "a batch that was sent is paid: a budget, a deadline and `stop_when` stop further ones only"

    # models whose mode the plan chose
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
        leaves_at = datetime.fromtimestamp(rest.at_s + wait_s).astimezone()
        yield (
            f"{plan.model}: batches have time until {leaves_at:%a %H:%M}, {duration(wait_s)} from now. What "
            "is not answered then is asked in real time, if the budget can pay that. The worst case counts "
            "that"
        )


def warnings_of(plans: Sequence[ModelPlan], batching: Batching) -> Iterator[str]:
    """Yield warnings of what is unknown or too small in a plan, with the way out."""
    # limits of a batch that one request is larger than
    for plan in plans:
        if plan.batches is None or not plan.left:
            continue
        sizes = {
            "max_bytes": (plan.batches.bytes, batching.max_bytes),
            "enqueued_tokens": (plan.batches.prompt_tokens, batching.enqueued_tokens),
        }
        for name, (size, limit) in sizes.items():
            if limit is not None and (request_size := size // plan.left) > limit:
                yield (
                    f"{plan.model}: one request has about {request_size:,} {name.rpartition('_')[2]}, more "
                    f"than `{name}: {limit}` under `batch`. Each is a batch by itself. Raise `{name}`."
                )

    # prices
    unpriced = [plan.model for plan in plans if plan.price_source is None]
    priced_at_once = [plan.model for plan in plans if plan.batches and plan.batches.realtime_usd is not None]
    if halves := [model for model in unpriced if model in priced_at_once]:
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

    # the worst case
    unbounded = [plan for plan in plans if plan.cost_usd_most is None]
    if unlimited := [plan.model for plan in unbounded if plan.output_tokens_most is None]:
        yield (
            f"no max_tokens is set for {', '.join(unlimited)}: their replies have no limit, so the worst "
            "case is unknown and no budget can hold them. Set it in the sweep."
        )
    limited = [plan for plan in unbounded if plan.output_tokens_most is not None]
    if unheld := [plan.model for plan in limited if plan.price_source is not None]:
        yield (
            f"the worst case of {', '.join(unheld)} is unknown: part of the cost is billed separately from "
            "tokens, or has no known price. No budget can hold it."
        )
