"""nupa: the tasks of "Number Cookbook" (arXiv 2411.03766), on four representations and up to 100 digits.

Profile `fixed` asks what the paper describes, with right answers; profile `reference` does what the published
code does, its wrong answers included, so that results compare with published ones. A problem file says which.
"""

from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.grading import GRADERS
from asyncbench.suites.nupa.ranges import THRESHOLDS, Number, PassedLengths, Sum, by_range, digits, range_of
from asyncbench.suites.nupa.suite import STYLES, SUITE, check
from asyncbench.suites.nupa.tasks import BASE_TASKS, FORMAT, TASKS, NupaTask, task_of, template

__all__ = [
    "BASE_TASKS",
    "FORMAT",
    "GRADERS",
    "STYLES",
    "SUITE",
    "TASKS",
    "THRESHOLDS",
    "Number",
    "NupaTask",
    "PassedLengths",
    "Sum",
    "by_range",
    "check",
    "digits",
    "draft_nupa",
    "range_of",
    "task_of",
    "template",
]
