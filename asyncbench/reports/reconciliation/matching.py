"""Which model of a bill is which of a folder: by what was said, who answered, and who was asked."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.providers.prices import same_model
from asyncbench.reports.reconciliation.our_costs import BillNames

ALL_MODELS: Final = "all models"
_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9]+")
_NO_MATCH: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedNames:
    """What each model is called in the comparison."""

    theirs: Mapping[str | None, str]  # by its name in the file; who is missing was never asked here
    ours: Mapping[BillNames, str]


def matched(
    providers: Mapping[BillNames, str], billed: Collection[str], options: Collection[str], *, place: str
) -> MatchedNames:
    """Return which model of the file is which of the folder.

    Those of whom no reply came go with the commonest of their alias. Of a provider that the file names
    models of, those in no line of it are compared by their own names.

    Args:
        providers: whose model each of those asked is.
        told: the names in the file.
        given: `NAME=ALIAS`, the name in the file and the model of the folder.
        place: the file, for messages.

    Raises:
        ConfigError: a name that was given is in neither, or no model of the file was asked here.
    """
    if not billed:
        if options:
            raise ConfigError(
                f"--model: {place} names no models. Remove the option, and only days are compared."
            )
        return MatchedNames(theirs={None: ALL_MODELS}, ours=dict.fromkeys(providers, ALL_MODELS))
    aliases = _aliases_of(options, billed, providers, place)
    best = {
        ours_names: min((_rank(ours_names, name, aliases), name) for name in billed)
        for ours_names in providers
    }
    matches = {ours_names: name for ours_names, (rank, name) in best.items() if rank < _NO_MATCH}
    if not matches:
        here = _listed({ours_names.model_id or ours_names.alias for ours_names in providers})
        raise ConfigError(
            f"{place}: none of its models was asked here. Match them with --model NAME=ALIAS. The file has: "
            f"{_listed(billed)}; the folder has: {here}."
        )
    by_alias: dict[str, str] = {}
    for ours_names, name in sorted(matches.items(), key=lambda item: item[0].served is None):
        by_alias.setdefault(ours_names.alias, name)
    for ours_names in providers:
        if ours_names.served is None and ours_names.alias in by_alias:
            matches[ours_names] = by_alias[ours_names.alias]
    theirs: dict[str | None, str] = {name: aliases.get(name, name) for name in {*matches.values(), *aliases}}
    ours = {ours_names: theirs[name] for ours_names, name in matches.items()}
    billing = {providers[ours_names] for ours_names in matches}
    for ours_names, provider in providers.items():
        if ours_names not in ours and provider in billing:
            ours[ours_names] = ours_names.model_id or ours_names.alias
    return MatchedNames(theirs=theirs, ours=ours)


def _aliases_of(
    options: Collection[str], billed: Collection[str], ours: Collection[BillNames], place: str
) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for text in options:
        name, sign, alias = text.rpartition("=")
        if not sign or not name or not alias:
            raise ConfigError(f"--model {text!r}: write NAME=ALIAS (name in the file=model here).")
        if name in aliases:
            raise ConfigError(f"--model: {name!r} is there twice. Give it once.")
        if name not in billed:
            raise ConfigError(f"--model {text}: {place} has no {name!r}. It has: {_listed(billed)}.")
        if not any(alias in names for names in ours):
            here = _listed({names.alias for names in ours})
            raise ConfigError(f"--model {text}: the folder has no model {alias!r}. It has: {here}.")
        aliases[name] = alias
    return aliases


def _rank(names: BillNames, name: str, aliases: Mapping[str, str]) -> int:
    """Return how surely a name in the file means one that was asked; 0 is surest."""
    if name in aliases:
        return 0 if aliases[name] in names else _NO_MATCH
    asked_for = [text for text in (names.model_id, names.alias) if text]
    everything = [text for text in (names.served, *asked_for) if text]
    ranks = (
        name == names.served,
        name in asked_for,
        names.served is not None and same_model(names.served, name),
        any(same_model(text, name) for text in asked_for),
        any(_words(name) in (_words(text), _words(text.rsplit("/", 1)[-1])) for text in everything),
    )
    return next((rank for rank, fits in enumerate(ranks, 1) if fits), _NO_MATCH)


def _words(name: str) -> str:
    """Return a name as a person may have written it: `Claude Haiku 4.5` for claude-haiku-4-5."""
    undated = re.sub(r"[-@]20\d{6}$", "", name.lower())
    return _BETWEEN_WORDS.sub("-", undated).strip("-")


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"
