"""The anatomy of one wrong answer: its kind, all its errors, and their places."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from asyncbench.analysis.anatomy.arithmetic import flags_of
from asyncbench.analysis.anatomy.edits import missing_end, slip, wrong_run
from asyncbench.analysis.anatomy.numbers import MOST_DIGITS, number, pair_of, sign_of
from asyncbench.suites.llm_arithmetic import drop_thinking, layered_number

# ── kinds of errors, in the order in which one is chosen ─────────────────────────────────────────
# An answer may be wrong in several ways at once: 800000 for 799900 is rounded, and one column is off. All
# that hold are its flags; its kind is the first of them in this order. Kinds stand by how many wrong
# answers could be of them, the fewest first: an answer that is of such a kind is hardly so by chance.


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
    "float_noise": "exactly what binary floats (float64) compute, such as 0.30000000000000004 for 0.1 + 0.2",
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
    "other_words": "another word or sentence: of words, no letters are compared",
}

KINDS: Final[Mapping[str, str]] = {**OF_REPLIES, **OF_ANSWERS}
ORDER: Final[Mapping[str, int]] = {kind: index for index, kind in enumerate(KINDS)}


def first_of(flags: frozenset[str]) -> str:
    """Return the kind of what has these flags."""
    return min(flags & ORDER.keys(), key=ORDER.__getitem__, default=UNCLASSIFIED)


# ── replies without a readable answer ────────────────────────────────────────────────────────────


MOST_READ: Final = (
    20_000  # characters of a reply that are looked at, the thinking before its answer among them
)
MOST: Final = 4000  # characters of its answer

_WORD: Final = (
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand|million|billion|trillion)\b"
)
_IN_A_ROW: Final = re.compile(rf"{_WORD}[\s,-]{{1,3}}(?:and\s)?{_WORD}", re.IGNORECASE)
_NOTHING_ELSE: Final = re.compile(
    rf"\W*(?:(?:minus|negative|an?|and|point)\W+)*{_WORD}(?:\W+(?:and|point|{_WORD}))*\W*", re.IGNORECASE
)
_WORK: Final = re.compile(r"\d[\d,._ \t)]{0,80}[-+−–*×·÷/xX⋅][ \t]{0,4}\(?\d[^=\n]{0,200}=")
_POWER: Final = re.compile(r"\d[eE][+-]?\d|\d\s?(?:[×xX·*]|\\times|\\cdot)\s?10\s?(?:\^|[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻])")
_ABOUT: Final = re.compile(
    r"≈|~\s?\d|\b(?i:about|approx\w{0,9}|around|roughly|nearly|million|billion|trillion)\b|\d\s?[kKmM]\b"
)
_SENTENCE: Final = re.compile(r"[^\W\d_]{2,}[^\w\n]{1,3}[^\W\d_]{1,}")  # two words
_GROUPS: Final = re.compile(r"[+-]?\d{1,4}(?:[ ,._'\u00a0\u2009\u202f]\d{1,4})+(?:[.,]\d+)?")
_NUMBER: Final = re.compile(r"[+-]?(?:\d++/\d++|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)")
_MOST_DIGITS: Final = re.compile(r"(?<!\d)\d{4000}")  # from where a run begins: a reply may be hostile


def end_of(reply: str) -> str:
    """Return the end of a long reply, of `MOST_READ` characters; one within its thinking begins with that."""
    if len(reply) <= MOST_READ:
        return reply
    before = reply[: len("think>") + 1 - MOST_READ].lower()  # a tag may stand across the cut
    thinks = before.rfind("<think>") > before.rfind("</think>")
    return f"{'<think>' if thinks else ''}{reply[-MOST_READ:]}"


def reply_kind(reply: str) -> str | None:
    """Return the kind of a reply without a read answer (`OF_REPLIES`), or None if it fits no kind."""
    if not reply.strip():
        return "empty"
    if _MOST_DIGITS.search(reply):
        return "too_long"
    text = answered(reply)
    if text is None:
        return "thinking_unfinished"
    text = text[-MOST:].strip()
    if not any(map(str.isdigit, text)):
        # "No one can do this" has a number word as well.
        return "number_words" if _IN_A_ROW.search(text) or _NOTHING_ELSE.fullmatch(text) else "no_number"
    return next((kind for kind, matches in _REPLY_TESTS if matches(text)), None)


def answered(reply: str) -> str | None:
    """Return the reply without its thinking, or None if it ends within that."""
    text, unfinished = drop_thinking(reply)
    return None if unfinished else text


def grouped(reply: str) -> str | None:
    """Return the digits of a reply that is nothing but a number in groups, without what parts them."""
    text = reply.strip()
    if len(text) > MOST or not _GROUPS.fullmatch(text):
        return None
    return re.sub(r"[ ,_'\u00a0\u2009\u202f]", "", text)


def _decorated(text: str) -> bool:
    bare = re.sub(r"\\boxed|\\text|[^\w.+/-]", "", text)
    return bare != text and bool(re.fullmatch(rf"[^\W\d]{{0,8}}(?:{_NUMBER.pattern})[^\W\d]{{0,8}}", bare))


_REPLY_TESTS: Final = (
    ("shown_work", lambda text: _WORK.search(text)),
    ("scientific_notation", lambda text: _POWER.search(text)),
    ("approximate", lambda text: _ABOUT.search(text)),
    ("prose", lambda text: _SENTENCE.search(text)),
    ("grouped_digits", lambda text: _GROUPS.fullmatch(text) and not _NUMBER.fullmatch(text)),
    ("decorated", _decorated),
    ("other_form", lambda text: _NUMBER.fullmatch(text)),
)

# ── errors of answers ────────────────────────────────────────────────────────────────────────────


MOST_PLACES: Final = 40  # digits of which it is told whether they are wrong, from either end


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """What is wrong with an answer."""

    kind: str  # of `KINDS`, or unclassified
    flags: frozenset[str] = frozenset()  # every kind that it is of; right_value: of a reply that was not read
    digits: int = 0  # of the truth, or characters
    length_error: int | None = None  # digits too many, negative: too few; None: no answer was read
    wrong_from_left: tuple[int, ...] = ()  # which digits of the truth are wrong or missing: 1 is the first,
    wrong_from_right: tuple[int, ...] = ()  # and 1 the last; none where no answer was read


def anatomy(
    expected: str,
    answer: str | None,
    reply: str | None = None,
    *,
    answer_type: str,
    task: str = "",
    operands: Sequence[str] = (),
) -> Error:
    """Return the anatomy of a wrong or unread answer; pure, in time linear in what it is given.

    Args:
        expected: the right answer.
        answer: what the headline grader read; None: it read nothing.
        reply: the whole reply, where there is one; of a long one the end is looked at (`end_of`).
        answer_type: the problem's: integer, decimal, scientific, fraction or text.
        task: its name, which tells the operation (`sign_of`).
        operands: the problem's, as they were asked.
    """
    reply = end_of(reply or "")
    if answer is None:
        kind = reply_kind(reply)
        flags = {kind} if kind else set[str]()
        if answer_type in ("integer", "decimal", "scientific"):
            flags |= _flags_of_number_in(expected, reply, task, operands)
        return Error(kind=kind or UNCLASSIFIED, flags=frozenset(flags), digits=_count(expected))
    if are_words(answer_type, operands):
        return _words(expected, answer)
    if answer_type == "text":
        return _text(expected, answer, operands)
    if answer_type == "fraction":
        return _fraction(expected, answer, task, operands)
    return _number(expected, answer, reply, answer_type, task, operands)


def _flags_of_number_in(expected: str, reply: str, task: str, operands: Sequence[str]) -> frozenset[str]:
    """Return the flags of the number that a lenient reader finds at a reply's end, or right_value."""
    text = answered(reply)
    value = None if text is None else layered_number(text[-MOST:])
    pair = None if value is None else pair_of(expected, str(value), sign=sign_of(task), operands=operands)
    if pair is None:
        return frozenset()
    return frozenset({"right_value"}) if pair.true == pair.read else flags_of(pair)


def _number(
    expected: str, answer: str, reply: str, answer_type: str, task: str, operands: Sequence[str]
) -> Error:
    pair = pair_of(expected, answer, sign=sign_of(task), operands=operands)
    if pair is None:  # one is no number of a length that is compared
        too_long = len(answer) > MOST_DIGITS >= len(expected)
        value = None if too_long else number(answer)
        far = value is not None and value.adjusted() > MOST_DIGITS
        flags = frozenset({"wrong_magnitude"} if too_long or far else set[str]())
        return Error(kind=first_of(flags), flags=flags, digits=_count(expected))

    flags = flags_of(pair)
    if answer_type == "scientific" and "point_moved" in flags:  # as a number with an exponent has it
        flags = flags - {"point_moved"} | {"exponent_off"}
    whole = grouped(reply) if reply else None
    if whole is not None and number(answer) not in (None, number(whole)):  # the last group alone was read
        flags |= {"grouped_digits"}

    # Which of the truth's own digits are wrong: the answer may have more decimals.
    extra = len(str(pair.last_place)) - 1
    true_digits = pair.true_digits[: len(pair.true_digits) - extra]
    read_digits = pair.read_digits[: len(pair.read_digits) - extra]
    return Error(
        kind="sign" if "sign" in flags and pair.true == -pair.read else first_of(flags - {"sign"}),
        flags=flags,
        digits=len(pair.true_digits),
        length_error=pair.read_point - pair.true_point,
        **wrong_places(true_digits, read_digits),
    )


def wrong_places(true: str, read: str) -> dict[str, tuple[int, ...]]:
    """Return the places of `true` that differ from `read`, laid side by side at the left and at the right."""
    return {
        "wrong_from_left": _wrong_indexes(true, read),
        "wrong_from_right": _wrong_indexes(true[::-1], read[::-1]),
    }


def _wrong_indexes(true: str, read: str) -> tuple[int, ...]:
    padded = read[:MOST_PLACES].ljust(min(len(true), MOST_PLACES))
    pairs = zip(true[:MOST_PLACES], padded, strict=False)
    return tuple([i for i, (right, got) in enumerate(pairs, 1) if right != got])  # a list is made faster


# ── fractions and texts ──────────────────────────────────────────────────────────────────────


_AROUND: Final = "\"'`*.“”‘’ \n"  # signs around a text that are no part of it


def _fraction(expected: str, answer: str, task: str, operands: Sequence[str]) -> Error:
    true, read = _fraction_terms(expected), _fraction_terms(answer)
    if true is None or read is None:
        return Error(kind=UNCLASSIFIED, digits=_count(expected))
    (above, below), (over, under) = true, read
    flags = set[str]()
    if under and above * under == over * below:
        flags.add("same_value")
    elif (above, below) == (under, over):
        flags.add("reciprocal")
    elif answer in operands:
        flags.add("operand_echoed")
    if below == under:
        flags.add("numerator_wrong")
    if above == over:
        flags.add("denominator_wrong")
    if read in _other_fractions(task, operands):
        flags.add("other_operation")
    return Error(
        kind=first_of(frozenset(flags)),
        flags=frozenset(flags),
        digits=_count(expected),
        length_error=_count(answer) - _count(expected),
        **wrong_places(expected.replace("/", ""), answer.replace("/", "")),
    )


def _other_fractions(task: str, operands: Sequence[str]) -> set[tuple[int, int]]:
    """Return the results of the other operations on two fractions, in lowest terms, without signs."""
    terms = [_fraction_terms(operand) for operand in operands]
    if len(terms) != 2 or any(term is None or not term[1] for term in terms):
        return set()
    left, right = (Fraction(*term) for term in terms if term is not None)
    results = {"+": left + right, "-": abs(left - right), "×": left * right}
    if right:
        results["÷"] = left / right
    results.pop(sign_of(task) or "", None)
    return {(value.numerator, value.denominator) for value in results.values() if value}


def _fraction_terms(text: str) -> tuple[int, int] | None:
    if len(text) > MOST_DIGITS:
        return None
    above_text, slash, below_text = text.partition("/")
    values = number(above_text), number(below_text)
    if not slash or None in values:
        return None
    above, below = (Decimal(value or 0) for value in values)
    if max(above.adjusted(), below.adjusted()) > MOST_DIGITS:  # 1e30000000 as an int takes minutes
        return None
    whole = above == above.to_integral_value() and below == below.to_integral_value()
    return (int(above), int(below)) if whole else None


def are_words(answer_type: str, operands: Sequence[str]) -> bool:
    """Whether an answer is an option, a word or a sentence, and no text that a task makes sign by sign."""
    return answer_type == "text" and not operands


def _words(expected: str, answer: str) -> Error:
    """Return the error of an answer in words. A sign of one text never stands for one of the other."""
    flags = {"case"} if answer.casefold() == expected.casefold() else set[str]()
    if expected and expected in answer:
        flags.add("decorated" if answer.strip(_AROUND) == expected else "prose")
    flags = flags or {"other_words"}
    return Error(kind=first_of(frozenset(flags)), flags=frozenset(flags))


def _text(expected: str, answer: str, operands: Sequence[str]) -> Error:
    longest = 2 * len(expected) + 100  # beyond, it is another text
    read = answer[:longest]
    kinds: list[str | None] = []
    if len(answer) <= longest:
        kinds = [
            "operand_echoed" if answer in operands else None,
            "reversed" if answer == expected[::-1] else None,
            "case" if answer.casefold() == expected.casefold() else None,
            "decorated" if expected in answer and answer.strip(_AROUND) == expected else None,
            "prose" if expected in answer and len(answer) > len(expected) + 5 else None,
            slip(expected, answer),
            missing_end(expected, answer),
            wrong_run(expected, answer),
        ]
    elif expected and expected in answer:
        kinds = ["prose"]
    flags = frozenset(kind for kind in kinds if kind)
    return Error(
        kind=first_of(flags),
        flags=flags,
        digits=len(expected),
        length_error=len(answer) - len(expected),
        **wrong_places(expected, read),
    )


def _count(text: str) -> int:
    """Return how many digits an answer has."""
    return sum(map(str.isdigit, text))
