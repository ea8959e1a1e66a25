"""Problem sets: made once with a seed, kept as Parquet, checked before any call, streamed in file order.

In: a suite's parameters, or a Parquet file. Out: a `ProblemSet`, which yields problems.
"""

from asyncbench.problems.files import opened_parquet, read_batches
from asyncbench.problems.identity import identified
from asyncbench.problems.making import copy_into, generate, write_problems
from asyncbench.problems.opening import open_set
from asyncbench.problems.problem_set import ProblemSet, contract_batches
from asyncbench.problems.schema import PROBLEM_FIELDS, PROBLEM_SCHEMA, ROWS_AT_ONCE, ProblemRows, problems_of

__all__ = [
    "PROBLEM_FIELDS",
    "PROBLEM_SCHEMA",
    "ROWS_AT_ONCE",
    "ProblemRows",
    "ProblemSet",
    "contract_batches",
    "copy_into",
    "generate",
    "identified",
    "open_set",
    "opened_parquet",
    "problems_of",
    "read_batches",
    "write_problems",
]
