"""How the body of a request is put together, whatever the wire format."""

from collections.abc import Mapping

from asyncbench.prompting import merged_params
from asyncbench.records import Condition, Model


def finished(body: Mapping[str, object], model: Model, condition: Condition) -> dict[str, object]:
    """Return a body without what is not set, what a budget adds and then `params` merged into it last.

    Where we write an object ourselves, `params` add to it: `reasoning: {summary: auto}` leaves the effort
    of the sweep in its place.
    """
    said = {name: value for name, value in body.items() if value is not None}
    return merged_params(merged_params(said, model.budget_params), {**model.params, **condition.params})


def at(path: str | None, value: object) -> dict[str, object]:
    """Return an object with a value at a path such as `reasoning.effort`; an empty one without either."""
    if path is None or value is None:
        return {}
    first, point, rest = path.partition(".")
    return {first: at(rest, value) if point else value}
