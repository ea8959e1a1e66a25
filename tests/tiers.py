"""Seeds and other cases that are all alike, shared out among the tiers of tests."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import pytest


def shared_out(cases: Iterable[Any], *, first: int = 0, long: int = 0) -> list[Any]:
    """Return cases with marks: so many for `make test`, then for `make test-all`, all others for a soak."""
    none: tuple[pytest.MarkDecorator, ...] = ()
    marks = chain(repeat(none, first), repeat((pytest.mark.long,), long), repeat((pytest.mark.soak,)))
    return [pytest.param(case, marks=mark) for case, mark in zip(cases, marks, strict=False)]
