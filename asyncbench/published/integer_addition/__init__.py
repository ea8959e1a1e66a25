"""Integer addition: its JSON files, its counts and its table."""

from asyncbench.published.integer_addition.report import (
    integer_addition_report_on as integer_addition_report_on,
)
