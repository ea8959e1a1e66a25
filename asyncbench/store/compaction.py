"""Many small parts made into few large ones: what a night seals bit by bit is read in one go."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.errors import StoreError
from asyncbench.store.checksums import check
from asyncbench.store.generation import Generation
from asyncbench.store.staging import scanned

FULL_ROWS = 1_000_000  # a part of so many rows is left as it is: no night's work is copied again and again
MANY_PARTS = 16  # of one partition, that are not full: from here on it is worth it


def worthwhile(parts: Sequence[Path]) -> bool:
    """Return whether some partition of a table has so many small parts that readers feel it."""
    return any(len(small) >= MANY_PARTS for small, _ in _partitions(parts))


def compact(generation: Generation) -> None:
    """Fill the next generation of a table with one part for each partition, beside those that are full.

    A part of a version without checksums gets them.

    Raises:
        StoreError: a part is damaged, or the disk does not take it; the table stays as it was.
    """
    for small, full in _partitions(generation.earlier):
        for few in [small, *([path] for path in full)]:
            if len(few) == 1 and check(few[0], ()):
                generation.keep(few[0])
            elif few:
                _merge(few, generation)


def _merge(parts: Sequence[Path], generation: Generation) -> None:
    merged = generation.part(parts)
    for batch in scanned(merged.table, parts):
        merged.add(pa.Table.from_batches([batch]))
    merged.finish()  # now: hundreds that wait would hold thousands of long replies
    if merged.rows != (rows := sum(map(_rows, parts))):
        raise StoreError(f"{merged.path} has {merged.rows:,} of {rows:,} rows: the parts stay as they were")


def _partitions(parts: Sequence[Path]) -> Iterator[tuple[list[Path], list[Path]]]:
    """Yield the parts of each partition: the small, then the full."""
    for _, found in groupby(sorted(parts, key=lambda path: path.parent), key=lambda path: path.parent):
        there = list(found)
        full = [path for path in there if _rows(path) >= FULL_ROWS]
        yield [path for path in there if path not in full], full


def _rows(part: Path) -> int:
    check(part, ())  # a footer that is damaged must not be believed
    return pq.read_metadata(part).num_rows
