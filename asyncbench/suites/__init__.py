"""Suites: what is asked and what counts as right. Pure, exact and seeded; no files and no network.

In: a seed and parameters, or a problem and a reply. Out: problems and grades.
"""

from asyncbench.suites.custom import CUSTOM_GRADERS, check_custom, check_expected
from asyncbench.suites.extraction import layered_number, without_thinking
from asyncbench.suites.integer_addition import draft_addition
from asyncbench.suites.llm_arithmetic import (
    ARITHMETIC_GRADERS,
    ARITHMETIC_TASKS,
    SUITE,
    answer,
    draft_arithmetic,
)
from asyncbench.suites.numbers import EXACT, MAX_DIGITS, carries, exact, parts
from asyncbench.suites.strings import draft_string
from asyncbench.suites.suite import Kind, Rows, Suite, Wording
from asyncbench.suites.table import SUITES, grade, grade_text

__all__ = [
    "ARITHMETIC_GRADERS",
    "ARITHMETIC_TASKS",
    "CUSTOM_GRADERS",
    "EXACT",
    "MAX_DIGITS",
    "SUITE",
    "SUITES",
    "Kind",
    "Rows",
    "Suite",
    "Wording",
    "answer",
    "carries",
    "check_custom",
    "check_expected",
    "draft_addition",
    "draft_arithmetic",
    "draft_string",
    "exact",
    "grade",
    "grade_text",
    "layered_number",
    "parts",
    "without_thinking",
]
