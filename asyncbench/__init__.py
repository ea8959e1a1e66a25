"""asyncbench: finds out what language models can do with numbers.

import asyncio
import asyncbench as ab

ab.generate("llm_arithmetic", "problems.parquet", seed=7)
summary = asyncio.run(ab.run_sweep("configs/overnight.yaml"))
table = ab.read_trials("results/overnight")
grades = ab.grade(problem, reply_text)
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncbench.merging import merge_folders
    from asyncbench.problems import generate
    from asyncbench.published import export_folder, import_files
    from asyncbench.published.nupa import import_problems
    from asyncbench.queries import sql
    from asyncbench.regrading import regrade_folder
    from asyncbench.run import run_sweep
    from asyncbench.store import (
        iter_attempts,
        iter_grades,
        iter_problems,
        iter_trials,
        read_attempts,
        read_grades,
        read_lanes,
        read_problems,
        read_skipped,
        read_trials,
    )
    from asyncbench.suites import grade_text as grade

# Before pyarrow is loaded, which reads it once: Arrow's own allocator keeps some 70 MB that are long free.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

# Loaded when first used: `import asyncbench` and `asyncbench --help` stay quick.
_HOMES = {
    "export_folder": ("asyncbench.published", "export_folder"),
    "import_files": ("asyncbench.published", "import_files"),
    "import_problems": ("asyncbench.published", "import_problems"),
    "generate": ("asyncbench.problems", "generate"),
    "grade": ("asyncbench.suites", "grade_text"),
    "iter_attempts": ("asyncbench.store.catalog", "iter_attempts"),
    "iter_grades": ("asyncbench.store.catalog", "iter_grades"),
    "iter_problems": ("asyncbench.store.problem_copies", "iter_problems"),
    "iter_trials": ("asyncbench.store.catalog", "iter_trials"),
    "merge_folders": ("asyncbench.merging", "merge_folders"),
    "read_attempts": ("asyncbench.store.catalog", "read_attempts"),
    "read_grades": ("asyncbench.store.catalog", "read_grades"),
    "read_lanes": ("asyncbench.store.catalog", "read_lanes"),
    "read_problems": ("asyncbench.store.problem_copies", "read_problems"),
    "read_skipped": ("asyncbench.store.catalog", "read_skipped"),
    "read_trials": ("asyncbench.store.catalog", "read_trials"),
    "regrade_folder": ("asyncbench.regrading", "regrade_folder"),
    "run_sweep": ("asyncbench.run.sweep_run", "run_sweep"),
    "sql": ("asyncbench.queries.select", "sql"),
}

__all__ = [
    "export_folder",
    "generate",
    "grade",
    "import_files",
    "import_problems",
    "iter_attempts",
    "iter_grades",
    "iter_problems",
    "iter_trials",
    "merge_folders",
    "read_attempts",
    "read_grades",
    "read_lanes",
    "read_problems",
    "read_skipped",
    "read_trials",
    "regrade_folder",
    "run_sweep",
    "sql",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'asyncbench' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
