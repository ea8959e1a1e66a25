"""A suite as small as one can be, and a problem set of it."""

from collections.abc import Iterator, Mapping

import pytest

from asyncbench.problems.making import generate
from asyncbench.problems.problem_set import ProblemSet
from asyncbench.records import Draft, Grade, Problem, Reply
from asyncbench.suites.suite import Parameter, Suite, whole_number


def sums(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield `rows` sums of two single digits: the same ones come again after some time."""
    rows = parameters["rows"]
    assert isinstance(rows, int)
    for i in range(rows):
        a, b = (seed + i) % 10, (seed + i // 10) % 10
        yield Draft(
            suite="integer_addition",
            task="add",
            representation="integer",
            length=None if a == b else 1,
            operands=(str(a), str(b)) if a else (),
            question=f"{a} + {b} = ? – {'é' * a}",
            expected=str(a + b),
            answer_type="integer",
        )


def no_grades(_problem: Problem, _reply: Reply | None, _style: str) -> tuple[Grade, ...]:
    return ()


SUMS = Suite(
    name="integer_addition",  # rows of a set must be of a suite that there is
    generator_version=3,
    prompt_version=1,
    graders=(),
    parameters={"rows": Parameter(default=250, parse=whole_number(0), help="problems")},
    generate=sums,
    grade=no_grades,
)


@pytest.fixture(scope="session")
def suite() -> Suite:
    """Sums of single digits; parameter `rows`."""
    return SUMS


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> ProblemSet:
    """250 problems, seed 7. Not to be written to."""
    return generate(SUMS, tmp_path_factory.mktemp("small") / "small.parquet", seed=7)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> ProblemSet:
    """20,000 problems in several row groups, seed 7. Not to be written to."""
    return generate(SUMS, tmp_path_factory.mktemp("large") / "large.parquet", seed=7, rows=20_000)
