"""nupa: the tasks of "Number Cookbook" (arXiv 2411.03766), on four representations and up to 100 digits.

Profile `fixed` asks what the paper describes, with right answers; profile `reference` does what the published
code does, its wrong answers included, so that results compare with published ones. A problem file says which.
"""

from asyncbench.suites.nupa.suite import (
    SUITE as SUITE,
)
