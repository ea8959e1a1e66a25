"""Find out what language models can do with numbers.

import asyncio
import asyncbench as ab

ab.generate("llm_arithmetic", "problems.parquet", seed=7)
summary = asyncio.run(ab.run_sweep("configs/overnight.yaml"))
trials = ab.read_trials("results/overnight", as_="pandas")
print(ab.report("results/overnight").as_text())
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors and type checkers, which run nothing
    from asyncbench import errors as errors
    from asyncbench.analysis.sql import sql
    from asyncbench.config.sweep import load_sweep
    from asyncbench.page.charts.figure_files import write_figures
    from asyncbench.page.live.serving import serve_view
    from asyncbench.page.report_page import write_report
    from asyncbench.page.writing import write_page
    from asyncbench.planning.sweep_plan import plan
    from asyncbench.problems.copies import iter_problems, read_problems
    from asyncbench.problems.making import generate
    from asyncbench.published.nupa.files import import_problems
    from asyncbench.published.reports import published_table
    from asyncbench.reports.comparison.report import compare_on as compare
    from asyncbench.reports.problem_file import inspect_problems
    from asyncbench.reports.reconciliation.comparing import reconcile
    from asyncbench.reports.report import report
    from asyncbench.reports.status.report import status_of as status
    from asyncbench.reports.sweeps import list_sweeps
    from asyncbench.run.checkup import doctor
    from asyncbench.run.control import pause_run, resume_run, set_limits
    from asyncbench.run.open_batches import cancel_batches
    from asyncbench.run.sweep_run import run_load, run_sweep
    from asyncbench.store.catalog import (
        iter_attempts,
        iter_grades,
        iter_trials,
        read_attempts,
        read_grades,
        read_lanes,
        read_skipped,
        read_steps,
        read_trials,
    )
    from asyncbench.suites.table import grade_text as grade
    from asyncbench.trackers.tracking import track
    from asyncbench.upkeep.batch_files.handed_in import hand_in_results
    from asyncbench.upkeep.batch_files.results import import_batches
    from asyncbench.upkeep.exporting import export_batches, export_folder
    from asyncbench.upkeep.importing import import_files
    from asyncbench.upkeep.merging import merge_folders
    from asyncbench.upkeep.regrading import regrade_folder

    __version__: str

# Before pyarrow is loaded, which reads it once: Arrow's own allocator keeps some 70 MB that are long free.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

# Where each function is, and its name there; loaded when first used: `import asyncbench` stays quick.
_HOMES = {
    "cancel_batches": ("asyncbench.run.open_batches", "cancel_batches"),
    "compare": ("asyncbench.reports.comparison.report", "compare_on"),
    "doctor": ("asyncbench.run.checkup", "doctor"),
    "export_batches": ("asyncbench.upkeep.exporting", "export_batches"),
    "export_folder": ("asyncbench.upkeep.exporting", "export_folder"),
    "generate": ("asyncbench.problems.making", "generate"),
    "grade": ("asyncbench.suites.table", "grade_text"),
    "hand_in_results": ("asyncbench.upkeep.batch_files.handed_in", "hand_in_results"),
    "import_batches": ("asyncbench.upkeep.batch_files.results", "import_batches"),
    "import_files": ("asyncbench.upkeep.importing", "import_files"),
    "import_problems": ("asyncbench.published.nupa.files", "import_problems"),
    "inspect_problems": ("asyncbench.reports.problem_file", "inspect_problems"),
    "iter_attempts": ("asyncbench.store.catalog", "iter_attempts"),
    "iter_grades": ("asyncbench.store.catalog", "iter_grades"),
    "iter_problems": ("asyncbench.problems.copies", "iter_problems"),
    "iter_trials": ("asyncbench.store.catalog", "iter_trials"),
    "list_sweeps": ("asyncbench.reports.sweeps", "list_sweeps"),
    "load_sweep": ("asyncbench.config.sweep", "load_sweep"),
    "merge_folders": ("asyncbench.upkeep.merging", "merge_folders"),
    "pause_run": ("asyncbench.run.control", "pause_run"),
    "plan": ("asyncbench.planning.sweep_plan", "plan"),
    "published_table": ("asyncbench.published.reports", "published_table"),
    "read_attempts": ("asyncbench.store.catalog", "read_attempts"),
    "read_grades": ("asyncbench.store.catalog", "read_grades"),
    "read_lanes": ("asyncbench.store.catalog", "read_lanes"),
    "read_problems": ("asyncbench.problems.copies", "read_problems"),
    "read_skipped": ("asyncbench.store.catalog", "read_skipped"),
    "read_steps": ("asyncbench.store.catalog", "read_steps"),
    "read_trials": ("asyncbench.store.catalog", "read_trials"),
    "reconcile": ("asyncbench.reports.reconciliation.comparing", "reconcile"),
    "regrade_folder": ("asyncbench.upkeep.regrading", "regrade_folder"),
    "report": ("asyncbench.reports.report", "report"),
    "resume_run": ("asyncbench.run.control", "resume_run"),
    "run_load": ("asyncbench.run.sweep_run", "run_load"),
    "run_sweep": ("asyncbench.run.sweep_run", "run_sweep"),
    "serve_view": ("asyncbench.page.live.serving", "serve_view"),
    "set_limits": ("asyncbench.run.control", "set_limits"),
    "sql": ("asyncbench.analysis.sql", "sql"),
    "status": ("asyncbench.reports.status.report", "status_of"),
    "track": ("asyncbench.trackers.tracking", "track"),
    "write_figures": ("asyncbench.page.charts.figure_files", "write_figures"),
    "write_page": ("asyncbench.page.writing", "write_page"),
    "write_report": ("asyncbench.page.report_page", "write_report"),
}

__all__ = [
    "cancel_batches",
    "compare",
    "doctor",
    "export_batches",
    "export_folder",
    "generate",
    "grade",
    "hand_in_results",
    "import_batches",
    "import_files",
    "import_problems",
    "inspect_problems",
    "iter_attempts",
    "iter_grades",
    "iter_problems",
    "iter_trials",
    "list_sweeps",
    "load_sweep",
    "merge_folders",
    "pause_run",
    "plan",
    "published_table",
    "read_attempts",
    "read_grades",
    "read_lanes",
    "read_problems",
    "read_skipped",
    "read_steps",
    "read_trials",
    "reconcile",
    "regrade_folder",
    "report",
    "resume_run",
    "run_load",
    "run_sweep",
    "serve_view",
    "set_limits",
    "sql",
    "status",
    "track",
    "write_figures",
    "write_page",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("asyncbench")
    if name == "errors":
        return import_module("asyncbench.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'asyncbench' has no attribute {name!r}")
    import_module("asyncbench.errors").refuse_windows()  # before a module is missing there
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "errors"]  # what you can use; rooms and helpers stay out of the way
