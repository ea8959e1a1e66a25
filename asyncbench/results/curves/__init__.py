"""Accuracy against length: a logistic curve through counts, and the length up to which a share is right."""

from asyncbench.results.curves.curve import Curve, Length, fit
from asyncbench.results.curves.digits import GROUP, DigitsCurve, Hardest, digits_at, hardest, tasks_named

__all__ = ["GROUP", "Curve", "DigitsCurve", "Hardest", "Length", "digits_at", "fit", "hardest", "tasks_named"]
