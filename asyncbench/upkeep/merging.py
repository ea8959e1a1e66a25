"""Merge: `merge_folders` makes one results folder of several that hold results of the same sweep.

The new folder is built under another name and gets its own in one step. The merged folders stay as they are.
"""

import os
import shutil
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import chain, combinations, product
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from asyncbench.config.questions import ProblemSource
from asyncbench.config.sweep import Sweep, as_mapping, load_sweep, sweep_from
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import (
    OWNERS,
    local,
    make_folder,
    quoted,
    storing,
    sync_folders,
    sync_to_disk,
    write_durably,
)
from asyncbench.lanes.batches.spending import copy_given_up, trials_out
from asyncbench.planning.budget_bounds import ASKED, named_before
from asyncbench.planning.forecast_file import FORECAST, joined_forecasts, read_forecasts
from asyncbench.planning.trials import planned_tasks, trial_sources
from asyncbench.problems.copies import PROBLEMS, copies, copy_files, read_problems, set_apart
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.samples import Sample
from asyncbench.records import Condition, Model
from asyncbench.store.bucket.fetching import display_name, local_folder
from asyncbench.store.catalog import read_steps
from asyncbench.store.joining import JoinedFolders, join_folders
from asyncbench.store.lock import LOCK, locked
from asyncbench.store.manifest import (
    IMPORTED,
    LOADS,
    RECORDED,
    SWEEP_FILE,
    WORKERS,
    Manifest,
    claim_folder,
    folders_of,
    joined_recordings,
    planned,
    planned_aliases,
    read_manifest,
    worker_hosts,
    write_sweep_file,
)
from asyncbench.store.names import check_apart
from asyncbench.store.parts import TEMPORARY
from asyncbench.suites.requests import way_of_asking
from asyncbench.tables.report import Report

# ── One sweep of several folders


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
    for first, second in combinations(opened, 2):
        _check_names(first, second)
    check_apart(
        (),
        *map(planned_aliases, manifests),
        place=", ".join(map(str, folders)),
        way_out="Keep the folders apart: most reports take several",
    )

    # The same problem has one right answer in all of them.
    wanted = ["problem_set", "problem_id", "expected"]
    rows = pa.concat_tables(read_problems(source.folder, wanted) for source in opened)
    answers = rows.group_by(wanted).aggregate([]).group_by(wanted[:2]).aggregate([([], "count_all")])
    different = answers.filter(pc.field("count_all") > 1)
    if len(different):
        name, problem_id = different["problem_set"][0].as_py(), different["problem_id"][0].as_py()
        raise ConfigError(
            f"{len(different):,} problems have different answers in the folders, such as {problem_id} of "
            f"{name}. Copy the right problem set into problems/ of each folder. Grade both again with "
            "`asyncbench regrade FOLDER --write`, then merge."
        )
    return opened


def _check_names(first: Source, second: Source) -> None:
    """Refuse an alias, or a condition's name, that stands for two things."""
    models = {model.alias: model for model in second.sweep.models}
    conditions = {condition.name: condition for condition in second.sweep.conditions}
    plain = Condition()
    for model in first.sweep.models:
        if model.alias in models and way_of_asking(model, plain) != way_of_asking(models[model.alias], plain):
            raise ConfigError(
                f"{first.folder} and {second.folder} use the alias {model.alias!r} for different models. "
                f"Compare `models` in their {SWEEP_FILE}. {KEEP_APART}."
            )
    asking = first.sweep.models[0]
    for condition in first.sweep.conditions:
        namesake = conditions.get(condition.name)
        if namesake is not None and way_of_asking(asking, condition) != way_of_asking(asking, namesake):
            raise ConfigError(
                f"{first.folder} and {second.folder} use the name {condition.name!r} for different "
                f"conditions. Compare `conditions` in their {SWEEP_FILE}. {KEEP_APART}."
            )


# ── The sweep of a merged folder: every model, condition and problem set that one of the folders has


Plan = dict[str, dict[str, dict[str, dict[str, int]]]]  # alias → condition → suite → task → trials


def merged_sweep(folders: Sequence[Source], out: Path) -> Sweep:
    """Return the sweep that asks whatever one of these asks, under the same names, with results in `out`.

    Limits, prices and deadlines of a model are those of the first folder that has it.

    Raises:
        ConfigError: two aliases ask the same.
    """
    models = dict[str, Model]()
    for model in (model for source in folders for model in source.sweep.models):
        models.setdefault(model.alias, model)

    # A condition is for every model that any of the folders asks like this.
    conditions = dict[str, Condition]()
    all_conditions = [(source, condition) for source in folders for condition in source.sweep.conditions]
    for _, condition in all_conditions:
        namesakes = [(source, each) for source, each in all_conditions if each.name == condition.name]
        if any(each.models is not None for _, each in namesakes):
            pairs = [(model.alias, each) for source, each in namesakes for model in source.sweep.models]
            asked = frozenset(alias for alias, each in pairs if each.asks(alias))
            condition = replace(condition, models=asked)
        conditions.setdefault(condition.name, condition)

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
    together = f"{' and '.join(str(source.folder) for source in folders)} together"
    return sweep_from(as_mapping(merged), place=together)


def _problems(alias: str, folders: Sequence[Source]) -> tuple[ProblemSource, ...]:
    """Return the problems of a model in any of the folders."""
    return _unlike(
        (source, problem)
        for source in folders
        for model in source.sweep.models
        if model.alias == alias
        for problem in source.sweep.problems_of(model)
    )


def _unlike(problems: Iterable[tuple[Source, ProblemSource]]) -> tuple[ProblemSource, ...]:
    """Return problem sets without those that another folder has as well, be it under another path."""
    by_content: dict[str, ProblemSource] = {}
    for source, problem in problems:
        sets = source.manifest.get("problem_sets", {}).values()
        digests = sorted(str(each["digest"]) for each in sets if each["name"] == problem.name)
        name = problem.path if problem.path is not None and not digests else problem.name
        content = repr((name, digests, replace(problem, place="", path=None)))
        by_content.setdefault(content, problem)
    return tuple(by_content.values())


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
        # The copies that the model is asked, each once.
        sets: dict[tuple[str, Sample | None], ProblemSet] = {}
        for source in folders:
            used = source.manifest.get("problem_sets", {})
            copied = [copy for copy in copies(source.folder) if copy.path.name in used]
            for problem, copy in product(_problems(alias, [source]), copied):
                if copy.problem_set == problem.name:
                    name = copy.path.name
                    problems = opened.setdefault(
                        name, open_set(copy.path, name=copy.problem_set, any_suite=True)
                    )
                    sets[name, problem.sample] = replace(problems, sample=problem.sample)

        fresh = planned_tasks(sweep, alias, trial_sources(list(sets.values())))
        for condition, suites in conditions.items():
            _keep_larger(suites, fresh.get(condition, {}))
    return plan


def _keep_larger(plan: dict[str, dict[str, int]], added: Mapping[str, Mapping[str, int]]) -> None:
    """Raise the numbers of trials in a plan, by suite and task, to those of another."""
    for suite, tasks in added.items():
        counts = plan.setdefault(suite, {})
        for task, trials in tasks.items():
            counts[task] = max(trials, counts.get(task, 0))


# ── One folder of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged(Report):
    """What a merge brought together."""

    out: str
    folders: tuple[str, ...]
    joined: JoinedFolders

    def notes_above(self) -> Iterator[str]:
        joined = self.joined
        yield f"{len(self.folders)} folders: {joined.trials:,} trials, {joined.attempts:,} calls"
        if joined.trials_twice or joined.attempts_twice:
            twice = f"{joined.trials_twice:,} trials were in several folders; the best answer of each is kept"
            calls = f"; {joined.attempts_twice:,} calls were, too, and count once"
            yield twice + (calls if joined.attempts_twice else "")
        if joined.damaged:
            yield f"{joined.damaged:,} damaged lines of their journals are in quarantine/"
        yield f"results in {self.out}; `asyncbench report {quoted(self.out)}`"

    def data(self) -> Mapping[str, object]:
        return {"out": self.out, "folders": self.folders, **asdict(self.joined)}


def merge_folders(folders: Iterable[PathLike[str] | str], out: PathLike[str] | str) -> Merged:
    """Merge results folders of the same sweep into a new one. You can run, report and regrade it.

        ab.merge_folders(["results/machine-a", "results/machine-b"], "results/both")

    If several folders answered the same trial, one row stays: a complete answer before a truncated one, and
    any answer before none. If two folders answered the same trial equally well, the older answer stays. All
    calls are kept and counted, each once. The merged folders do not change.

    Args:
        folders: two or more results folders. No run may be going in any of them.
        out: the folder to make.

    Returns:
        A `Merged`, with the rows of the new folder.

    Raises:
        ConfigError: The folders are not of one sweep, their problems or models differ, one has open
            batches, or `out` exists.
        ProblemSetError: A copy of a problem set is damaged.
        StoreError: A run is going in a folder, a folder cannot be read, or `out` cannot be written.
    """
    paths, merged = [local_folder(folder) for folder in folders], local(out)
    if len({path.resolve() for path in paths}) < max(2, len(paths)):
        raise ConfigError("merge needs at least two results folders. Name each once.")
    if merged.exists() or merged.is_symlink():
        raise ConfigError(f"{merged} exists. Name a new folder with --out.")
    for path in paths:
        if merged.resolve().is_relative_to(path.resolve()):
            raise ConfigError(
                f"{merged} is inside {path}. Name a folder outside of those to merge with --out."
            )

    for path in paths:
        read_manifest(path)  # before a lock is put into what is none of ours
    with ExitStack() as locks:
        for path in paths:
            for each in folders_of(path):
                locks.enter_context(_held_still(each))
            _refuse_open_batches(path)
        _refuse_unlike_steps(paths)
        opened = sources(paths)
        sweep = merged_sweep(opened, merged)
        forecasts = joined_forecasts(map(read_forecasts, paths))
        with _built_beside(merged.absolute()) as draft:
            claim_folder(draft, sweep=sweep.name)
            joined = join_folders(paths, draft)
            copy_given_up(paths, draft)
            _copy_problems(opened, draft)
            _describe(opened, sweep, read_manifest(draft), draft)
            set_apart(draft, current=())
            if forecasts is not None:
                write_durably(draft / FORECAST, forecasts, temporary=draft / TEMPORARY / FORECAST)
    return Merged(out=str(out), folders=tuple(map(display_name, folders)), joined=joined)


def _refuse_open_batches(folder: Path) -> None:
    """Refuse a folder with batches to collect: a merged one could not, and would ask their trials again."""
    if trials := trials_out(folder):
        raise ConfigError(
            f"{folder}: {len(trials):,} trials are in open batches, and only this folder can collect "
            f"them. Run its sweep once more, or cancel them: `asyncbench cancel {quoted(folder)}`. Then "
            "merge."
        )


def _refuse_unlike_steps(folders: Iterable[Path]) -> None:
    """Refuse folders that measured a step each: their calls bear the same ids, but are not the same."""
    measured = dict[tuple[str, str], tuple[object, Path]]()
    for folder in folders:
        for step in read_steps(folder, ["model", "load", "began_at"]).to_pylist():
            began_at, earlier = measured.setdefault((step["model"], step["load"]), (step["began_at"], folder))
            if began_at != step["began_at"]:
                raise ConfigError(
                    f"{earlier} and {folder} have both measured {step['load']} of {step['model']}, each for "
                    "itself. Do not merge them: most reports take several folders"
                )


@contextmanager
def _held_still(folder: Path) -> Iterator[None]:
    """Keep writers out of a folder while it is read; where nothing can be written there are none."""
    if not os.access(folder, os.W_OK):
        yield
        return
    there_before = (folder / LOCK).exists()
    with locked(folder):
        try:
            yield
        finally:
            if not there_before:
                (folder / LOCK).unlink(missing_ok=True)


@contextmanager
def _built_beside(out: Path) -> Iterator[Path]:
    """Yield a new folder that gets its name once it is complete and on the disk.

    Raises:
        StoreError: another merge is making it, or the disk does not take it.
    """
    draft = out.with_name(f".{out.name}.merging")
    with storing(draft):
        make_folder(draft, mode=OWNERS)
    with locked(draft):
        for path in draft.iterdir():  # what a dead process left there
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
        try:
            yield draft
            shutil.rmtree(draft / TEMPORARY, ignore_errors=True)
            with storing(out):
                sync_folders(draft)
                if out.exists():
                    raise StoreError(
                        f"{out} was made by another program meanwhile. Merge into another folder."
                    )
                draft.rename(out)
                sync_to_disk(out.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _copy_problems(folders: Sequence[Source], draft: Path) -> None:
    """Copy every problem set, also earlier ones; of two states of one, the one written last still is."""
    with storing(draft / PROBLEMS):
        for path in (path for source in folders for path in copy_files(source.folder)):
            copy = draft / path.parent.name / path.name
            make_folder(copy.parent)
            if not copy.exists():  # the name tells its content
                shutil.copyfile(path, copy)  # its rights follow the umask
                os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
                sync_to_disk(copy)


def _describe(folders: Sequence[Source], sweep: Sweep, manifest: Manifest, draft: Path) -> None:
    """Write the sweep and the manifest of the merged folder."""
    manifests = [source.manifest for source in folders]
    names_by_alias: dict[str, list[str]] = {}
    for source in folders:
        for alias, names in named_before(source.folder, source.manifest).items():
            names_by_alias[alias] = list(dict.fromkeys([*names_by_alias.get(alias, []), *names]))
    sets = {name: each for source in manifests for name, each in source.get("problem_sets", {}).items()}
    loads: dict[str, list[dict[str, Any]]] = {}
    for alias, settings in chain.from_iterable(source.get(LOADS, {}).items() for source in manifests):
        added = [load for load in settings if load not in loads.get(alias, [])]  # a copy has the same
        loads[alias] = sorted([*loads.get(alias, []), *added], key=itemgetter("since"))

    # On which machines workers were, by name; one name may stand for a worker of each folder.
    hosts: dict[str, set[str]] = {}
    for name, host in (item for source in folders for item in worker_hosts(source.folder).items()):
        hosts.setdefault(name, set()).add(host)
    joined_hosts = {name: ", ".join(sorted(several)) for name, several in hosts.items()}

    write_sweep_file(
        draft,
        yaml.safe_dump(as_mapping(sweep), sort_keys=False).encode(),
        dict(ChainMap(*manifests))  # what the folder named first says, and the others beside
        | manifest
        | {
            "created_at": min(str(each.get("created_at", manifest["created_at"])) for each in manifests),
            "asyncbench": version("asyncbench"),
            "simulated": any(each.get("simulated") for each in manifests),
            "runs": {sweep.name: {"planned": merged_plan(folders, sweep)}},
            "problem_sets": dict(sorted(sets.items())),
            ASKED: names_by_alias,
            RECORDED: joined_recordings(
                (planned_aliases(each), each.get(RECORDED, [])) for each in manifests
            ),
            "merged": [source.folder.resolve().name for source in folders],
        }
        | ({WORKERS: joined_hosts} if joined_hosts else {})
        | ({LOADS: loads} if loads else {}),
    )
