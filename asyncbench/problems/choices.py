"""The choices of a row, listed as A, B, C in its question. The answer becomes one of these letters.

    choices: ["Rome", "Paris"]                                    a list, or a text that is one
    choices: {"text": ["Rome", "Paris"], "label": ["1", "2"]}     an answer may be one of its labels
    choices: {"A": "Rome", "B": "Paris"}                          likewise
    choices: [{"label": "A", "text": "Rome"}, …]                  likewise
    columns: {choices: [opa, opb, opc]}                           a column for each

Shuffled by a seed, the choices of a row stand in another order, and its letters are those of that order.

An answer is a letter or a label (`letter`), a number that counts from 0 (`index`) or from 1 (`position`), or
the text of a choice (`text`). All answers of a file have one form.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from itertools import combinations
from string import ascii_uppercase
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from asyncbench.errors import ProblemSetError
from asyncbench.problems.text_files import NumberAsWritten, text_value

AnswerForm: TypeAlias = Literal["letter", "index", "position", "text"]
FORMS: Final[Mapping[AnswerForm, str]] = {
    "letter": "a letter or label",
    "index": "a number from 0",
    "position": "a number from 1",
    "text": "the text of a choice",
}
WORDING: Final = "{question}\n\n{choices}\n\nAnswer with one letter."
_USUAL: Final = ("choices", "options", "answer_choices", "endings", "candidates")  # a column with all choices
_STEMS: Final = ("", "option", "choice", "answer", "ending", "opt", "op", "sol", "solution", "candidate")
_MARKED: Final = re.compile(r"(.*?)[ _-]?([A-Za-z]|[0-9])")  # the name of a column with one choice
_TEXTS: Final = ("text", "value", "content")  # the text of a choice, where it is an object
_LABELS: Final = ("label", "key", "id")
_ORDERS: Final = ("abcdefghij", "123456789", "0123456789")  # of columns with one choice
_BESIDE: Final = " ().:[]*"  # signs around a letter
_OWN_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]\s*")  # "A) Rome"


_Labelled: TypeAlias = tuple[tuple[str, ...], Any]  # labels, and a value that should be text


class Choice(NamedTuple):
    """A choice, and what an answer may call it, in capitals."""

    text: str
    labels: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceColumns:
    """The columns that hold the choices of a file, and how its answers name one."""

    columns: Sequence[str]  # one with all choices, or one for each choice
    form: AnswerForm
    unsure: bool = False  # whether numbers that are taken for `index` may be `position`
    seed: int | None = None  # of the order in which they are asked; None: that of the file

    @property
    def named(self) -> str | list[str]:
        """The columns as a sweep file names them."""
        return self.columns[0] if len(self.columns) == 1 else list(self.columns)

    @property
    def note(self) -> str:
        """How the answers are read, as a sentence."""
        doubt = (
            " No answer tells: if they count from 1, write `answer_form: position`." if self.unsure else ""
        )
        return f"An answer is {FORMS[self.form]}.{doubt}"

    def letters(self, answers: Sequence[str], choices: Sequence["Choice"], *, place: str) -> list[str]:
        """Return the letters of all choices that the accepted answers of a row name.

        Raises:
            ProblemSetError: one of them names none.
        """
        letters = list[str]()
        for answer in answers:
            chosen = letters_of(answer, self.form, choices)
            if not chosen:
                raise ProblemSetError(
                    f"{place}: {answer!r:.80} names none of the {len(choices)} choices as "
                    f"{FORMS[self.form]}. Correct it, or say what the answers are: {ways_to_name()}."
                )
            letters += chosen
        return list(dict.fromkeys(letters))


def shuffled(
    choices: Sequence[Choice], letters: Sequence[str], *, seed: int, question: str
) -> tuple[list[Choice], list[str]]:
    """Return choices in an order drawn for this question, and the letters that the right ones then have.

    The seed, the question and the texts of the choices decide, and not their order: it is the same for each
    model, on each machine and in each run.
    """
    key = blake2b(f"{seed}:{question}".encode(), digest_size=32).digest()
    numbers = [blake2b(choice.text.encode(), key=key).digest() for choice in choices]
    order = sorted(range(len(choices)), key=numbers.__getitem__)
    moved = {ascii_uppercase[old]: ascii_uppercase[new] for new, old in enumerate(order)}
    return [choices[old] for old in order], [moved[letter] for letter in letters]


def ways_to_name() -> str:
    """Return the values of `answer_form`, each with its meaning."""
    return ", ".join(f"`answer_form: {form}` ({meaning})" for form, meaning in FORMS.items())


def listed(choices: Sequence[Choice]) -> str:
    """Return the lines that show choices: `A. Rome`, `B. Paris`."""
    return "\n".join(
        f"{letter}. {choice.text}" for letter, choice in zip(ascii_uppercase, choices, strict=False)
    )


# ── the choices of a row


def choices_in(row: Mapping[str, Any], columns: Sequence[str], *, place: str) -> list[Choice]:
    """Return the choices of a row, 2 to 26 of them, without empty ones at the end.

    Args:
        row: values of a file by column: texts, or what JSON or Arrow holds.
        columns: one with all choices, or one for each.
        place: of the row, for messages.

    Raises:
        ProblemSetError: they cannot be read, are too few or too many, or one between others is empty.
    """
    where = f"{place}: column {', '.join(map(repr, columns))}"
    if len(columns) > 1:
        marks = _marks(columns) or columns
        pairs: list[_Labelled] = [
            ((name, mark), row[name]) for name, mark in zip(columns, marks, strict=True)
        ]
    else:
        pairs = _labelled(_opened(row[columns[0]]))
    while pairs and pairs[-1][1] in (None, ""):
        pairs.pop()
    if not 2 <= len(pairs) <= len(ascii_uppercase):
        raise ProblemSetError(
            f"{where} holds {len(pairs)} choices, not 2 to 26. Write a list such as "
            '["Rome", "Paris"], or name a column for each choice: `columns: {choices: [A, B]}`.'
        )
    choices = list[Choice]()
    for letter, (names, value) in zip(ascii_uppercase, pairs, strict=False):
        if isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
            value = format(value, "f") if isinstance(value, Decimal) else str(value)
        if not isinstance(value, str) or not value.strip():
            fault = "is empty" if value in (None, "") or isinstance(value, str) else "is no text"
            raise ProblemSetError(f"{where}: choice {letter} {fault}. Write it as text, or remove it.")
        text = text_value({columns[0]: value}, columns[0], place=place).strip()
        labels = frozenset(name.strip().upper() for name in names) or frozenset(letter)
        # columns called option1 and option2 are A and B, too
        choices.append(Choice(text, labels | {letter} if len(columns) > 1 else labels))
    return _strip_letters(choices)


def _strip_letters(choices: list[Choice]) -> list[Choice]:
    """Return choices without the letters that all of their texts begin with: `A) Rome`, `B) Paris`."""
    leads = [_OWN_LETTER.match(choice.text) for choice in choices]
    letters = [lead[1].upper() if lead else "" for lead in leads]
    if letters != list(ascii_uppercase[: len(choices)]):
        return choices
    texts = [choice.text[lead.end() :] for choice, lead in zip(choices, leads, strict=True) if lead]
    return [choice._replace(text=text) for choice, text in zip(choices, texts, strict=True)]


def _opened(value: Any) -> Any:  # Any: JSON, or what Arrow holds
    """Return the values that a text lists, as JSON or as Python writes it; other values unchanged."""
    if not (isinstance(value, str) and value.lstrip()[:1] in ("[", "{")):
        return value
    try:
        return json.loads(value, parse_int=NumberAsWritten, parse_float=NumberAsWritten)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def _labelled(value: Any) -> list[_Labelled]:  # Any: as `_opened` returns it
    """Return each choice behind its labels; an empty list where a value is none of the forms above."""
    if isinstance(value, dict):
        texts = next((value[name] for name in _TEXTS if isinstance(value.get(name), list)), None)
        if texts is None:  # {"A": "Rome", "B": "Paris"}; Arrow has a key of other rows as null
            return [((str(label),), text) for label, text in value.items()]
        labels: list[object] = next(
            (value[name] for name in _LABELS if isinstance(value.get(name), list)), []
        )
        if len(labels) != len(texts):
            return [((), text) for text in texts]
        return [((str(label),), text) for label, text in zip(labels, texts, strict=True)]
    if not isinstance(value, list):
        return []
    pairs = list[_Labelled]()
    for item in value:
        if isinstance(item, dict) and (name := next(filter(item.__contains__, _TEXTS), None)):
            pairs.append((tuple(str(item[label]) for label in _LABELS if label in item), item[name]))
        else:
            pairs.append(((), item))
    return pairs


# ── the answer among them


def letters_of(answer: str, form: AnswerForm, choices: Sequence[Choice]) -> list[str]:
    """Return the letters of the choices that an answer names; several where choices have the same text."""
    answer = answer.strip()
    if form == "letter":
        label = answer.strip(_BESIDE).upper()
        chosen = [i for i, choice in enumerate(choices) if {label, answer.upper()} & choice.labels]
    elif form == "text":
        chosen = [i for i, choice in enumerate(choices) if choice.text == answer] or [
            i for i, choice in enumerate(choices) if choice.text.casefold() == answer.casefold()
        ]
    else:
        first = 0 if form == "index" else 1
        match = re.fullmatch(r"([0-9]{1,2})(?:\.0)?", answer)
        number = int(match[1]) - first if match else -1
        chosen = [number] if 0 <= number < len(choices) else []
    return [ascii_uppercase[i] for i in chosen]


def _is_listed(question: str, letter: str, choice: Choice) -> bool:
    """Return whether a question shows a choice behind its letter or label: `(A) Asia`."""
    labels = "|".join(map(re.escape, choice.labels | {letter}))
    pattern = rf"(?<!\w)(?:{labels})\W{{1,4}}{re.escape(choice.text)}"
    return re.search(pattern, question, re.IGNORECASE) is not None


class AnswerForms:
    """Finds out which form the answers of a file have."""

    def __init__(self) -> None:
        self._rows = 0
        self._fitting = Counter[AnswerForm]()
        self._conflicts = set[frozenset[AnswerForm]]()  # forms that name different choices in a row
        self._shown = 0  # questions that list all of their choices
        self.most = 0  # choices of a row

    def add(self, question: str, answers: Sequence[str], choices: Sequence[Choice]) -> None:
        """Take in a row: its question, its accepted answers and its choices."""
        self._rows += 1
        self.most = max(self.most, len(choices))
        lettered = zip(ascii_uppercase, choices, strict=False)
        self._shown += all(_is_listed(question, letter, choice) for letter, choice in lettered)
        letters = {form: [letters_of(answer, form, choices) for answer in answers] for form in FORMS}
        fitting = [form for form in FORMS if all(letters[form])]
        self._fitting.update(fitting)
        pairs = combinations(fitting, 2)
        self._conflicts.update(frozenset(pair) for pair in pairs if letters[pair[0]] != letters[pair[1]])

    @property
    def shown(self) -> bool:
        """Whether each question lists its choices itself, with their letters."""
        return 0 < self._rows == self._shown

    @property
    def likely(self) -> AnswerForm | None:
        """The form of most answers, the first of `FORMS` where several fit, or None if less than half fit."""
        form = max(FORMS, key=self._fitting.__getitem__)
        return form if self._rows and 2 * self._fitting[form] >= self._rows else None

    @property
    def rivals(self) -> Collection[AnswerForm]:
        """Forms that fit as many answers as the likely one, and name other choices."""
        likely = self.likely
        fitting = [form for form in FORMS if likely and self._fitting[form] == self._fitting[likely]]
        return [form for form in fitting if frozenset((form, likely)) in self._conflicts]


# ── which columns look like choices


def likely_columns(names: Sequence[str], taken: Collection[str]) -> str | list[str] | None:
    """Return the column with all choices, or the columns with one choice each, or None."""
    free = [name for name in names if name not in taken]
    by_name = {name.lower(): name for name in free}
    if usual := next(filter(by_name.__contains__, _USUAL), None):
        return by_name[usual]
    stems: dict[str, list[str]] = {}
    for name in free:
        if (marked := _MARKED.fullmatch(name)) is not None and marked[1].lower() in _STEMS:
            stems.setdefault(marked[1].lower(), []).append(name)
    for stem, columns in stems.items():
        marks = _marks(columns)
        ordered = any(marks == list(order[: len(marks)]) for order in _ORDERS)
        if ordered and len(columns) >= (2 if stem else 3) and (stem or marks[0] == "a"):
            return columns
    return None


def _marks(columns: Sequence[str]) -> list[str]:
    """Return the endings that tell columns such as option_a and option_b apart: a, b, or nothing."""
    marked = [_MARKED.fullmatch(name) for name in columns]
    if not all(marked) or len({match[1].lower() for match in marked if match}) > 1:
        return []
    return [match[2].lower() for match in marked if match]
