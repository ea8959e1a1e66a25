"""Checks that answers of a results folder can be compared with those of a sweep, by the names in reports."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

from asyncbench.config.loading import Load
from asyncbench.config.sweep import Sweep
from asyncbench.errors import ConfigError, StoreError
from asyncbench.planning.trial_columns import TrialSource
from asyncbench.problems.copies import copies
from asyncbench.problems.opening import open_set
from asyncbench.records import Model
from asyncbench.store.catalog import iter_trials, patiently
from asyncbench.store.manifest import SWEEP_FILE, is_results_folder
from asyncbench.suites.requests import TrialIds, way_of_asking
from asyncbench.suites.table import SUITES

_WAY: Final = ("suite", "model", "condition", "style", "condition_params", "params")
_OF_ONE: Final = ("trial_id", "problem_id", "repeat", "load")


def check_comparable(sweep: Sweep) -> None:
    """Refuse the folder of a sweep where reports would mix what it holds with what is asked now.

    A damaged folder is left to the run, which says what is to be done.

    Raises:
        ConfigError: a model of the same name was asked otherwise, or a suite's problems have another seed.
    """
    if not is_results_folder(sweep.out):
        return
    with suppress(StoreError):
        for fault in (*_other_seeds(sweep), *_other_ways(sweep)):
            raise ConfigError(
                f"--out {sweep.out}: it holds {fault}. Name another folder, or continue with: "
                f"asyncbench run {sweep.out / SWEEP_FILE}"
            )


def questions_of_steps(sweep: Sweep, load: Load, model: Model, sets: Sequence[TrialSource]) -> str:
    """Return a digest of how the steps of a load ask a model: those of two digests are not compared."""
    digest = blake2b(digest_size=16)
    for condition in sweep.conditions_of(model.alias):
        digest.update(way_of_asking(model, condition))
    for source in sets:
        digest.update(source.problems.digest.encode())
    how = (load.drain, load.think, load.max_in_flight, load.same_problems)
    digest.update(repr((how, model.serve and model.serve.command)).encode())
    return digest.hexdigest()


def _other_seeds(sweep: Sweep) -> Iterator[str]:
    files = {source.path.stem for source in sweep.problems if source.path is not None}
    seeds = {source.suite: source.seed for source in sweep.problems if source.path is None}
    for copy in copies(sweep.out):
        suite = copy.problem_set
        if suite in seeds.keys() - files and (seed := open_set(copy.path).seed) not in (None, seeds[suite]):
            yield f"problems of {suite} with seed {seed}"


def _other_ways(sweep: Sweep) -> Iterator[str]:
    """Yield whose answers have ids that this sweep would not give them."""
    ways = {
        (model.alias, condition.name): (model, condition)
        for model in sweep.models
        for condition in sweep.conditions_of(model.alias)
    }
    for row in patiently(lambda: list(_one_of_each_way(sweep))):
        known = ways.get((row["model"], row["condition"]))
        if known is None or row["suite"] not in SUITES:
            continue
        ids = TrialIds(*known, load=row["load"])
        versions = range(1, SUITES[row["suite"]].prompt_version + 1)
        if row["trial_id"] not in {
            ids.of(row["problem_id"], prompt_version=version, repeat=row["repeat"]) for version in versions
        }:
            yield f"answers of {row['model']} that were asked with other flags"


def _one_of_each_way(sweep: Sweep) -> Iterator[dict[str, Any]]:  # Any: of the columns
    """Yield a trial for each way in which any was asked."""
    seen = set[tuple[str, ...]]()
    for batch in iter_trials(sweep.out, [*_WAY, *_OF_ONE]):
        ways = pa.Table.from_batches([batch]).group_by([*_WAY], use_threads=False)
        for row in ways.aggregate([(name, "first") for name in _OF_ONE]).to_pylist():
            if (way := tuple(row[name] for name in _WAY)) not in seen:
                seen.add(way)
                yield row | {name: row[f"{name}_first"] for name in _OF_ONE}
