"""What was found, in sentences written from the statistics."""

from collections.abc import Sequence

from asyncbench.charts import KindCurve
from asyncbench.reports import Standings
from asyncbench.results import Asked


def finding_of(standings: Standings, asked: Asked, curves: Sequence[KindCurve]) -> list[str]:  # noqa: ARG001  to come
    """Return at most four sentences: who leads, who is tied, what is hardest, what was lost."""
    return []
