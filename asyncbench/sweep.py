"""Sweep × problem sets → trials, with their ids, in order."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from asyncbench.config import Sweep
from asyncbench.problems import ProblemSet
from asyncbench.prompting import TrialIds
from asyncbench.records import Model, Problem, Trial
from asyncbench.suites import SUITES


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A problem set as one model is asked it: without the problems that an earlier set also holds."""

    problems: ProblemSet
    skip: frozenset[str] = frozenset()  # problem ids

    @property
    def rows(self) -> int:
        """Problems asked."""
        return self.problems.rows - len(self.skip)


def asked_once(sets: Sequence[ProblemSet]) -> tuple[Asked, ...]:
    """Return the sets so that a problem found in two of them belongs to the first.

    Only sets that share a suite can share a problem; their ids are held in memory while comparing.
    """
    asked: list[Asked] = []
    for later in sets:
        earlier = [one.problems for one in asked if set(one.problems.suites) & set(later.suites)]
        seen = {problem.problem_id for one in earlier for problem in one.read()}
        twice = (problem.problem_id for problem in later.read()) if seen else ()
        asked.append(Asked(problems=later, skip=frozenset(seen.intersection(twice))))
    return tuple(asked)


def planned(sweep: Sweep, sets: Sequence[Asked], *, limit: int | None) -> int:
    """Return how many trials one model has in this sweep."""
    problems = sum(one.rows for one in sets)
    return min(problems, limit or problems) * len(sweep.conditions) * sweep.repeats


def trials(sweep: Sweep, model: Model, sets: Sequence[Asked], *, limit: int | None) -> Iterator[Trial]:
    """Yield one model's trials, every prefix of them balanced over sets and cells.

    Args:
        sweep: conditions and repeats.
        model: who is asked.
        sets: what is asked.
        limit: at most this many problems.
    """
    ids = [TrialIds(model, condition) for condition in sweep.conditions]
    for repeat in range(sweep.repeats):
        for name, problem in islice(_interleaved(sets), limit):
            for condition, trial_ids in zip(sweep.conditions, ids, strict=True):
                version = SUITES[problem.suite].prompt_version
                yield Trial(
                    trial_id=trial_ids.of(problem.problem_id, prompt_version=version, repeat=repeat),
                    run=sweep.name,
                    sweep=sweep.name,
                    problem_set=name,
                    problem=problem,
                    model=model,
                    condition=condition,
                    repeat=repeat,
                )


def _interleaved(sets: Sequence[Asked]) -> Iterator[tuple[str, Problem]]:
    """Yield (set name, problem) of all sets at once, each spread evenly over the whole."""
    return ((name, problem) for _, _, name, problem in heapq.merge(*map(_placed, sets, range(len(sets)))))


def _placed(asked: Asked, tie: int) -> Iterator[tuple[float, int, str, Problem]]:
    """Yield an asked set's problems with their place in [0, 1); equal places keep the sets' order."""
    kept = (problem for problem in asked.problems.read() if problem.problem_id not in asked.skip)
    for i, problem in enumerate(kept):
        yield (i + 0.5) / asked.rows, tie, asked.problems.name, problem
