"""The grades that stand in a results folder, brought beside the trials that they belong to."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.store import GRADES, PARTITIONED_BY, Snapshot


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
        while True:
            if not len(self._waiting):
                batch = next(self._batches, None)
                if batch is None:
                    break
                self._waiting = pa.Table.from_batches([batch], GRADES)
            other = pc.index(pc.is_in(self._waiting["trial_id"], value_set=ids), False).as_py()
            count = len(self._waiting) if other < 0 else other
            taken.append(self._waiting.slice(0, count))
            self._waiting = self._waiting.slice(count)
            if other >= 0:
                break
        return pa.concat_tables(taken)
