"""A few trials of a results folder, read from where they stand: a click does not read the rest."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.store.parts import check_parts, read_checked, with_codes
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.snapshot import (
    BATCH_ROWS,
    Columns,
    Filters,
    Snapshot,
    chosen_columns,
    expression,
    reading,
)
from asyncbench.store.united import UnitedSnapshot

AT_ONCE = 2  # parts: each holds a row group with its replies
OF_TRIALS = ("trials", "grades")  # the tables that are read a few trials at a time

Places = Mapping[Path, Sequence[int]]  # rows of a table's parts, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class FewTrials(Snapshot):
    """A snapshot whose trials and grades are those of a few trials."""

    ids: "pa.Array[pa.StringScalar]"
    places: Mapping[str, Places] = field(default_factory=dict)  # of the tables whose rows are known

    def batches(
        self,
        name: str,
        columns: Columns = None,
        filters: Filters | None = None,
        *,
        rows: int = BATCH_ROWS,
        coded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as `Snapshot.batches` does, those of the few trials."""
        if name not in OF_TRIALS:
            return Snapshot.batches(self, name, columns, filters, rows=rows, coded=coded)
        wanted = pc.field("trial_id").isin(self.ids)
        if filters is not None:
            wanted &= expression(name, filters, SCHEMAS[name])
        if name not in self.places:
            return Snapshot.batches(self, name, columns, wanted, rows=rows, coded=coded)
        return self._placed(name, chosen_columns(name, columns, SCHEMAS[name]), wanted, coded)

    def _placed(
        self, table: str, columns: Sequence[str], wanted: pc.Expression, coded: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        said = str(wanted)  # an expression does not tell its columns otherwise
        read = [name for name in SCHEMAS[table].names if name in columns or name in said]
        fresh = self.journalled[table].select(read)

        def rows_at(part: Path) -> pa.Table:
            places = self.places[table][part]
            with reading(table):
                check_parts(table, [part], columns=read, places=places)
                return pa.Table.from_batches(
                    read_checked(table, part, columns=read, places=places), fresh.schema
                )

        with ThreadPoolExecutor(AT_ONCE) as threads:  # an answer of each of many models: as many parts
            found = [fresh, *threads.map(rows_at, self.places[table])]
        rows = pa.concat_tables(found).filter(wanted).select(columns)
        yield from rows.cast(with_codes(rows.schema, coded)).to_batches()


def narrowed(seen: Snapshot, ids: Sequence[str], trials: Places, grades: Places | None = None) -> Snapshot:
    """Return a snapshot of these trials alone.

    Args:
        seen: the folder.
        ids: of the trials; those that no part holds stand in the journal.
        trials: where their rows of `trials` stand.
        grades: where those of `grades` do, and maybe others; None: they are looked for.
    """
    if isinstance(seen, UnitedSnapshot):
        few = (
            narrowed(own, ids, _places_in(own, "trials", trials), _places_in(own, "grades", grades))
            for own in seen.sources
        )
        return replace(seen, sources=tuple(few))
    files = {**seen.files, "trials": tuple(trials), "grades": beside(seen, "grades", trials)}
    return FewTrials(
        files=files,
        journalled=seen.journalled,
        unfinished=seen.unfinished,
        damaged=seen.damaged,
        ids=pa.array(ids, pa.string()),
        places={"trials": trials} | ({} if grades is None else {"grades": grades}),
    )


def _places_in(seen: Snapshot, table: str, places: Places | None) -> Any:  # Any: as `places` is
    """Return those of some places that are in parts of one folder."""
    return places and {part: places[part] for part in seen.files[table] if part in places}


def beside(seen: Snapshot, table: str, parts: Collection[Path]) -> list[Path]:
    """Return the parts of a table in the same partitions as some parts of `trials`."""
    own = {_partition(part) for part in parts}
    return [part for part in seen.files[table] if _partition(part) in own]


def _partition(part: Path) -> tuple[str, str]:
    """Return the folders of suite and model that a part stands in."""
    return part.parent.parent.name, part.parent.name
