"""Answers that were corrected since: the same question, asked and paid for, with another right answer now."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems import ROWS_AT_ONCE, contract_batches
from asyncbench.store import read_trials


def corrected(folder: Path, used: Sequence[Path]) -> int:
    """Return how many finished trials were graded by an answer that their problem has no longer.

    Args:
        folder: a results folder.
        used: the copies in it that count now; where two hold a problem, the first does.

    Raises:
        ProblemSetError, StoreError: a copy or a part cannot be read.
    """
    names = {path.name for path in used}
    earlier = [path for path in sorted((folder / "problems").glob("*.parquet")) if path.name not in names]
    if not earlier:
        return 0  # nothing can have changed: a set with another answer is another copy
    now = pa.concat_tables(map(_answers, used)).combine_chunks()
    changed = pa.concat_tables(_changed(path, now) for path in earlier).combine_chunks()
    if not len(changed):
        return 0
    ids = pc.unique(changed["problem_id"])
    graded = read_trials(folder, ["problem_id", "expected"], pc.field("problem_id").isin(ids))
    return len(_others(graded, now))


def _answers(path: Path) -> pa.Table:
    batches = (
        batch.select(["problem_id", "expected"]) for batch in contract_batches(path, rows=ROWS_AT_ONCE)
    )
    return pa.concat_tables(pa.Table.from_batches([batch]) for batch in batches)


def _changed(path: Path, now: pa.Table) -> pa.Table:
    return _others(_answers(path), now)


def _others(rows: pa.Table, now: pa.Table) -> pa.Table:
    """Return the rows whose problem is there now, with another answer than theirs."""
    place = pc.index_in(rows["problem_id"], value_set=now["problem_id"])
    both = rows.append_column("now", now["expected"].take(place))
    return both.filter(pc.field("expected") != pc.field("now")).select(rows.column_names)
