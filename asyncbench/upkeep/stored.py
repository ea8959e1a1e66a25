"""What a results folder holds beside its trials: their problems, and the grades that stand for them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.sweep import all_sources, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.problems.copies import read_problems
from asyncbench.problems.custom import used_grader
from asyncbench.problems.schema import PROBLEM_SCHEMA, problems_of
from asyncbench.records import Problem
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import GRADES, PARTITIONED_BY
from asyncbench.store.snapshot import Snapshot
from asyncbench.suites.own import grader_of
from asyncbench.suites.sources import is_in_file

MOST_READY = 65_536  # problems as records, which take ten times the memory of the columns they are made of
Column: TypeAlias = "pa.ChunkedArray[Any]"  # of any type: what its values are is known at run time alone


def joined(table: pa.Table, left: str, right: str) -> Column:
    """Return `left/right` of each row; at least one of the two is an id, so that no two pairs look alike."""
    text: Column = pc.binary_join_element_wise(table[left], table[right], "/")  # type: ignore[call-overload]  # the stubs forget the separator
    return text


class FolderQuestions:
    """Every problem of a results folder, as it stands now."""

    def __init__(self, folder: Path) -> None:
        """Read the folder's problems/, and load the graders of somebody's own that they name.

        Raises:
            ConfigError: such a grader cannot be loaded.
            ProblemSetError: a copy of a problem set is damaged.
        """
        self._problems = _with_graders_of_today(read_problems(folder), folder).combine_chunks()
        self._keys = joined(self._problems, "problem_set", "problem_id")
        self._ready: dict[int, Problem] = {}

    def of(self, trials: pa.Table) -> list[Problem | None]:
        """Return the problem of each trial; None where no copy holds it."""
        found = pc.index_in(joined(trials, "problem_set", "problem_id"), value_set=self._keys)
        if found.null_count:  # of a set that was renamed since: the same questions, all the same
            ids = self._problems["problem_id"]
            found = pc.coalesce(found, pc.index_in(trials["problem_id"], value_set=ids))
        places = found.to_pylist()
        if len(self._ready) > MOST_READY:
            self._ready.clear()
        missing = sorted({place for place in places if place is not None} - self._ready.keys())
        rows = self._problems.select(PROBLEM_SCHEMA.names).take(pa.array(missing, pa.int64()))
        self._ready.update(zip(missing, problems_of(rows.to_batches()), strict=True))
        return [None if place is None else self._ready[place] for place in places]


def _with_graders_of_today(problems: pa.Table, folder: Path) -> pa.Table:
    """Return the problems with the source of each grader of somebody's own as it is now."""
    extras: list[str] = problems["extra"].to_pylist()  # type: ignore[assignment]  # never NULL
    own = [extra for extra in set(extras) if '"source"' in extra and is_in_file(grader_of(extra) or "")]
    if not own:
        return problems
    sweep, today = kept_sweep_file(folder), dict[str, str]()
    for source in () if sweep is None else all_sources(load_sweep(sweep)):
        if source.grader is not None and is_in_file(source.grader):
            grader = used_grader(source.grader, sweep, place=str(sweep))
            today[grader.name] = grader.digest
    now = dict[str, str]()
    for extra in own:
        said = json.loads(extra)
        if said["grader"] not in today:
            raise ConfigError(
                f"{folder}: its problems are graded by {said['grader']!r}, but its sweep file does not say "
                "where that is. Run the sweep again, then regrade."
            )
        now[extra] = json.dumps(said | {"source": today[said["grader"]]})
    column = pa.array([now.get(extra, extra) for extra in extras], pa.string())
    return problems.set_column(problems.schema.get_field_index("extra"), "extra", column)


class EarlierGrades:
    """The stored grades, taken in the order of the trials, in which they are stored as well."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._batches: Iterator[pa.RecordBatch] = snapshot.batches("grades")
        self._waiting = GRADES.empty_table()
        self._in_order = True

    def of(self, trials: pa.Table) -> pa.Table:
        """Return the grades of the next trials, in any number of rows a trial.

        Raises:
            StoreError: a part cannot be read.
        """
        ids = trials["trial_id"].combine_chunks()
        if self._in_order:
            found = self._next(ids)
            self._in_order = len(pc.unique(found["trial_id"])) == len(ids)
            if self._in_order:
                return found
        # another order, as after a compaction: looked up, which takes longer and finds them all the same
        wanted = pc.field("trial_id").isin(ids)
        for name in PARTITIONED_BY["grades"]:
            wanted &= pc.field(name).isin(trials[name].unique())  # so that other partitions are skipped
        return self._snapshot.read("grades", filters=wanted)

    def _next(self, ids: "pa.Array[pa.StringScalar]") -> pa.Table:
        """Take rows as long as they are of these trials."""
        taken = [GRADES.empty_table()]
        other = -1
        while other < 0:
            if not len(self._waiting):
                batch = next(self._batches, None)
                if batch is None:
                    break
                self._waiting = pa.Table.from_batches([batch], GRADES)
            other = pc.index(pc.is_in(self._waiting["trial_id"], value_set=ids), False).as_py()
            count = len(self._waiting) if other < 0 else other
            taken.append(self._waiting.slice(0, count))
            self._waiting = self._waiting.slice(count)
        return pa.concat_tables(taken)
