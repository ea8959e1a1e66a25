"""Changes by a regrade, as tables: by model, from outcome to outcome, with examples."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from asyncbench.analysis.notes import simulated_note_of
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.records import Outcome
from asyncbench.suites.custom import ADDED_GRADERS
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.table import SUITES
from asyncbench.tables.data import HIDDEN, INSIDE
from asyncbench.tables.numbers import count
from asyncbench.tables.report import Columns, Report, Sheet
from asyncbench.upkeep.regrading import ChangedTrial, Grader, Move, Regraded, regrade_folder

NOT_GRADED = "not graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeReport(Report):
    """A regrade as it is shown: what one grader changed, or the headline graders."""

    regraded: Regraded = field(metadata=INSIDE)  # with moves and examples of these graders alone
    simulated_note: str = field(metadata=HIDDEN)  # empty: no results are simulated

    def _notes(self) -> Iterator[str]:
        regraded = self.regraded
        if self.simulated_note:
            yield self.simulated_note
        changed = sum(one.trials for one in regraded.moves if one.before != one.now)
        changes = f"{changed:,} outcomes change" if changed else "No outcome changes"
        yield f"{regraded.trials:,} stored trials were graded again, without a call. {changes}."
        if regraded.corrected:
            yield f"For {regraded.corrected:,} trials, the expected answer has changed since they were asked."
        for one in regraded.kept:
            yield (
                f"{one.trials:,} trials of {one.suite} (problem set {one.problem_set!r}) keep their grades: "
                "problems/ lacks their problems, or the suite is unknown."
            )
        yield self._what_now()

    def _what_now(self) -> str:
        if self.regraded.written:
            return "The new grades were written."
        if self.regraded.corrected or any(
            one.changed or one.version_before != one.version for one in self.regraded.graders
        ):
            return (
                "Nothing was written. To keep the new grades: "
                f"`asyncbench regrade {quoted(self.regraded.folder)} --write`"
            )
        return "The stored grades are up to date. There is nothing to write."

    def _sheets(self) -> Iterator[Sheet]:
        by_model: dict[tuple[str, str, str], list[Move]] = {}
        for one in self.regraded.moves:
            by_model.setdefault((one.model, one.suite, one.grader), []).append(one)
        title = "By model (all its conditions and runs together)"
        yield Sheet.of(title, MODELS, by_model.items(), labels=3)
        moved = [move for move in self.regraded.moves if move.before != move.now]
        yield Sheet.of("Changed outcomes", MOVES, moved, labels=4)
        examples = self.regraded.examples if moved else ()
        yield Sheet.of("Examples", EXAMPLES, examples, labels=len(EXAMPLES))
        yield Sheet.of("All graders", GRADERS, self.regraded.graders, labels=3)


def regrade_report(folder: Path, *, write: bool = False, grader: str | None = None) -> RegradeReport:
    """Grade a folder's replies again and return what that changes, to be shown.

    Args:
        folder: a results folder.
        write: the folder gets the new grades, those of every grader.
        grader: whose changes are shown; None: those of the headline graders.

    Raises:
        ConfigError: no suite has such a grader; it is not a results folder.
        ProblemSetError, StoreError: as `regrade_folder` does.
    """
    known = sorted({*ADDED_GRADERS, *(name for suite in SUITES.values() for name in suite.graders)})
    if grader is not None and grader not in known and not is_in_file(grader):  # before anything is written
        raise ConfigError(f"--grader {grader}: no suite has this grader. Choose one of: {', '.join(known)}")
    regraded = regrade_folder(folder, write=write)
    note = simulated_note_of(folder, known=regraded.simulated)
    moves = [move for move in regraded.moves if (move.headline if grader is None else move.grader == grader)]
    graders = {(move.suite, move.grader) for move in moves}
    examples = [trial for trial in regraded.examples if (trial.suite, trial.grader) in graders]
    shown = replace(regraded, simulated=bool(note), moves=tuple(moves), examples=tuple(examples))
    return RegradeReport(regraded=shown, simulated_note=note)


def _versions(one: Grader) -> str:
    before, now = ("none" if n is None else f"v{n}" for n in (one.version_before, one.version))
    return now if before == now else f"{before} → {now}"


def _short(text: str | None, most: int = 40) -> str:
    """Return a text on one line, its end where it is long; `-` where there is none."""
    if text is None:
        return "-"
    line = " ".join(text.split())
    return line if len(line) <= most else f"…{line[1 - most :]}"


def _trials(moves: Iterable[Move]) -> str:
    return count(sum(move.trials for move in moves))


Moves = tuple[tuple[str, str, str], list[Move]]  # model, suite and grader, and what they moved
MODELS: Final[Columns[Moves]] = {
    "model": lambda of: of[0][0],
    "suite": lambda of: of[0][1],
    "grader": lambda of: of[0][2],
    "trials": lambda of: _trials(of[1]),
    "correct before": lambda of: _trials(one for one in of[1] if one.before == Outcome.CORRECT),
    "correct now": lambda of: _trials(one for one in of[1] if one.now == Outcome.CORRECT),
    "changed": lambda of: _trials(one for one in of[1] if one.before != one.now),
}
MOVES: Final[Columns[Move]] = {
    "model": lambda move: move.model,
    "suite": lambda move: move.suite,
    "before": lambda move: move.before or NOT_GRADED,
    "now": lambda move: move.now,
    "trials": lambda move: count(move.trials),
}
GRADERS: Final[Columns[Grader]] = {
    "suite": lambda one: one.suite,
    "grader": lambda one: one.grader,
    "version": _versions,
    "grades": lambda one: count(one.grades),
    "changed": lambda one: count(one.changed),
}
EXAMPLES: Final[Columns[ChangedTrial]] = {
    "model": lambda one: one.model,
    "before → now": lambda one: f"{one.before or NOT_GRADED} → {one.now}",
    "expected": lambda one: _short(one.expected),
    "answer before": lambda one: _short(one.answer_before),
    "answer now": lambda one: _short(one.answer),
    "end of the reply": lambda one: _short(one.reply_end),
    "trial": lambda one: one.trial_id,
}
