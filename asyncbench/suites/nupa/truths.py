"""The right answers, exact, as the parts of a number, for the prepared operands.

Sums, differences, products and extremes take the representation of the operands first.
"""

from collections.abc import Callable
from functools import partial
from math import gcd
from operator import add, sub
from typing import TypeAlias

from asyncbench.suites.numbers import (
    Parts,
    decimal_places,
    float_parts,
    fraction_parts,
    integer_parts,
    scientific_parts,
)
from asyncbench.suites.nupa.operands import Operands, align_scales, is_less, scale_of

Truth: TypeAlias = Callable[[Operands], Parts]


def _scaled(units: int, power: int, representation: str) -> Parts:
    match representation:
        case "float":
            return float_parts(units, -power)
        case "scientific":
            return scientific_parts(units, power)
    return integer_parts(units)


def _sum_or_difference(combine: Callable[[int, int], int], representation: str, operands: Operands) -> Parts:
    if representation == "fraction":
        (a, b), (c, d) = (map(int, number) for number in operands)
        return fraction_parts(combine(a * d, c * b), b * d)
    left, right, power = align_scales(operands[0], operands[1], representation)
    return _scaled(combine(left, right), power, representation)


total = partial(_sum_or_difference, add)
difference = partial(_sum_or_difference, sub)


def product(representation: str, operands: Operands) -> Parts:
    """a × b."""
    if representation == "fraction":
        (a, b), (c, d) = (map(int, number) for number in operands)
        return fraction_parts(a * c, b * d)
    (a, power_a), (b, power_b) = (scale_of(number, representation) for number in operands)
    return _scaled(a * b, power_a + power_b, representation)


def larger(representation: str, operands: Operands) -> Parts:
    """Return the larger operand."""
    left, right = operands
    return right if is_less(left, right, representation) else left


def smaller(representation: str, operands: Operands) -> Parts:
    """Return the smaller operand."""
    left, right = operands
    return right if is_less(right, left, representation) else left


def fraction_of_integers(operands: Operands) -> Parts:
    """a / b of whole numbers."""
    return fraction_parts(int(operands[0][0]), int(operands[1][0]))


def fraction_of_fractions(operands: Operands) -> Parts:
    """a / b of fractions."""
    (a, b), (c, d) = (map(int, number) for number in operands)
    return fraction_parts(a * d, b * c)


def quotient(operands: Operands) -> Parts:
    """a / b, rounded down."""
    return integer_parts(int(operands[0][0]) // int(operands[1][0]))


def remainder(operands: Operands) -> Parts:
    """Return the remainder of a divided by b."""
    return integer_parts(int(operands[0][0]) % int(operands[1][0]))


# ── digit by digit


def digit_wise(combine: Callable[[int, int], int]) -> Truth:
    """Combine the digits at each place, missing ones being 0; outer zeros of the result vanish."""
    table = {(str(a), str(b)): str(combine(a, b)) for a in range(10) for b in range(10)}
    combined = table.__getitem__

    def truth(operands: Operands) -> Parts:
        (whole_a, *decimals_a), (whole_b, *decimals_b) = operands
        length = max(len(whole_a), len(whole_b))
        digits = map(combined, zip(whole_a.rjust(length, "0"), whole_b.rjust(length, "0"), strict=True))
        whole = "".join(digits).lstrip("0") or "0"
        if not decimals_a:
            return (whole,)
        (a,), (b,) = decimals_a, decimals_b
        length = max(len(a), len(b))
        digits = map(combined, zip(a.ljust(length, "0"), b.ljust(length, "0"), strict=True))
        return whole, "".join(digits).rstrip("0") or "0"

    return truth


digit_larger: Truth = digit_wise(max)
digit_smaller: Truth = digit_wise(min)
digit_sum: Truth = digit_wise(lambda a, b: (a + b) % 10)  # without its tens


def digit_at(operands: Operands) -> Parts:
    """Return the digit at a place, from the left and from 0 on; a point does not count."""
    return ("".join(operands[0])[int(operands[1][0])],)


def number_of_digits(operands: Operands) -> Parts:
    """Return the number of digits; a point is none."""
    return integer_parts(sum(map(len, operands[0])))


def occurrences(operands: Operands) -> Parts:
    """Return how often a digit stands in a number."""
    return integer_parts(operands[0][0].count(operands[1][0]))


# ── the same value in another form


def float_of_fraction(operands: Operands) -> Parts:
    """Return a fraction, whose decimals end, as a float."""
    numerator, denominator = map(int, operands[0])
    denominator //= (common := gcd(numerator, denominator))
    places = decimal_places(denominator)
    return float_parts(numerator // common * (10**places // denominator), places)


def float_of_scientific(operands: Operands) -> Parts:
    """Return a scientific number as a float: the point moves to the right."""
    mantissa, decimals, exponent = operands[0]
    moved = int(exponent)
    whole = (mantissa + decimals[:moved].ljust(moved, "0")).lstrip("0") or "0"
    return whole, decimals[moved:] or "0"


def scientific_of_decimal(operands: Operands) -> Parts:
    """Return a whole number, or a float not below 1, as a scientific number: the point moves to the left."""
    return scientific_parts(int("".join(operands[0])), -sum(map(len, operands[0][1:])))


def rounded(operands: Operands) -> Parts:
    """Return a number with so many significant digits, half to even; zeros at the end are kept."""
    whole, places = _units(operands[0])
    kept = int(operands[1][0])
    units, cut = int(whole), len(whole) - kept
    if cut > 0:
        step = 10**cut
        units, rest = divmod(units, step)
        units += 2 * rest > step or (2 * rest == step and units % 2)
    written = str(units).ljust(kept, "0")
    exponent = len(whole) - 1 - places + (len(written) - kept if cut > 0 else 0)
    return written[0], written[1:kept] or "0", str(exponent)


def rounded_as_published(operands: Operands) -> Parts:
    """As `rounded`, with the errors of the published answers (quirk Q1): about one in ten is wrong.

    A 5 is cut off, never rounded up; a carry to a new digit, or zeros alone, bring a zero too many.
    """
    s, places = _units(operands[0])
    if len(operands[0]) == 1:
        s, places = s + "0", 1
    kept = int(operands[1][0])
    first = s[:kept]
    if s[kept : kept + 1] in set("6789"):
        first = str(int(first) + 1)
    zeros = len(first) - len(first.rstrip("0"))
    exponent = len(s) - 1 - places
    return first[0], (first[1:].rstrip("0") or "0") + "0" * zeros, str(exponent)


def _units(number: Parts) -> tuple[str, int]:
    """Return the digits of a number without zeros before them, and how many of them are decimals."""
    return "".join(number).lstrip("0") or "0", len(number[1]) if len(number) > 1 else 0
