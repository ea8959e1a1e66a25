"""Who is meant by the two names of a comparison, and what they have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from asyncbench.analysis.choosing import Chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.names import Entrant, in_order, names_of
from asyncbench.analysis.notes import simulated_by
from asyncbench.errors import ConfigError
from asyncbench.store.manifest import Manifest, simulated_note
from asyncbench.tables.screen import safe

LISTED: Final = 40  # names in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two."""

    name: str
    folder: str
    run: str
    model: str
    conditions: tuple[str, ...]
    source: Chosen  # where its trials are

    def manifest(self, views: FolderViews) -> Manifest:
        """Return that of its folder, given views of its source."""
        own = [label for (label, _), name in views.names.items() if name == self.model]
        return views.manifest_of(*own or views.chosen.labels)

    def overlaps(self, other: "ComparedSide") -> bool:
        """Whether some trials are of both."""
        own, others = ((Path(one.folder).resolve(), one.run, one.model) for one in (self, other))
        return own == others and bool({*self.conditions} & {*other.conditions})


def sides_of(a: str, b: str, of: Chosen) -> tuple[ComparedSide, ComparedSide]:
    """Return who is meant by two names: of two folders, each in its own; else, by its name among all.

    Raises:
        ConfigError: no results folder; an unknown name; both are the same.
        StoreError: a folder cannot be read.
    """
    own = [replace(of, paths=(path,)) for path in of.paths] if len(of.paths) == 2 else [of]
    names = {place: _names_in(place) for place in own}
    both = [(a, own[0]), (b, own[-1])]
    if of not in own and not all(_meant(name, names[place]) for name, place in both):
        names[of] = _names_in(of)
        if _meant(a, names[of]) and _meant(b, names[of]):
            both = [(a, of), (b, of)]
    first, second = (_side(name, place, names[place]) for name, place in both)
    sides = first, second
    if sides[0].overlaps(sides[1]):
        raise ConfigError(
            f"{a} and {b} are the same. Name two different models, conditions, runs or folders."
        )
    return sides


def simulated_notes(views: FolderViews, sides: Sequence[ComparedSide]) -> tuple[str, ...]:
    if (vendors := simulated_by(views)) is None:
        return ()
    manifests = [counted(side.source, side.manifest) for side in sides]
    told = [said for said in manifests if said.get("simulated")] or manifests
    return tuple(dict.fromkeys(simulated_note(said, vendors) for said in told))


def _names_in(of: Chosen) -> dict[Entrant, str]:
    def look(views: FolderViews) -> dict[Entrant, str]:
        rows = views.rows("SELECT DISTINCT run, model, condition FROM trials")
        return names_of(
            in_order(((row["run"], row["model"], row["condition"]) for row in rows), views.manifest)
        )

    if names := counted(of, look):
        return names
    raise ConfigError(f"{of} has no trials yet. Run its sweep first.")


def _meant(name: str, names: Mapping[Entrant, str]) -> list[Entrant]:
    """Return who may be meant by a name."""
    matching = [entrant for entrant, called in names.items() if called == name]
    return matching or [entrant for entrant in names if name in entrant[:2]]


def _side(name: str, folder: Chosen, names: Mapping[Entrant, str]) -> ComparedSide:
    matching = _meant(name, names)
    if len({entrant[:2] for entrant in matching}) == 1:
        run, model, _ = matching[0]
        conditions = tuple(condition for _, _, condition in matching)
        return ComparedSide(
            name=name, folder=str(folder), run=run, model=model, conditions=conditions, source=folder
        )
    said = f"{name!r} means several models" if matching else f"{folder} has no model {name!r}"
    listed = [names[entrant] for entrant in matching or names]
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    raise ConfigError(f"{said}. Choose one of: {', '.join(map(safe, listed[:LISTED]))}{more}")


def ways_of(a: ComparedSide, b: ComparedSide) -> Mapping[str, int]:
    """Return the conditions that are compared, with a number each: the only one of both, or those of a name.

    Raises:
        ConfigError: there is none.
    """
    if len(a.conditions) == len(b.conditions) == 1:
        return {a.conditions[0]: 0, b.conditions[0]: 0}
    if common := [name for name in a.conditions if name in b.conditions]:
        return {name: n for n, name in enumerate(common)}
    raise ConfigError(
        f"{a.name} and {b.name} were asked under different conditions ({', '.join(a.conditions)}; "
        f"{', '.join(b.conditions)}). Name one condition of each, such as '{a.model} ({a.conditions[0]})'."
    )
