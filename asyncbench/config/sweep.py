"""Sweeps as a whole: a file or a mapping becomes a `Sweep`, and a mapping again."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from asyncbench.config.contradictions import contradictions
from asyncbench.config.entry import Place, collected, drop_unset, read_entry, yaml_of
from asyncbench.config.loading import (
    Load,
    check_keys,
    keys_over,
    load_complaints,
    load_from,
    load_mapping,
    replace_keys,
)
from asyncbench.config.matrix import Keys, expanded, kept_as_written, sent_whole
from asyncbench.config.models import (
    ModelEntry,
    is_address,
    known_provider,
    model_from,
    model_mapping,
    priced_model,
    streams,
)
from asyncbench.config.objects import plain_sweep
from asyncbench.config.questions import (
    ProblemsEntry,
    ProblemSource,
    condition_from,
    condition_mapping,
    matching_aliases,
    source_mapping,
    sources_from,
    suites_of_one_name,
)
from asyncbench.config.run_entries import (
    Batching,
    Notify,
    Track,
    WorkersWanted,
    deadline_from,
    notify_from,
    track_from,
)
from asyncbench.config.sweep_file import StopEntry, SweepEntry
from asyncbench.contents import set_name
from asyncbench.errors import ConfigError
from asyncbench.files import home_expanded
from asyncbench.records import Condition, Model, StopWhen
from asyncbench.store.bucket.claiming import home_of
from asyncbench.store.bucket.objects import journal_folder, s3_address
from asyncbench.store.manifest import SWEEP_FILE, check_sweep_file, folder_of_sweep_file
from asyncbench.suites.plugins import defined_name, is_in_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep file and everything it plans. Always valid: nobody checks it again."""

    name: str
    problems: tuple[ProblemSource, ...]
    own_problems: Mapping[str, tuple[ProblemSource, ...]]  # alias → instead of the sweep's
    models: tuple[Model, ...]
    conditions: tuple[Condition, ...]
    repeats: int
    out: Path
    copied_to: str | None = None  # the address in a bucket that `out` is copied to
    deadline: str | None = None  # when a run stops asking; see `deadline.seconds_left`
    notify: Notify | None = field(default=None, compare=False)  # whom to tell; changes nothing asked
    track: Track | None = field(default=None, compare=False)  # what gets the figures; changes nothing asked
    budget_usd: float | None = None  # the most that all calls may cost, those of earlier runs too
    budget_name: str = field(default="budget_usd", compare=False)  # how messages call it: as it was given
    provider_budgets: Mapping[str, float] = field(default_factory=dict)  # the same of a provider's models
    allow_unpriced: bool = False  # models without a price are asked outside of every budget
    stop_when: StopWhen | None = None  # enough is known of a cell; None: everything is asked
    batch: Batching = field(default_factory=Batching)
    load: Load | None = None  # None: it asks as fast as limits allow
    workers: WorkersWanted = field(default=0, compare=False)  # processes that make its calls
    file: Path | None = field(default=None, compare=False)  # where it was read from
    moved_from: str | None = field(default=None, compare=False)  # the place that its folder had before
    # Aliases whose max_tokens is not the sweep's: their wire format demands one. Changes nothing asked.
    max_tokens_demanded: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def place(self) -> str:
        """The results folder, or the address in a bucket, as people know it."""
        return self.copied_to or str(self.out)

    def problems_of(self, model: Model) -> tuple[ProblemSource, ...]:
        """Return the problems of a model: its own where it names some, else the sweep's."""
        return self.own_problems.get(model.alias, self.problems)

    def conditions_of(self, alias: str) -> tuple[Condition, ...]:
        """Return how a model is asked."""
        return tuple(condition for condition in self.conditions if condition.asks(alias))

    def budgeted(self, model: Model) -> bool:
        """Return whether any budget holds for a model."""
        budgets = (self.budget_usd, self.provider_budgets.get(model.provider), model.budget_usd)
        return any(budget is not None for budget in budgets)


AnySweep: TypeAlias = Sweep | Mapping[str, object] | Path | str  # as a record, as a dict, or its file


# ── from entries to records


def load_sweep(sweep: AnySweep) -> Sweep:
    """Check a sweep and return it as a record: from a file, or from a dict with the keys of a sweep file.

        sweep = ab.load_sweep("night.yaml")
        sweep = ab.load_sweep(
            {
                "name": "night",
                "problems": [{"suite": "integer_addition"}],
                "models": ["openai/gpt-5-mini"],
            }
        )

    Args:
        sweep: the path of a sweep file, a dict, or a `Sweep`, which comes back as it is.

    Returns:
        A `Sweep`. Nothing is generated, called or written.

    Raises:
        ConfigError: The file is missing or is not YAML, or the sweep is wrong; the message says where.
        StoreError: The file lies in a results folder and was changed there.
    """
    return sweep if isinstance(sweep, Sweep) else _sweep_read(sweep, {})


def _sweep_read(sweep: Mapping[str, object] | Path | str, load: Mapping[str, object]) -> Sweep:
    """Return a sweep with other keys of its `load`."""
    if isinstance(sweep, Mapping):
        return sweep_from(_loaded(plain_sweep(sweep), load))
    if not isinstance(sweep, str | PathLike):
        raise ConfigError(f"a sweep is a path, a dict or a Sweep, not {type(sweep).__name__}")
    file = home_expanded(sweep)
    if (folder := folder_of_sweep_file(file)) is None:
        raw, place = yaml_of(file)
        return sweep_from(_loaded(raw, load), place=place, file=file)

    # that of a results folder: its results are there, wherever it was when it was written
    file = folder / SWEEP_FILE
    check_sweep_file(file)
    raw, place = yaml_of(file)
    raw = kept_as_written(raw)
    written = raw.get("out") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(written, str):
        return sweep_from(_loaded(raw, load), place=place, file=file)
    if (address := s3_address(written)) is not None and (home := home_of(folder, address)) is not None:
        return replace(sweep_from(_loaded(raw, load), place=place, file=file), out=home)
    here = folder if folder.name not in ("", "..") else folder.absolute().resolve()
    moved = address is not None or Path(written).absolute() != here.absolute()
    loaded = sweep_from(_loaded({**raw, "out": str(here)}, load), place=place, file=file)
    return replace(loaded, moved_from=written) if moved else loaded


def _loaded(raw: object, load: Mapping[str, object]) -> object:
    """Return a sweep file's content with other keys of `load`. Anything else stays, to be refused."""
    if not load or not isinstance(raw, Mapping) or not isinstance(raw.get("load") or {}, Mapping):
        return raw
    return {**raw, "load": keys_over(raw.get("load") or {}, load)}


def replace_load(sweep: AnySweep, keys: Mapping[str, object], *, place: Place) -> Sweep:
    """Return a sweep whose `load` has other values of some keys, as a sweep file has them.

    Raises:
        ConfigError: they are wrong, or do not go together with the sweep.
    """
    check_keys(keys, place=place)
    if not isinstance(sweep, Sweep):
        return _sweep_read(sweep, keys)  # its own `load` may be whole with these keys alone
    load, models = replace_keys(sweep.load, keys, place=place), sweep.models
    if sweep.load is None:  # as a file with a `load` would have been read: see `sweep_from`
        models = tuple(replace(model, stream=True) for model in models)
    if faults := list(load_complaints(load, models, sweep.stop_when, place=place)):
        raise ConfigError("\n".join(faults))
    return replace(sweep, load=load, models=models)


def priced_models(path: Path) -> tuple[Model, ...]:
    """Return the models of a sweep file with what their prices depend on and their limits, and nothing else.

    For a sweep of the past, whose other files may be gone and which today's rules might refuse.

    Raises:
        ConfigError: the file is missing, is not YAML, or is no sweep.
    """
    entries, place = _value_in(path, "models")
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: has no list of models")
    return tuple(priced_model(model, place=place / i) for i, model in enumerate(entries))


def set_names_in(path: Path) -> set[str]:
    """Return the names of the problem sets of a sweep file, those of single models too.

    Raises:
        ConfigError: the file is missing, or is not YAML.
    """
    models = _value_in(path, "models")[0]
    models = models if isinstance(models, list) else []
    model_lists = [entry.get("problems") for entry in models if isinstance(entry, Mapping)]
    names: set[str] = set()
    for entries in (_value_in(path, "problems")[0], *model_lists):
        for entry in entries if isinstance(entries, list) else ():
            source = entry.get("path") if isinstance(entry, Mapping) else entry
            if source is None and isinstance(entry, Mapping):
                suite = str(entry.get("suite"))
                names.add(defined_name(suite) if is_in_file(suite) else suite)
            else:
                names.add(set_name(str(source)))
    return names


def stop_rule_in(path: Path) -> StopWhen | None:
    """Return the rule by which a sweep file stops a cell, and nothing else of it, or None.

    Raises:
        ConfigError: the file is missing, is not YAML, or its rule is none.
    """
    raw, place = _value_in(path, "stop_when")
    return None if raw is None else _stop_when(read_entry(StopEntry, raw, place=place), place=place)


def _value_in(path: Path, key: str) -> tuple[object, Place]:
    """Return the value of a key in a sweep file, and its place."""
    raw, place = yaml_of(path)
    return raw.get(key) if isinstance(raw, Mapping) else None, place / key


def sweep_from(raw: object, *, place: Place | str = "sweep", file: Path | None = None) -> Sweep:
    """Return the Sweep that a mapping describes (the content of a sweep file).

    Input files are looked for beside `file`, then in the working directory; None: only there.

    Raises:
        ConfigError: it asks for something that cannot be done; every fault has a line.
    """
    place = Place(source=place) if isinstance(place, str) else place
    plain, moved = expanded(raw, place=place)
    place = replace(place, moved=moved)
    entry = read_entry(SweepEntry, plain, place=place)
    out, copied_to = results_place(entry.out or Path("results") / entry.name)
    faults = _lists_sent_whole(raw, out, place) if any("params" in keys for keys in moved) else []
    for name in entry.limits:
        with collected(faults):
            if not is_address(name):
                known_provider(name, place=place / "limits" / name)
    models, own_problems = list[Model](), dict[str, tuple[ProblemSource, ...]]()
    for i, model_entry in enumerate(entry.models):
        with collected(faults):
            here = place / "models" / i
            models.append(
                model_from(
                    model_entry, entry.limits, stream=entry.stream, mode=entry.mode, place=here, near=file
                )
            )
            own_problems |= _own_problems(model_entry, models[-1], place=here / "problems", near=file)
    parts = _other_parts(entry, place, file, faults)  # their suites first: conditions may name them
    conditions = list[Condition]()
    for i, condition in enumerate(entry.conditions):
        with collected(faults):
            conditions.append(condition_from(condition, place=place / "conditions" / i, near=file))

    # what a model and its conditions are together
    if not faults:
        bases = _bases(raw, entry, moved)
        for i, condition_entry in enumerate(entry.conditions):
            with collected(faults):
                if (patterns := condition_entry.models) is not None:
                    aliases = matching_aliases(patterns, bases, place=place / "conditions" / i / "models")
                    conditions[i] = replace(conditions[i], models=aliases)
        # under load, first tokens are to be timed
        sweep_stream = True if entry.load is not None and entry.stream == "auto" else entry.stream
        for i, (model, model_entry) in enumerate(zip(models, entry.models, strict=True)):
            setting = sweep_stream if model_entry.stream is None else model_entry.stream
            matching = [condition for condition in conditions if condition.asks(model.alias)]
            variants = [model, *map(model.under, matching)]
            models[i] = replace(model, stream=any(streams(variant, setting) for variant in variants))
    if not faults:
        faults += contradictions(entry, models, own_problems, conditions, place)
        faults += suites_of_one_name([*parts.get("problems", ()), *chain(*own_problems.values())])
        if (load := parts.get("load")) is not None:
            faults += load_complaints(load, models, parts.get("stop_when"), place=place / "load")
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return Sweep(
        name=entry.name,
        own_problems=own_problems,
        models=tuple(models),
        conditions=tuple(conditions),
        repeats=entry.repeats,
        out=out,
        copied_to=copied_to,
        budget_usd=entry.budget_usd,
        provider_budgets={name: limit.budget_usd for name, limit in entry.limits.items() if limit.budget_usd},
        allow_unpriced=entry.allow_unpriced,
        batch=Batching(**entry.batch.model_dump()),
        workers=entry.workers,
        file=file,
        max_tokens_demanded=frozenset(
            model.alias
            for model, model_entry in zip(models, entry.models, strict=True)
            if model.max_tokens is not None and model_entry.max_tokens is None
        ),
        **parts,
    )


def results_place(out: PathLike[str] | str) -> tuple[Path, str | None]:
    """Return where the results of a sweep go, and the address in a bucket that this folder is copied to."""
    copied_to = s3_address(str(out))
    return journal_folder(copied_to) if copied_to else home_expanded(out), copied_to


def _lists_sent_whole(raw: Any, out: Path, place: Place) -> list[str]:  # Any: as was checked
    """Return complaints about lists of a sweep that its results folder has sent unchanged."""
    try:
        kept, _ = _value_in(out / SWEEP_FILE, "models")
    except ConfigError:  # it has none, or none that can be read
        return []
    return list(sent_whole(raw["models"], kept, place=place / "models"))


def _bases(raw: Any, entry: SweepEntry, moved: Mapping[Keys, Keys]) -> dict[str, str]:  # Any: as was checked
    """Return the alias that each model has without the values of lists, by its alias."""
    bases = {}
    for i, plain in enumerate(entry.models):
        raw_entry = raw["models"][moved["models", i][1]]
        alias = raw_entry.get("alias") if isinstance(raw_entry, Mapping) else None
        bases[plain.alias or plain.model] = alias or plain.model
    return bases


def _other_parts(entry: SweepEntry, place: Place, file: Path | None, faults: list[str]) -> dict[str, Any]:
    """Return the parts of a sweep that stand for themselves; adds what is wrong with them to the faults."""
    parts = dict[str, Any]()
    readers: tuple[tuple[str, Callable[..., object]], ...] = (
        ("problems", partial(sources_from, near=file)),
        ("deadline", deadline_from),
        ("notify", notify_from),
        ("track", track_from),
        ("stop_when", _stop_when),
        ("load", load_from),
    )
    for key, read in readers:
        if (value := getattr(entry, key)) is not None:
            with collected(faults):
                parts[key] = read(value, place=place / key)
    return parts


def _own_problems(
    entry: ModelEntry, model: Model, *, place: Place, near: Path | None
) -> Mapping[str, tuple[ProblemSource, ...]]:
    """Return the problem sets of a model's own, by its alias; those of recorded answers are asked again."""
    if entry.problems is not None:
        return {model.alias: sources_from(entry.problems, place=place, near=near)}
    if model.replay is not None and Path(model.replay).suffix == ".parquet":
        recorded = ProblemsEntry(path=model.replay, run=model.model_id)
        return {model.alias: sources_from([recorded], place=place)}
    return {}


def _stop_when(entry: StopEntry, *, place: Place) -> StopWhen:
    if entry.ci_width is None and entry.saturated is None:
        raise ConfigError(
            f"{place}: `stop_when` has no rule, so it would stop nothing. Set `ci_width`, `saturated` or "
            "both, or leave `stop_when` out"
        )
    return StopWhen(ci_width=entry.ci_width, saturated=entry.saturated)


def all_sources(sweep: Sweep) -> tuple[ProblemSource, ...]:
    """Return every problem set that a sweep names, those of single models, too."""
    return (*sweep.problems, *(source for sources in sweep.own_problems.values() for source in sources))


# ── from a record to the mapping for the results folder


def as_mapping(sweep: Sweep) -> dict[str, object]:
    """Return the sweep as a mapping that `sweep_from` reads back; it holds names of keys, never keys.

    Input files have the path by which they were found, so that this needs no sweep file beside them. Only
    `replay` stays as written: it is a part of trial ids.

    Whom to tell is left out: an address is a secret, and a command is for the machine it was written on.
    """
    settings = {
        "deadline": sweep.deadline,
        "budget_usd": sweep.budget_usd,
        # Their other limits stand at each model.
        "limits": {name: {"budget_usd": usd} for name, usd in sweep.provider_budgets.items()},
        "allow_unpriced": sweep.allow_unpriced,
        "stop_when": {} if sweep.stop_when is None else drop_unset(asdict(sweep.stop_when)),
        "batch": {} if sweep.batch == Batching() else drop_unset(asdict(sweep.batch)),
        "load": {} if sweep.load is None else load_mapping(sweep.load),
        "workers": sweep.workers,
    }
    return {
        "name": sweep.name,
        "problems": [source_mapping(source, sweep.file) for source in sweep.problems],
        "models": [
            model_mapping(model, sweep.own_problems.get(model.alias), sweep.file) for model in sweep.models
        ],
        "conditions": [condition_mapping(condition, sweep.file) for condition in sweep.conditions],
        "repeats": sweep.repeats,
        "out": sweep.place,
        **{name: value for name, value in settings.items() if value},
    }
