"""Sum up a run: its counts and causes, and the next command."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from asyncbench.engine.telemetry import Counters
from asyncbench.lanes.batches.status import part_statuses
from asyncbench.planning.budget_bounds import unpriced
from asyncbench.planning.skipping import settle as settle_stopped, unsettled
from asyncbench.planning.trials import trials_of
from asyncbench.run.driving import Driven
from asyncbench.run.forecasts import rest_usd_of
from asyncbench.run.lanes import is_unfinished, loads_in
from asyncbench.run.model_clients import is_finished
from asyncbench.run.refusals import stop_lines
from asyncbench.run.state import RunState
from asyncbench.run.summary import BudgetUse, Exit, Summary
from asyncbench.store.manifest import planned as planned_in, simulated_note

# ── Counts of earlier runs and skipped trials


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
    for client in driven.clients:
        if met.total() >= len(run.store.finished):
            return  # of others nothing is finished
        if not client.counters.open:
            continue
        model, before = client.model, Counters()
        trials = trials_of(
            run.sweep,
            model,
            run.sets[model.alias],
            limit=options.limit,
            per_cell=options.pilot,
            skip=partial(_counted, run, before),
        )
        next(trials, None)  # all are skipped: none is made
        client.counters.done_before = met[model.alias] = before.done_before
        client.counters.failed_before = before.failed_before


def _counted(run: RunState, before: Counters, trial_id: str) -> bool:
    is_finished(run, before, trial_id)
    return True


# ── Summary


async def sum_up(run: RunState, driven: Driven) -> Summary:
    """Return what a run did, while its simulators still answer."""
    seen = [await asyncio.to_thread(simulator.stats) for simulator in driven.simulators]
    options, loads = run.options, loads_in(driven.scheduler.lanes)
    aliases = {model.alias for model in run.models}
    outside = [alias for alias in unpriced(run.sweep) if alias in aliases]
    budget = None if run.ledger is None else BudgetUse(ledger=run.ledger, outside=outside)
    if budget is not None and options.load is None:
        budget = replace(budget, rest_usd=await asyncio.to_thread(rest_usd_of, run, budget))
    more_usd = budget.to_go_on if budget is not None and options.may_raise_budget else None
    names = {condition.name for condition in run.sweep.conditions}
    return Summary(
        sweep=run.sweep.name,
        out=run.sweep.out,
        models=driven.counters,
        causes=_causes(run, driven),
        steps=None if options.load is None else [step for lane in loads for step in lane.results],
        found={lane.name: lane.search_text() for lane in loads if lane.search_text is not None},
        seconds=time.monotonic() - run.started_s,
        simulated=any(model.simulated for model in run.models),
        simulated_note=simulated_note(run.store.manifest),
        seen=seen,
        budget=budget,
        command=options.command(run.sweep, more_usd),
        raises_budget=more_usd is not None,
        asked_again=bool(run.store.again),
        conditions=Counter(alias for _, alias, name in planned_in(run.store.manifest) if name in names),
        stops=[*stop_lines(run.models, driven.counters), *_unread(run)],
        batches=[part for part in part_statuses(run.batches, running=False, now=time.time()) if part.open],
        limit=_limit_text(run, reached=not any(counters.open for counters in driven.counters.values())),
    )


def _unread(run: RunState) -> Iterator[str]:
    """Yield whose answers are on machines that nobody can read now."""
    for name in run.unread_workers:
        yield (
            f"worker {name} died, and its journal cannot be read: what it may have cost counts as spent. Its "
            "answers count once a worker runs on its machine again. Until then a run asks them again."
        )


def _limit_text(run: RunState, *, reached: bool) -> str | None:
    """Return what the option `limit` left out; None: nothing."""
    limit, sets = run.options.limit, run.sets.values()
    problems = {sum(problem_set.rows for problem_set in of_model) for of_model in sets}
    if limit is None or limit >= max(problems):
        return None
    typed, without = ("--limit {}", "--limit") if run.options.typed else ("limit={}", "limit")
    few, most = min(problems), max(problems)
    of = f"{most:,}" if few == most else f"{few:,} to {most:,}"
    each = " of each model" if len(run.models) > 1 else ""
    share = f"{limit:,} of {of} problems"
    share = f"reached: {share} asked{each}" if reached else f"allows {share}{each}"
    return f"{typed.format(limit)} {share}; run again without {without} for the rest"


def _causes(run: RunState, driven: Driven) -> frozenset[Exit]:
    """Return why a run ended before all was done, or a load before all its steps were measured.

    If it was to leave batches, those that are sent are done.
    """
    scheduler, causes, is_load = driven.scheduler, set[Exit](), run.options.load is not None
    going = [(lane, client) for lane in scheduler.lanes for client in lane.clients]
    unfinished = [client.counters for lane, client in going if is_unfinished(lane, client)]
    if scheduler.overdue and unfinished:
        causes.add(Exit.DEADLINE)
    elif scheduler.stopped and not scheduler.overdue and not run.workers_failed:
        causes.add(Exit.INTERRUPTED)
    if any(counters.budget_stopped for counters in unfinished):
        causes.add(Exit.BUDGET)
    if run.unread_workers or (is_load and unfinished):
        causes.add(Exit.UNFINISHED)
    sent = {part.alias for part in run.batches.parts.values() if part.open and not part.unsent}
    sent = sent if run.options.detach or run.options.pilot is not None else set()
    for alias, counters in driven.counters.items():
        lacks = not is_load and not counters.complete
        if lacks and (alias not in sent or counters.failed or counters.suspended is not None):
            causes.add(Exit.UNFINISHED)
    return frozenset(causes)
