"""An answer laid beside the truth by the edit that explains it, for people to see what went wrong.

An answer of the kind one_dropped lacks one digit, and all others stand beside those that they are; where a
carry was forgotten, the digits that it changed are marked, and so on. Where no kind says what was done, it
is the fewest edits. Points stand beside each other, and zeros that mean nothing count for nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from asyncbench.analysis.anatomy.distance import Edit, common_ends
from asyncbench.analysis.anatomy.error import Error, anatomy
from asyncbench.analysis.anatomy.explaining import Digits, edits_of

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
        return list(_merged(_common_ends(expected, answer)))
    if right:
        return list(_merged(_of_right(expected, answer)))
    found = error or anatomy(expected, answer, answer_type=answer_type, task=task, operands=operands)
    return list(_merged(_parts(expected, answer, answer_type, found)))


def _parts(true: str, read: str, answer_type: str, error: Error) -> Iterator[Part]:
    if answer_type == "fraction" and true.count("/") == read.count("/") == 1:
        return _of_fractions(true, read, error)
    right, given = _written(true), _written(read)
    if answer_type == "text" or error.kind == "same_value" or not (right and given):
        return _of_texts(true, read, error)
    return _of_numbers(right, given, error)


def _of_right(true: str, read: str) -> list[Part]:
    """Return what is written alike, and zeros that one of both has; else all of it as one."""
    if "." in true and read.startswith(true) and not read[len(true) :].strip("0"):
        return [("same", true, true), ("same", "", read[len(true) :])]  # as graders write decimals
    right, given = _written(true), _written(read)
    parts = list(_of_numbers(right, given, _NO_ERROR)) if right and given else []
    return parts if parts and all(op == "same" for op, _, _ in parts) else [("same", true, read)]


def _common_ends(true: str, read: str) -> Iterator[Part]:
    front, back = common_ends(true, read)
    last, end = len(true) - back, len(read) - back
    yield "same", true[:front], read[:front]
    yield "replaced", true[front:last], read[front:end]
    yield "same", true[last:], read[end:]


def _of_texts(true: str, read: str, error: Error) -> Iterator[Part]:
    edits = edits_of(Digits(true, read, len(true), len(read)), error.flags, texts=True)
    for op, i, j in edits:
        yield op, "" if i is None else true[i], "" if j is None else read[j]


def _of_fractions(true: str, read: str, error: Error) -> Iterator[Part]:
    above, _, below = true.partition("/")
    over, _, under = read.partition("/")
    if error.kind == "reciprocal":
        yield from (("swapped", above, over), ("same", "/", "/"), ("swapped", below, under))
        return
    yield from _of_texts(above, over, _NO_ERROR)
    yield "same", "/", "/"
    yield from _of_texts(below, under, _NO_ERROR)


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
    found = _NUMBER.fullmatch(text)
    parts = found and WrittenNumber(*(part or "" for part in found.groups()))
    return parts if parts and (parts.whole or parts.decimals) else None


def _of_numbers(true: WrittenNumber, read: WrittenNumber, error: Error) -> Iterator[Part]:
    """Yield signs, digits with their points, zeros that only the answer has, and powers of ten."""
    # Graders write 12.5 as 12.5000.
    places = max(len(true.decimals), len(read.decimals.rstrip("0")))
    digits = Digits(
        true.whole + true.decimals.ljust(places, "0"),
        read.whole + read.decimals[:places].ljust(places, "0"),
        len(true.whole),
        len(read.whole),
    )
    yield _sign(true.sign, read.sign)
    both = min(len(true.zeros), len(read.zeros))
    yield from (("same", "0" * both, "0" * both), ("same", true.zeros[both:], read.zeros[both:]))
    yield from _with_points(edits_of(digits, error.flags), true, read, digits)
    yield "same", "", read.decimals[places:]
    yield _power(true.power, read.power)


def _sign(true: str, read: str) -> Part:
    if true == read or "-" not in (true, read):
        return "same", true, read
    return ("replaced" if true and read else "missing" if true else "extra"), true, read


def _power(true: str, read: str) -> Part:
    same = bool(true) == bool(read) and _exponent(true) == _exponent(read)
    return "same" if same else "replaced" if true and read else "missing" if true else "extra", true, read


def _exponent(power: str) -> str:
    """Return an exponent without a plus and zeros in front; as text, for it may have any length."""
    digits = power[1:].lstrip("+-").lstrip("0")
    return f"-{digits}" if digits and "-" in power else digits


def _with_points(
    edits: Sequence[Edit], true: WrittenNumber, read: WrittenNumber, digits: Digits
) -> Iterator[Part]:
    """Yield the digits that are written, and points where they are."""
    points = dict(_points(edits, true, read, digits))
    one, other = true.whole + true.decimals, read.whole + read.decimals
    for place, (op, i, j) in enumerate((*edits, ("same", None, None))):
        yield from points.get(place, ())
        has, got = "" if i is None else one[i : i + 1], "" if j is None else other[j : j + 1]
        # A zero at the end that is not written is replaced by nothing.
        yield ("missing" if has else "extra") if op == "replaced" and not (has and got) else op, has, got


def _points(
    edits: Sequence[Edit], true: WrittenNumber, read: WrittenNumber, digits: Digits
) -> Iterator[tuple[int, list[Part]]]:
    """Yield before which edits the points stand; one that is not written stands behind the digits."""
    here = _boundaries([i for _, i, _ in edits], digits.true_point)
    there = _boundaries([j for _, _, j in edits], digits.read_point)
    place = max(here.start, there.start)
    if place in here and place in there:
        rest = all(op == "same" for op, _, _ in edits[place:])
        alone = "same" if rest or true.point == read.point else "missing" if true.point else "extra"
        yield place, [(alone, true.point, read.point)]
    else:
        yield here.start, [("moved", true.point, "")]
        yield there.start, [("moved", "", read.point)]


def _boundaries(places: Sequence[int | None], point: int) -> range:
    """Return between which edits so many digits are before and the others behind."""
    before = [n for n, place in enumerate(places, 1) if place is not None and place < point]
    behind = [n for n, place in enumerate(places) if place is not None and place >= point]
    return range(before[-1] if before else 0, (behind[0] if behind else len(places)) + 1)


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts that are something; neighbours of one sort are one where the same texts go on."""
    op, true, read = "", "", ""
    for what, one, other in parts:
        if not (one or other):
            continue
        if what == op and (bool(one), bool(other)) == (bool(true), bool(read)):
            true, read = true + one, read + other
            continue
        if op:
            yield op, true, read
        op, true, read = what, one, other
    if op:
        yield op, true, read
