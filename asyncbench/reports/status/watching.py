"""`status --verify` and `status --follow`: a folder's files checked, and its progress watched."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

import pyarrow.compute as pc
from rich.console import Console
from rich.live import Live
from rich.text import Text

from asyncbench.errors import ProblemSetError, StoreError
from asyncbench.problems.copies import copies, read_problems
from asyncbench.problems.opening import open_set
from asyncbench.reports.status.report import Status, status_of
from asyncbench.store.bucket.claiming import current_folder
from asyncbench.store.bucket.fetching import display_name, local_folder
from asyncbench.store.catalog import read_trials
from asyncbench.store.lock import writer_of
from asyncbench.store.verify import FolderFinding, Verified, verify_folder
from asyncbench.tables.data import INSIDE
from asyncbench.tables.numbers import counted_note
from asyncbench.tables.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Report):
    """The state of a results folder's files, after all were read."""

    folder: str
    sound: bool
    verified: Verified = field(metadata=INSIDE)

    def notes_above(self) -> Iterator[str]:
        for finding in self.verified.findings:
            yield f"{finding.place}: {finding.what}"
        yield from counted_note(
            self.verified.unchecked,
            "Parquet files have no checksums (an earlier version wrote them). They were read, but not "
            "compared.",
        )
        rows = ", ".join(f"{rows:,} rows of {name}" for name, rows in self.verified.rows.items())
        verdict = "sound" if self.sound else "NOT SOUND"
        yield f"{self.folder} is {verdict}: {rows} in {self.verified.parts:,} Parquet files"


def health_of(folder: Path | str) -> Health:
    """Read everything that a results folder holds and return what was found. Nothing is changed.

    Raises:
        ConfigError: `folder` is not a results folder, or a later asyncbench wrote something in it.
        StoreError: the manifest or the journal cannot be read at all.
    """
    path = local_folder(folder)
    verified = verify_folder(path)
    findings = (*verified.findings, *_problem_findings(path))
    verified = replace(verified, findings=findings)
    return Health(folder=display_name(folder), sound=verified.sound, verified=verified)


def _problem_findings(folder: Path) -> Iterator[FolderFinding]:
    """Yield the problem sets that are damaged; if none is, yield how many problems are in no set."""
    damaged = False
    for copy in copies(folder):
        try:
            open_set(copy.path, any_suite=True)  # this compares its digest
        except ProblemSetError as error:
            damaged = True
            yield FolderFinding(place=str(copy.path.relative_to(folder)), what=str(error))
    if damaged:
        return

    try:
        problems = pc.unique(read_trials(folder, ["problem_id"])["problem_id"])
    except StoreError:
        return  # a part is damaged, which another finding says
    in_folder = pc.is_in(problems, value_set=read_problems(folder, ["problem_id"])["problem_id"])
    if unknown := len(problems.filter(pc.invert(in_folder))):
        yield FolderFinding(
            place="problems", what=f"{unknown:,} problems of trials are in no problem set; a file is missing"
        )


# ── The status of a sweep while another process runs it: read again and again, and never written


REDRAWN_EVERY_S = 2.0  # on a terminal
LINE_EVERY_S = 10.0  # in a log or a pipe, as often as `run` writes a line
GLANCE_EVERY_S = 0.2  # how often it is checked whether the run has ended
IDLE = 9  # a pause is at least so many times as long as reading took: the run needs the processor more


def followed(folder: Path | str, *, every_s: float) -> Iterator[Status]:
    """Yield the status of a folder now and then, for the last time when no process writes to it any more.

    Args:
        folder: a results folder.
        every_s: seconds from one status to the next; more where reading takes over a tenth of that.

    Raises:
        ConfigError, StoreError: as `status_of` does.
    """
    while True:
        began_s = time.monotonic()
        status = status_of(folder)
        took_s = time.monotonic() - began_s
        yield status
        if not status.running:
            return
        due_s = time.monotonic() + max(every_s, IDLE * took_s)
        while time.monotonic() < due_s and writer_of(current_folder(folder)) is not None:
            time.sleep(min(GLANCE_EVERY_S, every_s))


def follow_status(
    folder: Path | str, out: TextIO, *, as_json: bool = False, every_s: float | None = None
) -> None:
    """Show a sweep until its run ends: redrawn on a terminal, a line now and then elsewhere.

    Args:
        folder: a results folder.
        out: the terminal or file to write to. At the end, the whole status stands there.
        as_json: write one JSON object a line instead, whatever `out` is.
        every_s: seconds from one status to the next; None: as suits `out`.
    """
    drawn = out.isatty() and not as_json
    statuses = followed(folder, every_s=every_s or (REDRAWN_EVERY_S if drawn else LINE_EVERY_S))
    if drawn:
        with Live(console=Console(file=out), auto_refresh=False, vertical_overflow="visible") as live:
            for status in statuses:
                live.update(Text.from_ansi(status.as_text()), refresh=True)
        return
    for status in statuses:
        text = status.as_line() if status.running else status.as_text()
        print(status.as_json(indent=None) if as_json else text, file=out, flush=True)
