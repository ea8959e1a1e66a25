"""Who was asked: in which order tables list them, and what they are called."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from asyncbench.store import Manifest, planned

Asked = tuple[str, str, str]  # run, model, condition


def in_order(asked: Iterable[Asked], manifest: Manifest) -> list[Asked]:
    """Return them as they were planned; what was not planned comes last, by name."""
    places = {one: place for place, one in enumerate(planned(manifest))}
    models: dict[tuple[str, str], int] = {}
    for (run, model, _), place in places.items():
        models.setdefault((run, model), place)
    last = len(places)
    return sorted(asked, key=lambda one: (models.get(one[:2], last), places.get(one, last), one))


def names_of(asked: Collection[Asked]) -> dict[Asked, str]:
    """Return what to call each: condition and run are named only where a model has several.

    No two have one name: where aliases look like others' names (`a (b)` beside `a` under condition `b`), all
    of these are named whole, in quotes.
    """
    usual, whole = _usual_names(asked), set[Asked]()
    while True:
        named = {one: _whole_name(*one) if one in whole else name for one, name in usual.items()}
        times = Counter(named.values())
        alike = {one for one, name in named.items() if times[name] > 1} - whole
        if not alike:
            return named
        whole |= alike


def _usual_names(asked: Collection[Asked]) -> dict[Asked, str]:
    conditions, runs = defaultdict[tuple[str, str], set[str]](set), defaultdict[str, set[str]](set)
    for run, model, condition in asked:
        runs[model].add(run)
        conditions[run, model].add(condition)
    named = {}
    for run, model, condition in asked:
        name = f"{model} ({condition})" if len(conditions[run, model]) > 1 else model
        named[run, model, condition] = f"{name}, run {run}" if len(runs[model]) > 1 else name
    return named


def _whole_name(run: str, model: str, condition: str) -> str:
    return f"{model!r} ({condition!r}), run {run!r}"  # quotes in names are escaped: no two are alike
