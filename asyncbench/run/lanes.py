"""Lanes of a run: one for each model or group, its batches or its load."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlsplit

from asyncbench.cluster.coordinator import Coordinator
from asyncbench.config.loading import Load
from asyncbench.config.sweep import Sweep
from asyncbench.engine.lane import Lane
from asyncbench.engine.model_client import ModelClient, TrialFeed
from asyncbench.engine.scheduler import AnyLane
from asyncbench.engine.telemetry import LoopLag
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.context import BatchAccount, BatchClock, BatchContext, EnqueuedPool
from asyncbench.lanes.batches.harvest import Harvest
from asyncbench.lanes.batches.lane import BatchLane
from asyncbench.lanes.batches.spending import LeftOpen
from asyncbench.lanes.batches.switching import BatchEnding
from asyncbench.lanes.load.earlier_steps import killed_steps, limits_before, steps_before
from asyncbench.lanes.load.open_lane import LoadLane
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import CLOSED_LOOP, StepsBefore, listed, steps_to_measure
from asyncbench.planning.belonging import questions_of_steps
from asyncbench.planning.traces import set_lengths, traces_of
from asyncbench.planning.trials import trials_of
from asyncbench.providers.provider import open_batches
from asyncbench.records import BATCH, REALTIME, Model, RetryPolicy, Trial
from asyncbench.run.model_clients import client_of
from asyncbench.run.state import Run

# ── Lanes of a load

WITHOUT_END: Final = 10**9  # repeats of the problems: a step takes as many as it needs


def load_of(sweep: Sweep, *, wanted: bool) -> Load | None:
    """Return the load of a run, or None for an ordinary run.

    Raises:
        ConfigError: the sweep is of the other kind.
    """
    if wanted and sweep.load is None:
        raise ConfigError(f"{sweep.name}: has no `load`. Set it in the sweep file, or type --rates 1,2,4")
    if not wanted and sweep.load is not None:
        raise ConfigError(f"{sweep.name}: has a `load`. Run it with `asyncbench load`, or remove it")
    return sweep.load


def models_under_load(models: Sequence[Model], load: Load | None) -> Sequence[Model]:
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
    """Yield cautions before the first call of a load; `written` are models as the sweep has them."""
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
        client.records.keep(step)
    search = None
    if load.find is not None:
        # It ends at the model's limit: above it every further call is refused.
        find, rpm = load.find, model.limits.rpm or limits_before(folder, model.alias).get("requests")
        if rpm is not None and not load.past_limits:
            find = replace(find, highest=min(find.highest, max(find.lowest, rpm / 60)))
        search = RateSearch(load=load, find=find, before=before)

    trace = traces_of(load, {model.alias: run.questions.sets[model.alias]}).get(model.alias)
    planned = steps_to_measure(load, run.sweep.repeats, before, trace=trace)

    def trials(step: str) -> Iterator[Trial]:
        asked = trials_of(
            replace(run.sweep, repeats=WITHOUT_END),
            model,
            run.questions.sets[model.alias],
            limit=run.options.limit,
            model_of=run.questions.room.model_of,
            load=step,
        )
        return asked if trace is None else set_lengths(asked)

    return LoadLane(
        name=model.alias,
        clients=[client],
        load=load,
        steps=listed(planned, before) if search is None else search.steps(),
        planned_steps=planned if search is None else None,
        search_text=None if search is None else partial(getattr, search, "text"),
        trials=trials,
        begun=before.calls,
        notify=run.screen.say,
        serial_group=model.turn,
    )


def loads_in(lanes: Sequence[AnyLane]) -> list[LoadLane]:
    """Return those lanes of a run that measure a load."""
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
        client = client_of(run, model, in_batches=out, simulator_url=url, lag=lag, stack=stack)
        if run.options.load is not None and run.sweep.load is not None:
            lanes.append(load_lane(run, client, run.sweep.load))
            continue
        account = accounts[model.provider, model.base_url, run.keys[model.alias].key]
        ends, in_batches = run.options.ends, model.mode == BATCH
        if not ends and not in_batches:
            grouped.setdefault(model.limits.group or model.alias, []).append(client)
        if ends or in_batches or leftover.done:
            # Where the mode was another one, what is out is collected, and asked in no other way.
            batched = client if in_batches and not ends else replace(client, feed=TrialFeed())
            lanes.append(_batch_lane(run, batched, leftover, account, url, stack))
    if coordinator is not None:
        return [*(coordinator.lane(name, clients) for name, clients in grouped.items()), *lanes]
    return [*(_call_lane(run, name, clients) for name, clients in grouped.items()), *lanes]


def _call_lane(run: Run, name: str, clients: list[ModelClient]) -> Lane:
    """Return the lane that asks the models of one group call by call."""
    return Lane(
        name=name,
        clients=clients,
        limits=clients[0].model.limits,
        notify=run.screen.say,
        serial_group=clients[0].model.turn,
    )


def _batch_lane(
    run: Run,
    client: ModelClient,
    leftover: LeftOpen,
    account: BatchAccount,
    simulator_url: str | None,
    stack: AsyncExitStack,
) -> BatchLane:
    """Return the lane that asks a model in batches, or collects those that earlier runs sent."""
    model, batching = client.model, run.sweep.batch
    clock = run.options.clock or BatchClock(_batch_speed(model))
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
            trials=_TrialSearch(run, model),
            finished=run.store.finished,
            saved=run.salvage.saved,
            done=dict(leftover.done),
        ),
        realtime=lambda rest: _call_lane(run, model.alias, [rest]),
        fail=run.salvage.fail,
        rounds=leftover.rounds if batching.fallback == REALTIME else Counter(),
        serial_group=model.turn,
        ending=BatchEnding(
            cancels=run.options.ends,
            detaches=run.options.detach or run.options.pilot is not None,
            switch=run.switches.get(model.alias),
        ),
    )


class _TrialSearch:
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


def _batch_speed(model: Model) -> float:
    """Return how many times faster than a provider's the batches of a simulator go."""
    played = cast("Mapping[str, Any]", model.params.get("simulate") or {}) if model.simulated else {}
    usual = OWN_SPEED if model.base_url is None else 1.0  # as a simulator of the run's own was started
    return float((played.get("batch") or {}).get("speedup", usual))
