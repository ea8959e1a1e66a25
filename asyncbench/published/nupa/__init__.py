"""NUPA: its counts, its tables and its pictures."""

from asyncbench.published.nupa.report import nupa_report_on as nupa_report_on
