"""Parts: one Parquet file of a table each, whole in a temporary file before it gets its name."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from asyncbench.files import publish, remove_durably, storing
from asyncbench.store.checksums import STAMPED, check, column_names, fingerprint, groups_with, stamp
from asyncbench.store.schema import PARTITIONED_BY, SCHEMAS
from asyncbench.store.spending import JsonObject, Spending

TEMPORARY = ".tmp"  # in a results folder: files being written; what a dead process left there is worthless
ROW_GROUP = 8192  # rows: few enough to stream, enough to compress well and to be skipped
GROUPS_AT_ONCE = 8  # of which a filter is worked out together: it may hold a long list of ids

_CATEGORY = pa.dictionary(pa.int32(), pa.string())


def coded_schema(schema: pa.Schema, coded: Collection[str]) -> pa.Schema:
    """Return a schema with the `coded` columns as dictionaries."""
    return pa.schema([field.with_type(_CATEGORY) if field.name in coded else field for field in schema])


# The schemas inside the files. pandas and pyarrow read a folder's name (`model=…`) as a category, and refuse
# a file in it whose column of that name has any other type.
ON_DISK = {
    name: coded_schema(schema, PARTITIONED_BY[name]).with_metadata(dict(schema.metadata or {}) | STAMPED)
    for name, schema in SCHEMAS.items()
}


def partition_of(table: str, part: Path) -> Path:
    """Return the folders that a part stands in, from that of its table on."""
    return Path(table, *part.parts[-1 - len(PARTITIONED_BY[table]) : -1])


class PartEntry:
    """The entry of a part in the list of its folder's parts, gathered from its rows as they come.

    Beside rows, bytes and a digest, the entry of a part of `trials` says how many calls its trials count, and
    that of a part of `attempts` what its calls cost. So a budget still holds when the part is lost.
    """

    def __init__(self, table: str) -> None:
        self.rows = 0
        self._table, self._calls, self._spent = table, 0, Spending()

    def add(self, rows: pa.Table) -> None:
        """Take rows in."""
        self.rows += len(rows)
        if self._table == "trials":
            self._calls += pc.sum(rows["attempts"]).as_py() or 0
        elif self._table == "attempts":
            self._spent.add(rows)

    def json_object(self, file: Path) -> JsonObject:
        """Return the entry of the finished file as JSON holds it."""
        size, digest = fingerprint(file)
        entry: JsonObject = {"rows": self.rows, "bytes": size, "digest": digest}
        if self._table == "trials":
            entry["attempts"] = self._calls
        elif self._table == "attempts":
            entry["spent"] = self._spent.json_object()
        return entry


class Part:
    """One file of a table: `add` rows, `finish` it, then `publish` it."""

    def __init__(self, folder: Path, name: Path, *, may_be_empty: bool = False) -> None:
        """Begin a part of a results folder; `name` is its path in there."""
        self.path = folder / name
        self.key = name.as_posix()
        self.table = name.parts[0]
        self._temporary = folder / TEMPORARY / name.with_suffix(".partial")
        self.entry: JsonObject | None = None  # of the list of parts, once finished; None: there are no rows
        self._sums = PartEntry(self.table)
        self._may_be_empty = may_be_empty
        self._finished = False
        self._waiting = SCHEMAS[self.table].empty_table()
        self._writer: pq.ParquetWriter | None = None  # opened late: a segment may make hundreds of parts

    @property
    def rows(self) -> int:
        return self._sums.rows

    @property
    def _stands(self) -> bool:
        return self.rows > 0 or self._may_be_empty

    def add(self, rows: pa.Table) -> None:
        """Take rows in; they are written when there are enough for a row group."""
        self._sums.add(rows)
        self._finished = False
        self._waiting = pa.concat_tables([self._waiting, rows])
        if len(self._waiting) >= ROW_GROUP:
            self._write()

    def finish(self) -> None:
        """Write what is still waiting, and the end of the file; doing it again changes nothing."""
        if self._finished:
            return
        with storing(self.path):
            self._write().close()
            stamp(self._temporary)
            self.entry = self._sums.json_object(self._temporary) if self._stands else None
        self._writer, self._finished = None, True

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the finished file."""
        schema = (
            SCHEMAS[self.table] if columns is None else pa.schema(map(SCHEMAS[self.table].field, columns))
        )
        return pa.Table.from_batches(scanned(self.table, [self._temporary], columns=columns), schema)

    def take(self, trial_ids: "pa.Array[pa.StringScalar]") -> pa.Table:
        """Return the rows of these trials and leave them out of the finished file."""
        rows = self.read()
        taken = pc.is_in(rows["trial_id"], value_set=trial_ids)
        self._sums = PartEntry(self.table)
        self.add(rows.filter(pc.invert(taken)))
        self.finish()
        return rows.filter(taken)

    def publish(self) -> None:
        """Give the finished file its name, in place of any file of that name; without rows there is none."""
        with storing(self.path):
            if self._stands:
                publish(self._temporary, self.path)
            else:
                self._temporary.unlink()
                remove_durably(self.path)

    def drop(self) -> None:
        """Let a finished file go before it has its name."""
        with storing(self.path):
            self._temporary.unlink()

    def _write(self) -> pq.ParquetWriter:
        schema = ON_DISK[self.table]
        with storing(self.path):
            if self._writer is None:
                self._temporary.parent.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(
                    self._temporary, schema, compression="zstd", write_page_checksum=True
                )
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

    Raises:
        FileNotFoundError: a part is not there any more.
        StoreError: its bytes are not those that were written.
    """
    names = SCHEMAS[table].names if columns is None else list(columns)
    if not files:
        return SCHEMAS[table].empty_table().select(names)
    check_parts(table, files, columns=names, filters=filters)
    return dataset(table, files).to_table(columns=names, filter=filters)


def dataset(table: str, files: Sequence[Path]) -> ds.Dataset:
    """Return some parts of a table, by its name, as one thing to read; at least one."""
    paths = [str(file.absolute()) for file in files]  # Arrow would read a folder called ~ as the home
    return ds.dataset(paths, schema=SCHEMAS[table], format="parquet")


def scanned(
    table: str,
    files: Sequence[Path],
    *,
    columns: Sequence[str] | None = None,
    filters: pc.Expression | None = None,
    rows: int = ROW_GROUP,
    coded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read` in batches of at most `rows`, of which one is in memory at a time.

    The `coded` columns come as dictionaries.
    """
    names = SCHEMAS[table].names if columns is None else list(columns)
    for file in files:
        check_parts(table, [file], columns=names, filters=filters)
        yield from read_checked(table, file, columns=names, filters=filters, rows=rows, coded=coded)


def read_checked(
    table: str,
    file: Path,
    *,
    columns: Sequence[str],
    filters: pc.Expression | None = None,
    places: Sequence[int] | None = None,
    rows: int = ROW_GROUP,
    coded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part whose bytes were checked, as `scanned` does.

    What the filter looks at is read first, for many rows at once; of the other columns, which may be long,
    only row groups in which a row is wanted. With `places`, ascending, it is these rows, whatever is in them.
    """
    schema = coded_schema(pa.schema([SCHEMAS[table].field(name) for name in columns]), coded)
    metadata = pq.read_metadata(file)
    read_coded = [name for name in column_names(metadata) if name in coded and name in columns]
    with pq.ParquetFile(file, metadata=metadata, pre_buffer=False, read_dictionary=read_coded) as part:
        runs = _matching_runs(table, file, part, filters) if places is None else _placed_runs(part, places)
        for groups, wanted in runs:
            # Page by page: a dataset holds row groups, which may be gigabytes of replies.
            start = 0
            threads = places is None  # for the columns of a few rows they take longer than without
            for batch in part.iter_batches(rows, groups, schema.names, use_threads=threads):
                matching = _conformed(batch, schema)
                if wanted is not None:
                    matching = matching.filter(wanted.slice(start, len(batch)))
                start += len(batch)
                if matching.num_rows:
                    yield matching


# Row groups, and which of their rows are wanted; None: all of them.
_Run = tuple[list[int], "pa.ChunkedArray[pa.BooleanScalar] | None"]


def _matching_runs(
    table: str, file: Path, part: pq.ParquetFile, filters: pc.Expression | None
) -> Iterator[_Run]:
    """Yield runs of row groups, and which of their rows a filter leaves, where it leaves any."""
    if filters is None:
        yield [*range(part.num_row_groups)], None
        return
    (fragment,) = dataset(table, [file]).get_fragments()
    groups = [group.id for group in fragment.subset(filters, schema=SCHEMAS[table]).row_groups]
    schema = pa.schema([SCHEMAS[table].field(name) for name in columns_read(table, (), filters)])
    for start in range(0, len(groups), GROUPS_AT_ONCE):
        run = groups[start : start + GROUPS_AT_ONCE]
        read = part.read_row_groups(run, columns=schema.names).to_batches()
        rows = pa.Table.from_batches([_conformed(batch, schema) for batch in read], schema)
        marks: pa.ChunkedArray[pa.BooleanScalar] = ds.dataset(rows).to_table({"wanted": filters})["wanted"]
        wanted = marks.fill_null(pa.scalar(False))
        if pc.all(wanted).as_py():
            yield run, None
        elif pc.any(wanted).as_py():
            yield run, wanted


def _placed_runs(part: pq.ParquetFile, places: Sequence[int]) -> Iterator[_Run]:
    """Yield the row groups in which the rows at these places stand, and which of their rows these are."""
    for group, rows in groups_with(part.metadata, places):
        wanted = [False] * part.metadata.row_group(group).num_rows
        for row in rows:
            wanted[row] = True
        yield [group], pa.chunked_array([wanted], pa.bool_())


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of a file as a table has it: with every column, each of its type."""
    by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [
        by_name[field.name].cast(field.type) if field.name in by_name else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)


def check_parts(
    table: str,
    files: Sequence[Path],
    *,
    columns: Sequence[str],
    filters: pc.Expression | None = None,
    places: Sequence[int] | None = None,
) -> None:
    """Refuse parts that are damaged where a reader of these columns, and of those of the filter, looks.

    With `places` it looks at the row groups of these rows alone.

    Raises:
        FileNotFoundError: a part is not there any more.
        ConfigError: a later asyncbench wrote one.
        StoreError: the bytes of one are not those that were written.
    """
    for file in files:
        check(file, columns_read(table, columns, filters), places)


def columns_read(table: str, columns: Sequence[str], filters: pc.Expression | None) -> list[str]:
    text = str(filters)  # an expression does not tell its columns otherwise; one too many does no harm
    return [name for name in SCHEMAS[table].names if name in columns or name in text]
