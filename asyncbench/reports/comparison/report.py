"""`compare A B FOLDER`: two models on the same questions, as tables and examples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.text import Text

from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.errors import ConfigError
from asyncbench.records import Outcome
from asyncbench.reports.comparison.baseline import BaselineResult, gate_results, gates_from
from asyncbench.reports.comparison.pair import (
    Compared,
    ComparisonRow,
    Question,
    compared,
    sides_of,
)
from asyncbench.suites.chats import readable_question
from asyncbench.tables.data import HIDDEN, data_of
from asyncbench.tables.numbers import MISSING, count, number_of, p_sentence, p_text, percent, points, rounded
from asyncbench.tables.report import Columns, Report, Sheet
from asyncbench.tables.screen import middle_cut, render, safe, safe_notes, shown_width

ALPHA: Final = 0.05
EXAMPLES: Final = 5  # questions that are shown for each model
LONGEST_QUESTION, LONGEST_NAME, LEAST_PIECE = 400, 24, 10  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Report):
    """A comparison of two models, with its tables."""

    found: Compared
    examples: int  # text shows so many problems for each model; JSON has all that were found
    unpaired: bool  # show the unpaired test, too
    gates: tuple[BaselineResult, ...] = field(default=(), metadata=HIDDEN)
    said: tuple[str, ...] = ()  # notes on the folders and trials that were chosen

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two, with their folders where both have the same name."""
        a, b = self.found.a, self.found.b
        return (
            (f"{a.name} in {a.folder}", f"{b.name} in {b.folder}") if a.name == b.name else (a.name, b.name)
        )

    def data(self) -> dict[str, object]:
        rows = [
            {
                "suite": row.suite,
                "task": row.task,
                **(data_of(row.found) if row.found.trials else {"problems": 0, "trials": 0}),
                "interval": row.interval,
                "p": row.p,
                "p_holm": row.p_holm,
                "smallest_detectable": row.detectable,
                "unpaired": data_of(row.unpaired),
            }
            for row in self.found.rows
        ]
        return {
            **({"chosen": self.said} if self.said else {}),
            **data_of(self.found),
            "simulated": bool(self.found.simulated_notes),
            "rows": rows,
        }

    def notes_above(self) -> Iterator[str]:
        compared = self.found
        yield from self.said
        yield from compared.simulated_notes
        yield f"A: {self.names[0]}. B: {self.names[1]}."
        if compared.whole.found.trials:
            yield from _verdict(compared, *self.names)
        else:
            yield "They have no problem in common."
        if compared.asked_a_alone or compared.asked_b_alone:
            yield (
                f"Left out are the problems that only one of them was asked: A {compared.asked_a_alone:,}, "
                f"B {compared.asked_b_alone:,}."
            )
        if self.unpaired:
            yield UNPAIRED
        if len(compared.rows) > 1 and compared.whole.found.trials:
            yield HOLM.format(len(compared.rows) - 1)
        yield from lost_notes(dict(zip(self.names, (compared.outcomes_a, compared.outcomes_b), strict=True)))

    def sheets(self) -> Iterator[Sheet]:
        compared, (a, b) = self.found, self.names

        # A task is named alone where there is only one suite.
        several = len({row.suite for row in compared.rows if row.suite}) > 1
        labelled = list[Labelled]()
        for row in compared.rows:
            names = (row.suite if several or not row.task else None, row.task)
            labelled.append(("/".join(filter(None, names)) or "all", row))
        if compared.whole.found.trials:
            unpaired = {"p (unpaired)": UNPAIRED_COLUMNS["p (unpaired)"]} if self.unpaired else {}
            yield Sheet.of("Problems that both were asked", {**COLUMNS, **unpaired}, labelled)
        if self.unpaired:
            yield Sheet.of("All problems that each was asked", UNPAIRED_COLUMNS, labelled)

        # Of each problem that one alone got right, the first such trial is shown.
        for name, trials, problems, questions in (
            (a, compared.whole.found.only_a, compared.problems_only_a, compared.only_a),
            (b, compared.whole.found.only_b, compared.problems_only_b, compared.only_b),
        ):
            first: dict[str, Question] = {}
            for question in questions:
                first.setdefault(question.problem_id, question)
            shown = list(first.values())[: self.examples]
            if shown:
                # trials are named as well, where a problem has several
                if trials == problems:
                    number = f"{len(shown):,} of {problems:,}" if len(shown) < problems else f"{problems:,}"
                else:
                    selected = (
                        f", {len(shown):,} of these" if len(shown) < problems else ", the first trial of each"
                    )
                    number = (
                        f"{trials:,} trials, {problems:,} problem{'' if problems == 1 else 's'}{selected}"
                    )
                title = f"Only {safe(name, most=80)} is right: {number}, shortest questions first"
                yield self._question_sheet(title, shown)

    def _question_sheet(self, title: str, questions: Sequence[Question]) -> Sheet:
        """Return questions as a table and, in text, with the answers below each other."""

        def drawn(width: int | None) -> str:
            blocks = (_block(self._origin(question), question, self.names, width) for question in questions)
            return "\n\n".join([*safe_notes([title], width=width), *blocks])

        rows = [
            (self._origin(question), _asked(question), question.expected, *_answers(question))
            for question in questions
        ]
        head = ("task", "question", "expected", *self.names)
        return Sheet(title=title, head=head, rows=rows, labels=5, drawn=drawn)

    def _origin(self, question: Question) -> str:
        """Return the task and length of a question, with its condition and repeat where there are several."""
        named = question.suite if question.task == question.suite else f"{question.suite}/{question.task}"
        parts = [
            named,
            *([] if question.length is None else [str(question.length)]),
            *([question.condition] if self.found.conditions > 1 else []),
            *([f"repeat {question.repeat}"] if self.found.repeats > 1 else []),
        ]
        return ", ".join(parts)


UNPAIRED: Final = (
    "Unpaired: a pooled z test over all trials of each, as if they were asked different questions. It "
    "detects less than the paired test."
)
HOLM: Final = "A − B: in percentage points. p (Holm): corrected for looking at {} rows below the first."


def compare_on(
    a: str,
    b: str,
    folder: Folders,
    folder_of_b: Path | str | None = None,
    *,
    suite: str | None = None,
    task: str | None = None,
    where: str | None = None,
    unpaired: bool = False,
    examples: int = EXAMPLES,
    every: bool = False,
    fail_if: str | Sequence[str] = (),
    margin: float | None = None,
) -> Comparison:
    """Compare two models on the problems that both answered, with a paired test.

        print(ab.compare("gpt-5-mini", "claude-haiku", "results/night").as_text())
        (gate,) = ab.compare("mini", "mini", "results/main", "results/pr", fail_if="worse", margin=2).gates
        print(gate.verdict, gate.measured.change, gate.measured.interval)  # worse, not_worse or undecided

    Args:
        a: the first model: an alias, a run, or a name as reports show it, `alias (condition)`.
        b: the second model, named likewise.
        folder: the results folder, or a list. Of two, `a` is in the first and `b` in the second; of more,
            names are those of a report on all.
        folder_of_b: the results folder of `b`, if it is another one. [the same]
        suite: compare only problems of this suite. [all]
        task: compare only problems of this task. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]
        unpaired: also show the unpaired test, which needs no problems in common. [False]
        examples: the number of questions to show that only `a` answered right, and likewise `b`. [5]
        every: put every such question into the JSON. [False]
        fail_if: a gate, or a list of them: `worse`, or `latency_p95_s worse by 10 %`. [none]
        margin: the loss that a gate accepts which names none: points of accuracy, else percent. [none]

    Returns:
        A `Comparison`: accuracies and their difference, with intervals, and p values. Its `gates` have an
        answer for each of `fail_if`: `status`, `verdict`, `margin`, `measured`, `problems_needed`.

    Raises:
        ConfigError: The folder is not a results folder, a name is unknown or ambiguous, both are the same,
            or they have no problem in common.
        StoreError: A file of the folder is missing or damaged.
        ProblemSetError: A copy of a problem set is damaged.
    """
    gates = gates_from(fail_if, margin)
    if folder_of_b is not None:
        folder = list(dict.fromkeys([*chosen(folder).paths, Path(folder_of_b)]))
    folders = chosen(folder, where=where)
    sides = sides_of(a, b, folders)
    result = compared(sides, suite=suite, task=task, examples=None if every else examples)
    if not (result.whole.found.trials or unpaired):
        raise ConfigError(
            f"{a} and {b} have no problem in common. --unpaired compares all that each was asked, but "
            "detects only large differences."
        )
    notes = tuple(folders.notes()) if folders.filtered or len(folders.paths) > 2 else ()
    answers = gate_results(a, b, folders, gates, suite=suite, task=task, where=where) if gates else ()
    return Comparison(found=result, examples=examples, unpaired=unpaired, said=notes, gates=tuple(answers))


# ── in words ─────────────────────────────────────────────────────────────────────────────────


def _verdict(compared: Compared, a: str, b: str) -> Iterator[str]:
    """Yield the better model, and the smallest difference that so many problems can detect."""
    whole = compared.whole
    shared, p = whole.found, whole.p if whole.p is not None else 1.0
    better, worse = (a, b) if shared.difference >= 0 else (b, a)
    low, high = whole.interval or (-1.0, 1.0)
    if shared.difference < 0:
        low, high = -high, -low
    trials = "" if shared.trials == shared.problems else f" ({shared.trials:,} trials)"
    test = "exact McNemar" if shared.trials == shared.problems else "exact sign-flip test by problem"
    problems = number_of(shared.problems, "problem")
    seen = f"A {percent(shared.share_a)}, B {percent(shared.share_b)} on {problems}{trials} in common"
    if p > ALPHA:
        difference = points(shared.difference)
        yield f"{seen}: statistically tied (difference {difference} points, {test}, {p_sentence(p)})."
    else:
        yield (
            f"{seen}: {better} is better than {worse} by {rounded(100 * abs(shared.difference), 1)} points "
            f"(95 % CI {rounded(100 * low, 1)} to {rounded(100 * high, 1)}), {test}, {p_sentence(p)}."
        )

    if whole.detectable is None:
        sentence = f"Too few problems ({shared.problems:,}) to detect any difference with 80 % power."
    else:
        gap = f"{rounded(100 * whole.detectable, 1)}-point gap"
        sentence = f"{shared.problems:,} problems are enough to detect a {gap} with 80 % power."
    if whole.p is not None and whole.p > ALPHA and compared.needed:
        sentence += f" To detect the gap seen here, you need {compared.needed:,}."
    yield sentence


# ── as tables ────────────────────────────────────────────────────────────────────────────────


Labelled = tuple[str, ComparisonRow]  # the name of a row, and the row


def _shared(figure: Callable[[ComparisonRow], str]) -> Callable[[Labelled], str]:
    """Return the cell of a figure of the problems in common; it is empty where there are none."""
    return lambda row: figure(row[1]) if row[1].found.trials else MISSING


def _share(correct: int, trials: int) -> str:
    return percent(correct / trials if trials else None)


COLUMNS: Final[Columns[Labelled]] = {
    "suite/task": lambda row: row[0],
    "problems": lambda row: count(row[1].found.problems if row[1].found.trials else 0),
    "A accuracy": _shared(lambda row: percent(row.found.share_a)),
    "B accuracy": _shared(lambda row: percent(row.found.share_b)),
    "both right": _shared(lambda row: count(row.found.both)),
    "only A right": _shared(lambda row: count(row.found.only_a)),
    "only B right": _shared(lambda row: count(row.found.only_b)),
    "neither right": _shared(lambda row: count(row.found.neither)),
    "A − B (95 % CI)": _shared(lambda row: points(row.found.difference, row.interval)),
    "p": _shared(lambda row: p_text(row.p)),
    "p (Holm)": _shared(lambda row: p_text(row.p_holm)),
}
UNPAIRED_COLUMNS: Final[Columns[Labelled]] = {
    "suite/task": lambda row: row[0],
    "A trials": lambda row: count(row[1].unpaired.trials_a),
    "A accuracy": lambda row: _share(row[1].unpaired.correct_a, row[1].unpaired.trials_a),
    "B trials": lambda row: count(row[1].unpaired.trials_b),
    "B accuracy": lambda row: _share(row[1].unpaired.correct_b, row[1].unpaired.trials_b),
    "A − B": lambda row: points(row[1].unpaired.difference),
    "p (unpaired)": lambda row: p_text(row[1].unpaired.p),
}


# ── the questions ────────────────────────────────────────────────────────────────────────────


def _block(origin: str, question: Question, names: Sequence[str], width: int | None) -> str:
    """Return a question with the answers right below each other, so that an eye can compare their digits.

    Long answers are cut into equal pieces. A piece stands below the same piece of the other answers, and all
    but the last end in `…`.
    """
    width = width or shown_width()
    lines = [render(Text(safe(f"{origin}: {_asked(question)}", most=LONGEST_QUESTION)), width=width)]
    labels = ["expected", *(middle_cut(safe(name), min(LONGEST_NAME, width // 3)) for name in names)]
    longest = max(map(cell_len, labels))
    room = max(width - longest - 5, LEAST_PIECE)
    answers = [chop_cells(safe(text), room) for text in (question.expected, *_answers(question))]
    most_pieces = max(map(len, answers))
    for n in range(most_pieces):
        for label, pieces in zip(labels, answers, strict=True):
            if n < len(pieces):
                name = (label if n == 0 else "").ljust(longest + len(label) - cell_len(label))
                lines.append(f"  {name}  {pieces[n]}{'…' if n + 1 < len(pieces) else ''}")
        if n + 1 < most_pieces:
            lines.append("")
    return "\n".join(lines)


def _asked(question: Question) -> str:
    return (
        NO_QUESTION if question.question is None else " ".join(readable_question(question.question).split())
    )


NO_QUESTION: Final = "(the folder's problems/ lacks this question)"


def _answers(question: Question) -> tuple[str, str]:
    """Return both answers; the outcome stands beside or instead of one that was not graded right or wrong."""

    def text(answer: str | None, outcome: str) -> str:
        name = f"({outcome.replace('_', ' ')})"
        if answer is None:
            return name
        return answer if outcome in (Outcome.CORRECT, Outcome.WRONG) else f"{answer} {name}"

    return text(question.answer_a, question.outcome_a), text(question.answer_b, question.outcome_b)
