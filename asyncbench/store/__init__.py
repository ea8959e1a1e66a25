"""The results folder: an event is durable before it counts, and ends up as Parquet that anyone can read.

In: events of a run. Out: tables, snapshots, and what a folder already holds. Damage, locks, merging of parts
and the copies of problem sets belong here.
"""

from asyncbench.store.books import Books, spending_of
from asyncbench.store.catalog import (
    failed_ids,
    iter_attempts,
    iter_grades,
    iter_trials,
    known_trials,
    patiently,
    read_attempts,
    read_grades,
    read_lanes,
    read_skipped,
    read_trials,
    right_ids,
    steady,
    texts,
)
from asyncbench.store.folder import Store
from asyncbench.store.generation import Generation
from asyncbench.store.lock import LOCK, left_mark, locked, writer_of
from asyncbench.store.manifest import (
    IMPORTED,
    SWEEP_FILE,
    Manifest,
    check_owner,
    check_sweep_file,
    claim_folder,
    is_results_folder,
    kept_sweep_file,
    planned,
    read_manifest,
    write_sweep_file,
)
from asyncbench.store.merging import JoinedFolders, join_folders
from asyncbench.store.parts import TEMPORARY, Part, scanned
from asyncbench.store.problem_copies import COPY_SCHEMA, copies, iter_problems, read_problems
from asyncbench.store.rows import encode_json
from asyncbench.store.salvage import Salvage
from asyncbench.store.schema import (
    CELL,
    ENTRANT,
    GRADES,
    LIMITS,
    LOST,
    OF_THE_TRIAL,
    PARTITIONED_BY,
    SCHEMAS,
    WAITS,
)
from asyncbench.store.sealing import groups_of
from asyncbench.store.segment import QUARANTINE
from asyncbench.store.snapshot import LOOKS, Filters, MovedError, Snapshot, take_snapshot
from asyncbench.store.spending import Spending, UnknownCost
from asyncbench.store.status import ModelCounts, TrialCounts, Upkeep, read_upkeep, trial_counts
from asyncbench.store.verify import FolderFinding, Verified, verify_folder

__all__ = [
    "CELL",
    "COPY_SCHEMA",
    "ENTRANT",
    "GRADES",
    "IMPORTED",
    "LIMITS",
    "LOCK",
    "LOOKS",
    "LOST",
    "OF_THE_TRIAL",
    "PARTITIONED_BY",
    "QUARANTINE",
    "SCHEMAS",
    "SWEEP_FILE",
    "TEMPORARY",
    "WAITS",
    "Books",
    "Filters",
    "FolderFinding",
    "Generation",
    "JoinedFolders",
    "Manifest",
    "ModelCounts",
    "MovedError",
    "Part",
    "Salvage",
    "Snapshot",
    "Spending",
    "Store",
    "TrialCounts",
    "UnknownCost",
    "Upkeep",
    "Verified",
    "check_owner",
    "check_sweep_file",
    "claim_folder",
    "copies",
    "encode_json",
    "failed_ids",
    "groups_of",
    "is_results_folder",
    "iter_attempts",
    "iter_grades",
    "iter_problems",
    "iter_trials",
    "join_folders",
    "kept_sweep_file",
    "known_trials",
    "left_mark",
    "locked",
    "patiently",
    "planned",
    "read_attempts",
    "read_grades",
    "read_lanes",
    "read_manifest",
    "read_problems",
    "read_skipped",
    "read_trials",
    "read_upkeep",
    "right_ids",
    "scanned",
    "spending_of",
    "steady",
    "take_snapshot",
    "texts",
    "trial_counts",
    "verify_folder",
    "write_sweep_file",
    "writer_of",
]
