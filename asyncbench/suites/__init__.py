"""Suites: what is asked and what counts as right. Pure, exact and seeded; no files and no network.

In: a seed and parameters, or a problem and a reply. Out: problems and grades.
"""

from asyncbench.suites.custom import (
    CUSTOM_GRADERS as CUSTOM_GRADERS,
    check_custom as check_custom,
    check_expected as check_expected,
    is_own as is_own,
    likely_grader as likely_grader,
)
from asyncbench.suites.digits import (
    DIGIT_FORMS as DIGIT_FORMS,
    EXCLUSIVE as EXCLUSIVE,
    MOST_GROWTH as MOST_GROWTH,
    plain as plain,
    rewritten as rewritten,
)
from asyncbench.suites.extraction import (
    layered_number as layered_number,
    without_thinking as without_thinking,
)
from asyncbench.suites.integer_addition import draft_addition as draft_addition
from asyncbench.suites.llm_arithmetic import (
    ARITHMETIC_GRADERS as ARITHMETIC_GRADERS,
    ARITHMETIC_TASKS as ARITHMETIC_TASKS,
    SUITE as SUITE,
    answer as answer,
    draft_arithmetic as draft_arithmetic,
)
from asyncbench.suites.numbers import (
    EXACT as EXACT,
    FORMS as FORMS,
    MAX_DIGITS as MAX_DIGITS,
    carries as carries,
    exact as exact,
    fixed as fixed,
    parts as parts,
)
from asyncbench.suites.own import (
    ADDED_GRADERS as ADDED_GRADERS,
    TAKES as TAKES,
    grader_of as grader_of,
    use_grader as use_grader,
    used_graders as used_graders,
)
from asyncbench.suites.strings import draft_string as draft_string
from asyncbench.suites.suite import (
    Kind as Kind,
    Parameter as Parameter,
    Rows as Rows,
    Suite as Suite,
    Wording as Wording,
    whole_number as whole_number,
)
from asyncbench.suites.table import SUITES as SUITES, grade as grade, grade_text as grade_text
