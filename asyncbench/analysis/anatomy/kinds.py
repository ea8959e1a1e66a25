"""What can be wrong with an answer: every kind by name, in the order in which one is chosen.

An answer may be wrong in several ways at once: 800000 for 799900 is rounded, and one column is off. All that
hold are its flags; its kind is the first of them in this order. Kinds stand by how many wrong answers could
be of them, the fewest first: an answer that is of such a kind is hardly so by chance.
"""

from collections.abc import Mapping
from typing import Final

UNCLASSIFIED: Final = "unclassified"

# of replies in which no answer could be read, or only a part of it
OF_REPLIES: Final[Mapping[str, str]] = {
    "empty": "no text at all",
    "thinking_unfinished": "the reply ends within its <think> block",
    "too_long": "a number of more than 4,000 digits",
    "number_words": "the number is written in words",
    "no_number": "text without any digit",
    "shown_work": "a calculation with its equals sign: 523 + 120 = 643",
    "scientific_notation": "a power of ten instead of digits",
    "approximate": "'about', '≈', 'million' or the like",
    "prose": "a number within a sentence",
    "grouped_digits": "digits in groups: 6,430,012 or 6 430 012",
    "decorated": "the number in quotes, a box, bold type or with a unit",
    "other_form": "a number in another form than asked for: 5.0 for a whole number",
}

# of answers that were read
OF_ANSWERS: Final[Mapping[str, str]] = {
    "same_value": "the right value in another form: 7.0, 007, 4/6",
    "case": "right except for capital and small letters",
    "sign": "the right number with the other sign",
    "float_noise": "what binary floating point makes of the right number",
    "operand_echoed": "an operand instead of a result",
    "other_operation": "the result of another operation: a difference for a sum",
    "reversed": "the right digits from the last to the first",
    "reciprocal": "numerator and denominator swapped",
    "complement": "a power of ten minus the right answer",
    "carries_ignored": "each column added by itself, without carries",
    "smaller_from_larger": "in each column the smaller digit subtracted from the larger, without borrows",
    "off_by_one": "one too many or too few in the last place",
    "point_moved": "the right answer times a power of ten: the point moved, zeros added or missing",
    "exponent_off": "the right mantissa with another exponent",
    "misaligned": "the columns of the operands were shifted",
    "dropped_carry": "one carry or borrow was forgotten",
    "needless_carry": "one carry or borrow too many",
    "rounded": "right except for its last digits, which are rounded or cut to zeros",
    "leading_missing": "the first digits are missing",
    "trailing_missing": "the last digits are missing",
    "neighbours_swapped": "two neighbouring digits swapped",
    "two_swapped": "two digits swapped that are not neighbours",
    "one_doubled": "one digit is there twice",
    "one_dropped": "one digit is missing",
    "operand_miscopied": "the right result for an operand with a digit dropped, doubled or swapped",
    "numerator_wrong": "a fraction with only the denominator right",
    "denominator_wrong": "a fraction with only the numerator right",
    "one_replaced": "one digit is another one",
    "column_wrong": "one column is wrong: the error is a digit times a power of ten",
    "one_added": "one digit too many",
    "carries_wrong": "right except for two or more carries",
    "first_digits_wrong": "one run of wrong digits at the front, at least half right",
    "last_digits_wrong": "one run of wrong digits at the end, at least half right",
    "middle_digits_wrong": "one run of wrong digits in the middle, at least half right",
    "scattered_digits_wrong": "wrong digits in several places, at least half right",
    "digits_missing": "too few digits, at least half right at the two ends",
    "digits_extra": "too many digits, at least half right at the two ends",
    "estimate": "less than a thousandth off, and nothing of the above",
    "wrong_magnitude": "too few or too many digits before the point, and nothing of the above",
}

KINDS: Final[Mapping[str, str]] = {**OF_REPLIES, **OF_ANSWERS}
ORDER: Final[Mapping[str, int]] = {kind: place for place, kind in enumerate(KINDS)}


def first_of(flags: frozenset[str]) -> str:
    """Return the kind of what has these flags."""
    return min(flags & ORDER.keys(), key=ORDER.__getitem__, default=UNCLASSIFIED)
