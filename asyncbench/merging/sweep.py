"""The sweep of a merged folder: every model, condition and problem set that one of the folders has."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from asyncbench.config import ProblemSource, Sweep, as_mapping, sweep_from
from asyncbench.merging.agreement import Source
from asyncbench.problems import ProblemSet, open_set
from asyncbench.store import Copy, copies, planned
from asyncbench.sweeps import asked_once, planned_tasks

T = TypeVar("T")

Plan = dict[str, dict[str, dict[str, dict[str, int]]]]  # alias → condition → suite → task → trials


def merged_sweep(found: Sequence[Source], out: Path) -> Sweep:
    """Return the sweep that asks whatever one of these asks, under the same names, with results in `out`.

    Limits, prices and deadlines of a model are those of the first folder that has it.

    Raises:
        ConfigError: two aliases ask the same.
    """
    models = _by_name((model.alias, model) for one in found for model in one.sweep.models)
    conditions = _by_name((each.name, each) for one in found for each in one.sweep.conditions)
    asked = {alias: _problems(alias, found) for alias in models}
    everywhere = _unlike((one, problem) for one in found for problem in one.sweep.problems)
    merged = replace(
        found[0].sweep,
        models=tuple(models.values()),
        conditions=tuple(conditions.values()),
        problems=everywhere,
        own_problems={alias: problems for alias, problems in asked.items() if problems != everywhere},
        repeats=max(one.sweep.repeats for one in found),
        out=out,
    )
    return sweep_from(as_mapping(merged), place=f"{' and '.join(str(one.folder) for one in found)} together")


def _by_name(named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return what bears each name first."""
    found: dict[str, T] = {}
    for name, one in named:
        found.setdefault(name, one)
    return found


def _problems(alias: str, found: Sequence[Source]) -> tuple[ProblemSource, ...]:
    """Return what a model is asked in any of the folders."""
    return _unlike(
        (one, problem)
        for one in found
        for model in one.sweep.models
        if model.alias == alias
        for problem in one.sweep.problems_of(model)
    )


def _unlike(problems: Iterable[tuple[Source, ProblemSource]]) -> tuple[ProblemSource, ...]:
    """Return problem sets without those that another folder has as well, be it under another path."""
    return tuple(_by_name((_content(one, problem), problem) for one, problem in problems).values())


def _content(one: Source, problem: ProblemSource) -> str:
    said = one.manifest.get("problem_sets", {}).values()
    digests = sorted(str(each["digest"]) for each in said if each["name"] == _name(problem))
    given = problem.path if problem.path is not None and not digests else _name(problem)
    rest = (problem.suite, problem.seed, dict(problem.parameters), dict(problem.columns))
    return repr((given, digests, *rest, problem.grader, problem.pattern))


def _name(problem: ProblemSource) -> str:
    """Return what trials call the set."""
    return str(problem.suite) if problem.path is None else problem.path.stem


# ── the plan ─────────────────────────────────────────────────────────────────────────────────


def merged_plan(found: Sequence[Source], sweep: Sweep) -> Plan:
    """Return how many trials of each model the folders have planned together.

    Where they ask the same problems the plans are equal; where they ask others, those are added. What the
    sweep has no more keeps the larger of its plans.
    """
    plan = _largest(found)
    opened: dict[str, ProblemSet] = {}
    for alias in plan:
        fresh = planned_tasks(sweep, asked_once(_sets(alias, found, opened)))
        for condition, suites in plan[alias].items():
            for suite, tasks in fresh.get(condition, {}).items():
                known = suites.setdefault(suite, {})
                for task, trials in tasks.items():
                    known[task] = max(trials, known.get(task, 0))
    return plan


def _largest(found: Sequence[Source]) -> Plan:
    plan: Plan = {}
    for one in found:
        for (_, alias, condition), suites in planned(one.manifest).items():
            for suite, tasks in suites.items():
                known = plan.setdefault(alias, {}).setdefault(condition, {}).setdefault(suite, {})
                for task, trials in tasks.items():
                    known[task] = max(trials, known.get(task, 0))
    return plan


def _sets(alias: str, found: Sequence[Source], opened: dict[str, ProblemSet]) -> list[ProblemSet]:
    """Return the copies that a model is asked, each once."""
    sets: dict[str, ProblemSet] = {}
    for one in found:
        wanted = {_name(problem) for problem in _problems(alias, [one])}
        for copy in _used(one):
            if copy.problem_set in wanted:
                name = copy.path.name
                sets[name] = opened.setdefault(name, open_set(copy.path, name=copy.problem_set))
    return list(sets.values())


def _used(one: Source) -> list[Copy]:
    used = one.manifest.get("problem_sets", {})
    return [copy for copy in copies(one.folder) if copy.path.name in used]
