"""Charts: which there are, their rows, and how they are drawn, for the page and for pictures alike."""

from asyncbench.charts.catalogue import CHARTS, Chart
from asyncbench.charts.drawing import drawn, spec_of, titled
from asyncbench.charts.themes import THEMES
from asyncbench.results.metrics import METRICS, Metric

__all__ = ["CHARTS", "METRICS", "THEMES", "Chart", "Metric", "drawn", "spec_of", "titled"]
