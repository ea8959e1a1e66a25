"""The anatomy of one wrong answer: its kind, all that is wrong with it, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from asyncbench.analysis.anatomy.arithmetic import flags_of
from asyncbench.analysis.anatomy.edits import missing_end, slip, wrong_run
from asyncbench.analysis.anatomy.kinds import UNCLASSIFIED, first_of
from asyncbench.analysis.anatomy.numbers import MOST_DIGITS, NumberPair, number, pair_of, sign_of
from asyncbench.analysis.anatomy.replies import end_of, grouped, number_in, reply_kind

MOST_PLACES: Final = 40  # digits of which it is told whether they are wrong, from either end


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """What is wrong with an answer."""

    kind: str  # of `kinds.KINDS`, or unclassified
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
        return _unread(expected, reply, answer_type, task, operands)
    if answer_type == "text":
        return _text(expected, answer, operands)
    if answer_type == "fraction":
        return _fraction(expected, answer, task, operands)
    return _number(expected, answer, reply, answer_type, task, operands)


def _unread(expected: str, reply: str, answer_type: str, task: str, operands: Sequence[str]) -> Error:
    kind = reply_kind(reply)
    flags = {kind} if kind else set[str]()
    if answer_type in ("integer", "decimal", "scientific"):
        flags |= _meant(expected, reply, task, operands)
    return Error(kind=kind or UNCLASSIFIED, flags=frozenset(flags), digits=_count(expected))


def _meant(expected: str, reply: str, task: str, operands: Sequence[str]) -> frozenset[str]:
    """Return what is wrong with the number that a lenient reader finds; right_value: nothing."""
    found = number_in(reply)
    pair = pair_of(expected, found, sign=sign_of(task), operands=operands) if found else None
    if pair is None:
        return frozenset()
    return frozenset({"right_value"}) if pair.true == pair.read else flags_of(pair)


def _number(
    expected: str, answer: str, reply: str, answer_type: str, task: str, operands: Sequence[str]
) -> Error:
    pair = pair_of(expected, answer, sign=sign_of(task), operands=operands)
    if pair is None:
        return _incomparable(expected, answer)
    flags = flags_of(pair)
    if answer_type == "scientific":
        flags = _of_scientific(flags)
    if reply and (whole := grouped(reply)) is not None and whole != answer and _is_part(answer, whole):
        flags |= {"grouped_digits"}
    return Error(
        kind="sign" if "sign" in flags and pair.true == -pair.read else first_of(flags - {"sign"}),
        flags=flags,
        digits=len(pair.true_digits),
        length_error=pair.read_point - pair.true_point,
        **_wrong(pair),
    )


def _is_part(answer: str, whole: str) -> bool:
    """Whether what was read is the last of the groups alone."""
    read = number(answer)
    return read is not None and read != number(whole)


def _incomparable(expected: str, answer: str) -> Error:
    """Return the error of texts of which one is no number of a length that is compared."""
    too_long = len(answer) > MOST_DIGITS >= len(expected)
    value = None if too_long else number(answer)
    far = value is not None and value.adjusted() > MOST_DIGITS
    flags = frozenset({"wrong_magnitude"} if too_long or far else set[str]())
    return Error(kind=first_of(flags), flags=flags, digits=_count(expected))


def _of_scientific(flags: frozenset[str]) -> frozenset[str]:
    """Return the flags in the terms of a number with an exponent."""
    if "point_moved" in flags:
        return flags - {"point_moved"} | {"exponent_off"}
    return flags


def _wrong(pair: NumberPair) -> dict[str, tuple[int, ...]]:
    """Return which of the truth's own digits are wrong, from both ends."""
    extra = len(str(pair.last_place)) - 1  # decimals that the answer alone has
    true = pair.true_digits[: len(pair.true_digits) - extra]
    read = pair.read_digits[: len(pair.read_digits) - extra]
    return wrong_places(true, read)


def wrong_places(true: str, read: str) -> dict[str, tuple[int, ...]]:
    """Return the places of `true` that differ from `read`, laid side by side at the left and at the right."""
    return {
        "wrong_from_left": _places(true, read),
        "wrong_from_right": _places(true[::-1], read[::-1]),
    }


def _places(true: str, read: str) -> tuple[int, ...]:
    padded = read[:MOST_PLACES].ljust(min(len(true), MOST_PLACES))
    pairs = zip(true[:MOST_PLACES], padded, strict=False)
    return tuple([i for i, (one, other) in enumerate(pairs, 1) if one != other])  # a list is made faster


# ── fractions and texts ──────────────────────────────────────────────────────────────────────


def _fraction(expected: str, answer: str, task: str, operands: Sequence[str]) -> Error:
    true, read = _parts(expected), _parts(answer)
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
    """Return what the other operations make of two fractions, in lowest terms, without signs."""
    parts = [_parts(operand) for operand in operands]
    if len(parts) != 2 or any(part is None or not part[1] for part in parts):
        return set()
    left, right = (Fraction(*part) for part in parts if part is not None)
    results = {"+": left + right, "-": abs(left - right), "×": left * right}
    if right:
        results["÷"] = left / right
    results.pop(sign_of(task) or "", None)
    return {(value.numerator, value.denominator) for value in results.values() if value}


def _parts(text: str) -> tuple[int, int] | None:
    if len(text) > MOST_DIGITS:
        return None
    above, slash, below = text.partition("/")
    values = number(above), number(below)
    if not slash or None in values:
        return None
    one, other = (Decimal(value or 0) for value in values)
    if max(one.adjusted(), other.adjusted()) > MOST_DIGITS:  # 1e30000000 as an int takes minutes
        return None
    whole = one == one.to_integral_value() and other == other.to_integral_value()
    return (int(one), int(other)) if whole else None


def _text(expected: str, answer: str, operands: Sequence[str]) -> Error:
    most = 2 * len(expected) + 100  # beyond, it is another text
    read = answer[:most]
    flags = set[str]()
    if len(answer) <= most:
        flags = {kind for kind in _text_kinds(expected, read, operands) if kind}
    elif expected and expected in answer:
        flags.add("prose")
    return Error(
        kind=first_of(frozenset(flags)),
        flags=frozenset(flags),
        digits=len(expected),
        length_error=len(answer) - len(expected),
        **wrong_places(expected, read),
    )


def _text_kinds(expected: str, answer: str, operands: Sequence[str]) -> list[str | None]:
    return [
        "operand_echoed" if answer in operands else None,
        "reversed" if answer == expected[::-1] else None,
        "case" if answer.casefold() == expected.casefold() else None,
        "decorated" if expected in answer and answer.strip("\"'`*.“”‘’ \n") == expected else None,
        "prose" if expected in answer and len(answer) > len(expected) + 5 else None,
        slip(expected, answer),
        missing_end(expected, answer),
        wrong_run(expected, answer),
    ]


def _count(text: str) -> int:
    """Return how many digits an answer has."""
    return sum(map(str.isdigit, text))
