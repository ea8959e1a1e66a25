"""Additions and subtractions as done by hand: column by column, with carries and borrows.

Digits stand with the units first, as one writes them down. A subtraction takes the smaller number from the
larger, whose borrows are counted as carries are.
"""

from collections.abc import Sequence
from dataclasses import dataclass


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

    @property
    def carries(self) -> int:
        """How many columns a carry or borrow leaves."""
        return sum(self.carried)

    @property
    def chain(self) -> int:
        """The most columns that one carry ripples through: of 999 + 1 three, of 55 + 55 one.

        A carry begins where a column makes one by itself and goes on through columns that pass it on only
        because they receive it: those whose digits add up to 9, or are equal in a subtraction.
        """
        longest = run = 0
        carry = False
        for upper, lower in zip(self.upper, self.lower, strict=True):
            alone = upper - lower if self.borrows else upper + lower
            passes = alone == (0 if self.borrows else 9)
            makes = alone < 0 if self.borrows else alone > 9
            run = 1 if makes else run + 1 if carry and passes else 0
            carry = run > 0
            longest = max(longest, run)
        return longest

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
    borrows = (left < 0) != (right < 0) and bool(left) and bool(right)
    upper, lower = sorted((abs(left), abs(right)), reverse=True)
    above, below = str(upper)[::-1], str(lower)[::-1].ljust(len(str(upper)), "0")
    return Columns(tuple(map(int, above)), tuple(map(int, below)), borrows)
