"""Suites: making problems and grading replies. Pure, exact and seeded; no files and no network.

In: a seed and parameters, or a problem and a reply. Out: problems and grades. A suite of yours imports all
that it needs from here: docs/howto/own-suite.md.
"""

from asyncbench.records import (
    Draft as Draft,
    Grade as Grade,
    Problem as Problem,
    Reply as Reply,
    outcome_of as outcome_of,
)
from asyncbench.suites.suite import (
    Kind as Kind,
    Parameter as Parameter,
    Suite as Suite,
    Wording as Wording,
)

PUBLIC = (
    "chats",
    "custom",
    "handed_functions",
    "integer_addition",
    "llm_arithmetic",
    "number_reading",
    "numbers",
    "nupa.execution",
    "nupa.generation",
    "nupa.grading",
    "nupa.suite",
    "nupa.tasks",
    "own_graders",
    "own_suites",
    "plugins",
    "requests",
    "suite",
    "synthetic",
    "table",
    "thinking",
)
