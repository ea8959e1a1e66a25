"""nupa: the tasks of "Number Cookbook" (arXiv 2411.03766), on four representations and up to 100 digits.

Profile `fixed` asks what the paper describes, with right answers; profile `reference` does what the published
code does, its wrong answers included, so that results compare with published ones. A problem file says which.
"""

from asyncbench.suites.nupa.generation import draft_nupa as draft_nupa
from asyncbench.suites.nupa.grading import GRADERS as GRADERS
from asyncbench.suites.nupa.ranges import (
    THRESHOLDS as THRESHOLDS,
    Number as Number,
    PassedLengths as PassedLengths,
    Sum as Sum,
    by_range as by_range,
    digits as digits,
    range_of as range_of,
)
from asyncbench.suites.nupa.suite import STYLES as STYLES, SUITE as SUITE, check as check
from asyncbench.suites.nupa.tasks import (
    BASE_TASKS as BASE_TASKS,
    FORMAT as FORMAT,
    REPRESENTATIONS as REPRESENTATIONS,
    TASKS as TASKS,
    NupaTask as NupaTask,
    task_of as task_of,
    template as template,
)
