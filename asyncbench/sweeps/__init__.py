"""The trials of a sweep that still have to be asked, and all checks before anything is spent.

In: a sweep, its problem sets and its folder. Out: trials in balanced order, and the bounds of its budgets.
Reuse and skipping belong here.
"""

from asyncbench.sweeps.asked_alike import (
    asked_by_steps as asked_by_steps,
    check_asked_alike as check_asked_alike,
)
from asyncbench.sweeps.belonging import (
    cautions_on_copy as cautions_on_copy,
    check_one_sweep as check_one_sweep,
    extended as extended,
    folder_begun as folder_begun,
)
from asyncbench.sweeps.budget_bounds import (
    ASKED as ASKED,
    check_budget as check_budget,
    held_models as held_models,
    most_for as most_for,
    most_of as most_of,
    most_usd_of as most_usd_of,
    named as named,
    named_before as named_before,
    open_ledger as open_ledger,
    priced as priced,
    unpriced as unpriced,
)
from asyncbench.sweeps.grading import corrected as corrected, graded as graded, outgraded as outgraded
from asyncbench.sweeps.modes import (
    by_server as by_server,
    check_servers as check_servers,
    has_mode_auto as has_mode_auto,
    in_their_modes as in_their_modes,
    why_in_real_time as why_in_real_time,
    within_s as within_s,
    without_batch_price as without_batch_price,
)
from asyncbench.sweeps.preflight import (
    HUB as HUB,
    cautions_on as cautions_on,
    check_conditions as check_conditions,
    check_replays as check_replays,
    check_sets as check_sets,
    chosen_models as chosen_models,
    keys_for as keys_for,
    open_files_for as open_files_for,
    open_sources as open_sources,
    raise_file_limit as raise_file_limit,
    read_env_file as read_env_file,
    recorded_by as recorded_by,
    secret_variables as secret_variables,
    sets_in_folder as sets_in_folder,
    sources_of as sources_of,
)
from asyncbench.sweeps.retry_room import Room as Room, check_longer as check_longer
from asyncbench.sweeps.reuse import Answers as Answers, check_reuse as check_reuse, take_over as take_over
from asyncbench.sweeps.skipping import (
    Before as Before,
    Needed as Needed,
    settle as settle,
    still_skipped as still_skipped,
    stopping_of as stopping_of,
    unsettled as unsettled,
)
from asyncbench.sweeps.trial_columns import (
    AskedSet as AskedSet,
    Closed as Closed,
    Slot as Slot,
    closed_trials as closed_trials,
    ids_of as ids_of,
    looked_up as looked_up,
    numbered as numbered,
    rows_within as rows_within,
)
from asyncbench.sweeps.trials import (
    CELL as CELL,
    Cell as Cell,
    asked_by_model as asked_by_model,
    asked_once as asked_once,
    cell_of as cell_of,
    places_of as places_of,
    planned as planned,
    planned_tasks as planned_tasks,
    trials_of as trials_of,
)
