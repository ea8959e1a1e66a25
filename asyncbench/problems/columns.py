"""The columns of a problem set's file, held against the contract."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ProblemSetError
from asyncbench.problems.custom import SUITE
from asyncbench.problems.files import opened_parquet, read_batches
from asyncbench.problems.identity import Occurrences
from asyncbench.problems.schema import PROBLEM_FIELDS, ROWS_AT_ONCE, Column, is_text
from asyncbench.suites import SUITES

KNOWN: Mapping[str, Collection[str]] = {  # the words that a column may hold
    "suite": SUITES,
    "representation": ("integer", "float", "fraction", "scientific", "text"),
    "answer_type": ("integer", "decimal", "fraction", "scientific", "text"),
}


def check_types(schema: pa.Schema, *, path: Path) -> None:
    """Refuse a file that lacks a column of the contract or has one of another type."""
    for field in PROBLEM_FIELDS:
        _check_type(field, schema, path=path)


def _check_type(field: "pa.Field[pa.DataType]", schema: pa.Schema, *, path: Path) -> None:
    index = schema.get_field_index(field.name)  # -1 where the name stands twice, too
    if index < 0:
        raise ProblemSetError(
            f"{path}: not exactly one column {field.name!r}; the file has: {', '.join(schema.names)}. "
            f"Make it with `asyncbench generate`, or name its columns with `suite: {SUITE}` and `columns`"
        )
    given = schema.field(index).type
    if not _fits(given, field.type):
        raise ProblemSetError(
            f"{path}: column {field.name!r} is {given}, not {field.type}; write it as that, or make the file "
            "again with `asyncbench generate`"
        )


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether every value of a type has a place in the wanted one: other tools write other texts."""
    if pa.types.is_list(wanted):
        lists = (pa.ListType, pa.LargeListType)
        return isinstance(given, lists) and _fits(given.value_type, wanted.value_type)
    if pa.types.is_string(wanted):
        return is_text(given)
    return pa.types.is_integer(given) or pa.types.is_null(given)


def check_values(batch: pa.RecordBatch, *, path: Path) -> None:
    """Refuse a NULL where there must be a value, and a word that nobody here understands."""
    for field in PROBLEM_FIELDS:
        if not field.nullable and _nulls(batch.column(field.name)):
            raise ProblemSetError(f"{path}: column {field.name!r} holds NULL; give every row a value there")
    for name, known in KNOWN.items():
        for value in batch.column(name).unique().to_pylist():
            if value not in known:
                raise ProblemSetError(
                    f"{path}: column {name!r} holds {value!r}; it may be: {', '.join(known)}. Correct those "
                    "rows, or use a later asyncbench if that wrote them"
                )


def _nulls(column: Column) -> int:
    within = _nulls(column.flatten()) if isinstance(column, pa.ListArray) else 0
    return column.null_count + within


def check_ids(ids: Column, seen: Occurrences, *, path: Path) -> None:
    """Refuse an id that is not one of ours or that was `seen` in an earlier row."""
    odd = ids.filter(pc.invert(pc.match_substring_regex(ids, "^[0-9a-f]{32}$")))
    if len(odd):
        raise ProblemSetError(
            f"{path}: column 'problem_id' holds {odd[0].as_py()!r}, not 32 hexadecimal characters; make the "
            f"file again with `asyncbench generate`, or let it be read as `suite: {SUITE}`, which gives ids"
        )
    # Python's hash of a text is 64 bits, keyed anew in every process: no file can be made to collide.
    for problem_id in ids.to_pylist():
        if seen.add(hash(problem_id) & (2**64 - 1)) and len(rows := _rows_of(problem_id, path)) > 1:
            raise ProblemSetError(
                f"{path}: column 'problem_id' holds {problem_id} in rows {rows[0]:,} and {rows[1]:,} (the "
                f"first is row 1); keep one row of each problem, or let the file be read as `suite: {SUITE}`"
            )


def _rows_of(problem_id: object, path: Path) -> list[int]:
    """Return the rows that bear an id, the first being 1."""
    rows, before = [], 0
    with opened_parquet(path) as file:
        for batch in read_batches(file, ["problem_id"], path=path, rows=ROWS_AT_ONCE):
            ids = batch.column("problem_id").to_pylist()
            rows += [before + i for i, other in enumerate(ids, 1) if other == problem_id]
            before += batch.num_rows
    return rows
