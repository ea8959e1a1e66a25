"""Custom problem sets: any file with a question and an expected answer, its columns mapped to ours."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.accepted import ASSERTED, accepted_in, asserted
from asyncbench.problems.chats import is_chat, question_of_row
from asyncbench.problems.choices import (
    FORMS,
    AnswerForms,
    ChoiceColumns,
    choices_in,
    likely_columns,
    listed,
    shuffled,
)
from asyncbench.problems.files import lacking, opened_columns
from asyncbench.problems.row_graders import RowGraders
from asyncbench.problems.schema import ROWS_AT_ONCE, Column, converted, is_text
from asyncbench.problems.text_files import (
    Row,
    first_of,
    is_text_file,
    names_in,
    separator_of,
    text_rows,
    text_value,
)
from asyncbench.records import Draft
from asyncbench.suites.chats import chat_in, chat_question
from asyncbench.suites.custom import check_expected
from asyncbench.suites.number_reading import decimal_mark
from asyncbench.suites.requests import QUESTION, fields_in, filled

SUITE = "custom"
MOST_REFUSED: Final = 1_000  # rows that cannot be asked or graded: then the rest is not read
SHOWN_REFUSED: Final = 9  # after the first
_WAY_OUT: Final = " Correct it, use another grader, or remove the problem."
CHOICES: Final = "choices"
PROGRAMS: Final = {"entry_point", "test_list"}  # columns of HumanEval and MBPP
REQUIRED = ("question", "expected")
OPTIONAL = ("task", "variant", "length", "representation", "grader", CHOICES)
KNOWN_NAMES: Mapping[str, Sequence[str]] = {  # what others call such columns, the likeliest first
    "question": (
        *("question", "prompt", "problem", "input", "query", "instruction", "messages"),
        *("goal", "ctx", "sentence", "question_stem"),
    ),
    "expected": (
        *(
            "expected",
            "answer",
            "answers",
            "final_answer",
            "final",
            "target",
            "correct_answer",
            "expected_answer",
        ),
        *("expected_output", "output", "label", "result", "solution", "reference"),
        *(
            "answerkey",
            "correct",
            "correct_option",
            "answer_idx",
            "answer_index",
            "gold",
            "cop",
            "__expected",
            "__expected1",
        ),
    ),
}
DEFAULTS: Mapping[str, Any] = {  # of a draft; what a row says wins
    "suite": SUITE,
    "task": SUITE,
    "representation": "text",
    "length": None,
    "answer_type": "text",
}


@dataclass(frozen=True, kw_only=True)
class Custom:
    """The way to read a custom file: its columns, and the graders of replies."""

    columns: Mapping[str, str]  # our name → the file's; of several with accepted answers the first
    accepted: Sequence[str] = ()  # all of these, where `columns` names them as a list
    graders: RowGraders
    guessed: Mapping[str, str] = field(default_factory=dict)  # of `columns`, what nobody named
    choices: ChoiceColumns | None = None
    wording: str = f"{{{QUESTION}}}"  # of a question; other fields are `choices` and columns of the file

    @cached_property
    def several(self) -> Mapping[str, Sequence[str]]:
        """Columns of the file that are read together, by what they hold."""
        fields = dict.fromkeys(fields_in(self.wording))
        columns = [name for name in fields if name != QUESTION and (name != CHOICES or self.choices is None)]
        return {
            "expected": self.accepted or (self.columns["expected"],),
            CHOICES: () if self.choices is None else self.choices.columns,
            "wording": columns,
        }


def columns_in(path: Path) -> list[str]:
    """Return the columns of a file; of JSON, those of its first object.

    Raises:
        ProblemSetError: it cannot be read.
    """
    if is_text_file(path):
        return names_in(path)
    with opened_columns(path) as file:
        return list(file.schema.names)


def first_row(path: Path) -> dict[str, str]:
    """Return the first row of a file, as text.

    Raises:
        ProblemSetError: it cannot be read, or has none.
    """
    row: Mapping[str, Any] = {}
    if is_text_file(path):
        row = first_of(path)
    else:
        with opened_columns(path) as file:
            for batch in file.batches(file.schema.names, rows=1):
                row = batch.to_pylist()[0]
                break
    if not row:
        raise ProblemSetError(f"{path}: the file holds no row. Write one question and its answer in each.")
    return {name: "" if value is None else str(value) for name, value in row.items()}


Columns: TypeAlias = Mapping[str, str | Sequence[str]]  # our name → the file's; of two also several


def mapping(columns: Columns | None, path: Path) -> dict[str, str]:
    """Return where our columns are in a file: as given, else under a known name, else under our own.

    Of a list, the first one.

    Raises:
        ConfigError: a name that is none of ours; a list that is empty, or of another column than those two.
        ProblemSetError: the file cannot be read.
    """
    chosen = dict[str, str]()
    for name, theirs in (columns or {}).items():
        if name not in REQUIRED + OPTIONAL:
            names = ", ".join(REQUIRED + OPTIONAL)
            raise ConfigError(
                f"{path}: columns: asyncbench has no column {name!r}. Give its name first, then yours: "
                f"`columns: {{question: YOUR_COLUMN}}`. Its names: {names}."
            )
        if not isinstance(theirs, str) and (name not in ("expected", CHOICES) or not theirs):
            raise ConfigError(
                f"{path}: columns: {name} is {list(theirs)}. Only `expected` and `choices` take a list, of "
                "one column or more: with accepted answers, or with a choice each."
            )
        chosen[name] = theirs if isinstance(theirs, str) else theirs[0]
    return {name: name for name in REQUIRED} | guessed(columns_in(path), chosen) | chosen


def guessed(names: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the columns with a known name for what is not given; no column is taken twice.

    Of names that differ in case alone, such as Answer and answer, none is guessed.
    """
    guesses = dict[str, str]()
    times = Counter(name.lower() for name in names)
    by_name = {
        name.lower(): name for name in names if name not in chosen.values() and times[name.lower()] == 1
    }
    for ours, usual in KNOWN_NAMES.items():
        if ours not in chosen and (theirs := next(filter(by_name.__contains__, usual), None)):
            guesses[ours] = by_name.pop(theirs)
    return guesses


def drafts(path: Path, custom: Custom, *, rows: int = ROWS_AT_ONCE) -> Iterator[Draft]:
    """Yield the problems of a custom file in file order, `rows` of them in memory at a time.

    Raises:
        ProblemSetError: a column is missing, holds a NULL, or cannot be turned into text exactly; or rows
            are broken, which are named together at the end.
    """
    refused = list[ProblemSetError]()
    for _, draft in placed_drafts(path, custom, rows=rows):
        if isinstance(draft, ProblemSetError):
            refused.append(draft)
            if len(refused) > MOST_REFUSED:
                break
        elif not refused:
            yield draft
    if refused:
        # the first in full, what stands in some more, a count
        first, *others = map(str, refused)
        more = [f"  {message.removesuffix(_WAY_OUT)}" for message in others[:SHOWN_REFUSED]]
        if unnamed := len(others) - len(more):
            count = f"at least {unnamed:,}" if len(refused) > MOST_REFUSED else f"{unnamed:,}"
            more.append(f"  … and {count} more")
        raise ProblemSetError("\n".join([first, *more])) if more else refused[0]


def placed_drafts(
    path: Path, custom: Custom, *, rows: int = ROWS_AT_ONCE
) -> Iterator[tuple[str, Draft | ProblemSetError]]:
    """Yield each problem with the place of its row, or what is wrong with it; raises as `drafts` does."""
    answers = custom.several["expected"]
    rows_of = _text_rows if is_text_file(path) else _parquet_rows
    # People whose files have semicolons often write 1,5 for 1.5, so 1,234 may be either.
    semicolons = is_text_file(path) and separator_of(path) == ";"
    marks: dict[str | None, tuple[str, str]] = {}  # what an expected value shows → its place and the value
    for place, row in rows_of(path, custom, rows):
        try:
            if isinstance(row, ProblemSetError):
                raise row
            where = f"{place}: column {custom.columns['question']!r}"
            row[QUESTION] = question_of_row(row[QUESTION], place=where)
            if not row["question"].strip():
                raise ProblemSetError(f"{where} holds an empty question. Write one, or remove its row.")
            named = f"{place}: column {custom.columns['grader']!r}" if "grader" in custom.columns else place
            name = row.pop("grader", "")
            if ASSERTED.fullmatch(column := answers[0]) and isinstance(row["expected"][column], str):
                assertion, text = asserted(row["expected"][column], place=f"{place}: column {column!r}")
                name, row["expected"] = assertion or name, {**row["expected"], column: text}
            settings = custom.graders.of(name, place=named)
            grader, decimal = settings["grader"], settings.get("decimal")
            accepted = _accepted(row, custom, grader, place)
            fields, raw_choices = row.pop("wording"), row.pop(CHOICES)
            if custom.choices is not None:
                choices = choices_in(raw_choices, custom.choices.columns, place=place)
                accepted = custom.choices.letters(accepted, choices, place=place)
                if (seed := custom.choices.seed) is not None:
                    choices, accepted = shuffled(choices, accepted, seed=seed, question=row[QUESTION])
                fields[CHOICES] = listed(choices)
            row[QUESTION] = _worded(row[QUESTION], custom.wording, fields)
            for answer in accepted:
                column = f"{place}: column {', '.join(map(repr, answers))}"
                check_expected(grader, answer, decimal=decimal, place=column)
                if semicolons and grader == "number" and decimal is None:
                    marks.setdefault(decimal_mark(answer), (column, answer))
        except (ProblemSetError, ConfigError) as error:
            yield place, error if isinstance(error, ProblemSetError) else ProblemSetError(str(error))
            continue
        several = {"accepted": accepted} if len(accepted) > 1 else {}
        extra = json.dumps({**settings, **several})
        yield place, Draft(**{**DEFAULTS, **row, "expected": accepted[0], "extra": extra})
    if "unknown" in marks and "." not in marks:
        column, answer = marks["unknown"]
        yield column, DecimalUnknownError(answer, column)


def likely_choices(path: Path, custom: Custom, *, rows: int = ROWS_AT_ONCE) -> ChoiceColumns:
    """Return the choices of a file with the form that its answers seem to have.

    Raises:
        ProblemSetError: they seem to have two, of which one is text.
    """
    forms = answer_forms(path, custom, rows=rows)
    form = forms.likely or "letter"  # where none fits, the first rows tell why
    if "text" in forms.rivals:
        raise ProblemSetError(
            f"{path}: its answers may be {FORMS[form]} or {FORMS['text']}. Write `answer_form: {form}` or "
            "`answer_form: text`, or type --answer-form."
        )
    unsure = form == "index" and "position" in forms.rivals
    seed = None if custom.choices is None else custom.choices.seed
    return ChoiceColumns(columns=custom.several[CHOICES], form=form, unsure=unsure, seed=seed)


def answer_forms(path: Path, custom: Custom, *, rows: int = ROWS_AT_ONCE) -> AnswerForms:
    """Return the forms of the answers in a file with choices; broken rows do not count."""
    forms = AnswerForms()
    rows_of = _text_rows if is_text_file(path) else _parquet_rows
    for place, row in rows_of(path, custom, rows):
        with suppress(ProblemSetError):
            if not isinstance(row, ProblemSetError):
                choices = choices_in(row[CHOICES], custom.several[CHOICES], place=place)
                forms.add(row[QUESTION], _accepted(row, custom, "choice", place), choices)
    return forms


def unread_choices(
    path: Path, columns: Mapping[str, str], *, rows: int = ROWS_AT_ONCE
) -> tuple[str | list[str], AnswerForms] | None:
    """Return the columns that seem to hold choices, and what answers say of them, or None.

    They count only if most answers are one of them. `columns` are those that are read already.

    Raises:
        ProblemSetError: the file cannot be read.
    """
    if (names := likely_columns(columns_in(path), columns.values())) is None:
        return None
    custom = Custom(
        columns=columns,
        choices=ChoiceColumns(columns=[names] if isinstance(names, str) else names, form="letter"),
        graders=RowGraders(default="choice"),
    )
    forms = answer_forms(path, custom, rows=rows)
    return None if forms.likely is None else (names, forms)


def check_wording(wording: str, path: Path, custom: Custom) -> None:
    """Refuse a wording without the question, or with a field that is no column of the file.

    Raises:
        ConfigError: as said.
    """
    names = [QUESTION, *([] if custom.choices is None else [CHOICES]), *columns_in(path)]
    known = ", ".join(dict.fromkeys(names))
    braces = "Write {{ and }} for braces that are text."
    try:
        fields = fields_in(wording)
    except ValueError:
        raise ConfigError(f"{path}: `wording` has a brace without its other half. {braces}") from None
    if unknown := next((field for field in fields if field not in names), None):
        raise ConfigError(f"{path}: `wording` has an unknown field {{{unknown}}}. Known: {known}. {braces}")
    if QUESTION not in fields:
        raise ConfigError(f"{path}: `wording` does not say where the question goes. Add {{question}}.")
    if custom.choices is not None and custom.choices.seed is not None and CHOICES not in fields:
        raise ConfigError(f"{path}: `shuffle_choices` needs the choices in `wording`. Add {{choices}}.")


def _worded(question: str, wording: str, fields: Mapping[str, str]) -> str:
    """Return a question in its wording; of a chat, the last message has the words around it."""
    if not (messages := chat_in(question)):
        return filled(wording, {QUESTION: question, **fields})
    last = filled(wording, {QUESTION: messages[-1].content, **fields})
    return chat_question([*messages[:-1], replace(messages[-1], content=last)])


def _accepted(row: Row, custom: Custom, grader: str, place: str) -> list[str]:
    """Return the accepted answers of a row, as the file has them."""
    grader = grader if custom.choices is None else "choice"
    columns, several = custom.several["expected"], bool(custom.accepted)
    return accepted_in(row.pop("expected"), columns, grader, listed=several, place=place)


class DecimalUnknownError(ProblemSetError):
    """The numbers of a file with semicolons may have groups of three digits, or decimals."""

    def __init__(self, answer: str, place: str) -> None:
        self.answer = answer
        super().__init__(
            f"{place}: {answer!r} may have three decimals or a group of three digits, and no other expected "
            'value of this file with semicolons tells. Write `decimal: "."` or `decimal: ","` beside the '
            "grader, or --decimal . or --decimal ,"
        )


# Rows have our names. What several columns hold together is a mapping, its values as the file has them.


def _named(custom: Custom) -> list[tuple[str, str]]:
    """Return each of our columns with the file's; a name of `several` stands with each of its columns."""
    single = [pair for pair in custom.columns.items() if pair[0] not in custom.several]
    return single + [(name, column) for name, columns in custom.several.items() for column in columns]


def _text_rows(path: Path, custom: Custom, _rows: int) -> Iterator[tuple[str, Row | ProblemSetError]]:
    complete = False  # whether a row had all columns: what the first one lacks, all may lack
    for place, row in text_rows(path):
        try:
            yield place, row if isinstance(row, ProblemSetError) else _our_row(row, custom, place)
            complete = True
        except _LackingError as error:
            if not complete:
                raise
            yield place, error
        except ProblemSetError as error:
            yield place, error


def _our_row(row: Row, custom: Custom, place: str) -> Row:
    columns = custom.columns
    for name, column in _named(custom):
        if column not in row:
            raise _lacking_error(column, name, list(row), place=place)
    ours: Row = {
        name: row[column]
        if name == QUESTION and is_chat(row[column])
        else text_value(row, column, place=place)
        for name, column in columns.items()
        if name not in (*custom.several, "length") and not (name == "grader" and row[column] is None)
    }
    ours |= {"expected": row, CHOICES: row}
    ours["wording"] = {name: text_value(row, name, place=place) for name in custom.several["wording"]}
    if "length" not in columns:
        return ours

    column = columns["length"]
    length: int | None = None
    if row[column] not in (None, ""):
        text = text_value(row, column, place=place)
        if not re.fullmatch("-?[0-9]{1,9}", text):
            raise ProblemSetError(
                f"{place}: column {column!r} holds {text!r:.60}, not a whole number below 1,000,000,000. "
                "Write it as that, or leave it empty."
            )
        length = int(text)
    return ours | {"length": length}


def _parquet_rows(path: Path, custom: Custom, rows: int) -> Iterator[tuple[str, Row | ProblemSetError]]:
    named, several, number = _named(custom), len(custom.accepted) > 1, 0
    with opened_columns(path) as file:
        # Each column is there, once, and its type can become text or whole numbers exactly.
        for name, column in named:
            index = file.schema.get_field_index(column)  # -1 where the name stands twice, too
            if index < 0:
                raise _lacking_error(column, name, file.schema.names, place=path)
            kind = file.schema.field(index).type
            if _is_read_by_row(name, kind):
                continue
            if name == "expected" and isinstance(kind, pa.ListType | pa.LargeListType):
                kind = kind.value_type
            whole = pa.types.is_integer(kind)
            if not whole and (name == "length" or not (is_text(kind) or pa.types.is_decimal(kind))):
                wanted = "whole numbers" if name == "length" else "text"
                inexact = (
                    " A float may hold another number than you wrote." if pa.types.is_floating(kind) else ""
                )
                raise ProblemSetError(
                    f"{path}: column {column!r} has type {kind}, not {wanted}. Write it as {wanted}.{inexact}"
                )

        for batch in file.batches(sorted({column for _, column in named}), rows=rows):
            read = [
                _converted(batch.column(column), name, place=f"{path}: column {column!r}", nulls=several)
                for name, column in named
            ]
            for values in zip(*(column.to_pylist() for column in read), strict=True):
                row: Row = {name: {} for name in custom.several}
                for (name, column), value in zip(named, values, strict=True):
                    if name in custom.several:
                        row[name][column] = value
                    else:
                        row[name] = value
                number += 1
                yield f"{path}, row {number}", row


class _LackingError(ProblemSetError):
    """A row or a file lacks a column."""


def _lacking_error(column: str, name: str, names: Sequence[str], *, place: Path | str) -> ProblemSetError:
    if name == "wording":
        return _LackingError(f"{place}: {lacking(column, names)} Correct `wording`, which shows it.")
    programs = (
        " Its answers seem to be programs, which asyncbench does not run against tests."
        if name == "expected" and PROGRAMS & {*names}
        else ""
    )
    return _LackingError(
        f"{place}: {lacking(column, names)}{programs} Name the column to use as {name}: `--columns "
        f"{name}=…`, or `columns: {{{name}: …}}` in a sweep file."
    )


def _is_read_by_row(name: str, kind: pa.DataType) -> bool:
    """Return whether a column of this type holds more than text, which is looked at row by row."""
    if name == CHOICES:
        return pa.types.is_nested(kind)
    if name == QUESTION:  # a chat
        return pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    return name == "expected" and (pa.types.is_boolean(kind) or pa.types.is_struct(kind))


def _converted(column: Column, name: str, *, place: str, nulls: bool) -> Column:
    """Return a column as text, or as lists of texts; `nulls`: one of several with answers may hold NULL."""
    if name == "length":
        return converted(column, pa.int32(), place=place)
    if name == CHOICES and not _is_read_by_row(name, column.type):
        return _texts(column, place=place)
    if name == "grader":
        column = pa.array([text or "" for text in converted(column, pa.string(), place=place).to_pylist()])
    if column.null_count and name != CHOICES and not (nulls and name == "expected"):
        raise ProblemSetError(f"{place} is NULL in some rows. Fill it in, or remove those rows.")
    if _is_read_by_row(name, column.type):
        return column
    if isinstance(column, pa.ListArray | pa.LargeListArray):
        lists: list[list[Any] | None] = cast("Column", column).to_pylist()
        items = pa.array([item for items in lists for item in items or ()], column.type.value_type)
        texts = iter(_converted(items, name, place=f"{place}: an accepted answer", nulls=False).to_pylist())
        values = [None if items is None else [next(texts) for _ in items] for items in lists]
        return pa.array(values, pa.list_(pa.string()))
    return _texts(column, place=place)


def _texts(column: Column, *, place: str) -> Column:
    if pa.types.is_decimal(column.type):  # positional: the cast would write a small one as 1E-8
        return pa.array(
            [None if number is None else format(number, "f") for number in column.to_pylist()], pa.string()
        )
    return converted(column, pa.string(), place=place)
