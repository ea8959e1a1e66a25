"""Seeds, and rows of dear tables, shared out among the tiers of tests."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import pytest


def shared_out(cases: Iterable[Any], *, first: int = 0, long: int = 0) -> list[Any]:
    """Return cases with marks: so many for `make test`, then for `make test-all`, all others for a soak."""
    none: tuple[pytest.MarkDecorator, ...] = ()
    marks = chain(repeat(none, first), repeat((pytest.mark.long,), long), repeat((pytest.mark.soak,)))
    return [pytest.param(case, marks=mark) for case, mark in zip(cases, marks, strict=False)]


def first_rows(count: int, rows: Iterable[Any]) -> list[Any]:
    """Return a dear table of which so many rows stand for the rule in `make test`; all others are long."""
    rows = list(rows)
    if len(rows) <= count:
        raise ValueError(f"of {len(rows)} rows none is left for `make test-all`")

    others = (row if isinstance(row, tuple) else (row,) for row in rows[count:])
    return [*rows[:count], *(pytest.param(*values, marks=pytest.mark.long) for values in others)]
