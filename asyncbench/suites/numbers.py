"""Exact numbers and their texts, independent of the current decimal context and of Python's own limits.

The second section has the four representations of NUPA ("Number Cookbook", arXiv 2411.03766): `integer` 123,
`float` 12.5, `fraction` 3/4 and `scientific` 1.25e3, none negative. There a number is a tuple of `Parts`, the
texts between its separators: they are exact, and its length and digits are counted on them. The third section
writes the digits of numbers in other forms.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from functools import partial
from itertools import zip_longest
from math import gcd
from typing import Final, TypeAlias

MAX_DIGITS = 4300  # of the longest integer that int() and str() convert by default

# Wide enough that a sum or difference of two numbers of MAX_DIGITS digits and a few decimals is exact.
EXACT = Context(prec=2 * MAX_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)
_AS_A_RATIO = Context(prec=28, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LARGEST_FLOAT_EXPONENT = 307  # with any digits: some numbers of exponent 308 are too large


def exact(text: str) -> Decimal | None:
    """Return the number in a text, plain or scientific, in any Unicode decimal digits.

    None means that its exponent is beyond the limits of Decimal, about 1e18.
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def fixed(value: int, places: int) -> str:
    """Return value / 10**places as text with exactly `places` decimals: fixed(-7251, 2) is -72.51."""
    if not places:
        return str(value)
    digits = f"{abs(value):0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def relative_error(error: Decimal, expected: Decimal) -> float:
    """Return error / |expected|: 0 where 0 was expected, infinite beyond the largest float.

    The division is of binary floats, as in the published llm_arithmetic tables. Where the expected value is
    too large for a float, it is of decimals.
    """
    if not expected:
        return 0.0
    if expected.adjusted() > _LARGEST_FLOAT_EXPONENT:
        return float(_AS_A_RATIO.divide(error, expected.copy_abs()))
    return float(error) / abs(float(expected))


def carries(operands: Sequence[str]) -> int:
    """Return the number of carries when two whole numbers, none negative, are added by hand: 999 + 1 has 3.

    Raises:
        ValueError: there are not two operands, or one has other characters than digits.
    """
    left, right = operands
    carry = count = 0
    for digits in zip_longest(reversed(left), reversed(right), fillvalue="0"):
        carry = sum(map(int, digits)) + carry >= 10
        count += carry
    return count


# ── representations

Parts: TypeAlias = tuple[str, ...]  # of 1.25e3: ("1", "25", "3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The way of writing the numbers of a representation."""

    separators: str  # between its parts, one character each
    written: str  # a template with %s for each part
    aligned: tuple[str, ...]  # for each part, the end from which its digits are counted: left or right


_FLOAT = Form(separators=".", written="%s.%s", aligned=("right", "left"))
FORMS: Mapping[str, Form] = {
    "integer": Form(separators="", written="%s", aligned=("right",)),
    "float": _FLOAT,
    "decimal": _FLOAT,  # as `answer_type` calls it
    "fraction": Form(separators="/", written="%s/%s", aligned=("right", "right")),
    "scientific": Form(
        separators=".e",
        written="%s.%se%s",
        aligned=("right", "left", "right"),
    ),
}
_PATTERNS = {
    name: re.compile(r"(\d+)" + "".join(rf"{re.escape(separator)}(\d+)" for separator in form.separators))
    for name, form in FORMS.items()
}


def parts(text: str, representation: str) -> Parts:
    """Return the parts of a number: ("12", "50") for 12.50. Zeros stay, and no form has a sign.

    Raises:
        ValueError: the text is not written in this representation.
    """
    match = _PATTERNS[representation].fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not written as {representation}")
    return match.groups()


def length_of(number: Parts, representation: str) -> int:
    """Return the length of a number in digits.

    It is that of the decimals, of the whole number, or of the longer part of a fraction.
    """
    if representation == "fraction":
        return max(len(number[0]), len(number[1]))
    return len(number[1] if len(number) > 1 else number[0])


def decimal_places(denominator: int) -> int:
    """Return the number of decimals of a fraction in lowest terms with this denominator.

    Raises:
        ValueError: its decimals never end.
    """
    twos = (denominator & -denominator).bit_length() - 1
    fives, rest = 0, denominator >> twos
    while not rest % 5:
        fives, rest = fives + 1, rest // 5
    if rest != 1:
        raise ValueError(f"the decimals of a fraction with the denominator {denominator} never end")
    return max(twos, fives)


def integer_parts(number: int) -> Parts:
    """Return the parts of a whole number."""
    return (str(number),)


def float_parts(units: int, places: int) -> Parts:
    """Return the parts of units / 10**places, without zeros at the end. A whole number has the decimal 0."""
    digits = str(units).rjust(places + 1, "0")
    cut = len(digits) - places
    return digits[:cut], digits[cut:].rstrip("0") or "0"


def fraction_parts(numerator: int, denominator: int) -> Parts:
    """Return the parts of a fraction in lowest terms; the denominator is not 0."""
    common = gcd(numerator, denominator)
    return str(numerator // common), str(denominator // common)


def scientific_parts(units: int, power: int) -> Parts:
    """Return the parts of units × 10**power.

    Raises:
        ValueError: it is between 0 and 1, so its exponent would be negative.
    """
    if not units:
        return "0", "0", "0"
    digits = str(units)
    exponent = len(digits) - 1 + power
    if exponent < 0:
        raise ValueError(f"{units}e{power} is below 1 and has no exponent without a sign")
    return digits[0], digits[1:].rstrip("0") or "0", str(exponent)


# ── numbers in another form: rewritten in a question, and brought back to plain digits in a reply
#
#    reversed       1205.25  →  5021.52          each run of digits backwards
#    reversed_int   1205.25  →  5021.25          only the run before the point
#    reversed_dec   1205.25  →  1205.52          only the run behind it
#    reversed_total 1205.25  →  52.5021          the number as a whole
#    zero_padded    7 + 1205 →  0007 + 1205      as many digits before the point as the longest number has
#    spaced         1205.25  →  1 2 0 5.2 5
#    grouped        1205.25  →  1,205.25
#    indexed        1205.25  →  d1c2b0a5.a2b5    the same letter at the same place of every number
#
# Signs, points, slashes and the e of an exponent stay where they are. Both directions are exact, and take
# time linear in the length of the text.

# Forms are applied in the order of `DIGIT_FORMS`, and undone in the opposite order.
REVERSED: Final = ("reversed", "reversed_int", "reversed_dec", "reversed_total")
DIGIT_FORMS: Final = ("zero_padded", *REVERSED, "grouped", "spaced", "indexed")
EXCLUSIVE: Final = (  # of each group only one form can be chosen
    frozenset({"grouped", "spaced", "indexed"}),
    frozenset(REVERSED),
)
MOST_GROWTH: Final = 3  # times the characters of a text: one or two letters for a digit; padding adds few

# The letters of `indexed` count places outwards from the decimal point. There is no e: it marks exponents.
_LETTERS: Final = "abcdfghijklmnopqrstuvwxyz"

# A numeral: digits, perhaps in groups of three; decimals; an exponent; the denominator of a fraction.
_NUMERAL = re.compile(
    r"(?<!\w)(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]++)?(?:\.[0-9]++)?(?:(?<=[0-9])[eE][+-]?[0-9]++)?"
    r"(?:(?<=[0-9])/[0-9]++)?"
)

# A run of digits in a numeral: its decimals, its exponent, or a whole number.
_DECIMALS = r"(?<=\.)[0-9]++"
_EXPONENT = r"(?:(?<=[0-9][eE])|(?<=[0-9][eE][+-]))[0-9]++"
_RUN = re.compile(rf"(?P<decimals>{_DECIMALS})|(?P<exponent>{_EXPONENT})|(?P<whole>[0-9]++)")

# Numbers in a reply that are still in a form.
_GROUPED = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")
_SPACED = re.compile(r"(?<![0-9])[0-9](?: [0-9](?![0-9]))++")
_INDEXED = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=[0-9][eE]))(?:[{_LETTERS}]++[0-9])++")

_POINT = re.compile(r"([0-9]++)\.([0-9]++)")
_NO_DIGIT = re.compile(r"[^0-9]")


def rewritten(text: str, digits: Sequence[str], numbers: Collection[str] = ()) -> str:
    """Return a text with its numbers in other forms.

    Args:
        text: a question, or an answer.
        digits: the forms, some of `DIGIT_FORMS` in that order.
        numbers: the operands. Only these are rewritten, but all numbers if the text has none of them.
    """
    if not digits:
        return text

    # Which numbers are rewritten, and how many digits the longest of them has.
    numerals = {number[0] for number in _NUMERAL.finditer(text) if number[0]}
    chosen = numerals.intersection(number.lstrip("+-") for number in numbers) or numerals
    runs = (run for number in chosen for run in _RUN.finditer(number.replace(",", "")))
    width = max((len(run["whole"]) for run in runs if run["whole"]), default=0)

    def rewrite(number: re.Match[str]) -> str:
        if number[0] not in chosen:
            return number[0]
        text = number[0].replace(",", "")
        if "zero_padded" in digits:
            text = _RUN.sub(lambda run: run[0].rjust(width, "0") if run["whole"] else run[0], text)
        for form in REVERSED:
            text = _reversed(text, form) if form in digits else text
        return _RUN.sub(lambda run: _run_as(run, digits), text)

    return _NUMERAL.sub(rewrite, text)


def plain(text: str, digits: Sequence[str]) -> str:
    """Return a reply with its numbers in plain digits again: the opposite of `rewritten`."""
    for form in reversed(digits):
        text = _UNDO[form](text)
    return text


def _reversed(text: str, form: str) -> str:
    """Return a text with runs of digits backwards. A second time restores the text."""
    if form == "reversed_total":
        return _POINT.sub(r"\2.\1", _reversed(text, "reversed"))
    group = {"reversed_int": "whole", "reversed_dec": "decimals"}.get(form, 0)  # 0: any run
    return _RUN.sub(lambda run: run[0][::-1] if run[group] else run[0], text)


def _run_as(run: re.Match[str], digits: Sequence[str]) -> str:
    """Return a run of digits as `grouped`, `spaced` or `indexed` writes it."""
    text, whole, decimals = run[0], bool(run["whole"]), bool(run["decimals"])
    if "grouped" in digits and whole:
        starts = range(len(text) % 3 or 3, len(text) + 1, 3)
        return ",".join([text[: starts[0]], *(text[start : start + 3] for start in starts[:-1])])
    if "spaced" in digits:
        return " ".join(text)
    if "indexed" in digits:
        places = range(len(text)) if decimals else range(len(text) - 1, -1, -1)
        return "".join(_letters(index) + digit for index, digit in zip(places, text, strict=True))
    return text


def _letters(index: int) -> str:
    """Return the letters of a place: a, b and so on for 0, 1, …; after z come aa, ab and so on."""
    more, letter = divmod(index, len(_LETTERS))
    return (_letters(more - 1) if more else "") + _LETTERS[letter]


_UNDO: Mapping[str, Callable[[str], str]] = {
    "zero_padded": lambda text: _RUN.sub(
        lambda run: run[0] if run["whole"] is None else run[0].lstrip("0") or "0", text
    ),
    **{form: partial(_reversed, form=form) for form in REVERSED},
    "grouped": lambda text: _GROUPED.sub(lambda number: number[0].replace(",", ""), text),
    "spaced": lambda text: _SPACED.sub(lambda number: number[0].replace(" ", ""), text),
    "indexed": lambda text: _INDEXED.sub(lambda number: _NO_DIGIT.sub("", number[0]), text),
}
