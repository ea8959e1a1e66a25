"""A table of a rule, checked in one test: a row takes microseconds, a test of its own milliseconds."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from itertools import product
from typing import Any

import pytest

SHOWN = 60  # characters of a value that names a row
TABLES = "_tables"  # the attribute of a test that holds its body and its tables
PARAM = type(pytest.param())

Row = tuple[str, dict[str, Any]]  # its name, and its values by parameter
Test = Callable[..., None]


def each_row(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Check a rule with each row of a table, as `pytest.mark.parametrize` does, but in one test.

        @each_row(("text", "number"), [("4", 4), ("four", 4)])
        def test_a_number_is_read(text, number): ...

    All rows are checked, and the failure names each that is wrong. They share the fixtures of the test: it is
    for rules without effects. Several tables on one test check each row with each.

    Args:
        names: the parameters that a row fills in, as `"a, b"` or `("a", "b")`.
        values: a value for each row, or as many as there are names. `pytest.param(…, id="name")` names a row.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_named(names, row) for row in values]
    if not table:
        raise ValueError("a table has no row: a test of nothing is none")

    def decorate(test: Test) -> Test:
        body, tables = getattr(test, TABLES, (test, ()))
        tables = (table, *tables)

        @wraps(body)
        def check(**fixtures: Any) -> None:
            _check(body, tables, fixtures)

        # What no table fills in is a fixture
        filled = {name for rows in tables for name in rows[0][1]}
        shape = signature(body)
        fixtures = [parameter for name, parameter in shape.parameters.items() if name not in filled]
        check.__dict__ |= {"__signature__": shape.replace(parameters=fixtures), TABLES: (body, tables)}
        return check

    return decorate


def _named(names: Sequence[str], row: Any) -> Row:
    given_id = str(row.id) if isinstance(row, PARAM) and row.id else None
    values = row.values if isinstance(row, PARAM) else (row,) if len(names) == 1 else tuple(row)
    filled = dict(zip(names, values, strict=True))
    texts = {name: getattr(value, "__name__", repr(value)) for name, value in filled.items()}
    shown = (f"{name}={text[:SHOWN]}{'…' * (len(text) > SHOWN)}" for name, text in texts.items())
    return given_id or ", ".join(shown), filled


def _check(body: Test, tables: Sequence[Sequence[Row]], fixtures: dict[str, Any]) -> None:
    rows = list(product(*tables))
    wrong: list[tuple[str, BaseException]] = []
    for row in rows:
        try:
            body(**fixtures, **{name: value for _, values in row for name, value in values.items()})
        except (Exception, pytest.fail.Exception) as error:
            wrong.append((", ".join(name for name, _ in row), error))

    if wrong:
        lines = [f"{len(wrong)} of {len(rows)} rows are wrong:"]
        for name, fault in wrong:
            lines.append(f"  {name}: {type(fault).__name__}: {next(iter(str(fault).splitlines()), '')}")
        # pytest shows the first as any failure, with its lines and what was compared
        raise AssertionError("\n".join(lines)) from wrong[0][1]
