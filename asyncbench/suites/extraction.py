"""Reading a number out of a reply, in the three ways of llm_arithmetic: linear time, exact, versioned.

`layered_number` reads nearly any way of writing an answer, `trailing_number` a number that ends the reply,
`bare_number` a reply that is a number and nothing else. What they read is fixed by the published results;
one that reads anything else is a new version of its grader. A digit is any Unicode decimal digit.

Every pattern here looks at a character a bounded number of times: a reply may be hostile.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from asyncbench.suites.numbers import exact

_BARE = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_TRAILING_REVERSED = re.compile(r"(?:\d*+\.(?=\d))?\d++-?")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")

_THINK = re.compile(r"<think>", re.IGNORECASE)
_THINK_END = re.compile(r"</think>", re.IGNORECASE)
_BOX_OR_BRACE = re.compile(r"\\boxed|[{}]")
_BRACE = re.compile(r"[{}]")
_FRACTION = re.compile(r"\\[dt]?frac\s*")

_TIMES_COMMAND = re.compile(r"\\(?:times|cdot|ast)\b")
_TIMES_TEN = r"(\d)\s*[×xX✕✖·•*]\s*10\s*"
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_TO_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPT_POWER = re.compile(f"{_TIMES_TEN}({_SUPERSCRIPTS.pattern})")
_CARET_POWER = re.compile(rf"{_TIMES_TEN}\^\s*([+-]?\d+)")
_MATH_DELIMITER = re.compile(r"\\[()\[\]]")
_UNCERTAINTY = re.compile(r"(?<=\d)\(\d+\)")
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def bare_number(text: str) -> Decimal | None:
    """Return the number that the trimmed text is and nothing else; None when it is anything else.

    An optional + or -, ASCII digits, optionally a dot and ASCII digits: no exponent, no grouping, and
    digits on both sides of the dot.
    """
    match = _BARE.fullmatch(text.strip())
    return exact(match[0]) if match else None


def trailing_number(text: str) -> Decimal | None:
    """Return the number that ends the trimmed text: optional -, digits, optionally a dot and digits.

    It starts as far left as it can: `1.234.567` reads 234.567, `12,345` reads 345, `5-3` reads -3.
    """
    # Read backwards, because a search from the left tries every digit of every run as a beginning.
    match = _TRAILING_REVERSED.match(text.rstrip()[::-1])
    return exact(match[0][::-1]) if match else None


def layered_number(text: str) -> Decimal | None:
    """Return the first number in the last \\boxed{...}, or else the last number of the text.

    `text` is a reply `without_thinking`. Fractions outside a box are not numbers; a number whose exponent
    is beyond the Decimal limits gives way to the next.
    """
    box = last_box(text)
    if box is not None and (value := _first_exact(_numbers(box))) is not None:
        return value
    return _first_exact(reversed(_numbers(without_fractions(text))))


def without_thinking(text: str) -> tuple[str, bool]:
    """Return the text without its <think>...</think> blocks, and whether one of them had no end.

    What stood on either side of a block is joined; a block without an end goes on to the end of the text.
    """
    if "<" not in text:
        return text, False
    kept, at = [], 0
    while (start := _THINK.search(text, at)) and (end := _THINK_END.search(text, start.end())):
        kept.append(text[at : start.start()])
        at = end.end()
    joined = "".join(kept) + text[at:]
    unclosed = _THINK.search(joined)
    return (joined[: unclosed.start()], True) if unclosed else (joined, False)


def last_box(text: str) -> str | None:
    """Return what stands in the braces that follow the last \\boxed; boxes without such a pair do not count.

    They need not follow at once. Of nested boxes, the inner one is the last.
    """
    if "\\boxed" not in text:
        return None
    open_braces: list[tuple[int, bool]] = []  # where, and whether it is the first after a \boxed
    awaited, start, end = False, -1, -1
    for token in _BOX_OR_BRACE.finditer(text):
        if token[0] == "{":
            open_braces.append((token.end(), awaited))
            awaited = False
        elif token[0] != "}":
            awaited = True
        elif open_braces:
            opened, boxed = open_braces.pop()
            if boxed and opened > start:
                start, end = opened, token.start()
    return text[start:end] if end >= 0 else None


def without_fractions(text: str) -> str:
    """Return the text with a space for each \\frac, \\dfrac or \\tfrac and its two adjacent brace groups."""
    if "frac" not in text:
        return text
    closing = dict(_brace_pairs(text))
    kept, at = [], 0
    for command in _FRACTION.finditer(text):
        middle = closing.get(command.end(), -1)
        end = closing.get(middle + 1, -1)
        if middle > 0 and end > 0 and command.start() >= at:
            kept.append(text[at : command.start()])
            at = end + 1
    return " ".join([*kept, text[at:]])


def _brace_pairs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each { stands and the } that matches it."""
    opened = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            yield opened.pop(), brace.start()


def _first_exact(numbers: Iterable[str]) -> Decimal | None:
    return next((value for number in numbers if (value := exact(number)) is not None), None)


def _numbers(text: str) -> list[str]:
    """Return every number of the text, left to right, after the ways of writing one are made plain.

    Their order is a part of what is read: what one of them joins or parts, the next one sees.
    """
    for plainer in (_latex, _powers_of_ten, _decoration, _grouping):
        text = plainer(text)
    return _NUMBER.findall(text)


def _latex(text: str) -> str:
    """Drop LaTeX's thin spaces, unwrap its decimal comma, write × for its signs of multiplication."""
    text = text.replace("\\,", "").replace("\\!", "").replace("{,}", ",")
    return _TIMES_COMMAND.sub("×", text) if "\\" in text else text


def _powers_of_ten(text: str) -> str:
    """Write `3.41×10¹⁷` and `3.41 × 10^17` as `3.41e17`, then the superscripts that remain as digits."""
    raised = not text.isascii() and _SUPERSCRIPTS.search(text)
    if raised:
        text = _SUPERSCRIPT_POWER.sub(lambda power: f"{power[1]}e{power[2].translate(_TO_PLAIN)}", text)
    if "^" in text:
        text = _CARET_POWER.sub(r"\1e\2", text)
    return _SUPERSCRIPTS.sub(lambda run: run[0].translate(_TO_PLAIN), text) if raised else text


def _decoration(text: str) -> str:
    """Drop what Markdown and money put beside a number, so that neighbours join: `-$5` is -5."""
    text = text.replace("*", "").replace("`", "").replace("$", "")
    return _MATH_DELIMITER.sub(" ", text) if "\\" in text else text


def _grouping(text: str) -> str:
    """Drop the uncertainty of `12.5(4)` and the commas of `1,234,567`."""
    if "(" in text:
        text = _UNCERTAINTY.sub("", text)
    return _THOUSANDS_COMMA.sub("", text) if "," in text else text
