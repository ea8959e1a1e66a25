"""Whether a results folder is what was written, its problem sets included, for a person and for a script."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow.compute as pc

from asyncbench.errors import ProblemSetError, StoreError
from asyncbench.problems.copies import copies, read_problems
from asyncbench.problems.opening import open_set
from asyncbench.store.bucket.fetching import at_hand, display_name
from asyncbench.store.catalog import read_trials
from asyncbench.store.verify import FolderFinding, Verified, verify_folder
from asyncbench.tables.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Report):
    """What was found in a results folder."""

    folder: str
    found: Verified

    @property
    def sound(self) -> bool:
        return self.found.sound

    def _data(self) -> dict[str, object]:
        return {"folder": self.folder, "sound": self.sound, **asdict(self.found)}

    def _notes(self) -> Iterator[str]:
        for finding in self.found.findings:
            yield f"{finding.place}: {finding.what}"
        if self.found.unchecked:
            yield (
                f"{self.found.unchecked:,} Parquet files have no checksums (an earlier version wrote them). "
                "They were read, but not compared. `asyncbench compact` writes them again with checksums."
            )
        rows = ", ".join(f"{rows:,} rows of {name}" for name, rows in self.found.rows.items())
        verdict = "sound" if self.sound else "NOT SOUND"
        yield f"{self.folder} is {verdict}: {rows} in {self.found.parts:,} Parquet files"


def health_of(folder: Path | str) -> Health:
    """Read everything that a results folder holds and return what was found; nothing is changed.

    Raises:
        ConfigError: it is not a results folder, or a later asyncbench wrote something in it.
        StoreError: its manifest or its journal cannot be read at all.
    """
    path = at_hand(folder)
    found = verify_folder(path)
    findings = (*found.findings, *_problem_sets(path))
    return Health(folder=display_name(folder), found=replace(found, findings=findings))


def _problem_sets(folder: Path) -> Iterator[FolderFinding]:
    spoiled = False
    for copy in copies(folder):
        try:
            open_set(copy.path)  # its digest is compared
        except ProblemSetError as error:
            spoiled = True
            yield FolderFinding(place=str(copy.path.relative_to(folder)), what=str(error))
    if not spoiled:
        yield from _unknown_problems(folder)


def _unknown_problems(folder: Path) -> Iterator[FolderFinding]:
    try:
        asked = pc.unique(read_trials(folder, ["problem_id"])["problem_id"])
    except StoreError:
        return  # a damaged part: that is told already
    known = pc.is_in(asked, value_set=read_problems(folder, ["problem_id"])["problem_id"])
    if unknown := len(asked.filter(pc.invert(known))):
        yield FolderFinding(
            place="problems", what=f"{unknown:,} problems of trials are in no problem set; a file is missing"
        )
