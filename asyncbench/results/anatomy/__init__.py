"""What is wrong with wrong answers: one at a time, and by model and task over a results folder."""

from asyncbench.results.anatomy.error import Error, anatomy
from asyncbench.results.anatomy.kinds import KINDS, UNCLASSIFIED

__all__ = ["KINDS", "UNCLASSIFIED", "Error", "anatomy"]
