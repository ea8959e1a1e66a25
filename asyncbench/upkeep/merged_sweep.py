"""Whether results folders are of one sweep: nothing that one asks may mean something else in another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.sources import ProblemSource
from asyncbench.config.sweep import Sweep, as_mapping, load_sweep, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.trials import planned_tasks, without_repeats
from asyncbench.problems.copies import copies, read_problems
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.records import Condition
from asyncbench.store.manifest import IMPORTED, SWEEP_FILE, Manifest, planned, read_manifest
from asyncbench.suites.requests import way_of_asking

KEEP_APART = "They are not of one sweep, so keep them apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A results folder that is to be merged."""

    folder: Path
    manifest: Manifest
    sweep: Sweep


def sources(folders: Sequence[Path]) -> list[Source]:
    """Return the folders with what they say of themselves; all are of one sweep.

    Raises:
        ConfigError: one is no results folder, is of another sweep, holds imported runs, or contradicts
            another.
        ProblemSetError: a copy of a problem set is damaged.
        StoreError: a manifest cannot be read.
    """
    manifests = [read_manifest(folder) for folder in folders]
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.get(IMPORTED):
            raise ConfigError(
                f"{folder} holds imported results. Import all the files into one folder instead."
            )
        if manifest["sweep"] != manifests[0]["sweep"]:
            raise ConfigError(
                f"{folders[0]} holds the results of sweep {manifests[0]['sweep']!r}, and {folder} those of "
                f"{manifest['sweep']!r}. You can merge only folders of the same sweep."
            )
    opened = [
        Source(folder=folder, manifest=manifest, sweep=load_sweep(folder / SWEEP_FILE))
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    for source, other in combinations(opened, 2):
        _check_names(source, other)
    _check_answers(opened)
    return opened


def _check_names(source: Source, other: Source) -> None:
    """Refuse an alias, or a condition's name, that stands for two things."""
    models = {model.alias: model for model in other.sweep.models}
    conditions = {condition.name: condition for condition in other.sweep.conditions}
    plain = Condition()
    for model in source.sweep.models:
        if model.alias in models and way_of_asking(model, plain) != way_of_asking(models[model.alias], plain):
            raise ConfigError(
                f"{source.folder} and {other.folder} use the alias {model.alias!r} for different models. "
                f"Compare `models` in their {SWEEP_FILE}. {KEEP_APART}."
            )
    asking = source.sweep.models[0]
    for condition in source.sweep.conditions:
        namesake = conditions.get(condition.name)
        if namesake is not None and way_of_asking(asking, condition) != way_of_asking(asking, namesake):
            raise ConfigError(
                f"{source.folder} and {other.folder} use the name {condition.name!r} for different "
                f"conditions. Compare `conditions` in their {SWEEP_FILE}. {KEEP_APART}."
            )


def _check_answers(folders: Sequence[Source]) -> None:
    """Refuse problem sets that give the same problem another answer."""
    wanted = ["problem_set", "problem_id", "expected"]
    rows = pa.concat_tables(read_problems(source.folder, wanted) for source in folders)
    answers = rows.group_by(wanted).aggregate([]).group_by(wanted[:2]).aggregate([([], "count_all")])
    other = answers.filter(pc.field("count_all") > 1)
    if len(other):
        name, problem_id = other["problem_set"][0].as_py(), other["problem_id"][0].as_py()
        raise ConfigError(
            f"{len(other):,} problems have different answers in the folders, such as {problem_id} of {name}. "
            "Copy the right problem set into problems/ of each folder. Grade both again with `asyncbench "
            "regrade FOLDER --write`, then merge."
        )


# ── The sweep of a merged folder: every model, condition and problem set that one of the folders has


T = TypeVar("T")

Plan = dict[str, dict[str, dict[str, dict[str, int]]]]  # alias → condition → suite → task → trials


def merged_sweep(folders: Sequence[Source], out: Path) -> Sweep:
    """Return the sweep that asks whatever one of these asks, under the same names, with results in `out`.

    Limits, prices and deadlines of a model are those of the first folder that has it.

    Raises:
        ConfigError: two aliases ask the same.
    """
    models = _by_name((model.alias, model) for source in folders for model in source.sweep.models)
    conditions = _by_name(
        (each.name, _for_all(each, folders)) for source in folders for each in source.sweep.conditions
    )
    by_alias = {alias: _problems(alias, folders) for alias in models}
    everywhere = _unlike((source, problem) for source in folders for problem in source.sweep.problems)
    merged = replace(
        folders[0].sweep,
        models=tuple(models.values()),
        conditions=tuple(conditions.values()),
        problems=everywhere,
        own_problems={alias: problems for alias, problems in by_alias.items() if problems != everywhere},
        repeats=max(source.sweep.repeats for source in folders),
        out=out,
        copied_to=None,
    )
    place = f"{' and '.join(str(source.folder) for source in folders)} together"
    return sweep_from(as_mapping(merged), place=place)


def _by_name(named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return what bears each name first."""
    first: dict[str, T] = {}
    for name, bearer in named:
        first.setdefault(name, bearer)
    return first


def _for_all(condition: Condition, folders: Sequence[Source]) -> Condition:
    """Return a condition for every model that any of the folders asks like this."""
    namesakes = [
        (source, each)
        for source in folders
        for each in source.sweep.conditions
        if each.name == condition.name
    ]
    if all(each.models is None for _, each in namesakes):
        return condition
    aliases = {
        model.alias for source, each in namesakes for model in source.sweep.models if each.asks(model.alias)
    }
    return replace(condition, models=frozenset(aliases))


def _problems(alias: str, folders: Sequence[Source]) -> tuple[ProblemSource, ...]:
    """Return what a model is asked in any of the folders."""
    return _unlike(
        (source, problem)
        for source in folders
        for model in source.sweep.models
        if model.alias == alias
        for problem in source.sweep.problems_of(model)
    )


def _unlike(problems: Iterable[tuple[Source, ProblemSource]]) -> tuple[ProblemSource, ...]:
    """Return problem sets without those that another folder has as well, be it under another path."""
    return tuple(_by_name((_content(source, problem), problem) for source, problem in problems).values())


def _content(source: Source, problem: ProblemSource) -> str:
    sets = source.manifest.get("problem_sets", {}).values()
    digests = sorted(str(each["digest"]) for each in sets if each["name"] == _name(problem))
    place = problem.path if problem.path is not None and not digests else _name(problem)
    rest = (problem.suite, problem.seed, dict(problem.parameters), dict(problem.columns))
    return repr((place, digests, *rest, problem.grader, problem.pattern))


def _name(problem: ProblemSource) -> str:
    """Return what trials call the set."""
    return str(problem.suite) if problem.path is None else problem.path.stem


# ── the plan ─────────────────────────────────────────────────────────────────────────────────


def merged_plan(folders: Sequence[Source], sweep: Sweep) -> Plan:
    """Return how many trials of each model the folders have planned together.

    Where they ask the same problems the plans are equal; where they ask others, those are added. What the
    sweep has no more keeps the larger of its plans.
    """
    plan: Plan = {}
    for source in folders:
        for (_, alias, condition), suites in planned(source.manifest).items():
            _keep_larger(plan.setdefault(alias, {}).setdefault(condition, {}), suites)
    opened: dict[str, ProblemSet] = {}
    for alias, conditions in plan.items():
        fresh = planned_tasks(sweep, alias, without_repeats(_sets(alias, folders, opened)))
        for condition, suites in conditions.items():
            _keep_larger(suites, fresh.get(condition, {}))
    return plan


def _keep_larger(known: dict[str, dict[str, int]], other: Mapping[str, Mapping[str, int]]) -> None:
    for suite, tasks in other.items():
        counts = known.setdefault(suite, {})
        for task, trials in tasks.items():
            counts[task] = max(trials, counts.get(task, 0))


def _sets(alias: str, folders: Sequence[Source], opened: dict[str, ProblemSet]) -> list[ProblemSet]:
    """Return the copies that a model is asked, each once."""
    sets: dict[str, ProblemSet] = {}
    for source in folders:
        wanted = {_name(problem) for problem in _problems(alias, [source])}
        used = source.manifest.get("problem_sets", {})
        for copy in copies(source.folder):
            name = copy.path.name
            if name in used and copy.problem_set in wanted:
                sets[name] = opened.setdefault(name, open_set(copy.path, name=copy.problem_set))
    return list(sets.values())
