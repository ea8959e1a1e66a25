"""The accepted answers of a row: one text, or a list of them.

    expected: ["Paris", "Paname"]      a list column of Parquet, a list of JSON: each item is right
    columns: {expected: [answer, alias]}       several columns: each is right, an empty one says nothing
    columns: {expected: [answers]}             one column whose texts are JSON lists, for any grader
    expected: true                             so is "yes", as people say it (BoolQ)
    expected: {"value": "Paris", "aliases": ["Paname"]}         TriviaQA; {"text": ["Paris"]} as in SQuAD

A text such as `["Paris", "Paname"]` in a CSV is a list for the graders that read no list themselves. For
`exact`, `regex` and functions of one's own it is the text that it is, unless `columns` says as above. For
`json` a list is a value, so several answers need several columns.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asyncbench.errors import ProblemSetError
from asyncbench.problems.text_files import NumberAsWritten, text_value

ASSERTED: Final = re.compile(r"__expected[0-9]*")  # the column of promptfoo's tables
_ASSERTION: Final = re.compile(r"\s*((?:not-)?[a-z][a-z-]*)(?:\([^)]*\))?:\s*(.*)", re.DOTALL)
_GRADERS: Final = {"equals": "exact", "contains": "contains", "icontains": "contains"}
_REFUSED: Final = re.compile(
    "not-.*|javascript|fn|eval|python|file|grade|llm-rubric|similar|is-.*|contains-.*|icontains-.*"
    "|starts-with|regex|factuality|rouge-n|bleu|levenshtein|cost|latency|webhook|classifier|model-graded-.*"
)
OPENED: Final = frozenset(
    {"number", "choice", "text", "contains", "math"}
)  # graders for which a text is a list
_SAID: Final = {True: ["true", "yes"], False: ["false", "no"]}
_NAMED: Final = ("value", "text")  # the answer in an object
_KINDS: Final = {bool: "true or false", type(None): "null", dict: "an object", list: "a list"}


def accepted_in(
    row: Mapping[str, Any], columns: Sequence[str], grader: str, *, listed: bool, place: str
) -> list[str]:
    """Return the accepted answers of a row, at least one, none of them twice.

    Args:
        row: values of a file by column: texts, or lists of them; for `json` any value of JSON.
        columns: those that hold answers.
        grader: of the file.
        listed: whether `columns` of the source is a list, so that texts that are JSON lists are opened.
        place: of the row, for messages.

    Raises:
        ProblemSetError: a value that is no text, an empty list.
    """
    answers = list[str]()
    for column in columns:
        value = row[column]
        if grader == "json" and not (isinstance(value, str) and not isinstance(value, NumberAsWritten)):
            answers.append(_json_text(value))
            continue
        if len(columns) > 1 and value in (None, ""):
            continue
        if isinstance(value, bool):
            value = _SAID[value]
        if isinstance(value, dict) and (name := next(filter(value.__contains__, _NAMED), None)):
            texts = value[name] if isinstance(value[name], list) else [value[name]]
            value = [text for text in [*texts, *(value.get("aliases") or [])] if text]
        if isinstance(value, str) and (listed or grader in OPENED) and grader != "json":
            value = _list_in(value, numbers=listed) or value
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str) and isinstance(value, list):
                kind = _KINDS.get(type(item), "no text")
                raise ProblemSetError(
                    f"{place}: column {column!r}: an accepted answer is {kind}. Write each as text."
                )
            answers.append(text_value({column: item}, column, place=place))
    if not answers:
        names = ", ".join(map(repr, columns))
        raise ProblemSetError(
            f"{place}: no accepted answer in {names}. Write at least one, or remove its row."
        )
    return list(dict.fromkeys(answers))


def asserted(text: str, *, place: str) -> tuple[str, str]:
    """Return the grader of an assertion of promptfoo, "" for a bare text, and the text: `contains: Paris`.

    Raises:
        ProblemSetError: asyncbench has no such assertion.
    """
    if (match := _ASSERTION.fullmatch(text)) is None:
        return "", text
    if _REFUSED.fullmatch(match[1]):
        raise ProblemSetError(
            f"{place}: there is no assertion {match[1]!r} here, only {', '.join(_GRADERS)} and a bare text. "
            "Write one of these, or remove the row."
        )
    return (_GRADERS[match[1]], match[2]) if match[1] in _GRADERS else ("", text)


def is_list_of_texts(text: str) -> bool:
    """Return whether a text is a JSON list of texts."""
    return bool(_list_in(text, numbers=False))


def _list_in(text: str, *, numbers: bool) -> list[Any] | None:  # Any: JSON
    """Return the list that a text is, if all its items are texts or, with `numbers`, numbers."""
    if not text.lstrip().startswith("["):
        return None
    try:
        read = json.loads(text, parse_int=NumberAsWritten, parse_float=NumberAsWritten)
    except (ValueError, RecursionError):
        return None
    texts = isinstance(read, list) and all(isinstance(item, str) for item in read)
    return (
        read if texts and (numbers or not any(isinstance(item, NumberAsWritten) for item in read)) else None
    )


def _json_text(value: Any) -> str:  # Any: JSON, its numbers as they are written
    if isinstance(value, NumberAsWritten):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)}: {_json_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_json_text, value))}]"
    return json.dumps(value, ensure_ascii=False)
