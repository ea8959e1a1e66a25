"""Whether results folders are of one sweep: nothing that one asks may mean something else in another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.sweep import Sweep, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.problems.copies import read_problems
from asyncbench.records import Condition
from asyncbench.store.manifest import IMPORTED, SWEEP_FILE, Manifest, read_manifest
from asyncbench.suites.requests import asked_as

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
    found = [
        Source(folder=folder, manifest=manifest, sweep=load_sweep(folder / SWEEP_FILE))
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    for source, other in combinations(found, 2):
        _check_names(source, other)
    _check_answers(found)
    return found


def _check_names(source: Source, other: Source) -> None:
    """Refuse an alias, or a condition's name, that stands for two things."""
    models = {model.alias: model for model in other.sweep.models}
    conditions = {condition.name: condition for condition in other.sweep.conditions}
    plain = Condition()
    for model in source.sweep.models:
        if model.alias in models and asked_as(model, plain) != asked_as(models[model.alias], plain):
            raise ConfigError(
                f"{source.folder} and {other.folder} use the alias {model.alias!r} for different models. "
                f"Compare `models` in their {SWEEP_FILE}. {KEEP_APART}."
            )
    asking = source.sweep.models[0]
    for condition in source.sweep.conditions:
        namesake = conditions.get(condition.name)
        if namesake is not None and asked_as(asking, condition) != asked_as(asking, namesake):
            raise ConfigError(
                f"{source.folder} and {other.folder} use the name {condition.name!r} for different "
                f"conditions. Compare `conditions` in their {SWEEP_FILE}. {KEEP_APART}."
            )


def _check_answers(found: Sequence[Source]) -> None:
    """Refuse problem sets that give the same problem another answer."""
    wanted = ["problem_set", "problem_id", "expected"]
    rows = pa.concat_tables(read_problems(source.folder, wanted) for source in found)
    answers = rows.group_by(wanted).aggregate([]).group_by(wanted[:2]).aggregate([([], "count_all")])
    other = answers.filter(pc.field("count_all") > 1)
    if len(other):
        name, problem_id = other["problem_set"][0].as_py(), other["problem_id"][0].as_py()
        raise ConfigError(
            f"{len(other):,} problems have different answers in the folders, such as {problem_id} of {name}. "
            "Copy the right problem set into problems/ of each folder. Grade both again with `asyncbench "
            "regrade FOLDER --write`, then merge."
        )
