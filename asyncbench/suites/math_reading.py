"""Mathematics as math-verify reads it, in the process of the grader `math` alone: it loads SymPy.

math-verify's own limit of time is a signal that does not end what SymPy computes: so it is off, and the
process is ended instead.
"""

import re
import unicodedata
from typing import Any, Final

from math_verify import parse, verify
from sympy import Expr  # type: ignore[import-untyped]  # it ships no types

from asyncbench.suites.boxes import last_box
from asyncbench.suites.math_match import NAMES, WORD
from asyncbench.suites.units import Quantity, measured

MOST_ALONE: Final = 300  # characters of a line that may be an expression alone
_LATEX: Final = re.compile(r"\$|\\boxed|\\\(|\\\[")
_PLAIN_NUMBER: Final = re.compile(  # with a sign of percent or a unit of one word or more
    r"\s*[-+]?[$€£]?[0-9][0-9.,/ ]*(%|\\%|[^\W\d_][^\W_]{0,12}([ /*][^\W\d_]+)*)?\s*\.?\s*"
)
_HALVES: Final = re.compile("([0-9]*)([¼-¾⅐-⅞])")
_SIGNS: Final = str.maketrans(
    {"−": "-", "–": "-", "﹣": "-", "－": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi "}
    | {"∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ", "≠": r"\neq ", "∪": r"\cup ", "∩": r"\cap "}
    | {"∈": r"\in ", "°": r"^\circ "}
)
_EXPONENT: Final = re.compile(r"(?<=[0-9])[eE]([-+]?[0-9]+)(?![\w.])")  # of 3e5
TINY: Final = 0.001  # below it, values are the same if they differ by MOST_APART of the one
MOST_APART: Final = 0.001
_LEAD: Final = re.compile(r"^(?:so |thus |hence )?(?:the )?(?:final )?answer(?: is|:)\s*:?\s*", re.IGNORECASE)
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")


def judged(reply: str, accepted: list[str]) -> dict[str, Any]:  # Any: JSON
    """Return the value read in a reply, and whether it equals one of the accepted answers."""
    judgements = [_compared(reply, answer) for answer in accepted]
    return next((judgement for judgement in judgements if judgement["right"]), judgements[0])


def is_read(expected: str) -> dict[str, Any]:
    """Return whether an expected value is an expression; math-verify compares what is none as a text.

    It is compared, so that one that never ends is found before the first call.
    """
    quantity = _quantity(expected)
    read = _parsed(quantity.bare if quantity else expected)
    verify(read, parse("0", parsing_timeout=None), timeout_seconds=None)
    return {"read": any(not isinstance(item, str) for item in read)}


def _compared(reply: str, expected: str) -> dict[str, Any]:
    """Compare values, and units where both have one: 500 cm is worth 5 m."""
    wanted, quantity = _quantity(expected), None
    if _is_number(wanted.bare if wanted else expected):
        box = last_box(reply)
        quantity = measured(reply if box is None else box)
        if quantity is not None:
            reply = quantity.bare if box is None else f"\\boxed{{{quantity.bare}}}"
    gold, read = _parsed(wanted.bare if wanted else expected), _parsed_reply(reply)
    answer = str(read[-1]) if read else None
    if quantity and answer:
        answer = f"{answer} {quantity.name}"
    if wanted and quantity and wanted.unit != quantity.unit:
        if wanted.unit.kind != quantity.unit.kind:
            return {"answer": answer, "right": False}
        times = quantity.unit.factor / wanted.unit.factor
        read = [item * times for item in read if not isinstance(item, str)]
    right = bool(gold) and verify(gold, read, allow_set_relation_comp=True, timeout_seconds=None)

    # Tiny numbers of other sizes, such as 1e-7 and 2e-7, are not the same, though six decimals lose that.
    if right:
        numbers = [
            item.evalf(30)
            for item in (*gold, *read)
            if isinstance(item, Expr) and item.is_number and item.is_real
        ]
        if len(numbers) > 1 and all(abs(number) < TINY for number in numbers):
            first = numbers[0]
            right = not any(abs(number - first) > abs(first) * MOST_APART for number in numbers)
    return {"answer": answer, "right": right}


def _quantity(expected: str) -> Quantity | None:
    """Return an expected number with a unit, or None: `3 m + 2` with a variable m is no such number."""
    quantity = measured(expected.strip())
    return quantity if quantity and _is_number(quantity.bare) else None


def _is_number(text: str) -> bool:
    return not re.search("[A-Za-z]", _COMMAND.sub("", NAMES.sub("", text)))


def _parsed(text: str) -> list[Any]:  # Any: expressions of SymPy
    """Return the meanings of an expected value: a plain number as it stands, anything else as LaTeX."""
    text = _plain_signs(text).strip()
    if not _LATEX.search(text) and not _PLAIN_NUMBER.fullmatch(text):
        # An expression as it is typed, such as 2*sqrt(3), becomes LaTeX.
        text = re.sub(r"\\?\bsqrt\(([^()]*)\)", r"\\sqrt{\1}", text)
        text = re.sub(r"√\(?([^\s()]+)\)?", r"\\sqrt{\1}", text)
        text = re.sub(r"(?<!\\)\b(pi|sin|cos|tan|log|ln|exp|theta|alpha|beta)\b", r"\\\1 ", text)
        text = re.sub(r"(?<!\\)\b(?:infinity|infty|inf|oo)\b", r"\\infty ", text)
        text = re.sub(r"\*\*\s*(?:(-?[\w.]+)|\(([^()]*)\))", r"^{\1\2}", text).replace("*", r"\cdot ")
        text = re.sub(r"^\{(.*)\}$", r"\\{\1\\}", text)
        text = f"${text}$"
    read: list[Any] = parse(text, parsing_timeout=None)
    return read


def _parsed_reply(reply: str) -> list[Any]:
    """Return the values in a reply: in a last line that is an expression alone, as in an expected value."""
    text = _plain_signs(reply)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    last = _LEAD.sub("", lines[-1].strip(" *`")).rstrip(" .") if lines else ""
    if not _LATEX.search(text) and len(last) <= MOST_ALONE:
        if not WORD.search(NAMES.sub("", last)) and (parsed := _parsed(last)):
            return parsed
        if last.startswith("\\") and (parsed := parse(f"${last}$", parsing_timeout=None)):
            return list(parsed)
    read: list[Any] = parse(text, parsing_timeout=None)
    return read


def _plain_signs(text: str) -> str:
    """Return a text whose signs are those of LaTeX: 1½ as 1+1/2, – as -."""
    text = _EXPONENT.sub(r" \\times 10^{\1}", text)

    def fraction(match: re.Match[str]) -> str:
        over, under = unicodedata.normalize("NFKC", match[2]).split("⁄")
        return f"{int(match[1] or 0) * int(under) + int(over)}/{under}"

    return _HALVES.sub(fraction, text).translate(_SIGNS)
