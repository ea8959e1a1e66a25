"""What the reports of published benchmarks share: of which folder they are, and their notes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncbench.providers import is_simulated
from asyncbench.results import Graded, graded_by, left_out_at_import, left_out_of
from asyncbench.shown import SIMULATED, Report
from asyncbench.store import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReport(Report):
    """The figures of a results folder as another project publishes them."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]
    left_out: dict[str, int]  # run → entries of its file that could not be imported

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        yield graded_by(self.graders)
        yield from self._outcomes()
        yield from left_out_at_import(self.left_out)
        yield from self._remarks()

    def _outcomes(self) -> Iterator[str]:
        """Yield what became of the trials."""
        return iter(())

    def _remarks(self) -> Iterator[str]:
        """Yield what the tables mean, after all other notes."""
        return iter(())


def about(
    folder: Path | str, manifest: Manifest, *, providers: Collection[str], runs: Collection[str]
) -> dict[str, Any]:
    """Return what every published report tells of its folder, but for the graders."""
    return {
        "folder": str(folder),
        "simulated": any(map(is_simulated, providers)),
        "left_out": left_out_of(manifest, runs=runs),
    }
