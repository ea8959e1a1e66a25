"""The commands: what each takes as arguments, which room answers it, and what is printed.

In: arguments, keys of the environment or a file. Out: lines on standard output, and an exit code where it is
not 0. Other rooms are imported inside the commands: `--help` must not wait for SDKs and Arrow.
"""

from asyncbench.commands.keeping import compact, export_results, import_results, merge, regrade
from asyncbench.commands.making import generate, init, suites
from asyncbench.commands.providers import doctor, models, simulate
from asyncbench.commands.reading import compare_two, reconcile, report, sql
from asyncbench.commands.running import plan, run, status
from asyncbench.commands.terminal import harmless, withheld

__all__ = [
    "compact",
    "compare_two",
    "doctor",
    "export_results",
    "generate",
    "harmless",
    "import_results",
    "init",
    "merge",
    "models",
    "plan",
    "reconcile",
    "regrade",
    "report",
    "run",
    "simulate",
    "sql",
    "status",
    "suites",
    "withheld",
]
