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
    own_aliases: Collection[str],
    conditions: Sequence[Condition],
    place: Place,
) -> Iterator[str]:
    """Yield entries that contradict each other; `own_aliases` are models with problems of their own."""
    if not entry.problems and len(own_aliases) < len(models):
        yield f"{place}: no problems. List problem sets under `problems:`"
    aliases, names = [model.alias for model in models], [condition.name for condition in conditions]
    yield from _namesakes("models", aliases, "Give one of them another `alias`", place)
    yield from _namesakes("conditions", names, "Rename one", place)
    yield from _unequal_limits(entry.limits, models, place)
    yield from _idle_limits(entry.limits, models, place)
    if len(set(aliases)) == len(aliases):
        yield from _equal_askings(models, conditions, place)
        yield from _unsuitable_conditions(models, conditions, place)


def _namesakes(kind: str, names: Sequence[str], way_out: str, place: Place) -> Iterator[str]:
    """Yield pairs of entries that have one name."""
    entries = [(place / kind / i, name) for i, name in enumerate(names)]
    for (first_place, first), (second_place, second) in itertools.combinations(entries, 2):
        if first == second:
            yield (
                f"{second_place}: {first_place.name} and {second_place.name} are both called "
                f"{quoted(first)}. {way_out}"
            )


def _unequal_limits(
    limits: Mapping[str, ProviderEntry], models: Sequence[Model], place: Place
) -> Iterator[str]:
    """Yield groups whose models set different limits, and aliases that name a group: a group shares one."""
    first: dict[str | None, tuple[str, Model]] = {None: ("", models[0])}
    groups = {model.limits.group for model in models}
    for i, model in enumerate(models):
        entry_place, group = place / "models" / i, model.limits.group
        if model.alias in groups:
            yield (
                f"{entry_place}: alias {quoted(model.alias)} also names a limit that models share (`group`, "
                "or `shared` under `limits`). Choose another `alias`"
            )
        first_name, first_model = first.setdefault(group, (entry_place.name, model))
        if group is None:
            continue
        if model.limits.one_at_a_time:
            yield (
                f"{entry_place}: models that share a limit are asked together, but `one_at_a_time` asks one "
                "after the other. Remove `one_at_a_time`, or `group` or `shared`"
            )
        faults = list[str]()
        with collected(faults):
            check_alias(group, place=str(entry_place / "group"))
        yield from faults
        if first_model.limits == model.limits:
            continue

        shared = sharing(group, limits)
        if shared is None:
            owner = f"group {quoted(group)}"
            way_out = "Set the same at both, or under `limits` of their provider"
        else:
            owner = f"`limits.{shared}` (`shared`)"
            way_out = (
                f"Set it under `limits: {shared}` alone, or leave one of them out of it by a `group` of "
                "its own"
            )
        yield (
            f"{entry_place}: {first_name} and {entry_place.name} share the rate limit of {owner}, but set "
            f"different ones ({_differences(first_model.limits, model.limits)}). {way_out}"
        )


def _differences(first: Limits, second: Limits) -> str:
    """Return the differences of two limits: `rpm 60; rpm 30`."""
    both = asdict(first), asdict(second)
    texts: list[str] = []
    for values in both:
        unequal = [(name, value) for name, value in values.items() if both[0][name] != both[1][name]]
        texts.append(
            ", ".join(
                f"{name} {f'{value:g}' if isinstance(value, int | float) else value or 'none'}"
                for name, value in unequal
            )
        )
    return "; ".join(texts)


def _idle_limits(limits: Mapping[str, ProviderEntry], models: Sequence[Model], place: Place) -> Iterator[str]:
    """Yield addresses, budgets and shared limits that cover no model: somebody thinks that they do."""
    providers = {model.provider for model in models}
    addresses = {model.base_url for model in models if model.base_url}
    for name, limit in limits.items():
        entry_place = place / "limits" / name
        idle = ("budget_usd", "shared") if name not in providers and not is_address(name) else ()
        if limit.shared and limit.group is not None:
            yield f"{entry_place}: `shared` and `group` are both set. For all of its models, keep `shared`"
        if is_address(name) and limit.budget_usd is not None:
            yield f"{entry_place}: `budget_usd` is for a provider. Write it under its name, or at each model"
        if is_address(name) and not any(same_address(name, address) for address in addresses):
            choices = ", ".join(sorted(addresses)) or "none"
            yield f"{entry_place}: no model has this `base_url`. Those of this sweep: {choices}"
        for key in idle:
            if getattr(limit, key):
                yield (
                    f"{entry_place}: `{key}` of {name} covers no model of this sweep, "
                    f"which asks {', '.join(sorted(providers))}. Move it to one of these, or remove it"
                )


def _equal_askings(models: Sequence[Model], conditions: Sequence[Condition], place: Place) -> Iterator[str]:
    """Yield entries that would ask the same: that is a slip, since nothing could tell their trials apart."""
    earlier: dict[bytes, list[tuple[str, Condition]]] = {}
    for (i, model), condition in itertools.product(enumerate(models), conditions):
        if not condition.asks(model.alias):
            continue
        name = repr(model.alias) if len(conditions) == 1 else f"{model.alias!r} under {condition.name!r}"
        entry_place = place / "models" / i

        # a template that changes nothing: the question alone, and no field elsewhere
        talk = condition.turns[: len(condition.turns) - condition.examples]
        texts = (condition.system or "", *(turn.content for turn in talk))
        fields = any(sign in text for text in texts for sign in "{}")
        idle = condition.template == f"{{{QUESTION}}}" and not fields
        try:
            json.dumps([model.params, condition.params], allow_nan=False, default=str)  # orjson: NaN is null
            asking = way_of_asking(model, replace(condition, template=None) if idle else condition)
        except (TypeError, ValueError, RecursionError) as error:
            yield f"{entry_place}: a parameter of {name} cannot be sent as JSON: {error}"
            continue
        equal = earlier.setdefault(asking, [])
        for equal_name, equal_condition in equal:
            if condition.suites is None or any(map(equal_condition.is_for, condition.suites)):
                yield (
                    f"{entry_place}: {equal_name} and {name} ask the same model the same way. Remove one, or "
                    "change a parameter. For several answers to each question, set `repeats`"
                )
        equal.append((name, condition))


def _unsuitable_conditions(
    models: Sequence[Model], conditions: Sequence[Condition], place: Place
) -> Iterator[str]:
    """Yield settings of conditions that do not suit a model which is asked under them."""
    for i, model in enumerate(models):
        matching = [(j, condition) for j, condition in enumerate(conditions) if condition.asks(model.alias)]
        if not matching:
            yield f"{place / 'models' / i}: no condition asks {model.alias!r}. Add it to the `models` of one"
        for j, condition in matching:
            variant, params = model.under(condition), {**model.params, **condition.params}
            fault: str | None = None
            if condition.temperature is not None and "temperature" in params:
                fault = "`params` set `temperature`, too, and would win. Remove one of them"
            elif condition.effort not in (None, effort_asked(variant, condition.params)):
                fault = "`params` set an effort, too, and would win. Remove one of them"
            elif variant is not model:
                fault = model_complaint(variant, known_endpoints()[model.provider])
            if fault:
                yield f"{place / 'conditions' / j}: {model.alias!r} under {condition.name!r}: {fault}"
