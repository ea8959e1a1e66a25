"""Integer addition: its counts, its table and its pictures."""

from asyncbench.published.integer_addition.report import (
    integer_addition_report_on as integer_addition_report_on,
)
