"""Custom problem sets: any Parquet with a question and an expected answer, its columns mapped to ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.files import lacking, opened_parquet, read_batches
from asyncbench.problems.schema import Column, converted, is_text
from asyncbench.records import Draft
from asyncbench.suites import check_expected

SUITE = "custom"
REQUIRED = ("question", "expected")
OPTIONAL = ("task", "variant", "length", "representation")
DEFAULTS: Mapping[str, Any] = {  # of a draft; what a row says wins
    "suite": SUITE,
    "task": SUITE,
    "representation": "text",
    "length": None,
    "answer_type": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """How somebody else's file is read: which column is what, and how replies are graded."""

    columns: Mapping[str, str]  # our name → the file's
    grader: str
    pattern: str | None = None


def mapping(columns: Mapping[str, str] | None, *, place: str) -> dict[str, str]:
    """Return where our columns are in a file; question and expected under their own names by default."""
    given = columns or {}
    for name in given:
        if name not in REQUIRED + OPTIONAL:
            known = ", ".join(REQUIRED + OPTIONAL)
            raise ConfigError(
                f"{place}: columns: asyncbench has no column {name!r}. Give its name first, then yours: "
                f"`columns: {{question: YOUR_COLUMN}}`. Its names: {known}."
            )
    return {name: name for name in REQUIRED} | dict(given)


def drafts(path: Path, custom: Custom, *, rows: int) -> Iterator[Draft]:
    """Yield the problems of a custom file in file order, `rows` of them in memory at a time.

    Raises:
        ProblemSetError: a column is missing, holds a NULL, or cannot be turned into text exactly.
    """
    pattern = {} if custom.pattern is None else {"pattern": custom.pattern}
    extra = json.dumps({"grader": custom.grader} | pattern)
    expected = f"{path}: column {custom.columns['expected']!r}"
    with opened_parquet(path) as file:
        for name, column in custom.columns.items():
            _check_column(column, name, file.schema_arrow, path=path)
        for batch in read_batches(file, sorted(set(custom.columns.values())), path=path, rows=rows):
            ours = {
                name: _ours(batch.column(column), name, place=f"{path}: column {column!r}")
                for name, column in custom.columns.items()
            }
            for row in pa.RecordBatch.from_pydict(ours).to_pylist():
                check_expected(custom.grader, row["expected"], place=expected)
                yield Draft(**{**DEFAULTS, **row, "extra": extra})


def _check_column(column: str, name: str, schema: pa.Schema, *, path: Path) -> None:
    index = schema.get_field_index(column)  # -1 where the name stands twice, too
    if index < 0:
        raise ProblemSetError(
            f"{path}: {lacking(column, schema)} Name the column to use as {name}: `columns: {{{name}: …}}`."
        )
    given = schema.field(index).type
    whole = pa.types.is_integer(given)
    if not whole and (name == "length" or not (is_text(given) or pa.types.is_decimal(given))):
        wanted = "whole numbers" if name == "length" else "text"
        inexact = " A float may hold another number than you wrote." if pa.types.is_floating(given) else ""
        raise ProblemSetError(
            f"{path}: column {column!r} has type {given}, not {wanted}. Write it as {wanted}.{inexact}"
        )


def _ours(column: Column, name: str, *, place: str) -> Column:
    if name == "length":
        return converted(column, pa.int32(), place=place)
    if column.null_count:
        raise ProblemSetError(f"{place} is NULL in some rows. Fill it in, or remove those rows.")
    if pa.types.is_decimal(column.type):  # positional: the cast would write a small one as 1E-8
        return pa.array([format(number, "f") for number in column.to_pylist()], pa.string())
    return converted(column, pa.string(), place=place)
