"""Models that were asked in batches of their providers, in the words of reports."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.records import BATCH

OTHER_LATENCY: Final = "Latency is that of the calls in real time: a request of a batch has none."


BatchUse = Mapping[str, Any]  # Any: a model, its requests in batches, and its calls, these among them


def batch_uses(views: FolderViews) -> list[dict[str, Any]]:
    """Return the models that were asked in batches of their providers, by name."""
    return views.rows(
        f"SELECT model, count(*) FILTER (mode = '{BATCH}') AS requests, count(*) AS calls FROM attempts "  # noqa: S608  a word of ours
        "GROUP BY model HAVING requests > 0 ORDER BY model"
    )


def batch_notes(uses: Iterable[BatchUse], then: str) -> list[str]:
    """Return a sentence on which models were asked in batches and what that means; none without any.

    Args:
        uses: of the models of a folder.
        then: what a report leaves out for it.
    """
    phrases = [
        f"{model} ({'all ' * (requests == calls)}{requests:,}"
        f"{f' of {calls:,}' * (requests < calls)} requests)"
        for model, requests, calls in (use.values() for use in uses)
    ]
    return [f"Asked in batches: {', '.join(phrases)}. {then}"] if phrases else []
