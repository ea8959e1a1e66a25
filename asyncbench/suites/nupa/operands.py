"""Pairs of operands, drawn as in the paper (A.1.7) and then prepared for their task (section 2).

A pair of length L has a first operand of L digits. The second has from L/2 to L digits, or from 1 to L, as
section 2.2 of the paper says. Then the two may change places.

A task may not ask a pair as it was drawn: a difference, for example, begins with the larger number. So each
task has a function of type `Prepare`. It takes the pair and `choose`, and returns the one or two operands
that are shown. Some functions take the representation first.

`choose(seed, low, high)` returns a whole number from low to high. In the profile `fixed` it is uniform. In
`reference` it depends only on `seed`, which is a part of the second operand. All of this follows the code
published with the paper.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import gcd
from typing import TypeAlias

from asyncbench.suites.numbers import Parts, fraction_parts, integer_parts, length_of, scientific_parts

Pair: TypeAlias = tuple[Parts, Parts]
Below: TypeAlias = Callable[[int], int]  # below(n) draws a whole number from 0 to n - 1
Pool: TypeAlias = Callable[[Below, int], Pair]  # draws a pair of a length

POWERS: Sequence[int] = tuple(10**exponent for exponent in range(102))

_UNSHARED_FLOATS = 3  # of ten pairs of hard floats: their digits are left as they were drawn
_SHARED_EXPONENTS = 8  # of ten pairs of hard scientific numbers: they get the same exponent


def below_of(rng: random.Random) -> Below:
    """Return a function that draws whole numbers below a limit, like `rng.randrange` in half the time."""
    bits = rng.getrandbits

    def below(limit: int) -> int:
        width = limit.bit_length()
        number = bits(width)
        while number >= limit:
            number = bits(width)
        return number

    return below


def integer(below: Below, length: int) -> Parts:
    """Return a whole number of `length` digits; 0 is one of one digit."""
    low = POWERS[length - 1] if length > 1 else 0
    return (str(low + below(POWERS[length] - low)),)


def floating(below: Below, length: int) -> Parts:
    """Return a number with `length` decimals and at most as many digits before them; never below 1."""
    low = POWERS[below(length)]
    return str(low + below(9 * low)), _decimals(below, length)


def fraction(below: Below, length: int) -> Parts:
    """Return a fraction in lowest terms. Its denominator has `length` digits, its numerator no more."""
    low, high = POWERS[length - 1], POWERS[length]
    while True:
        numerator, denominator = below(high), low + below(high - low)
        common = gcd(numerator, denominator)
        if denominator // common >= low:
            return str(numerator // common), str(denominator // common)


def scientific(below: Below, length: int) -> Parts:
    """Return a number with `length` decimals in its mantissa and an exponent from 0 to 99."""
    return str(1 + below(9)), _decimals(below, length), str(below(100))


def _decimals(below: Below, length: int) -> str:
    """Return `length` digits; the last is not 0."""
    others, last = divmod(below(9 * POWERS[length - 1]), 9)
    return str(10 * others + last + 1).rjust(length, "0")


DRAWN: Mapping[str, Callable[[Below, int], Parts]] = {
    "integer": integer,
    "float": floating,
    "fraction": fraction,
    "scientific": scientific,
}


SHORTER: Sequence[str] = ("half", "any")  # the shorter operand has at least half of the digits, or at least 1


def pairs_of(pool: str, representation: str, *, shorter: str = SHORTER[0]) -> Pool:
    """Return a function that draws pairs. Those of `compare_harder` have their first digits in common."""
    draw_number = DRAWN[representation]
    share = _SHARED[representation] if pool == "compare_harder" else None
    same_length = pool == "compare_harder" and representation == "integer"

    def draw(below: Below, length: int) -> Pair:
        shortest = max(length // 2, 1) if shorter == "half" else 1
        if same_length:
            shortest = length
        second = shortest + below(length - shortest + 1)
        left, right = draw_number(below, length), draw_number(below, second)
        if share:
            right = share(below, left, right)
        if second != length and below(2):
            return right, left
        return left, right

    return draw


def _share_integer(below: Below, left: Parts, right: Parts) -> Parts:
    """Return the right number with some of the first digits of the left one."""
    digits = below(len(left[0]))
    return (left[0][:digits] + right[0][digits:],)


def _share_float(below: Below, left: Parts, right: Parts) -> Parts:
    """Return the right number with the whole part and some decimals of the left one, or unchanged."""
    if below(10) < _UNSHARED_FLOATS:
        return right
    digits = below(min(len(left[1]), len(right[1])))
    return left[0], left[1][:digits] + right[1][digits:]


def _share_scientific(below: Below, left: Parts, right: Parts) -> Parts:
    """Return the right number with the exponent of the left one, its first digits, both or neither."""
    mantissa, decimals, exponent = right
    if below(10) < _SHARED_EXPONENTS:
        exponent = left[2]
    digits = below(min(len(left[1]), len(decimals)) + 1) - 1
    if digits < 0:  # no digit of the mantissa is shared
        return mantissa, decimals, exponent
    return left[0], left[1][:digits] + decimals[digits:], exponent


_SHARED: Mapping[str, Callable[[Below, Parts, Parts], Parts]] = {
    "integer": _share_integer,
    "float": _share_float,
    "scientific": _share_scientific,
}


# ── preparation

Choose: TypeAlias = Callable[[str, int, int], int]
Operands: TypeAlias = tuple[Parts, ...]
Prepare: TypeAlias = Callable[[Parts, Parts, Choose], Operands]

EASY_DIGITS = 3  # of the shorter operand of an easy task, at most
_EASY = 10**EASY_DIGITS  # numbers below this have no more digits
_LARGEST_EXPONENT = 99


def uniform(below: Below) -> Choose:
    """Return `choose` of profile `fixed`: uniform, whatever the operands are."""
    return lambda _seed, low, high: low + below(high - low + 1)


def choose_by_operand(seed: str, low: int, high: int) -> int:
    """Choose as profile `reference` does: the first draw of Python's generator, seeded with an operand."""
    return random.Random(int(seed)).randint(low, high)


# ── order


def scale_of(number: Parts, representation: str) -> tuple[int, int]:
    """Return (units, power) with value = units × 10**power. It is not defined for fractions."""
    match number:
        case (mantissa, decimals, exponent):
            return int(mantissa + decimals), int(exponent) - len(decimals)
        case (whole, decimals) if representation == "float":
            return int(whole + decimals), -len(decimals)
    return int(number[0]), 0


def align_scales(left: Parts, right: Parts, representation: str) -> tuple[int, int, int]:
    """Return (units, units, power): both values as whole numbers of the same power of ten."""
    a, power_a = scale_of(left, representation)
    b, power_b = scale_of(right, representation)
    power = min(power_a, power_b)
    return a * 10 ** (power_a - power), b * 10 ** (power_b - power), power


def is_less(left: Parts, right: Parts, representation: str) -> bool:
    """Return whether the left number is less than the right one."""
    match representation:
        case "fraction":
            return int(left[0]) * int(right[1]) < int(right[0]) * int(left[1])
        case "integer":
            return (len(left[0]), left[0]) < (len(right[0]), right[0])
        case "float":  # decimals are compared as texts: 0.5 comes after 0.4999
            return (len(left[0]), *left) < (len(right[0]), *right)
    # Canonical scientific numbers: 0 comes first, then the exponent decides, then the mantissa.
    a, b = ((number[0] != "0", int(number[2]), *number[:2]) for number in (left, right))
    return a < b


def _larger_first(a: Parts, b: Parts, representation: str) -> Pair:
    return (b, a) if is_less(a, b, representation) else (a, b)


def _longer_first(a: Parts, b: Parts, representation: str) -> Pair:
    return (b, a) if length_of(b, representation) > length_of(a, representation) else (a, b)


# ── two operands


def unchanged(a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Ask the pair as it was drawn."""
    return a, b


def add_scientific(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Bring the second exponent within 5 of the first, so that the sum is not just the larger one."""
    distance = choose(b[0], -5, 5)
    exponent = min(int(a[2]), _LARGEST_EXPONENT - 1)
    second = min(max(exponent + distance, 0), _LARGEST_EXPONENT - 1)
    return (a[0], a[1], str(exponent)), (b[0], b[1], str(second))


def larger_first(representation: str, a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Ask the larger number first, so that no difference is negative."""
    return _larger_first(a, b, representation)


def sub_scientific(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Bring the second exponent 1 to 5 below the first, and raise a difference of at most 1."""
    a, b = _larger_first(a, b, "scientific")
    exponent = max(int(a[2]), 1)
    second = min(max(exponent + choose(b[0], -5, -1), 0), _LARGEST_EXPONENT)
    a, b = (a[0], a[1], str(exponent)), (b[0], b[1], str(second))

    # A difference below 1 could not be written, as exponents are never negative: add 1 to the larger number.
    left, right, power = align_scales(a, b, "scientific")
    unit = 10**-power if power < 0 else 0  # the number 1; 0: the numbers are whole
    if left - right <= unit:
        return scientific_parts(left + unit, power), b
    return a, b


def add_easy_fraction(a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Cut the parts of the shorter fraction down to their last three digits."""
    if length_of(a, "fraction") > length_of(b, "fraction"):
        return a, _cut_fraction(b, 10 ** min(length_of(b, "fraction"), EASY_DIGITS))
    return _cut_fraction(a, 10 ** min(length_of(a, "fraction"), EASY_DIGITS)), b


def _cut_fraction(number: Parts, modulus: int) -> Parts:
    return fraction_parts(int(number[0]) % modulus, int(number[1]) % modulus or 1)


def proper_fractions(a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Turn fractions above 1 upside down."""
    a, b = (number[::-1] if int(number[0]) > int(number[1]) else number for number in (a, b))
    return a, b


def multiply_easy(representation: str, a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Ask the longer number first, and cut the other one down to three digits."""
    a, b = _longer_first(a, b, representation)
    return a, _CUTS[representation](b) if length_of(b, representation) > EASY_DIGITS else b


_CUTS: dict[str, Callable[[Parts], Parts]] = {
    "integer": lambda b: integer_parts(int(b[0]) % _EASY),
    "float": lambda b: (str(int(b[0]) % _EASY), b[1][:EASY_DIGITS].rstrip("0") or "0"),
    "fraction": lambda b: _cut_fraction(b, _EASY),
    "scientific": lambda b: (b[0], b[1][:EASY_DIGITS].rstrip("0") or "0", b[2]),
}


def divide(a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Keep the order, and replace a divisor of 0 by 1."""
    return a, b if b[0] != "0" else ("1", *b[1:])


def divide_whole(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Divide the larger number by the other."""
    return divide(*_larger_first(a, b, "integer"), choose)


def mod(a: Parts, b: Parts, _choose: Choose, *, most_digits: int | None = None) -> Operands:
    """Ask the larger number first, and cut a long divisor to its last digits.

    It keeps at most `most_digits`. None stands for 7/10 of the digits of the larger number, and one more.
    """
    a, b = _larger_first(a, b, "integer")
    digits = most_digits or 7 * len(a[0]) // 10 + 1
    if len(b[0]) > digits:
        b = integer_parts(int(b[0]) % 10**digits)
    return a, b if b[0] != "0" else ("1",)


mod_easy = partial(mod, most_digits=EASY_DIGITS)


# ── one operand, sometimes with a small whole number


def longer_alone(representation: str, a: Parts, b: Parts, _choose: Choose) -> Operands:
    """Ask the longer number alone."""
    return _longer_first(a, b, representation)[:1]


def get_digit(representation: str, a: Parts, b: Parts, choose: Choose) -> Operands:
    """Ask for the digit at a position of the longer number."""
    a, b = _longer_first(a, b, representation)
    return a, integer_parts(choose(b[0], 0, sum(map(len, a)) - 1))


def count(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Ask how often one of the ten digits is in the longer number."""
    a, b = _longer_first(a, b, "integer")
    return a, integer_parts(choose(b[0], 0, 9))


def finite_fraction(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Put the larger part of the longer number over a product of twos and fives, so that its decimals end."""
    longest = max(length_of(a, "fraction"), length_of(b, "fraction"))
    a, b = _longer_first(a, b, "fraction")
    denominator = 2 ** choose(b[0], 0, longest) * 5 ** choose(b[1], 0, longest)
    return (fraction_parts(max(map(int, a)), denominator),)


def short_exponent(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Lower the exponent of the longer number to its number of decimals or less: its float adds no zeros."""
    a, b = _longer_first(a, b, "scientific")
    return ((a[0], a[1], str(choose(b[0], 0, min(int(a[2]), len(a[1]))))),)


def zeros_at_the_end(a: Parts, b: Parts, choose: Choose) -> Operands:
    """Set up to half of the digits at the end of the longer number to zero."""
    a, b = _longer_first(a, b, "integer")
    zeros = choose(b[0], 0, len(a[0]) // 2)
    return ((a[0][: len(a[0]) - zeros] + "0" * zeros,),)


def significant(representation: str, a: Parts, b: Parts, choose: Choose) -> Operands:
    """Ask for the longer number with 2 or more significant digits, up to all that it has."""
    a, b = _longer_first(a, b, representation)
    digits = "".join(a)
    available = len(digits if representation == "integer" else digits.strip("0"))
    return a, integer_parts(choose(b[0], 2, available))


def significant_without_ties(representation: str, a: Parts, b: Parts, choose: Choose) -> Operands:
    """Do as `significant` does, but never cut off exactly one half: no rule for that is published."""
    while True:
        number, kept = significant(representation, a, b, choose)
        if not is_half("".join(number)[int(kept[0]) :]):
            return number, kept


def is_half(dropped: str) -> bool:
    """Return whether digits that are cut off are exactly one half of the last digit kept: 5, 50, 500."""
    return dropped[:1] == "5" and not dropped[1:].strip("0")
