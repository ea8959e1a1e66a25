"""plan(): counts what is left of a sweep, then says what that takes."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from asyncbench import preflight
from asyncbench.config import Sweep, load_sweep
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN
from asyncbench.plan import pace as pacing
from asyncbench.plan import tokens as guesses
from asyncbench.plan.figures import ModelPlan, Plan, PlannedSet
from asyncbench.plan.left import Left, Shape, left_by_model, sets_of
from asyncbench.plan.tokens import Tokens, tokens_of
from asyncbench.plan.used import Used, Way, used_in, way_of
from asyncbench.pricing import Rates, cost_usd, tier_of
from asyncbench.providers.prices import rates_of
from asyncbench.records import Condition, Model, Usage
from asyncbench.store.catalog import finished_ids
from asyncbench.store.manifest import check, is_results_folder


def plan(sweep: Sweep | Path | str, *, limit: int | None = None, models: Sequence[str] | None = None) -> Plan:
    """Return what a sweep would cost and how long it would take; nothing is asked, nothing is written.

    Args:
        sweep: a sweep, or the path of a sweep file.
        limit: at most this many problems per model.
        models: the aliases to ask; None: all of the sweep.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting, but for missing keys.
        StoreError: the results folder cannot be read.
    """
    sweep = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    asked = preflight.chosen(sweep, models)
    preflight.check_replays(asked)
    check(sweep.out, sweep=sweep.name)
    begun = is_results_folder(sweep.out)
    finished = finished_ids(sweep.out) if begun else frozenset[str]()
    used = used_in(sweep.out) if begun else {}
    with TemporaryDirectory(prefix="asyncbench-plan-") as made:
        sets = sets_of(sweep, asked, Path(made))
        preflight.check_kinds(sweep.conditions, [one for many in sets.values() for one in many])
        for model in asked:
            preflight.check_tokens(model, sweep.conditions, sets[model.alias])
        left = dict(left_by_model(sweep, asked, sets, limit=limit, finished=finished))
    named = {one.problems.path: one.problems for many in sets.values() for one in many}
    plans = tuple(_model_plan(sweep, model, left[model.alias], used) for model in asked)
    return Plan(
        sweep=sweep.name,
        out=str(sweep.out),
        simulated=any(model.simulated for model in asked),
        limit=limit,
        problem_sets=tuple(PlannedSet(name=one.name, rows=one.rows) for one in named.values()),
        models=plans,
        assumptions=tuple(_assumptions(sweep, asked, left, used)),
        warnings=tuple(_warnings(plans)),
    )


# ── what it takes ────────────────────────────────────────────────────────────────────────────


class Share(NamedTuple):
    """What the trials of one shape take of one model."""

    trials: int
    tokens: Tokens  # of one trial
    latency_s: float  # of one trial
    cost_usd: float | None
    cost_usd_most: float | None


def _model_plan(sweep: Sweep, model: Model, left: Left, used: Mapping[Way, Used]) -> ModelPlan:
    conditions = {condition.name: condition for condition in sweep.conditions}
    rates = {name: _rates(model, condition) for name, condition in conditions.items()}
    shares = [
        _share(model, conditions[shape.condition], shape, count, used, rates[shape.condition])
        for shape, count in left.shapes.items()
    ]
    source = _source([rates[name] for name in {shape.condition for shape in left.shapes} or rates])
    input_tokens = sum(one.trials * one.tokens.input for one in shares)
    output_tokens = sum(one.trials * one.tokens.output for one in shares)
    held_by = pacing.pace(
        model.limits,
        trials=left.trials,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        latency_s=sum(one.trials * one.latency_s for one in shares),
        longest_s=max((one.latency_s for one in shares), default=0.0),
    )
    return ModelPlan(
        model=model.alias,
        group=model.limits.group,
        trials=left.done + left.trials,
        done=left.done,
        left=left.trials,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        output_tokens_most=_most_output(shares),
        cost_usd=_total([one.cost_usd for one in shares], source),
        cost_usd_most=_total([one.cost_usd_most for one in shares], source),
        price_source=source,
        seconds=held_by.seconds,
        bound_by=held_by.bound_by,
        max_tokens=model.max_tokens,
        max_tokens_required=model.alias in sweep.max_tokens_demanded,
    )


def _share(
    model: Model,
    condition: Condition,
    shape: Shape,
    count: int,
    used: Mapping[Way, Used],
    rates: Rates | None,
) -> Share:
    seen = used.get(way_of(model, condition, shape.suite))
    tokens = tokens_of(model, condition, question=shape.question, answer=shape.answer, used=seen)
    latency_s = seen.latency_s if seen else None
    # Where replies cost nothing, their length matters to no bill.
    most = 0 if rates and not any(bracket.output for bracket in rates.brackets) else tokens.output_most
    return Share(
        trials=count,
        tokens=tokens,
        latency_s=pacing.latency_of(tokens.output) if latency_s is None else latency_s,
        cost_usd=_cost(count, tokens.input, tokens.output, rates),
        cost_usd_most=_cost(count, tokens.input_most, most, rates),
    )


def _cost(count: int, input_tokens: int, output_tokens: int | None, rates: Rates | None) -> float | None:
    """Return what `count` equal calls cost; each is priced by itself: long ones may have other prices."""
    one = cost_usd(Usage(input_tokens=input_tokens, output_tokens=output_tokens), rates)
    return None if one is None else one * count


def _total(costs: Sequence[float | None], source: str | None) -> float | None:
    """Return the sum; None when a part of it is unknown, or the price: nothing left is then unknown, too."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if source is not None and len(known) == len(costs) else None


def _source(rates: Sequence[Rates | None]) -> str | None:
    """Return who says what a model costs; None when nobody knows it under some condition."""
    known = [one.source for one in rates if one is not None]
    return known[0] if len(known) == len(rates) else None


def _most_output(shares: Sequence[Share]) -> int | None:
    most = [one.trials * one.tokens.output_most for one in shares if one.tokens.output_most is not None]
    return sum(most) if len(most) == len(shares) else None


def _rates(model: Model, condition: Condition) -> Rates | None:
    """Return what a model costs now, in the tier that the parameters of a request ask for."""
    params = {**model.params, **condition.params}
    tier = params.get("service_tier")
    named = tier if isinstance(tier, str) and tier != "auto" else None
    return rates_of(model)(tier_of(named, params), time.time())


# ── what was assumed, and what to beware of ──────────────────────────────────────────────────


def _assumptions(
    sweep: Sweep, models: Sequence[Model], left: Mapping[str, Left], used: Mapping[Way, Used]
) -> Iterator[str]:
    conditions = {condition.name: condition for condition in sweep.conditions}
    guessed: list[tuple[Model, Condition]] = []
    for model in models:
        asked = sorted({(shape.suite, shape.condition) for shape in left[model.alias].shapes})
        ways = [(conditions[name], way_of(model, conditions[name], suite)) for suite, name in asked]
        seen = [used[way] for _, way in ways if way in used]
        if seen:
            count = sum(one.trials for one in seen)
            yield f"{model.alias}: tokens (mean) and latency (median) as of its {count:,} finished trials"
        guessed += [(model, condition) for condition, way in ways if way not in used]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters a token"
        yield from dict.fromkeys(starmap(guesses.assumption, guessed))
        yield (
            f"latency: {pacing.UNSEEN_LATENCY_S:g} s, then {pacing.UNSEEN_TOKENS_PER_S} tokens of a reply a "
            "second; `run --limit` first, and a plan goes by what was seen"
        )
    yield "every trial is answered at its first attempt; nothing is read from a cache"
    yield (
        f"at most: {guesses.MOST_TOKENS_PER_CHARACTER} token for every character sent, and every reply as "
        "long as max_tokens allows"
    )
    if any(model.alias in sweep.max_tokens_demanded for model in models):
        yield "*: the model's longest reply; Anthropic's format demands a max_tokens"


def _warnings(plans: Sequence[ModelPlan]) -> Iterator[str]:
    unpriced = [one.model for one in plans if one.price_source is None]
    if unpriced:
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost is unknown. "
            "Give `price: {input: …, output: …}` (USD for a million tokens) in the sweep."
        )
    unlimited = [one.model for one in plans if one.output_tokens_most is None and one.cost_usd_most is None]
    if unlimited:
        yield (
            f"no max_tokens is set for {', '.join(unlimited)}: nothing limits their replies, so what they "
            "may cost at most is unknown"
        )
