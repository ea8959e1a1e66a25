"""The block `time`: latency and throughput of calls, and the use of limits."""

from typing import Any

from asyncbench.charts import latency_rows, quota_rows, throughput_rows
from asyncbench.reports import quota_report_on
from asyncbench.results import asked_in, minutes_of, told_apart
from asyncbench.views import FolderViews

Values = dict[str, Any]  # Any: whatever JSON can hold


def time_block(views: FolderViews) -> Values:
    """Return how fast calls were answered, over time and in all."""
    names = {entrant.key: entrant.name for entrant in asked_in(views).entrants}
    shown, minutes = told_apart(names.values()), minutes_of(views, names)
    if not any(minute.p50_s is not None for minute in minutes):
        minutes = ()  # a recording: it tells when trials were finished, and nothing of calls
    return {
        "latency": latency_rows(minutes, shown),
        "throughput": throughput_rows(minutes, shown),
        "quota": quota_rows(quota_report_on(views.chosen).minutes),
    }
