"""How the body of a request is put together, whatever the wire format."""

from collections.abc import Mapping

from asyncbench.records import Request


def finished(body: Mapping[str, object], request: Request) -> dict[str, object]:
    """Return a body without what is not set, `params` merged into it last.

    Where we write an object ourselves, `params` add to it: `reasoning: {summary: auto}` leaves the effort
    of the sweep in its place.
    """
    said = {name: value for name, value in body.items() if value is not None}
    return merged(said, {**request.trial.model.params, **request.trial.condition.params})


def merged(ours: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return `ours` with what is given over it, objects inside objects likewise."""
    return {**ours, **{name: _over(ours.get(name), value) for name, value in given.items()}}


def at(path: str | None, value: object) -> dict[str, object]:
    """Return an object with a value at a path such as `reasoning.effort`; an empty one without either."""
    if path is None or value is None:
        return {}
    first, point, rest = path.partition(".")
    return {first: at(rest, value) if point else value}


def _over(ours: object, given: object) -> object:
    if isinstance(ours, Mapping) and isinstance(given, Mapping):
        return merged(ours, given)
    return given
