"""Prepare a run: refuse what can be refused, make its folder ready for the first call, and forecast it."""

import asyncio
import os
import platform
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import yaml

from asyncbench.cluster.messages import Cluster
from asyncbench.config.overriding import with_budget, with_journal, with_mode, with_workers
from asyncbench.config.run_entries import seconds_left
from asyncbench.config.sweep import AnySweep, as_mapping, load_sweep
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import quoted
from asyncbench.lanes.batches.context import BatchClock
from asyncbench.lanes.batches.ledger import BatchLedger, Step
from asyncbench.lanes.batches.spending import ask_abandoned, hold_again, left_open, trials_out
from asyncbench.lanes.batches.switching import Switch
from asyncbench.lanes.load.measuring import refuse_beyond_limits
from asyncbench.planning.belonging import cautions_on_copy, check_one_sweep, set_superseded_apart
from asyncbench.planning.budget_bounds import (
    ASKED,
    budgeted_models,
    check_budget,
    named,
    named_before,
    open_ledger,
)
from asyncbench.planning.forecast_file import is_already_forecast, keep_forecast, read_forecasts
from asyncbench.planning.guesses import prices_of, rates_asked
from asyncbench.planning.modes import (
    has_mode_auto,
    in_their_modes,
    why_in_real_time,
    without_batch_price,
)
from asyncbench.planning.outdated import corrected, outgraded_notes
from asyncbench.planning.preflight import (
    HUB,
    cautions_on,
    check_conditions,
    check_environment,
    check_replays,
    check_sets,
    chosen_models,
    keys_for,
    open_sources,
    raise_file_limit,
    recorded_by,
    sets_in_folder,
)
from asyncbench.planning.records import Outlook, total
from asyncbench.planning.report import Plan
from asyncbench.planning.reuse import Answers, Room, check_longer, check_reuse, take_over
from asyncbench.planning.skipping import Before
from asyncbench.planning.sweep_plan import plan_of
from asyncbench.planning.trials import closed_trials, planned, planned_tasks, trials_of
from asyncbench.providers.credentials import credentials_of, secrets_of
from asyncbench.providers.endpoints import added_providers, known_endpoints
from asyncbench.providers.prices import is_moving_alias, rates_of
from asyncbench.records import AUTO, BATCH, MOST_IN_FLIGHT, REALTIME, Model
from asyncbench.run.clustering import charge_lost, spent_by_lost
from asyncbench.run.copying import claimed_copy
from asyncbench.run.interrupts import death_in
from asyncbench.run.lanes import as_loaded, cautions_of_load, load_of
from asyncbench.run.notify import notifier_of
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import Quiet, Screen
from asyncbench.run.refusals import Faults, Refusals
from asyncbench.run.state import RunState
from asyncbench.run.summary import BudgetUse
from asyncbench.store.budget_state import known_costs
from asyncbench.store.catalog import known_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import RECORDED, Manifest, joined_recordings, planned_aliases
from asyncbench.store.salvage import Salvage
from asyncbench.suites.custom import ADDED_GRADERS
from asyncbench.suites.table import SUITES

# ── Forecasts: all open trials before the first call, the rest at the end


FORECAST_UNASKED = 30_000  # trials of a sweep, or finished: to count more would hold up its first call


def write_forecast(run: RunState) -> None:
    """Write down what is expected, for a report to judge by, where that is new and soon found out."""
    planned = {model.alias: run.planned(model) for model in run.models}
    if max(sum(planned.values()), len(run.store.finished)) > FORECAST_UNASKED:
        return
    try:
        before, now = read_forecasts(run.store.folder), time.time()
        for model in run.models:
            rates = (rates_asked(model, condition, now) for condition in run.sweep.conditions_of(model.alias))
            trials, prices, limit = planned[model.alias], prices_of(rates), run.options.limit
            if not is_already_forecast(before, model.alias, limit=limit, trials=trials, prices=prices):
                keep_forecast(_quick_plan(run, run.store.finished), run.store.folder, by="run")
                return
    except StoreError as error:
        run.screen.say(f"no forecast is kept: {error}")


def rest_usd_of(run: RunState, use: BudgetUse) -> float | None:
    """Return what the rest takes at the 95th percentile, USD, where the sweep's own budget stopped the run.

    None where nobody needs to know, too few replies tell it, or it is not soon found out.
    """
    options = run.options
    if use.to_go_on is None or not options.may_raise_budget or options.pilot is not None or run.store.again:
        return None
    if sum(map(run.planned, run.models)) > FORECAST_UNASKED:
        return None
    forecast = _quick_plan(run, known_trials(run.store.folder).finished)
    budgeted = {account.model for account in use.ledger.accounts}
    return total(
        None if plan.guessed else plan.cost_at(Outlook.CAREFUL)
        for plan in forecast.models
        if plan.left and plan.model in budgeted
    )


def switches_of(run: RunState) -> dict[str, Switch]:
    """Return what is known of the models that leave batches for real time before the deadline, by alias."""
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
        for plan in _quick_plan(run, run.store.finished, models).models
        if plan.batches is not None
    }


def _quick_plan(run: RunState, finished: Collection[str], models: Sequence[Model] | None = None) -> Plan:
    return plan_of(
        run.sweep,
        run.models if models is None else models,
        run.sets,
        limit=run.options.limit,
        finished=finished,
        begun=True,
        quick=True,
    )


# ── Preparation


Tasks = Mapping[str, Mapping[str, int]]  # suite → task → trials
EARLIER: Final = "earlier_graders"  # in a manifest: name → the digests that its source had before


async def open_run(
    sweep: AnySweep,
    options: RunOptions,
    *,
    env: Mapping[str, str] | None,
    screen: Screen | None,
    cluster: Cluster | None = None,
) -> RunState:
    """Check what can be known before anything is spent, then open the folder; raises as `run_sweep` does."""
    sweep = load_sweep(sweep)
    sweep = with_budget(sweep, options.budget_usd, place="run", given_as=options.budget_name)
    sweep = with_mode(sweep, options.mode, models=options.models, given_as=options.name_of("mode"))
    sweep = with_workers(sweep, options.workers, given_as=options.name_of("workers"))
    sweep = with_journal(sweep, options.journal, given_as=options.name_of("journal"))
    load = load_of(sweep, wanted=options.load is not None)
    models = as_loaded(in_their_modes(sweep, chosen_models(sweep, options.models)), load)
    if options.pilot is not None:
        models = tuple(replace(model, mode=REALTIME) for model in models)  # who plans does not wait a day
    check_budget(sweep, models)
    check_environment(models)
    models = budgeted_models(sweep, models)
    env = os.environ if env is None else env
    screen = screen or Quiet()
    on_cluster = cluster is not None or options.ray is not None
    dealt = [model for model in models if on_cluster and model.mode == REALTIME]
    keys = {model.alias: credentials_of(model, env) for model in dealt}  # workers have theirs
    keys |= keys_for([model for model in models if model not in dealt], env)
    notifier = notifier_of(sweep, models, env, screen.say, options)
    async with claimed_copy(sweep, options, screen.say) as copy:
        opened = await asyncio.to_thread(open_sources, sweep, models)
        check_conditions(sweep, models, opened)
        check_replays(sweep, models)
        check_longer(models, sweep.conditions, retry=options.retry, max_tokens=options.max_tokens)
        check_one_sweep(sweep, opened.values())
        check_reuse(options.reuse, options.ignore, out=sweep.out)
        models = raise_file_limit(models, most=MOST_IN_FLIGHT if load is None else load.max_in_flight)
        now = datetime.now().astimezone()
        within_s = None if sweep.deadline is None else seconds_left(sweep.deadline, now)
        death = await asyncio.to_thread(death_in, sweep.out, sweep.stop_when) if sweep.notify else None
        store = await asyncio.to_thread(
            Store.open, sweep.out, sweep=sweep.name, again=options.retry, accept=options.accept_loss
        )
        if copy is not None:
            copy.note_loss()
        return RunState(
            sweep=sweep,
            models=models,
            options=options,
            keys=keys,
            opened=opened,
            within_s=within_s,
            death=death if store.dead else None,
            store=store,
            cluster=cluster,
            salvage=Salvage(store),
            screen=screen,
            notifier=notifier,
            faults=Faults(store.folder, secrets_of(keys.values())),
            refusals=Refusals(models, screen.say, retries=options.load is None),
            copy=copy,
        )


async def prepare(run: RunState) -> None:
    """Make the folder ready: problem sets, budget, manifest, forecast, answers of another folder."""
    options, store = run.options, run.store
    run.room = await asyncio.to_thread(Room, store, options.max_tokens)
    reused = [await asyncio.to_thread(Answers.of, other, ignore=options.ignore) for other in options.reuse]
    run.notifier.ready = True
    if run.death is not None:
        run.notifier.died(run.death)
    await asyncio.to_thread(store.begin_run)
    run.sets = await asyncio.to_thread(sets_in_folder, run.sweep, run.models, run.opened, store.folder)
    check_sets(run.sweep, [run.room.most(model) for model in run.models], run.sets)
    if run.sweep.load is not None:
        await asyncio.to_thread(refuse_beyond_limits, run.sweep.load, run.models, store.folder)
    run.started_s = time.monotonic()
    run.costs_before = await asyncio.to_thread(known_costs, store.folder)
    run.ledger = await asyncio.to_thread(open_ledger, run.sweep, store.folder)
    run.lost_usd = await asyncio.to_thread(spent_by_lost, store.folder, run.copy)
    if run.ledger is not None and not run.on_cluster:
        charge_lost(run.ledger, run.lost_usd)
    await asyncio.to_thread(_take_up_batches, run)
    if run.batches.damage is not None:
        run.screen.say(run.batches.damage)
    if options.ends:
        return
    for cap in run.caps:
        cap.typed = options.budget_name
    renamed = await asyncio.to_thread(_renamed, run)
    await asyncio.to_thread(_describe, run, renamed)
    await asyncio.to_thread(set_superseded_apart, run.sweep)
    for alias in renamed:
        run.screen.say(f"{alias}: the folder has all its trials under another alias. Reports keep that name.")
    if options.pilot is None and options.load is None and store.finished:
        await asyncio.to_thread(write_forecast, run)  # as it was known before this run
    run.switches = await asyncio.to_thread(switches_of, run)
    cautions = _cautions(run)
    while (caution := await asyncio.to_thread(next, cautions, None)) is not None:
        run.screen.say(caution)  # at once: what comes next may raise
    await asyncio.to_thread(_refuse_batches_there, run, reused)
    for answers in reused:
        await _take_over(run, answers)
    await asyncio.to_thread(_look_up_trials, run)


def _look_up_trials(run: RunState) -> None:
    """Find out which trials earlier runs closed, and what is known of the others, if there are any."""
    options, store = run.options, run.store
    if run.sweep.stop_when is not None:
        run.before = Before.of(store.folder, again=store.again)
    elif options.pilot is None and options.load is None and store.finished:
        known = {"finished": store.finished, "failed": store.failed}
        run.closed = closed_trials(run.sweep, run.models, run.sets, limit=options.limit, **known)
    if not run.is_complete:
        _ = store.histories  # so that no call waits for them


def _take_up_batches(run: RunState) -> None:
    """Read what earlier runs left in batches, and set aside again what it may cost."""
    run.batches = BatchLedger(run.store.folder)
    run.batches.remove_strays()
    ask_abandoned(run.batches, run.options.resubmit, at=time.time())
    aliases = {model.alias for model in run.models} | {part.alias for part in run.batches.parts.values()}
    run.left_open = {alias: left_open(run.batches, alias, run.store.folder) for alias in sorted(aliases)}
    hold_again(run.ledger, run.left_open, {model.alias for model in run.models})


def _renamed(run: RunState) -> list[str]:
    """Return the aliases, new to a folder, of models all of whose trials it has: under an earlier alias."""
    known = planned_aliases(run.store.manifest)
    new = [model for model in run.models if known and model.alias not in known]
    seen = {"finished": run.store.finished, "failed": run.store.failed}
    closed = closed_trials(run.sweep, new, run.sets, limit=None, **seen) if run.store.finished else {}
    sizes = {alias: planned(run.sweep, alias, run.sets[alias], limit=None) for alias in closed}
    return [alias for alias, found in closed.items() if 0 < sizes[alias] <= found.done]


def _describe(run: RunState, renamed: Collection[str]) -> None:
    """Write down in the folder what is being run, before the first call; nothing of `renamed` is asked."""
    sweep, store = run.sweep, run.store
    used = {each.problems.path.name: each.problems for sets in run.sets.values() for each in sets}
    # Models, conditions and suites that are not asked this time keep the plan they had.
    before = store.manifest.get("runs", {}).get(sweep.name, {"planned": {}})["planned"]
    recorded_before = (planned_aliases(store.manifest), store.manifest.get(RECORDED, []))
    recorded = ({*run.sets}, recorded_by(sweep, run.models))
    plans = (
        {}
        if run.options.load is not None
        else {
            alias: _merged_plan(before.get(alias, {}), planned_tasks(sweep, alias, sets))
            for alias, sets in run.sets.items()
            if alias not in renamed
        }
    )
    store.write_sweep_file(
        yaml.safe_dump(as_mapping(sweep), sort_keys=False).encode(),
        {
            "asyncbench": version("asyncbench"),
            "python": platform.python_version(),
            "simulated": any(model.simulated for model in sweep.models),
            "runs": {sweep.name: {"planned": before | plans}},
            ASKED: named(named_before(store.folder, store.manifest), run.models),
            RECORDED: joined_recordings([recorded_before, recorded]),
            "budget": None if run.ledger is None else run.ledger.described(),
            **_from_elsewhere(run),
            "problem_sets": {
                name: {"name": made.name, "rows": made.rows, "digest": made.digest, "seed": made.seed}
                for name, made in sorted(used.items())
            },
        },
    )


def _merged_plan(before: Mapping[str, Tasks], plan: Mapping[str, Tasks]) -> dict[str, Tasks]:
    """Return the plan of a model by condition and suite, with what it had been asked before."""
    return {**before, **{name: {**before.get(name, {}), **suites} for name, suites in plan.items()}}


def _from_elsewhere(run: RunState) -> dict[str, object]:
    """Return what the manifest says of graders, packages and files from elsewhere, if there are any."""
    before, used = run.store.manifest, list(run.opened.values())
    graders = run.own_graders
    added = [
        *SUITES.origins({suite for sets in run.sets.values() for each in sets for suite in each.tasks}),
        *ADDED_GRADERS.origins({name for problems in used for name in problems.graders}),
        *added_providers().origins({model.provider for model in run.models}),
    ]
    earlier = [origin for origin in before.get("plugins", []) if origin not in added]
    hub = {problems.hub.address: problems.hub.pinned for problems in used if problems.hub}
    entries = {
        "graders": before.get("graders", {}) | graders,
        EARLIER: _earlier(before, graders),
        "plugins": [*earlier, *added],
        HUB: before.get(HUB, {}) | hub,
    }
    return {key: value for key, value in entries.items() if value}


def _earlier(before: Manifest, now: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the digests that graders of somebody's own had in earlier runs, oldest first, by name."""
    latest, earlier = before.get("graders", {}), dict(before.get(EARLIER, {}))
    for name, digest in now.items():
        known = [*earlier.get(name, []), *filter(None, [latest.get(name)])]
        if others := [one for one in dict.fromkeys(known) if one != digest]:
            earlier[name] = others
    return earlier


async def _take_over(run: RunState, answers: Answers) -> None:
    taken = await take_over(
        answers,
        run.sweep,
        [replace(model, budget_params={}) for model in run.models],  # nothing is sent
        run.sets,
        limit=run.options.limit,
        store=run.store,
        salvage=run.salvage,
        out=frozenset().union(*(leftover.out for leftover in run.left_open.values())),
    )
    run.screen.say(f"took over {taken:,} answers from {answers.folder}")


def _refuse_batches_there(run: RunState, reused: Sequence[Answers]) -> None:
    """Refuse folders whose batches may hold trials of this run: to ask them here would pay twice."""
    known = run.store.finished | frozenset().union(*(answers.ids for answers in reused))
    for answers in reused:
        if out := trials_out(answers.folder, abandoned=True) - known:
            _refuse_trials_out(run, answers.folder, out)


def _refuse_trials_out(run: RunState, folder: Path, out: Collection[str]) -> None:
    twice = sum(
        1
        for model in run.models
        for _ in trials_of(
            run.sweep,
            model,
            run.sets[model.alias],
            limit=run.options.limit,
            skip=lambda trial_id: trial_id not in out,
        )
    )
    if twice:
        raise ConfigError(
            f"--reuse {folder}: {twice:,} trials are in open batches of that folder, or may be in "
            "abandoned ones, so asking them here would pay for them twice. Run its sweep once more to "
            "collect them, with --resubmit for those that are abandoned. Or cancel what is open: "
            f"`asyncbench cancel {quoted(folder)}`."
        )


def _cautions(run: RunState) -> Iterator[str]:
    """Yield what is said before the first call and refuses nothing."""
    for damage in run.store.damaged:
        what = "damaged, left out; the rest is kept" if damage.size else damage.message
        yield f"journal/{damage.segment.name}, line {damage.line}: {what}"
    if run.copy is not None and (lost := run.copy.lost) is not None:
        yield f"the journal of {lost} is taken for lost: what it held of calls is asked, and paid, again"
    for path in run.store.lost:
        yield f"{path}: accepted as lost; the cost of its calls still counts"
    if any(path.startswith("grades/") for path in run.store.lost):
        again = f"asyncbench regrade {quoted(run.sweep.out)} --write"
        yield f"some grades are lost. To make them again: `{again}`"
    yield from cautions_on_copy(run.sweep, sum(len(each.out) for each in run.left_open.values()))
    yield from cautions_on(run.opened.values())
    if run.sweep.load is not None:
        yield from cautions_of_load(run.sweep.load, run.models, run.sweep.models)
    now, tiers = time.time(), {BATCH: BATCH, REALTIME: None}
    if unpriced := [model.alias for model in run.models if rates_of(model)(tiers[model.mode], now) is None]:
        outside = ", and no budget holds them" if run.caps else ""
        yield (
            f"no price is known for {', '.join(unpriced)}: their cost stays unknown{outside}. "
            "Set price: {input: ..., output: ...} in the sweep (USD per million tokens)."
        )
    if full := without_batch_price(run.models):
        yield full
    yield from _cautions_on_batches(run)
    for model in run.models:
        if not model.simulated and (why := is_moving_alias(model.model_id)):
            yield f"{why}. The report shows which model answered."
    # These three stay as they are: they need new grades, not new answers.
    used = dict.fromkeys(problem_set.problems.path for sets in run.sets.values() for problem_set in sets)
    if changed := corrected(run.store.folder, list(used)):
        yield (
            f"the expected answers of {changed:,} finished trials have changed. To see what changes: "
            f"`asyncbench regrade {quoted(run.sweep.out)}`; to keep it: add --write. Nothing is asked again."
        )
    yield from outgraded_notes(run.store.folder)
    if run.room.had_it:
        yield (
            f"{run.room.had_it:,} trials were cut off at {run.room.max_tokens:,} tokens or more already: "
            "they are not asked again"
        )


def _cautions_on_batches(run: RunState) -> Iterator[str]:
    in_batches = [model for model in run.models if model.mode == BATCH]
    untried = [m for m in in_batches if not known_endpoints()[m.provider].batches_proven_at(m.base_url)]
    for name in dict.fromkeys(model.provider for model in untried):
        yield f"batches of {name} are built by documents and were never tried. Begin with --limit 10."
    aliases = {model.alias for model in run.models}
    for model in run.sweep.models:
        if model.alias in aliases and model.mode == AUTO and (why := why_in_real_time(run.sweep, model)):
            yield f"{model.alias}: `mode: auto` asks it in real time: {why}."
    for part in run.batches.parts.values():
        if part.step is Step.ABANDONED:
            yield (
                f"{part.alias}: {part.requests:,} trials of part {part.key} were abandoned and are not "
                f"asked. To ask them: --resubmit {part.key}. If its batch exists, they are paid twice."
            )
    if run.options.detach and any(has_mode_auto(run.sweep, model.alias) for model in run.models):
        yield (
            "`mode: auto` leaves batches for real time only while a run goes on. You detach: run again well "
            "before the deadline."
        )
    here = {model.alias for model in run.sweep.models}
    for alias, leftover in run.left_open.items():
        if leftover.out and alias not in here:
            yield (
                f"{len(leftover.out):,} trials are in batches of {alias}, which is not in the sweep any "
                f"more. They are asked in no other way. To collect them, put {alias} back and run again."
            )
