"""Numbers in another form: rewritten in a question, and brought back to plain digits in a reply.

    reversed       1205.25  →  5021.52          each run of digits backwards
    zero_padded    7 + 1205 →  0007 + 1205      as many digits before the point as the longest number has
    spaced         1205.25  →  1 2 0 5.2 5
    grouped        1205.25  →  1,205.25
    indexed        1205.25  →  d1c2b0a5.a2b5    the same letter at the same place of every number

Signs, points, slashes and the e of an exponent stay where they are. Both directions are exact and linear.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

# In the order in which they are applied; they are taken back from the last one on.
DIGIT_FORMS: Final = ("zero_padded", "reversed", "grouped", "spaced", "indexed")
EXCLUSIVE: Final = frozenset({"grouped", "spaced", "indexed"})  # no two of them go together
MOST_GROWTH: Final = 3  # of a text, in characters: a letter and a digit for a digit; padding adds few

# No letter e: it stands before exponents. From the decimal point outwards, on both sides of it.
_LETTERS: Final = "abcdfghijklmnopqrstuvwxyz"

_NUMBER = re.compile(
    r"(?<!\w)(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]++)?(?:\.[0-9]++)?(?:(?<=[0-9])[eE][+-]?[0-9]++)?"
    r"(?:(?<=[0-9])/[0-9]++)?"
)
_DECIMALS = r"(?<=\.)[0-9]++"
_EXPONENT = r"(?:(?<=[0-9][eE])|(?<=[0-9][eE][+-]))[0-9]++"
_RUN = re.compile(rf"(?P<decimals>{_DECIMALS})|(?P<exponent>{_EXPONENT})|(?P<whole>[0-9]++)")

_GROUPED = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")
_SPACED = re.compile(r"(?<![0-9])[0-9](?: [0-9](?![0-9]))++")
_INDEXED = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=[0-9][eE]))(?:[{_LETTERS}]++[0-9])++")
_NO_DIGIT = re.compile(r"[^0-9]")


def rewritten(text: str, digits: Sequence[str], numbers: Collection[str] = ()) -> str:
    """Return a text with its numbers in other forms.

    Args:
        text: a question, or an answer.
        digits: some of `DIGIT_FORMS`, in their order.
        numbers: the operands: of the numbers in the text only these are rewritten. If none of them is in
            it, or none is given, all are.
    """
    if not digits:
        return text
    numerals = {number[0] for number in _NUMBER.finditer(text) if number[0]}
    chosen = numerals.intersection(number.lstrip("+-") for number in numbers) or numerals
    runs = (run for number in chosen for run in _RUN.finditer(number.replace(",", "")))
    width = max((len(run["whole"]) for run in runs if run["whole"]), default=0)

    def written(number: re.Match[str]) -> str:
        if number[0] not in chosen:
            return number[0]
        return _RUN.sub(lambda run: _run_as(run, digits, width), number[0].replace(",", ""))

    return _NUMBER.sub(written, text)


def plain(text: str, digits: Sequence[str]) -> str:
    """Return a reply with its numbers in plain digits: the work of `rewritten` is taken back."""
    for form in reversed(digits):
        text = _TAKEN_BACK[form](text)
    return text


def _run_as(run: re.Match[str], digits: Sequence[str], width: int) -> str:
    """Return a run of digits in other forms."""
    text, whole, decimals = run[0], bool(run["whole"]), bool(run["decimals"])
    if "zero_padded" in digits and whole:
        text = text.rjust(width, "0")
    if "reversed" in digits:
        text = text[::-1]
    if "grouped" in digits and whole:
        starts = range(len(text) % 3 or 3, len(text) + 1, 3)
        return ",".join([text[: starts[0]], *(text[start : start + 3] for start in starts[:-1])])
    if "spaced" in digits:
        return " ".join(text)
    if "indexed" in digits:
        places = range(len(text)) if decimals else range(len(text) - 1, -1, -1)
        return "".join(_letters(place) + digit for place, digit in zip(places, text, strict=True))
    return text


def _letters(place: int) -> str:
    """Return the letters of a place, from 0 on: a to z, then aa, ab and so on."""
    more, letter = divmod(place, len(_LETTERS))
    return (_letters(more - 1) if more else "") + _LETTERS[letter]


def _without_padding(run: re.Match[str]) -> str:
    return run[0] if run["whole"] is None else run[0].lstrip("0") or "0"


_TAKEN_BACK: Mapping[str, Callable[[str], str]] = {
    "zero_padded": lambda text: _RUN.sub(_without_padding, text),
    "reversed": lambda text: _RUN.sub(lambda run: run[0][::-1], text),
    "grouped": lambda text: _GROUPED.sub(lambda number: number[0].replace(",", ""), text),
    "spaced": lambda text: _SPACED.sub(lambda number: number[0].replace(" ", ""), text),
    "indexed": lambda text: _INDEXED.sub(lambda number: _NO_DIGIT.sub("", number[0]), text),
}
