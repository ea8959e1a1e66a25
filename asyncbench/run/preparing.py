"""Prepare a run: make its folder ready for the first call, step by step.

`opening.open_run` has refused what the sweep, its files and the keys tell, and has opened the folder; nothing
of this run is written there yet.
Each step below is a function of the `OpenRun` and of what earlier steps returned, or of the `Run` that joins
them. Its record says what it gives: `RunQuestions`, `RunMoney`, `EarlierBatches`, and last `EarlierTrials`.
The questions come first: the folder gets its copies of the problem sets, and what is left to ask is refused
where it cannot be asked.
The money comes before the batches, because what open batches may cost is set aside in its ledger again.
Only when all three are there is the run described in the folder, forecast, and warned of: a run that cancels
batches needs no more than them.
Answers of other folders come after that, and the count of finished trials last, since it counts those too.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.spending import ask_abandoned, hold_again, left_open, trials_out
from asyncbench.lanes.load.earlier_steps import refuse_beyond_limits
from asyncbench.planning.belonging import set_superseded_apart
from asyncbench.planning.budget_bounds import open_ledger
from asyncbench.planning.outdated import ungraded
from asyncbench.planning.preflight import check_sets, sets_in_folder
from asyncbench.planning.reuse import Answers, Room, take_over
from asyncbench.planning.skipping import Before
from asyncbench.planning.traces import traces_of
from asyncbench.planning.trials import closed_trials, planned, trials_of
from asyncbench.run.cautions import cautions
from asyncbench.run.clustering import charge_lost, spent_by_lost
from asyncbench.run.describing import describe
from asyncbench.run.forecasting import switches_of, write_forecast
from asyncbench.run.state import EarlierBatches, EarlierTrials, OpenRun, Run, RunMoney, RunQuestions
from asyncbench.store.budget_state import known_costs
from asyncbench.store.manifest import planned_aliases


async def prepare(opened: OpenRun) -> Run:
    """Make the folder ready, and return the run; raises as `run_sweep` does."""
    options, store, screen = opened.options, opened.store, opened.screen

    # What may be refused without a trace comes before the run says that it has begun.
    room = await asyncio.to_thread(Room, store, options.max_tokens)
    reused = [
        await asyncio.to_thread(Answers.read, folder, ignore=options.ignore) for folder in options.reuse
    ]
    opened.notifier.ready = True
    if opened.death is not None:
        opened.notifier.died(opened.death)
    await asyncio.to_thread(store.begin_run)

    questions = await asyncio.to_thread(prepare_questions, opened, room)
    started_s = time.monotonic()
    money = await asyncio.to_thread(open_money, opened)
    batches = await asyncio.to_thread(take_up_batches, opened, money)
    if batches.ledger.damage is not None:
        screen.say(batches.ledger.damage)
    shared = {record.name: getattr(opened, record.name) for record in fields(opened)}
    run = Run(**shared, started_s=started_s, questions=questions, money=money, batches=batches)
    if options.ends:
        return run

    # The folder says what is asked, and what is expected of it, as it was known before this run.
    renamed = await asyncio.to_thread(find_renamed, run)
    await asyncio.to_thread(describe, run, renamed)
    await asyncio.to_thread(set_superseded_apart, run.sweep)
    for alias in renamed:
        screen.say(f"{alias}: the folder has all its trials under another alias. Reports keep that name.")
    if options.pilot is None and options.load is None and store.finished:
        await asyncio.to_thread(write_forecast, run)
    switches = await asyncio.to_thread(switches_of, run)
    warnings = cautions(run)
    while (caution := await asyncio.to_thread(next, warnings, None)) is not None:
        screen.say(caution)  # at once: what comes next may raise

    # Answers of other folders, and then what is left to ask.
    await asyncio.to_thread(_refuse_open_batches, run, reused)
    for answers in reused:
        count = await take_over(
            answers,
            run.sweep,
            [replace(model, budget_params={}) for model in run.models],  # nothing is sent
            questions.sets,
            limit=options.limit,
            store=store,
            salvage=run.salvage,
            out=frozenset().union(*(leftover.out for leftover in batches.left_open.values())),
        )
        screen.say(f"took over {count:,} answers from {answers.folder}")
    earlier = await asyncio.to_thread(look_up_trials, run)
    run = replace(run, switches=switches, earlier=earlier)
    if not run.is_complete:
        await asyncio.to_thread(lambda: store.histories)  # so that no call waits for them to be read
    return run


def prepare_questions(opened: OpenRun, room: Room) -> RunQuestions:
    """Copy the problem sets to the folder, and refuse trials that cannot be asked."""
    sweep, models, folder = opened.sweep, opened.models, opened.store.folder
    sets = sets_in_folder(sweep, models, opened.problems, folder)
    check_sets(sweep, [room.most(model) for model in models], sets)
    if sweep.load is not None:
        refuse_beyond_limits(sweep.load, models, folder, traces_of(sweep.load, sets))
    return RunQuestions(sweep=sweep, options=opened.options, sets=sets, room=room)


def open_money(opened: OpenRun) -> RunMoney:
    """Read what earlier runs cost, and open the budget with it."""
    folder = opened.store.folder
    costs_before = known_costs(folder)
    ledger = open_ledger(opened.sweep, folder)
    lost_usd = spent_by_lost(folder, opened.copy)
    if ledger is not None:
        if not opened.uses_cluster:
            charge_lost(ledger, lost_usd)
        for cap in ledger.caps:
            cap.typed = opened.options.budget_name
    return RunMoney(ledger=ledger, costs_before=costs_before, lost_usd=lost_usd)


def take_up_batches(opened: OpenRun, money: RunMoney) -> EarlierBatches:
    """Read what earlier runs left in batches, and set aside again what it may cost."""
    folder, aliases = opened.store.folder, {model.alias for model in opened.models}
    ledger = BatchLedger(folder)
    ledger.remove_strays()
    ask_abandoned(ledger, opened.options.resubmit, at=time.time())
    in_batches = {batch_part.alias for batch_part in ledger.parts.values()}
    leftovers = {alias: left_open(ledger, alias, folder) for alias in sorted(aliases | in_batches)}
    hold_again(money.ledger, leftovers, aliases)
    return EarlierBatches(ledger=ledger, left_open=leftovers)


def find_renamed(run: Run) -> list[str]:
    """Return new aliases of models that a folder knows by another: it has all of their trials already."""
    store, sets = run.store, run.questions.sets
    aliases = planned_aliases(store.manifest)
    new = [model for model in run.models if aliases and model.alias not in aliases]
    if not new or not store.finished:
        return []
    closed = closed_trials(run.sweep, new, sets, limit=None, finished=store.finished, failed=store.failed)
    sizes = {alias: planned(run.sweep, alias, sets[alias], limit=None) for alias in closed}
    return [alias for alias, trials in closed.items() if 0 < sizes[alias] <= trials.done]


def look_up_trials(run: Run) -> EarlierTrials:
    """Find trials that earlier runs closed, where that takes little time, and count those without a grade."""
    options, store = run.options, run.store
    if options.load is not None or not store.finished:
        failed = Counter[str]()
    else:
        failed = ungraded(store.folder, "model", again=store.again)
    if run.sweep.stop_when is not None:
        return EarlierTrials(before=Before.read(store.folder, again=store.again), ungraded=failed)
    if options.pilot is not None or options.load is not None or not store.finished:
        return EarlierTrials(ungraded=failed)
    closed = closed_trials(
        run.sweep,
        run.models,
        run.questions.sets,
        limit=options.limit,
        finished=store.finished,
        failed=store.failed,
    )
    return EarlierTrials(closed=closed, ungraded=failed)


def _refuse_open_batches(run: Run, reused: Sequence[Answers]) -> None:
    """Refuse folders whose batches may hold trials of this run: to ask them here would pay twice."""
    answered = run.store.finished | frozenset().union(*(answers.ids for answers in reused))
    for answers in reused:
        in_batches = trials_out(answers.folder, abandoned=True) - answered
        if in_batches and (shared := _count_asked(run, in_batches)):
            raise ConfigError(
                f"--reuse {answers.folder}: {shared:,} trials are in open batches of that folder, or may be "
                "in abandoned ones, so asking them here would pay for them twice. Run its sweep once more to "
                "collect them, with --resubmit for those that are abandoned. Or cancel what is open: "
                f"`asyncbench cancel {quoted(answers.folder)}`."
            )


def _count_asked(run: Run, trial_ids: Collection[str]) -> int:
    """Return how many of these trials are among those that a run is to ask."""
    return sum(
        1
        for model in run.models
        for _ in trials_of(
            run.sweep,
            model,
            run.questions.sets[model.alias],
            limit=run.options.limit,
            skip=lambda trial_id: trial_id not in trial_ids,
        )
    )
