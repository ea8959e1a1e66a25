"""What is wrong with wrong answers, one at a time, and by model and task over a results folder."""

from asyncbench.results.anatomy.carries import GROUP, MOST_PROBLEMS, CarryBin, Group
from asyncbench.results.anatomy.counts import (
    ErrorFindings,
    WrongExample,
    errors_in,
    kinds_of,
    most_of_a_group,
)
from asyncbench.results.anatomy.error import Error, anatomy
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
    "errors_in",
    "kinds_of",
    "most_of_a_group",
]
