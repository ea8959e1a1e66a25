"""The results folder. Each event is on disk before it counts, and becomes Parquet that anyone can read.

In: events of a run. Out: tables, snapshots, and what a folder already holds. Damage, locks, the merging of
parts, and copies of problem sets belong here.
"""

from asyncbench.store.books import Books as Books, known_costs as known_costs, spending_of as spending_of
from asyncbench.store.catalog import (
    failed_ids as failed_ids,
    iter_attempts as iter_attempts,
    iter_grades as iter_grades,
    iter_trials as iter_trials,
    known_trials as known_trials,
    patiently as patiently,
    read_attempts as read_attempts,
    read_grades as read_grades,
    read_lanes as read_lanes,
    read_skipped as read_skipped,
    read_steps as read_steps,
    read_trials as read_trials,
    right_ids as right_ids,
    steady as steady,
    texts as texts,
    together as together,
)
from asyncbench.store.checksums import check as check, stamp as stamp
from asyncbench.store.copying import FolderCopy as FolderCopy
from asyncbench.store.few_trials import beside as beside, narrowed as narrowed
from asyncbench.store.folder import Store as Store
from asyncbench.store.frames import (
    Frame as Frame,
    Paths as Paths,
    framed as framed,
    labels_of as labels_of,
    paths_of as paths_of,
)
from asyncbench.store.generation import Generation as Generation
from asyncbench.store.holdings import known_parts as known_parts
from asyncbench.store.id_set import (
    IdColumn as IdColumn,
    IdSet as IdSet,
    Numbers as Numbers,
    fingerprints as fingerprints,
    strung as strung,
)
from asyncbench.store.lock import (
    LOCK as LOCK,
    left_mark as left_mark,
    locked as locked,
    writer_of as writer_of,
)
from asyncbench.store.looking import take_snapshot as take_snapshot
from asyncbench.store.manifest import (
    IMPORTED as IMPORTED,
    RECORDED as RECORDED,
    SWEEP_FILE as SWEEP_FILE,
    WORKERS as WORKERS,
    Manifest as Manifest,
    check_owner as check_owner,
    check_sweep_file as check_sweep_file,
    claim_folder as claim_folder,
    folder_of_sweep_file as folder_of_sweep_file,
    folders_of as folders_of,
    is_partial as is_partial,
    is_results_folder as is_results_folder,
    joined_recordings as joined_recordings,
    joined_workers as joined_workers,
    kept_sweep_file as kept_sweep_file,
    planned as planned,
    planned_aliases as planned_aliases,
    read_manifest as read_manifest,
    simulated_note as simulated_note,
    worker_folders as worker_folders,
    worker_hosts as worker_hosts,
    workers_folder as workers_folder,
    write_sweep_file as write_sweep_file,
)
from asyncbench.store.merging import JoinedFolders as JoinedFolders, join_folders as join_folders
from asyncbench.store.parts import (
    TEMPORARY as TEMPORARY,
    Part as Part,
    scanned as scanned,
    with_codes as with_codes,
)
from asyncbench.store.problem_copies import (
    COPY_SCHEMA as COPY_SCHEMA,
    copies as copies,
    iter_problems as iter_problems,
    read_problems as read_problems,
)
from asyncbench.store.rows import encode_json as encode_json
from asyncbench.store.salvage import Salvage as Salvage
from asyncbench.store.schema import (
    AT_REST as AT_REST,
    CELL as CELL,
    ENTRANT as ENTRANT,
    GRADES as GRADES,
    LIMITS as LIMITS,
    LOST as LOST,
    OF_THE_TRIAL as OF_THE_TRIAL,
    PARTITIONED_BY as PARTITIONED_BY,
    SCHEMAS as SCHEMAS,
    WAITS as WAITS,
)
from asyncbench.store.sealing import groups_of as groups_of, without_rows as without_rows
from asyncbench.store.segment import (
    QUARANTINE as QUARANTINE,
    Damage as Damage,
    Segment as Segment,
    head_of as head_of,
    name_of as name_of,
    number_of as number_of,
    payloads as payloads,
    segments as segments,
)
from asyncbench.store.snapshot import (
    LOOKS as LOOKS,
    MANY_ROWS as MANY_ROWS,
    Filters as Filters,
    MovedError as MovedError,
    Snapshot as Snapshot,
)
from asyncbench.store.spending import (
    KnownCosts as KnownCosts,
    Spending as Spending,
    UnknownCost as UnknownCost,
)
from asyncbench.store.status import (
    ModelCounts as ModelCounts,
    TrialCounts as TrialCounts,
    Upkeep as Upkeep,
    read_upkeep as read_upkeep,
    trial_counts as trial_counts,
)
from asyncbench.store.verify import (
    FolderFinding as FolderFinding,
    Verified as Verified,
    verify_folder as verify_folder,
)
