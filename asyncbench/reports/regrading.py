"""Changes by a regrade, as tables: by model, from outcome to outcome, with examples."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from asyncbench.analysis.notes import simulated_note_of
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.suites.own import ADDED_GRADERS
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.table import SUITES
from asyncbench.tables.report import Report, Sheet
from asyncbench.upkeep.regrading import ChangedTrial, Grader, Move, Regraded, regrade_folder

NOT_GRADED = "not graded"
BY_MODEL = "By model (all its conditions and runs together)"

MODEL_HEAD = ("model", "suite", "grader", "trials", "correct before", "correct now", "changed")
MOVE_HEAD = ("model", "suite", "before", "now", "trials")
GRADER_HEAD = ("suite", "grader", "version", "grades", "changed")
EXAMPLE_HEAD = (
    "model",
    "before → now",
    "expected",
    "answer before",
    "answer now",
    "end of the reply",
    "trial",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeReport(Report):
    """A regrade as it is shown: what one grader changed, or the headline graders."""

    regraded: Regraded
    simulated_note: str  # empty: no results are simulated
    grader: str | None  # None: the headline graders

    def _data(self) -> dict[str, object]:
        moves, examples = list(map(asdict, self._moves())), list(map(asdict, self._examples()))
        counts = asdict(self.regraded) | {"simulated": bool(self.simulated_note)}
        return counts | {"moves": moves, "examples": examples}

    def _moves(self) -> list[Move]:
        return [
            move
            for move in self.regraded.moves
            if (move.headline if self.grader is None else move.grader == self.grader)
        ]

    def _examples(self) -> list[ChangedTrial]:
        graders = {(move.suite, move.grader) for move in self._moves()}
        return [trial for trial in self.regraded.examples if (trial.suite, trial.grader) in graders]

    def _notes(self) -> Iterator[str]:
        regraded = self.regraded
        if self.simulated_note:
            yield self.simulated_note
        changed = sum(one.trials for one in self._moves() if one.before != one.now)
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
                f"Nothing was written. To keep the new grades: `asyncbench regrade {self.regraded.folder} "
                "--write`"
            )
        return "The stored grades are up to date. There is nothing to write."

    def _sheets(self) -> Iterator[Sheet]:
        yield Sheet(title=BY_MODEL, head=MODEL_HEAD, rows=list(self._by_model()), labels=3)
        moved = [
            (move.model, move.suite, move.before or NOT_GRADED, move.now, f"{move.trials:,}")
            for move in self._moves()
            if move.before != move.now
        ]
        yield Sheet(title="Changed outcomes", head=MOVE_HEAD, rows=moved, labels=4)
        examples = list(map(_example_row, self._examples())) if moved else []
        yield Sheet(title="Examples", head=EXAMPLE_HEAD, rows=examples, labels=len(EXAMPLE_HEAD))
        graders = [
            (one.suite, one.grader, _versions(one), f"{one.grades:,}", f"{one.changed:,}")
            for one in self.regraded.graders
        ]
        yield Sheet(title="All graders", head=GRADER_HEAD, rows=graders, labels=3)

    def _by_model(self) -> Iterator[tuple[str, ...]]:
        groups: dict[tuple[str, str, str], list[Move]] = {}
        for one in self._moves():
            groups.setdefault((one.model, one.suite, one.grader), []).append(one)
        for names, moves in groups.items():
            counts = (
                sum(one.trials for one in moves),
                sum(one.trials for one in moves if one.before == Outcome.CORRECT),
                sum(one.trials for one in moves if one.now == Outcome.CORRECT),
                sum(one.trials for one in moves if one.before != one.now),
            )
            yield (*names, *(f"{count:,}" for count in counts))


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
    return RegradeReport(regraded=regraded, simulated_note=note, grader=grader)


def _versions(one: Grader) -> str:
    before, now = ("none" if n is None else f"v{n}" for n in (one.version_before, one.version))
    return now if before == now else f"{before} → {now}"


def _example_row(one: ChangedTrial) -> tuple[str, ...]:
    return (
        one.model,
        f"{one.before or NOT_GRADED} → {one.now}",
        _short(one.expected),
        _short(one.answer_before),
        _short(one.answer),
        _short(one.reply_end),
        one.trial_id,
    )


def _short(text: str | None, most: int = 40) -> str:
    """Return a text on one line, its end where it is long; `-` where there is none."""
    if text is None:
        return "-"
    line = " ".join(text.split())
    return line if len(line) <= most else f"…{line[1 - most :]}"
