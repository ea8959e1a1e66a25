"""Changes by a regrade, as tables: by model, from outcome to outcome, with examples."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from asyncbench.analysis.served import simulated_note_of
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.records import Outcome
from asyncbench.suites.custom import ADDED_GRADERS
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.table import SUITES
from asyncbench.tables.data import HIDDEN, INSIDE
from asyncbench.tables.numbers import count, number_of
from asyncbench.tables.report import Columns, Report, Sheet
from asyncbench.upkeep.regrading import ChangedTrial, Grader, Move, Regraded, regrade_folder

NOT_GRADED = "not graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeReport(Report):
    """The changes by one grader, or by the headline graders, as tables."""

    regraded: Regraded = field(metadata=INSIDE)  # its moves and examples are of these graders only
    simulated_note: str = field(metadata=HIDDEN)  # empty: no results are simulated

    def notes_above(self) -> Iterator[str]:
        regraded = self.regraded
        if self.simulated_note:
            yield self.simulated_note
        changed = sum(move.trials for move in regraded.moves if move.before != move.now)
        changes = f"{changed:,} outcomes change" if changed else "No outcome changes"
        yield f"{regraded.trials:,} stored trials were graded again, without a call. {changes}."
        if regraded.corrected:
            yield f"For {regraded.corrected:,} trials, the expected answer has changed since they were asked."
        for kept in regraded.kept:
            yield (
                f"{kept.trials:,} trials of {kept.suite} (problem set {kept.problem_set!r}) keep their "
                "grades: problems/ lacks their problems, or the suite is unknown."
            )
        if regraded.ungraded:
            met = f" ({regraded.fault})" if regraded.fault else ""
            yield (
                f"{number_of(regraded.ungraded, 'trial')} without a grade: the grader failed on the reply"
                f"{met}. Correct it, then regrade again."
            )
        outdated = any(
            grader.changed or grader.version_before != grader.version for grader in regraded.graders
        )
        if regraded.written:
            yield "The new grades were written."
        elif regraded.corrected or outdated:
            command = f"asyncbench regrade {quoted(regraded.folder)} --write"
            yield f"Nothing was written. To keep the new grades: `{command}`"
        else:
            yield "The stored grades are up to date. There is nothing to write."

    def sheets(self) -> Iterator[Sheet]:
        by_model: dict[tuple[str, str, str], list[Move]] = {}
        for move in self.regraded.moves:
            by_model.setdefault((move.model, move.suite, move.grader), []).append(move)
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
    choices = sorted({*ADDED_GRADERS, *(name for suite in SUITES.values() for name in suite.graders)})
    if grader is not None and grader not in choices and not is_in_file(grader):  # before anything is written
        raise ConfigError(f"--grader {grader}: no suite has this grader. Choose one of: {', '.join(choices)}")
    regraded = regrade_folder(folder, write=write)
    note = simulated_note_of(folder, simulated=regraded.simulated)
    moves = [move for move in regraded.moves if (move.headline if grader is None else move.grader == grader)]
    graders = {(move.suite, move.grader) for move in moves}
    examples = [trial for trial in regraded.examples if (trial.suite, trial.grader) in graders]
    shown = replace(regraded, simulated=bool(note), moves=tuple(moves), examples=tuple(examples))
    return RegradeReport(regraded=shown, simulated_note=note)


def _versions(grader: Grader) -> str:
    before, now = ("none" if n is None else f"v{n}" for n in (grader.version_before, grader.version))
    return now if before == now else f"{before} → {now}"


def _short(text: str | None, longest: int = 40) -> str:
    """Return a text on one line, or its end if it is long; `-` where there is none."""
    if text is None:
        return "-"
    line = " ".join(text.split())
    return line if len(line) <= longest else f"…{line[1 - longest :]}"


def _trials(moves: Iterable[Move]) -> str:
    return count(sum(move.trials for move in moves))


Moves = tuple[tuple[str, str, str], list[Move]]  # (model, suite, grader) and their moves
MODELS: Final[Columns[Moves]] = {
    "model": lambda group: group[0][0],
    "suite": lambda group: group[0][1],
    "grader": lambda group: group[0][2],
    "trials": lambda group: _trials(group[1]),
    "correct before": lambda group: _trials(move for move in group[1] if move.before == Outcome.CORRECT),
    "correct now": lambda group: _trials(move for move in group[1] if move.now == Outcome.CORRECT),
    "changed": lambda group: _trials(move for move in group[1] if move.before != move.now),
}
MOVES: Final[Columns[Move]] = {
    "model": lambda move: move.model,
    "suite": lambda move: move.suite,
    "before": lambda move: move.before or NOT_GRADED,
    "now": lambda move: move.now,
    "trials": lambda move: count(move.trials),
}
GRADERS: Final[Columns[Grader]] = {
    "suite": lambda grader: grader.suite,
    "grader": lambda grader: grader.grader,
    "version": _versions,
    "grades": lambda grader: count(grader.grades),
    "changed": lambda grader: count(grader.changed),
}
EXAMPLES: Final[Columns[ChangedTrial]] = {
    "model": lambda trial: trial.model,
    "before → now": lambda trial: f"{trial.before or NOT_GRADED} → {trial.now}",
    "expected": lambda trial: _short(trial.expected),
    "answer before": lambda trial: _short(trial.answer_before),
    "answer now": lambda trial: _short(trial.answer),
    "end of the reply": lambda trial: _short(trial.reply_end),
    "trial": lambda trial: trial.trial_id,
}
