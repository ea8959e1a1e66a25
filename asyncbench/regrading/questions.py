"""The problems of a results folder, found by the trials that asked them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems import PROBLEM_SCHEMA, problems_of
from asyncbench.records import Problem
from asyncbench.regrading.keys import keys
from asyncbench.store import read_problems

MOST_READY = 65_536  # problems as records, which take ten times the memory of the columns they are made of


class FolderQuestions:
    """Every problem of a results folder, as it stands now."""

    def __init__(self, folder: Path) -> None:
        """Read the folder's problems/.

        Raises:
            ProblemSetError: a copy of a problem set is damaged.
        """
        self._problems = read_problems(folder).combine_chunks()
        self._keys = keys(self._problems, "problem_set", "problem_id")
        self._ready: dict[int, Problem] = {}

    def of(self, trials: pa.Table) -> list[Problem | None]:
        """Return the problem of each trial; None where no copy holds it."""
        found = pc.index_in(keys(trials, "problem_set", "problem_id"), value_set=self._keys)
        if found.null_count:  # of a set that was renamed since: the same questions, all the same
            ids = self._problems["problem_id"]
            found = pc.coalesce(found, pc.index_in(trials["problem_id"], value_set=ids))
        places = found.to_pylist()
        if len(self._ready) > MOST_READY:
            self._ready.clear()
        self._make_ready(sorted({place for place in places if place is not None} - self._ready.keys()))
        return [None if place is None else self._ready[place] for place in places]

    def _make_ready(self, places: list[int]) -> None:
        rows = self._problems.select(PROBLEM_SCHEMA.names).take(pa.array(places, pa.int64()))
        self._ready.update(zip(places, problems_of(rows.to_batches()), strict=True))
