"""The charts: which there are, their rows, and how they are drawn.

In: counts and reports of a results folder. Out: Vega specifications for the page, and picture files.
"""

from asyncbench.charts.catalogue import CHARTS, Chart
from asyncbench.charts.drawing import drawn, spec_of, titled
from asyncbench.charts.pictures import write_figures
from asyncbench.charts.rows import pair_rows
from asyncbench.charts.themes import OUTCOME_COLOURS, THEMES
from asyncbench.charts.time_rows import latency_rows, quota_rows, throughput_rows
from asyncbench.results import METRICS, Metric

__all__ = [
    "CHARTS",
    "METRICS",
    "OUTCOME_COLOURS",
    "THEMES",
    "Chart",
    "Metric",
    "drawn",
    "latency_rows",
    "pair_rows",
    "quota_rows",
    "spec_of",
    "throughput_rows",
    "titled",
    "write_figures",
]
