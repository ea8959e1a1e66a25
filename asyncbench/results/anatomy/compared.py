"""A wrong number beside the right one: both in the same units, so that whatever follows is exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from asyncbench.results.anatomy.columns import Columns, columns_of
from asyncbench.suites import EXACT, exact

MOST_DIGITS: Final = 2000  # of numbers that are compared
_MORE_PLACES: Final = 20  # in operands than in the truth

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
