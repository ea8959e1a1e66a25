"""Problems of one cell of NUPA, without a set."""

from collections.abc import Iterator
from itertools import chain

from asyncbench.records import Draft
from asyncbench.suites.nupa.generation import rows_of
from asyncbench.suites.nupa.tasks import NupaTask


def drafts_of(
    task: NupaTask, length: int, *, seed: int, profile: str = "fixed", stream: str = "test"
) -> Iterator[Draft]:
    """Yield the problems of one cell, each once, until it holds no more."""
    return chain.from_iterable(rows_of(task, [length], seed=seed, profile=profile, stream=stream))
