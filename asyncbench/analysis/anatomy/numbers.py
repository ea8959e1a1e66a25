"""A wrong number and the right one in the same units, as whole numbers and column by column.

Sums are done as by hand: digits stand with the units first, as one writes them down. A subtraction takes the
smaller number from the larger; its borrows are counted as carries are.
"""

import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP
from asyncbench.analysis.views import counts_by
from asyncbench.stats.proportions import Proportion
from asyncbench.suites.numbers import exact
from asyncbench.tables.data import INSIDE

MOST_DIGITS: Final = 2000  # of numbers that are compared
_MORE_PLACES: Final = 20  # in operands than in the truth


@dataclass(frozen=True, slots=True)
class Columns:
    """Two whole numbers under each other."""

    upper: tuple[int, ...]  # digits, units first; of a subtraction the larger number
    lower: tuple[int, ...]  # as many
    borrows: bool  # a subtraction
    carried: tuple[bool, ...]  # whether a carry or borrow leaves each column

    def alone(self) -> list[int]:
        """Return the result of each column by itself: a sum, or the distance of its digits."""
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
    upper, lower, borrows = _larger_first(left, right)
    written = str(upper)
    above, below = (tuple(map(int, text[::-1])) for text in (written, str(lower).rjust(len(written), "0")))
    carried, carry = [], False
    for top, bottom in zip(above, below, strict=True):
        carry = top - bottom - carry < 0 if borrows else top + bottom + carry > 9
        carried.append(carry)
    return Columns(above, below, borrows, tuple(carried))


def carries_and_chain(left: int, right: int) -> tuple[int, int]:
    """Return how many columns of a sum a carry or borrow leaves, and the most that one ripples through.

    Of 999 + 1 it ripples through three, of 55 + 55 through one: a carry begins where a column makes one by
    itself and goes on through columns that pass it on only because they receive it.
    """
    upper, lower, borrows = _larger_first(left, right)
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


def _larger_first(left: int, right: int) -> tuple[int, int, bool]:
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
_FLOAT_OPERATIONS: Final[Mapping[Sign, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "×": operator.mul,
    "÷": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


@lru_cache(maxsize=1000)
def sign_of(task: str) -> Sign | None:
    """Return the operation of a task by its name, + of `float_add`, or None for others.

    NUPA's digit_add adds digit by digit, without carries: it is no addition.
    """
    words = task.split("_")
    return None if "digit" in words else next((_SIGNS[word] for word in words if word in _SIGNS), None)


class NumberPair(NamedTuple):
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
    as_floats: float | None  # what binary floats make of the operands, or of the truth; None: nothing finite

    def units_of(self, text: str) -> int | None:
        """Return another number in the same units, or None if they cannot express it."""
        term = _term(text)
        return term.scaled(self.places) if term is not None and term.needed <= self.places else None

    @property
    def columns(self) -> Columns | None:
        """The operands of an addition or subtraction in columns, or None for other operations."""
        if self.operands is None or self.sign not in ("+", "-"):
            return None
        left, right = self.operands[0], self.operands[1] if self.sign == "+" else -self.operands[1]
        return columns_of(left, right) if left + right == self.true else None


def pair_of(expected: str, answer: str, *, sign: Sign | None, operands: Sequence[str]) -> NumberPair | None:
    """Return the two side by side, or None if one is no number or longer than `MOST_DIGITS`."""
    true, read = _term(expected), _term(answer)
    if true is None or read is None:
        return None
    terms = list(map(_term, operands))
    places = max(true.places, read.needed)  # graders write 12.5 as 12.5000
    if sign in ("+", "-"):
        # The terms of a sum may have more decimals than the sum: 1.25 + 1.75 = 3.0.
        limit = true.places + _MORE_PLACES
        places = max([places, *(term.places for term in terms if term is not None and term.places <= limit)])
    # Of two numbers like 1e-30000000 the digits are few, but the zeros before or behind them are not.
    if abs(places) > MOST_DIGITS or max(true.adjusted, read.adjusted) + places > MOST_DIGITS:
        return None
    true_units, read_units = true.scaled(places), read.scaled(places)
    true_digits, read_digits = _digits(true_units, places), _digits(read_units, places)
    return NumberPair(
        true=true_units,
        read=read_units,
        places=places,
        last_place=10 ** (places - true.places),
        true_digits=true_digits,
        read_digits=read_digits,
        true_point=len(true_digits) - max(places, 0),
        read_point=len(read_digits) - max(places, 0),
        sign=sign,
        operands=_operand_units(terms, places),
        as_floats=_float_result(expected, sign, operands),
    )


def _float_result(expected: str, sign: Sign | None, operands: Sequence[str]) -> float | None:
    """Return the float64 result of two operands, or without an operation the float nearest to the truth."""
    try:
        if sign is not None and len(operands) == 2:
            result = _FLOAT_OPERATIONS[sign](float(operands[0]), float(operands[1]))
        else:
            result = float(expected)
    except (ArithmeticError, ValueError):  # divided by zero, beyond the largest float, or no number
        return None
    return result if math.isfinite(result) else None


class Term(NamedTuple):
    """A number as it is written: so many units of 10**-places. Of 1.2e5 the places are -4."""

    units: int
    places: int

    @property
    def needed(self) -> int:
        """The places without zeros at the end: 12.5000 needs one."""
        if not self.units:
            return 0
        written = str(self.units)
        return self.places - len(written) + len(written.rstrip("0"))

    @property
    def adjusted(self) -> int:
        """The power of ten of the first digit."""
        return len(str(abs(self.units))) - 1 - self.places

    def scaled(self, places: int) -> int:
        """Return it in units of 10**-places, of which it is whole."""
        more = places - self.places
        if not self.units:
            return 0  # however many places it has
        unit: int = 10 ** abs(more)
        return self.units * unit if more >= 0 else self.units // unit


_PLAIN: Final = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?")


def _term(text: str) -> Term | None:
    if len(text) > MOST_DIGITS:
        return None
    if plain := _PLAIN.fullmatch(text):  # nearly all are, and Decimal takes its time
        whole, decimals = plain[1], plain[2] or ""
        return Term(int(whole + decimals), len(decimals))
    value = exact(text)
    if value is None:
        return None
    sign, digits, exponent = value.as_tuple()
    units = int("".join(map(str, digits)))
    return Term(-units if sign else units, -int(exponent))


def number(text: str) -> Decimal | None:
    """Return the number that a text writes, or None for other texts and over `MOST_DIGITS` digits."""
    return exact(text) if len(text) <= MOST_DIGITS else None


def whole_operands(operands: Sequence[str]) -> tuple[int, int] | None:
    """Return two operands in common units; None where they are not two numbers, or too long."""
    if len(operands) == 2 and all(text.isdecimal() and len(text) <= MOST_DIGITS for text in operands):
        return int(operands[0]), int(operands[1])
    terms = list(map(_term, operands))
    return _operand_units(terms, max((term.places for term in terms if term is not None), default=0))


def _operand_units(terms: Sequence[Term | None], places: int) -> tuple[int, int] | None:
    """Return two operands as whole numbers of 10**-places, or None if there are not two such."""
    if len(terms) != 2 or (left := terms[0]) is None or (right := terms[1]) is None:
        return None
    if max(left.places, right.places) > places:
        return None
    if max(left.adjusted, right.adjusted) + places > MOST_DIGITS:
        return None
    return left.scaled(places), right.scaled(places)


def _digits(units: int, places: int) -> str:
    return str(abs(units)).rjust(max(places, 0) + 1, "0")


# ── carries of a folder's additions and subtractions ─────────────────────────────────────────────


Group = tuple[str, ...]  # the values of GROUP

MOST_PROBLEMS: Final = 200_000  # whose carries are counted: the first of the sets, which are balanced

# where each bin of carries starts; it ends where the next one starts
CARRIES: Final = (0, 1, 2, 3, 5, 8, 12, 20)
CHAINS: Final = (0, 1, 2, 3, 4, 6, 10)


class CarryProblem(NamedTuple):
    """What the anatomy needs of a problem."""

    answer_type: str | None  # None: no problem file tells
    operands: tuple[str, ...]
    extra: str = "{}"  # JSON; may list accepted answers


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryBin:
    """The trials of additions or subtractions with so many carries."""

    first: int
    last: int | None  # None: there is no most
    right: Proportion = field(metadata=INSIDE)  # of the trials with a reply


def problems_of(views: FolderViews, wanted: set[str]) -> dict[str, CarryProblem]:
    """Return the problems of these ids.

    Raises:
        ProblemSetError: one of the folders' copies of the problems is damaged.
    """
    columns = ["problem_id", "answer_type", "operands", "extra"]
    batches = views.problems(columns, pc.field("problem_id").isin(pa.array(wanted, pa.string())))
    return {
        problem_id: CarryProblem(answer_type, tuple(operands), extra)
        for batch in batches
        for problem_id, answer_type, operands, extra in zip(
            *map(pa.Array.to_pylist, batch.columns), strict=True
        )
    }


def _carried_in(views: FolderViews) -> pa.Table:
    """Return carries and longest chain of sums by problem_id."""
    carried: dict[str, tuple[int, int]] = {}
    for batch in views.problems(["problem_id", "task", "operands"]):
        for problem_id, task, operands in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
            if len(carried) < MOST_PROBLEMS and (counts := carries_of(task, operands)):
                carried[problem_id] = counts
    numbers = list(zip(*carried.values(), strict=True)) or [(), ()]
    return pa.table(
        {
            "problem_id": pa.array(list(carried), pa.string()),
            "carries": pa.array(numbers[0], pa.int32()),
            "chain": pa.array(numbers[1], pa.int32()),
        }
    )


def carries_of(task: str, operands: Sequence[str]) -> tuple[int, int] | None:
    """Return the carries or borrows of a task and the longest ripple, or None if it adds no two numbers."""
    sign = sign_of(task)
    if sign not in ("+", "-") or (numbers := whole_operands(operands)) is None:
        return None
    left, right = numbers
    return carries_and_chain(left, right if sign == "+" else -right)


_SIZES: Final = counts_by(
    "(FROM trials JOIN carried USING (problem_id) WHERE outcome <> 'failed')",
    (*GROUP, "carries"),
    (*GROUP, "chain"),
    only=("correct", "trials"),
    more=["max(repeat) + 1 AS times"],
)


def bins_by_group(views: FolderViews) -> dict[Group, tuple[tuple[CarryBin, ...], ...]]:
    """Return the bins by carries and by longest chain of each group; trials without a reply are in none.

    Raises as `problems_of` does.
    """
    views.put_when_read("carried", "carries of the problems", _carried_in)
    sizes = defaultdict[Group, tuple[list[Size], list[Size]]](lambda: ([], []))
    for row in views.rows(f"{_SIZES} ORDER BY carries, chain"):
        *group, carries, chain, correct, trials, times = row.values()
        by_carries, by_chain = sizes[tuple(group)]
        if chain is None:
            by_carries.append((carries, correct, trials, times))
        else:
            by_chain.append((chain, correct, trials, times))
    return {
        group: (tuple(_bins(by_carries, CARRIES)), tuple(_bins(by_chain, CHAINS)))
        for group, (by_carries, by_chain) in sizes.items()
    }


Size = tuple[int, int, int, int]  # carries or columns, right, trials, times that each problem was asked


def _bins(sizes: Iterable[Size], starts: Sequence[int]) -> Iterator[CarryBin]:
    right, trials, independent = Counter[int](), Counter[int](), defaultdict[int, float](float)
    for size, correct, count, times in sizes:
        first = max(start for start in starts if start <= size)
        right[first] += correct
        trials[first] += count
        independent[first] += count / times
    for first, after in (*pairwise(starts), (starts[-1], None)):
        if count := trials[first]:
            repeats = count / independent[first]
            share = Proportion(successes=right[first], trials=count, repeats=repeats)
            yield CarryBin(first=first, last=None if after is None else after - 1, right=share)
