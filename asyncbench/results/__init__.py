"""Reading a results folder: counts, pairs, calls and costs. Numbers only, no tables.

In: a results folder. Out: records and Arrow tables that reports, charts and the page show.
"""

from asyncbench.results.asked import (
    Asked as Asked,
    KindKey as KindKey,
    NamedEntrant as NamedEntrant,
    NamedKind as NamedKind,
    asked_in as asked_in,
    entrants_in as entrants_in,
    kind_of as kind_of,
    kinds_in as kinds_in,
)
from asyncbench.results.by_worker import (
    WorkerLatency as WorkerLatency,
    WorkerUse as WorkerUse,
    worker_latencies as worker_latencies,
    worker_uses as worker_uses,
)
from asyncbench.results.calls import (
    PRICED as PRICED,
    TOKEN_KINDS as TOKEN_KINDS,
    CallPrices as CallPrices,
    bound_of as bound_of,
    joined as joined,
    keep_calls as keep_calls,
    whole as whole,
)
from asyncbench.results.cells import (
    COUNTS as COUNTS,
    METRICS as METRICS,
    SUMS as SUMS,
    Metric as Metric,
    cells_in as cells_in,
    repeats_of as repeats_of,
    summed as summed,
)
from asyncbench.results.cost_counts import (
    CELL_KEYS as CELL_KEYS,
    OK_STATUS as OK_STATUS,
    CallCosts as CallCosts,
    CostKey as CostKey,
    UnknownCosts as UnknownCosts,
    Untold as Untold,
    call_costs as call_costs,
    unknown_by_cause as unknown_by_cause,
    untold_in as untold_in,
)
from asyncbench.results.endpoints import (
    EndpointFigures as EndpointFigures,
    HourFigures as HourFigures,
    endpoints_in as endpoints_in,
)
from asyncbench.results.highest_rate import HighestRate as HighestRate, highest_rates as highest_rates
from asyncbench.results.load_steps import (
    PERCENTILES as PERCENTILES,
    TIME_KINDS as TIME_KINDS,
    CallTimes as CallTimes,
    StepFigures as StepFigures,
    steps_in as steps_in,
)
from asyncbench.results.minutes import (
    SHARES as SHARES,
    TIMED as TIMED,
    CallLoad as CallLoad,
    FailedCalls as FailedCalls,
    Minute as Minute,
    TimesOfCalls as TimesOfCalls,
    call_load as call_load,
    failed_calls as failed_calls,
    minutes_of as minutes_of,
    times_of_calls as times_of_calls,
)
from asyncbench.results.names import (
    Entrant as Entrant,
    finest as finest,
    in_order as in_order,
    names_of as names_of,
    short_names as short_names,
    shortened as shortened,
    tasks_shown as tasks_shown,
    told_apart as told_apart,
)
from asyncbench.results.notes import (
    OTHER_LATENCY as OTHER_LATENCY,
    BatchUse as BatchUse,
    FolderReport as FolderReport,
    Graded as Graded,
    Nothing as Nothing,
    NothingToShowError as NothingToShowError,
    ReportOfChosen as ReportOfChosen,
    batch_notes as batch_notes,
    batch_uses as batch_uses,
    graded_by as graded_by,
    graders_of as graders_of,
    headline_graders as headline_graders,
    left_out_at_import as left_out_at_import,
    left_out_of as left_out_of,
    lost_briefly as lost_briefly,
    lost_most as lost_most,
    lost_notes as lost_notes,
    mixtures as mixtures,
    no_trials as no_trials,
    note_of_simulated as note_of_simulated,
    of_chosen as of_chosen,
    simulated_by as simulated_by,
    simulated_note_of as simulated_note_of,
)
from asyncbench.results.pairing import (
    ANSWERS as ANSWERS,
    Bits as Bits,
    Ended as Ended,
    Marked as Marked,
    Marks as Marks,
    ModelPair as ModelPair,
    bits_by_kind as bits_by_kind,
    difference_interval as difference_interval,
    marked as marked,
    marks_in as marks_in,
    pair as pair,
    places as places,
    read_model as read_model,
    skipped_problems as skipped_problems,
)
from asyncbench.results.repricing import (
    ATTEMPT_COLUMNS as ATTEMPT_COLUMNS,
    TRIAL_COLUMNS as TRIAL_COLUMNS,
    Unpriced as Unpriced,
    repriced as repriced,
)
from asyncbench.results.spent import (
    EntrantSpending as EntrantSpending,
    spending_by_entrant as spending_by_entrant,
)
from asyncbench.results.stopped_cells import (
    STOPPED_MARK as STOPPED_MARK,
    Skips as Skips,
    StoppedCell as StoppedCell,
    held as held,
    keep_skips as keep_skips,
    lapsed_note as lapsed_note,
    stopped_cells_in as stopped_cells_in,
    stopped_note as stopped_note,
    stopped_sheet as stopped_sheet,
)
from asyncbench.results.under_load import (
    StepAnswers as StepAnswers,
    answers_by_step as answers_by_step,
    notes_under_load as notes_under_load,
)
from asyncbench.results.votes import (
    keep_votes as keep_votes,
    votes_on as votes_on,
)
