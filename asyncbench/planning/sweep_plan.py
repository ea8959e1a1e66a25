"""Planning of a sweep: counts its remaining trials, then estimates tokens, cost and time."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from asyncbench.config.entry import Place
from asyncbench.config.overriding import replace_budget, replace_mode, replace_sample
from asyncbench.config.questions import sample_from
from asyncbench.config.run_entries import deadline_from
from asyncbench.config.sweep import AnySweep, Sweep, load_sweep
from asyncbench.planning.assumptions import assumptions_of, warnings_of
from asyncbench.planning.belonging import check_one_sweep, extended, folder_begun
from asyncbench.planning.budget_bounds import most_for
from asyncbench.planning.cuts import cuts_of
from asyncbench.planning.draws import Drawing, drawing_of, draws_for, sum_of
from asyncbench.planning.finished import TrialGroup, seen_in
from asyncbench.planning.guesses import (
    batch_rates_of,
    cached_prefix,
    latency_of,
    prices_of,
    rates_asked,
    tokens_of,
)
from asyncbench.planning.modes import (
    BATCHES,
    batch_plan_of,
    batch_price_warning,
    pace_of,
    resolve_modes,
    seconds_to_deadline,
)
from asyncbench.planning.preflight import cautions_on, check_replays, chosen_models
from asyncbench.planning.records import ConditionPlan, ModelPlan, Needs, PlannedSet
from asyncbench.planning.remaining_trials import Remainder, planned_sets, remaining_by_model
from asyncbench.planning.report import Plan, varied_in
from asyncbench.planning.skipping import still_skipped
from asyncbench.planning.trials import TrialSource
from asyncbench.pricing import Rates, cost_usd
from asyncbench.records import BATCH, REALTIME, Model, Usage
from asyncbench.store.catalog import known_trials
from asyncbench.store.manifest import check_owner, is_results_folder
from asyncbench.suites.requests import characters_before_question, most_tokens_before


def plan(
    sweep: AnySweep,
    *,
    limit: int | None = None,
    sample: int | Mapping[str, object] | None = None,
    models: Sequence[str] | None = None,
    mode: str | None = None,
    budget_usd: float | None = None,
    deadline: str | None = None,
    extend: bool = False,
) -> Plan:
    """Forecast what a sweep costs and how long it takes. No model is called and nothing is written.

        print(ab.plan("night.yaml").as_text())

    The forecast uses the finished trials of the sweep's folder. Without any, it is a rough guess: first run
    a pilot with `run_sweep(sweep, pilot=2)`.

    Args:
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        limit: ask each model at most this many problems; of a sample, its first ones. [all]
        sample: ask so many problems of each set, drawn at random: 200, or a mapping such as
            `{"size": 200, "seed": 7, "by": "task"}`. The same for every model. [as the sweep says]
        models: the aliases of the models to ask. [all]
        mode: how these models are asked: `realtime`, `batch` or `auto`. [as the sweep says of each]
        budget_usd: the most that the whole sweep may cost, in USD. [the sweep's own]
        deadline: when the run stops: a duration (`8h`), a time of day or a date. [the sweep's own]
        extend: plan for the sweep that the folder holds, too, as `run_sweep` would ask both. [False]

    Returns:
        A `Plan`, with trials, tokens, USD and seconds for each model.

    Raises:
        ConfigError: A run of this sweep would not start. (Keys are not checked.)
        ProblemSetError: A problem set cannot be used.
        StoreError: The results folder cannot be read.
    """
    sweep = extended(load_sweep(sweep)) if extend else load_sweep(sweep)
    if sample is not None:
        sweep = replace_sample(sweep, sample_from(sample, place=Place(source="sample")))
    sweep = replace_mode(bounded_plan(sweep, budget_usd, deadline), mode, models=models)
    chosen = resolve_modes(sweep, chosen_models(sweep, models))
    check_replays(sweep, chosen)
    sweep = replace(sweep, out=folder_begun(sweep))
    check_owner(sweep.out, sweep=sweep.name)
    begun = is_results_folder(sweep.out)
    finished = known_trials(sweep.out).finished if begun else frozenset[str]()
    with planned_sets(sweep, chosen) as sets:
        check_one_sweep(sweep, (source.problems for sources in sets.values() for source in sources))
        return plan_of(sweep, chosen, sets, limit=limit, finished=finished, begun=begun)


def plan_of(
    sweep: Sweep,
    models: Sequence[Model],
    sets: Mapping[str, tuple[TrialSource, ...]],
    *,
    limit: int | None,
    finished: Collection[str],
    begun: bool,
    quick: bool = False,
) -> Plan:
    """Return the plan of a sweep whose problem sets are at hand.

    Args:
        sweep, models: what is asked of whom.
        sets: what each model is asked, by alias.
        limit: at most this many problems per model.
        finished: ids of the trials that need no call.
        begun: whether its folder holds results.
        quick: a run waits for it: fewer draws, none where there are many cells; no budgets, no deadlines.

    Raises:
        StoreError: the results folder cannot be read.
    """
    # what is left, and what finished trials used
    skipped = still_skipped(sweep.out, sweep.stop_when) if begun and sweep.stop_when is not None else ()
    remaining = remaining_by_model(sweep, models, sets, limit=limit, finished=finished, skipped=skipped)
    finished_ids = {
        (alias, name): ids for alias, counts in remaining.items() for name, ids in counts.ids.items()
    }
    rest = Remainder(
        sweep=sweep,
        models=models,
        remaining=remaining,
        seen=seen_in(sweep.out, finished_ids) if finished_ids else {},
        at_s=time.time(),
        ends_s=seconds_to_deadline(sweep),
    )
    if not quick:  # a run asks when it leaves batches, and needs to know of those that have no time
        rest = replace(rest, models=[_settle_mode(rest, model) for model in models])
    models = rest.models

    # the plan of each model, and of all together
    draws_by_model = draws_for([counts.cells for counts in remaining.values()], quick=quick)
    drawings = {
        model.alias: drawing_of(rest, model, draws=draws)
        for model, draws in zip(models, draws_by_model, strict=True)
    }
    plans = tuple(_model_plan(rest, model, drawings[model.alias]) for model in models)
    cuts, warnings, plans = ([], [], plans) if quick else cuts_of(rest, plans)
    drawn = [drawing for drawing in drawings.values() if drawing is not None]
    together = sum_of(drawn) if drawn and len(drawn) == len(models) else (None, None, None)

    # several recorded runs are in one file
    used = [source.problems for sources in sets.values() for source in sources]
    problem_sets = {(problems.path, problems.name, problems.sample): problems for problems in used}
    return Plan(
        sweep=sweep.name,
        out=sweep.place,
        simulated=any(model.simulated for model in models),
        limit=limit,
        problem_sets=tuple(
            PlannedSet(name=problems.name, rows=problems.rows, sample=problems.sample)
            for problems in problem_sets.values()
        ),
        models=plans,
        forecast_left=together[0],
        forecast_total=together[1],
        forecast_seconds=together[2],
        cuts=tuple(cuts),
        assumptions=tuple(assumptions_of(rest, drawings, plans)),
        warnings=(
            *cautions_on(problem_sets.values(), limit=limit),
            *warnings,
            *warnings_of(plans, sweep.batch),
            *filter(None, [batch_price_warning(models)]),
        ),
    )


def bounded_plan(
    sweep: Sweep, budget_usd: float | None, deadline: str | None, *, given_as: str = "budget_usd"
) -> Sweep:
    """Return a sweep with the budget (USD) and deadline to plan for. None keeps its own.

    Raises:
        ConfigError: one of them is none.
    """
    deadline = sweep.deadline if deadline is None else deadline_from(deadline, place="plan")
    return replace(replace_budget(sweep, budget_usd, place="plan", given_as=given_as), deadline=deadline)


class ShapeNeeds(NamedTuple):
    """The needs of the trials of one shape, by the means of those seen or by a guess."""

    condition: str
    needs: Needs
    call_s: float  # of one of them


def _model_plan(rest: Remainder, model: Model, drawing: Drawing | None) -> ModelPlan:
    """Return the plan of one model."""
    remaining = rest.remaining[model.alias]
    rates = _rates(rest, model)
    guesses = list(_guesses(rest, model, rates))
    needs, longest_s = _needs(guesses)
    within_s = rest.switches_s(model)
    lane = pace_of(model, rest.sweep.batch, needs, longest_s=longest_s, within_s=within_s)

    # who says what it costs: of the conditions that are still asked, all or nobody
    asked_rates = [rates[name] for name in {shape.condition for shape in remaining.shapes} or rates]
    sources = [priced.source for priced in asked_rates if priced is not None]
    source = sources[0] if len(sources) == len(asked_rates) else None

    # groups of which too few replies are known, and the parts of each condition
    groups = rest.groups_left(model)
    several_suites = len({group.suite for group in groups}) > 1
    too_few = [
        f"{group.condition!r} ({group.suite})" if several_suites else repr(group.condition)
        for group in groups
        if not rest.can_forecast(group)
    ]
    done, count = remaining.finished.total(), remaining.shapes.total()
    plan = ModelPlan(
        model=model.alias,
        group=model.limits.group or model.turn,
        trials=done + count,
        done=done,
        left=count,
        input_tokens=round(needs.input_tokens),
        output_tokens=round(needs.output_tokens),
        output_tokens_most=needs.output_most,
        cost_usd=None if source is None else needs.cost_usd,
        cost_usd_most=None if source is None else needs.cost_usd_most,
        batch_usd=None if batch_rates_of(model, rest.at_s) is None else needs.batch_usd,
        price_source=source,
        prices=prices_of(rates.values()),
        seconds=lane.seconds,
        bound_by=lane.bound_by,
        max_tokens=model.max_tokens,
        max_tokens_required=model.alias in rest.sweep.max_tokens_demanded,
        replies=sum(use.replies for use in rest.uses_of(model)),
        too_few=tuple(too_few),
        varied=varied_in(rest.models)[model.alias],
        conditions=tuple(_condition_plans(rest, model, guesses, priced=source is not None)),
        batches=batch_plan_of(model, rest.sweep.batch, needs, longest_s=longest_s, within_s=within_s),
    )
    return plan if drawing is None or not count else plan.forecast_by(drawing.forecast)


def _condition_plans(
    rest: Remainder, model: Model, guesses: Sequence[ShapeNeeds], *, priced: bool
) -> Iterator[ConditionPlan]:
    """Yield the trials of a model under each condition, and what those left cost."""
    remaining, done = Counter[str](), Counter[str]()
    for shape, count in rest.remaining[model.alias].shapes.items():
        remaining[shape.condition] += count
    for (name, _), count in rest.remaining[model.alias].finished.items():
        done[name] += count
    for name in rest.conditions_of(model):
        needs = Needs.sum(guess.needs for guess in guesses if guess.condition == name)
        yield ConditionPlan(
            name=name,
            trials=done[name] + remaining[name],
            left=remaining[name],
            cost_usd=needs.cost_usd if priced else None,
        )


def _settle_mode(rest: Remainder, model: Model) -> Model:
    """Return a model as it is asked: in real time where its deadline leaves no time for batches."""
    within_s = rest.switches_s(model)
    if model.mode != BATCH or within_s is None or not rest.remaining[model.alias].shapes:
        return model
    needs, longest_s = _needs(list(_guesses(rest, model, _rates(rest, model))))
    lane = pace_of(model, rest.sweep.batch, needs, longest_s=longest_s, within_s=within_s)
    return model if lane.bound_by == BATCHES else replace(model, mode=REALTIME)


def _rates(rest: Remainder, model: Model) -> dict[str, Rates | None]:
    return {
        name: rates_asked(model, condition, rest.at_s)
        for name, condition in rest.conditions_of(model).items()
    }


def _needs(guesses: Sequence[ShapeNeeds]) -> tuple[Needs, float]:
    """Return the needs of all shapes together, and the seconds of their longest call."""
    longest_s = max((guess.call_s for guess in guesses), default=0.0)
    return Needs.sum(guess.needs for guess in guesses), longest_s


def _guesses(rest: Remainder, model: Model, rates: Mapping[str, Rates | None]) -> Iterator[ShapeNeeds]:
    """Yield the needs of each shape; each call is priced by itself: long ones may have other prices."""
    conditions, batch_rates = rest.conditions_of(model), batch_rates_of(model, rest.at_s)
    realtime_rates = {
        name: rates_asked(replace(model, mode=REALTIME), condition, rest.at_s)
        for name, condition in conditions.items()
    }
    before = {name: most_tokens_before(model, condition) for name, condition in conditions.items()}
    dearest = model if rest.switches_s(model) is None else replace(model, mode=REALTIME)
    highest_cost = {
        name: most_for(rest.sweep, dearest, condition, rest.at_s) for name, condition in conditions.items()
    }
    for shape, count in rest.remaining[model.alias].shapes.items():
        name = shape.condition
        like = rest.seen.get(TrialGroup(model.alias, name, shape.cell.suite))
        tokens = tokens_of(model, conditions[name], question=shape.question, answer=shape.answer, seen=like)
        prefix = cached_prefix(model, conditions[name])
        usage = Usage(
            input_tokens=tokens.input,
            cached_input_tokens=None if prefix is None else min(prefix.read, tokens.input),
            output_tokens=tokens.output,
        )
        call_s = latency_of(tokens.output)
        if like is not None and like.latency is not None:
            call_s = like.latency.first + like.latency.second * tokens.output
        costs = (
            cost_usd(usage, rates[name]),
            cost_usd(usage, batch_rates),
            highest_cost[name](before[name] + shape.question_tokens),
            cost_usd(usage, realtime_rates[name]),
        )
        usd, batch_usd, usd_most, realtime_usd = (
            None if call_usd is None else call_usd * count for call_usd in costs
        )
        needs = Needs(
            trials=count,
            input_tokens=count * tokens.input,
            output_tokens=count * tokens.output,
            latency_s=count * call_s,
            cost_usd=usd,
            batch_usd=batch_usd,
            output_most=None if tokens.output_most is None else count * tokens.output_most,
            cost_usd_most=usd_most,
            realtime_usd=realtime_usd,
            characters=count * (shape.question + characters_before_question(model, conditions[name])),
        )
        yield ShapeNeeds(name, needs, call_s)
