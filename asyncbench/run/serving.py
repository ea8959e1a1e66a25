"""Servers that a run starts, where trials of their models are open."""

import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Final

from asyncbench.engine.scheduler import AnyLane
from asyncbench.engine.trial_queue import ModelClient
from asyncbench.lanes.load.open_lane import LoadLane
from asyncbench.lanes.load.resuming import steps_before
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import to_measure
from asyncbench.planning.belonging import questions_of_steps
from asyncbench.planning.trials import trials_of
from asyncbench.records import Model
from asyncbench.run.refusals import SERVER_ENDED
from asyncbench.run.servers import StartedServer, running_servers
from asyncbench.run.state import RunState

LOGS: Final = "servers"  # of a results folder: what servers wrote


async def start_servers(run: RunState, stack: AsyncExitStack) -> list[StartedServer]:
    """Start the servers that are needed, and wait until they are ready; `stack` stops them.

    Raises:
        ConfigError: one of them is not to be had. Nothing was asked.
    """
    began_s = time.monotonic()
    models = [model for model in run.models if model.serve is not None and _is_asked(run, model)]
    servers = await stack.enter_async_context(
        running_servers(models, run.store.folder / LOGS, notify=run.screen.say, within_s=run.within_s)
    )
    if run.within_s is not None:
        run.within_s = max(0.0, run.within_s - (time.monotonic() - began_s))
    return servers


def _is_asked(run: RunState, model: Model) -> bool:
    """Return whether anything is left to ask of a model, as far as can be told now."""
    options, load = run.options, run.sweep.load
    if options.ends:
        return False
    if options.load is not None and load is not None:
        questions = questions_of_steps(run.sweep, load, model, run.sets[model.alias])
        before = steps_before(run.store.folder, model.alias, questions)
        if load.find is not None:
            return not RateSearch(load=load, find=load.find, before=before).is_over
        return any(True for _ in to_measure(load, run.sweep.repeats, before))
    open_trials = trials_of(
        run.sweep,
        model,
        run.sets[model.alias],
        limit=options.limit,
        per_cell=options.pilot,
        closed=(closed := run.closed.get(model.alias)),
        skip=run.store.finished.__contains__ if closed is None else lambda _: False,
        model_of=run.room.model_of,
    )
    return next(open_trials, None) is not None


async def watch(run: RunState, server: StartedServer, lanes: Iterable[AnyLane]) -> None:
    """Give up the models of a server that ends while they are asked; without it no call can succeed."""
    how = await server.ended()
    unfinished = [
        (lane, client)
        for lane in lanes
        for client in lane.clients
        if client.model.alias in server.aliases and _unfinished(lane, client)
    ]
    for lane, client in unfinished:
        if client.counters.suspended is None:
            client.counters.suspended = f"{SERVER_ENDED}: the server that the run started {how}; {server.log}"
            client.on_suspension(client.counters.suspended)
        if all(other.counters.over for other in lane.clients):
            lane.stop()
    if unfinished:
        run.screen.say("The log of the server ends:")
        for line in server.last_lines():
            run.screen.say(line)


def _unfinished(lane: AnyLane, client: ModelClient) -> bool:
    return not lane.complete if isinstance(lane, LoadLane) else client.counters.open > 0
