"""A sweep as a whole: a file or a mapping → a `Sweep`, and back."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import Field, PositiveInt, TypeAdapter, ValidationError

from asyncbench.config.conditions import condition_from, condition_mapping
from asyncbench.config.deadline import deadline_from
from asyncbench.config.entry import Dollars, Entry, Keys, Name, Share, Streaming, read_entry
from asyncbench.config.models import (
    ProviderEntry,
    check_alias,
    limits_from,
    model_from,
    model_mapping,
    priced_model,
)
from asyncbench.config.notify import Notify, notify_from
from asyncbench.config.reading import yaml_of
from asyncbench.config.sources import ProblemSource, source_mapping, sources_from
from asyncbench.errors import ConfigError
from asyncbench.prompting import asked_as
from asyncbench.records import Condition, Limits, Model, StopWhen
from asyncbench.store import check_sweep_file


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
    deadline: str | None = None  # when a run stops asking; see `deadline.seconds_left`
    notify: Notify | None = field(default=None, compare=False)  # whom to tell; changes nothing asked
    budget_usd: float | None = None  # the most that all calls may cost, those of earlier runs too
    provider_budgets: Mapping[str, float] = field(default_factory=dict)  # the same of a provider's models
    allow_unpriced: bool = False  # models without a price are asked outside of every budget
    stop_when: StopWhen | None = None  # enough is known of a cell; None: everything is asked
    file: Path | None = field(default=None, compare=False)  # where it was read from
    # Aliases whose max_tokens is not the sweep's: their wire format demands one. Changes nothing asked.
    max_tokens_demanded: frozenset[str] = field(default=frozenset(), compare=False)

    def problems_of(self, model: Model) -> tuple[ProblemSource, ...]:
        """Return what a model is asked: its own problems where it names some, else the sweep's."""
        return self.own_problems.get(model.alias, self.problems)

    def budgeted(self, model: Model) -> bool:
        """Whether any budget holds for a model."""
        budgets = (self.budget_usd, self.provider_budgets.get(model.provider), model.budget_usd)
        return any(budget is not None for budget in budgets)


AnySweep: TypeAlias = Sweep | Mapping[str, object] | Path | str  # as a record, as a dict, or its file


class SweepEntry(Entry):
    name: Name
    problems: Annotated[list[object], Field(default_factory=list)]
    models: Annotated[list[object], Field(min_length=1)]
    limits: Keys
    conditions: Annotated[list[object], Field(min_length=1, default_factory=lambda: [{"name": "plain"}])]
    repeats: PositiveInt = 1
    stream: Streaming = "auto"
    deadline: object = None
    notify: object = None
    budget_usd: Dollars | None = None
    allow_unpriced: bool = False
    stop_when: object = None
    out: Name | None = None


class StopEntry(Entry):
    ci_width: Share | None = None
    saturated: Share | None = None


_DOLLARS: Final[TypeAdapter[float]] = TypeAdapter(Dollars)


# ── from entries to records ──────────────────────────────────────────────────────────────────


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
    if isinstance(sweep, Sweep):
        return sweep
    if isinstance(sweep, Mapping):
        return sweep_from(_with_paths_as_text(sweep))
    check_sweep_file(Path(sweep))
    return sweep_from(yaml_of(Path(sweep)), place=str(sweep), file=Path(sweep))


def _with_paths_as_text(given: object) -> object:
    """Return what a sweep file would hold instead of a dict that was written in Python."""
    match given:
        case Path():
            return str(given)
        case Mapping():
            return {key: _with_paths_as_text(value) for key, value in given.items()}
        case list() | tuple():
            return [_with_paths_as_text(value) for value in given]
    return given


def with_budget(sweep: Sweep, usd: float | None, *, place: str) -> Sweep:
    """Return a sweep that may cost this much, USD, instead of its own `budget_usd`; None: its own.

    Caps of its models and providers stay.

    Raises:
        ConfigError: it is not what a sweep file may hold.
    """
    if usd is None:
        return sweep
    try:
        return replace(sweep, budget_usd=_DOLLARS.validate_python(usd))
    except ValidationError:
        raise ConfigError(
            f"{place}: budget_usd: {usd!r} is not a number of dollars above 0; give one, such as 5"
        ) from None


def priced_models(path: Path) -> tuple[Model, ...]:
    """Return the models of a sweep file with what their prices depend on, and nothing else of it.

    For a sweep of the past, whose other files may be gone and which today's rules might refuse.

    Raises:
        ConfigError: the file is missing, is not YAML, or is no sweep.
    """
    given = _said_in(path, "models")
    if not isinstance(given, list):
        raise ConfigError(f"{path}: holds no list of models")
    return tuple(
        priced_model(_as_mapping(model), place=f"{path}, models[{i}]") for i, model in enumerate(given, 1)
    )


def stop_rule_in(path: Path) -> StopWhen | None:
    """Return when a sweep file stops a cell, and nothing else of it; None: it never does.

    Raises:
        ConfigError: the file is missing, is not YAML, or its rule is none.
    """
    given = _said_in(path, "stop_when")
    return None if given is None else _stop_when(given, place=str(path))


def _said_in(path: Path, key: str) -> object:
    raw = yaml_of(path)
    return raw.get(key) if isinstance(raw, Mapping) else None


def sweep_from(raw: object, *, place: str = "sweep", file: Path | None = None) -> Sweep:
    """Return the Sweep that a mapping describes (the content of a sweep file).

    Input files are looked for beside `file`, then in the working directory; None: only there.
    """
    entry = read_entry(SweepEntry, raw, place=place, level="sweep")
    limits = {provider: limits_from(provider, given, place=place) for provider, given in entry.limits.items()}
    models, own, demanded = list[Model](), dict[str, tuple[ProblemSource, ...]](), set[str]()
    for i, given in enumerate(map(_as_mapping, entry.models), 1):
        here = f"{place}, models[{i}]"
        model = model_from(given, limits, stream=entry.stream, place=here)
        models.append(model)
        if "problems" in given:
            own[model.alias] = sources_from(given["problems"], place=f"{here}.problems")
        elif model.replay is not None and Path(model.replay).suffix == ".parquet":  # recorded answers
            recorded = {"path": model.replay, "run": model.model_id}  # it is asked what was asked then
            own[model.alias] = sources_from([recorded], place=f"{here}.problems")
        if model.max_tokens is not None and given.get("max_tokens") is None:
            demanded.add(model.alias)
    conditions = tuple(
        condition_from(given, place=f"{place}, conditions[{i}]", near=file)
        for i, given in enumerate(entry.conditions, 1)
    )
    _refuse_namesakes("models", [model.alias for model in models], "give one another `alias`", place)
    _refuse_namesakes("conditions", [condition.name for condition in conditions], "rename one", place)
    _refuse_equals(models, conditions, place)
    _refuse_unlike_in_group(models, place)
    _refuse_idle_budgets(limits, models, place)
    if not entry.problems and len(own) < len(models):
        raise ConfigError(f"{place}: no problems; list problem sets under `problems:`")
    return Sweep(
        name=entry.name,
        problems=sources_from(entry.problems, place=f"{place}, problems"),
        own_problems=own,
        models=tuple(models),
        conditions=conditions,
        repeats=entry.repeats,
        out=Path(entry.out or Path("results") / entry.name),
        deadline=None if entry.deadline is None else deadline_from(entry.deadline, place=place),
        notify=None if entry.notify is None else notify_from(entry.notify, place=place),
        budget_usd=entry.budget_usd,
        provider_budgets={name: limit.budget_usd for name, limit in limits.items() if limit.budget_usd},
        allow_unpriced=entry.allow_unpriced,
        stop_when=None if entry.stop_when is None else _stop_when(entry.stop_when, place=place),
        file=file,
        max_tokens_demanded=frozenset(demanded),
    )


def _stop_when(given: object, *, place: str) -> StopWhen:
    entry = read_entry(StopEntry, given, place=f"{place}, stop_when", level="stop_when")
    if entry.ci_width is None and entry.saturated is None:
        raise ConfigError(
            f"{place}, stop_when: holds no rule, so nothing would stop; give `ci_width`, `saturated` or "
            "both, or leave `stop_when` out"
        )
    return StopWhen(ci_width=entry.ci_width, saturated=entry.saturated)


def _as_mapping(model: object) -> Mapping[str, object]:
    return {"model": model} if isinstance(model, str) else model if isinstance(model, Mapping) else {}


def _refuse_namesakes(kind: str, names: Sequence[str], way_out: str, place: str) -> None:
    for (i, one), (j, other) in itertools.combinations(enumerate(names, 1), 2):
        if one == other:
            raise ConfigError(f"{place}: {kind}[{i}] and {kind}[{j}] are both called {one!r}; {way_out}")


def _refuse_unlike_in_group(models: Sequence[Model], place: str) -> None:
    """The models of a group have one limit in common, so each has to say the same one."""
    first: dict[str, tuple[int, Model]] = {}
    for i, model in enumerate(models, 1):
        group = model.limits.group
        if group is None:
            continue
        check_alias(group, place=f"{place}, models[{i}].group")
        if group in {other.alias for other in models}:
            raise ConfigError(f"{place}, models[{i}]: group {group!r} is the alias of a model; rename one")
        j, other = first.setdefault(group, (i, model))
        if other.limits != model.limits:
            raise ConfigError(
                f"{place}: models[{j}] and models[{i}] share the lane of group {group!r}, but not their "
                f"limits ({_limits_text(other.limits)}; {_limits_text(model.limits)}); say the same at both, "
                "or under `limits` of their provider"
            )


def _refuse_idle_budgets(limits: Mapping[str, ProviderEntry], models: Sequence[Model], place: str) -> None:
    """A budget that holds nobody is a slip: somebody thinks that it does."""
    asked = {model.provider for model in models}
    for provider, limit in limits.items():
        if limit.budget_usd is not None and provider not in asked:
            raise ConfigError(
                f"{place}, limits.{provider}: `budget_usd` holds no model of this sweep, which asks "
                f"{', '.join(sorted(asked))}; put it under one of these, or remove it"
            )


def _limits_text(limits: Limits) -> str:
    hidden = ("group", "most")
    said = {name: value for name, value in asdict(limits).items() if value is not None and name not in hidden}
    return ", ".join(f"{name} {value}" for name, value in said.items())


def _refuse_equals(models: Sequence[Model], conditions: Sequence[Condition], place: str) -> None:
    """Entries that would ask the same are a slip: nothing could tell their trials apart."""
    ways: dict[bytes, list[tuple[str, Condition]]] = {}
    for (i, model), (j, condition) in itertools.product(enumerate(models, 1), enumerate(conditions, 1)):
        way = f"models[{i}]" if len(conditions) == 1 else f"models[{i}] under conditions[{j}]"
        try:
            json.dumps([model.params, condition.params], allow_nan=False, default=str)  # orjson: NaN is null
            alike = ways.setdefault(asked_as(model, condition), [])
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{place}, {way}: a parameter cannot be sent as JSON: {error}") from None
        for earlier, other in alike:
            if condition.suites is None or any(map(other.is_for, condition.suites)):
                raise ConfigError(
                    f"{place}: {earlier} and {way} ask the same model the same way; remove one or let a "
                    "parameter differ (for several answers to each question set `repeats`)"
                )
        alike.append((way, condition))


# ── and back, for the results folder ─────────────────────────────────────────────────────────


def as_mapping(sweep: Sweep) -> dict[str, object]:
    """Return the sweep as a mapping that `sweep_from` reads back; it holds names of keys, never keys.

    Input files have the path by which they were found, so that this needs no sweep file beside them. Only
    `replay` stays as written: it is a part of trial ids.

    Whom to tell is left out: an address is a secret, and a command is for the machine it was written on.
    """
    rules = {} if sweep.stop_when is None else asdict(sweep.stop_when)
    said = {
        "deadline": sweep.deadline,
        "budget_usd": sweep.budget_usd,
        # Their other limits stand at each model.
        "limits": {name: {"budget_usd": usd} for name, usd in sweep.provider_budgets.items()},
        "allow_unpriced": sweep.allow_unpriced,
        "stop_when": {name: share for name, share in rules.items() if share is not None},
    }
    return {
        "name": sweep.name,
        "problems": [source_mapping(source, sweep.file) for source in sweep.problems],
        "models": [
            model_mapping(model, sweep.own_problems.get(model.alias), sweep.file) for model in sweep.models
        ],
        "conditions": [condition_mapping(condition, sweep.file) for condition in sweep.conditions],
        "repeats": sweep.repeats,
        "out": str(sweep.out),
        **{name: value for name, value in said.items() if value},
    }
