"""What is wrong with wrong answers: one at a time, and by model and task over a results folder."""

from asyncbench.analysis.anatomy.error import Error, anatomy
from asyncbench.analysis.anatomy.kinds import KINDS, UNCLASSIFIED

__all__ = ["KINDS", "UNCLASSIFIED", "Error", "anatomy"]
