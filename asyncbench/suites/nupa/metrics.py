"""How near an answer is to the truth, part by part and digit by digit; nothing is normalised.

`7`, `007` and `7.0` are three different answers, and so are 7/13 and 14/26. Digits are characters: ５ is
not 5. Those of whole numbers are laid side by side from the last one on, those of decimals from the first.
"""

from operator import eq
from typing import NamedTuple

from asyncbench.suites.numbers import FORMS, parts


class Nearness(NamedTuple):
    """How near an answer came, in digits."""

    digits_right: int
    digits_total: int  # of the truth
    length_error: int  # too many or too few, summed over the parts
    length_error_total: int  # of all parts as one: what one has too many another may lack


def nearness(answer: str | None, truth: str, answer_type: str) -> Nearness:
    """Compare what was read with the truth; None: nothing was read, and every digit is missing.

    Missing digits are wrong; surplus ones show in the lengths alone.

    Raises:
        ValueError: they differ, and one of them is no number of this form.
    """
    form = FORMS[answer_type]
    total = len(truth) - len(form.separators)  # all else are digits
    if answer is None:
        return Nearness(0, total, total, total)
    if answer == truth:
        return Nearness(total, total, 0, 0)
    right = by_part = surplus = 0
    pairs = zip(parts(answer, answer_type), parts(truth, answer_type), form.aligned, strict=True)
    for read, true, end in pairs:
        right += sum(map(eq, read, true) if end == "left" else map(eq, reversed(read), reversed(true)))
        by_part += abs(len(read) - len(true))
        surplus += len(read) - len(true)
    return Nearness(right, total, by_part, abs(surplus))
