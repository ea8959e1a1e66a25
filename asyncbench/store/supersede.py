"""A trial answered again: its new rows take the place of its earlier ones, in the file where those stand.

So whoever reads the parts finds one answer or the other: never both, never neither.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.store.staging import Part, read


def superseded(
    table: str, parts: Sequence[Part], earlier: Sequence[Path], folder: Path, *, asked: Sequence[Part] = ()
) -> list[Part]:
    """Move rows out of new, finished parts into new states of those earlier parts that hold their trials.

    A trial whose model is called by another alias now cannot stay in its folder: it leaves its earlier part.

    Args:
        table: its name.
        parts: its new parts.
        earlier: its parts that stand.
        folder: the results folder.
        asked: new parts of `trials`; in `skipped`, what was asked has no row any more.

    Returns:
        Finished parts, to be published before the new ones.
    """
    if not (parts or asked) or not earlier:
        return []
    found, gone = [], _ids(asked)
    for path, trial_ids in _answered_before(table, _ids([*parts, *asked]), earlier):
        part = Part(folder, path.relative_to(folder))
        part.add(read(table, [path], filters=~pc.field("trial_id").isin(trial_ids)))
        for new in parts:
            if new.path.parent == path.parent:
                part.add(new.take(trial_ids).filter(~pc.field("trial_id").isin(gone)))
        part.finish()
        found.append(part)
    return found


def _ids(parts: Sequence[Part]) -> "pa.Array[pa.StringScalar]":
    columns = [part.read(["trial_id"])["trial_id"] for part in parts]
    return pa.chunked_array(
        (chunk for column in columns for chunk in column.chunks), pa.string()
    ).combine_chunks()


def _answered_before(
    table: str, answered: "pa.Array[pa.StringScalar]", earlier: Sequence[Path]
) -> Iterator[tuple[Path, pa.StringArray]]:
    """Yield each earlier part that holds some of the trials, with their ids."""
    found = read(
        table, earlier, columns=["__filename", "trial_id"], filters=pc.field("trial_id").isin(answered)
    )
    for row in found.group_by("__filename").aggregate([("trial_id", "list")]).to_pylist():
        yield Path(row["__filename"]), pa.array(row["trial_id_list"], pa.string())
