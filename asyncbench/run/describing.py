"""Describe a run in its folder before the first call: the sweep file, and the manifest's entries on it."""

import platform
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Final

import yaml

from asyncbench.config.entry import drop_unset
from asyncbench.config.sweep import as_mapping
from asyncbench.planning.budget_bounds import ASKED, named, named_before
from asyncbench.planning.preflight import HUB, recorded_by
from asyncbench.planning.trials import planned_tasks
from asyncbench.providers.endpoints import added_providers
from asyncbench.run.state import Run
from asyncbench.store.manifest import LOADS, RECORDED, joined_recordings, planned_aliases
from asyncbench.suites.custom import ADDED_GRADERS
from asyncbench.suites.table import SUITES

Tasks = Mapping[str, Mapping[str, int]]  # suite → task → trials
EARLIER: Final = "earlier_graders"  # in a manifest: name → the digests that its source had before


def describe(run: Run, renamed: Collection[str]) -> None:
    """Write down in the folder what is being run; `renamed` are aliases of which nothing is asked."""
    sweep, store, sets = run.sweep, run.store, run.questions.sets

    # The trials that each model is planned to be asked: by alias, condition, suite and task. Models,
    # conditions and suites that are not asked this time keep the plan that they had.
    earlier_run = store.manifest.get("runs", {}).get(sweep.name, {"planned": {}})
    plan: dict[str, Mapping[str, Tasks]] = {**earlier_run["planned"]}
    for alias, sources in sets.items():
        if alias not in renamed and run.options.load is None:
            before = plan.get(alias, {})
            added = planned_tasks(sweep, alias, sources)
            plan[alias] = {
                **before,
                **{name: {**before.get(name, {}), **suites} for name, suites in added.items()},
            }

    # Settings of loads, of each model the latest last: a step keeps those under which it was measured.
    loads: dict[str, list[dict[str, object]]] = dict(store.manifest.get(LOADS, {}))
    if sweep.load is not None and run.options.load is not None:
        settings = drop_unset({"max_lag": sweep.load.max_lag, "gpus": sweep.load.gpus})
        for model in run.models:
            earlier = loads.get(model.alias, [])
            if not earlier or settings != {key: earlier[-1][key] for key in earlier[-1] if key != "since"}:
                loads[model.alias] = [*earlier, {"since": time.time(), **settings}]

    copies = {source.problems.path.name: source.problems for sources in sets.values() for source in sources}
    recorded_before = (planned_aliases(store.manifest), store.manifest.get(RECORDED, []))
    recorded = ({*sets}, recorded_by(sweep, run.models))
    store.write_sweep_file(
        yaml.safe_dump(as_mapping(sweep), sort_keys=False).encode(),
        {
            "asyncbench": version("asyncbench"),
            "python": platform.python_version(),
            "simulated": any(model.simulated for model in sweep.models),
            "runs": {sweep.name: {"planned": plan}},
            ASKED: named(named_before(store.folder, store.manifest), run.models),
            RECORDED: joined_recordings([recorded_before, recorded]),
            "budget": None if run.money.ledger is None else run.money.ledger.described(),
            **({LOADS: loads} if loads else {}),
            **_added_entries(run),
            "problem_sets": {
                name: {
                    "name": problems.name,
                    "rows": problems.rows,
                    "digest": problems.digest,
                    "seed": problems.seed,
                }
                | ({} if problems.sample is None else {"sample": asdict(problems.sample)})
                for name, problems in sorted(copies.items())
            },
        },
    )


def _added_entries(run: Run) -> dict[str, object]:
    """Return the entries on graders, packages and files that are not asyncbench's, without empty ones."""
    before, used = run.store.manifest, list(run.problems.values())
    sources = [source for sources in run.questions.sets.values() for source in sources]
    added = [
        *SUITES.origins({suite for source in sources for suite in source.tasks}),
        *ADDED_GRADERS.origins({name for problems in used for name in problems.graders}),
        *added_providers().origins({model.provider for model in run.models}),
    ]
    earlier = [origin for origin in before.get("plugins", []) if origin not in added]

    # The digests that the user's graders had in earlier runs, oldest first, by name.
    latest, digests_before = before.get("graders", {}), dict(before.get(EARLIER, {}))
    for name, digest in run.own_graders.items():
        digests = [*digests_before.get(name, []), *filter(None, [latest.get(name)])]
        if former := [old for old in dict.fromkeys(digests) if old != digest]:
            digests_before[name] = former

    hub = {problems.hub.address: problems.hub.pinned for problems in used if problems.hub}
    entries = {
        "graders": latest | run.own_graders,
        EARLIER: digests_before,
        "plugins": [*earlier, *added],
        HUB: before.get(HUB, {}) | hub,
    }
    return {key: value for key, value in entries.items() if value}
