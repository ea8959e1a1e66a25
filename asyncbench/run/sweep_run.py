"""run_sweep() and run_load(): prepare, drive and sum up one run of a sweep."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from asyncbench.cluster.messages import Cluster
from asyncbench.config.entry import Place
from asyncbench.config.questions import sample_from
from asyncbench.config.run_entries import WorkersWanted
from asyncbench.config.sweep import AnySweep, load_sweep, replace_load
from asyncbench.engine.awake import deadlines_put_off
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import AsyncbenchError
from asyncbench.lanes.batches.status import part_statuses
from asyncbench.planning.belonging import extended
from asyncbench.planning.budget_bounds import unpriced
from asyncbench.planning.skipping import settle as settle_stopped, unsettled
from asyncbench.planning.trials import trials_of
from asyncbench.providers.unasked import watching_servers
from asyncbench.records import Outcome
from asyncbench.run.cautions import session_functions
from asyncbench.run.copying import finished_copy, give_up_copy
from asyncbench.run.driving import Driven, drivable, drive
from asyncbench.run.forecasting import rest_usd_of
from asyncbench.run.lanes import is_unfinished, loads_in
from asyncbench.run.model_clients import is_finished, started_workers
from asyncbench.run.opening import open_run
from asyncbench.run.options import RunOptions
from asyncbench.run.preparing import prepare
from asyncbench.run.progress import Screen, screen_for
from asyncbench.run.refusals import stop_lines
from asyncbench.run.state import OpenRun, Run
from asyncbench.run.summary import BudgetUse, Exit, Summary
from asyncbench.run.tracking import send_to_trackers
from asyncbench.store.manifest import planned as planned_in, simulated_note

# ── Counts of earlier runs and skipped trials


async def settle(run: Run, driven: Driven) -> None:
    """Count what earlier runs finished; write down what is skipped, unless the run shall leave at once."""
    if run.options.load is not None:
        return
    if not run.earlier.closed:
        await asyncio.to_thread(_count_finished_trials, run, driven)
    models = {
        model.alias: (model, needed.stopping)
        for model in run.models
        if (needed := run.earlier.needed.get(model.alias)) is not None and unsettled(needed.stopping)
    }
    if not models or (driven.scheduler.stopped and not driven.scheduler.overdue):
        return
    run.screen.say("working out which trials are skipped")
    run.earlier.forget()  # memory need not hold twice which trials there are
    reopened = await settle_stopped(
        run.sweep,
        models,
        run.questions.sets,
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


def _count_finished_trials(run: Run, driven: Driven) -> None:
    """Count finished trials that this run, which ended early, did not reach."""
    met = Counter({alias: counters.done_before for alias, counters in driven.counters.items()})
    for client in driven.clients:
        if met.total() >= len(run.store.finished):
            return  # of others nothing is finished
        if not client.counters.open:
            continue
        model, before = client.model, Counters()
        trials = trials_of(
            run.sweep,
            model,
            run.questions.sets[model.alias],
            limit=run.options.limit,
            per_cell=run.options.pilot,
            skip=partial(_count_and_skip, run, before),
        )
        next(trials, None)  # all are skipped: none is made
        client.counters.done_before = met[model.alias] = before.done_before
        client.counters.failed_before = before.failed_before


def _count_and_skip(run: Run, before: Counters, trial_id: str) -> bool:
    """Count a trial if it is finished; whatever it is, no trial is made of it."""
    is_finished(run, before, trial_id)
    return True


# ── Summary


async def sum_up(run: Run, driven: Driven) -> Summary:
    """Return the summary of a run. Its simulators must still be there, for they tell what they saw."""
    server_stats = [await asyncio.to_thread(simulator.stats) for simulator in driven.simulators]
    options, loads = run.options, loads_in(driven.scheduler.lanes)
    aliases = {model.alias for model in run.models}
    outside = [alias for alias in unpriced(run.sweep) if alias in aliases]
    ledger = run.money.ledger
    budget = None if ledger is None else BudgetUse(ledger=ledger, outside=outside)
    if budget is not None and options.load is None:
        budget = replace(budget, rest_usd=await asyncio.to_thread(rest_usd_of, run, budget))
    more_usd = budget.to_go_on if budget is not None and options.may_raise_budget else None
    names = {condition.name for condition in run.sweep.conditions}
    parts = part_statuses(run.batches.ledger, running=False, now=time.time())
    unread = [
        f"worker {name} died, and its journal cannot be read: what it may have cost counts as spent. Its "
        "answers count once a worker runs on its machine again. Until then a run asks them again."
        for name in run.workers.unread
    ]
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
        seen=server_stats,
        budget=budget,
        command=options.command(run.sweep, more_usd),
        in_session=bool(session_functions(run)),
        raises_budget=more_usd is not None,
        asked_again=bool(run.store.again),
        conditions=Counter(alias for _, alias, name in planned_in(run.store.manifest) if name in names),
        stops=[*stop_lines(run.models, driven.counters), *unread],
        batches=[batch_part for batch_part in parts if batch_part.open],
        limit=_limit_text(run, reached=not any(counters.open for counters in driven.counters.values())),
    )


def _limit_text(run: Run, *, reached: bool) -> str | None:
    """Return a sentence on the trials that the option `limit` left out, or None if it left out none."""
    limit, sets = run.options.limit, run.questions.sets.values()
    sizes = {sum(problem_set.rows for problem_set in sources) for sources in sets}
    if limit is None or limit >= max(sizes):
        return None
    typed, without = ("--limit {}", "--limit") if run.options.typed else ("limit={}", "limit")
    total = f"{max(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    each = " of each model" if len(run.models) > 1 else ""
    share = f"{limit:,} of {total} problems"
    share = f"reached: {share} asked{each}" if reached else f"allows {share}{each}"
    return f"{typed.format(limit)} {share}; run again without {without} for the rest"


def _causes(run: Run, driven: Driven) -> frozenset[Exit]:
    """Return why a run ended before all was done, or a load before all its steps were measured.

    If it was to leave batches, those that are sent are done.
    """
    scheduler, causes, is_load = driven.scheduler, set[Exit](), run.options.load is not None
    going = [(lane, client) for lane in scheduler.lanes for client in lane.clients]
    unfinished = [client.counters for lane, client in going if is_unfinished(lane, client)]
    if scheduler.overdue and unfinished:
        causes.add(Exit.DEADLINE)
    elif scheduler.stopped and not scheduler.overdue and not run.workers.failed:
        causes.add(Exit.INTERRUPTED)
    if any(counters.budget_stopped for counters in unfinished):
        causes.add(Exit.BUDGET)
    if run.workers.unread or (is_load and unfinished):
        causes.add(Exit.UNFINISHED)
    sent = set[str]()
    if run.options.detach or run.options.pilot is not None:
        parts = run.batches.ledger.parts.values()
        sent = {batch_part.alias for batch_part in parts if batch_part.open and not batch_part.unsent}
    for alias, counters in driven.counters.items():
        lacks = not is_load and not counters.complete
        if counters.grader_errors:  # the replies are kept, but not what they are worth
            causes.add(Exit.UNFINISHED)
        if lacks and (alias not in sent or counters.failed or counters.suspended is not None):
            causes.add(Exit.UNFINISHED)
    return frozenset(causes)


# ── A run of a sweep or of a load


async def run_sweep(
    sweep: AnySweep,
    *,
    limit: int | None = None,
    sample: int | Mapping[str, object] | None = None,
    pilot: int | None = None,
    models: Sequence[str] | None = None,
    mode: str | None = None,
    detach: bool = False,
    budget_usd: float | None = None,
    retry: Collection[Outcome] = (),
    max_tokens: int | None = None,
    reuse: Path | str | Sequence[Path | str] = (),
    ignore: Collection[str] = (),
    accept_loss: bool = False,
    extend: bool = False,
    resubmit: Collection[str] = (),
    workers: WorkersWanted | None = None,
    ray: str | None = None,
    journal: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    progress: bool | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Run a sweep and write the results to its folder. If it was interrupted, continue where it stopped.

        summary = asyncio.run(ab.run_sweep("night.yaml", budget_usd=5))  # in a notebook: await it
        print(summary.exit, summary.as_text())

    A finished trial is never asked again. Ctrl-C stops a run and keeps all answers.

    Args:
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        limit: ask each model at most this many problems; of a sample, its first ones. [all]
        sample: ask so many problems of each set, drawn at random: 200, or a mapping such as
            `{"size": 200, "seed": 7, "by": "task"}`. The same for every model. [as the sweep says]
        pilot: ask each model at most this many problems of each task and length, once, for `plan`. [none]
        models: the aliases of the models to ask. [all]
        mode: how these models are asked: `realtime`, `batch` or `auto`. [as the sweep says of each]
        detach: return once all batches are sent. A later run collects their answers. [False]
        budget_usd: the most that all calls of the folder may cost, in USD, earlier runs too. [the sweep's]
        retry: ask the trials with these outcomes again: `failed`, `no_answer`, `truncated` or `refused`. An
            old answer stays if the new call fails. [none]
        max_tokens: the longest reply, in tokens, of `truncated` trials that are asked again. [the sweep's]
        reuse: a results folder, or several in order, whose complete answers are copied at no cost. [none]
        ignore: `["max_tokens"]`: with `reuse`, also copy answers that had another limit. [none]
        accept_loss: ask trials again whose files the folder lost. What they cost still counts. [False]
        extend: add the sweep to the one that its folder holds, and ask both. [False]
        resubmit: keys of parts of which nobody knows whether they were sent. They are sent again if nobody
            finds their batch, and perhaps paid twice. [none]
        workers: the number of processes that make the calls; 0: this one; `auto`: one fewer than there are
            cores. [the sweep's, else 0]
        ray: the address of a Ray cluster whose workers ask; "": the usual one. [no cluster]
        journal: where on this machine results are kept that go to a bucket. [in the user's state folder]
        env: where API keys are looked up, by variable name. [this process's environment]
        progress: show the progress. [on a terminal and in a notebook]
        screen: an object of your own that shows the progress instead. [none]

    Returns:
        A `Summary`: counters for each model, USD, seconds and the exit code.

    Raises:
        ConfigError: The sweep or an argument is wrong, or a key is missing. Nothing was spent.
        ProblemSetError: A problem set cannot be used. Nothing was spent.
        StoreError: Results cannot be written, or another run uses the folder. What was written stays.
    """
    options = RunOptions(
        limit=limit,
        sample=None if sample is None else sample_from(sample, place=Place(source="sample")),
        pilot=pilot,
        models=models,
        mode=mode,
        detach=detach,
        budget_usd=budget_usd,
        retry=retry,
        max_tokens=max_tokens,
        reuse=tuple(map(Path, (reuse,) if isinstance(reuse, str | Path) else reuse or ())),
        ignore=ignore,
        accept_loss=accept_loss,
        extend=extend,
        resubmit=resubmit,
        workers=workers,
        ray=ray,
        journal=None if journal is None else Path(journal),
    )
    sweep = await asyncio.to_thread(extended, load_sweep(sweep)) if extend else sweep
    return await run_with_options(sweep, options, env=env, screen=screen or screen_for(progress))


async def run_load(
    sweep: AnySweep,
    *,
    load: Mapping[str, object] | None = None,
    models: Sequence[str] | None = None,
    budget_usd: float | None = None,
    workers: WorkersWanted | None = None,
    journal: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    progress: bool | None = None,
    screen: Screen | None = None,
) -> Summary:
    """Send calls at drawn times, step by step, and measure what the models deliver.

        summary = asyncio.run(ab.run_load("night.yaml", load={"rates": [1, 2, 4], "duration": "60s"}))

    A step that an earlier run measured is not measured again.

    Args:
        sweep: the path of a sweep file, a dict with its keys, or a `Sweep`.
        load: keys of `load` that replace those of the sweep. [the sweep's own]
        models: the aliases of the models to load. [all]
        budget_usd: the most that all calls of the folder may cost, in USD, earlier runs too. [the sweep's]
        workers: the number of processes that make the calls; 0: this one; `auto`: one fewer than there are
            cores. [the sweep's, else 0]
        journal: where on this machine results are kept that go to a bucket. [in the user's state folder]
        env: where API keys are looked up, by variable name. [this process's environment]
        progress: show the progress. [on a terminal and in a notebook]
        screen: an object of your own that shows the progress instead. [none]

    Returns:
        A `Summary`, whose `steps` are those that were measured.

    Raises:
        ConfigError: The load or an argument is wrong, or a key is missing. Nothing was spent.
        ProblemSetError: A problem set cannot be used. Nothing was spent.
        StoreError: Results cannot be written, or another run uses the folder. What was written stays.
    """
    loaded = replace_load(sweep, load, place=Place(source="load")) if load else load_sweep(sweep)
    journal_path = None if journal is None else Path(journal)
    options = RunOptions(models=models, budget_usd=budget_usd, workers=workers, journal=journal_path, load=())
    return await run_with_options(loaded, options, env=env, screen=screen or screen_for(progress))


async def run_with_options(
    sweep: AnySweep,
    options: RunOptions,
    *,
    env: Mapping[str, str] | None = None,
    screen: Screen | None = None,
    cluster: Cluster | None = None,
) -> Summary:
    """Do what `run_sweep` does, which says what the arguments are and what is raised.

    Workers of a cluster, if one is given, ask what is asked call by call.
    """
    began_at = datetime.now(UTC)
    opened = await open_run(sweep, options, env=env, screen=screen, cluster=cluster)
    async with opened.notifier.until_the_end():
        async with let_go(opened), AsyncExitStack() as stack:
            stack.enter_context(watching_servers(opened.screen.say))
            stack.enter_context(deadlines_put_off())
            if not opened.store.finished:  # otherwise perhaps nothing is to be asked
                await _start_workers(opened, stack)  # before all else: importing takes them a while
            run = await prepare(opened)
            if not run.is_complete:
                await _start_workers(run, stack)
            async with drivable(run) as driven:
                await drive(run, driven)
                await settle(run, driven)
                summary = run.notifier.summary = await sum_up(run, driven)
        summary = run.notifier.summary = await finished_copy(run, summary)
        await send_to_trackers(opened.sweep, summary, began_at, opened.screen.say)
    return summary


async def _start_workers(run: OpenRun, stack: AsyncExitStack) -> None:
    """Start the processes that make calls, unless they were started before."""
    run.workers.processes = run.workers.processes or await started_workers(
        run.process_count, run.sweep, run.models, run.keys, notify=run.screen.say, stack=stack
    )


@asynccontextmanager
async def let_go(run: OpenRun) -> AsyncIterator[None]:
    """Close the results folder after the body; where it fails, raise its cause."""
    try:
        try:
            yield
        except BaseExceptionGroup as errors:
            raise first_cause(errors) from None
        finally:
            await asyncio.to_thread(run.salvage.close)
    except BaseException:
        await give_up_copy(run.copy, run.screen.say)
        raise


def first_cause(errors: BaseExceptionGroup) -> BaseException:
    """Return the error to show a user: a full disk is one cause, however many tasks met it.

    An error that is none of ours is a bug, and never hidden behind one that is.
    """
    ours, bugs = errors.split(AsyncbenchError)
    if ours is None or bugs is not None:
        return errors
    first = ours.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first
