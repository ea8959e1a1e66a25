"""Exact decimal numbers and their text, whatever the ambient decimal context or Python's own limits are."""

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from itertools import zip_longest

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
    carry = found = 0
    for digits in zip_longest(reversed(left), reversed(right), fillvalue="0"):
        carry = sum(map(int, digits)) + carry >= 10
        found += carry
    return found
