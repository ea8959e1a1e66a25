"""The reports of a results folder, one module for each style.

In: a results folder. Out: text, Markdown, LaTeX or JSON, made of notes and tables.
"""

from asyncbench.reports.anatomy_report import AnatomyReport, anatomy_on
from asyncbench.reports.compare import compare_on
from asyncbench.reports.cost import cost_report_on, fine
from asyncbench.reports.following import follow_status
from asyncbench.reports.heatmap import accuracy_maps_on
from asyncbench.reports.morning import morning_on
from asyncbench.reports.overview import report_on
from asyncbench.reports.quota import LimitUse, QuotaReport, quota_report_on
from asyncbench.reports.rankings import PairLine, Ranking, Standing
from asyncbench.reports.regrading import regrade_report
from asyncbench.reports.standings import (
    ALONE,
    PLACES,
    SKIPPED,
    Standings,
    outcomes_of,
    over,
    standing_mapping,
    standings_on,
    unranked,
)
from asyncbench.reports.status import status_of
from asyncbench.reports.styles import report
from asyncbench.reports.verifying import health_of

__all__ = [
    "ALONE",
    "PLACES",
    "SKIPPED",
    "AnatomyReport",
    "LimitUse",
    "PairLine",
    "QuotaReport",
    "Ranking",
    "Standing",
    "Standings",
    "accuracy_maps_on",
    "anatomy_on",
    "compare_on",
    "cost_report_on",
    "fine",
    "follow_status",
    "health_of",
    "morning_on",
    "outcomes_of",
    "over",
    "quota_report_on",
    "regrade_report",
    "report",
    "report_on",
    "standing_mapping",
    "standings_on",
    "status_of",
    "unranked",
]
