"""What the reports of published benchmarks share: of which folder they are, and their notes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.notes import (
    FolderReport,
    Graded,
    NothingToShowError,
    graded_by,
    left_out_at_import,
    left_out_of,
)
from asyncbench.published.pictures import PublishedPicture
from asyncbench.published.printed import printed_mapping, sources_note
from asyncbench.store.manifest import Manifest

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReport(FolderReport):
    """The figures of a results folder as another project publishes them."""

    graders: tuple[Graded, ...]
    left_out: dict[str, int]  # run → entries of its file that could not be imported
    published: tuple[pa.Table, ...] = ()  # tables of its document, to stand beside the folder's figures

    def _notes(self) -> Iterator[str]:
        yield from self._simulated()
        yield graded_by(self.graders)
        yield from self._outcomes()
        yield from left_out_at_import(self.left_out)
        yield from self._remarks()
        if self.published:
            yield sources_note(self.published)

    def _with_published(self, data: dict[str, object]) -> dict[str, object]:
        """Return what JSON has, with the published tables where they were asked for."""
        return data | ({"published": list(map(printed_mapping, self.published))} if self.published else {})

    def pictures(self) -> Iterator[PublishedPicture]:
        """Yield the pictures of the benchmark's document, drawn from the folder's results."""
        return iter(())

    def _outcomes(self) -> Iterator[str]:
        """Yield what became of the trials."""
        return iter(())

    def _remarks(self) -> Iterator[str]:
        """Yield what the tables mean, after all other notes."""
        return iter(())


def about(
    folder: Folders, manifest: Manifest, simulated_note: str, *, runs: Collection[str]
) -> dict[str, Any]:
    """Return what every published report tells of its folder, but for the graders."""
    return {
        "folder": str(chosen(folder)),
        "simulated_note": simulated_note,
        "left_out": left_out_of(manifest, runs=runs),
    }


def counted_of(folder: Folders, suites: Sequence[str], count: Callable[[FolderViews], T]) -> T:
    """Return what `count` makes of a folder's views, where it holds any trial of these suites of ours.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of them.
        StoreError: it cannot be read.
    """
    named = ", ".join(f"'{suite}'" for suite in suites)
    of_suites = f"SELECT 1 FROM trials WHERE suite IN ({named}) LIMIT 1"  # noqa: S608  names of ours

    def look(views: FolderViews) -> T:
        if not views.rows(of_suites):
            counts = views.rows("SELECT DISTINCT suite FROM trials ORDER BY suite")
            raise NothingToShowError.of_suites(views.chosen, suites, [row["suite"] for row in counts])
        return count(views)

    return counted(folder, look)
