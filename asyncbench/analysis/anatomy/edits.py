"""Edits between two texts: one slip, a missing end, or the fewest edits."""

from collections import defaultdict
from collections.abc import Iterator
from operator import ne
from typing import Final


def same_at_start(left: str, right: str) -> int:
    """Return how many characters both begin with."""
    for i, pair in enumerate(zip(left, right, strict=False)):
        if pair[0] != pair[1]:
            return i
    return min(len(left), len(right))


def slip(true: str, read: str) -> str | None:
    """Return the one slip that turns `true` into `read`, or None if there is none or they are equal.

    It is neighbours_swapped, two_swapped, one_doubled, one_dropped, one_replaced or one_added, in linear
    time. Two that are swapped and no neighbours are Verhoeff's jump transposition (1969, Error Detecting
    Decimal Codes), over any distance.
    """
    longer = len(read) - len(true)
    if abs(longer) > 1 or true == read:
        return None
    front = same_at_start(true, read)
    if longer == 1:
        if true[front:] != read[front + 1 :]:
            return None
        return "one_doubled" if front and read[front] == true[front - 1] else "one_added"
    if longer == -1:
        return "one_dropped" if true[front + 1 :] == read[front:] else None
    if true[front + 1 :] == read[front + 1 :]:
        return "one_replaced"

    # Two swapped: what differs are the characters at two places, exchanged.
    last = len(true) - 1 - same_at_end(true, read)
    exchanged = (true[front], true[last]) == (read[last], read[front])
    if not exchanged or true[front + 1 : last] != read[front + 1 : last]:
        return None
    return "neighbours_swapped" if last == front + 1 else "two_swapped"


def same_at_end(left: str, right: str) -> int:
    """Return how many characters both end with."""
    return same_at_start(left[::-1], right[::-1])


def missing_end(true: str, read: str) -> str | None:
    """Return the end of `true` that is missing in `read`: leading_missing, trailing_missing or None."""
    if not read or len(read) >= len(true):
        return None
    if true.endswith(read):
        return "leading_missing"
    return "trailing_missing" if true.startswith(read) else None


def wrong_run(true: str, read: str) -> str | None:
    """Return where the wrong characters stand, or None if none or more than half are wrong.

    Of texts of equal length: first_, last_, middle_ or scattered_digits_wrong. Else digits_missing or
    digits_extra, where both ends are right and make up half of the longer text.
    """
    front, back = common_ends(true, read)
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


# ── fewest edits ─────────────────────────────────────────────────────────────────────────────────
# That is the optimal string alignment (Damerau–Levenshtein in which no character is edited twice). Its
# cost is found in one pass, a bit for each character; then only what can be part of it is looked at.


MOST: Final = 400  # characters between the common ends; of more of them it is told that they are others
MOST_PAIRS: Final = 20_000  # of a character of one text with one of the other
SHORT: Final = 32  # characters; of more than these, half or more have to be right

# what it is, and the place in either text; None: no character of it
Edit = tuple[str, int | None, int | None]


def fewest_edits(true: str, read: str) -> list[Edit]:
    """Return `same` or an edit for every character of both texts, in their order.

    >>> [what for what, _, _ in fewest_edits("1234", "1324")]
    ['same', 'swapped', 'swapped', 'same']
    """
    front, back = common_ends(true, read)
    last, end = len(true) - back, len(read) - back
    size = max(last, end) - front
    cost = distance(true[front:last], read[front:end]) if size <= MOST else size
    if (size > SHORT and 2 * cost > size) or size * (2 * cost + 1) > MOST_PAIRS:
        middle = side_by_side(front, last, front, end)
    else:
        inner_true, inner_read = true[front:last], read[front:end]
        edits = reversed(list(_backwards(inner_true, inner_read, _costs(inner_true, inner_read, cost))))
        middle = [
            (op, None if i is None else i + front, None if j is None else j + front) for op, i, j in edits
        ]
    return [
        *(("same", index, index) for index in range(front)),
        *middle,
        *(("same", last + step, end + step) for step in range(back)),
    ]


def common_ends(true: str, read: str) -> tuple[int, int]:
    """Return how many characters both begin with, and how many of the others both end with."""
    front = same_at_start(true, read)
    return front, min(same_at_end(true, read), min(len(true), len(read)) - front)


def distance(true: str, read: str) -> int:
    """Return how many edits are the fewest, by the bit-vector algorithm of Hyyrö (2003)."""
    every = (1 << len(true)) - 1
    places = defaultdict[str, int](int)  # character → where it stands, as bits
    for index, character in enumerate(true):
        places[character] |= 1 << index
    more, less = every, 0  # where a column of costs goes up by one, or down
    cost, diagonal, before = len(true), 0, 0
    for character in read:
        here = places[character]
        swapped = (((~diagonal & here) << 1) & before) & every
        diagonal = ((((here & more) + more) ^ more) | here | less | swapped) & every
        up, down = less | (every & ~(diagonal | more)), diagonal & more
        cost += (up >> (len(true) - 1)) - (down >> (len(true) - 1)) if true else 1
        up, down = (up << 1 | 1) & every, (down << 1) & every
        more, less, before = down | (every & ~(diagonal | up)), diagonal & up, here
    return cost


def side_by_side(first: int, last: int, start: int, end: int) -> list[Edit]:
    """Return characters replaced by those from start to end; what is left over is missing or extra."""
    both = min(last - first, end - start)
    return [
        *(("replaced", first + step, start + step) for step in range(both)),
        *(("missing", index, None) for index in range(first + both, last)),
        *(("extra", None, index) for index in range(start + both, end)),
    ]


def _costs(true: str, read: str, limit: int) -> list[list[int]]:
    """Return the cost of the first i characters of one text from the first j of the other, by i and j.

    Of places that are more than `limit` apart, it is only said that it is more.
    """
    beyond = len(true) + len(read)
    rows = [list(range(len(read) + 1))]
    for i, true_character in enumerate(true, 1):
        above, row = rows[-1], [beyond] * (len(read) + 1)
        row[0] = i
        for j in range(max(1, i - limit), min(len(read), i + limit) + 1):
            read_character = read[j - 1]
            if true_character == read_character:
                row[j] = above[j - 1]
                continue
            cost = 1 + min(above[j - 1], above[j], row[j - 1])
            if i > 1 and j > 1 and true_character == read[j - 2] and true[i - 2] == read_character:
                cost = min(cost, rows[-2][j - 2] + 1)
            row[j] = cost
        rows.append(row)
    return rows


def _backwards(true: str, read: str, costs: list[list[int]]) -> Iterator[Edit]:
    i, j = len(true), len(read)
    while i and j:
        cost = costs[i][j]
        if true[i - 1] == read[j - 1]:
            i, j = i - 1, j - 1
            yield "same", i, j
        elif (
            i > 1
            and j > 1
            and true[i - 2 : i] == read[j - 1] + read[j - 2]
            and cost == costs[i - 2][j - 2] + 1
        ):
            i, j = i - 2, j - 2
            yield "swapped", i + 1, j + 1
            yield "swapped", i, j
        elif cost == costs[i - 1][j - 1] + 1:
            i, j = i - 1, j - 1
            yield "replaced", i, j
        elif cost == costs[i - 1][j] + 1:
            i -= 1
            yield "missing", i, None
        else:
            j -= 1
            yield "extra", None, j
    yield from (("missing", index, None) for index in reversed(range(i)))
    yield from (("extra", None, index) for index in reversed(range(j)))
