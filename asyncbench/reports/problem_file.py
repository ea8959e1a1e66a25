"""A problem file as asyncbench reads it: its columns, its grader, and a few problems."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from string import ascii_uppercase
from textwrap import shorten
from typing import Final, cast

import yaml

from asyncbench.config.starter import OneLineTexts
from asyncbench.errors import ProblemSetError
from asyncbench.problems.accepted import ASSERTED, is_list_of_texts
from asyncbench.problems.choices import WORDING, AnswerForm, likely_columns
from asyncbench.problems.custom import (
    Columns,
    Custom,
    answer_forms,
    columns_in,
    first_row,
    mapping,
    unread_choices,
)
from asyncbench.problems.hub import problem_file, remote_address
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.problems.schema import PROBLEM_SCHEMA, ROWS_AT_ONCE
from asyncbench.records import Condition, Problem, Reply
from asyncbench.suites.custom import grader_of, is_number, likely_grader
from asyncbench.suites.number_reading import Mark
from asyncbench.suites.requests import fields_in, wording_of
from asyncbench.suites.table import graded
from asyncbench.tables.numbers import number_of
from asyncbench.tables.report import Report, Sheet
from asyncbench.tables.screen import safe_notes

EXAMPLES = 10  # problems that are shown
READINGS: Final = 3  # expected answers that are shown in one line, as the grader reads them
LONGEST = 1_500  # characters of a question on a screen
TEXTS_ABOVE: Final = ("passage", "context", "article")  # columns with a text that questions are about
LATEX: Final = re.compile(
    r"\\(?:boxed|fbox|d?frac|sqrt|left|text|pi|infty|circ)\b"
)  # an answer in the form of MATH
EXAMPLE_HEAD = ("problem", "task", "question", "expected", "read as")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedProblem:
    """A problem as it would be asked, and what its grader makes of the expected answer as a reply."""

    problem_id: str
    task: str
    messages: tuple[Mapping[str, str], ...]  # role and content, in order
    expected: str
    accepted: tuple[str, ...]  # all answers that count as right, `expected` first
    grader: str  # of its replies
    answer: str | None  # what is read in the expected answer
    outcome: str  # of the expected answer as a reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFile(Report):
    """A problem file as it is shown before anything is asked."""

    file: str
    problems: int
    tasks: Mapping[str, Mapping[str, int]]  # suite → task → problems
    # asyncbench's name → the file's; empty: the file has asyncbench's own names
    columns: Mapping[str, str | Sequence[str]]
    guessed: tuple[str, ...]  # columns that were found by their usual names
    unused: tuple[str, ...]  # other columns of the file
    grader: str | None  # of a user's own file; None: each suite has its own, or a column names graders
    graders: Mapping[str, int]  # graders that a column names → number of problems
    grader_guessed: bool
    decimal: str | None  # the decimal mark; None: the usual one
    wording: str | None  # how a row is asked; None: its question as it stands
    answer_form: str | None  # how an expected answer names a choice; None: the file has no choices
    choices_note: str | None  # the same as a sentence
    choices: int | None  # the most choices of a row; None: the file has none
    repeats: tuple[str, ...]  # notes on questions that are there more than once
    sweep: str  # the lines of a sweep file
    examples: tuple[AskedProblem, ...]

    def notes_above(self) -> Iterator[str]:
        yield f"{self.file}: {number_of(self.problems, 'problem')}."
        for ours, theirs in self.columns.items():
            guess = " (guessed from its name)" if ours in self.guessed else ""
            if ours == "choices":
                columns = [theirs] if isinstance(theirs, str) else theirs
                guess = guess.replace("its name", "their names") if len(columns) > 1 else guess
                letters = f"A-{ascii_uppercase[self.choices - 1]}" if self.choices else "letters"
                yield f"Choices are read from {', '.join(map(repr, columns))}{guess} and asked as {letters}."
            elif isinstance(theirs, str):
                yield f"{ours} is read from column {theirs!r}{guess}."
            else:
                yield f"{ours} is read from columns {', '.join(map(repr, theirs))}: all are accepted answers."
        yield from (f"! {note}" for note in self.repeats)
        if self.unused:
            yield f"Other columns are not used: {', '.join(self.unused)}."
        if self.wording:
            yield f"Asked as {json.dumps(self.wording)}."
        if self.choices_note:
            yield self.choices_note
        if self.grader:
            guess = " (guessed from the expected answers)" if self.grader_guessed else ""
            yield f"Replies are graded by {self.grader!r}{guess}."
        if self.graders:
            counts = ", ".join(f"{grader} {count:,}" for grader, count in self.graders.items())
            yield f"Replies are graded by the grader that each row names: {counts}."
        if self.decimal is not None:
            yield f"{self.decimal!r} stands before decimals, in the file and in replies."
        if self.grader == "number":
            yield f"Expected answers as it reads them: {self.as_read()}."
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Yield doubts about the columns or the grader, as sentences that begin with `!`."""
        # A pattern may look for words beside the answer, which a file does not hold.
        outcomes = [shown.outcome for shown in self.examples if shown.grader != "regex"]
        if wrong := sum(outcome != "correct" for outcome in outcomes):
            yield f"! {wrong:,} expected answers would be wrong as replies. Check column and grader."
        if self.grader_guessed and (lost := likely_columns(self.unused, ())):
            columns = ", ".join(map(repr, [lost] if isinstance(lost, str) else lost))
            yield (
                f"! {columns} seems to hold choices, which are not asked: they are no lists, or the answers "
                'name none of them. Write each row\'s as a JSON list, such as ["Rome", "Paris"].'
            )
        assertions = [name for name in self.unused if ASSERTED.fullmatch(name)]
        if assertions and ASSERTED.fullmatch(asserted := str(self.columns["expected"])):
            names = ", ".join(assertions)
            yield f"! Only the assertion in {asserted!r} counts. Others are not read: {names}."
        if any(shown.grader == "exact" and is_list_of_texts(shown.expected) for shown in self.examples):
            column = self.columns["expected"]
            yield (
                '! \'exact\' takes an expected answer such as ["a", "b"] as it stands. If it lists '
                f"accepted answers, write `columns: {{expected: [{column}]}}`."
            )

    def entry(self) -> str | Mapping[str, object]:
        """Return the file as a sweep names it under `problems`."""
        (entry,) = yaml.safe_load(self.sweep)["problems"]
        return cast("str | Mapping[str, object]", entry)

    def as_read(self) -> str:
        """Return three expected answers, each as its grader reads it: '3/4' is 3/4 = 0.75."""
        readings = list[str]()
        for shown in self.examples[:READINGS]:
            answer = shown.answer or "nothing"
            reading = f"{shorten(shown.expected, 40)!r} is {answer:.40}"
            if re.fullmatch("-?[0-9]{1,99}/[0-9]{1,99}", answer):
                reading += f" = {float(Fraction(answer)):.6g}"
            readings.append(reading)
        return "; ".join(readings)

    def sheets(self) -> Iterator[Sheet]:
        counts = [
            (suite, task, f"{count:,}")
            for suite, tasks in self.tasks.items()
            for task, count in tasks.items()
        ]
        yield Sheet(title="", head=("suite", "task", "problems"), rows=counts, labels=2)
        rows = [
            (shown.problem_id, shown.task, _text_of(shown), " | ".join(shown.accepted), shown.answer or "-")
            for shown in self.examples
        ]
        yield Sheet(
            title="As they would be asked", head=EXAMPLE_HEAD, rows=rows, labels=5, drawn=self._drawn_examples
        )
        yield Sheet(
            title="For your sweep file",
            head=("line",),
            rows=[(line,) for line in self.sweep.splitlines()],
            # YAML writes nothing that harms a terminal.
            drawn=lambda _width: f"For your sweep file:\n\n{self.sweep.rstrip()}",
        )

    def _drawn_examples(self, width: int | None) -> str:
        """Return the examples as text, one below the other."""
        blocks = list[str]()
        for number, shown in enumerate(self.examples, 1):
            lines = [
                f"─── {number} of {self.problems:,}, {shown.task}",
                *_cut(_text_of(shown)).splitlines(),
                f"expected: {_cut(' | '.join(shown.accepted))}",
                f"read as: {_cut(shown.answer or '-')}",
            ]
            blocks.append("\n".join(safe_notes(lines, width=width)))
        return "\n\n".join(blocks)


def _text_of(shown: AskedProblem) -> str:
    if len(shown.messages) == 1:
        return shown.messages[0]["content"]
    return "\n".join(f"{message['role']}: {message['content']}" for message in shown.messages)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters in all)"


def inspect_problems(
    path: str | PathLike[str],
    *,
    columns: Columns | None = None,
    grader: str | None = None,
    pattern: str | None = None,
    decimal: str | None = None,
    wording: str | None = None,
    answer_form: str | None = None,
) -> ProblemFile:
    """Inspect a problem file before you ask it. No model is called.

        print(ab.inspect_problems("my.jsonl").as_text())

    Args:
        path: a problem set of asyncbench, or a Parquet, CSV, TSV, JSON lines or JSON file of your own; or
            the address of such a file on the Hub, such as `hf://datasets/OWNER/NAME`.
        columns: asyncbench's name of a column → yours. [those with usual names]
        grader: the grader of your own file. [one that fits the expected answers]
        pattern: the pattern of the grader `regex`; its first group is the answer. [none]
        decimal: for the grader `number`: "," where 1,5 is a number. ["."]
        wording: how a row is asked, such as "{question}\\n\\n{choices}". [the question, with its choices]
        answer_form: of a file with choices: letter, index, position or text. [what fits the answers]

    Returns:
        A `ProblemFile`: columns, counts, ten problems as they would be asked, and the lines of a sweep file.

    Raises:
        ConfigError: The arguments do not go together.
        ProblemSetError: The file cannot be read as problems.
    """
    with problem_file(path) as (file, hub):
        source = {"path": remote_address(path) or str(path)}
        names = columns_in(file)
        chosen_by_hand = columns or grader or pattern or decimal or wording or answer_form
        if not chosen_by_hand and set(PROBLEM_SCHEMA.names) <= set(names):
            inspected = _inspected(open_set(file), names, source, grader_guessed=False)
        else:
            given, (columns, wording) = columns or {}, _with_choices(file, columns, grader, wording)
            named = grader is not None or "grader" in columns
            if named:
                chosen = grader
            elif "choices" in columns:
                chosen = "choice"
            else:
                chosen, decimal = _likely_grader(file, columns, decimal)
            opened = partial(
                open_set,
                file,
                suite="custom",
                columns=columns,
                grader=chosen,
                pattern=pattern,
                decimal=cast("Mark | None", decimal),  # which refuses any other
                answer_form=cast("AnswerForm | None", answer_form),  # likewise
            )
            problems = opened(wording=wording)
            if wording is None and (text := _text_above(problems, names)) is not None:
                words = f"{{{text}}}\n\n{WORDING if problems.choices else '{question}'}"
                with suppress(ProblemSetError):  # it may be missing in some rows: then they need it not
                    problems, wording = opened(wording=words), words
            choices = problems.choices
            settings = {
                "grader": chosen,
                "columns": dict(problems.own_columns),
                "pattern": pattern,
                "decimal": decimal,
                "wording": WORDING if choices and wording is None else wording,
                "answer_form": choices.form if choices else None,
            }
            options = {name: value for name, value in settings.items() if value}
            entry = {**source, "suite": "custom", **options}
            inspected = _inspected(problems, names, entry, grader_guessed=not named)
            if "choices" in columns and "choices" not in given:
                inspected = replace(inspected, guessed=(*inspected.guessed, "choices"))
        return replace(inspected, file=source["path"] if hub is None else hub.pinned)


def _with_choices(
    file: Path, columns: Columns | None, grader: str | None, wording: str | None
) -> tuple[Columns, str | None]:
    """Return the columns with those of choices that the file seems to have, and its wording.

    They are taken only if most answers are one of them. Where each question lists its choices itself, it is
    asked as it stands.
    """
    columns = columns or {}
    if "choices" in columns or grader not in (None, "choice"):
        return columns, wording
    try:
        unread = unread_choices(file, mapping(columns, file), rows=ROWS_AT_ONCE)
    except ProblemSetError:  # a column is lacking, say: that is told where it is read
        return columns, wording
    if unread is None:
        return columns, wording
    names, forms = unread
    as_it_stands = "{question}" if forms.shown else None
    return {**columns, "choices": names}, wording or as_it_stands


def _text_above(problems: ProblemSet, names: list[str]) -> str | None:
    """Return the column of a text that the questions are about, by its usual name, or None."""
    used = problems.own_columns.values()
    name = next((name for name in names if name.lower() in TEXTS_ABOVE and name not in used), None)
    row = {} if name is None else first_row(problems.path)
    question = next(problems.read(1)).question
    return name if name is not None and row[name].strip() and row[name].strip() not in question else None


def _likely_grader(file: Path, columns: Columns | None, decimal: str | None) -> tuple[str | None, str | None]:
    """Return a grader that fits every expected answer, and the decimal mark where it is not the usual one."""
    if decimal is not None:
        return "number", decimal
    problems = open_set(file, suite="custom", columns=columns, grader="text")  # which also opens JSON lists
    answers = [problem.accepted for problem in problems.read()]
    likely = likely_grader(answer for accepted in answers for answer in accepted)
    if likely != "exact":
        return likely, None
    if any(LATEX.search(answer) for accepted in answers for answer in accepted):
        return "math", None
    if all(is_number(answer, ",") for accepted in answers for answer in accepted):
        return "number", ","
    return "text" if any(len(accepted) > 1 for accepted in answers) else "exact", None


def _inspected(
    problems: ProblemSet, names: list[str], entry: Mapping[str, object], *, grader_guessed: bool
) -> ProblemFile:
    used = problems.own_columns
    read = {name for theirs in used.values() for name in ([theirs] if isinstance(theirs, str) else theirs)}
    read.update(fields_in(str(entry.get("wording", ""))))
    by_row = "grader" in used or ASSERTED.fullmatch(str(used.get("expected")))
    custom = problems.custom if isinstance(problems.custom, Custom) and problems.choices else None
    met = Counter(grader_of(problem.extra) or "" for problem in problems.read()) if by_row else {}
    return ProblemFile(
        file=str(problems.path),
        problems=problems.rows,
        tasks={suite: dict(tasks) for suite, tasks in problems.tasks.items()},
        columns=dict(used),
        guessed=tuple(problems.guessed_columns),
        unused=tuple(name for name in names if name not in read) if used else (),
        grader=str(entry["grader"]) if "grader" in entry and not met else None,
        graders=dict(met),
        grader_guessed=grader_guessed,
        decimal=cast("str | None", entry.get("decimal")),
        wording=cast("str | None", entry.get("wording")),
        answer_form=problems.choices.form if problems.choices else None,
        choices_note=problems.choices.note if problems.choices else None,
        choices=None if custom is None else answer_forms(problems.path, custom, rows=ROWS_AT_ONCE).most,
        repeats=tuple(problems.repeats.notes) if problems.repeats else (),
        sweep=yaml.dump(
            {"problems": [dict(entry) if len(entry) > 1 else entry["path"]]},
            Dumper=OneLineTexts,
            sort_keys=False,
            default_flow_style=None,
            width=1_000,
            allow_unicode=True,
        ),
        examples=tuple(map(_example, islice(problems.read(EXAMPLES), EXAMPLES))),
    )


def _example(problem: Problem) -> AskedProblem:
    plain = Condition(name="plain")
    worded = wording_of(problem, plain)
    system = [{"role": "system", "content": worded.system}] if worded.system else []
    earlier = (*worded.turns, *worded.chat)
    headline = graded(problem, Reply(text=problem.expected), plain)[0]
    return AskedProblem(
        problem_id=problem.problem_id,
        task=problem.task,
        messages=(*system, *map(asdict, earlier), {"role": "user", "content": worded.question}),
        expected=problem.expected,
        accepted=problem.accepted,
        grader=headline.grader,
        answer=headline.answer,
        outcome=headline.outcome.value,
    )
