"""Open a run: settle what is asked of whom, refuse what can be refused, and take the folder."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from asyncbench.cluster.messages import Cluster
from asyncbench.config.overriding import (
    replace_budget,
    replace_journal,
    replace_mode,
    replace_sample,
    replace_workers,
)
from asyncbench.config.run_entries import seconds_left
from asyncbench.config.sweep import AnySweep, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.planning.belonging import check_one_sweep, name_versions
from asyncbench.planning.budget_bounds import budgeted_models, check_budget
from asyncbench.planning.modes import resolve_modes
from asyncbench.planning.preflight import (
    check_conditions,
    check_environment,
    check_replays,
    chosen_models,
    keys_for,
    open_sources,
    raise_file_limit,
)
from asyncbench.planning.reuse import check_longer, check_reuse
from asyncbench.providers.credentials import credentials_of, secrets_of
from asyncbench.providers.functions import PYTHON, check_functions
from asyncbench.records import MOST_IN_FLIGHT, REALTIME
from asyncbench.run.copying import claimed_copy
from asyncbench.run.interrupts import death_in
from asyncbench.run.lanes import load_of, models_under_load
from asyncbench.run.notify import notifier_of
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import Quiet, Screen
from asyncbench.run.refusals import Faults, Refusals
from asyncbench.run.state import OpenRun, RunWorkers
from asyncbench.run.tracking import check_trackers
from asyncbench.store.folder import Store
from asyncbench.store.salvage import Salvage
from asyncbench.suites.handed_functions import SESSION
from asyncbench.suites.plugins import check_no_import


async def open_run(
    sweep: AnySweep,
    options: RunOptions,
    *,
    env: Mapping[str, str] | None,
    screen: Screen | None,
    cluster: Cluster | None = None,
) -> OpenRun:
    """Check what can be known before anything is spent, then open the folder; raises as `run_sweep` does."""
    # The sweep, with the options in it.
    sweep = load_sweep(sweep)
    sweep = replace_sample(sweep, options.sample)
    sweep = replace_budget(sweep, options.budget_usd, place="run", given_as=options.budget_name)
    sweep = replace_mode(sweep, options.mode, models=options.models, given_as=options.name_of("mode"))
    sweep = replace_workers(sweep, options.workers, given_as=options.name_of("workers"))
    sweep = replace_journal(sweep, options.journal, given_as=options.name_of("journal"))
    sweep, notes = name_versions(sweep)
    load = load_of(sweep, wanted=options.load is not None)

    # The models, as they are asked.
    models = models_under_load(resolve_modes(sweep, chosen_models(sweep, options.models)), load)
    if options.pilot is not None:
        models = tuple(replace(model, mode=REALTIME) for model in models)  # who plans does not wait a day
    check_budget(sweep, models)
    check_environment(models)
    check_functions(models, sweep.conditions)
    check_no_import()
    models = budgeted_models(sweep, models)

    # Their keys. Workers of a cluster have their own.
    env = os.environ if env is None else env
    uses_cluster = cluster is not None or options.ray is not None
    dealt = [model for model in models if uses_cluster and model.mode == REALTIME]
    if functions := [model.alias for model in dealt if model.provider == PYTHON]:
        raise ConfigError(
            f"{', '.join(functions)}: a Python function is called by this process, and workers of a Ray "
            "cluster do not have it. Run without `ray`, or remove it."
        )
    keys = {model.alias: credentials_of(model, env) for model in dealt}
    keys |= keys_for([model for model in models if model not in dealt], env)

    screen = screen or Quiet()
    for note in notes:
        screen.say(note)
    check_trackers(sweep)
    notifier = notifier_of(sweep, models, env, screen.say, options)
    async with claimed_copy(sweep, options, screen.say) as copy:
        # The problems, and whether sweep, models and folder go together.
        problems = await asyncio.to_thread(open_sources, sweep, models)
        graders = {name for problem_set in problems.values() for name in problem_set.graders}
        if uses_cluster and any(name.startswith(SESSION) for name in graders):
            raise ConfigError(
                "A grader that is a lambda, a closure or a function of a notebook cannot go to the workers "
                "of a Ray cluster. Define it in a file, or run without `ray`."
            )
        check_conditions(sweep, models, problems)
        check_replays(sweep, models)
        check_longer(models, sweep.conditions, retry=options.retry, max_tokens=options.max_tokens)
        check_one_sweep(sweep, problems.values())
        check_reuse(options.reuse, options.ignore, out=sweep.out)
        models = raise_file_limit(
            models, most_in_flight=MOST_IN_FLIGHT if load is None else load.max_in_flight
        )
        now = datetime.now().astimezone()
        within_s = None if sweep.deadline is None else seconds_left(sweep.deadline, now)

        # The folder. Once it is open, nobody sees any more that the last run was killed.
        death = await asyncio.to_thread(death_in, sweep.out, sweep.stop_when) if sweep.notify else None
        store = await asyncio.to_thread(
            Store.open, sweep.out, sweep=sweep.name, again=options.retry, accept=options.accept_loss
        )
        if copy is not None:
            copy.note_loss()
        return OpenRun(
            sweep=sweep,
            options=options,
            models=models,
            keys=keys,
            problems=problems,
            within_s=within_s,
            store=store,
            salvage=Salvage(store),
            copy=copy,
            death=death if store.dead else None,
            screen=screen,
            notifier=notifier,
            faults=Faults(store.folder, secrets_of(keys.values())),
            refusals=Refusals(models, screen.say, retries=options.load is None),
            workers=RunWorkers(cluster=cluster),
        )
