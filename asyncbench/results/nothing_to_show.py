"""What is said where a folder has nothing to show: which folder, and what to do."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from asyncbench.errors import ConfigError
from asyncbench.shown import Report, Sheet
from asyncbench.store import read_trials


def no_trials(folder: Path | str) -> str:
    """Return what to say of a folder without trials."""
    return f"{folder} holds no trials yet: run its sweep first; `asyncbench status {folder}` tells more."


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Report):
    """A report in which there is nothing."""

    folder: str
    said: str

    def _data(self) -> dict[str, object]:
        return {"folder": self.folder, "nothing": self.said}

    def _notes(self) -> Iterator[str]:
        yield self.said

    def _sheets(self) -> Iterator[Sheet]:
        return iter(())


class NothingToShowError(ConfigError):
    """A folder has nothing that a style could show; `page` is the report that says so."""

    def __init__(self, folder: Path | str, said: str) -> None:
        super().__init__(said)
        self.page = Nothing(folder=str(folder), said=said)

    @classmethod
    def of_suites(cls, folder: Path | str, suites: Collection[str]) -> "NothingToShowError":
        """Return the error for a folder without trials of some suites; raises as `read_trials` does."""
        found = sorted(map(str, read_trials(folder, ["suite"])["suite"].unique().to_pylist()))
        if not found:
            return cls(folder, no_trials(folder))
        wanted = " or ".join(suites)
        said = (
            f"{folder} holds no trials of {wanted}, but of {', '.join(found)}: leave `--style` out, or run a "
            f"sweep whose problems are of {wanted}."
        )
        return cls(folder, said)
