"""The charts: which there are, their rows, and how they are drawn.

In: counts and reports of a results folder. Out: Vega specifications for the page, and picture files.
"""

from asyncbench.charts.breaks import (
    KindCurve as KindCurve,
    break_rows as break_rows,
    half_rows as half_rows,
    kind_curves as kind_curves,
)
from asyncbench.charts.catalogue import CHARTS as CHARTS, Chart as Chart
from asyncbench.charts.drawing import drawn as drawn, spec_of as spec_of, titled as titled
from asyncbench.charts.dressing import MOST_LIT as MOST_LIT, dressed as dressed
from asyncbench.charts.heat import (
    heat_rows as heat_rows,
    length_rows as length_rows,
    range_in as range_in,
)
from asyncbench.charts.load_rows import rows_of_loads as rows_of_loads, uncounted_note as uncounted_note
from asyncbench.charts.pictures import write_figures as write_figures
from asyncbench.charts.standing_rows import dot_rows as dot_rows, pair_rows as pair_rows
from asyncbench.charts.themes import (
    OUTCOME_COLOURS as OUTCOME_COLOURS,
    THEMES as THEMES,
    colours_of as colours_of,
)
from asyncbench.charts.time_rows import (
    latency_rows as latency_rows,
    quota_rows as quota_rows,
    throughput_rows as throughput_rows,
)
from asyncbench.results import METRICS as METRICS, Metric as Metric
