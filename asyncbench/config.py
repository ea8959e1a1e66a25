"""Sweep file → a frozen, valid Sweep; every complaint about configuration.

Entries are pydantic models as written in YAML; what leaves this module is made of records only.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from asyncbench.errors import ConfigError
from asyncbench.prompting import asked_as
from asyncbench.providers.anthropic.models import complaint, default_max_tokens
from asyncbench.providers.endpoints import KnownEndpoint, known_endpoints
from asyncbench.records import Condition, Limits, Model, Price, RetryPolicy, Timeouts
from asyncbench.suites import SUITES

# Parts of the sweep format whose work is not built yet: refused with a message, never ignored.
NOT_BUILT: Mapping[str, frozenset[str]] = {
    "sweep": frozenset(
        {"stream", "budget_usd", "mode", "deadline", "notify", "allow_unpriced", "stop_when"},
    ),
    "model": frozenset(
        {"effort", "thinking_tokens", "thinking", "stream", "mode", "budget_usd"}
        | {"input_tpm", "output_tpm", "fraction", "group"}
    ),
    "limits": frozenset({"input_tpm", "output_tpm", "fraction", "group", "budget_usd"}),
    "condition": frozenset({"system", "context", "shots", "style", "params", "suites"}),
    "timeouts": frozenset({"first_byte", "between_chunks"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSource:
    """Where problems come from: a file, or a suite to generate them with."""

    place: str  # for messages: where in the sweep it stands
    path: Path | None = None
    suite: str | None = None
    seed: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)  # parsed, of the suite
    columns: Mapping[str, str] = field(default_factory=dict)  # custom: contract's name → the file's
    grader: str | None = None  # custom
    pattern: str | None = None  # custom, grader `regex`


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

    def problems_of(self, model: Model) -> tuple[ProblemSource, ...]:
        """Return what a model is asked: its own problems where it names some, else the sweep's."""
        return self.own_problems.get(model.alias, self.problems)


MAY_HOLD_A_KEY = frozenset({"key_env", "base_url"})  # by a slip: what was found there is never repeated
NOT_IN_PARAMS = frozenset({"model", "messages", "stream"})  # they would change who is asked, what, or how


# ── entries, as written in YAML ──────────────────────────────────────────────────────────────


class Entry(BaseModel):
    """What one part of a sweep file may hold."""

    model_config = ConfigDict(extra="forbid", strict=True)


Number = Annotated[float, Field(gt=0, strict=False)]
Name = Annotated[str, Field(min_length=1)]


class SweepEntry(Entry):
    name: Name
    problems: list[object] = []
    models: Annotated[list[object], Field(min_length=1)]
    limits: dict[str, object] = {}
    conditions: Annotated[list[object], Field(min_length=1, max_length=1)] = [{"name": "plain"}]
    repeats: PositiveInt = 1
    out: Name | None = None


class ProblemsEntry(Entry):
    path: Name
    suite: Literal["custom"] | None = None
    columns: dict[str, str] = {}
    grader: str | None = None
    pattern: str | None = None


class LimitsEntry(Entry):
    rpm: Number | None = None
    tpm: Number | None = None
    concurrency: PositiveInt | None = None


class PriceEntry(Entry):
    input: Annotated[NonNegativeFloat, Field(strict=False)]
    output: Annotated[NonNegativeFloat, Field(strict=False)]
    cached_input: Annotated[NonNegativeFloat, Field(strict=False)] | None = None
    cache_write: Annotated[NonNegativeFloat, Field(strict=False)] | None = None


class RetryEntry(Entry):
    attempts: PositiveInt = 10
    total_s: Number = 3600.0


class TimeoutsEntry(Entry):
    connect: Number = 30.0
    total: Number = 600.0


class ModelEntry(LimitsEntry):
    model: Name
    alias: Name | None = None
    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s?#]+$")] | None = None
    key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    api: Literal["chat", "messages"] | None = None
    temperature: Annotated[NonNegativeFloat, Field(strict=False)] | None = None
    top_p: Annotated[PositiveFloat, Field(strict=False, le=1)] | None = None
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    system: str | None = None
    params: dict[str, object] = {}
    price: dict[str, object] | None = None
    retry: dict[str, object] = {}
    timeouts: dict[str, object] = {}
    problems: Annotated[list[object], Field(min_length=1)] | None = None


class ConditionEntry(Entry):
    name: Name


E = TypeVar("E", bound=Entry)


def _entry(kind: type[E], raw: object, *, place: str, level: str) -> E:
    """Return `raw` as an entry, or complain about its first fault: place, key, rule, known keys."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{place}: {raw!r} is not a mapping of keys to values")
    for key in raw:
        if key in NOT_BUILT.get(level, ()):
            raise ConfigError(f"{place}: {key!r} is part of the sweep format but not built yet; leave it out")
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as error:
        # A misspelt key first: what is missing is often only its other half.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        key = ".".join(map(str, fault["loc"]))
        known = ", ".join(kind.model_fields)
        shown = fault["type"] not in ("missing", "extra_forbidden") and key not in MAY_HOLD_A_KEY
        found = f" (found {fault['input']!r})" if shown else ""
        raise ConfigError(f"{place}: {key!r}: {fault['msg']}{found}; known keys: {known}") from None


# ── from entries to records ──────────────────────────────────────────────────────────────────


def load_sweep(path: Path | str) -> Sweep:
    """Read a sweep file.

    Raises:
        ConfigError: the file is missing, is not YAML, or asks for something that cannot be done.
    """
    path = Path(path)
    try:
        raw = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give the path of a sweep file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())  # the parser's drawing of the place spans many lines
        raise ConfigError(f"{path}: not a YAML file: {reason}") from None
    return sweep_from(raw, place=str(path))


def sweep_from(raw: object, *, place: str = "sweep") -> Sweep:
    """Return the Sweep that a mapping describes (the content of a sweep file)."""
    entry = _entry(SweepEntry, raw, place=place, level="sweep")
    limits = {provider: _limits(provider, given, place) for provider, given in entry.limits.items()}
    raw_models = [_as_mapping(model) for model in entry.models]
    models = tuple(
        _model(given, limits, place=f"{place}, models[{i}]") for i, given in enumerate(raw_models, 1)
    )
    own = {
        model.alias: _sources(given["problems"], place=f"{place}, models[{i}].problems")
        for i, (model, given) in enumerate(zip(models, raw_models, strict=True), 1)
        if "problems" in given
    }
    conditions = tuple(_condition(given, place) for given in entry.conditions)
    _refuse_equals(models, conditions, place)
    if not entry.problems and len(own) < len(models):
        raise ConfigError(f"{place}: no problems; list problem sets under `problems:`")
    return Sweep(
        name=entry.name,
        problems=_sources(entry.problems, place=f"{place}, problems"),
        own_problems=own,
        models=models,
        conditions=conditions,
        repeats=entry.repeats,
        out=Path(entry.out or Path("results") / entry.name),
    )


def _as_mapping(model: object) -> Mapping[str, object]:
    return {"model": model} if isinstance(model, str) else model if isinstance(model, Mapping) else {}


def _limits(provider: str, given: object, place: str) -> LimitsEntry:
    _known(provider, place=f"{place}, limits")
    return _entry(LimitsEntry, given, place=f"{place}, limits.{provider}", level="limits")


def _known(provider: str, *, place: str) -> KnownEndpoint:
    if provider not in known_endpoints():
        raise ConfigError(
            f"{place}: unknown provider {provider!r}; known: {', '.join(known_endpoints())}. "
            "A server with OpenAI's wire format is reached as http/MODEL with its `base_url`."
        )
    return known_endpoints()[provider]


def _model(given: Mapping[str, object], limits: Mapping[str, LimitsEntry], *, place: str) -> Model:
    entry = _entry(ModelEntry, given, place=place, level="model")
    provider, slash, model_id = entry.model.partition("/")
    if not slash or not model_id:
        raise ConfigError(f"{place}: {entry.model!r} does not name a provider; write provider/model")
    endpoint = _known(provider, place=place)
    if entry.api not in (None, endpoint.api):
        raise ConfigError(f"{place}: {provider} speaks api {endpoint.api!r}, not {entry.api!r}")
    if endpoint.via == "http" and entry.base_url is None and not endpoint.simulated:
        raise ConfigError(f"{place}: {entry.model!r} needs a `base_url`, such as http://localhost:8000/v1")
    model = Model(
        alias=entry.alias or entry.model,
        provider=provider,
        model_id=model_id,
        api=endpoint.api,
        simulated=endpoint.simulated,
        base_url=entry.base_url or endpoint.base_url,
        key_env=entry.key_env or endpoint.key_env,
        system=entry.system,
        temperature=entry.temperature,
        top_p=entry.top_p,
        seed=entry.seed,
        max_tokens=entry.max_tokens or _required_max_tokens(endpoint, model_id),
        params=entry.params,
        price=_price(entry.price, place),
        limits=_merged(limits.get(provider), entry),
        retry=_retry(entry.retry, place),
        timeouts=_timeouts(entry.timeouts, place),
    )
    _check_alias(model.alias, place=place)
    _check_params(model, place=place)
    if endpoint.via == "anthropic" and (fault := complaint(model)):
        raise ConfigError(f"{place}: {fault}")
    return model


def _required_max_tokens(endpoint: KnownEndpoint, model_id: str) -> int | None:
    """Return Anthropic's required max_tokens, the model's longest reply: the one thing that is injected."""
    return default_max_tokens(model_id) if endpoint.via == "anthropic" else None


def _check_params(model: Model, *, place: str) -> None:
    if taken := sorted(NOT_IN_PARAMS & set(model.params)):
        raise ConfigError(f"{place}.params: {taken[0]!r} cannot stand here: it is for asyncbench to set")
    try:
        asked_as(model, Condition())
    except TypeError as error:
        raise ConfigError(f"{place}: a parameter cannot be sent as JSON: {error}") from None


def _check_alias(alias: str, *, place: str) -> None:
    """Refuse an alias that readers of `model=<alias>` folders would take for a number or a date."""
    if (
        not any(sign.isalpha() for sign in alias)
        or not alias.isprintable()
        or len(quote(alias, safe="")) > 240
    ):
        raise ConfigError(
            f"{place}: alias {alias!r}: give one with a letter in it, without control characters, and of at "
            "most 240 characters once percent-encoded: it names a folder"
        )


def _price(given: Mapping[str, object] | None, place: str) -> Price | None:
    if given is None:
        return None
    return Price(**_entry(PriceEntry, given, place=f"{place}.price", level="price").model_dump())


def _retry(given: Mapping[str, object], place: str) -> RetryPolicy:
    return RetryPolicy(**_entry(RetryEntry, given, place=f"{place}.retry", level="retry").model_dump())


def _timeouts(given: Mapping[str, object], place: str) -> Timeouts:
    entry = _entry(TimeoutsEntry, given, place=f"{place}.timeouts", level="timeouts")
    return Timeouts(**entry.model_dump())


def _merged(provider: LimitsEntry | None, model: LimitsEntry) -> Limits:
    """A model's own limit wins over its provider's; what neither says is the default."""
    said = {
        name: value
        for entry in (provider, model)
        if entry is not None
        for name in LimitsEntry.model_fields
        if (value := getattr(entry, name)) is not None
    }
    return Limits(**said)


def _condition(given: object, place: str) -> Condition:
    return Condition(name=_entry(ConditionEntry, given, place=f"{place}, conditions", level="condition").name)


def _refuse_equals(models: Sequence[Model], conditions: Sequence[Condition], place: str) -> None:
    """Two entries of one name, or that would ask the same, are a slip: nothing could tell them apart."""
    for (i, one), (j, other) in itertools.combinations(enumerate(models, 1), 2):
        pair = f"{place}: models[{i}] and models[{j}]"
        if one.alias == other.alias:
            raise ConfigError(f"{pair} are both called {one.alias!r}; give one of them another `alias`")
        if asked_as(one, conditions[0]) == asked_as(other, conditions[0]):
            raise ConfigError(
                f"{pair} ask the same model the same way; remove one or let a parameter differ "
                "(for several answers to each question set `repeats`)"
            )


# ── and back, for the results folder ─────────────────────────────────────────────────────────


def as_mapping(sweep: Sweep) -> dict[str, object]:
    """Return the sweep as a mapping that `sweep_from` reads back; it holds names of keys, never keys."""
    return {
        "name": sweep.name,
        "problems": [_source_mapping(source) for source in sweep.problems],
        "models": [_model_mapping(model, sweep.own_problems.get(model.alias)) for model in sweep.models],
        "conditions": [{"name": condition.name} for condition in sweep.conditions],
        "repeats": sweep.repeats,
        "out": str(sweep.out),
    }


def _model_mapping(model: Model, problems: Sequence[ProblemSource] | None) -> dict[str, object]:
    same = ("alias", "base_url", "key_env", "api", "system", "temperature", "top_p", "seed", "max_tokens")
    mapping: dict[str, object] = {"model": f"{model.provider}/{model.model_id}"}
    mapping |= {name: getattr(model, name) for name in same} | asdict(model.limits)
    mapping |= {"params": dict(model.params), "price": model.price and asdict(model.price)}
    mapping |= {"retry": _of_entry(RetryEntry, model.retry), "timeouts": asdict(model.timeouts)}
    mapping |= {"problems": [_source_mapping(source) for source in problems or ()]}
    return {name: value for name, value in mapping.items() if value not in (None, {}, [])}


def _of_entry(kind: type[Entry], record: RetryPolicy) -> dict[str, object]:
    return {name: getattr(record, name) for name in kind.model_fields}


def _source_mapping(source: ProblemSource) -> dict[str, object] | str:
    if source.path is None:
        return {"suite": source.suite, "seed": source.seed, **source.parameters}
    if source.suite is None:
        return str(source.path)
    custom = {"columns": dict(source.columns), "grader": source.grader, "pattern": source.pattern}
    said = {name: value for name, value in custom.items() if value}
    return {"path": str(source.path), "suite": source.suite, **said}


# ── problems ─────────────────────────────────────────────────────────────────────────────────


def _sources(given: object, *, place: str) -> tuple[ProblemSource, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise ConfigError(f"{place}: {given!r} is not a list of problem sets")
    return tuple(_source(one, place=f"{place}[{i}]") for i, one in enumerate(given, 1))


def _source(given: object, *, place: str) -> ProblemSource:
    if isinstance(given, str):
        return ProblemSource(place=place, path=Path(given))
    if isinstance(given, Mapping) and "path" not in given and "suite" in given:
        return _generated(given, place=place)
    entry = _entry(ProblemsEntry, given, place=place, level="problems")
    if entry.suite is None and (entry.columns or entry.grader or entry.pattern):
        raise ConfigError(f"{place}: columns, grader and pattern go with `suite: custom`")
    return ProblemSource(
        place=place,
        path=Path(entry.path),
        suite=entry.suite,
        columns=entry.columns,
        grader=entry.grader,
        pattern=entry.pattern,
    )


def _generated(given: Mapping[str, object], *, place: str) -> ProblemSource:
    rest = dict(given)
    name, seed = rest.pop("suite"), rest.pop("seed", 0)
    suite = SUITES.get(str(name))
    if suite is None or suite.generate is None:
        makeable = ", ".join(key for key, value in SUITES.items() if value.generate)
        raise ConfigError(f"{place}: suite {name!r} cannot be generated; these can: {makeable}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(f"{place}: seed {seed!r} is not a whole number")
    suite.parsed(rest, place=place)
    return ProblemSource(place=place, suite=suite.name, seed=seed, parameters=rest)
