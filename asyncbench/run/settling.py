"""The third part of a run: what it did not come to is counted, and what it skips is written down."""

import asyncio
from collections import Counter
from functools import partial

from asyncbench.engine.telemetry import Counters
from asyncbench.planning.skipping import settle as settle_stopped, unsettled
from asyncbench.planning.trials import trials_of
from asyncbench.run.askers import is_finished
from asyncbench.run.driving import Driven
from asyncbench.run.state import RunState


async def settle(run: RunState, driven: Driven) -> None:
    """Count what earlier runs finished; write down what is skipped, unless the run shall leave at once."""
    if run.options.load is not None:
        return
    if not run.closed:
        await asyncio.to_thread(_count_finished, run, driven)
    models = {
        model.alias: (model, needed.stopping)
        for model in run.models
        if (needed := run.needed.get(model.alias)) is not None and unsettled(needed.stopping)
    }
    if not models or (driven.scheduler.stopped and not driven.scheduler.overdue):
        return
    run.screen.say("working out which trials are skipped")
    run.before = None  # memory need not hold twice which trials there are
    for needed in run.needed.values():
        needed.forget()
    reopened = await settle_stopped(
        run.sweep,
        models,
        run.sets,
        limit=run.options.limit,
        per_cell=run.options.pilot,
        folder=run.store.folder,
        salvage=run.salvage,
    )
    if reopened:
        run.screen.say(
            f"{reopened:,} skipped trials are open again: with the new answers their cells no longer meet "
            "stop_when. Run again to ask them."
        )


def _count_finished(run: RunState, driven: Driven) -> None:
    """Count what earlier runs finished of that to which this one, ending early, did not come."""
    met = Counter({alias: counters.done_before for alias, counters in driven.counters.items()})
    options = run.options
    for asker in driven.askers:
        if met.total() >= len(run.store.finished):
            return  # of others nothing is finished
        if not asker.counters.open:
            continue
        model, before = asker.model, Counters()
        trials = trials_of(
            run.sweep,
            model,
            run.sets[model.alias],
            limit=options.limit,
            per_cell=options.pilot,
            skip=partial(_counted, run, before),
        )
        next(trials, None)  # all are skipped: none is made
        asker.counters.done_before = met[model.alias] = before.done_before
        asker.counters.failed_before = before.failed_before


def _counted(run: RunState, before: Counters, trial_id: str) -> bool:
    is_finished(run, before, trial_id)
    return True
