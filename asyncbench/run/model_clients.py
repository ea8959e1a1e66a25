"""Clients of the models of a run: their trials, the calls of their providers, and the record of both."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from os import environ

from asyncbench.config.sweep import Sweep
from asyncbench.engine.budget import Account
from asyncbench.engine.limits import Counting
from asyncbench.engine.model_client import UNKNOWN, ModelClient, TrialFeed
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ProviderError
from asyncbench.planning.budget_bounds import most_usd_of
from asyncbench.planning.preflight import secret_variables
from asyncbench.planning.skipping import Needed, stopping_of
from asyncbench.planning.trials import trials_of
from asyncbench.providers.credentials import Credentials, secrets_of
from asyncbench.providers.params import longest_reply_of
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import Provider, makes_own_calls, open_provider
from asyncbench.providers.workers.process import withhold_keys
from asyncbench.providers.workers.workers import WorkerProvider, Workers
from asyncbench.records import Condition, Grade, History, Model, Problem, Reply, Request, Trial
from asyncbench.run.refusals import Faults
from asyncbench.run.state import Run
from asyncbench.store.salvage import Salvage
from asyncbench.store.spending import KnownCosts
from asyncbench.suites.custom import is_slow
from asyncbench.suites.requests import characters, request_for
from asyncbench.suites.table import graded

# ── Clients of a run


def client_of(
    run: Run,
    model: Model,
    *,
    in_batches: Collection[str],
    simulator_url: str | None,
    lag: LoopLag,
    stack: AsyncExitStack,
) -> ModelClient:
    """Return the client of a model; `stack` closes its connections.

    `in_batches` are trials that earlier runs sent in batches: they are asked in no other way.
    """
    provider = None
    if not run.is_dealt(model):
        key, workers = run.keys[model.alias], run.workers.processes
        provider = opened_provider(model, key, simulator_url=simulator_url, workers=workers, stack=stack)
    before = run.money.costs_before.get(model.alias, KnownCosts())
    counters = Counters(
        planned=run.questions.planned(model),
        cost_before_usd=before.usd,
        unpriced_before=before.unknown_calls,
        grader_errors=run.earlier.ungraded[model.alias],
    )
    needed, earlier = None, run.earlier.before
    if run.sweep.stop_when is not None and earlier is not None:
        stopping = stopping_of(run.sweep.stop_when, earlier, run.salvage.keep, counters, time.time)
        needed = run.earlier.needed[model.alias] = Needed(before=earlier, stopping=stopping)
    return client_through(
        provider,
        run.sweep,
        model,
        counters=counters,
        lag=lag,
        records=RunRecords(run, model),
        feed=RunFeed(run, model, needed, counters, in_batches),
        account=None if run.money.ledger is None else run.money.ledger.account_of(model.alias),
        stopping=None if needed is None else needed.stopping,
        grading=run.grading,
    )


class RunFeed(TrialFeed):
    """The trials of a model that earlier runs left open."""

    __slots__ = ("_counters", "_in_batches", "_met", "_needed", "_run")

    def __init__(
        self,
        run: Run,
        model: Model,
        needed: Needed | None,
        counters: Counters,
        in_batches: Collection[str],
    ) -> None:
        self._run, self._needed, self._in_batches = run, needed, in_batches
        self._counters, self._met = counters, Counters()  # what earlier runs closed: another thread counts it
        closed = run.earlier.closed.get(model.alias)
        if closed is not None:
            self._met.done_before, self._met.failed_before = closed.done, closed.failed
            self.note_read()
        skip = partial(is_finished, run, self._met) if closed is None else lambda _: False
        trials = trials_of(
            run.sweep,
            model,
            run.questions.sets[model.alias],
            limit=run.options.limit,
            per_cell=run.options.pilot,
            closed=closed,
            skip=skip if needed is None else partial(needed.passes, skip),
            left_out=None if needed is None else needed.left_out,
            model_of=run.questions.room.model_of,
        )
        super().__init__(trials=trials)

    def note_read(self) -> None:
        """Show what was left out: a thread that a run leaves behind changes `_met` alone."""
        met = self._met
        self._counters.done_before, self._counters.failed_before = met.done_before, met.failed_before

    def history_of(self, trial: Trial) -> History | None:
        """Return a trial's history in earlier runs, or None if it is finished or in a batch."""
        if trial.trial_id in self._in_batches:
            return None
        history = self._run.store.histories.get(trial.trial_id, UNKNOWN)
        return history if self._needed is None or self._needed.holds(trial, history) else None


def is_finished(run: Run, counters: Counters, trial_id: str) -> bool:
    """Return whether a trial needs no call, and count it."""
    if trial_id not in run.store.finished:
        return False
    counters.done_before += 1
    counters.failed_before += trial_id in run.store.failed
    return True


# ── Clients of a run and of a worker of a cluster


def client_through(
    provider: Provider | None,
    sweep: Sweep,
    model: Model,
    *,
    counters: Counters,
    lag: LoopLag,
    records: "GradedRecords",
    feed: TrialFeed | None = None,
    account: Account | None = None,
    stopping: Stopping | None = None,
    grading: asyncio.Lock | None = None,
) -> ModelClient:
    """Return the client of a model, without a provider where other processes call it."""
    return ModelClient(
        model=model,
        counters=counters,
        feed=feed or TrialFeed(),
        calls=ProviderCalls(provider, sweep, model),
        records=records,
        stopping=stopping,
        account=account,
        counting=Counting(model.limits.counts),
        lag=lag,
        grading=grading or asyncio.Lock(),
        jitter=random.Random(),  # noqa: S311  spreads retries in time; guards nothing
        epoch_s=time.time() - asyncio.get_running_loop().time(),
    )


class ProviderCalls:
    """Makes the calls of one model through its provider."""

    request_for = staticmethod(request_for)
    characters = staticmethod(characters)

    def __init__(self, provider: Provider | None, sweep: Sweep, model: Model) -> None:
        self.timed_here = not isinstance(provider, WorkerProvider)
        self.ask = self._refuse if provider is None else provider.ask
        self.rates = rates_of(model)
        self.most_usd = most_usd_of(sweep, model)

    def longest(self, request: Request) -> int | None:
        """Return the most tokens of a reply, or None without a limit."""
        return longest_reply_of(request.trial.model, request.trial.condition)

    async def _refuse(self, _: Request) -> Reply:
        raise NotImplementedError("workers of a cluster ask this model")


class GradedRecords:
    """Grades the replies of one model, and keeps its events in a results folder."""

    def __init__(self, model: Model, salvage: Salvage, faults: Faults) -> None:
        self._model, self._faults = model, faults
        self.keep = salvage.keep

    is_slow = staticmethod(is_slow)

    def grade(self, problem: Problem, reply: Reply | None, condition: Condition) -> tuple[Grade, ...]:
        """Return the grades of a reply, the one that counts first."""
        return graded(problem, reply, condition, self.note_fault)

    def note_failure(self, error: ProviderError) -> None:
        """Do nothing: who rules a worker says what failed."""

    def note_suspension(self, reason: str) -> None:
        """Do nothing: who rules a worker says what stops."""

    def note_fault(self, error: Exception) -> None:
        """Write the traceback of a fault down."""
        self._faults.note(self._model.alias, error)


class RunRecords(GradedRecords):
    """Records of a model in a run, which says why its calls fail."""

    def __init__(self, run: Run, model: Model) -> None:
        super().__init__(model, run.salvage, run.faults)
        self._run = run

    def note_failure(self, error: ProviderError) -> None:
        """Say that a server cannot be reached, or that a function failed."""
        self._run.refusals.failed(self._model, error)

    def note_suspension(self, reason: str) -> None:
        """Say why a model stops."""
        self._run.refusals.stopped(self._model, reason)
        self._run.notifier.suspended(self._model.alias, reason)


# ── Connections and processes that make calls


def opened_provider(
    model: Model,
    key: Credentials,
    *,
    simulator_url: str | None,
    workers: Workers | None,
    stack: AsyncExitStack,
) -> Provider:
    """Return the provider that calls a model, here or in `workers`; `stack` closes its connections."""
    opening = open_provider if workers is None or makes_own_calls(model) else workers.provider
    provider = opening(model, key=key, simulator_url=simulator_url)
    stack.push_async_callback(provider.aclose)
    return provider


async def started_workers(
    count: int,
    sweep: Sweep,
    models: Sequence[Model],
    keys: Mapping[str, Credentials],
    *,
    notify: Callable[[str], None],
    stack: AsyncExitStack,
) -> Workers | None:
    """Start `count` processes that make calls; `stack` ends them. None: this process makes the calls."""
    if not count:
        return None
    environment = withhold_keys(environ, keys=secrets_of(keys.values()), named=secret_variables(sweep))
    workers = Workers(count, models, environment, notify=notify)
    return await stack.enter_async_context(workers.running())
