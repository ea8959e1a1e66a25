"""The fewest edits that turn one text into another: replaced, missing, extra, or two neighbours swapped.

The optimal string alignment distance (Damerau–Levenshtein in which no character is edited twice), with the
edits that make it. Its time grows with the product of both lengths, so common ends are taken off first, and
of what is too long only those ends are told.
"""

from collections.abc import Iterator
from typing import Final

from asyncbench.results.anatomy.edits import same_at_end, same_at_start

MOST_PAIRS: Final = 10_000  # of a character of one text with one of the other

# what it is, and the place in either text; None: no character of it
Edit = tuple[str, int | None, int | None]


def fewest_edits(true: str, read: str) -> list[Edit]:
    """Return what every character of both texts is, in their order: `same` or an edit.

    >>> [what for what, _, _ in fewest_edits("1234", "1324")]
    ['same', 'swapped', 'swapped', 'same']
    """
    front, back = common_ends(true, read)
    last, end = len(true) - back, len(read) - back
    if (last - front) * (end - front) > MOST_PAIRS:
        middle = side_by_side(front, last, front, end)
    else:
        middle = _walked(true[front:last], read[front:end], front)
    return [
        *(("same", place, place) for place in range(front)),
        *middle,
        *(("same", last + step, end + step) for step in range(back)),
    ]


def common_ends(true: str, read: str) -> tuple[int, int]:
    """Return how many characters both begin with, and how many of the others both end with."""
    front = same_at_start(true, read)
    return front, min(same_at_end(true, read), min(len(true), len(read)) - front)


def side_by_side(first: int, last: int, start: int, end: int) -> list[Edit]:
    """Return characters replaced by those from start to end; what is left over is missing or extra."""
    both = min(last - first, end - start)
    return [
        *(("replaced", first + step, start + step) for step in range(both)),
        *(("missing", place, None) for place in range(first + both, last)),
        *(("extra", None, place) for place in range(start + both, end)),
    ]


def _walked(true: str, read: str, at: int) -> list[Edit]:
    """Return the edits of texts that begin at a place, found from their ends back."""
    return [
        (what, i if i is None else i + at, j if j is None else j + at)
        for what, i, j in reversed(list(_backwards(true, read, _costs(true, read))))
    ]


def _costs(true: str, read: str) -> list[list[int]]:
    """Return the distance of the first i characters of one text from the first j of the other, by i and j."""
    rows = [list(range(len(read) + 1))]
    for i, one in enumerate(true, 1):
        above, row = rows[-1], [i]
        for j, other in enumerate(read):
            if one == other:
                cost = above[j]
            else:
                cost = 1 + min(above[j], above[j + 1], row[j])
                if i > 1 and j and one == read[j - 1] and true[i - 2] == other:
                    cost = min(cost, rows[-2][j - 1] + 1)
            row.append(cost)
        rows.append(row)
    return rows


def _backwards(true: str, read: str, costs: list[list[int]]) -> Iterator[Edit]:
    i, j = len(true), len(read)
    while i and j:
        cost = costs[i][j]
        if true[i - 1] == read[j - 1]:
            i, j = i - 1, j - 1
            yield "same", i, j
        elif i > 1 and j > 1 and _crossed(true, read, i, j) and cost == costs[i - 2][j - 2] + 1:
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
    yield from (("missing", place, None) for place in reversed(range(i)))
    yield from (("extra", None, place) for place in reversed(range(j)))


def _crossed(true: str, read: str, i: int, j: int) -> bool:
    return true[i - 1] == read[j - 2] and true[i - 2] == read[j - 1]
