"""Reports on results folders, and the notes that stand before their figures.

`FolderReport` first says if answers are simulated, `ReportOfChosen` which folders and trials count, and
`Nothing` why there are no figures.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import counted
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.tables.data import HIDDEN, data_of
from asyncbench.tables.report import Report
from asyncbench.tables.screen import safe_notes


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReport(Report):
    """A report on a results folder, which says first if results are simulated."""

    folder: str
    simulated_note: str = field(metadata=HIDDEN)  # empty: no results are simulated

    @property
    def simulated(self) -> bool:
        """True if any of the results are simulated."""
        return bool(self.simulated_note)

    @property
    def nothing(self) -> str | None:
        """The sentence that replaces all others where there is nothing to show, or None."""
        return None

    def data(self) -> dict[str, Any]:  # Any: JSON
        return {"folder": self.folder, "simulated": self.simulated, **data_of(self)}

    def notes_above(self) -> Iterator[str]:
        yield from self.simulated_notes()
        yield from [self.nothing] if self.nothing else self.remarks()

    def remarks(self) -> Iterator[str]:
        """Yield remarks on the figures that are shown."""
        return iter(())

    def simulated_notes(self) -> Iterator[str]:
        """Yield the note that results are simulated, if they are."""
        if self.simulated_note:
            yield self.simulated_note


# ── reports of chosen trials ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOfChosen(Report):
    """A report of several folders, or of some trials: it says so first, and tells each model's folder."""

    whole: Report
    choice: Chosen

    def heading(self) -> str:
        return self.whole.heading()

    def screen_text(self, width: int | None, height: int | None) -> str:
        notes = "\n".join(safe_notes(self.choice.notes(), width=width))
        remaining = None if height is None else height - notes.count("\n") - 1
        return f"{notes}\n{self.whole.as_text(width=width, height=remaining)}"

    def content(self) -> Iterator[Any]:
        yield from self.choice.notes()
        yield from self.whole.content()

    def latex_content(self) -> Iterator[Any]:
        yield from self.choice.notes()
        yield from self.whole.latex_content()

    def data(self) -> dict[str, object]:
        # `counted` reads again where parts are replaced meanwhile.
        names = counted(self.choice, lambda views: views.names) if self.choice.several else {}
        folders = {name: folder for (folder, _), name in names.items()}
        return {"chosen": [*self.choice.notes()], **_add_folders(self.whole.data(), folders)}


def tell_choice(whole: Report, folder: Folders) -> Report:
    """Return a report that says of which folders and trials it is, where that is not one folder's all."""
    choice = chosen(folder)
    return whole if choice.plain else ReportOfChosen(whole=whole, choice=choice)


def _add_folders(value: Any, folders: Mapping[str, str]) -> Any:
    """Return the data for JSON, with `folder` beside each model and lane that has one."""
    if isinstance(value, list | tuple):
        return [_add_folders(item, folders) for item in value]
    if not isinstance(value, Mapping):
        return value
    entries = {key: _add_folders(item, folders) for key, item in value.items()}
    name = entries.get("model", entries.get("lane"))
    return {"folder": folders[name], **entries} if isinstance(name, str) and name in folders else entries


# ── empty folders ────────────────────────────────────────────────────────────────────────────────


def no_trials(folder: object) -> str:
    """Return the sentence for a folder without trials."""
    status = f"asyncbench status {quoted(folder)}"
    return f"{folder} has no trials yet. Run its sweep first. `{status}` shows how far it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Report):
    """A report in which there is nothing: which folder, and what to do."""

    folder: str
    nothing: str

    def notes_above(self) -> Iterator[str]:
        yield self.nothing


class NothingToShowError(ConfigError):
    """A folder has nothing that a style could show; `page` is the report that says so."""

    def __init__(self, folder: object, message: str) -> None:
        super().__init__(message)
        self.page = Nothing(folder=str(folder), nothing=message)

    @classmethod
    def missing_suites(
        cls, folder: object, suites: Collection[str], present: Sequence[str]
    ) -> "NothingToShowError":
        """Return the error for a folder without trials of some suites; it has those that are `present`."""
        if not present:
            return cls(folder, no_trials(folder))
        wanted = " or ".join(suites)
        message = (
            f"{folder} has no trials of {wanted}, only of {', '.join(present)}. Leave out `--style`, or run "
            f"a sweep with problems of {wanted}."
        )
        return cls(folder, message)
