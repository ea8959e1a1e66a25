"""`report --style integer-addition`: what that benchmark publishes and more, from any results folder."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from asyncbench.providers import is_simulated
from asyncbench.published.integer_addition.counts import (
    SUITES,
    RunLine,
    distinct,
    lines_of,
    read_graded,
    without_operands,
)
from asyncbench.published.integer_addition.tables import sheets, things, without_success
from asyncbench.results import Graded, graded_by, graders_of, left_out_at_import, left_out_of
from asyncbench.shown import SIMULATED, Report, Sheet
from asyncbench.store import read_manifest

MEANING = (
    "Success rate: over recorded results (trials with a reply), as published; of tries: over all that "
    "were planned. Durations: of one call. Reasoning: median length in characters, where any was shown."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerAdditionReport(Report):
    """A folder's figures, and how they are shown."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]
    left_out: dict[str, int]  # run → entries of its file that could not be imported
    without_operands: int  # additions whose operands no file in problems/ tells
    lines: tuple[RunLine, ...]  # by suite, then as the manifest has runs, models and conditions

    def _data(self) -> dict[str, object]:
        return asdict(self)

    def _sheets(self) -> Iterator[Sheet]:
        yield from sheets(self.lines)

    def _notes(self) -> Iterator[str]:
        if self.simulated:
            yield SIMULATED
        yield graded_by(self.graders)
        yield without_success(self.lines)
        yield from left_out_at_import(self.left_out)
        if count := self.without_operands:
            yield (
                f"No file in problems/ tells the operands of {things(count, 'addition', 'additions')}: "
                "their carries are unknown."
            )
        yield MEANING


def integer_addition_report_on(folder: Path | str) -> IntegerAdditionReport:
    """Return the figures of the suites string_reversal, integer_addition and string_rehearsal.

    Raises:
        ConfigError: it is not a results folder, or holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    manifest, trials = read_manifest(Path(folder)), read_graded(folder)
    return IntegerAdditionReport(
        folder=str(folder),
        simulated=any(map(is_simulated, distinct(trials, "provider"))),
        graders=tuple(sorted(graders_of(trials), key=lambda one: SUITES.index(one.suite))),
        left_out=left_out_of(manifest, runs=distinct(trials, "run")),
        without_operands=without_operands(trials),
        lines=lines_of(trials, manifest),
    )
