"""How one text became another: by one slip of the pen, or by which of its ends are right."""

from operator import ne


def same_at_start(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    for i, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return i
    return min(len(one), len(other))


def slip(true: str, read: str) -> str | None:
    """Return the one slip that turns `true` into `read`; None: there is none, or they are equal.

    It is neighbours_swapped, two_swapped, one_doubled, one_dropped, one_replaced or one_added, in linear
    time. Two that are swapped and no neighbours are Verhoeff's jump transposition (1969, Error Detecting
    Decimal Codes), over any distance.
    """
    longer = len(read) - len(true)
    if abs(longer) > 1 or true == read:
        return None
    front = same_at_start(true, read)
    if longer == 1:
        return _added(true, read, front) if true[front:] == read[front + 1 :] else None
    if longer == -1:
        return "one_dropped" if true[front + 1 :] == read[front:] else None
    if true[front + 1 :] == read[front + 1 :]:
        return "one_replaced"
    return _swapped(true, read, front, len(true) - 1 - same_at_end(true, read))


def _swapped(true: str, read: str, first: int, last: int) -> str | None:
    """Return what swap it is, if what differs are the characters at two places, exchanged."""
    exchanged = (true[first], true[last]) == (read[last], read[first])
    if not exchanged or true[first + 1 : last] != read[first + 1 : last]:
        return None
    return "neighbours_swapped" if last == first + 1 else "two_swapped"


def _added(true: str, read: str, front: int) -> str:
    return "one_doubled" if front and read[front] == true[front - 1] else "one_added"


def same_at_end(one: str, other: str) -> int:
    """Return how many characters both end with."""
    return same_at_start(one[::-1], other[::-1])


def missing_end(true: str, read: str) -> str | None:
    """Return which end of `true` is missing in `read`: leading_missing, trailing_missing or None."""
    if not read or len(read) >= len(true):
        return None
    if true.endswith(read):
        return "leading_missing"
    return "trailing_missing" if true.startswith(read) else None


def wrong_run(true: str, read: str) -> str | None:
    """Return where the wrong characters stand of which at most half are wrong; None: more are, or none.

    Of texts of equal length: first_, last_, middle_ or scattered_digits_wrong. Else digits_missing or
    digits_extra, where both ends are right and make up half of the longer text.
    """
    front = same_at_start(true, read)
    back = min(same_at_end(true, read), min(len(true), len(read)) - front)
    if len(true) != len(read):
        half = 2 * (front + back) >= max(len(true), len(read)) and front and back
        return ("digits_extra" if len(read) > len(true) else "digits_missing") if half else None
    wrong = sum(map(ne, true, read))
    if not wrong or 2 * wrong > len(true):
        return None
    if front + back + wrong < len(true):
        return "scattered_digits_wrong"
    if not front or not back:
        return "last_digits_wrong" if front else "first_digits_wrong"
    return "middle_digits_wrong"
