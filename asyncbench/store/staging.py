"""Parts of a table on their way: whole in a temporary file before they get their name."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from asyncbench.store.durable import publish, storing
from asyncbench.store.schema import PARTITIONED_BY, SCHEMAS

TEMPORARY = ".tmp"  # in a results folder: files being written; what a dead process left there is worthless
ROW_GROUP = 8192  # rows: few enough to stream, enough to compress well and to be skipped

_CATEGORY = pa.dictionary(pa.int32(), pa.string())


def _on_disk(schema: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """Return a table's schema inside its files.

    pandas and pyarrow read a folder's name (`model=…`) as a category, and refuse a file in it whose
    column of that name has any other type.
    """
    fields = [field.with_type(_CATEGORY) if field.name in keys else field for field in schema]
    return pa.schema(fields).with_metadata(schema.metadata)


ON_DISK = {name: _on_disk(schema, PARTITIONED_BY[name]) for name, schema in SCHEMAS.items()}


class Part:
    """One file of a table: `add` rows, `finish` it, then `publish` it."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.path = folder / place
        self.table = place.parts[0]
        self._temporary = folder / TEMPORARY / place.with_suffix(".partial")
        self._rows = 0
        self._waiting = SCHEMAS[self.table].empty_table()
        self._writer: pq.ParquetWriter | None = None  # opened late: a segment may make hundreds of parts

    def add(self, rows: pa.Table) -> None:
        """Take rows in; they are written when there are enough for a row group."""
        self._rows += len(rows)
        self._waiting = pa.concat_tables([self._waiting, rows])
        if len(self._waiting) >= ROW_GROUP:
            self._write()

    def finish(self) -> None:
        """Write what is still waiting, and the end of the file."""
        with storing(self.path):
            self._write().close()
        self._writer = None

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the finished file."""
        return read(self.table, [self._temporary], columns=columns)

    def take(self, trial_ids: pa.StringArray) -> pa.Table:
        """Return the rows of these trials and leave them out of the finished file."""
        rows = self.read()
        taken = pc.is_in(rows["trial_id"], value_set=trial_ids)
        self._rows = 0
        self.add(rows.filter(pc.invert(taken)))
        self.finish()
        return rows.filter(taken)

    def publish(self) -> None:
        """Give the finished file its name, in place of any file of that name; without rows there is none."""
        with storing(self.path):
            if self._rows:
                publish(self._temporary, self.path)
            else:
                self._temporary.unlink()
                self.path.unlink(missing_ok=True)

    def _write(self) -> pq.ParquetWriter:
        schema = ON_DISK[self.table]
        with storing(self.path):
            if self._writer is None:
                self._temporary.parent.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd")
            self._writer.write_table(self._waiting.cast(schema), row_group_size=ROW_GROUP)
        self._waiting = self._waiting.slice(0, 0)
        return self._writer


def read(
    table: str,
    files: Sequence[Path],
    *,
    columns: Sequence[str] | None = None,
    filters: pc.Expression | None = None,
) -> pa.Table:
    """Return the rows of some parts of a table, by its name, in the order of the files.

    A column that a file does not have yet is NULL. `columns` may name `__filename`.
    """
    schema = SCHEMAS[table]
    names = schema.names if columns is None else list(columns)
    if not files:
        return schema.empty_table().select(names)
    dataset = ds.dataset([str(file) for file in files], schema=schema, format="parquet")
    return dataset.to_table(columns=names, filter=filters)
