"""Who was asked what: entrants and kinds of questions in the order in which they are shown.

Every row of the page and of its charts names them by their places in these lists.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.names import Entrant, finest, in_order, names_of, short_names, tasks_shown
from asyncbench.providers.endpoints import is_simulated
from asyncbench.providers.wire import SIMULATOR
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.tables.screen import safe

KindKey = tuple[str, str, str, str]  # suite, task, variant, representation

_ENTRANTS: Final = f"""
SELECT run, model, condition, any_value(provider) AS provider, any_value(effort) AS effort,
    any_value(style) AS style, bool_or(upstream IS NOT DISTINCT FROM '{SIMULATOR}') AS served,
    count(*) AS trials
FROM {{}} GROUP BY run, model, condition
"""  # noqa: S608  a word of ours
_IN_ORDER: Final = {
    place: n
    for n, place in enumerate(
        [*((task, "", "") for task in ARITHMETIC_TASKS)]
        + [(task.task, task.variant, task.representation) for task in TASKS.values()]
    )
}
_KINDS: Final = "SELECT DISTINCT suite, task, variant, representation FROM {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntrant:
    """A run, model and condition: who was asked, and how to call it."""

    run: str
    model: str
    condition: str
    name: str  # whole: with condition and run where the model has several
    short: str  # without what all names begin with; safe to show
    folder: str  # which of several; empty: there is one
    effort: str | None
    style: str | None
    simulated: bool
    trials: int

    @property
    def key(self) -> Entrant:
        """What rows of `trials` have of it."""
        return self.run, self.model, self.condition


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKind:
    """A kind of question: nothing within it is unlike."""

    suite: str
    task: str
    variant: str
    representation: str
    called: str  # safe to show

    @property
    def key(self) -> KindKey:
        """What rows of `trials` have of it, with '' for NULL."""
        return self.suite, self.task, self.variant, self.representation


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Both lists, and the places of their entries."""

    entrants: tuple[NamedEntrant, ...]
    kinds: tuple[NamedKind, ...]

    @property
    def entrant_places(self) -> dict[Entrant, int]:
        """The place of each entrant."""
        return {entrant.key: place for place, entrant in enumerate(self.entrants)}

    @property
    def kind_places(self) -> dict[KindKey, int]:
        """The place of each kind."""
        return {kind.key: place for place, kind in enumerate(self.kinds)}


def asked_in(views: FolderViews, *, answers: str = "trials") -> Asked:
    """Return who was asked what in a folder; entrants as they were planned.

    Args:
        views: of the folders.
        answers: a table that has all trials.
    """
    return views.once(
        "asked", lambda: Asked(entrants=_entrants(views, answers), kinds=_kinds(views, answers))
    )


def entrants_in(views: FolderViews) -> dict[Entrant, int]:
    """Return the place of each entrant."""
    return asked_in(views).entrant_places


def kinds_in(views: FolderViews) -> dict[KindKey, int]:
    """Return the place of each kind."""
    return asked_in(views).kind_places


def _entrants(views: FolderViews, answers: str) -> tuple[NamedEntrant, ...]:
    rows = {
        (row["run"], row["model"], row["condition"]): row for row in views.rows(_ENTRANTS.format(answers))
    }
    names = names_of(in_order(rows, views.manifest))
    shorts = short_names(names.values())
    folders = {model: label for (label, _), model in views.names.items()}
    return tuple(
        NamedEntrant(
            run=run,
            model=model,
            condition=condition,
            name=name,
            short=shorts[name],
            folder=folders.get(model, ""),
            effort=row["effort"],
            style=row["style"],
            simulated=row["served"] or is_simulated(row["provider"]),
            trials=row["trials"],
        )
        for (run, model, condition), name in names.items()
        for row in (rows[run, model, condition],)
    )


def _kinds(views: FolderViews, answers: str) -> tuple[NamedKind, ...]:
    found = {kind_of(row): row for row in views.rows(_KINDS.format(answers))}
    shown = tasks_shown((suite, task) for suite, task, _, _ in found)
    called = _called(found, shown)
    return tuple(
        NamedKind(suite=suite, task=task, variant=variant, representation=form, called=called[key])
        for key in sorted(found, key=_in_suites)
        for suite, task, variant, form in (key,)
    )


def _in_suites(key: KindKey) -> tuple[object, ...]:
    """Return where a kind is shown: as its suite has it, one of a set of your own by its name."""
    suite, task, variant, form = key
    known = _IN_ORDER.get((task, variant, form), _IN_ORDER.get((task, "", ""), len(_IN_ORDER)))
    return suite, known, task, variant, form


def kind_of(row: Mapping[str, Any]) -> KindKey:  # Any: of a row of `trials` or of cells
    """Return the kind of a row."""
    return row["suite"], row["task"], row["variant"] or "", row["representation"] or ""


def _called(keys: Iterable[KindKey], shown: Mapping[tuple[str, str], str]) -> dict[KindKey, str]:
    named = {
        key: {"task": shown[key[:2]], "variant": safe(key[2]), "representation": safe(key[3])} for key in keys
    }
    names = finest(named.values())
    return {
        key: names[parts["task"], parts["variant"], parts["representation"]] for key, parts in named.items()
    }
