"""Checks that a sweep and a results folder belong together, and that their answers can be compared.

A folder holds one sweep, which another may extend. One that was moved or copied stands for itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.loading import Load
from asyncbench.config.questions import ProblemSource
from asyncbench.config.sweep import Sweep, all_sources, as_mapping, load_sweep, set_names_in, sweep_from
from asyncbench.contents import set_name
from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import input_path, quoted
from asyncbench.planning.budget_bounds import named_before
from asyncbench.planning.trials import TrialSource
from asyncbench.problems.copies import Copy, copies, set_apart
from asyncbench.problems.hub import remote_address
from asyncbench.problems.making import generate
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import ROWS_AT_ONCE
from asyncbench.providers.functions import PYTHON
from asyncbench.records import Condition, Model
from asyncbench.store.bucket.claiming import current_folder
from asyncbench.store.bucket.fetching import newest_manifest
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, s3_address
from asyncbench.store.catalog import iter_trials, patiently
from asyncbench.store.manifest import (
    SWEEP_FILE,
    folder_of_sweep_file,
    is_results_folder,
    kept_sweep_file,
    read_manifest,
)
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.requests import TrialIds, way_of_asking
from asyncbench.suites.table import SUITES


def cautions_on_copy(sweep: Sweep, in_batches: int) -> Iterator[str]:
    """Yield cautions on a folder that is a copy, or no longer the one that a bucket gets.

    Args:
        sweep: read from the folder's own sweep file.
        in_batches: how many of its trials are in open batches.
    """
    here, before = sweep.out, sweep.moved_from
    if before is None:
        return
    if (address := s3_address(before)) is not None:
        yield f"{here} was copied from {address}, and stands alone: {address} gets nothing of this run"
        return
    original = Path(before)
    if not is_results_folder(original) or here.samefile(original):
        return
    manifests = map(read_manifest, (here, original))
    births = {(manifest["sweep"], manifest.get("created_at")) for manifest in manifests}
    if len(births) > 1:  # the two did not begin as one folder
        return
    yield (
        f"{here} is a copy of {before}, which is still there. Each asks, and pays, what it lacks itself. Go "
        "on in one of the two"
    )
    if in_batches:
        yield (
            f"{in_batches:,} trials are in open batches that {before} waits for, too. Collect or cancel them "
            "in one of the two, and delete the other: it may find them gone, and ask them again"
        )


def copy_of_lost(source: ProblemSource, sweep: Sweep) -> ProblemSet | None:
    """Return the copy of a set in the folder that a sweep was read from, where its file is not at hand.

    None: it is, or the copy does not suffice: recorded answers and graders of somebody's own are files, too.

    Raises:
        ProblemSetError: the copy is damaged.
        StoreError: the folder's manifest cannot be read.
    """
    folder = None if sweep.file is None else folder_of_sweep_file(sweep.file)
    if folder is None or source.path is None or remote_address(source.path) is not None:
        return None
    if source.run is not None or is_in_file(source.grader or ""):
        return None
    if input_path(source.path, sweep.file).exists():
        return None
    used = read_manifest(folder).get("problem_sets", {})
    name = set_name(source.path)
    alike = [copy.path for copy in copies(folder) if copy.problem_set == name and copy.path.name in used]
    return open_set(alike[0], name=name) if len(alike) == 1 else None


def current_copies(folder: Path) -> list[Copy]:
    """Return the copies of what a folder's sweep asks now, in their newest state.

    The manifest names those of the last run. A set of models that were left out of it counts, too. Where no
    sweep file tells the sets, as in an import, all count.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its manifest cannot be read.
    """
    used, names = read_manifest(folder).get("problem_sets", {}), None
    with suppress(ConfigError, StoreError):  # edited or damaged: a run says so, and reports go on
        names = None if (file := kept_sweep_file(folder)) is None else set_names_in(file)
    return [
        copy
        for copy in copies(folder)
        if copy.path.name in used or (not copy.replaces and (names is None or copy.problem_set in names))
    ]


def set_superseded_apart(sweep: Sweep) -> None:
    """Leave in a folder's problems/ what its sweep asks, and of earlier copies the problems that it lacks.

    Raises:
        ProblemSetError, StoreError: a copy cannot be read, or the folder cannot be written.
    """
    generated = {generated_name(source) for source in all_sources(sweep) if source.path is None}
    set_apart(sweep.out, generated.union(copy.path.name for copy in current_copies(sweep.out)))


# ── functions that changed


def name_versions(sweep: Sweep) -> tuple[Sweep, list[str]]:
    """Return a sweep whose functions do not share an alias with other versions of them, and notes on these.

    A function that was changed answers otherwise, and its folder has the answers of the earlier one.

    Raises:
        StoreError: the folder cannot be read.
    """
    functions = [model for model in sweep.models if model.provider == PYTHON]
    if not functions or not is_results_folder(sweep.out):
        return sweep, []
    earlier_names = named_before(sweep.out, read_manifest(sweep.out))
    new_names = dict[str, str]()
    for model in functions:
        name = f"{PYTHON}/{model.model_id}"
        names = chain([model.alias], (f"{model.alias} #{number}" for number in count(2)))
        new_names[model.alias] = next(alias for alias in names if name in earlier_names.get(alias, [name]))
    changed = {alias: name for alias, name in new_names.items() if alias != name}
    notes = [
        f"{alias}: {sweep.place} has answers of another version of this function. This one is {name!r} there"
        for alias, name in changed.items()
    ]
    renamed = replace(
        sweep,
        models=tuple(replace(model, alias=changed.get(model.alias, model.alias)) for model in sweep.models),
        own_problems={changed.get(alias, alias): sources for alias, sources in sweep.own_problems.items()},
        conditions=tuple(
            condition
            if condition.models is None
            else replace(condition, models=frozenset(changed.get(a, a) for a in condition.models))
            for condition in sweep.conditions
        ),
    )
    return renamed, notes


# ── one folder, one sweep


def check_one_sweep(sweep: Sweep, sets: Iterable[ProblemSet]) -> None:
    """Refuse a sweep that does not ask all problems of its folder's sweep: it is another one.

    Somebody's own file may be corrected: it keeps its name, and some of its problems. A file that is not
    opened, since its models are not asked this time, counts by its name. A damaged folder is left to the
    run, which says what is to be done.

    Args:
        sweep: the sweep.
        sets: those of its problem sets that were opened.

    Raises:
        ConfigError: names the sets that it lacks, and the ways out.
    """
    if not is_results_folder(sweep.out):
        return
    with suppress(StoreError):
        if (file := kept_sweep_file(sweep.out)) is None:
            return
        _check_samples(sweep, file)
        if lacking := _lacking(sweep, [*sets], file):
            raise ConfigError(
                f"{sweep.out} holds answers to problems of {', '.join(lacking)} that this sweep does not "
                "ask. A folder is for one sweep: name another with `out` (--out); --reuse takes over what "
                "both ask. Or add --extend (in Python `extend=True`): then the folder's sweep asks both."
            )


def _check_samples(sweep: Sweep, file: Path) -> None:
    """Refuse a sweep whose samples lack problems that its folder's sweep file asks; raises ConfigError."""
    try:
        before = load_sweep(file)
    except ConfigError:  # edited, or of another version: what it drew is not known
        return
    for earlier in all_sources(before):
        now = [source.sample for source in all_sources(sweep) if source.name == earlier.name]
        if now and not any(sample is None or sample.includes(earlier.sample) for sample in now):
            kept, wanted = (
                "all problems" if sample is None else f"a sample of {sample.said}"
                for sample in (earlier.sample, now[0])
            )
            raise ConfigError(
                f"{sweep.out} is for {kept} of {earlier.name}, and this sweep asks {wanted}, which may lack "
                "some of them. A folder is for one sweep: name another with `out` (--out); --reuse takes "
                "over what both ask. Or ask what the folder is for: --limit asks the first problems of it, "
                "and a larger sample of the same seed adds to it."
            )


def _lacking(sweep: Sweep, sets: Sequence[ProblemSet], file: Path) -> list[str]:
    """Return the sets of a folder's sweep file that were asked, and that a sweep does not ask any more."""
    sources = all_sources(sweep)
    files = {set_name(source.path) for source in sources if source.path is not None}
    suites = [source for source in sources if source.path is None]
    unopened = files - {problems.name for problems in sets}
    same = {generated_name(source) for source in suites}
    before = [
        copy
        for copy in copies(sweep.out)
        if copy.problem_set in set_names_in(file) - unopened
        and copy.path.name not in same
        and not copy.replaces
    ]
    if not before:
        return []
    with TemporaryDirectory(prefix="asyncbench-made-") as made:
        current = [*sets, *(generated_set(source, Path(made)) for source in suites)]
        return sorted(
            copy.problem_set
            for copy in before
            if not _is_asked(
                open_set(copy.path, any_suite=True), current, some_suffice=copy.problem_set in files
            )
        )


def generated_name(source: ProblemSource) -> str:
    """Return the name of the file that `generated_set` makes: it tells all that the problems depend on."""
    suite = SUITES[str(source.suite)]
    parameters = suite.parsed(source.parameters, place=source.place)
    made_with = orjson.dumps([suite.generator_version, source.seed, parameters], option=orjson.OPT_SORT_KEYS)
    return f"{suite.name}-{blake2b(made_with, digest_size=6).hexdigest()}.parquet"


def generated_set(source: ProblemSource, folder: Path) -> ProblemSet:
    """Return the problems of a suite, made in a folder unless they are there."""
    out = folder / generated_name(source)
    if out.exists():
        return open_set(out, name=source.name)
    made = generate(str(source.suite), out, seed=source.seed, exclude=(), **source.parameters)
    return replace(made, name=source.name)


def _is_asked(copy: ProblemSet, sets: Sequence[ProblemSet], *, some_suffice: bool) -> bool:
    """Return whether all problems of a set, or some of them, are in others."""
    if copy.digest in {problems.digest for problems in sets}:
        return True
    copy_ids, ids = (
        pa.chunked_array(
            [
                batch.column(0)
                for problems in group
                for batch in problems.batches(ROWS_AT_ONCE, columns=("problem_id",))
            ],
            pa.string(),
        )
        for group in ([copy], sets)
    )
    matches = pc.is_in(copy_ids, value_set=ids)
    return bool((pc.any if some_suffice else pc.all)(matches).as_py())


def folder_begun(sweep: Sweep) -> Path:
    """Return where on this machine the results are that a sweep has by now; those in a bucket are fetched."""
    address = sweep.copied_to
    if address is None:
        return sweep.out
    newest = newest_manifest(BucketObjects(BucketAddress.parse(address)))
    if newest is None or not newest.files:  # whoever claimed it has uploaded nothing
        return sweep.out
    return current_folder(address, sweep.out)


def extended(sweep: Sweep) -> Sweep:
    """Return the sweep that asks all that its folder's sweep asks, and all that it asks itself.

    Each model is asked what either asks of it. Where both set a limit, a price or a budget, that of `sweep`
    holds; what it leaves out stays.

    Raises:
        ConfigError: both cannot stand in one sweep file.
        StoreError: the folder cannot be read.
    """
    folder = folder_begun(sweep)
    file = kept_sweep_file(folder) if is_results_folder(folder) else None
    if file is None:
        return sweep
    kept = load_sweep(file)
    before, after = as_mapping(kept), as_mapping(sweep)

    # refuse two sweeps that one file cannot hold
    apart = "Both cannot stand in one sweep file: name another folder with `out` (--out)."
    for key in ("conditions", "repeats"):
        if before[key] != after[key]:
            raise ConfigError(f"{sweep.out}: its sweep has other `{key}` than this one. {apart}")
    models = {model.alias: model for model in kept.models}
    for model in sweep.models:
        same = models.get(model.alias, model)
        if way_of_asking(same, Condition()) != way_of_asking(model, Condition()):
            raise ConfigError(
                f"{sweep.out}: its sweep asks {model.alias} otherwise. {apart} "
                "Or give this one another `alias`."
            )

    united = sweep_from(_united(before, after), place=f"{file}, extended by {sweep.file or sweep.name}")
    return replace(
        united,
        out=sweep.out,
        copied_to=sweep.copied_to,
        file=sweep.file,
        notify=sweep.notify,
        track=sweep.track,
        workers=sweep.workers,
        max_tokens_demanded=kept.max_tokens_demanded | sweep.max_tokens_demanded,
    )


def _united(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:  # Any: of sweep files
    """Return the mapping of a sweep that asks what two ask."""
    sweeps = (before, after)
    everything = _joined(before["problems"], after["problems"])
    models = []
    for alias, entry in {entry["alias"]: entry for sweep in sweeps for entry in sweep["models"]}.items():
        # what each sweep asks this model; nothing, where it does not know it
        per_sweep: list[list[Any]] = [
            next(
                (
                    model.get("problems", sweep["problems"])
                    for model in sweep["models"]
                    if model["alias"] == alias
                ),
                [],
            )
            for sweep in sweeps
        ]
        problems = _joined(*per_sweep)
        models.append({**entry, "problems": problems if problems != everything else None})
    return {
        **before,
        **after,
        "name": before["name"],
        "models": models,
        "problems": everything,
        "limits": {**before.get("limits", {}), **after.get("limits", {})},
    }


def _joined(first: list[Any], second: list[Any]) -> list[Any]:
    """Return two lists as one, in which nothing of the second is repeated."""
    return [*first, *(entry for entry in second if entry not in first)]


# ── answers that reports may compare


_ASKING: Final = ("suite", "model", "condition", "style", "condition_params", "params")
_SAMPLE: Final = ("trial_id", "problem_id", "repeat", "load")  # of a trial that was asked so


def check_comparable(sweep: Sweep) -> None:
    """Refuse the folder of a sweep where reports would mix what it holds with what is asked now.

    A damaged folder is left to the run, which says what is to be done.

    Raises:
        ConfigError: a model of the same name was asked otherwise, or a suite's problems have another seed.
    """
    if not is_results_folder(sweep.out):
        return
    with suppress(StoreError):
        for fault in list(_differences(sweep)):
            raise ConfigError(
                f"--out {sweep.out}: it holds {fault}. Name another folder, or continue with: "
                f"asyncbench run {quoted(sweep.out / SWEEP_FILE)}"
            )


def questions_of_steps(sweep: Sweep, load: Load, model: Model, sets: Sequence[TrialSource]) -> str:
    """Return a digest of how the steps of a load ask a model: those of two digests are not compared."""
    digest = blake2b(digest_size=16)
    for condition in sweep.conditions_of(model.alias):
        digest.update(way_of_asking(model, condition))
    for source in sets:
        digest.update(source.problems.digest.encode())
        if (sample := source.problems.sample) is not None:
            digest.update(repr((sample.size, sample.seed, sample.by)).encode())
    how = (load.drain, load.think, load.max_in_flight, load.same_problems)
    digest.update(repr((how, None)).encode())  # None: ids of steps in results folders stay
    return digest.hexdigest()


def _differences(sweep: Sweep) -> Iterator[str]:
    """Yield contents of a folder that its sweep would ask otherwise now."""
    # suites whose problems have another seed
    files = {set_name(source.path) for source in sweep.problems if source.path is not None}
    seeds = {source.name: source.seed for source in sweep.problems if source.path is None}
    for copy in copies(sweep.out):
        suite = copy.problem_set
        if suite not in seeds.keys() - files:
            continue
        if (seed := open_set(copy.path, any_suite=True).seed) not in (None, seeds[suite]):
            yield f"problems of {suite} with seed {seed}"

    # models whose answers have ids that this sweep would not give them
    askings = {
        (model.alias, condition.name): (model, condition)
        for model in sweep.models
        for condition in sweep.conditions_of(model.alias)
    }
    for row in patiently(lambda: list(_sample_of_each_asking(sweep))):
        asking = askings.get((row["model"], row["condition"]))
        if asking is None or row["suite"] not in SUITES:
            continue
        ids = TrialIds(*asking, load=row["load"])
        versions = range(1, SUITES[row["suite"]].prompt_version + 1)
        if row["trial_id"] not in {
            ids.make(row["problem_id"], prompt_version=version, repeat=row["repeat"]) for version in versions
        }:
            yield f"answers of {row['model']} that were asked with other flags"


def _sample_of_each_asking(sweep: Sweep) -> Iterator[dict[str, Any]]:  # Any: of the columns
    """Yield a trial for each way in which any was asked."""
    seen = set[tuple[str, ...]]()
    for batch in iter_trials(sweep.out, [*_ASKING, *_SAMPLE]):
        groups = pa.Table.from_batches([batch]).group_by([*_ASKING], use_threads=False)
        for row in groups.aggregate([(name, "first") for name in _SAMPLE]).to_pylist():
            asking = tuple(row[name] for name in _ASKING)
            if asking not in seen:
                seen.add(asking)
                yield row | {name: row[f"{name}_first"] for name in _SAMPLE}
