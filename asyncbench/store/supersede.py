"""A trial answered again: its new rows take the place of its earlier ones, in the file where those stand.

So whoever reads the parts finds one answer or the other: never both, never neither.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.store.staging import Part, read


def supersede(parts: Sequence[Part], earlier: Sequence[Path], folder: Path) -> None:
    """Move rows out of new, finished parts into those earlier parts that hold their trials.

    A trial whose model is called by another alias now cannot stay in its folder: it leaves its earlier
    part before its new one is published.
    """
    if not parts or not earlier:
        return
    for path, trial_ids in _answered_before(parts, earlier):
        part = Part(folder, path.relative_to(folder))
        part.add(read(part.table, [path], filters=~pc.field("trial_id").isin(trial_ids)))
        for new in parts:
            if new.path.parent == path.parent:
                part.add(new.take(trial_ids))
        part.finish()
        part.publish()


def withdraw(parts: Sequence[Part], skipped: Sequence[Path], folder: Path) -> None:
    """Take the trials of new, finished parts of `trials` out of the parts of `skipped`: they were asked."""
    if not parts or not skipped:
        return
    for path, trial_ids in _answered_before(parts, skipped, table="skipped"):
        part = Part(folder, path.relative_to(folder))
        part.add(read(part.table, [path], filters=~pc.field("trial_id").isin(trial_ids)))
        part.finish()
        part.publish()


def _answered_before(
    parts: Sequence[Part], earlier: Sequence[Path], table: str | None = None
) -> Iterator[tuple[Path, pa.StringArray]]:
    """Yield each earlier part that holds trials of the new parts, with their ids; None: of the same table."""
    columns = [part.read(["trial_id"])["trial_id"] for part in parts]
    answered = pa.chunked_array(chunk for column in columns for chunk in column.chunks).combine_chunks()
    found = read(
        table or parts[0].table,
        earlier,
        columns=["__filename", "trial_id"],
        filters=pc.field("trial_id").isin(answered),
    )
    for row in found.group_by("__filename").aggregate([("trial_id", "list")]).to_pylist():
        yield Path(row["__filename"]), pa.array(row["trial_id_list"], pa.string())
