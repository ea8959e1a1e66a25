"""The specification of each chart by its name."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from asyncbench.analysis.cells import METRICS, Metric
from asyncbench.page.charts.accuracy_specs import ACCURACY_CHARTS
from asyncbench.page.charts.error_specs import ERROR_CHARTS
from asyncbench.page.charts.specs import TITLE, Spec
from asyncbench.page.charts.time_specs import TIME_CHARTS

_CHARTS: Final[Mapping[str, Callable[[], Any]]] = {**ERROR_CHARTS, **TIME_CHARTS}  # Any: a chart of altair


def spec(name: str, metric: str) -> Spec:
    """Return the specification of a chart; `metric` counts for those that show one of several."""
    wanted = METRICS[metric]
    alike = Metric(title=TITLE, unit=wanted.unit.partition(" ")[0], over=(), under=(), share=wanted.share)
    title = f"{wanted.title}, {wanted.unit}" if wanted.unit == "seconds" else wanted.title
    titled: Spec = _titled(_built(name, alike), title)
    return titled


@cache
def _built(name: str, metric: Metric) -> Spec:
    """Return a chart of metrics that differ in nothing but their title: altair takes its time for each."""
    drawn = _CHARTS[name]() if name in _CHARTS else ACCURACY_CHARTS[name](metric)
    chart_spec: Spec = drawn.to_dict()
    chart_spec.pop("config", None)  # altair's own theme
    return chart_spec


def _titled(node: Any, title: str) -> Any:  # Any: a part of a specification
    """Return a copy with the title in its place."""
    if isinstance(node, dict):
        return {name: _titled(value, title) for name, value in node.items()}
    if isinstance(node, list):
        return [_titled(value, title) for value in node]
    return title if node == TITLE else node
