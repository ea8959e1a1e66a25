"""From answers of one length to what is published of a task: ranges, domains, and how many digits it holds.

A task is of the class whose longest problems have 20 digits, or of that with 100: its table says which, not
the data. Means are exact where the sums are: whole numbers and fractions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, le
from typing import NamedTuple

Number = int | float | Fraction


class Sum(NamedTuple):
    """A figure of the answers of one length, added up."""

    total: Number
    answers: int

    @property
    def mean(self) -> Number:
        """Exact, unless the sum is a float."""
        if isinstance(self.total, float):
            return self.total / self.answers
        return Fraction(self.total, self.answers)


RANGES: Mapping[int, Mapping[str, range]] = {  # by class, lengths in digits
    20: {"S": range(1, 5), "M": range(5, 9), "L": range(9, 15), "XL": range(15, 21)},
    100: {"S": range(1, 11), "M": range(11, 21), "L": range(21, 61), "XL": range(61, 101)},
}
DOMAINS: Mapping[str, Sequence[str]] = {"in_domain": ("S", "M"), "out_domain": ("L", "XL")}


@dataclass(frozen=True, slots=True)
class Threshold:
    """From where on a length is well learned, and from where on some performance is preserved."""

    well_learned: Fraction
    preserving: Fraction
    passes: Callable[[Number, Fraction], bool]


THRESHOLDS: Mapping[str, Threshold] = {  # by figure
    "exact_match": Threshold(Fraction(9, 10), Fraction(1, 10), ge),
    "digit_match": Threshold(Fraction(9, 10), Fraction(1, 2), ge),
    "dlength": Threshold(Fraction(1, 10), Fraction(1), le),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedLengths:
    """The longest lengths that pass; 0: none does. None: nothing was answered.

    As published, shorter lengths may fail: who fails 3 to 11 and passes 12 has 12. `contiguous`, ours: all
    answered lengths up to it pass.
    """

    well_learned: int | None = None
    well_learned_contiguous: int | None = None
    preserving: int | None = None
    preserving_contiguous: int | None = None


def range_of(length: int, length_class: int) -> str | None:
    """Return the range of a length in the class of tasks with this longest one; None: it is in none."""
    return next((name for name, lengths in RANGES[length_class].items() if length in lengths), None)


def by_range(sums: Mapping[int, Sum], length_class: int) -> dict[str, Number | None]:
    """Return the mean over the answers in S, M, L and XL and in both domains; None where there is none.

    Args:
        sums: length → the sum of a figure.
        length_class: 20 or 100.
    """
    ranges = RANGES[length_class]
    pooled = {domain: [n for name in names for n in ranges[name]] for domain, names in DOMAINS.items()}
    means: dict[str, Number | None] = {}
    for name, lengths in {**ranges, **pooled}.items():
        held = [sums[length] for length in lengths if length in sums]
        answers = sum(of_length.answers for of_length in held)
        whole = Sum(sum(of_length.total for of_length in held), answers)
        means[name] = whole.mean if answers else None
    return means


def digits(sums: Mapping[int, Sum], figure: str, length_class: int) -> PassedLengths:
    """Return how many digits a task is mastered to by a figure: exact_match, digit_match or dlength.

    Lengths beyond the class's longest are left aside: to_float of fractions has problems of 21 digits.
    """
    threshold = THRESHOLDS[figure]
    held = sorted(length for length, added in sums.items() if length <= length_class and added.answers)
    if not held:
        return PassedLengths()
    well = [threshold.passes(sums[length].mean, threshold.well_learned) for length in held]
    some = [threshold.passes(sums[length].mean, threshold.preserving) for length in held]
    return PassedLengths(
        well_learned=_longest(held, well),
        well_learned_contiguous=_contiguous(held, well),
        preserving=_longest(held, some),
        preserving_contiguous=_contiguous(held, some),
    )


def _longest(lengths: Sequence[int], passed: Sequence[bool]) -> int:
    return max((length for length, passes in zip(lengths, passed, strict=True) if passes), default=0)


def _contiguous(lengths: Sequence[int], passed: Sequence[bool]) -> int:
    before_a_failure = passed.index(False) if False in passed else len(passed)
    return lengths[before_a_failure - 1] if before_a_failure else 0
