"""What a plan assumes, and what to beware of."""

from collections.abc import Iterator, Mapping, Sequence

from asyncbench.engine import CHARACTERS_PER_TOKEN
from asyncbench.planning.forecasting import Drawing
from asyncbench.planning.guesses import UNSEEN_LATENCY_S, UNSEEN_TOKENS_PER_S, assumption
from asyncbench.planning.records import ModelPlan
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.prompting import TOKENS_BESIDE_A_CALL, TOKENS_BESIDE_A_MESSAGE
from asyncbench.records import Condition, Model


def assumptions_of(
    rest: Remainder, drawings: Mapping[str, Drawing | None], plans: Sequence[ModelPlan]
) -> Iterator[str]:
    """Yield what the figures of a plan rest on, a sentence each."""
    sweep, guessed = rest.sweep, list[tuple[Model, Condition]]()
    for model in rest.models:
        ways = rest.ways_left(model)
        if (drawing := drawings[model.alias]) is not None and ways:
            yield (
                f"{model.alias}: forecast from the {drawing.forecast.replies:,} replies that are there; "
                "nine of ten such ranges hold what comes"
            )
            continue
        if known := [rest.seen[way].used.trials for way in ways if way in rest.seen]:
            yield f"{model.alias}: tokens and latency (mean) as of its {sum(known):,} finished trials"
        guessed += [(model, rest.conditions[way.condition]) for way in ways if way not in rest.seen]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters a token"
        yield from dict.fromkeys(assumption(model, condition) for model, condition in guessed)
        yield f"latency: {UNSEEN_LATENCY_S:g} s, then {UNSEEN_TOKENS_PER_S} tokens of a reply a second"
    yield "every trial is answered at its first attempt; nothing is read from a cache"
    if sweep.stop_when is not None:
        yield "`stop_when` stops no cell: it will take less where it does; what it has skipped is not counted"
    yield (
        "at most: what a budget sets aside for these calls: a token for every byte sent and "
        f"{TOKENS_BESIDE_A_CALL} more (and {TOKENS_BESIDE_A_MESSAGE} a message), at the dearest price that "
        "may hold, and every answer as long as max_tokens allows"
    )
    if any(plan.batch_usd is not None for plan in plans):
        yield "in a batch: what the vendor would take for the same calls in one; a run makes them one by one"
    if any(model.alias in sweep.max_tokens_demanded for model in rest.models):
        yield "*: the sweep sets no max_tokens, and Anthropic's format demands one: the model's longest reply"


def warnings_of(plans: Sequence[ModelPlan]) -> Iterator[str]:
    """Yield what of a plan is unknown, and what can be done about it."""
    unpriced = [plan.model for plan in plans if plan.price_source is None]
    if unpriced:
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost is unknown. "
            "Give `price: {input: …, output: …}` (USD for a million tokens) in the sweep."
        )
    unbounded = [plan for plan in plans if plan.cost_usd_most is None]
    unlimited = [plan.model for plan in unbounded if plan.output_tokens_most is None]
    if unlimited:
        yield (
            f"no max_tokens is set for {', '.join(unlimited)}: nothing limits their replies, so what they "
            "may cost at most is unknown. Set it in the sweep: no budget holds them without."
        )
    unheld = [
        plan.model
        for plan in unbounded
        if plan.price_source is not None and plan.output_tokens_most is not None
    ]
    if unheld:
        yield (
            f"what {', '.join(unheld)} may cost at most is unknown: something of it is billed beside its "
            "tokens, or in ways that have no price. No budget holds that."
        )
