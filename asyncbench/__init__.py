"""asyncbench finds out what language models can do with numbers.

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
    from asyncbench.charts import write_figures
    from asyncbench.checkup import doctor
    from asyncbench.config import load_sweep
    from asyncbench.control import pause_run, resume_run, set_limits
    from asyncbench.exchange import (
        export_batches,
        export_folder,
        hand_in_results,
        import_batches,
        import_files,
        import_problems,
    )
    from asyncbench.live import serve_view
    from asyncbench.merging import merge_folders
    from asyncbench.page import write_page
    from asyncbench.planning import plan
    from asyncbench.problems import generate
    from asyncbench.published import published_table
    from asyncbench.queries import sql
    from asyncbench.reconciliation import reconcile
    from asyncbench.regrading import regrade_folder
    from asyncbench.reports import compare_on as compare, inspect_problems, report, status_of as status
    from asyncbench.run import cancel_batches, run_load, run_sweep
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
        read_steps,
        read_trials,
    )
    from asyncbench.suites import grade_text as grade

    __version__: str

# Before pyarrow is loaded, which reads it once: Arrow's own allocator keeps some 70 MB that are long free.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

# Where each function is, and its name there; loaded when first used: `import asyncbench` stays quick.
_HOMES = {
    "cancel_batches": ("asyncbench.run", "cancel_batches"),
    "compare": ("asyncbench.reports", "compare_on"),
    "doctor": ("asyncbench.checkup", "doctor"),
    "export_batches": ("asyncbench.exchange", "export_batches"),
    "export_folder": ("asyncbench.exchange", "export_folder"),
    "generate": ("asyncbench.problems", "generate"),
    "grade": ("asyncbench.suites", "grade_text"),
    "hand_in_results": ("asyncbench.exchange", "hand_in_results"),
    "import_batches": ("asyncbench.exchange", "import_batches"),
    "import_files": ("asyncbench.exchange", "import_files"),
    "import_problems": ("asyncbench.exchange", "import_problems"),
    "inspect_problems": ("asyncbench.reports", "inspect_problems"),
    "iter_attempts": ("asyncbench.store", "iter_attempts"),
    "iter_grades": ("asyncbench.store", "iter_grades"),
    "iter_problems": ("asyncbench.store", "iter_problems"),
    "iter_trials": ("asyncbench.store", "iter_trials"),
    "load_sweep": ("asyncbench.config", "load_sweep"),
    "merge_folders": ("asyncbench.merging", "merge_folders"),
    "pause_run": ("asyncbench.control", "pause_run"),
    "plan": ("asyncbench.planning", "plan"),
    "published_table": ("asyncbench.published", "published_table"),
    "read_attempts": ("asyncbench.store", "read_attempts"),
    "read_grades": ("asyncbench.store", "read_grades"),
    "read_lanes": ("asyncbench.store", "read_lanes"),
    "read_problems": ("asyncbench.store", "read_problems"),
    "read_skipped": ("asyncbench.store", "read_skipped"),
    "read_steps": ("asyncbench.store", "read_steps"),
    "read_trials": ("asyncbench.store", "read_trials"),
    "reconcile": ("asyncbench.reconciliation", "reconcile"),
    "regrade_folder": ("asyncbench.regrading", "regrade_folder"),
    "report": ("asyncbench.reports", "report"),
    "resume_run": ("asyncbench.control", "resume_run"),
    "run_load": ("asyncbench.run", "run_load"),
    "run_sweep": ("asyncbench.run", "run_sweep"),
    "serve_view": ("asyncbench.live", "serve_view"),
    "set_limits": ("asyncbench.control", "set_limits"),
    "sql": ("asyncbench.queries", "sql"),
    "status": ("asyncbench.reports", "status_of"),
    "write_figures": ("asyncbench.charts", "write_figures"),
    "write_page": ("asyncbench.page", "write_page"),
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
    "write_figures",
    "write_page",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("asyncbench")
    if name == "errors":
        return import_module("asyncbench.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'asyncbench' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "errors"]  # what you can use; rooms and helpers stay out of the way
