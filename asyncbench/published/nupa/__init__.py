"""NUPA: its test sets and answers, its counts and its tables."""

from asyncbench.published.nupa.files import import_problems as import_problems
from asyncbench.published.nupa.report import nupa_report_on as nupa_report_on
