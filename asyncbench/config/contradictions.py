"""Contradictions between the parts of a sweep, each of which is fine alone."""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from asyncbench.config.entry import Place, collected, quoted
from asyncbench.config.models import ProviderEntry, check_alias, is_address, same_address, sharing
from asyncbench.config.sweep_file import SweepEntry
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.params import effort_asked, model_complaint
from asyncbench.records import Condition, Limits, Model
from asyncbench.suites.requests import QUESTION, way_of_asking


def contradictions(
    entry: SweepEntry,
    models: Sequence[Model],
    own: Collection[str],
    conditions: Sequence[Condition],
    place: Place,
) -> Iterator[str]:
    """Yield what cannot be together; `own`: aliases of models with problems of their own."""
    if not entry.problems and len(own) < len(models):
        yield f"{place}: no problems. List problem sets under `problems:`"
    aliases, names = [model.alias for model in models], [condition.name for condition in conditions]
    yield from _namesakes("models", aliases, "Give one of them another `alias`", place)
    yield from _namesakes("conditions", names, "Rename one", place)
    yield from _unlike_in_group(entry.limits, models, place)
    yield from _idle_limits(entry.limits, models, place)
    if len(set(aliases)) == len(aliases):
        yield from _equals(models, conditions, place)
        yield from _unlike_under(models, conditions, place)


def _namesakes(kind: str, names: Sequence[str], way_out: str, place: Place) -> Iterator[str]:
    places = [place / kind / i for i in range(len(names))]
    for (here, one), (there, other) in itertools.combinations(zip(places, names, strict=True), 2):
        if one == other:
            yield f"{there}: {here.name} and {there.name} are both called {quoted(one)}. {way_out}"


def _unlike_in_group(
    limits: Mapping[str, ProviderEntry], models: Sequence[Model], place: Place
) -> Iterator[str]:
    """Yield groups whose models set different limits, and aliases that name a group: a group shares one."""
    first: dict[str | None, tuple[str, Model]] = {None: ("", models[0])}
    groups = {model.limits.group for model in models}
    for i, model in enumerate(models):
        here, group = place / "models" / i, model.limits.group
        if model.alias in groups:
            yield (
                f"{here}: alias {quoted(model.alias)} also names a limit that models share (`group`, or "
                "`shared` under `limits`). Choose another `alias`"
            )
        named, other = first.setdefault(group, (here.name, model))
        if group is None:
            continue
        shared = sharing(group, limits)
        faults = list[str]()
        with collected(faults):
            check_alias(group, place=str(here / "group"))
        yield from faults
        if other.limits != model.limits:
            whose = f"group {quoted(group)}" if shared is None else f"`limits.{shared}` (`shared`)"
            yield (
                f"{here}: {named} and {here.name} share the rate limit of {whose}, but set different ones "
                f"({_unlike(other.limits, model.limits)}). {_one_limit(shared)}"
            )


def _one_limit(shared: str | None) -> str:
    """Return how to set one limit for models that are under one."""
    if shared is None:
        return "Set the same at both, or under `limits` of their provider"
    return f"Set it under `limits: {shared}` alone, or leave one of them out of it by a `group` of its own"


def _idle_limits(limits: Mapping[str, ProviderEntry], models: Sequence[Model], place: Place) -> Iterator[str]:
    """Yield addresses, budgets and shared limits that cover no model: somebody thinks that they do."""
    providers = {model.provider for model in models}
    addresses = {model.base_url for model in models if model.base_url}
    for name, limit in limits.items():
        here = place / "limits" / name
        idle = ("budget_usd", "shared") if name not in providers and not is_address(name) else ()
        if limit.shared and limit.group is not None:
            yield f"{here}: `shared` and `group` are both set. For all of its models, keep `shared`"
        if is_address(name) and limit.budget_usd is not None:
            yield f"{here}: `budget_usd` is for a provider. Write it under its name, or at each model"
        if is_address(name) and not any(same_address(name, address) for address in addresses):
            known = ", ".join(sorted(addresses)) or "none"
            yield f"{here}: no model has this `base_url`. Those of this sweep: {known}"
        for key in idle:
            if getattr(limit, key):
                yield (
                    f"{here}: `{key}` of {name} covers no model of this sweep, "
                    f"which asks {', '.join(sorted(providers))}. Move it to one of these, or remove it"
                )


def _unlike(*both: Limits) -> str:
    """Return what differs of two limits, as text."""
    one, other = map(asdict, both)
    texts = (
        ", ".join(f"{name} {_value_text(values[name])}" for name in one if one[name] != other[name])
        for values in (one, other)
    )
    return "; ".join(texts)


def _value_text(value: float | str | None) -> str:
    return f"{value:g}" if isinstance(value, int | float) else value or "none"


def _unlike_under(models: Sequence[Model], conditions: Sequence[Condition], place: Place) -> Iterator[str]:
    """Yield settings of conditions that do not suit a model which is asked under them."""
    for i, model in enumerate(models):
        matching = [(j, condition) for j, condition in enumerate(conditions) if condition.asks(model.alias)]
        if not matching:
            yield f"{place / 'models' / i}: no condition asks {model.alias!r}. Add it to the `models` of one"
        for j, condition in matching:
            if fault := _fault_under(model, condition):
                yield f"{place / 'conditions' / j}: {model.alias!r} under {condition.name!r}: {fault}"


def _fault_under(model: Model, condition: Condition) -> str | None:
    under = model.under(condition)
    if condition.temperature is not None and "temperature" in {**model.params, **condition.params}:
        return "`params` set `temperature`, too, and would win. Remove one of them"
    if condition.effort not in (None, effort_asked(under, condition.params)):
        return "`params` set an effort, too, and would win. Remove one of them"
    return None if under is model else model_complaint(under, known_endpoints()[model.provider])


def _equals(models: Sequence[Model], conditions: Sequence[Condition], place: Place) -> Iterator[str]:
    """Entries that would ask the same are a slip: nothing could tell their trials apart."""
    ways: dict[bytes, list[tuple[str, Condition]]] = {}
    for (i, model), condition in itertools.product(enumerate(models), conditions):
        if not condition.asks(model.alias):
            continue
        way = repr(model.alias) if len(conditions) == 1 else f"{model.alias!r} under {condition.name!r}"
        here = place / "models" / i
        try:
            json.dumps([model.params, condition.params], allow_nan=False, default=str)  # orjson: NaN is null
            alike = ways.setdefault(way_of_asking(model, _without_idle_template(condition)), [])
        except (TypeError, ValueError, RecursionError) as error:
            yield f"{here}: a parameter of {way} cannot be sent as JSON: {error}"
            continue
        for earlier, other in alike:
            if condition.suites is None or any(map(other.is_for, condition.suites)):
                yield (
                    f"{here}: {earlier} and {way} ask the same model the same way. Remove one, or change a "
                    "parameter. For several answers to each question, set `repeats`"
                )
        alike.append((way, condition))


def _without_idle_template(condition: Condition) -> Condition:
    """Return a condition without a template that changes nothing: the question alone, and no other field."""
    talk = condition.turns[: len(condition.turns) - condition.examples]
    texts = (condition.system or "", *(turn.content for turn in talk))
    idle = condition.template == f"{{{QUESTION}}}" and not any(
        sign in text for text in texts for sign in "{}"
    )
    return replace(condition, template=None) if idle else condition
