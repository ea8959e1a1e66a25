"""Problem sets: made once with a seed, kept as Parquet, checked before any call, streamed in file order."""

from asyncbench.problems.making import copy_into, generate, write_problems
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet

__all__ = ["ProblemSet", "copy_into", "generate", "open_set", "write_problems"]
