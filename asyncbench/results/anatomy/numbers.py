"""A wrong number beside the right one, in the same units, so that all that follows is exact; and by columns.

Sums are done as by hand: digits stand with the units first, as one writes them down. A subtraction takes the
smaller number from the larger; its borrows are counted as carries are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from asyncbench.suites import EXACT, exact

MOST_DIGITS: Final = 2000  # of numbers that are compared
_MORE_PLACES: Final = 20  # in operands than in the truth


@dataclass(frozen=True, slots=True)
class Columns:
    """Two whole numbers under each other."""

    upper: tuple[int, ...]  # digits, units first; of a subtraction the larger number
    lower: tuple[int, ...]  # as many
    borrows: bool  # a subtraction

    @property
    def carried(self) -> tuple[bool, ...]:
        """Whether a carry or borrow leaves each column."""
        found, carry = [], False
        for upper, lower in zip(self.upper, self.lower, strict=True):
            carry = upper - lower - carry < 0 if self.borrows else upper + lower + carry > 9
            found.append(carry)
        return tuple(found)

    def alone(self) -> list[int]:
        """Return what each column makes by itself: a sum, or the distance of its digits."""
        pairs = zip(self.upper, self.lower, strict=True)
        return [abs(upper - lower) if self.borrows else upper + lower for upper, lower in pairs]

    def wrong_carries(self, digits: Sequence[int]) -> int | None:
        """Return how many columns got a carry they should not, or lack one they should get.

        `digits`: of an answer, units first. None: not every column of it can be explained by its carry.
        """
        wrong, width = 0, len(self.upper)
        due = (False, *self.carried)
        if len(digits) > width + (not self.borrows) or any(digits[width + 1 :]):
            return None
        padded = [*digits, *[0] * (width + 1 - len(digits))]
        for i, (upper, lower) in enumerate(zip(self.upper, self.lower, strict=True)):
            alone = upper - lower if self.borrows else upper + lower
            got = (alone - padded[i]) % 10 if self.borrows else (padded[i] - alone) % 10
            if got > 1:
                return None
            wrong += got != due[i]
        last = padded[width] if not self.borrows else 0
        return None if last > 1 else wrong + (not self.borrows and last != due[width])


def columns_of(left: int, right: int) -> Columns:
    """Return left + right under each other; where their signs differ, it is a subtraction."""
    upper, lower, borrows = _under_each_other(left, right)
    above, below = str(upper)[::-1], str(lower)[::-1].ljust(len(str(upper)), "0")
    return Columns(tuple(map(int, above)), tuple(map(int, below)), borrows)


def carries_and_chain(left: int, right: int) -> tuple[int, int]:
    """Return how many columns of a sum a carry or borrow leaves, and the most that one ripples through.

    Of 999 + 1 it ripples through three, of 55 + 55 through one: a carry begins where a column makes one by
    itself and goes on through columns that pass it on only because they receive it.
    """
    upper, lower, borrows = _under_each_other(left, right)
    result = upper - lower if borrows else upper + lower
    # A digit has four bits of these, so all columns are looked at together. A digit of the result is odd or
    # even as both others and the carry into it say; one that passes the carry on is left 0, or 9 by a borrow.
    above, below, out = (int(str(number), 16) for number in (upper, lower, result))
    ones = (1 << 4 * len(str(result)) + 4) // 15 | (1 << 4 * len(str(upper)) + 4) // 15
    into = (above ^ below ^ out) & ones
    passed = into & (out & out >> 3 if borrows else ~(out | out >> 1 | out >> 2 | out >> 3))
    chain = int(into > 0)
    while passed:
        passed &= passed << 4
        chain += 1
    return into.bit_count(), chain


def _under_each_other(left: int, right: int) -> tuple[int, int, bool]:
    """Return both without their signs, the larger first, and whether it is a subtraction."""
    borrows = (left < 0) != (right < 0) and bool(left) and bool(right)
    return max(abs(left), abs(right)), min(abs(left), abs(right)), borrows


# ── truth and answer ─────────────────────────────────────────────────────────────────────────

Sign = Literal["+", "-", "×", "÷", "//", "%"]
_SIGNS: Final[dict[str, Sign]] = {
    "add": "+",
    "addition": "+",
    "sub": "-",
    "mul": "×",
    "multiply": "×",
    "div": "÷",
    "truediv": "÷",
    "floordiv": "//",
    "mod": "%",
}


@lru_cache(maxsize=1000)
def sign_of(task: str) -> Sign | None:
    """Return the operation of a task, by its name: of `float_add` +; None: it has none of ours.

    NUPA's digit_add adds digit by digit, without carries: it is no addition.
    """
    words = task.split("_")
    return None if "digit" in words else next((_SIGNS[word] for word in words if word in _SIGNS), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPair:
    """Truth and answer as whole numbers of 10**-places, and their digits as text."""

    true: int
    read: int
    places: int  # the more of both; negative: the units are tens, hundreds, ...
    last_place: int  # a unit in the last place of the truth
    true_digits: str  # of the absolute values, zeros at the end as places has them, a zero before the point
    read_digits: str
    true_point: int  # digits before the point
    read_point: int
    sign: Sign | None
    operands: tuple[int, int] | None  # in the same units, where there are two and the units can express them

    @property
    def columns(self) -> Columns | None:
        """The operands of an addition or subtraction under each other; None: of anything else."""
        if self.operands is None or self.sign not in ("+", "-"):
            return None
        left, right = self.operands[0], self.operands[1] if self.sign == "+" else -self.operands[1]
        return columns_of(left, right) if left + right == self.true else None


def pair_of(expected: str, answer: str, *, sign: Sign | None, operands: Sequence[str]) -> NumberPair | None:
    """Return the two side by side; None: one is no number, or is longer than `MOST_DIGITS`."""
    true, read = number(expected), number(answer)
    if true is None or read is None:
        return None
    terms = [number(operand) for operand in operands]
    own = _places(true)
    places = max(own, _places(read.normalize(EXACT)))  # graders write 12.5 as 12.5000
    if sign in ("+", "-"):
        places = max(places, _places_of(terms, most=own + _MORE_PLACES))
    # Of two numbers like 1e-30000000 the digits are few, but the zeros before or behind them are not.
    if abs(places) > MOST_DIGITS or max(true.adjusted(), read.adjusted()) + places > MOST_DIGITS:
        return None
    true_units, read_units = _units(true, places), _units(read, places)
    true_digits, read_digits = _digits(true_units, places), _digits(read_units, places)
    return NumberPair(
        true=true_units,
        read=read_units,
        places=places,
        last_place=10 ** (places - own),
        true_digits=true_digits,
        read_digits=read_digits,
        true_point=len(true_digits) - max(places, 0),
        read_point=len(read_digits) - max(places, 0),
        sign=sign,
        operands=_in_units(terms, places),
    )


def number(text: str) -> Decimal | None:
    """Return what a text is as a number; None: it is none, or has more than `MOST_DIGITS` digits."""
    return exact(text) if len(text) <= MOST_DIGITS else None


def whole_operands(operands: Sequence[str]) -> tuple[int, int] | None:
    """Return two operands in common units; None where they are not two numbers, or too long."""
    if len(operands) == 2 and all(text.isdecimal() and len(text) <= MOST_DIGITS for text in operands):
        return int(operands[0]), int(operands[1])
    numbers = [number(operand) for operand in operands]
    return _in_units(numbers, max((_places(one) for one in numbers if one is not None), default=0))


def _places_of(terms: Sequence[Decimal | None], *, most: int) -> int:
    """Return how many decimals the terms of a sum have, which may be more than its own: 1.25 + 1.75 = 3.0."""
    found = [places for term in terms if term is not None and (places := _places(term)) <= most]
    return max(found, default=most - _MORE_PLACES)


def _in_units(numbers: Sequence[Decimal | None], places: int) -> tuple[int, int] | None:
    """Return two operands as whole numbers of 10**-places; None: there are not two, or not all are whole."""
    if len(numbers) != 2 or (left := numbers[0]) is None or (right := numbers[1]) is None:
        return None
    if max(_places(left), _places(right)) > places:
        return None
    if max(left.adjusted(), right.adjusted()) + places > MOST_DIGITS:
        return None
    return _units(left, places), _units(right, places)


def _places(value: Decimal) -> int:
    """Return how many decimals a number is written with; of 1.2e5 it is -4."""
    return -int(value.as_tuple().exponent)


def _units(value: Decimal, places: int) -> int:
    return int(value.scaleb(places, EXACT))


def _digits(units: int, places: int) -> str:
    return str(abs(units)).rjust(max(places, 0) + 1, "0")
