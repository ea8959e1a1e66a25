"""Errors of a number, by its value and by its digits: each rule by itself, exact, in linear time."""

from collections.abc import Iterator

from asyncbench.analysis.anatomy.edits import missing_end, same_at_end, same_at_start, slip, wrong_run
from asyncbench.analysis.anatomy.numbers import Columns, NumberPair

_ESTIMATED = 1000  # an estimate is less than one part in so many off
_SURE_FLOAT = 15  # digits that every binary float holds; of so few an answer is one by chance
_REVERSED = 3  # digits; of fewer they are neighbours that are swapped, or a moved point


def flags_of(pair: NumberPair) -> frozenset[str]:
    """Return every kind (`error.OF_ANSWERS`) that a wrong number is of."""
    if pair.true == pair.read:
        return frozenset({"same_value"})
    flags = {*_value_flags(pair), *_operand_flags(pair), *_digit_flags(pair)}
    if (columns := pair.columns) is not None:
        flags.update(_column_flags(pair, columns))
    return frozenset(flags)


# ── by value ─────────────────────────────────────────────────────────────────────────────────


def _value_flags(pair: NumberPair) -> Iterator[str]:
    true, read = abs(pair.true), abs(pair.read)
    off = read - true
    if pair.true * pair.read < 0:
        yield "sign"
    if abs(pair.true - pair.read) == pair.last_place:
        yield "off_by_one"
    if _is_float_noise(pair):
        yield "float_noise"
    if read and off and str(read).rstrip("0") == str(true).rstrip("0"):
        yield "point_moved"
    if read and off and _is_rounded(true, read):
        yield "rounded"
    if off and pair.sign in ("+", "-") and len(str(abs(off)).rstrip("0")) == 1:
        yield "column_wrong"
    if abs(pair.read - pair.true) * _ESTIMATED < true:
        yield "estimate"
    if pair.true_point != pair.read_point:
        yield "wrong_magnitude"


def _is_float_noise(pair: NumberPair) -> bool:
    """Whether it is exactly what binary floats compute, in the shortest form or with all digits."""
    value = pair.as_floats
    if value is None or len(pair.read_digits) <= _SURE_FLOAT:
        return False
    forms = [repr(value), str(int(value))] if value.is_integer() else [repr(value)]
    return any(pair.units_of(form) == pair.read for form in forms)


def _is_rounded(true: int, read: int) -> bool:
    """Whether it is the truth rounded or cut at a place, zeros behind it, with a digit of it kept."""
    zeros = len(str(read)) - len(str(read).rstrip("0"))
    # A number that is rounded at any place is so at each higher one down to which it has zeros: 9996 → 10000.
    dropped = min(zeros, len(str(true)) - 1)  # digits
    if dropped < 1:
        return False
    unit = 10**dropped
    return read in (true // unit * unit, (2 * true + unit) // (2 * unit) * unit)


# ── by operands ──────────────────────────────────────────────────────────────────────────────


def _operand_flags(pair: NumberPair) -> Iterator[str]:
    if pair.operands is None:
        return
    left, right = pair.operands
    if pair.read and pair.read in (left, right, -left, -right):
        yield "operand_echoed"
    read = abs(pair.read)
    if read and read != abs(pair.true) and read in _other_results(pair, abs(left), abs(right)):
        yield "other_operation"
    if pair.sign in ("+", "-"):
        second = right if pair.sign == "+" else -right
        if _is_misaligned(pair.read, left, second):
            yield "misaligned"
        used = ((left, pair.read - second), (second, pair.read - left))  # if the other one was right
        if any(
            operand * copy > 0 and slip(str(abs(operand)), str(abs(copy))) in _MISCOPIED
            for operand, copy in used
        ):
            yield "operand_miscopied"
    elif pair.sign == "×" and any(_is_factor_slip(pair, *two) for two in ((left, right), (right, left))):
        yield "operand_miscopied"


def _other_results(pair: NumberPair, left: int, right: int) -> Iterator[int]:
    """Yield the sizes of what the operations make of operands of these sizes, in units."""
    yield left + right
    yield abs(left - right)
    unit = 10 ** abs(pair.places)
    yield left * right // unit if pair.places >= 0 else left * right * unit
    for over, under in ((left, right), (right, left)):
        if under and pair.places >= 0:
            yield over * unit // under
            yield over // under * unit
            yield over % under


def _is_misaligned(read: int, left: int, second: int) -> bool:
    """Whether it is the sum of the operands, one of them times a power of ten."""
    for whole, shifted in ((left, second), (second, left)):
        rest = read - whole
        if rest * shifted > 0 and rest != shifted and str(rest).rstrip("0") == str(shifted).rstrip("0"):
            return True
    return False


_MISCOPIED = ("neighbours_swapped", "one_doubled", "one_dropped")


def _is_factor_slip(pair: NumberPair, factor: int, right_factor: int) -> bool:
    """Whether a product is right for a factor with a slip; of a factor, one digit replaced counts too."""
    units = abs(pair.read) * 10 ** max(pair.places, 0)
    if not pair.read or not right_factor or units % abs(right_factor):
        return False
    return slip(str(abs(factor)), str(units // abs(right_factor))) in (*_MISCOPIED, "one_replaced")


# ── by digits ────────────────────────────────────────────────────────────────────────────────


def _digit_flags(pair: NumberPair) -> Iterator[str]:
    true, read = pair.true_digits, pair.read_digits

    # From the last to the first, zeros at either end left aside. Of digits that are the same that way
    # nothing can be told: 3.3e-7 for 3.3e7 has another exponent.
    digits = true.strip("0")
    if len(digits) >= _REVERSED and read.strip("0") == digits[::-1] != digits:
        yield "reversed"

    beyond = len(str(pair.last_place)) - 1  # decimals that the truth does not have
    kind = slip(true, read)
    if kind == "one_replaced" and true[: len(true) - beyond] == read[: len(read) - beyond]:
        kind = None  # no digit of the truth is another one: 0.3 and 0.30000000000000004
    decimals = pair.places if pair.places > 0 else beyond
    if kind is None and decimals:
        # With their points and without zeros at the end: 12.34 and 12.4 differ by one digit.
        cut = -decimals
        kind = slip(
            f"{true[:cut]}.{true[cut:].rstrip('0')}",
            f"{read[:cut]}.{read[cut:].rstrip('0')}",
        )
    if kind:
        yield kind
    if end := missing_end(true, read):
        yield end
    side_by_side = pair.true_point == pair.read_point or pair.places <= 0
    if (side_by_side or len(true) != len(read)) and (run := wrong_run(true, read)):
        yield run


# ── by columns ───────────────────────────────────────────────────────────────────────────────


def _column_flags(pair: NumberPair, columns: Columns) -> Iterator[str]:
    true, read = abs(pair.true), abs(pair.read)
    widths = {len(columns.upper), len(str(true))}
    if columns.borrows and read != true and read in {10**width - true for width in widths}:
        yield "complement"
    wrong_carry = _wrong_carry(pair, columns)
    if wrong_carry:
        yield wrong_carry
    if read == true:
        return

    # Columns by themselves give their last digits, or all of their digits one by one. Where a single carry
    # is made, who drops it and who ignores all carries answer alike: one slip it is.
    alone = list(reversed(columns.alone()))
    carryless = {int("".join(str(column % 10) for column in alone)), int("".join(map(str, alone)))}
    if any(columns.carried) and wrong_carry != "dropped_carry" and read in carryless:
        yield "smaller_from_larger" if columns.borrows else "carries_ignored"
    if (columns.wrong_carries([int(digit) for digit in reversed(str(read))]) or 0) > 1:
        yield "carries_wrong"


def _wrong_carry(pair: NumberPair, columns: Columns) -> str | None:
    """Return dropped_carry or needless_carry: the answer is that of one wrong carry into one column.

    Either the error went on through the columns that follow, or one digit alone is wrong.
    """
    true, read = str(abs(pair.true)), str(abs(pair.read))
    off = abs(pair.read) - abs(pair.true)
    size = str(abs(off))

    # Which column is one too many or too few, from the units' 0 on.
    if size.rstrip("0") == "1" and len(size) > 1:
        column, too_few = len(size) - 1, off < 0
    else:
        front, column = same_at_start(true, read), same_at_end(true, read)
        if len(true) != len(read) or front + column != len(true) - 1 or not column:
            return None
        step = (int(read[front]) - int(true[front])) % 10
        if step not in (1, 9):
            return None
        too_few = step == 9

    # It should have received a carry and did not, or should not and did.
    received = column <= len(columns.upper) and columns.carried[column - 1]
    less = too_few != columns.borrows  # a carry that is dropped makes a sum less, a borrow a difference more
    if less == received:
        return "dropped_carry" if less else "needless_carry"
    return None
