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
    "too_long": "a number of more digits than are compared",
    "number_words": "the number is written in words",
    "no_number": "text without any digit",
    "shown_work": "a calculation with its equals sign, not the result alone",
    "scientific_notation": "written with a power of ten where digits were asked for",
    "approximate": "'about', '≈', 'million' or the like",
    "prose": "a number within a sentence",
    "grouped_digits": "digits in groups with commas, spaces, dots or underscores between them",
    "decorated": "the number in quotes, a box, bold type or with a unit",
    "other_form": "a number, but not in the form asked for: 5.0 for a whole number",
}

# of answers that were read
OF_ANSWERS: Final[Mapping[str, str]] = {
    "same_value": "the right value, written in another way: 7.0, 007, 4/6",
    "case": "the right letters, some of them small for capital or the other way round",
    "sign": "the right number with the other sign",
    "float_noise": "what binary floating point makes of the right number",
    "operand_echoed": "an operand instead of a result",
    "other_operation": "the result of another operation: a difference for a sum",
    "reversed": "the right digits from the last to the first",
    "reciprocal": "numerator and denominator changed places",
    "complement": "the truth taken from a power of ten: a last borrow from nowhere",
    "carries_ignored": "each column added by itself, without carries",
    "smaller_from_larger": "in each column the smaller digit taken from the larger, without borrows",
    "off_by_one": "one too many or too few in the last place",
    "point_moved": "the right digits times a power of ten: the point moved, zeros too many or too few",
    "exponent_off": "the right mantissa with another exponent",
    "misaligned": "the operands were put together with their columns shifted",
    "dropped_carry": "one carry or borrow was forgotten",
    "needless_carry": "one carry or borrow was made where none is due",
    "rounded": "right but for its last digits, which are rounded or cut to zeros",
    "leading_missing": "the truth without its first digits",
    "trailing_missing": "the truth without its last digits",
    "neighbours_swapped": "two neighbouring digits changed places",
    "two_swapped": "two digits that are no neighbours changed places",
    "one_doubled": "one digit is there twice",
    "one_dropped": "one digit is missing",
    "operand_miscopied": "the right result of an operand that has a digit dropped, doubled or swapped",
    "numerator_wrong": "a fraction whose denominator alone is right",
    "denominator_wrong": "a fraction whose numerator alone is right",
    "one_replaced": "one digit is another one",
    "column_wrong": "one column is off, carries included: the error is a digit times a power of ten",
    "one_added": "one digit too many",
    "carries_wrong": "every column is right but for its carries, several of which are wrong",
    "first_digits_wrong": "one run of wrong digits at the front, the other half or more right",
    "last_digits_wrong": "one run of wrong digits at the end, the other half or more right",
    "middle_digits_wrong": "one run of wrong digits within, the other half or more right",
    "scattered_digits_wrong": "wrong digits in several places, at least half of them right",
    "digits_missing": "too few digits, but right at both ends: at least half of them",
    "digits_extra": "too many digits, but right at both ends: at least half of them",
    "estimate": "less than a thousandth off, and nothing of the above",
    "wrong_magnitude": "too few or too many digits before the point, and nothing of the above",
}

KINDS: Final[Mapping[str, str]] = {**OF_REPLIES, **OF_ANSWERS}
ORDER: Final[Mapping[str, int]] = {kind: place for place, kind in enumerate(KINDS)}


def first_of(flags: frozenset[str]) -> str:
    """Return the kind of what has these flags."""
    return min(flags & ORDER.keys(), key=ORDER.__getitem__, default=UNCLASSIFIED)
