"""Wrong digits at each place of the parts of a number, by length: counted of all answers that were read.

Digits are laid side by side as NUPA's digit match lays them: those of whole numbers from the last one on,
those of decimals from the first. A missing digit is wrong, a surplus one counts for nothing, nor does a sign.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, KindKey, entrant_of, kind_of
from asyncbench.stats.proportions import wilson
from asyncbench.store.schema import ENTRANT

PARTS: Final[Mapping[str, bool]] = {  # part of a number → whether its digits are counted from the right
    "integer": True,
    "decimals": False,
    "numerator": True,
    "denominator": True,
    "exponent": True,
}
MOST_BINS: Final = 24  # of lengths, and of places; more stand in bins of 2, 5, 10 or more

_GROUP: Final = ", ".join((*ENTRANT, "suite", "task", "variant", "representation"))
_NUMBER: Final = "-?[0-9]+([.][0-9]+(e[0-9]+)?|/[0-9]+)?"
_NAMES: Final = """CASE WHEN fraction THEN ['numerator', 'denominator', ''][number]
    ELSE ['integer', 'decimals', 'exponent'][number] END"""


def _bin_size(most: str) -> str:
    """Return in SQL how many lengths or places are one bin, where `most` is the greatest."""
    return f"""CASE WHEN {most} <= {MOST_BINS} THEN 1 WHEN {most} <= {2 * MOST_BINS} THEN 2
        WHEN {most} <= {5 * MOST_BINS} THEN 5 WHEN {most} <= {10 * MOST_BINS} THEN 10
        ELSE ceil({most} / {MOST_BINS})::INT END"""


# One row for each part of a right answer and what was read of it, the digit that is counted first in front.
# Decimals that an answer leaves out are zeros, unless NUPA asked: there 7 and 7.0 differ. A right answer may
# be written otherwise.
_READ: Final = f"""
WITH answered AS (
    SELECT {_GROUP}, length, repeat, contains(expected, '/') AS fraction,
        ltrim(translate(expected, '/e', '..'), '-') AS truth,
        CASE WHEN outcome = 'correct' THEN truth ELSE ltrim(translate(answer, '/e', '..'), '-') END AS answer
    FROM trials
    WHERE length > 0 AND answer IS NOT NULL AND regexp_full_match(expected, '{_NUMBER}')
        AND regexp_full_match(answer, '{_NUMBER}') AND contains(expected, '/') = contains(answer, '/')
        AND contains(expected, 'e') = contains(answer, 'e')
), parted AS (
    SELECT {_GROUP}, length, repeat, {_NAMES} AS part, split_part(truth, '.', number) AS truth,
        split_part(answer, '.', number) AS answer
    FROM answered, (SELECT unnest([1, 2, 3]) AS number)
    WHERE split_part(truth, '.', number) <> ''
)
SELECT {_GROUP}, length, repeat, part,
    CASE WHEN part = 'decimals' THEN truth ELSE reverse(truth) END AS truth,
    CASE WHEN part <> 'decimals' THEN reverse(answer)
        WHEN suite = 'nupa' THEN answer ELSE rpad(answer, length(truth)::INT, '0') END AS answer,
    {_bin_size("max(length) OVER kind")} AS length_bin,
    {_bin_size("max(length(truth)) OVER kind")} AS place_bin
FROM parted WINDOW kind AS (PARTITION BY suite, task, variant, representation, part)
"""  # noqa: S608  made of our own words alone

_CELL: Final = f"{_GROUP}, part, length_bin, place_bin, (length - 1) // length_bin AS nth_lengths"
_PLACE: Final = "(place - 1) // place_bin AS nth_places"
_SHARES: Final = f"""
WITH lengths AS (
    SELECT {_CELL}, length(truth) AS digits, count(*) AS answers, max(repeat) + 1 AS repeats
    FROM read_digits GROUP BY ALL
), reached AS (
    SELECT * EXCLUDE (digits), unnest(range(1, digits + 1)) AS place FROM lengths
), wrong AS (
    SELECT {_CELL}, truth, answer, unnest(range(1, length(truth) + 1)) AS place
    FROM read_digits WHERE truth <> answer
), counted AS (
    SELECT * EXCLUDE (truth, answer, place), {_PLACE}, count(*) AS wrong FROM wrong
    WHERE substr(truth, place, 1) <> substr(answer, place, 1) GROUP BY ALL
)
SELECT * EXCLUDE (wrong), coalesce(wrong, 0) AS wrong FROM (
    SELECT {_GROUP}, part, length_bin, place_bin, nth_lengths, {_PLACE}, sum(answers)::BIGINT AS digits,
        (sum(answers) FILTER (place = nth_places * place_bin + 1))::BIGINT AS answers,
        max(repeats) AS repeats
    FROM reached GROUP BY ALL
) LEFT JOIN counted USING ({_GROUP}, part, length_bin, place_bin, nth_lengths, nth_places)
ORDER BY ALL
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceShare:
    """How many digits are wrong at a place of a part, in answers to problems of a length."""

    entrant: Entrant
    kind: KindKey
    part: str  # of `PARTS`
    lengths: tuple[int, int]  # the first and the last: several where there are many
    places: tuple[int, int]  # likewise; 1 is where the digits of the part are counted from
    answers: int  # that were read, to problems whose right answer has a digit there
    digits: int  # of these right answers, there
    wrong: int  # of these digits
    repeats: int  # times that a problem was asked

    @property
    def share(self) -> float:
        """Wrong digits of all digits, in [0, 1]."""
        return self.wrong / self.digits

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, in which a problem counts once."""
        return wilson(self.share, self.answers / self.repeats)


def place_shares_in(views: FolderViews) -> list[PlaceShare]:
    """Return the wrong digits of a folder's answers, by entrant, kind, part, length and place.

    Raises:
        StoreError: results cannot be read.
    """
    views.keep("read_digits", _READ)
    return [
        PlaceShare(
            entrant=entrant_of(row),
            kind=kind_of(row),
            part=row["part"],
            lengths=_bin(row["nth_lengths"], row["length_bin"]),
            places=_bin(row["nth_places"], row["place_bin"]),
            **{name: row[name] for name in ("answers", "digits", "wrong", "repeats")},
        )
        for row in views.rows(_SHARES)
    ]


def _bin(number: int, size: int) -> tuple[int, int]:
    """Return the first and the last length or place of a bin."""
    return number * size + 1, (number + 1) * size
