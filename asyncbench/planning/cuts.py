"""Cuts by budgets and by a deadline: the order is balanced, so the first trials of every cell are asked."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf

from asyncbench.config.run_entries import seconds_left
from asyncbench.engine.budget import Ledger
from asyncbench.errors import ConfigError
from asyncbench.planning.budget_bounds import budgeted_models, check_budget, open_ledger
from asyncbench.planning.modes import chain_batches, chain_of
from asyncbench.planning.records import Cut, ModelPlan, Outlook, StillAsked
from asyncbench.planning.remaining_trials import Remainder
from asyncbench.pricing import dollars_of
from asyncbench.records import Trial
from asyncbench.suites.requests import request_for
from asyncbench.tables.numbers import dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The most that some models may still take together: dollars of a budget, seconds of a lane."""

    models: Collection[str]  # by alias
    amount: float
    name: str = ""  # what a person calls it
    spare: Mapping[str, float] = field(default_factory=dict)  # what a model cannot use up of it, by alias


def shares(takes: Mapping[str, float], bounds: Sequence[Bound]) -> tuple[dict[str, float], list[str]]:
    """Return the share of its rest that each model is asked, and the names of the bounds that stop any.

    All get on alike until a bound stops some. `takes`: what the rest of each model takes, by alias.
    """
    shares_by_alias = {alias: 0.0 if amount > 0 else 1.0 for alias, amount in takes.items()}
    going, stopping = {alias for alias, amount in takes.items() if amount > 0}, set[str]()
    while going:
        reached = list[tuple[float, str, str]]()  # the share at which a model is stopped, and by which bound
        for bound in bounds:
            stopped = sum(
                takes[a] * shares_by_alias[a] for a in bound.models if a in takes and a not in going
            )
            taken = sum(takes[alias] for alias in bound.models if alias in going)
            for alias in bound.models:
                if alias in going:
                    usable = max(0.0, bound.amount - bound.spare.get(alias, 0.0) - stopped)
                    reached.append((usable / taken, alias, bound.name))
        level = min([1.0, *(share for share, _, _ in reached)])
        shares_by_alias |= dict.fromkeys(going, level)
        if level == 1:
            break
        for share, alias, name in reached:
            if share <= level:
                going.discard(alias)
                stopping.add(name)
    return shares_by_alias, list(dict.fromkeys(bound.name for bound in bounds if bound.name in stopping))


def cuts_of(
    rest: Remainder, plans: Sequence[ModelPlan]
) -> tuple[list[Cut], list[str], tuple[ModelPlan, ...]]:
    """Return the cuts by budgets and deadline of a run that starts now, and faults that would stop it.

    With them come the plans, as budgets stretch those of batches.

    Raises:
        StoreError: the results folder cannot be read.
    """
    sweep = rest.sweep
    cuts, warnings, ledger = list[Cut](), list[str](), None
    try:
        check_budget(sweep, rest.models)
    except ConfigError as error:  # a plan may ask before that is set
        warnings.append(f"a run would refuse this budget: {error}")
    try:
        ledger = open_ledger(sweep, sweep.out)
    except ConfigError as error:
        warnings.append(f"a run would refuse this budget: {error}")
    if ledger is not None:
        plans = [_chained(ledger, plan, plans) for plan in plans]
        warnings += [
            f"{plan.model}: all that a batch may cost is set aside, so the budget makes a chain of "
            f"{plan.batches.chain:,} batches, each up to a day long. A run ends it when batches get "
            f"small. To send all at once, set a budget of {dollars(plan.cost_usd_most)} for this model, "
            "lower `max_tokens`, or ask with --mode realtime."
            for plan in plans
            if plan.batches is not None and plan.batches.chain > 1
        ]
        cuts += _budget_cuts(ledger, rest, plans)
    if sweep.deadline is not None:
        try:
            within_s = seconds_left(sweep.deadline, datetime.now().astimezone())
        except ConfigError as error:  # it may have passed while a pilot was asked
            within_s = 0.0
            warnings.append(str(error))
        lanes: dict[str, list[str]] = {}
        for plan in plans:
            lanes.setdefault(plan.group or plan.model, []).append(plan.model)
        within = [Bound(models=lane, amount=within_s, name="deadline") for lane in lanes.values()]
        takes = {outlook: {plan.model: plan.seconds_at(outlook) for plan in plans} for outlook in Outlook}
        cuts.append(_cut("deadline", plans, rest, takes, dict.fromkeys(Outlook, within)))
    return cuts, warnings, tuple(plans)


def _chained(ledger: Ledger, plan: ModelPlan, plans: Sequence[ModelPlan]) -> ModelPlan:
    """Return a plan with the chain that a budget makes of its batches.

    Models share a budget by what they may cost.
    """
    account = ledger.account_of(plan.model)
    timely = plan.batches is not None and plan.batches.switch_in_s is None
    if account is None or plan.batches is None or not (timely and plan.cost_usd_most):
        return plan
    highest_costs = {entry.model: entry.cost_usd_most or 0.0 for entry in plans}
    rooms = []
    for cap in account.caps:
        aliases = [sharing.model for sharing in ledger.accounts if cap in sharing.caps]
        shared = sum(highest_costs.get(alias, 0.0) for alias in aliases)
        rooms.append(dollars_of(max(0, cap.limit - cap.spent)) * highest_costs[plan.model] / shared)
    chain = chain_of(
        plan.left,
        usd=(plan.cost_usd or 0.0) / plan.left,
        usd_most=plan.cost_usd_most / plan.left,
        budget_usd=min(rooms, default=inf),
    )
    if chain == 1:
        return plan
    batches = chain_batches(plan.batches, chain)
    return replace(plan, batches=batches, seconds=max(plan.seconds, batches.latest_s))


def _budget_cuts(ledger: Ledger, rest: Remainder, plans: Sequence[ModelPlan]) -> Iterator[Cut]:
    """Yield cuts by the budgets; nothing where no budget holds the questions."""
    aside = _set_aside(ledger, rest)
    under = {
        cap: [account.model for account in ledger.accounts if cap in account.caps] for cap in ledger.caps
    }
    takes = {outlook: {plan.model: plan.cost_at(outlook) or 0.0 for plan in plans} for outlook in Outlook}
    bounds: dict[Outlook, list[Bound]] = {}
    for outlook, usd in takes.items():
        calls = {plan.model: usd[plan.model] / plan.left for plan in plans if plan.left}
        # a model stops where its next call may cost more than is left
        spare = {alias: max(0.0, call_usd - calls[alias]) for alias, call_usd in aside.items()}
        bounds[outlook] = [
            Bound(
                models=aliases,
                amount=dollars_of(max(0, cap.limit - cap.spent)),
                name=f"budget of {cap.name}",
                spare=spare,
            )
            for cap, aliases in under.items()
            if usd.keys() & aliases
        ]
    if bounds[Outlook.USUAL]:
        cut = _cut("budget", plans, rest, takes, bounds)
        yield replace(
            cut,
            spent_up={
                f"budget of {cap.name}": (dollars_of(cap.spent), dollars_of(cap.limit))
                for cap in ledger.caps
                if cap.spent >= cap.limit
            },
            too_small={
                account.model: aside[account.model]
                for account in ledger.accounts
                if account.caps
                and aside.get(account.model, 0.0)
                > max(0.0, min(dollars_of(cap.limit - cap.spent) for cap in account.caps))
            },
        )


def _set_aside(ledger: Ledger, rest: Remainder) -> dict[str, float]:
    """Return the USD that are set aside for the dearest call that is left of each model, by alias."""
    aside: dict[str, float] = {}
    for model in budgeted_models(rest.sweep, rest.models):
        account, longest = ledger.account_of(model.alias), rest.remaining[model.alias].longest
        if account is None or not longest:
            continue
        # the longest trial that is left under each condition; its id is not needed
        amounts = []
        for name, (source, i) in longest.items():
            trial = Trial(
                trial_id="",
                run=rest.sweep.name,
                sweep=rest.sweep.name,
                problem_set=source.problems.name,
                problem=source.problem(i),
                model=model,
                condition=rest.conditions_of(model)[name],
            )
            amounts.append(account.hold(request_for(trial), rest.at_s).amount)
        aside[model.alias] = dollars_of(max(amounts))
    return aside


def _cut(
    kind: str,
    plans: Sequence[ModelPlan],
    rest: Remainder,
    takes: Mapping[Outlook, Mapping[str, float]],
    bounds: Mapping[Outlook, Sequence[Bound]],
) -> Cut:
    by_outlook: dict[Outlook, tuple[StillAsked, ...]] = {}
    binding: dict[str, None] = {}
    for outlook in Outlook:
        share, names = shares(takes[outlook], bounds[outlook])
        binding |= dict.fromkeys(names)
        trials = {plan.model: int(share[plan.model] * plan.left + 1e-9) for plan in plans}
        by_outlook[outlook] = tuple(
            StillAsked(
                model=plan.model,
                left=plan.left,
                trials=trials[plan.model],
                per_cell=trials[plan.model] / max(1, rest.remaining[plan.model].cells),
            )
            for plan in plans
        )
    return Cut(
        kind=kind,
        left={bound.name: bound.amount for bound in bounds[Outlook.USUAL]},
        binding=tuple(binding),
        spent_up={},
        too_small={},
        usual=by_outlook[Outlook.USUAL],
        careful=by_outlook[Outlook.CAREFUL],
        guessed=tuple(plan.model for plan in plans if plan.guessed),
    )
