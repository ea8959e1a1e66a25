"""Which wrong answers of a folder are examined: a million trials may hold half a million of them.

The rule: of each group (run, model, condition, task as it is asked) the first by trial_id. That is a hash, so
it is as good as a draw, and the same on every machine.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.records import Outcome
from asyncbench.store import CELL

GROUP: Final = tuple(name for name in CELL if name != "length")
EXAMINED: Final = (Outcome.WRONG.value, Outcome.NO_ANSWER.value)
MOST_OF_A_GROUP: Final = 500
MOST_IN_ALL: Final = 30_000
LEAST_OF_A_GROUP: Final = 20

Group = tuple[str, ...]  # the values of GROUP


def group_of(row: Mapping[str, Any]) -> Group:
    """Return the group of a row that has its columns."""
    return tuple(row[name] for name in GROUP)


def wrong_of(trials: pa.Table) -> pa.Table:
    """Return the trials whose answer is wrong or could not be read."""
    return trials.filter(pc.field("outcome").isin(EXAMINED))


def most_of_a_group(groups: int) -> int:
    """Return how many answers of each of so many groups are examined."""
    return min(MOST_OF_A_GROUP, max(LEAST_OF_A_GROUP, MOST_IN_ALL // max(1, groups)))


def chosen(wrong: pa.Table) -> "pa.ChunkedArray[pa.StringScalar]":
    """Return the trial ids of the answers to examine; `wrong` has the columns trial_id and GROUP."""
    ordered = wrong.select(["trial_id", *GROUP]).sort_by("trial_id")
    numbered = ordered.append_column("place", pa.array(range(len(ordered)), pa.int64()))
    groups = numbered.group_by(list(GROUP), use_threads=False).aggregate([("place", "list")])
    most = most_of_a_group(len(groups))
    places = sorted(place for those in groups["place_list"].to_pylist() for place in (those or [])[:most])
    return ordered["trial_id"].take(pa.array(places, pa.int64()))
