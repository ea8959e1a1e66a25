"""Worked examples: of each task the same for every problem of it, and none of any set that we generate.

N examples have N lengths, one from each of N equal parts of the task's, ascending. They are drawn once and
for all: only another profile has others, since it may ask in other words.
"""

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from asyncbench.records import Draft, Problem
from asyncbench.suites.nupa.generation import EXAMPLES, PROFILES, rows_of
from asyncbench.suites.nupa.tasks import TASKS, NupaTask, task_of

MOST = min(len(task.lengths) for task in TASKS.values())  # every one has a length of its own


class Shot(NamedTuple):
    """A question with its right answer: right in value, also where the published code's is not."""

    question: str
    answer: str


def examples_for(problem: Problem, shots: int) -> tuple[Shot, ...]:
    """Return the examples that are shown before a problem.

    One that is the problem itself, as may be in a set that others made, gives place to another.

    Raises:
        ValueError: the problem's task is none of NUPA's.
    """
    task = task_of(problem.task, problem.variant, problem.representation)
    profile = json.loads(problem.extra).get("profile")
    pairs = _drawn(task.name, shots, profile if profile in PROFILES else "fixed")
    return tuple(spare if example.question == problem.question else example for example, spare in pairs)


@cache
def _drawn(name: str, shots: int, profile: str) -> tuple[tuple[Shot, Shot], ...]:
    """Return each example with the one that may take its place."""
    task = TASKS[name]
    rows = rows_of(task, lengths_of(task, shots), seed=0, profile=profile, stream=EXAMPLES)
    firsts, spares = islice(rows, 2)
    return tuple((_example(first), _example(spare)) for first, spare in zip(firsts, spares, strict=True))


def _example(draft: Draft) -> Shot:
    return Shot(draft.question, json.loads(draft.extra).get("expected_exact", draft.expected))


def lengths_of(task: NupaTask, shots: int) -> Sequence[int]:
    """Return the lengths of a task's examples: one from each of so many equal parts, ascending."""
    draw = random.Random(f"nupa/shots/{task.name}/{shots}")
    return [draw.choice(part) for part in _parts(task.lengths, shots)]


def _parts(lengths: Sequence[int], count: int) -> Iterator[Sequence[int]]:
    for i in range(count):
        yield lengths[len(lengths) * i // count : len(lengths) * (i + 1) // count]
