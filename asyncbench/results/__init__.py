"""Reading a results folder: counts, pairs, calls and costs. Numbers only, no tables.

In: a results folder. Out: records and Arrow tables that reports, charts and the page show.
"""

from asyncbench.results.calls import PRICED, TOKEN_KINDS, CallPrices, bound_of, joined, keep_calls, whole
from asyncbench.results.cells import CELL_COLUMNS, COUNTS, GRADE_COLUMNS, SUMS, cells_of, cells_on
from asyncbench.results.cost_counts import (
    CELL_KEYS,
    OK_STATUS,
    CallCosts,
    CostKey,
    UnknownCosts,
    Untold,
    call_costs,
    unknown_by_cause,
    untold_in,
)
from asyncbench.results.entrants import Asked, in_order, names_of
from asyncbench.results.graders import Graded, graded_by, graders_of
from asyncbench.results.lost_replies import lost_briefly, lost_notes
from asyncbench.results.metrics import METRICS, Metric, repeats_of, summed
from asyncbench.results.minutes import Minute, minutes_of
from asyncbench.results.names import finest, shortened, tasks_shown, told_apart
from asyncbench.results.nothing_to_show import NothingToShowError, no_trials
from asyncbench.results.pairing import (
    PAIRING_COLUMNS,
    Bits,
    Ended,
    Marked,
    Marks,
    ModelPair,
    dealt_with,
    is_outcome,
    marked,
    pair,
    places,
    read_coded,
    read_model,
)
from asyncbench.results.repricing import ATTEMPT_COLUMNS, TRIAL_COLUMNS, Unpriced, repriced
from asyncbench.results.served_models import SERVED_COLUMNS, any_simulated, mixtures
from asyncbench.results.stopped_cells import (
    STOPPED_COLUMNS,
    STOPPED_MARK,
    StoppedCell,
    held,
    lapsed_note,
    skips_in,
    stopped_cells_of,
    stopped_note,
    stopped_sheet,
)
from asyncbench.results.unimported import left_out_at_import, left_out_of

__all__ = [
    "ATTEMPT_COLUMNS",
    "CELL_COLUMNS",
    "CELL_KEYS",
    "COUNTS",
    "GRADE_COLUMNS",
    "METRICS",
    "OK_STATUS",
    "PAIRING_COLUMNS",
    "PRICED",
    "SERVED_COLUMNS",
    "STOPPED_COLUMNS",
    "STOPPED_MARK",
    "SUMS",
    "TOKEN_KINDS",
    "TRIAL_COLUMNS",
    "Asked",
    "Bits",
    "CallCosts",
    "CallPrices",
    "CostKey",
    "Ended",
    "Graded",
    "Marked",
    "Marks",
    "Metric",
    "Minute",
    "ModelPair",
    "NothingToShowError",
    "StoppedCell",
    "UnknownCosts",
    "Unpriced",
    "Untold",
    "any_simulated",
    "bound_of",
    "call_costs",
    "cells_of",
    "cells_on",
    "dealt_with",
    "finest",
    "graded_by",
    "graders_of",
    "held",
    "in_order",
    "is_outcome",
    "joined",
    "keep_calls",
    "lapsed_note",
    "left_out_at_import",
    "left_out_of",
    "lost_briefly",
    "lost_notes",
    "marked",
    "minutes_of",
    "mixtures",
    "names_of",
    "no_trials",
    "pair",
    "places",
    "read_coded",
    "read_model",
    "repeats_of",
    "repriced",
    "shortened",
    "skips_in",
    "stopped_cells_of",
    "stopped_note",
    "stopped_sheet",
    "summed",
    "tasks_shown",
    "told_apart",
    "unknown_by_cause",
    "untold_in",
    "whole",
]
