"""A wrong answer aligned with the truth, by the edit that explains it.

An answer of the kind one_dropped lacks one digit, and all others stand beside those that they are; where a
carry was forgotten, the digits that it changed are marked, and so on. Where no kind says what was done, it
is the fewest edits. Points stand beside each other, and zeros that mean nothing count for nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Final, NamedTuple

from asyncbench.analysis.anatomy.edits import (
    Edit,
    common_ends,
    fewest_edits,
    missing_end,
    slip,
)
from asyncbench.analysis.anatomy.error import ORDER, Error, anatomy

MOST_ACCEPTED: Final = 20  # accepted answers that are compared with an answer
_MOST_COMPARED: Final = 120  # characters of each


def nearest_answer(accepted: Sequence[str], answer: str | None) -> str:
    """Return the accepted answer that a wrong one is compared with: the one most like it."""
    if answer is None or len(accepted) == 1:
        return accepted[0]
    likeness = SequenceMatcher(None, b=answer[:_MOST_COMPARED], autojunk=False)

    def ratio(text: str) -> float:
        likeness.set_seq1(text[:_MOST_COMPARED])
        return likeness.ratio()

    return answer if answer in accepted else max(accepted[:MOST_ACCEPTED], key=ratio)


# ── edits by kind of error ───────────────────────────────────────────────────────────────────────


class Digits(NamedTuple):
    """Truth and answer digit by digit, with as many decimals; of texts all is before the point."""

    true: str
    read: str
    true_point: int  # digits before the point
    read_point: int


Edits = list[Edit]
Explanation = Callable[[Digits], Edits | None]  # None: the digits are not so


def edits_of(digits: Digits, flags: frozenset[str], *, texts: bool = False) -> Edits:
    """Return an edit for every digit: by the first telling flag of an error, or else the fewest edits."""
    explanations = _OF_TEXTS if texts else _OF_NUMBERS
    for kind in sorted(flags & explanations.keys(), key=ORDER.__getitem__):
        if edits := explanations[kind](digits):
            return edits

    # Else the fewest edits, of which a point that stands elsewhere is two.
    true, read, true_point, read_point = digits
    whole = fewest_edits(true, read)
    if texts or (true_point == len(true) and read_point == len(read)):
        return whole

    # Point beside point: what is before both, then what is behind both.
    pointed = fewest_edits(true[:true_point], read[:read_point])
    for op, i, j in fewest_edits(true[true_point:], read[read_point:]):
        pointed.append((op, None if i is None else i + true_point, None if j is None else j + read_point))
    return whole if cost_of(whole) + _POINT < cost_of(pointed) else pointed


def column_edits(digits: Digits, *, off: str | None = None) -> Edits:
    """Return digits of the same place side by side; `off`: the name of those that differ."""
    more = len(digits.true) - len(digits.read)
    first: Edits = [(off or "missing", index, None) for index in range(more)]
    first += [(off or "extra", None, index) for index in range(-more)]
    pairs = zip(digits.true[max(0, more) :], digits.read[max(0, -more) :], strict=True)
    return first + [
        ("same" if right == got else off or "replaced", index + max(0, more), index + max(0, -more))
        for index, (right, got) in enumerate(pairs)
    ]


_POINT: Final = 2  # edits: it is missing here and extra there


def cost_of(edits: Edits) -> int:
    """Return how many edits these are; two neighbours that are swapped are one."""
    ops = [op for op, _, _ in edits]
    return len(ops) - ops.count("same") - ops.count("swapped") // 2


def _same(i: int, j: int, length: int) -> Edits:
    return [("same", i + step, j + step) for step in range(length)]


# ── one slip, and missing ends ───────────────────────────────────────────────────────────────


def _slipped(digits: Digits) -> Edits | None:
    """Return a slip of all digits, or else of those before the zeros at the end: 12.4 for 12.34."""
    if edits := _slip(digits.true, digits.read):
        return edits
    true, read = _bare(digits.true, digits.true_point), _bare(digits.read, digits.read_point)
    edits = _slip(true, read)
    return edits and edits + _zeros(len(true), len(digits.true), len(read), len(digits.read), "same", "same")


def _bare(digits: str, point: int) -> str:
    return digits[:point] + digits[point:].rstrip("0")


def _zeros(i: int, last: int, j: int, end: int, missing: str, extra: str) -> Edits:
    """Return zeros at the end side by side; what only one text has is called so."""
    both = min(last - i, end - j)
    return [
        *_same(i, j, both),
        *((missing, index, None) for index in range(i + both, last)),
        *((extra, None, index) for index in range(j + both, end)),
    ]


def _slip(true: str, read: str) -> Edits | None:
    kind = slip(true, read)
    if kind == "two_swapped":
        return column_edits(Digits(true, read, len(true), len(read)), off="swapped")
    return fewest_edits(true, read) if kind else None


def _end_missing(digits: Digits) -> Edits | None:
    end = missing_end(digits.true, digits.read)
    if end == "leading_missing":
        return column_edits(digits)
    return fewest_edits(digits.true, digits.read) if end else None


# ── digits in their places ───────────────────────────────────────────────────────────────────


def _one_column(digits: Digits) -> Edits:
    """Return one wrong column; what differs in higher ones is its carry."""
    edits = column_edits(digits)
    wrong = [index for index, (op, _, _) in enumerate(edits) if op != "same"]
    for index in wrong[:-1]:
        edits[index] = ("carry", *edits[index][1:])
    return edits


def _carry_edits(digits: Digits) -> Edits:
    """Return digits off by carries; of columns written one by one, the tens are too many."""
    if len(digits.read) <= len(digits.true):
        return column_edits(digits, off="carry")
    return [(op if op == "same" else "carry", i, j) for op, i, j in fewest_edits(digits.true, digits.read)]


def _run(digits: Digits) -> Edits | None:
    """Return wrong digits in their places, unless half as many edits explain them: a digit that moved."""
    if len(digits.true) != len(digits.read):
        return None
    placed = column_edits(digits)
    if (wrong := cost_of(placed)) < 4:
        return placed
    fewest = fewest_edits(digits.true, digits.read)
    return fewest if 2 * cost_of(fewest) <= wrong else placed


def _point_moved(digits: Digits) -> Edits | None:
    """Return the same digits with more or fewer zeros at either end."""
    true, read = digits.true.strip("0"), digits.read.strip("0")
    return _zeros_around(digits, "moved", "moved", "same") if true == read else None


def _reversed(digits: Digits) -> Edits | None:
    true, read = digits.true.strip("0"), digits.read.strip("0")
    return _zeros_around(digits, "missing", "extra", "swapped") if true == read[::-1] else None


def _zeros_around(digits: Digits, missing: str, extra: str, inside: str) -> Edits:
    """Return edits of digits within zeros, and of the zeros: those at the end of decimals mean nothing."""
    i, j = (len(text) - len(text.lstrip("0")) for text in (digits.true, digits.read))
    last, end = (len(text.rstrip("0")) for text in (digits.true, digits.read))
    whole, shown = max(last, digits.true_point), max(end, digits.read_point)
    return [
        *_zeros(0, i, 0, j, missing, extra),
        *((inside, i + step, j + step) for step in range(last - i)),
        *_zeros(last, whole, end, shown, missing, extra),
        *_zeros(whole, len(digits.true), shown, len(digits.read), "same", "same"),
    ]


# ── texts ────────────────────────────────────────────────────────────────────────────────────


def _surrounded(digits: Digits) -> Edits | None:
    """Return a truth with something around it."""
    start, length = digits.read.find(digits.true), len(digits.true)
    if start < 0:
        return None
    return [
        *(("extra", None, index) for index in range(start)),
        *_same(0, start, length),
        *(("extra", None, index) for index in range(start + length, len(digits.read))),
    ]


_carried: Final = partial(column_edits, off="carry")
_ENDS_AND_SLIPS: Final[Mapping[str, Explanation]] = {
    **dict.fromkeys(("leading_missing", "trailing_missing"), _end_missing),
    **dict.fromkeys(("neighbours_swapped", "two_swapped", "one_doubled", "one_dropped"), _slipped),
    **dict.fromkeys(("one_replaced", "one_added"), _slipped),
    **{f"{where}_digits_wrong": _run for where in ("first", "last", "middle", "scattered")},
    **dict.fromkeys(
        ("digits_missing", "digits_extra"), lambda digits: fewest_edits(digits.true, digits.read)
    ),
}
_OF_NUMBERS: Final[Mapping[str, Explanation]] = {
    **_ENDS_AND_SLIPS,
    "sign": lambda digits: column_edits(digits) if digits.true == digits.read else None,
    "reversed": _reversed,
    **dict.fromkeys(("point_moved", "exponent_off"), _point_moved),
    "carries_ignored": _carry_edits,
    **dict.fromkeys(("smaller_from_larger", "dropped_carry", "needless_carry", "carries_wrong"), _carried),
    **dict.fromkeys(("off_by_one", "column_wrong"), _one_column),
    **dict.fromkeys(("float_noise", "complement", "rounded", "estimate"), column_edits),
}
_OF_TEXTS: Final[Mapping[str, Explanation]] = {
    **_ENDS_AND_SLIPS,
    "reversed": partial(column_edits, off="swapped"),
    "case": lambda digits: column_edits(digits) if len(digits.true) == len(digits.read) else None,
    **dict.fromkeys(("decorated", "prose"), _surrounded),
}

# ── alignment ────────────────────────────────────────────────────────────────────────────────────


MOST_ALIGNED: Final = 10_000  # characters of both together; of longer ones the common ends are told

# what it is, what stands in the truth, and in the answer: same, replaced, missing, extra, swapped, carry (off
# by a carry or borrow) or moved (of a point, and the zeros that it takes along)
Part = tuple[str, str, str]

_NUMBER: Final = re.compile(r"([+-]?)(0*(?=[0-9])|)([0-9]*)(?:(\.)([0-9]*))?([eE][+-]?[0-9]+)?")


def aligned(
    expected: str,
    answer: str,
    *,
    answer_type: str,
    task: str = "",
    operands: Sequence[str] = (),
    error: Error | None = None,
    right: bool = False,
) -> list[Part]:
    """Return the parts of a truth and an answer side by side; each in its order makes up the whole of both.

    Parts that are the `same` may differ in zeros without a meaning: 12.5 is 12.5000.

    Args:
        expected: the right answer.
        answer: what the headline grader read.
        answer_type, task, operands: those of the problem, as for `anatomy`.
        error: what `anatomy` makes of them, where that is known.
        right: whether the answer counts as right, so that nothing in it is to be marked.
    """
    if expected == answer or len(expected) + len(answer) > MOST_ALIGNED:
        front, back = common_ends(expected, answer)
        last, end = len(expected) - back, len(answer) - back
        ends_and_middle = [
            ("same", expected[:front], answer[:front]),
            ("replaced", expected[front:last], answer[front:end]),
            ("same", expected[last:], answer[end:]),
        ]
        return list(_merged(ends_and_middle))
    if right:
        return list(_merged(_right_parts(expected, answer)))

    diagnosis = error or anatomy(expected, answer, answer_type=answer_type, task=task, operands=operands)
    true, read = _written(expected), _written(answer)
    if answer_type == "fraction" and expected.count("/") == answer.count("/") == 1:
        parts = _fraction_parts(expected, answer, diagnosis)
    elif answer_type == "text" or diagnosis.kind == "same_value" or not (true and read):
        parts = _text_parts(expected, answer, diagnosis)
    else:
        parts = _number_parts(true, read, diagnosis)
    return list(_merged(parts))


def _right_parts(true: str, read: str) -> list[Part]:
    """Return the right parts of a number, with zeros of one of both, or else all of it as one part."""
    if "." in true and read.startswith(true) and not read[len(true) :].strip("0"):
        return [("same", true, true), ("same", "", read[len(true) :])]  # as graders write decimals
    right, answer = _written(true), _written(read)
    parts = list(_number_parts(right, answer, _NO_ERROR)) if right and answer else []
    return parts if parts and all(op == "same" for op, _, _ in parts) else [("same", true, read)]


def _text_parts(true: str, read: str, error: Error) -> Iterator[Part]:
    edits = edits_of(Digits(true, read, len(true), len(read)), error.flags, texts=True)
    for op, i, j in edits:
        yield op, "" if i is None else true[i], "" if j is None else read[j]


def _fraction_parts(true: str, read: str, error: Error) -> Iterator[Part]:
    above, _, below = true.partition("/")
    over, _, under = read.partition("/")
    if error.kind == "reciprocal":
        yield from (("swapped", above, over), ("same", "/", "/"), ("swapped", below, under))
        return
    yield from _text_parts(above, over, _NO_ERROR)
    yield "same", "/", "/"
    yield from _text_parts(below, under, _NO_ERROR)


_NO_ERROR: Final = Error(kind="")


# ── numbers ──────────────────────────────────────────────────────────────────────────────────


class WrittenNumber(NamedTuple):
    """A number as it is written."""

    sign: str
    zeros: str  # at the front, without a meaning
    whole: str
    point: str
    decimals: str
    power: str  # e7


def _written(text: str) -> WrittenNumber | None:
    match = _NUMBER.fullmatch(text)
    parts = match and WrittenNumber(*(group or "" for group in match.groups()))
    return parts if parts and (parts.whole or parts.decimals) else None


def _number_parts(true: WrittenNumber, read: WrittenNumber, error: Error) -> Iterator[Part]:
    """Yield signs, digits with their points, zeros that only the answer has, and powers of ten."""
    # Graders write 12.5 as 12.5000.
    places = max(len(true.decimals), len(read.decimals.rstrip("0")))
    digits = Digits(
        true.whole + true.decimals.ljust(places, "0"),
        read.whole + read.decimals[:places].ljust(places, "0"),
        len(true.whole),
        len(read.whole),
    )
    sign_same = true.sign == read.sign or "-" not in (true.sign, read.sign)
    yield "same" if sign_same else _change(true.sign, read.sign), true.sign, read.sign

    both = min(len(true.zeros), len(read.zeros))
    yield from (("same", "0" * both, "0" * both), ("same", true.zeros[both:], read.zeros[both:]))
    yield from _digit_parts(edits_of(digits, error.flags), true, read, digits)
    yield "same", "", read.decimals[places:]

    power_same = bool(true.power) == bool(read.power) and _exponent(true.power) == _exponent(read.power)
    yield "same" if power_same else _change(true.power, read.power), true.power, read.power


def _change(true: str, read: str) -> str:
    return "replaced" if true and read else "missing" if true else "extra"


def _exponent(power: str) -> str:
    """Return an exponent without a plus and zeros in front; as text, for it may have any length."""
    digits = power[1:].lstrip("+-").lstrip("0")
    return f"-{digits}" if digits and "-" in power else digits


def _digit_parts(
    edits: Sequence[Edit], true: WrittenNumber, read: WrittenNumber, digits: Digits
) -> Iterator[Part]:
    """Yield the digits that are written, and points where they are."""
    # Points stand side by side where they can; one that is not written stands behind the digits.
    true_range = _boundaries([i for _, i, _ in edits], digits.true_point)
    read_range = _boundaries([j for _, _, j in edits], digits.read_point)
    index = max(true_range.start, read_range.start)
    if index in true_range and index in read_range:
        alike = true.point == read.point or all(op == "same" for op, _, _ in edits[index:])
        point = "same" if alike else "missing" if true.point else "extra"
        points = {index: (point, true.point, read.point)}
    else:
        points = {
            true_range.start: ("moved", true.point, ""),
            read_range.start: ("moved", "", read.point),
        }

    true_text, read_text = true.whole + true.decimals, read.whole + read.decimals
    for n, (op, i, j) in enumerate((*edits, ("same", None, None))):
        if n in points:
            yield points[n]
        has, got = "" if i is None else true_text[i : i + 1], "" if j is None else read_text[j : j + 1]
        # A zero at the end that is not written is replaced by nothing.
        yield ("missing" if has else "extra") if op == "replaced" and not (has and got) else op, has, got


def _boundaries(indexes: Sequence[int | None], point: int) -> range:
    """Return between which edits so many digits are before and the others behind."""
    before = [n for n, index in enumerate(indexes, 1) if index is not None and index < point]
    behind = [n for n, index in enumerate(indexes) if index is not None and index >= point]
    return range(before[-1] if before else 0, (behind[0] if behind else len(indexes)) + 1)


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts that are something; neighbours of one sort are one where the same texts go on."""
    op, true, read = "", "", ""
    for next_op, next_true, next_read in parts:
        if not (next_true or next_read):
            continue
        if next_op == op and (bool(next_true), bool(next_read)) == (bool(true), bool(read)):
            true, read = true + next_true, read + next_read
            continue
        if op:
            yield op, true, read
        op, true, read = next_op, next_true, next_read
    if op:
        yield op, true, read
