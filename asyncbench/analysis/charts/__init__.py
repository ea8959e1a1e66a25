"""Charts: which there are, their rows, and how they are drawn, for the page and for pictures alike."""

from asyncbench.analysis.charts.catalogue import CHARTS, Chart
from asyncbench.analysis.charts.drawing import drawn, spec_of, titled
from asyncbench.analysis.charts.metrics import METRICS, Metric
from asyncbench.analysis.charts.themes import THEMES

__all__ = ["CHARTS", "METRICS", "THEMES", "Chart", "Metric", "drawn", "spec_of", "titled"]
