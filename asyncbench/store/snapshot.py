"""A results folder as it is at one moment: its parts, and what its journal holds beyond them.

Reads only: works while a run is writing, and after one was killed. A row stands in the journal or in a
part or, while a segment is being sealed, in both; here it is read once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asyncbench.errors import StoreError
from asyncbench.store.journal import Unfinished
from asyncbench.store.manifest import read_manifest
from asyncbench.store.partitions import ANSWERED_ONCE, part_files, part_name
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.segment import Damage, batches, payloads, segments
from asyncbench.store.staging import read
from asyncbench.store.tables import Tables, tables

Filters = pc.Expression | list[tuple[str, str, object]]  # as pyarrow.parquet.read_table takes them


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a results folder held when it was looked at."""

    files: Mapping[str, Sequence[Path]]  # the parts of each table, without those that the journal covers
    journalled: Tables
    unfinished: Unfinished
    damaged: Sequence[Damage]

    def read(
        self, name: str, columns: Sequence[str] | None = None, filters: Filters | None = None
    ) -> pa.Table:
        """Return a table's rows: of its parts, then of the journal.

        Raises:
            StoreError: a part cannot be read.
        """
        wanted = pc.scalar(True) if filters is None else _expression(filters)
        journalled = self.journalled[name]
        fresh = journalled.filter(wanted).select(SCHEMAS[name].names if columns is None else columns)
        if name in ANSWERED_ONCE and len(journalled):  # what was answered again since does not count
            wanted &= ~pc.field("trial_id").isin(journalled["trial_id"].combine_chunks())
        try:
            standing = read(name, self.files[name], columns=columns, filters=wanted)
        except (OSError, pa.ArrowInvalid) as error:
            raise StoreError(f"{name}: {error}. Put back a copy of that part, or remove it.") from error
        return pa.concat_tables([standing, fresh])


def _expression(filters: Filters) -> pc.Expression:
    return pq.filters_to_expression(filters)  # type: ignore[arg-type]  # it takes both forms, and objects


def look(folder: Path) -> Snapshot:
    """Return what a results folder holds now.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: its manifest or its journal cannot be read.
    """
    read_manifest(folder)
    covered, damaged, left = set[str](), list[Damage](), Unfinished()
    journalled = [tables([], place=folder)]
    for batch in batches(_lines(folder / "journal", covered, damaged)):
        left.follow(batch)
        journalled.append(tables(batch, place=folder / "journal"))
    return Snapshot(
        # listed after the journal was read: what was sealed meanwhile is found here
        files={name: [p for p in part_files(folder, name) if p.name not in covered] for name in SCHEMAS},
        journalled={name: pa.concat_tables(found[name] for found in journalled) for name in SCHEMAS},
        unfinished=left,
        damaged=damaged,
    )


def _lines(journal: Path, covered: set[str], damaged: list[Damage]) -> Iterator[bytes]:
    for segment in segments(journal):
        try:
            yield from payloads(segment, damaged)
            covered.add(part_name(segment))
        except FileNotFoundError:  # sealed a moment ago
            continue
        except OSError as error:
            raise StoreError(f"{segment} cannot be read: {error}") from error
