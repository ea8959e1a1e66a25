"""Folders whose grades are as a grader of yesterday left them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from asyncbench.problems.making import write_problems
from asyncbench.problems.schema import identified
from asyncbench.records import Ended, Event, Grade, Outcome, Problem, Reply, Result, Trial
from asyncbench.store.folder import Store
from asyncbench.suites.llm_arithmetic import draft_arithmetic
from asyncbench.suites.table import grade
from tests.store import made

Grades = tuple[Grade, ...]


def sums(*numbers: int) -> tuple[Problem, ...]:
    """Problems `10 + n`."""
    return tuple(
        identified(draft_arithmetic("int_add", 2, "10", str(n), expected=str(10 + n)) for n in numbers)
    )


def blind(grades: Grades) -> Grades:
    """Grades of a first version that read no answer in anything."""
    return tuple(
        replace(
            one,
            grader_version=0,
            answer=None,
            classification="NaN",
            reason="no_number",
            outcome=Outcome.NO_ANSWER,
            exact_match=False,
            abs_error=None,
            rel_error=None,
        )
        for one in grades
    )


def wrong(grades: Grades) -> Grades:
    """Grades of a version that took every reply for a whole one."""
    return tuple(replace(one, outcome=Outcome.WRONG) for one in grades)


def as_now(grades: Grades) -> Grades:
    return grades


def trial(problem: Problem, alias: str, problem_set: str = "sums") -> Trial:
    number = int.from_bytes(blake2b(f"{alias}/{problem.question}".encode(), digest_size=16).digest())
    plain = made.trial(number, alias=alias)
    return replace(plain, problem=problem, problem_set=problem_set)


def graded(asked: Trial, said: Reply | str | None, graders: Callable[[Grades], Grades]) -> Iterable[Event]:
    """Yield the events of a trial; without a reply it failed."""
    answer = Reply(text=said, finish_reason="stop") if isinstance(said, str) else said
    yield Ended(attempt=made.ended(asked, answer).attempt, reply=answer)
    plain = made.result(asked, answer)
    yield Result(
        trial=asked,
        reply=answer,
        error=plain.error,
        grades=graders(grade(asked.problem, answer)),
        attempts=1,
        cost_usd=plain.cost_usd,
        price_source=None,
        queued_s=None,
        ttft_s=None,
        latency_s=None,
        finished_at=plain.finished_at,
    )


def fill(
    folder: Path,
    problems: Iterable[Problem],
    text: Callable[[Problem], str | None],
    *,
    aliases: Iterable[str] = ("small",),
    graders: Callable[[Grades], Grades] = blind,
) -> None:
    """Add the trials of these problems to a folder, one part a model."""
    problems = tuple(problems)
    with Store.open(folder, sweep="night") as store:
        write_problems(problems, folder / "problems" / "sums.parquet")
        for alias in aliases:
            for problem in problems:
                made.keep(store, *graded(trial(problem, alias), text(problem), graders))


def right(problem: Problem) -> str:
    return f"The sum is {problem.expected}."
