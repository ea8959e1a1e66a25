"""Model clients of a run: the trials of each model, and how they are sent, graded and kept."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from asyncbench.config.sweep import Sweep
from asyncbench.engine.limits import Counting
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.engine.trial_queue import ModelClient, MostUsd
from asyncbench.planning.budget_bounds import most_usd_of
from asyncbench.planning.grading import graded
from asyncbench.planning.preflight import secret_variables
from asyncbench.planning.skipping import Needed, stopping_of
from asyncbench.planning.trials import trials_of
from asyncbench.providers.params import longest_reply_of
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import Provider, makes_own_calls, open_provider
from asyncbench.providers.workers.process import without_keys
from asyncbench.providers.workers.workers import Workers
from asyncbench.records import Event, History, Model, Reply, Request, Trial
from asyncbench.run.state import RunState
from asyncbench.store.spending import KnownCosts
from asyncbench.suites.custom import is_own
from asyncbench.suites.requests import characters, request_for

UNKNOWN = History()  # of a trial that no earlier run knows
NO_COSTS = KnownCosts()


def client_of(
    run: RunState,
    model: Model,
    *,
    simulator_url: str | None,
    lag: LoopLag,
    stack: AsyncExitStack,
) -> ModelClient:
    """Return the client of a model; `stack` closes its connections."""
    provider = None
    if not run.is_dealt(model):
        key, workers = run.keys[model.alias], run.workers
        provider = opened_provider(model, key, simulator_url=simulator_url, workers=workers, stack=stack)
    before = run.costs_before.get(model.alias, NO_COSTS)
    counters = Counters(
        planned=run.planned(model), cost_before_usd=before.usd, unpriced_before=before.unknown_calls
    )
    met = Counters()  # what earlier runs closed, as far as that is known
    if (closed := run.closed.get(model.alias)) is not None:
        met.done_before, met.failed_before = closed.done, closed.failed
        _show_met(counters, met)
    needed = _needed(run, model, counters)
    return replace(
        client_through(
            provider,
            model,
            most_usd=most_usd_of(run.sweep, model),
            counters=counters,
            lag=lag,
            keep=run.salvage.keep,
            tell_fault=partial(run.faults.note, model.alias),
        ),
        trials=_trials(run, model, needed, met),
        history_of=partial(_history_of, run, needed),
        on_read=partial(_show_met, counters, met),
        grading=run.grading,
        on_failure=partial(run.refusals.failed, model),
        on_suspension=partial(_note_suspension, run, model),
        account=None if run.ledger is None else run.ledger.account_of(model.alias),
        stopping=None if needed is None else needed.stopping,
    )


def opened_provider(
    model: Model,
    key: str,
    *,
    simulator_url: str | None,
    workers: Workers | None,
    stack: AsyncExitStack,
) -> Provider:
    """Return what calls a model, in this process or in `workers`; `stack` closes its connections."""
    opening = open_provider if workers is None or makes_own_calls(model) else workers.provider
    provider = opening(model, key=key, simulator_url=simulator_url)
    stack.push_async_callback(provider.aclose)
    return provider


async def started_workers(
    count: int,
    sweep: Sweep,
    models: Sequence[Model],
    keys: Mapping[str, str],
    *,
    lag: LoopLag,
    notify: Callable[[str], None],
    stack: AsyncExitStack,
) -> Workers | None:
    """Start so many processes that make calls, which `stack` ends; None: this process makes them."""
    if not count:
        return None
    environment = without_keys(os.environ, keys=keys.values(), named=secret_variables(sweep))
    workers = Workers(count, models, environment, notify=notify)
    lag.others = workers.lateness
    return await stack.enter_async_context(workers.running())


async def _elsewhere(_: Request) -> Reply:
    """Be what asks a model that others ask: nobody calls it."""
    raise NotImplementedError


def client_through(
    provider: Provider | None,
    model: Model,
    *,
    most_usd: MostUsd,
    counters: Counters,
    lag: LoopLag,
    keep: Callable[[Event], None],
    tell_fault: Callable[[Exception], None],
) -> ModelClient:
    """Return the client of a model; it has no trials yet, and no budget. Without a provider others call."""
    return ModelClient(
        model=model,
        trials=iter(()),
        history_of=lambda _: UNKNOWN,
        request_for=request_for,
        ask=_elsewhere if provider is None else provider.ask,
        grade=partial(graded, tell_fault=tell_fault),
        slow=is_own,
        on_fault=tell_fault,
        keep=keep,
        characters=characters,
        longest=lambda request: longest_reply_of(request.trial.model, request.trial.condition),
        rates=rates_of(model),
        counters=counters,
        lag=lag,
        epoch_s=time.time() - asyncio.get_running_loop().time(),
        jitter=random.Random(),  # noqa: S311  spreads retries in time; guards nothing
        counting=Counting(model.limits.counts),
        most_usd=most_usd,
    )


def _note_suspension(run: RunState, model: Model, reason: str) -> None:
    run.refusals.stopped(model, reason)
    run.notifier.suspended(model.alias, reason)


def _needed(run: RunState, model: Model, counters: Counters) -> Needed | None:
    when = run.sweep.stop_when
    if when is None or run.before is None:
        return None
    stopping = stopping_of(when, run.before, run.salvage.keep, counters, time.time)
    run.needed[model.alias] = Needed(before=run.before, stopping=stopping)
    return run.needed[model.alias]


def _trials(run: RunState, model: Model, needed: Needed | None, met: Counters) -> Iterator[Trial]:
    """Return a model's unfinished trials; those that earlier runs closed are counted in `met`."""
    closed = run.closed.get(model.alias)
    skip = partial(is_finished, run, met) if closed is None else lambda _: False
    return trials_of(
        run.sweep,
        model,
        run.sets[model.alias],
        limit=run.options.limit,
        per_cell=run.options.pilot,
        closed=closed,
        skip=skip if needed is None else partial(needed.passes, skip),
        left_out=None if needed is None else needed.left_out,
        model_of=run.room.model_of,
    )


def _history_of(run: RunState, needed: Needed | None, trial: Trial) -> History | None:
    """Return what earlier runs know of a trial; None: it need not be asked."""
    history = run.store.histories.get(trial.trial_id, UNKNOWN)
    return history if needed is None or needed.holds(trial, history) else None


def _show_met(counters: Counters, met: Counters) -> None:
    """Show what was left out: a thread that a run leaves behind changes `met` alone."""
    counters.done_before, counters.failed_before = met.done_before, met.failed_before


def is_finished(run: RunState, counters: Counters, trial_id: str) -> bool:
    """Return whether a trial needs no call, and count it."""
    if trial_id not in run.store.finished:
        return False
    counters.done_before += 1
    counters.failed_before += trial_id in run.store.failed
    return True
