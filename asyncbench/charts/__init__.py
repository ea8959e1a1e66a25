"""The charts: which there are, their rows, and how they are drawn.

In: counts and reports of a results folder. Out: Vega specifications for the page, and picture files.
"""

from asyncbench.charts.breaks import (
    KindCurve as KindCurve,
    break_rows as break_rows,
    half_rows as half_rows,
    kind_curves as kind_curves,
)
from asyncbench.charts.catalogue import CHARTS as CHARTS, ONLY_FIGURES as ONLY_FIGURES, Chart as Chart
from asyncbench.charts.drawing import drawn as drawn, spec_of as spec_of, titled as titled
from asyncbench.charts.dressing import MOST_LIT as MOST_LIT, columnar as columnar, dressed as dressed
from asyncbench.charts.error_rows import (
    error_kind_rows as error_kind_rows,
    examined_note as examined_note,
    outcome_rows as outcome_rows,
    place_rows as place_rows,
)
from asyncbench.charts.figure_files import write_figures as write_figures
from asyncbench.charts.frontier import (
    UNLIKE as UNLIKE,
    frontier_cost as frontier_cost,
    frontier_note as frontier_note,
    frontier_reasoning as frontier_reasoning,
    spent_rows as spent_rows,
)
from asyncbench.charts.heat import (
    heat_rows as heat_rows,
    length_rows as length_rows,
    placed_cells as placed_cells,
    range_in as range_in,
)
from asyncbench.charts.load_rows import rows_of_loads as rows_of_loads, uncounted_note as uncounted_note
from asyncbench.charts.standing_rows import dot_rows as dot_rows, pair_rows as pair_rows
from asyncbench.charts.themes import (
    OUTCOME_COLOURS as OUTCOME_COLOURS,
    THEMES as THEMES,
    colours_of as colours_of,
)
from asyncbench.charts.time_rows import (
    failure_rows as failure_rows,
    limit_rows as limit_rows,
    minute_rows as minute_rows,
    times_rows as times_rows,
)
from asyncbench.results import METRICS as METRICS, Metric as Metric
