"""The reports of a results folder, one module for each style.

In: a results folder. Out: text, Markdown, LaTeX or JSON, made of notes and tables.
"""

from asyncbench.reports.anatomy_report import AnatomyReport as AnatomyReport, anatomy_on as anatomy_on
from asyncbench.reports.compare import compare_on as compare_on
from asyncbench.reports.cost import (
    CostReport as CostReport,
    cost_report_of as cost_report_of,
    cost_report_on as cost_report_on,
    fine as fine,
)
from asyncbench.reports.following import follow_status as follow_status
from asyncbench.reports.heatmap import accuracy_maps_on as accuracy_maps_on
from asyncbench.reports.kind_rankings import (
    KindRanking as KindRanking,
    KindStanding as KindStanding,
    rankings_by_kind as rankings_by_kind,
)
from asyncbench.reports.load import load_report_of as load_report_of, load_report_on as load_report_on
from asyncbench.reports.morning import morning_on as morning_on
from asyncbench.reports.overview import report_on as report_on
from asyncbench.reports.problem_file import inspect_problems as inspect_problems
from asyncbench.reports.providers import (
    Providers as Providers,
    providers_of as providers_of,
    providers_on as providers_on,
)
from asyncbench.reports.quota import (
    LimitUse as LimitUse,
    QuotaReport as QuotaReport,
    limits_over_time as limits_over_time,
    quota_of as quota_of,
    quota_report_on as quota_report_on,
)
from asyncbench.reports.rankings import PairLine as PairLine, Ranking as Ranking, Standing as Standing
from asyncbench.reports.regrading import regrade_report as regrade_report
from asyncbench.reports.standings import (
    ALONE as ALONE,
    REPEATED as REPEATED,
    Standings as Standings,
    outcomes_of as outcomes_of,
    over as over,
    standing_mapping as standing_mapping,
    standings_of as standings_of,
    standings_on as standings_on,
    unranked as unranked,
)
from asyncbench.reports.status import Status as Status, status_of as status_of
from asyncbench.reports.styles import DRAWN as DRAWN, report as report
from asyncbench.reports.verifying import health_of as health_of
