"""What the budgets and the deadline of a sweep leave of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from asyncbench.config import Sweep, seconds_left
from asyncbench.engine import Account, Cap, Ledger
from asyncbench.errors import ConfigError
from asyncbench.planning.cuts import Bound, StillAsked, binding, shares
from asyncbench.planning.outlook import Cut, ModelPlan, Outlook
from asyncbench.planning.remaining_trials import Left
from asyncbench.pricing import dollars_of
from asyncbench.prompting import request_for
from asyncbench.records import Model
from asyncbench.sweeps import check_budget, open_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLimits:
    """What a sweep may still spend, and how long it may still take."""

    ledger: Ledger | None  # None: there is no budget, or it cannot be told what is left of it
    within_s: float | None  # None: there is no deadline
    warnings: tuple[str, ...]  # what would keep a run from starting


def limits_of(sweep: Sweep, models: Sequence[Model]) -> SweepLimits:
    """Return what budgets and the deadline leave, as a run would find it that starts now.

    Raises:
        StoreError: the results folder cannot be read.
    """
    ledger, within_s, warnings = None, None, list[str]()
    try:
        check_budget(sweep, models)
    except ConfigError as error:  # a plan may ask before that is set
        warnings.append(f"a run with this budget is refused: {error}")
    try:
        ledger = open_ledger(sweep, sweep.out)
    except ConfigError as error:
        warnings.append(f"a run with this budget is refused: {error}")
    try:
        if sweep.deadline is not None:
            within_s = seconds_left(sweep.deadline, datetime.now().astimezone())
    except ConfigError as error:  # it may have passed while a pilot was asked
        within_s = 0.0
        warnings.append(str(error))
    return SweepLimits(ledger=ledger, within_s=within_s, warnings=tuple(warnings))


def cuts_of(
    limits: SweepLimits,
    models: Sequence[Model],
    plans: Sequence[ModelPlan],
    left: Mapping[str, Left],
    at_s: float,
) -> Iterator[Cut]:
    """Yield what the budgets, and what the deadline leaves.

    Args:
        limits: of the sweep.
        models, plans: those that are asked, in the same order.
        left: what is still to be asked of each, by alias.
        at_s: when it will be asked, for prices: UTC, seconds since 1970.
    """
    cells = {alias: one.cells for alias, one in left.items()}
    if limits.ledger is not None:
        aside = dict(_aside(limits.ledger, models, left, at_s))
        takes = {which: {one.model: one.cost_at(which) or 0.0 for one in plans} for which in Outlook}
        bounds = {which: _budgets(limits.ledger, plans, takes[which], aside) for which in Outlook}
        if bounds[Outlook.USUAL]:
            cut = _cut("budget", plans, cells, takes, bounds)
            yield replace(cut, spent_up=_spent_up(limits.ledger), too_small=_too_small(limits.ledger, aside))
    if limits.within_s is not None:
        lanes: dict[str, list[str]] = {}
        for one in plans:
            lanes.setdefault(one.group or one.model, []).append(one.model)
        within = [Bound(models=lane, most=limits.within_s, name="deadline") for lane in lanes.values()]
        takes = {which: {one.model: one.seconds_at(which) for one in plans} for which in Outlook}
        yield _cut("deadline", plans, cells, takes, dict.fromkeys(Outlook, within))


def _aside(
    ledger: Ledger, models: Sequence[Model], left: Mapping[str, Left], at_s: float
) -> Iterator[tuple[str, float]]:
    """Yield (alias, USD) that is set aside for the dearest call that is left of each model."""
    for model in models:
        account = ledger.account_of(model.alias)
        longest = left[model.alias].longest.values()
        if account is not None and longest:
            requests = (request_for(replace(trial, model=model)) for trial in longest)
            yield model.alias, dollars_of(max(account.hold(one, at_s).amount for one in requests))


def _budgets(
    ledger: Ledger,
    plans: Sequence[ModelPlan],
    takes: Mapping[str, float],
    aside: Mapping[str, float],
) -> list[Bound]:
    """Return the dollars that each budget has left; a model stops where its next call may cost more."""
    asked = {one.model: takes[one.model] / one.left for one in plans if one.left}
    spare = {alias: max(0.0, most - asked[alias]) for alias, most in aside.items()}
    under = {cap.name: [one.model for one in ledger.accounts if cap in one.caps] for cap in ledger.caps}
    return [
        Bound(
            models=under[cap.name],
            most=dollars_of(max(0, cap.limit - cap.spent)),
            name=_named(cap),
            spare=spare,
        )
        for cap in ledger.caps
        if {one.model for one in plans} & {*under[cap.name]}
    ]


def _named(cap: Cap) -> str:
    return f"budget of {cap.name}"


def _spent_up(ledger: Ledger) -> dict[str, tuple[float, float]]:
    """Return what was spent and the limit of those budgets of which nothing is left, USD."""
    return {
        _named(cap): (dollars_of(cap.spent), dollars_of(cap.limit))
        for cap in ledger.caps
        if cap.spent >= cap.limit
    }


def _too_small(ledger: Ledger, aside: Mapping[str, float]) -> dict[str, float]:
    """Return what would be set aside for a call of those models that are not asked another one."""

    def never(account: Account) -> bool:
        left = min(dollars_of(cap.limit - cap.spent) for cap in account.caps)
        return aside.get(account.model, 0.0) > max(0.0, left)

    return {one.model: aside[one.model] for one in ledger.accounts if one.caps and never(one)}


def _cut(
    kind: str,
    plans: Sequence[ModelPlan],
    cells: Mapping[str, int],
    takes: Mapping[Outlook, Mapping[str, float]],
    bounds: Mapping[Outlook, Sequence[Bound]],
) -> Cut:
    usual, careful = (
        tuple(_kept(one, share[one.model], cells[one.model]) for one in plans)
        for share in (shares(takes[which], bounds[which]) for which in Outlook)
    )
    return Cut(
        kind=kind,
        left={bound.name: bound.most for bound in bounds[Outlook.USUAL]},
        binding=tuple(
            dict.fromkeys(name for which in Outlook for name in binding(takes[which], bounds[which]))
        ),
        spent_up={},
        too_small={},
        usual=usual,
        careful=careful,
        guessed=tuple(one.model for one in plans if one.guessed),
    )


def _kept(one: ModelPlan, share: float, cells: int) -> StillAsked:
    trials = int(share * one.left + 1e-9)
    return StillAsked(
        model=one.model, left=one.left, trials=trials, per_cell=trials / cells if cells else 0.0
    )
