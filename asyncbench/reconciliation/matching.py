"""Which model of a bill is which of a folder: by what was said, who answered, and who was asked."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.providers import same_model
from asyncbench.reconciliation.our_costs import BillNames

_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9]+")
NO_MATCH: Final = 9


def aliases_of(given: Collection[str]) -> dict[str, str]:
    """Return `NAME=ALIAS` as a mapping from names in the file to those of the folder.

    Raises:
        ConfigError: one is not of that form, or stands twice.
    """
    found: dict[str, str] = {}
    for one in given:
        name, sign, alias = one.rpartition("=")
        if not sign or not name or not alias:
            raise ConfigError(f"--model {one!r}: write NAME=ALIAS, the name in the file and the model here")
        if name in found:
            raise ConfigError(f"--model: {name!r} stands twice; give it once")
        found[name] = alias
    return found


def matched(
    asked: Collection[BillNames], names: Collection[str], aliases: Mapping[str, str], *, place: str
) -> dict[BillNames, str]:
    """Return the name in the file for each of those asked; who is in no line of it is left out.

    Those of whom no reply came go with the commonest of their alias.

    Raises:
        ConfigError: an alias names a model that is not in the file, or not in the folder.
    """
    for name, alias in aliases.items():
        if name not in names:
            raise ConfigError(f"--model {name}={alias}: {place} has no {name!r}; it has: {_listed(names)}")
        if not any(alias in one for one in asked):
            here = _listed({one.alias for one in asked})
            raise ConfigError(f"--model {name}={alias}: the folder has no model {alias!r}; it has: {here}")
    found = {one: best for one in asked if (best := _best(one, names, aliases)) is not None}
    by_alias: dict[str, str] = {}
    for one, name in sorted(found.items(), key=lambda item: item[0].served is None):
        by_alias.setdefault(one.alias, name)
    alone = {one: by_alias[one.alias] for one in asked if one.served is None and one.alias in by_alias}
    return found | alone


def _best(one: BillNames, names: Collection[str], aliases: Mapping[str, str]) -> str | None:
    ranked = sorted((_rank(one, name, aliases), name) for name in names)
    return ranked[0][1] if ranked and ranked[0][0] < NO_MATCH else None


def _rank(one: BillNames, name: str, aliases: Mapping[str, str]) -> int:
    """Return how surely a name in the file means one that was asked; 0 is surest."""
    if name in aliases:
        return 0 if aliases[name] in one else NO_MATCH
    asked_for = [text for text in (one.model_id, one.alias) if text]
    ranks = (
        name == one.served,
        name in asked_for,
        one.served is not None and same_model(one.served, name),
        any(same_model(text, name) for text in asked_for),
        any(_words(name) in (_words(text), _words(_tail(text))) for text in (one.served, *asked_for) if text),
    )
    return next((rank for rank, fits in enumerate(ranks, 1) if fits), NO_MATCH)


def _words(name: str) -> str:
    """Return a name as a person may have written it: `Claude Haiku 4.5` for claude-haiku-4-5."""
    undated = re.sub(r"[-@]20\d{6}$", "", name.lower())
    return _BETWEEN_WORDS.sub("-", undated).strip("-")


def _tail(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"
