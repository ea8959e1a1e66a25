"""What a sweep varies, and what each combination of values and condition would take."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from asyncbench.planning.estimates import total
from asyncbench.planning.records import ModelPlan
from asyncbench.prompting import sent_parameters
from asyncbench.records import Model
from asyncbench.shown import Sheet, dollars


def varied_in(models: Sequence[Model]) -> dict[str, dict[str, object]]:
    """Return the parameters that tell each entry from others of the same model, by alias."""
    alike: dict[tuple[str, ...], dict[str, dict[str, object]]] = {}
    for model in models:
        alike.setdefault((model.provider, model.model_id), {})[model.alias] = (
            sent_parameters(model) | model.compared_limits
        )
    return {
        alias: dict(_varied(own, entries.values()))
        for entries in alike.values()
        for alias, own in entries.items()
    }


def _varied(
    own: Mapping[str, object], entries: Collection[Mapping[str, object]]
) -> Iterator[tuple[str, object]]:
    for key in dict.fromkeys(key for entry in entries for key in entry):
        if any(entry.get(key) != own.get(key) for entry in entries):
            yield key, own.get(key)


@dataclass(slots=True)
class _Sum:
    """Entries with the same values under one condition."""

    entries: int = 0
    trials: int = 0
    left: int = 0
    costs: tuple[float | None, ...] = ()


def matrix_sheets(models: Sequence[ModelPlan]) -> Iterator[Sheet]:
    """Yield a table with a row for each combination of values and condition, if there are several."""
    keys = list(dict.fromkeys(key for model in models for key in model.varied))
    sums: dict[tuple[str, ...], _Sum] = {}
    for model in models:
        values = tuple(_text(model.varied[key]) if key in model.varied else "" for key in keys)
        for condition in model.conditions:
            row = sums.setdefault((*values, condition.name), _Sum())
            row.entries += 1
            row.trials += condition.trials
            row.left += condition.left
            row.costs += (condition.cost_usd,)
    rows = [
        (*named, f"{row.entries:,}", f"{row.trials:,}", f"{row.left:,}", dollars(total(row.costs)))
        for named, row in sums.items()
    ]
    asked = sum(row.entries for row in sums.values())
    title = f"Matrix: {len(models):,} entries, {asked:,} with their conditions"
    head = (*keys, "condition", "entries", "trials", "left", "cost")
    if len(rows) > 1:
        yield Sheet(title=title, head=head, rows=rows, labels=len(keys) + 1)


def _text(value: object) -> str:
    return "not set" if value is None else str(value)
