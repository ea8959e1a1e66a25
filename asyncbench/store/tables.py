"""The journal's lines as rows of the six tables: read by Arrow, so that other threads run meanwhile."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from asyncbench.errors import StoreError
from asyncbench.store.id_set import strung
from asyncbench.store.schema import ATTEMPTS, GRADES, LANES, OF_THE_TRIAL, SKIPPED, STEPS, TRIALS

Tables = Mapping[str, pa.Table]  # by name: trials, grades, attempts, lanes, skipped, steps


def tables(payloads: Sequence[bytes], *, place: Path) -> Tables:
    """Return what the lines hold as the tables of a results folder, in their order.

    Raises:
        StoreError: a value is not of its column's type; names `place`.
    """
    try:
        ended, closed = _parsed(payloads, _ENDED), _parsed(payloads, _CLOSED)
        trials = _table(closed["trial"], TRIALS)
        return {
            "trials": trials,
            "grades": _grades(closed["grades"], trials),
            "attempts": _table(ended["attempt"], ATTEMPTS),
            "lanes": _table(_parsed(payloads, _MINUTE)["lane"], LANES),
            "skipped": _table(_parsed(payloads, _UNASKED)["skipped"], SKIPPED),
            "steps": _table(_parsed(payloads, _STEP)["step"], STEPS),
        }
    except ValueError as error:  # Arrow's too
        raise StoreError(f"{place} holds a value of the wrong type: {error}") from error


def joined(columns: Iterable["pa.ChunkedArray[pa.StringScalar]"]) -> "pa.Array[pa.StringScalar]":
    """Return columns of text as one array."""
    return strung(columns).combine_chunks()


def _grades(grades: "pa.ChunkedArray[pa.ListScalar[pa.StructType]]", trials: pa.Table) -> pa.Table:
    """Return the grades of all trials one after the other, with the columns they share with their trial."""
    shared = trials.select(list(OF_THE_TRIAL)).take(pc.list_parent_indices(grades.combine_chunks()))
    own = pa.Table.from_struct_array(pc.list_flatten(grades))  # type: ignore[arg-type]  # the stubs lose the items' type
    return pa.table([*shared.columns, *own.columns], names=GRADES.names).cast(GRADES)


def _written(schema: pa.Schema, *, without: Collection[str] = ()) -> pa.DataType:
    """Return a row of `schema` as JSON has it: times are whole microseconds."""
    return pa.struct([(field.name, _in_json(field)) for field in schema if field.name not in without])


def _in_json(field: "pa.Field[pa.DataType]") -> pa.DataType:
    if field.name == "rel_error":
        return pa.string()
    return pa.int64() if pa.types.is_timestamp(field.type) else field.type


# the lines that become rows; of each, the first key tells it from the others
_ENDED = pa.schema([("attempt", _written(ATTEMPTS))])
_MINUTE = pa.schema([("lane", _written(LANES))])
_UNASKED = pa.schema([("skipped", _written(SKIPPED))])
_STEP = pa.schema([("step", _written(STEPS))])
_CLOSED = pa.schema(
    [("trial", _written(TRIALS)), ("grades", pa.list_(_written(GRADES, without=OF_THE_TRIAL)))]
)


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
