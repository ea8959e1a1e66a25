"""Exact numbers and their text, whatever the ambient decimal context or Python's own limits are.

The second half knows the four representations of NUPA ("Number Cookbook", arXiv 2411.03766): `integer` 123,
`float` 12.5, `fraction` 3/4 and `scientific` 1.25e3, none negative. A number is handled as its `Parts`, the
texts between the separators: exact, and what its length and its digits are counted on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from itertools import zip_longest
from math import gcd
from typing import TypeAlias

MAX_DIGITS = 4300  # of the longest integer that Python's int() and str() convert unless told otherwise

# Wide enough that a sum or difference of two numbers of MAX_DIGITS digits and a few decimals is exact.
EXACT = Context(prec=2 * MAX_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)
_AS_A_RATIO = Context(prec=28, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LARGEST_FLOAT_EXPONENT = 307


def exact(text: str) -> Decimal | None:
    """Return the number that `text` writes, plain or scientific, in any Unicode decimal digits.

    None where its exponent is beyond the limits of Decimal, about 1e18.
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
    """Return error / |expected|: 0 where nothing else was expected, infinite beyond the largest float.

    Divided as binary floats, as the published llm_arithmetic tables are; an expected value that no float
    can hold is divided as a decimal.
    """
    if not expected:
        return 0.0
    if expected.adjusted() > _LARGEST_FLOAT_EXPONENT:
        return float(_AS_A_RATIO.divide(error, expected.copy_abs()))
    return float(error) / abs(float(expected))


def carries(operands: Sequence[str]) -> int:
    """Return how often one carries when adding two whole numbers, none negative, by hand: 999 + 1 has 3.

    Raises:
        ValueError: they are not two, or not digits alone.
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
    written: str  # with %s for each part
    aligned: tuple[str, ...]  # the end from which the digits of each part are counted: left or right


_FLOAT = Form(separators=".", written="%s.%s", aligned=("right", "left"))
FORMS: Mapping[str, Form] = {
    "integer": Form(separators="", written="%s", aligned=("right",)),
    "float": _FLOAT,
    "decimal": _FLOAT,  # the word of `answer_type` for it
    "fraction": Form(separators="/", written="%s/%s", aligned=("right", "right")),
    "scientific": Form(
        separators=".e",
        written="%s.%se%s",
        aligned=("right", "left", "right"),
    ),
}
_WHOLE = {
    name: re.compile(r"(\d+)" + "".join(rf"{re.escape(separator)}(\d+)" for separator in form.separators))
    for name, form in FORMS.items()
}


def parts(text: str, representation: str) -> Parts:
    """Return the parts of a number: of 12.50 ("12", "50"). Zeros stay; a sign is no part of any form.

    Raises:
        ValueError: the text is not of the form.
    """
    match = _WHOLE[representation].fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not written as {representation}")
    return match.groups()


def length_of(number: Parts, representation: str) -> int:
    """Return how long a number is, in digits: of its decimals where it has some, else of its longest part."""
    if representation == "fraction":
        return max(len(number[0]), len(number[1]))
    return len(number[1] if len(number) > 1 else number[0])


def decimal_places(denominator: int) -> int:
    """Return how many decimals a fraction in lowest terms with this denominator has.

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
    """Return the parts of units / 10**places; of a whole number one decimal is kept, which is 0."""
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
        ValueError: it is below 1 and not 0: exponents are never negative.
    """
    if not units:
        return "0", "0", "0"
    digits = str(units)
    exponent = len(digits) - 1 + power
    if exponent < 0:
        raise ValueError(f"{units}e{power} is below 1 and has no exponent without a sign")
    return digits[0], digits[1:].rstrip("0") or "0", str(exponent)
