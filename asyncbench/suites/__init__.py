"""Suites: what is asked and what counts as right. Pure, exact and seeded; no files and no network."""

from asyncbench.suites.table import SUITES, grade, grade_text

__all__ = ["SUITES", "grade", "grade_text"]
