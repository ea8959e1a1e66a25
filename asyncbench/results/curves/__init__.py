"""Accuracy against length: a logistic curve through counts, and the length at which a share is right."""

from asyncbench.results.curves.curve import Curve as Curve, Length as Length, fit as fit
from asyncbench.results.curves.digits import (
    GROUP as GROUP,
    DigitsCurve as DigitsCurve,
    Hardest as Hardest,
    digits_at as digits_at,
    hardest as hardest,
    hardest_at as hardest_at,
    tasks_named as tasks_named,
)
from asyncbench.results.curves.likelihood import Fit as Fit
