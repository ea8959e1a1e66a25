"""Lanes of a run: one for each model or group, its batches or its load; and the clients of their models."""

import asyncio
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from asyncbench.cluster.coordinator import Coordinator
from asyncbench.config.loading import Find, Load
from asyncbench.config.sweep import Sweep
from asyncbench.engine.lane import Lane
from asyncbench.engine.limits import Counting
from asyncbench.engine.model_client import ModelClient, MostUsd
from asyncbench.engine.scheduler import AnyLane
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.context import BatchAccount, BatchClock, BatchContext, EnqueuedPool
from asyncbench.lanes.batches.harvest import Harvest
from asyncbench.lanes.batches.lane import BatchLane
from asyncbench.lanes.batches.spending import LeftOpen
from asyncbench.lanes.batches.switching import BatchEnding
from asyncbench.lanes.load.measuring import killed_steps, limits_before, steps_before
from asyncbench.lanes.load.open_lane import LoadLane
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import CLOSED_LOOP, StepsBefore, listed, steps_to_measure
from asyncbench.planning.belonging import questions_of_steps
from asyncbench.planning.budget_bounds import most_usd_of
from asyncbench.planning.preflight import secret_variables
from asyncbench.planning.skipping import Needed, stopping_of
from asyncbench.planning.trials import trials_of
from asyncbench.providers.credentials import Credentials, secrets_of
from asyncbench.providers.params import longest_reply_of
from asyncbench.providers.prices import rates_of
from asyncbench.providers.provider import Provider, makes_own_calls, open_batches, open_provider
from asyncbench.providers.workers.process import without_keys
from asyncbench.providers.workers.workers import WorkerProvider, Workers
from asyncbench.records import BATCH, REALTIME, Event, History, Model, Reply, Request, RetryPolicy, Trial
from asyncbench.run.state import Run
from asyncbench.store.spending import KnownCosts
from asyncbench.suites.custom import is_slow
from asyncbench.suites.requests import characters, request_for
from asyncbench.suites.table import graded

# ── Clients: the trials of each model, and how they are sent, graded and kept


UNKNOWN = History()  # of a trial that no earlier run knows


def client_of(
    run: Run,
    model: Model,
    *,
    simulator_url: str | None,
    lag: LoopLag,
    stack: AsyncExitStack,
) -> ModelClient:
    """Return the client of a model; `stack` closes its connections."""
    provider = None
    if not run.is_dealt(model):
        key, workers = run.keys[model.alias], run.workers.processes
        provider = opened_provider(model, key, simulator_url=simulator_url, workers=workers, stack=stack)
    before = run.money.costs_before.get(model.alias, KnownCosts())
    counters = Counters(
        planned=run.questions.planned(model),
        cost_before_usd=before.usd,
        unpriced_before=before.unknown_calls,
    )
    met = Counters()  # what earlier runs closed, as far as that is known
    if (closed := run.earlier.closed.get(model.alias)) is not None:
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
        trials=open_trials(run, model, needed, met),
        history_of=partial(_history_of, run, needed),
        on_read=partial(_show_met, counters, met),
        grading=run.grading,
        on_failure=partial(run.refusals.failed, model),
        on_suspension=partial(_note_suspension, run, model),
        account=None if run.money.ledger is None else run.money.ledger.account_of(model.alias),
        stopping=None if needed is None else needed.stopping,
    )


def opened_provider(
    model: Model,
    key: Credentials,
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
    keys: Mapping[str, Credentials],
    *,
    notify: Callable[[str], None],
    stack: AsyncExitStack,
) -> Workers | None:
    """Begin so many processes that make calls, which `stack` ends; None: this process makes them."""
    if not count:
        return None
    environment = without_keys(os.environ, keys=secrets_of(keys.values()), named=secret_variables(sweep))
    workers = Workers(count, models, environment, notify=notify)
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
        times_calls=not isinstance(provider, WorkerProvider),
        grade=partial(graded, tell_fault=tell_fault),
        slow=is_slow,
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


def _note_suspension(run: Run, model: Model, reason: str) -> None:
    run.refusals.stopped(model, reason)
    run.notifier.suspended(model.alias, reason)


def _needed(run: Run, model: Model, counters: Counters) -> Needed | None:
    when = run.sweep.stop_when
    if when is None or run.earlier.before is None:
        return None
    stopping = stopping_of(when, run.earlier.before, run.salvage.keep, counters, time.time)
    run.earlier.needed[model.alias] = Needed(before=run.earlier.before, stopping=stopping)
    return run.earlier.needed[model.alias]


def open_trials(run: Run, model: Model, needed: Needed | None, met: Counters) -> Iterator[Trial]:
    """Return a model's unfinished trials; those that earlier runs closed are counted in `met`."""
    closed = run.earlier.closed.get(model.alias)
    skip = partial(is_finished, run, met) if closed is None else lambda _: False
    return trials_of(
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


def _history_of(run: Run, needed: Needed | None, trial: Trial) -> History | None:
    """Return what earlier runs know of a trial; None: it need not be asked."""
    history = run.store.histories.get(trial.trial_id, UNKNOWN)
    return history if needed is None or needed.holds(trial, history) else None


def _show_met(counters: Counters, met: Counters) -> None:
    """Show what was left out: a thread that a run leaves behind changes `met` alone."""
    counters.done_before, counters.failed_before = met.done_before, met.failed_before


def is_finished(run: Run, counters: Counters, trial_id: str) -> bool:
    """Return whether a trial needs no call, and count it."""
    if trial_id not in run.store.finished:
        return False
    counters.done_before += 1
    counters.failed_before += trial_id in run.store.failed
    return True


# ── Lanes of a load

WITHOUT_END: Final = 10**9  # repeats of the problems: a step takes as many as it needs


def load_of(sweep: Sweep, *, wanted: bool) -> Load | None:
    """Return the load that a run is to be; None: it is an ordinary one.

    Raises:
        ConfigError: the sweep is of the other kind.
    """
    if wanted and sweep.load is None:
        raise ConfigError(f"{sweep.name}: has no `load`. Set it in the sweep file, or type --rates 1,2,4")
    if not wanted and sweep.load is not None:
        raise ConfigError(f"{sweep.name}: has a `load`. Run it with `asyncbench load`, or remove it")
    return sweep.load


def as_loaded(models: Sequence[Model], load: Load | None) -> Sequence[Model]:
    """Return models as a load asks them: each call once, and as many in flight as are due."""
    if load is None:
        return models
    return [
        replace(
            model,
            retry=RetryPolicy(attempts=1),
            limits=replace(model.limits, most=load.max_in_flight, concurrency=None),
        )
        for model in models
    ]


def cautions_of_load(load: Load, models: Sequence[Model], written: Sequence[Model]) -> Iterator[str]:
    """Yield what is said of a load before its first call; `written` are models as the sweep has them."""
    for model in written:
        if (attempts := model.retry.attempts) not in (1, RetryPolicy().attempts):
            yield f"{model.alias}: `retry.attempts: {attempts}` does not hold: a load makes each call once"
    fewest = min(model.limits.most_in_flight for model in models)
    if fewest < load.max_in_flight:
        yield (
            f"this system allows {fewest:,} calls in flight to each model, not `max_in_flight` "
            f"({load.max_in_flight:,}): what is due beyond them is dropped. Raise the limit of open files "
            "(`ulimit -Hn`)"
        )
    if load.closed:
        yield CLOSED_LOOP


def steps_of(run: Run, model: Model, load: Load) -> StepsBefore:
    """Return the steps of a model that earlier runs began."""
    questions = questions_of_steps(run.sweep, load, model, run.questions.sets[model.alias])
    return steps_before(run.store.folder, model.alias, questions)


def load_lane(run: Run, client: ModelClient, load: Load) -> LoadLane:
    """Return the lane that measures the steps of one model."""
    model = client.model
    folder, before = run.store.folder, steps_of(run, model, load)
    for step in killed_steps(folder, model.alias, before):
        client.keep(step)
    finding = None
    if load.find is not None:
        finding = RateSearch(load=load, find=_within(load.find, model, load, folder), before=before)

    planned = steps_to_measure(load, run.sweep.repeats, before)

    def trials(step: str) -> Iterator[Trial]:
        return trials_of(
            replace(run.sweep, repeats=WITHOUT_END),
            model,
            run.questions.sets[model.alias],
            limit=run.options.limit,
            model_of=run.questions.room.model_of,
            load=step,
        )

    return LoadLane(
        name=model.alias,
        clients=[client],
        load=load,
        steps=listed(planned, before) if finding is None else finding.steps(),
        planned_steps=planned if finding is None else None,
        search_text=None if finding is None else partial(getattr, finding, "text"),
        trials=trials,
        begun=before.calls,
        notify=run.screen.say,
        serial_group=model.turn,
    )


def _within(find: Find, model: Model, load: Load, folder: Path) -> Find:
    """Return a search that ends at a model's limit: above it every further call is refused."""
    rpm = model.limits.rpm or limits_before(folder, model.alias).get("requests")
    if rpm is None or load.past_limits:
        return find
    return replace(find, highest=min(find.highest, max(find.lowest, rpm / 60)))


def loads_in(lanes: Sequence[AnyLane]) -> list[LoadLane]:
    """Return the lanes of a run that are loads."""
    return [lane for lane in lanes if isinstance(lane, LoadLane)]


def is_unfinished(lane: AnyLane, client: ModelClient) -> bool:
    """Return whether trials of a model are open, or a load of it has steps to measure."""
    return not lane.complete if isinstance(lane, LoadLane) else client.counters.open > 0


# ── Lanes of a sweep

OWN_SPEED: Final = 3600.0  # of the batches of a simulator that a run starts: an hour takes a second


def lanes_of(
    run: Run,
    urls: Mapping[str, str],
    lag: LoopLag,
    stack: AsyncExitStack,
    coordinator: Coordinator | None = None,
) -> list[AnyLane]:
    """Return the lanes of a run; `stack` closes their connections.

    `urls` are of the simulators that answer models, by alias. A coordinator gives those lanes to the workers
    of a cluster that are asked call by call.
    """
    grouped: dict[str, list[ModelClient]] = {}  # the models of a group together, every other by itself
    lanes: list[AnyLane] = []
    # Of all aliases: under another one the same model is asked the same trials.
    leftovers = run.batches.left_open.values()
    out = frozenset[str]().union(*(leftover.out | leftover.abandoned for leftover in leftovers))
    accounts: defaultdict[object, BatchAccount] = defaultdict(BatchAccount)
    for model in run.models:
        url, leftover = urls.get(model.alias), run.batches.left_open[model.alias]
        client = client_of(run, model, simulator_url=url, lag=lag, stack=stack)
        if run.options.load is not None and run.sweep.load is not None:
            lanes.append(load_lane(run, client, run.sweep.load))
            continue
        account = accounts[model.provider, model.base_url, run.keys[model.alias].key]
        if out:
            client.history_of = partial(_unless_out, out, client.history_of)
        ends, in_batches = run.options.ends, model.mode == BATCH
        if not ends and not in_batches:
            grouped.setdefault(model.limits.group or model.alias, []).append(client)
        if ends or in_batches or leftover.done:
            # Where the mode was another one, what is out is collected, and asked in no other way.
            batched = client if in_batches and not ends else replace(client, trials=iter(()))
            lanes.append(_batches(run, batched, leftover, account, url, stack))
    if coordinator is not None:
        return [*(coordinator.lane(name, clients) for name, clients in grouped.items()), *lanes]
    return [*(_own_lane(run, name, clients) for name, clients in grouped.items()), *lanes]


def _unless_out(
    out: Collection[str], history_of: Callable[[Trial], History | None], trial: Trial
) -> History | None:
    """Return what earlier runs know of a trial; None: it need not be asked, or is in a batch."""
    return None if trial.trial_id in out else history_of(trial)


def _own_lane(run: Run, name: str, clients: list[ModelClient]) -> Lane:
    return Lane(
        name=name,
        clients=clients,
        limits=clients[0].model.limits,
        notify=run.screen.say,
        serial_group=clients[0].model.turn,
    )


def _batches(
    run: Run,
    client: ModelClient,
    leftover: LeftOpen,
    account: BatchAccount,
    simulator_url: str | None,
    stack: AsyncExitStack,
) -> BatchLane:
    model, batching = client.model, run.sweep.batch
    clock = run.options.clock or BatchClock(_speed(model))
    api = open_batches(model, key=run.keys[model.alias], simulator_url=simulator_url, now=clock.now)
    stack.push_async_callback(api.aclose)

    # Prompt tokens are limited for each model, requests for all models of a key.
    pool = EnqueuedPool(batching.enqueued_tokens, in_tokens=api.uploads)
    context = BatchContext(
        alias=model.alias,
        api=api,
        ledger=run.batches.ledger,
        clock=clock,
        batching=batching,
        pool=account.pools.setdefault(model.model_id if api.uploads else "", pool),
        on_message=run.screen.say,
        suspend=client.suspend,
        shared=account,
        resubmit=run.options.resubmit,
        host=urlsplit(simulator_url or model.base_url or "").netloc or model.provider,
    )

    client.counters.in_batches += len(leftover.out)
    return BatchLane(
        name=f"{model.alias} (batches)",
        clients=[client],
        context=context,
        harvest=Harvest(
            context=context,
            trials=_Search(run, model),
            finished=run.store.finished,
            saved=run.salvage.saved,
            done=dict(leftover.done),
        ),
        realtime=lambda rest: _own_lane(run, model.alias, [rest]),
        fail=run.salvage.fail,
        rounds=leftover.rounds if batching.fallback == REALTIME else Counter(),
        serial_group=model.turn,
        ending=BatchEnding(
            cancels=run.options.ends,
            detaches=run.options.detach or run.options.pilot is not None,
            switch=run.switches.get(model.alias),
        ),
    )


class _Search:
    """Finds trials of a model by their ids, whatever this run was to ask.

    Parts are collected in about the order in which they were packed: each search goes on where the one before
    it ended, so that all of them together read the problems once or twice.
    """

    def __init__(self, run: Run, model: Model) -> None:
        self._wanted = set[str]()
        self._all = partial(
            trials_of,
            run.sweep,
            model,
            run.questions.sets[model.alias],
            limit=None,
            skip=lambda trial_id: trial_id not in self._wanted,
            model_of=run.questions.room.model_of,
        )
        self._rest: Iterator[Trial] = iter(())

    def __call__(self, ids: Collection[str]) -> list[Trial]:
        self._wanted, trials = set(ids), []
        for begin_again in (False, True):
            if begin_again and self._wanted:
                self._rest = self._all()
            while self._wanted and (trial := next(self._rest, None)) is not None:
                self._wanted.remove(trial.trial_id)
                trials.append(trial)
        return trials


def _speed(model: Model) -> float:
    """Return how many times faster a simulator's batches go: waits are so much shorter."""
    played = cast("Mapping[str, Any]", model.params.get("simulate") or {}) if model.simulated else {}
    usual = OWN_SPEED if model.base_url is None else 1.0  # as a simulator of the run's own was started
    return float((played.get("batch") or {}).get("speedup", usual))
