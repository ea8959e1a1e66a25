"""What the repeats of a problem answered: how many are right, and how many give the same wrong answer."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.names import Entrant
from asyncbench.analysis.pairing import Bits, places
from asyncbench.stats.repeats import Votes

# Right answers are one, however they are written. Wrong ones are told apart as their grader read them.
_KEPT: Final = """
SELECT run, model, condition, place, turn, outcome = 'correct' AS is_right,
    CASE WHEN outcome <> 'correct' THEN answer END AS wrong_answer
FROM trials
    JOIN (SELECT DISTINCT problem_id, place FROM places) USING (problem_id)
    JOIN (SELECT repeat, row_number() OVER (ORDER BY repeat) - 1 AS turn
        FROM (SELECT DISTINCT repeat FROM answers)) USING (repeat)
"""
_VOTES: Final = """
WITH given AS (
    SELECT run, model, condition, place, is_right, wrong_answer, count(*) AS times
    FROM votes SEMI JOIN chosen USING (place, turn) GROUP BY ALL
), problems AS (
    SELECT run, model, condition, place, sum(times)::BIGINT AS asked,
        coalesce(sum(times) FILTER (is_right), 0)::BIGINT AS correct,
        coalesce(list(times ORDER BY times DESC) FILTER (wrong_answer IS NOT NULL), []) AS wrong
    FROM given GROUP BY run, model, condition, place
)
SELECT run, model, condition, asked, correct, wrong, count(*) AS problems FROM problems GROUP BY ALL
"""


def keep_votes(views: FolderViews) -> None:
    """Read the answers of all trials once, for `votes_on`; `marked` has to be called before."""
    views.keep("votes", _KEPT)


def votes_on(views: FolderViews, asked: Sequence[Bits]) -> Mapping[Entrant, Mapping[Votes, int]]:
    """Return how many of the problems, by turn, have which votes, for everybody who answered them.

    `asked`: bits of problems by turn, as `marked` has them.
    """
    chosen = [(place, turn) for turn, bits in enumerate(asked) for place in places(bits)]
    columns = zip(*chosen, strict=True) if chosen else ([], [])
    views.put("chosen", pa.table(dict(zip(("place", "turn"), map(pa.array, columns), strict=True))))
    found = defaultdict[Entrant, Counter[Votes]](Counter)
    for run, model, condition, times, right, wrong, problems in map(dict.values, views.rows(_VOTES)):
        found[run, model, condition][Votes(times, right, tuple(wrong))] += problems
    return found
