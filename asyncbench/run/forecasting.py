"""Forecasts that a run makes itself: one that reports judge later, the rest's cost, and time for batches.

A forecast of a large sweep would hold up its first call, so beyond `FORECAST_UNASKED` trials there is none.
"""

import time
from collections.abc import Collection, Sequence

from asyncbench.errors import StoreError
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.lanes.batches.switching import Switch
from asyncbench.planning.forecast_file import is_already_forecast, keep_forecast, read_forecasts
from asyncbench.planning.guesses import prices_of, rates_asked
from asyncbench.planning.modes import has_mode_auto
from asyncbench.planning.records import Outlook, total
from asyncbench.planning.report import Plan
from asyncbench.planning.sweep_plan import plan_of
from asyncbench.records import BATCH, Model
from asyncbench.run.state import Run
from asyncbench.run.summary import BudgetUse
from asyncbench.store.catalog import known_trials

FORECAST_UNASKED = 30_000  # trials of a sweep, or finished


def write_forecast(run: Run) -> None:
    """Write down what is expected, for a report to judge by, unless the folder has that forecast."""
    planned = {model.alias: run.questions.planned(model) for model in run.models}
    if max(sum(planned.values()), len(run.store.finished)) > FORECAST_UNASKED:
        return
    try:
        before, now = read_forecasts(run.store.folder), time.time()
        for model in run.models:
            rates = (rates_asked(model, condition, now) for condition in run.sweep.conditions_of(model.alias))
            trials, prices, limit = planned[model.alias], prices_of(rates), run.options.limit
            if not is_already_forecast(before, model.alias, limit=limit, trials=trials, prices=prices):
                forecast = _quick_plan(run, run.models, run.store.finished)
                keep_forecast(forecast, run.store.folder, by="run")
                return
    except StoreError as error:
        run.screen.say(f"no forecast is kept: {error}")


def rest_usd_of(run: Run, use: BudgetUse) -> float | None:
    """Return the cost of the rest at the 95th percentile, USD, where the sweep's budget stopped the run.

    None where no budget stopped the run, too few replies tell it, or it would take too long to work out.
    """
    options = run.options
    if use.to_go_on is None or not options.may_raise_budget or options.pilot is not None or run.store.again:
        return None
    if sum(map(run.questions.planned, run.models)) > FORECAST_UNASKED:
        return None
    forecast = _quick_plan(run, run.models, known_trials(run.store.folder).finished)
    budgeted = {account.model for account in use.ledger.accounts}
    return total(
        None if plan.guessed else plan.cost_at(Outlook.CAREFUL)
        for plan in forecast.models
        if plan.left and plan.model in budgeted
    )


def switches_of(run: Run) -> dict[str, Switch]:
    """Return when models leave batches for real time to meet the deadline, by alias, where they do."""
    models = [model for model in run.models if model.mode == BATCH and has_mode_auto(run.sweep, model.alias)]
    if run.within_s is None or not models:
        return {}
    ends_at = (run.options.clock or BatchClock()).now() + run.within_s
    return {
        plan.model: Switch(
            ends_at=ends_at,
            trials=plan.left,
            trial_s=plan.batches.realtime_s / (plan.left or 1),
            trial_usd=None
            if plan.batches.realtime_usd is None
            else plan.batches.realtime_usd / (plan.left or 1),
        )
        for plan in _quick_plan(run, models, run.store.finished).models
        if plan.batches is not None
    }


def _quick_plan(run: Run, models: Sequence[Model], finished: Collection[str]) -> Plan:
    """Return a plan of a run that has begun, without the parts that take long to work out."""
    return plan_of(
        run.sweep,
        models,
        run.questions.sets,
        limit=run.options.limit,
        finished=finished,
        begun=True,
        quick=True,
    )
