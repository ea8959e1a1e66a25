"""plan(): counts what is left of a sweep, then says what that takes."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from asyncbench.config import Sweep, deadline_from, load_sweep, with_budget
from asyncbench.engine import CHARACTERS_PER_TOKEN
from asyncbench.planning import pace as pacing
from asyncbench.planning import tokens as guesses
from asyncbench.planning.forecast.remaining_cost import draws_for, forecastable, work_of
from asyncbench.planning.forecast.seen_use import SeenUse, Way, seen_in
from asyncbench.planning.forecasting import Drawing, drawing_of, seconds_of, sum_of
from asyncbench.planning.limits import cuts_of, limits_of
from asyncbench.planning.outlook import ModelPlan, Plan, PlannedSet
from asyncbench.planning.prices import batch_rates_of, prices_of, rates_asked
from asyncbench.planning.remaining_trials import Left, Shape, left_by_model, sets_of
from asyncbench.planning.tokens import Tokens, tokens_of
from asyncbench.pricing import Rates, cost_usd
from asyncbench.prompting import TOKENS_BESIDE_A_CALL, TOKENS_BESIDE_A_MESSAGE, most_tokens_before
from asyncbench.records import Condition, Model, Usage
from asyncbench.store import check_owner, is_results_folder, known_trials
from asyncbench.sweeps import (
    AskedSet,
    check_kinds,
    check_replays,
    check_tokens,
    chosen_models,
    held_models,
    most_for,
    still_skipped,
)


def plan(
    sweep: Sweep | Path | str,
    *,
    limit: int | None = None,
    models: Sequence[str] | None = None,
    budget_usd: float | None = None,
    deadline: str | None = None,
) -> Plan:
    """Return what a sweep would cost and how long it would take; nothing is asked, nothing is written.

    What its folder holds of finished trials is forecast from, such as the pilot that
    `run_sweep(sweep, pilot=2)` makes.

    Args:
        sweep: a sweep, or the path of a sweep file.
        limit: at most this many problems per model.
        models: the aliases to ask; None: all of the sweep.
        budget_usd: what all of it may cost, instead of the sweep's own.
        deadline: when it has to stop, as a sweep file says it, instead of the sweep's own.

    Raises:
        ConfigError, ProblemSetError: what would keep `run` from starting, but for missing keys.
        StoreError: the results folder cannot be read.
    """
    sweep = bounded_plan(sweep if isinstance(sweep, Sweep) else load_sweep(sweep), budget_usd, deadline)
    asked = chosen_models(sweep, models)
    check_replays(asked)
    check_owner(sweep.out, sweep=sweep.name)
    begun = is_results_folder(sweep.out)
    finished = known_trials(sweep.out).finished if begun else frozenset[str]()
    with TemporaryDirectory(prefix="asyncbench-plan-") as made:
        sets = sets_of(sweep, asked, Path(made))
        check_kinds(sweep.conditions, [one for many in sets.values() for one in many])
        for model in asked:
            check_tokens(model, sweep.conditions, sets[model.alias])
        return plan_of(sweep, asked, sets, limit=limit, finished=finished, begun=begun)


def plan_of(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[AskedSet, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
    begun: bool,
    quick: bool = False,
) -> Plan:
    """Return the plan of a sweep whose problem sets are at hand.

    Args:
        sweep: the sweep.
        models: those that are asked.
        sets: what they are asked, by alias.
        limit: at most this many problems per model.
        finished: ids of the trials that need no call.
        begun: whether its folder holds results.
        quick: for a run that waits for it: forecasts are drawn less often, or not at all where there are too
            many cells, and nothing is said of budgets and deadlines.

    Raises:
        StoreError: the results folder cannot be read.
    """
    at_s = time.time()
    skipped = still_skipped(sweep.out, sweep.stop_when) if begun and sweep.stop_when is not None else ()
    left = dict(left_by_model(sweep, models, sets, limit=limit, finished=finished, skipped=skipped))
    closed = {(alias, name): ids for alias, one in left.items() for name, ids in one.ids.items()}
    seen = seen_in(sweep.out, closed) if closed else {}
    drawings = _drawings(sweep, models, left, seen, at_s, quick=quick)
    plans = tuple(_model_plan(sweep, one, left[one.alias], seen, drawings[one.alias], at_s) for one in models)
    known = [one for one in drawings.values() if one is not None]
    whole = bool(known) and len(known) == len(models)
    of_left, of_all = sum_of(known) if whole else (None, None)
    limits = None if quick else limits_of(sweep, models)
    named = {one.problems.path: one.problems for many in sets.values() for one in many}
    return Plan(
        sweep=sweep.name,
        out=str(sweep.out),
        simulated=any(model.simulated for model in models),
        limit=limit,
        problem_sets=tuple(PlannedSet(name=one.name, rows=one.rows) for one in named.values()),
        models=plans,
        forecast_left=of_left,
        forecast_total=of_all,
        forecast_seconds=seconds_of(known) if whole else None,
        cuts=() if limits is None else tuple(cuts_of(limits, held_models(sweep, models), plans, left, at_s)),
        assumptions=tuple(_assumptions(sweep, models, left, seen, drawings, plans)),
        warnings=(*(() if limits is None else limits.warnings), *_warnings(plans)),
    )


def bounded_plan(sweep: Sweep, budget_usd: float | None, deadline: str | None) -> Sweep:
    """Return a sweep with the budget, USD, and the deadline that it is planned for; None: its own.

    Raises:
        ConfigError: one of them is none.
    """
    told = sweep.deadline if deadline is None else deadline_from(deadline, place="plan")
    return replace(with_budget(sweep, budget_usd, place="plan"), deadline=told)


def _drawings(
    sweep: Sweep,
    models: Sequence[Model],
    left: Mapping[str, Left],
    seen: Mapping[Way, SeenUse],
    at_s: float,
    *,
    quick: bool,
) -> dict[str, Drawing | None]:
    replies = Counter[str]()
    for way, one in seen.items():
        replies[way.model] += one.replies
    works = [work_of(left[model.alias].cells, replies[model.alias]) for model in models]
    return {
        model.alias: drawing_of(sweep, model, left[model.alias], seen, at_s, draws=draws)
        for model, draws in zip(models, draws_for(works, quick=quick), strict=True)
    }


# ── what it takes ────────────────────────────────────────────────────────────────────────────


class Share(NamedTuple):
    """What the trials of one shape take of one model."""

    trials: int
    tokens: Tokens  # of one trial
    latency_s: float  # of one trial
    cost_usd: float | None
    cost_usd_most: float | None
    batch_usd: float | None


class Priced(NamedTuple):
    """By what the calls of a model are priced under a condition."""

    rates: Rates | None  # None: unknown
    batch_rates: Rates | None
    before: int  # tokens at most of what goes along with every question
    most: Callable[[int], float | None]  # USD of a call, by the most tokens of its prompt


def _priced(sweep: Sweep, model: Model, condition: Condition, at_s: float) -> Priced:
    return Priced(
        rates=rates_asked(model, condition, at_s),
        batch_rates=batch_rates_of(model, at_s),
        before=most_tokens_before(model, condition),
        most=most_for(sweep, model, condition, at_s),
    )


def _model_plan(
    sweep: Sweep,
    model: Model,
    left: Left,
    seen: Mapping[Way, SeenUse],
    drawing: Drawing | None,
    at_s: float,
) -> ModelPlan:
    conditions = {condition.name: condition for condition in sweep.conditions}
    priced = {name: _priced(sweep, model, condition, at_s) for name, condition in conditions.items()}
    rates = {name: one.rates for name, one in priced.items()}
    batch = batch_rates_of(model, at_s)
    shares = [
        _share(model, conditions[shape.condition], shape, count, seen, priced[shape.condition])
        for shape, count in left.shapes.items()
    ]
    source = _source([rates[name] for name in {shape.condition for shape in left.shapes} or rates])
    guessed = _guessed(model, left, shares)
    plan = ModelPlan(
        model=model.alias,
        group=model.limits.group,
        trials=left.done + left.trials,
        done=left.done,
        left=left.trials,
        input_tokens=sum(one.trials * one.tokens.input for one in shares),
        output_tokens=sum(one.trials * one.tokens.output for one in shares),
        output_tokens_most=_most_output(shares),
        cost_usd=_total([one.cost_usd for one in shares], source),
        cost_usd_most=_total([one.cost_usd_most for one in shares], source),
        batch_usd=_total([one.batch_usd for one in shares], None if batch is None else batch.source),
        price_source=source,
        prices=prices_of(rates.values()),
        seconds=guessed.seconds,
        bound_by=guessed.bound_by,
        max_tokens=model.max_tokens,
        max_tokens_required=model.alias in sweep.max_tokens_demanded,
        replies=sum(one.replies for way, one in seen.items() if way.model == model.alias),
        too_few=_too_few(model, left, seen),
    )
    return plan if drawing is None or not left.trials else plan.forecast_by(drawing.forecast)


def _too_few(model: Model, left: Left, seen: Mapping[Way, SeenUse]) -> tuple[str, ...]:
    """Return the ways in which a model is still asked, and of which too few replies are known."""
    ways = sorted({(shape.condition, shape.cell.suite) for shape in left.shapes})
    several = len({suite for _, suite in ways}) > 1
    return tuple(
        f"{name!r} ({suite})" if several else repr(name)
        for name, suite in ways
        if not forecastable(seen.get(Way(model.alias, name, suite)))
    )


def _guessed(model: Model, left: Left, shares: Sequence[Share]) -> pacing.LanePace:
    return pacing.pace(
        model.limits,
        trials=left.trials,
        input_tokens=sum(one.trials * one.tokens.input for one in shares),
        output_tokens=sum(one.trials * one.tokens.output for one in shares),
        latency_s=sum(one.trials * one.latency_s for one in shares),
        longest_s=max((one.latency_s for one in shares), default=0.0),
    )


def _share(
    model: Model,
    condition: Condition,
    shape: Shape,
    count: int,
    seen: Mapping[Way, SeenUse],
    priced: Priced,
) -> Share:
    like = seen.get(Way(model.alias, condition.name, shape.cell.suite))
    tokens = tokens_of(model, condition, question=shape.question, answer=shape.answer, seen=like)
    return Share(
        trials=count,
        tokens=tokens,
        latency_s=_latency_s(like, tokens.output),
        cost_usd=_cost(count, tokens.input, tokens.output, priced.rates),
        cost_usd_most=_times(count, priced.most(priced.before + shape.most)),
        batch_usd=_cost(count, tokens.input, tokens.output, priced.batch_rates),
    )


def _latency_s(seen: SeenUse | None, output_tokens: int) -> float:
    if seen is None or seen.latency is None:
        return pacing.latency_of(output_tokens)
    return seen.latency.first + seen.latency.second * output_tokens


def _cost(count: int, input_tokens: int, output_tokens: int | None, rates: Rates | None) -> float | None:
    """Return what `count` equal calls cost; each is priced by itself: long ones may have other prices."""
    return _times(count, cost_usd(Usage(input_tokens=input_tokens, output_tokens=output_tokens), rates))


def _times(count: int, usd: float | None) -> float | None:
    return None if usd is None else usd * count


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


# ── what was assumed, and what to beware of ──────────────────────────────────────────────────


def _assumptions(
    sweep: Sweep,
    models: Sequence[Model],
    left: Mapping[str, Left],
    used: Mapping[Way, SeenUse],
    drawings: Mapping[str, Drawing | None],
    plans: Sequence[ModelPlan],
) -> Iterator[str]:
    conditions = {condition.name: condition for condition in sweep.conditions}
    guessed: list[tuple[Model, Condition]] = []
    for model in models:
        if (drawing := drawings.get(model.alias)) is not None and left[model.alias].shapes:
            yield (
                f"{model.alias}: forecast from the {drawing.forecast.replies:,} replies that are there; "
                "nine of ten such ranges hold what comes"
            )
            continue
        asked = sorted({(shape.cell.suite, shape.condition) for shape in left[model.alias].shapes})
        ways = [(conditions[name], Way(model.alias, name, suite)) for suite, name in asked]
        seen = [used[way] for _, way in ways if way in used]
        if seen:
            count = sum(one.trials for one in seen)
            yield f"{model.alias}: tokens and latency (mean) as of its {count:,} finished trials"
        guessed += [(model, condition) for condition, way in ways if way not in used]
    if guessed:
        yield f"input: {CHARACTERS_PER_TOKEN} characters a token"
        yield from dict.fromkeys(starmap(guesses.assumption, guessed))
        yield (
            f"latency: {pacing.UNSEEN_LATENCY_S:g} s, then {pacing.UNSEEN_TOKENS_PER_S} tokens of a reply a "
            "second"
        )
    yield "every trial is answered at its first attempt; nothing is read from a cache"
    if sweep.stop_when is not None:
        yield "`stop_when` stops no cell: it will take less where it does; what it has skipped is not counted"
    yield (
        "at most: what a budget sets aside for these calls: a token for every byte sent and "
        f"{TOKENS_BESIDE_A_CALL} more (and {TOKENS_BESIDE_A_MESSAGE} a message), at the dearest price that "
        "may hold, and every answer as long as max_tokens allows"
    )
    if any(one.batch_usd is not None for one in plans):
        yield "in a batch: what the vendor would take for the same calls in one; a run makes them one by one"
    if any(model.alias in sweep.max_tokens_demanded for model in models):
        yield "*: the sweep sets no max_tokens, and Anthropic's format demands one: the model's longest reply"


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
            "may cost at most is unknown. Set it in the sweep: no budget holds them without."
        )
    unheld = [
        one.model
        for one in plans
        if one.price_source is not None and one.output_tokens_most is not None and one.cost_usd_most is None
    ]
    if unheld:
        yield (
            f"what {', '.join(unheld)} may cost at most is unknown: something of it is billed beside its "
            "tokens, or in ways that have no price. No budget holds that."
        )
