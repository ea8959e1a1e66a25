"""Accuracy against length: a logistic curve through counts, and the length at which a share is right."""

from asyncbench.results.curves.curve import Curve, Length, fit
from asyncbench.results.curves.digits import GROUP, DigitsCurve, Hardest, digits_at, hardest, tasks_named
from asyncbench.results.curves.likelihood import Fit

__all__ = [
    "GROUP",
    "Curve",
    "DigitsCurve",
    "Fit",
    "Hardest",
    "Length",
    "digits_at",
    "fit",
    "hardest",
    "tasks_named",
]
