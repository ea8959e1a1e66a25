"""docs/results.md describes every column, as it is."""

import re
from pathlib import Path

import pytest

from asyncbench.store.schema import FLAG, LABELS, LONG, REAL, SCHEMA_VERSION, SCHEMAS, SHORT, TEXT, TIME

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text("utf-8")
TYPES = {
    "string": TEXT,
    "bool": FLAG,
    "int32": SHORT,
    "int64": LONG,
    "float64": REAL,
    "timestamp": TIME,
    "list<string>": LABELS,
}


def described(table):
    """The rows of a table's description: column, type, unit, NULL when, meaning."""
    (section,) = re.findall(rf"^## {table}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_column_is_described_in_its_order_with_its_type(table):
    assert [(name, TYPES[kind]) for name, kind, *_ in described(table)] == [
        (field.name, field.type) for field in SCHEMAS[table]
    ]


@pytest.mark.parametrize("table", SCHEMAS)
def test_a_column_that_may_be_null_says_when(table):
    assert [when != "never" for *_, when, _ in described(table)] == [
        field.nullable for field in SCHEMAS[table]
    ]
    assert all(when and meaning for *_, when, meaning in described(table))


@pytest.mark.parametrize(
    ("ending", "unit"),
    [("_s", "s"), ("_usd", "USD"), ("_at", "UTC, µs"), ("_tokens", "tokens"), ("params", "JSON")],
)
def test_a_unit_is_what_the_columns_name_says(ending, unit):
    units = {unit for table in SCHEMAS for name, _, unit, *_ in described(table) if name.endswith(ending)}
    assert units == {unit}


def test_the_page_names_the_version_of_the_columns():
    assert f"`asyncbench.schema_version`, now {SCHEMA_VERSION})" in PAGE
