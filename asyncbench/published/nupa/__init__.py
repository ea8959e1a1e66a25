"""NUPA: its test sets and answers, its counts and its tables."""

from asyncbench.published.nupa.files import import_problems
from asyncbench.published.nupa.report import nupa_report_on

__all__ = [
    "import_problems",
    "nupa_report_on",
]
