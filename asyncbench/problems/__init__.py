"""Problem sets: made from a seed, kept as Parquet, checked before any call, and streamed in file order.

In: a suite's parameters, a Parquet file, or recorded answers. Out: a `ProblemSet`, which yields problems.
"""

from asyncbench.problems.custom import columns_in as columns_in, used_grader as used_grader
from asyncbench.problems.files import opened_parquet as opened_parquet, read_batches as read_batches
from asyncbench.problems.hub import problem_file as problem_file, remote_address as remote_address
from asyncbench.problems.identity import identified as identified
from asyncbench.problems.making import (
    copy_into as copy_into,
    generate as generate,
    write_problems as write_problems,
)
from asyncbench.problems.opening import open_set as open_set
from asyncbench.problems.problem_set import ProblemSet as ProblemSet, contract_batches as contract_batches
from asyncbench.problems.recorded import (
    FACTS as FACTS,
    FACTS_KEY as FACTS_KEY,
    RunFacts as RunFacts,
    recorded_answers as recorded_answers,
    recorded_runs as recorded_runs,
    run_called as run_called,
    runs_said as runs_said,
)
from asyncbench.problems.schema import (
    PROBLEM_FIELDS as PROBLEM_FIELDS,
    PROBLEM_SCHEMA as PROBLEM_SCHEMA,
    ROWS_AT_ONCE as ROWS_AT_ONCE,
    ProblemRows as ProblemRows,
    problems_of as problems_of,
)
