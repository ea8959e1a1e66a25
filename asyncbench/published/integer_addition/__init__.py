"""Integer addition: its counts and its tables."""

from asyncbench.published.integer_addition.report import (
    integer_addition_report_on as integer_addition_report_on,
)
