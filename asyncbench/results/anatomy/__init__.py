"""What is wrong with wrong answers, one at a time, and by model and task over a results folder."""

from asyncbench.results.anatomy.carries import MOST_PROBLEMS, CarryBin
from asyncbench.results.anatomy.error import Error, anatomy
from asyncbench.results.anatomy.examined_sample import GROUP, Group, most_of_a_group
from asyncbench.results.anatomy.figures import ErrorFindings, WrongExample, kinds_of, read_errors
from asyncbench.results.anatomy.kinds import KINDS, ORDER, UNCLASSIFIED

__all__ = [
    "GROUP",
    "KINDS",
    "MOST_PROBLEMS",
    "ORDER",
    "UNCLASSIFIED",
    "CarryBin",
    "Error",
    "ErrorFindings",
    "Group",
    "WrongExample",
    "anatomy",
    "kinds_of",
    "most_of_a_group",
    "read_errors",
]
