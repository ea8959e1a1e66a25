"""The journal's lines as rows of the three tables: read by Arrow, so that other threads run meanwhile."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from asyncbench.errors import StoreError
from asyncbench.store.schema import ATTEMPTS, GRADES, TRIALS

Tables = Mapping[str, pa.Table]  # by name: trials, grades, attempts


def tables(payloads: Sequence[bytes], *, place: Path) -> Tables:
    """Return what the lines hold as `trials`, `grades` and `attempts`, in their order.

    Raises:
        StoreError: a value is not of its column's type; names `place`.
    """
    try:
        ended, closed = _parsed(payloads, _ENDED), _parsed(payloads, _CLOSED)
        grades = pc.list_flatten(closed["grades"])
        return {
            "trials": _table(closed["trial"], TRIALS),
            "grades": _table(grades, GRADES),  # type: ignore[arg-type]  # the stubs lose the items' type
            "attempts": _table(ended["attempt"], ATTEMPTS),
        }
    except ValueError as error:  # Arrow's too
        raise StoreError(f"{place} holds a value that its column cannot: {error}") from error


def _written(schema: pa.Schema) -> pa.DataType:
    """Return a row of `schema` as JSON has it: times are whole microseconds."""
    return pa.struct(
        [(field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type) for field in schema]
    )


# the lines that become rows; of each, the first key tells it from the others
_ENDED = pa.schema([("attempt", _written(ATTEMPTS))])
_CLOSED = pa.schema([("trial", _written(TRIALS)), ("grades", pa.list_(_written(GRADES)))])


def _parsed(payloads: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    start = b'{"%b":' % schema.names[0].encode()
    text = b"\n".join([payload for payload in payloads if payload.startswith(start)])
    if not text:
        return schema.empty_table()
    return pj.read_json(
        pa.BufferReader(text),  # type: ignore[arg-type]  # the stubs forget Arrow's own files
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),  # no line in two blocks
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _table(rows: "pa.ChunkedArray[pa.StructScalar]", schema: pa.Schema) -> pa.Table:
    return pa.Table.from_struct_array(rows).cast(schema)
