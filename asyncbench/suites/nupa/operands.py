"""Pairs of operands as the paper draws them (A.1.7), and the wholly random ones that preparation needs.

A pair of length L: the first has L digits, the second from half of that to L, or from 1 to L, as section 2.2
of the paper has it. Then the two may change places.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import TypeAlias

from asyncbench.suites.numbers import Parts

Pair: TypeAlias = tuple[Parts, Parts]
Below: TypeAlias = Callable[[int], int]  # of n: a whole number from 0 to n - 1, uniform
Pool: TypeAlias = Callable[[Below, int], Pair]

POWERS: Sequence[int] = tuple(10**exponent for exponent in range(102))

_SHARED_WHOLE = 3  # in ten: pairs of hard floats that share nothing
_SHARED_EXPONENT = 8  # in ten: pairs of hard scientific numbers that share the exponent


def below_of(rng: random.Random) -> Below:
    """Return what draws whole numbers below a limit: as `rng.randrange`, at half its cost."""
    bits = rng.getrandbits

    def below(limit: int) -> int:
        needed = limit.bit_length()
        drawn = bits(needed)
        while drawn >= limit:
            drawn = bits(needed)
        return drawn

    return below


def integer(below: Below, length: int) -> Parts:
    """Return a whole number of `length` digits; of one digit also 0."""
    low = POWERS[length - 1] if length > 1 else 0
    return (str(low + below(POWERS[length] - low)),)


def floating(below: Below, length: int) -> Parts:
    """Return a number with `length` decimals and no more digits before them; never below 1."""
    low = POWERS[below(length)]
    return str(low + below(9 * low)), _decimals(below, length)


def fraction(below: Below, length: int) -> Parts:
    """Return a fraction in lowest terms whose denominator has `length` digits, its numerator no more."""
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


SHORTER: Sequence[str] = ("half", "any")  # how many digits the shorter operand has at least: half, or 1


def pairs_of(pool: str, representation: str, *, shorter: str = SHORTER[0]) -> Pool:
    """Return what draws pairs of a pool: `add` and `compare` draw alike, `compare_harder` shares digits."""
    drawn = DRAWN[representation]
    shared = _SHARED[representation] if pool == "compare_harder" else None
    same_length = pool == "compare_harder" and representation == "integer"

    def draw(below: Below, length: int) -> Pair:
        fewest = max(length // 2, 1) if shorter == "half" else 1
        shortest = length if same_length else fewest
        second = shortest + below(length - shortest + 1)
        left, right = drawn(below, length), drawn(below, second)
        if shared:
            right = shared(below, left, right)
        if second != length and below(2):
            return right, left
        return left, right

    return draw


def _share_integer(below: Below, left: Parts, right: Parts) -> Parts:
    digits = below(len(left[0]))
    return (left[0][:digits] + right[0][digits:],)


def _share_float(below: Below, left: Parts, right: Parts) -> Parts:
    if below(10) < _SHARED_WHOLE:
        return right
    digits = below(min(len(left[1]), len(right[1])))
    return left[0], left[1][:digits] + right[1][digits:]


def _share_scientific(below: Below, left: Parts, right: Parts) -> Parts:
    mantissa, decimals, exponent = right
    if below(10) < _SHARED_EXPONENT:
        exponent = left[2]
    digits = below(min(len(left[1]), len(decimals)) + 1) - 1
    if digits < 0:  # the mantissa stays
        return mantissa, decimals, exponent
    return left[0], left[1][:digits] + decimals[digits:], exponent


_SHARED: Mapping[str, Callable[[Below, Parts, Parts], Parts]] = {
    "integer": _share_integer,
    "float": _share_float,
    "scientific": _share_scientific,
}
